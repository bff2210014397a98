"""Losses in prediction space, one per file: of one prediction, of the several of an example, or of all examples."""

from .base import Loss, pointwise_losses
from .cox import Cox
from .gamma import Gamma
from .joint import JointLoss
from .logistic import Logistic
from .multi_task import MultiTask
from .multinomial import Multinomial
from .ordinal import Ordinal
from .poisson import Poisson
from .squared import Squared
from .vector import VectorLoss

__all__ = [
    "Cox",
    "Gamma",
    "JointLoss",
    "Logistic",
    "Loss",
    "MultiTask",
    "Multinomial",
    "Ordinal",
    "Poisson",
    "Squared",
    "VectorLoss",
    "pointwise_losses",
]
