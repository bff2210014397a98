"""Sources of examples whose attributes are bought one by one, and the meter that refuses to exceed the budget."""

from .arrays import ArraySource
from .callback import CallbackSource
from .files import FileSource
from .journal import Journal
from .journal_conversion import convert_journal
from .market import Market
from .meter import BudgetError, Meter
from .rows import RowSource
from .source import AttributeSource, Example, Examples

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
