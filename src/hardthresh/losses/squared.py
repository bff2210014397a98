"""Squared error, for real targets."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss
from .location import check_squares


@register("loss", "squared")
@dataclass(frozen=True, slots=True)
class Squared(Loss):
    r"""Half the squared error, :math:`\ell(y, u) = (u - y)^2 / 2`.

    Targets are any finite reals; the second derivative is 1.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([2.])
    """

    quadratic: ClassVar[bool] = True
    linear_in_target: ClassVar[bool] = True
    curvature_bound: ClassVar[float] = 1.0
    domain: ClassVar[str] = "finite numbers"
    score_name: ClassVar[str] = "neg_mean_squared_error"

    def in_domain(self, y: Array) -> Array:
        return namespace(y).isfinite(y)

    def check_targets(self, y: Array) -> None:
        self.check_domain(y)
        check_squares(y, float(namespace(y).finfo(y.dtype).smallest_normal) ** 0.5)

    def value(self, y: Array, u: Array) -> Array:
        residual = u - y
        return 0.5 * residual * residual

    def gradient(self, y: Array, u: Array) -> Array:
        return u - y

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        residual = u - y
        return 0.5 * residual * residual, residual

    def curvature(self, y: Array, u: Array) -> Array:
        return namespace(u).ones_like(u)

    def mean(self, u: Array) -> Array:
        return namespace(u).asarray(u, copy=True)

    def link(self, mean: float) -> float:
        return mean

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        return u + noise * rng.standard_normal(u.shape)

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood of normal noise with the best variance, twice the mean loss."""
        return self.criterion_of_mean(self.weighted_mean(y, u, weights), n)

    def criterion_of_mean(self, mean: float, n: float) -> float:
        return n * log(2.0 * mean) if mean > 0.0 else -inf
