"""Poisson deviance, for counts and rates."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss


@register("loss", "poisson")
@dataclass(frozen=True, slots=True)
class Poisson(Loss):
    r"""Half the Poisson deviance of log-rates u, :math:`\ell(y, u) = e^u - y u - (y - y \log y)`.

    Targets are counts or rates >= 0; :math:`0 \log 0 = 0`. It is minus the log-likelihood up to a constant of the data,
    chosen such that a perfect prediction :math:`u = \log y` costs 0. There is no bound on the second derivative
    :math:`e^u`. Where :math:`e^u` comes near the largest number (u above 40 in float32, 319 in float64) the exponential
    goes on as its second-order Taylor polynomial, so that a step much too long gives a large value, not infinity.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().value(np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.0, np.log(3.0)]))
    array([1., 0., 0.])
    """

    domain: ClassVar[str] = "finite numbers >= 0"

    def in_domain(self, y: Array) -> Array:
        return (y >= 0) & namespace(y).isfinite(y)

    def recession(self, y: Array) -> Array:
        return namespace(y).where(y > 0, 0 * y, 0 * y - 1)

    def value(self, y: Array, u: Array) -> Array:
        xp = namespace(u)
        one = xp.ones_like(y)
        rate = xp.where(y > 0, y, one)
        gap = xp.where(y > 0, u - xp.log(rate), 0 * u)
        near = xp.where(xp.abs(gap) < 1, gap, 0 * gap)  # there e^u - y - y gap would cancel
        small = rate * (xp.expm1(near) - near)
        small = xp.where(small > 0, small, 0 * small)
        rise, beyond = _exp(u)
        total = rise * (1 + beyond + 0.5 * beyond * beyond)
        return xp.where((y > 0) & (xp.abs(gap) < 1), small, total - y - y * gap)

    def gradient(self, y: Array, u: Array) -> Array:
        rise, beyond = _exp(u)
        return rise * (1 + beyond) - y

    def curvature(self, y: Array, u: Array) -> Array:
        return _exp(u)[0]


def _exp(u: Array) -> tuple[Array, Array]:
    """Return e^u up to a cap far below overflow, and how far u lies beyond it."""
    xp = namespace(u)
    cap = 0.45 * log(float(xp.finfo(u.dtype).max))
    beyond = xp.where(u > cap, u - cap, 0 * u)
    return xp.exp(u - beyond), beyond
