"""The contract of joint losses: functions of all predictions at once, such as a partial likelihood."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from hardthresh.core.typing import Array

from .contract import BaseLoss
from .mean import ScalarMeanLoss


class JointLoss(BaseLoss):
    """A loss that is not a sum of functions of a single prediction.

    Subclasses are frozen dataclasses. Targets y have one row or number for each example. `prepare` computes once what
    depends only on the targets and weights, such as their order. Mini-batches are not defined.

    See Also
    --------
    Loss : Losses that are a sum over examples.
    """

    domain: ClassVar[str]
    """The targets that the loss is defined for, in words for an error message."""

    n_predictions: ClassVar[int] = 1
    """How many predictions an example has: one, which a `LinearModel` has, or more, in an objective of its own."""

    takes_intercept: ClassVar[bool] = False
    unit_dispersion: ClassVar[bool] = True
    score_scale: ClassVar[float] = 1.0

    def in_domain(self, y: Array) -> Array:
        """Return, for each number, whether a target may hold it."""
        return y == y

    @abstractmethod
    def prepare(self, y: Array, weights: Array) -> ScalarMeanLoss:
        """Return the loss of some targets as a function of the predictions."""

    def attains(self, y: Array, weights: Array) -> bool:
        """Return whether finite predictions minimise the loss; False by default."""
        return False
