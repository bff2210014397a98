"""The contract of joint losses: functions of all predictions at once, such as a partial likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hardthresh.core.typing import Array

from .mean import ScalarMeanLoss


class JointLoss(ABC):
    """A loss that is no sum of functions of one prediction each.

    Subclasses are frozen dataclasses. Targets y have one row or number for each example. What depends on targets
    and weights alone, such as their order, is computed once, by `prepare`. Mini-batches are not defined.

    See Also
    --------
    Loss : Losses that are sums over examples.
    """

    convex: ClassVar[bool] = True
    """Whether the loss is convex in the predictions."""

    quadratic: ClassVar[bool] = False
    """Whether the Hessian is the same everywhere."""

    domain: ClassVar[str]
    """The targets that the loss is defined for, in words for an error message."""

    n_predictions: ClassVar[int] = 1
    """How many predictions an example has: one, which a `LinearModel` has, or more, in an objective of its own."""

    classifies: ClassVar[bool] = False
    """Whether a target is the probability of the second of two classes: False."""

    target_kind: ClassVar[str] = "numbers"
    """What targets are, as for `Loss`."""

    multiplies: ClassVar[str] = ""
    """Where predictions are logarithms, what e^u is, in words: what coefficients multiply."""

    default_ridge: ClassVar[float] = 0.0
    """The ridge of estimators whose `alpha` is None."""

    unit_dispersion: ClassVar[bool] = True
    """Whether the likelihood has no dispersion: always."""

    score_name: ClassVar[str]
    """What estimators call the score of held-out rows."""

    score_scale: ClassVar[float] = 1.0
    """The score per loss."""

    def in_domain(self, y: Array) -> Array:
        """Return, for each number, whether a target may hold it."""
        return y == y

    @abstractmethod
    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError, naming the first offender, if a target is outside the domain."""

    @abstractmethod
    def prepare(self, y: Array, weights: Array) -> ScalarMeanLoss:
        """Return the loss of some targets as a function of the predictions.

        Raises
        ------
        InvalidInputError
            If the targets of positive weight do not determine a loss.
        """

    def attains(self, y: Array, weights: Array) -> bool:
        """Return whether finite predictions minimise the loss: not, by default."""
        return False

    @abstractmethod
    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw targets for predictions, to test and simulate with; `noise` is as for pointwise losses."""

    @abstractmethod
    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood of targets, up to a constant of the data; as for pointwise losses.

        Of the examples n stand for those that count: see `MeanLoss.share`.
        """
