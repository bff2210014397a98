"""The contract of losses: functions of one target and one prediction."""

from __future__ import annotations

from abc import abstractmethod
from math import inf, log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace, to_numpy
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.lazy import to_host_together
from hardthresh.core.registry import registered
from hardthresh.core.typing import Array

from .contract import BaseLoss
from .contrasts import Contrasts
from .location import average, crossing, quotient
from .mean import InnerHessian, MeanOverExamples, ScalarMeanLoss


class Loss(BaseLoss):
    """A loss of one prediction, with the inverse link, the domain of the targets and the scorer of its model.

    Subclasses are frozen dataclasses. All arrays have the shape of the predictions u. The gradient at (y, u) is zero if
    and only if y is the expected target ``mean(u)``, where `mean` is the inverse link. Quantile losses are an
    exception: their expected gradient is zero at the quantile.
    """

    lower_bound: ClassVar[float] = 0.0
    """A number that the loss never falls below, whatever the target."""

    domain: ClassVar[str]
    """The targets that the loss is defined for, in words for an error message."""

    recoding: ClassVar[str] = ""
    """How to recode targets that are often given but outside the domain, for the end of the message."""

    @abstractmethod
    def in_domain(self, y: Array) -> Array:
        """Return, for each target, whether it is in the domain."""

    @abstractmethod
    def value(self, y: Array, u: Array) -> Array:
        """Return the loss of predictions `u` for targets `y`."""

    @abstractmethod
    def gradient(self, y: Array, u: Array) -> Array:
        """Return the derivative in `u`."""

    @abstractmethod
    def curvature(self, y: Array, u: Array) -> Array:
        """Return the second derivative in `u`."""

    def kink(self) -> tuple[float, float] | None:
        """Return the smallest and the largest slope in `u` of a loss that has a kink at its target; else None."""
        return None

    @abstractmethod
    def mean(self, u: Array) -> Array:
        """Return the expected targets of predictions `u`."""

    def prepare(self, y: Array, weights: Array) -> PointwiseMean:
        """Return the weighted mean of the losses of some targets, as a function of the predictions."""
        return PointwiseMean(self, y, weights)

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Return `value` and `gradient`, bitwise identical; losses that share an exponential override this method."""
        return self.value(y, u), self.gradient(y, u)

    def link(self, mean: float) -> float:
        """Return the prediction of which `mean` is the expected target: the inverse of the method `mean`.

        Raises
        ------
        CapabilityError
            If the loss does not say, as is the default.
        """
        raise CapabilityError(f"the {type(self).__name__} loss has no link(mean), which D^2 needs")

    def constant(self, y: np.ndarray, weights: np.ndarray, offset: np.ndarray | None = None) -> float:
        """Return the constant c of which the predictions c, or c + offset, have the least weighted mean loss.

        Parameters
        ----------
        y : array, shape (n,)
            Targets, not all of which let the loss fall indefinitely in one direction.
        weights : array, shape (n,)
            Non-negative weights, not all zero.
        offset : array, shape (n,), optional
            A known part of the predictions.
        """
        return self.link(average(y, weights)) if offset is None else self._balance(y, weights, offset)

    def _balance(self, y: np.ndarray, weights: np.ndarray, offset: np.ndarray) -> float:
        """Return the constant at which the slopes of predictions above and below their targets balance."""
        start = self.initial_prediction(y, weights) - average(offset, weights)
        return crossing(lambda c: average(self.gradient(y, c + offset), weights), start)

    def d2_score(
        self,
        y: np.ndarray,
        u: np.ndarray,
        sample_weight: np.ndarray | None = None,
        offset: np.ndarray | None = None,
    ) -> float:
        """Return D^2, the fraction of deviance explained: 1 minus the mean loss divided by that of the best constant.

        The best constant is that of the method `constant`, plus the offset of the predictions. If its deviance is 0, as
        when all targets are equal, D^2 is 1 for perfect predictions and otherwise 0. That is the convention of
        scikit-learn's `r2_score` and `d2_pinball_score`; its `d2_tweedie_score` divides by zero there.

        Parameters
        ----------
        y, u : array, shape (n,)
            Targets and predictions.
        sample_weight : array, shape (n,), optional
            Positive weights.
        offset : array, shape (n,), optional
            The known part of the predictions.

        Returns
        -------
        float
            At most 1.
        """
        weights = np.ones(y.shape) if sample_weight is None else sample_weight
        mean_loss, recession = self.weighted_mean(y, u, weights), self.recession(y)
        if (np.ptp(y) == 0 and offset is None) or (recession > 0).all() or (recession < 0).all():
            return float(mean_loss == 0)
        null = np.zeros(y.shape) if offset is None else offset
        null_loss = self.weighted_mean(y, null + self.constant(y, weights, offset), weights)
        return 1.0 - mean_loss / null_loss if null_loss else float(mean_loss == 0)

    def dispersion(self, y: np.ndarray, u: np.ndarray, weights: np.ndarray) -> float:
        r"""Return the dispersion of targets about predictions that were not fitted to them; NaN without curvature.

        By default :math:`\sum_i \omega_i \ell'(y_i, u_i)^2 / \sum_i \omega_i \ell''(y_i, u_i)`, for the squared loss
        the mean square of the residuals. Losses of log-means override it by Pearson's estimate.

        Parameters
        ----------
        y, u : array, shape (n,)
            Targets and predictions.
        weights : array, shape (n,)
            Non-negative weights; only their ratios matter.
        """
        return quotient(*self.dispersion_sums(y, u, weights))

    def dispersion_sums(self, y: np.ndarray, u: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
        """Return the numerator and the denominator of the dispersion, which are sums over rows."""
        return float(weights @ np.square(self.gradient(y, u))), float(weights @ self.curvature(y, u))

    def recession(self, y: Array) -> Array:
        """Return for each target the direction of the prediction, +1 or -1, in which the loss decreases indefinitely.

        0 where a finite prediction attains the minimum, as is the default. Where it is not 0 a fit may have no finite
        coefficients.
        """
        return 0 * y

    def attains(self, y: Array, weights: Array) -> bool:
        """Return whether each target of positive weight has a finite prediction that minimises its loss."""
        return not bool(namespace(y).any(weights * self.recession(y) != 0))

    def weighted_mean(self, y: Array, u: Array, weights: Array) -> float:
        """Return the weighted mean of the loss over examples, and over the outputs of each if it has several.

        Parameters
        ----------
        y, u : array, shape (n,) or (n, q)
            Targets and predictions.
        weights : array, shape (n,)
            Non-negative weights, not all zero.
        """
        xp = namespace(u)
        losses = self.value(y, u)
        per_example = losses if losses.ndim == 1 else xp.mean(losses, axis=1)
        return float(xp.sum(weights * per_example)) / float(xp.sum(weights))

    saturates: ClassVar[bool] = False
    """Whether a parameter of the loss changes `saturated`, so that fits with different ones are compared with it."""

    def saturated(self, y: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each target that is predicted exactly, up to a constant of the data."""
        return np.zeros(y.shape)

    def working_criterion(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood, or n times the logarithm of the mean loss if there is no likelihood.

        The second is the criterion of least squares. It only ranks fits with the same parameters of the loss
        (heuristic). Parameters are those of `minus_twice_log_likelihood`.
        """
        if self.has_likelihood:
            return self.minus_twice_log_likelihood(y, u, weights, n)
        return self.criterion_of_mean(self.weighted_mean(y, u, weights), n)

    def criterion_of_mean(self, mean: float, n: float) -> float:
        """Return `working_criterion` of n examples whose mean loss is known, up to a constant of the data.

        By default, the criterion of a loss without a dispersion or without a likelihood. Losses whose dispersion is
        estimated from their mean override this method.

        Raises
        ------
        CapabilityError
            If the likelihood depends on more than the mean loss.
        """
        if self.unit_dispersion:
            return 2.0 * n * mean
        if self.has_likelihood:
            raise CapabilityError(
                f"the likelihood of the {type(self).__name__} loss is no function of its mean; give the number of "
                "features, or rows that fit into memory"
            )
        return n * log(mean) if mean > 0.0 else -inf

    def check_domain(self, y: Array, counted: np.ndarray | None = None) -> None:
        """Raise InvalidInputError, with the first invalid value, if a target is outside the domain.

        Parameters
        ----------
        y : array, shape (n,) or (n, q)
            The targets.
        counted : array of bool, shape (n,), optional
            Which of the targets to check. Default: all.
        """
        good = self.in_domain(y)
        if counted is None and bool(namespace(good).all(good)):
            return
        outside = ~to_numpy(good)
        if counted is not None:
            outside = (outside.T & counted).T
        for place in np.argwhere(outside)[:1].tolist():
            raise InvalidInputError(
                f"the {type(self).__name__} loss needs targets that are {self.domain}; y{place} is "
                f"{float(y[tuple(place)])}{self.recoding}"
            )

    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError if a target is outside the domain, or its loss would overflow."""
        self.check_domain(y)


def pointwise_losses() -> dict[str, type[Loss]]:
    """Return the registered losses of one prediction for each example, by name."""
    return {name: entry.cls for name, entry in registered("loss").items() if issubclass(entry.cls, Loss)}


class PointwiseMean(MeanOverExamples, ScalarMeanLoss):
    """The weighted mean of a pointwise loss."""

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        return float(self.loss.lower_bound)

    def inner_hessian(self, u: Array) -> InnerHessian:
        if self.loss.quadratic:
            return InnerHessian(self.weights)
        return InnerHessian(self._weighted(self.loss.curvature(self.y, u)))

    def bounding_hessian(self) -> InnerHessian | None:
        bound = self.loss.curvature_bound
        return InnerHessian(bound * self.weights) if bound < inf else None

    def contrasts(self) -> Contrasts:
        weights, recession = to_host_together(self.weights, self.loss.recession(self.y))
        return Contrasts(np.sign(weights * recession), weights > 0)
