"""Algorithms that choose which attributes of the next examples to observe."""

from .adaptive import AdaptiveHybrid
from .dantzig import DantzigSelector
from .dual_averaging import RegularizedDualAveraging
from .logistic import LogisticHybrid
from .published import Exploitation, Exploration, Hybrid
from .schedules import Geometric

__all__ = [
    "AdaptiveHybrid",
    "DantzigSelector",
    "Exploitation",
    "Exploration",
    "Geometric",
    "Hybrid",
    "LogisticHybrid",
    "RegularizedDualAveraging",
]
