"""Pointwise losses in prediction space, one per file."""

from .base import Loss
from .gamma import Gamma
from .logistic import Logistic
from .poisson import Poisson
from .squared import Squared

__all__ = ["Gamma", "Logistic", "Loss", "Poisson", "Squared"]
