"""Sources of examples whose attributes are bought one by one, and the meter that refuses to exceed the budget."""

from .arrays import ArraySource
from .market import Market
from .meter import BudgetError, Meter
from .source import AttributeSource, Examples

__all__ = ["ArraySource", "AttributeSource", "BudgetError", "Examples", "Market", "Meter"]
