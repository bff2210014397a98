"""Algorithms that choose which attributes of the next examples to observe, and learn coefficients."""

from .adaptive import AdaptiveHybrid
from .dantzig import DantzigSelector
from .dual_averaging import RegularizedDualAveraging
from .exploitation import Exploitation
from .exploration import Exploration
from .hybrid import Hybrid
from .logistic import LogisticHybrid
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
