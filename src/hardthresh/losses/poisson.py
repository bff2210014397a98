"""Poisson deviance, for counts and rates."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .exponential import capped_exp, exponent_cap, exponential_excess
from .log_link import LogLink


@register("loss", "poisson")
@dataclass(frozen=True, slots=True)
class Poisson(LogLink):
    r"""Half the Poisson deviance of log-rates u, :math:`\ell(y, u) = e^u - y u - (y - y \log y)`.

    Targets are counts or rates >= 0; :math:`0 \log 0 = 0`. The loss is the negative log-likelihood up to a constant
    such that the loss of a perfect prediction :math:`u = \log y` is 0. The second derivative :math:`e^u` is unbounded.
    For u above 40 in float32 and 319 in float64, the exponential is replaced by its second-order Taylor polynomial, so
    that a step that is far too long gives a large value instead of infinity.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().value(np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.0, np.log(3.0)]))
    array([1., 0., 0.])
    """

    domain: ClassVar[str] = "finite numbers >= 0"
    unit_dispersion: ClassVar[bool] = True
    target_kind: ClassVar[str] = "counts"
    score_name: ClassVar[str] = "neg_mean_poisson_deviance"

    def check_targets(self, y: Array) -> None:
        self.check_domain(y)
        largest, limit = float(namespace(y).max(y)), exp(exponent_cap(y.dtype, namespace(y)))
        if largest > limit:
            raise InvalidInputError(
                f"the targets leave the range of a Poisson model in {y.dtype}, which ends at {limit:.3g} (the largest "
                f"is {largest:.3g}); rescale y"
            )

    def in_domain(self, y: Array) -> Array:
        return (y >= 0) & namespace(y).isfinite(y)

    def value(self, y: Array, u: Array) -> Array:
        return self.value_and_gradient(y, u)[0]

    def gradient(self, y: Array, u: Array) -> Array:
        rate, beyond = capped_exp(u)
        return rate * (1 + beyond) - y

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        xp = namespace(u)
        one = xp.ones_like(y)
        known = xp.where(y > 0, y, one)
        gap = u - xp.log(known)  # without y > 0 it counts 0 times
        small = known * exponential_excess(xp.clip(gap, -1, 1))  # there e^u - y - y gap would cancel
        rate, beyond = capped_exp(u)
        total = rate * (1 + beyond + 0.5 * beyond * beyond)
        value = xp.where((y > 0) & (xp.abs(gap) < 1), small, total - y - y * gap)
        return value, rate * (1 + beyond) - y

    def curvature(self, y: Array, u: Array) -> Array:
        return capped_exp(u)[0]

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        return np.asarray(noise**2 * rng.poisson(np.exp(u) / noise**2))

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        return self.criterion_of_mean(self.weighted_mean(y, u, weights), n)
