"""Gamma deviance, for amounts."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log, pi
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .exponential import capped_exp, exponential_excess
from .log_link import LogLink, pearson_sums


@register("loss", "gamma")
@dataclass(frozen=True, slots=True)
class Gamma(LogLink):
    r"""Half the gamma deviance of log-means u, :math:`\ell(y, u) = u - \log y + y e^{-u} - 1`.

    Targets are amounts > 0 whose standard deviation is proportional to their mean: costs, durations, sizes. The loss is
    the negative log-likelihood times the dispersion, up to a constant such that the loss of a perfect prediction
    :math:`u = \log y` is 0. The second derivative :math:`y e^{-u}` is unbounded. Near the overflow threshold the
    exponential is replaced by its second-order Taylor polynomial, as in `Poisson`.

    Examples
    --------
    >>> import numpy as np
    >>> Gamma().value(np.array([1.0, 3.0]), np.array([0.0, np.log(3.0)]))
    array([0., 0.])
    """

    domain: ClassVar[str] = "finite numbers > 0"
    target_kind: ClassVar[str] = "amounts"
    score_name: ClassVar[str] = "neg_mean_gamma_deviance"

    def in_domain(self, y: Array) -> Array:
        return (y > 0) & namespace(y).isfinite(y)

    def value(self, y: Array, u: Array) -> Array:
        return self.value_and_gradient(y, u)[0]

    def gradient(self, y: Array, u: Array) -> Array:
        ratio, beyond = capped_exp(namespace(u).log(y) - u)
        return 1 - ratio * (1 + beyond)

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        xp = namespace(u)
        gap = xp.log(y) - u
        near = xp.where(xp.abs(gap) < 1, gap, 0 * gap)  # there e^gap - 1 - gap would cancel
        ratio, beyond = capped_exp(gap)
        total = ratio * (1 + beyond + 0.5 * beyond * beyond)
        value = xp.where(xp.abs(gap) < 1, exponential_excess(near), total - 1 - gap)
        return value, 1 - ratio * (1 + beyond)

    def curvature(self, y: Array, u: Array) -> Array:
        return capped_exp(namespace(u).log(y) - u)[0]

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        return np.asarray(np.exp(u) * rng.gamma(1 / noise**2, noise**2, u.shape))

    def dispersion_sums(self, y: np.ndarray, u: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
        """Return the sums of Pearson's estimate for a variance proportional to the square of the mean."""
        return pearson_sums(y, u, weights, 2.0)

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood, with the maximum likelihood estimate of the dispersion."""
        return self.criterion_of_mean(self.weighted_mean(y, u, weights), n)

    def criterion_of_mean(self, mean: float, n: float) -> float:
        if not mean > 0.0:
            return -inf
        shape = _shape(mean)
        return 2.0 * n * (shape * mean + _stirling_error(shape))


_LARGE = 100.0
"""From this shape on asymptotic series replace differences of large numbers, which lose digits as the shape grows; the
first term that the series omit is below 1e-12 of their sum."""


def _shape(mean: float) -> float:
    """Return the root v of log v - digamma(v) = mean: it is between 1 / (2 mean) and 1 / mean, but for rounding."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    def excess(shape: float) -> float:
        if shape < _LARGE:
            return float(log(shape) - digamma(shape)) - mean
        return 1 / (2 * shape) + 1 / (12 * shape**2) - 1 / (120 * shape**4) - mean

    return float(brentq(excess, 0.4 / mean, 1.1 / mean, xtol=1e-300, rtol=1e-14))


def _stirling_error(shape: float) -> float:
    """Return log Gamma(v) - v log v + v."""
    if shape < _LARGE:
        return lgamma(shape) - shape * log(shape) + shape
    return 0.5 * log(2 * pi / shape) + 1 / (12 * shape) - 1 / (360 * shape**3)
