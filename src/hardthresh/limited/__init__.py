"""Sources of examples whose attributes are bought one by one, and the meter that refuses to exceed the budget."""

from .cost_model import Market
from .meter import BudgetError, Meter
from .sources import (
    ArraySource,
    AttributeSource,
    CallbackSource,
    Example,
    Examples,
    FileSource,
    Journal,
    RowSource,
    convert_journal,
)

__all__ = [
    "ArraySource",
    "AttributeSource",
    "BudgetError",
    "CallbackSource",
    "Example",
    "Examples",
    "FileSource",
    "Journal",
    "Market",
    "Meter",
    "RowSource",
    "convert_journal",
]
