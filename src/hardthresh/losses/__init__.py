"""Losses, one per file: functions of one prediction, of the predictions of an example, or of all predictions."""

from .base import Loss, pointwise_losses
from .contract import BaseLoss
from .cox import Cox
from .gamma import Gamma
from .huber import Huber
from .joint import JointLoss
from .logistic import Logistic
from .multi_task import MultiTask
from .multinomial import Multinomial
from .negative_binomial import NegativeBinomial
from .ordinal import Ordinal
from .poisson import Poisson
from .quantile import Quantile
from .squared import Squared
from .squared_hinge import SquaredHinge
from .tweedie import Tweedie
from .vector import VectorLoss

__all__ = [
    "BaseLoss",
    "Cox",
    "Gamma",
    "Huber",
    "JointLoss",
    "Logistic",
    "Loss",
    "MultiTask",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "VectorLoss",
    "pointwise_losses",
]
