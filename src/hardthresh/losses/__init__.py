"""Losses in prediction space, one per file: of one prediction, or of the several predictions of an example."""

from .base import Loss, pointwise_losses
from .gamma import Gamma
from .logistic import Logistic
from .multi_task import MultiTask
from .multinomial import Multinomial
from .poisson import Poisson
from .squared import Squared
from .vector import VectorLoss

__all__ = [
    "Gamma",
    "Logistic",
    "Loss",
    "MultiTask",
    "Multinomial",
    "Poisson",
    "Squared",
    "VectorLoss",
    "pointwise_losses",
]
