"""The contract of all losses: of one prediction, of the predictions of an example, and of all predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import ClassVar

import numpy as np

from hardthresh.core.errors import CapabilityError
from hardthresh.core.typing import Array

from .mean import MeanLoss


class BaseLoss(ABC):
    """Base of the three kinds of losses. Subclasses are frozen dataclasses.

    See Also
    --------
    Loss : Losses of one prediction.
    VectorLoss : Losses of the several predictions of an example.
    JointLoss : Losses of the predictions of all examples.
    """

    convex: ClassVar[bool] = True
    """Whether the loss is convex in the predictions: lower bounds of certificates rely on it."""

    quadratic: ClassVar[bool] = False
    """Whether the second derivatives are those of least squares everywhere: 1, or the unit matrix."""

    curvature_bound: ClassVar[float] = inf
    """The largest second derivative, or eigenvalue of second derivatives; inf if there is none, or none is known."""

    linear_in_target: ClassVar[bool] = False
    """Whether both derivatives are linear in the target, as for generalised linear models: where all predictions are
    the same, means of targets then say what they are."""

    classifies: ClassVar[bool] = False
    """Whether targets are classes, or probabilities of one; estimators then take labels."""

    takes_intercept: ClassVar[bool] = True
    """Whether linear predictors have an intercept: not where a constant that is added to all of them changes nothing,
    or where the loss has thresholds in its place."""

    unit_dispersion: ClassVar[bool] = False
    """Whether the loss is minus a log-likelihood as it stands, with no dispersion to estimate beside predictions."""

    target_kind: ClassVar[str] = "numbers"
    """What targets are, which decides how predictions are drawn: "numbers", "amounts" (>= 0), "counts", "classes",
    "times" until an event; or "quantiles", numbers of which a quantile is predicted."""

    multiplies: ClassVar[str] = ""
    """Where predictions are logarithms, what e^u is, in words: what coefficients multiply. Else they add to targets."""

    default_ridge: ClassVar[float] = 0.0
    """The ridge of estimators whose `alpha` is None."""

    score_name: ClassVar[str]
    """The default score of estimators, minus `score_scale` times the mean loss: by the name of scikit-learn's scorer of
    these numbers, or if it has none by a name of that form."""

    score_scale: ClassVar[float] = 2.0
    """The score per loss: 2 for a deviance, of which the loss is half."""

    @abstractmethod
    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError, with the first invalid value, if a target is outside the domain."""

    @abstractmethod
    def prepare(self, y: Array, weights: Array) -> MeanLoss:
        """Return the weighted mean of the loss of some targets, as a function of the predictions.

        Raises
        ------
        InvalidInputError
            If the targets of positive weight do not determine a loss.
        """

    @abstractmethod
    def attains(self, y: Array, weights: Array) -> bool:
        """Return whether finite predictions minimise the loss of the targets of positive weight."""

    @abstractmethod
    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw random targets for given predictions, with the square of `noise` as their dispersion."""

    def initial_prediction(self, y: Array, weights: Array) -> float:
        """Return a prediction close to the best constant one; fits with an intercept start from it.

        Default: 0. Losses that grow exponentially, or have no curvature far from the targets, need another start,
        because Newton's method is slow, overshoots or does not move at 0.
        """
        return 0.0

    @property
    def has_likelihood(self) -> bool:
        """Whether the loss is a negative log-likelihood or quasi-log-likelihood that information criteria can use."""
        return type(self).minus_twice_log_likelihood is not BaseLoss.minus_twice_log_likelihood

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood of targets, up to a constant of the data.

        If there is a dispersion that is not a parameter of the loss, it is estimated by maximum likelihood.

        Parameters
        ----------
        y, u : array
            Targets and predictions.
        weights : array, shape (n,)
            Non-negative weights, not all zero; only their ratios matter.
        n : float
            The number of observations that the examples represent, which need not be the number of examples
            (`MeanLoss.share`).

        Returns
        -------
        float
            -inf if a likelihood with a dispersion fits perfectly.

        Raises
        ------
        CapabilityError
            If the loss is not a negative log-likelihood, which is the default.
        """
        raise self.no_likelihood()

    def no_likelihood(self) -> CapabilityError:
        """Return the error of an information criterion for a loss without a likelihood."""
        return CapabilityError(
            f"the {type(self).__name__} loss has no likelihood for an information criterion; compare models by "
            "cross-validation"
        )
