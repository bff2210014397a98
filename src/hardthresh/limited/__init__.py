"""Learning from examples whose attributes are bought one by one: sources, the meter, and the algorithms."""

from .algorithms import (
    AdaptiveHybrid,
    DantzigSelector,
    Exploitation,
    Exploration,
    Hybrid,
    LogisticHybrid,
    RegularizedDualAveraging,
)
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
    "AdaptiveHybrid",
    "ArraySource",
    "AttributeSource",
    "BudgetError",
    "CallbackSource",
    "DantzigSelector",
    "Example",
    "Examples",
    "Exploitation",
    "Exploration",
    "FileSource",
    "Hybrid",
    "Journal",
    "LogisticHybrid",
    "Market",
    "Meter",
    "RegularizedDualAveraging",
    "RowSource",
    "convert_journal",
]
