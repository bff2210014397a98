"""The base of losses whose predictions are logarithms of expected targets."""

from __future__ import annotations

from math import log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.typing import Array

from .base import Loss
from .location import average


class LogLink(Loss):
    """Base of the losses of log-means u: the expected target is e^u."""

    linear_in_target: ClassVar[bool] = True
    multiplies: ClassVar[str] = "the expected target"

    def mean(self, u: Array) -> Array:
        """Return e^u."""
        return namespace(u).exp(u)

    def link(self, mean: float) -> float:
        """Return the logarithm of a mean > 0."""
        return log(mean)

    def recession(self, y: Array) -> Array:
        """Return -1 for targets of 0, whose loss decreases indefinitely with the prediction, and otherwise 0."""
        return namespace(y).where(y > 0, 0 * y, 0 * y - 1)

    def initial_prediction(self, y: Array, weights: Array) -> float:
        """Return the logarithm of the mean target; 0 if that is 0."""
        mean = average(y, weights)
        return self.link(mean) if mean > 0.0 else 0.0


@without_overflow_warnings
def pearson_sums(y: np.ndarray, u: np.ndarray, weights: np.ndarray, power: float) -> tuple[float, float]:
    r"""Return the sums of Pearson's estimate: squared residuals over variances that are a power of the mean.

    .. math:: \sum_i \omega_i \frac{(y_i - \mu_i)^2}{\mu_i^{\text{power}}} \Big/ \sum_i \omega_i,
              \qquad \mu_i = e^{u_i}

    References
    ----------
    P. McCullagh and J. A. Nelder (1989), *Generalized Linear Models*, Section 8.3.
    """
    ratio = (y * np.exp(-u) - 1) ** 2 * np.exp((2 - power) * u)  # no overflow in the squares of large means
    return float(np.sum(weights * ratio)), float(np.sum(weights))
