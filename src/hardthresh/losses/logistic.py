"""Logistic loss, for targets 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss


def sigmoid(u: Array) -> Array:
    """Return 1 / (1 + exp(-u)), without overflow at any u."""
    return _sigmoid(u, _small(u))


@register("loss", "logistic")
@dataclass(frozen=True, slots=True)
class Logistic(Loss):
    r"""The logistic loss (log-loss) of log-odds u, :math:`\ell(y, u) = \log(1 + e^u) - y u`.

    Targets are 0, 1, or probabilities in between. The second derivative is at most 1/4. The computation is stable for
    all finite u.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().value(np.array([1.0, 0.0]), np.array([1e4, 1e4]))
    array([    0., 10000.])
    """

    curvature_bound: ClassVar[float] = 0.25
    linear_in_target: ClassVar[bool] = True
    domain: ClassVar[str] = "0, 1 or between"
    recoding: ClassVar[str] = "; recode labels -1 and 1 as (y + 1) / 2"
    classifies: ClassVar[bool] = True
    unit_dispersion: ClassVar[bool] = True
    target_kind: ClassVar[str] = "classes"
    multiplies: ClassVar[str] = "the odds"
    default_ridge: ClassVar[float] = 1e-2  # few columns often separate classes, and then have no finite coefficients
    score_name: ClassVar[str] = "neg_log_loss"
    score_scale: ClassVar[float] = 1.0

    def in_domain(self, y: Array) -> Array:
        return (y >= 0) & (y <= 1)

    def recession(self, y: Array) -> Array:
        return namespace(y).where((y == 0) | (y == 1), 2 * y - 1, 0 * y)

    def value(self, y: Array, u: Array) -> Array:
        linear = _linear(y, u)
        return namespace(u).log1p(_small(u)) + linear

    def gradient(self, y: Array, u: Array) -> Array:
        return sigmoid(u) - y

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        linear = _linear(y, u)  # first: the temporary arrays of both then fit into the same memory
        small = _small(u)
        return namespace(u).log1p(small) + linear, _sigmoid(u, small) - y

    def curvature(self, y: Array, u: Array) -> Array:
        p = sigmoid(u)
        return p * (1 - p)

    def mean(self, u: Array) -> Array:
        return sigmoid(u)

    def link(self, mean: float) -> float:
        return log(mean / (1 - mean))

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        return np.asarray(rng.random(u.shape) < sigmoid(u / noise), dtype=u.dtype)

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        return self.criterion_of_mean(self.weighted_mean(y, u, weights), n)


def _small(u: Array) -> Array:
    """Return e^-|u|."""
    return namespace(u).exp(-abs(u))


def _linear(y: Array, u: Array) -> Array:
    """Return the loss less log(1 + e^-|u|), which is max(u, 0) - y u computed without cancellation."""
    return namespace(u).where(u > 0, 1 - y, -y) * u


def _sigmoid(u: Array, small: Array) -> Array:
    """Return 1 / (1 + exp(-u)), given e^-|u|."""
    return namespace(u).where(u >= 0, namespace(u).ones_like(u), small) / (1 + small)
