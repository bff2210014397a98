"""Learning from examples whose attributes have to be paid for: sources, the meter, and the algorithms.

An *example* is a pair of a vector x of d *attributes* and a target y, such as a patient. An attribute is *observed* if
its value was measured for this example; that has a price, and a panel of attributes is bought together. An algorithm
returns a *query*: the attributes to observe of the next examples. The learner turns it into *questions*, one for each
example; an *answer* has the values of the attributes that a question names, and the target. s is the largest number of
non-zero coefficients, and s' the largest number of attributes that may be observed of one example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .algorithms import (
    AdaptiveHybrid,
    DantzigSelector,
    Exploitation,
    Exploration,
    Geometric,
    Hybrid,
    LogisticHybrid,
    RegularizedDualAveraging,
)
from .contract import Algorithm, AlgorithmState, Query
from .cost_model import BudgetError, CostModel, Purchase
from .learner import Learner, LearningResult, learn
from .meter import Meter
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

if TYPE_CHECKING:
    from .estimators import LimitedAttributeLogisticRegression, LimitedAttributeRegression

__all__ = [
    "AdaptiveHybrid",
    "Algorithm",
    "AlgorithmState",
    "ArraySource",
    "AttributeSource",
    "BudgetError",
    "CallbackSource",
    "CostModel",
    "DantzigSelector",
    "Example",
    "Examples",
    "Exploitation",
    "Exploration",
    "FileSource",
    "Geometric",
    "Hybrid",
    "Journal",
    "Learner",
    "LearningResult",
    "LimitedAttributeLogisticRegression",
    "LimitedAttributeRegression",
    "LogisticHybrid",
    "Meter",
    "Purchase",
    "Query",
    "RegularizedDualAveraging",
    "RowSource",
    "convert_journal",
    "learn",
]


def __getattr__(name: str) -> Any:
    """Load the estimators, and scikit-learn with them, on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import estimators

    return getattr(estimators, name)
