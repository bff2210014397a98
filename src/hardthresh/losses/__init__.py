"""Pointwise losses in prediction space, one per file."""

from .base import Loss
from .logistic import Logistic
from .poisson import Poisson
from .squared import Squared

__all__ = ["Logistic", "Loss", "Poisson", "Squared"]
