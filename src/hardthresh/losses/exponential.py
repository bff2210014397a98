"""The exponential of losses with a log link, finite at any prediction."""

from __future__ import annotations

from math import log
from typing import Any

from hardthresh.arrays import namespace
from hardthresh.core.typing import Array


def exponent_cap(dtype: Any, xp: Any) -> float:
    """Return the exponent up to which `capped_exp` is the exponential."""
    return 0.45 * log(float(xp.finfo(dtype).max))


def capped_exp(u: Array) -> tuple[Array, Array]:
    """Return e^u up to a cap far below overflow, and how far u lies beyond it.

    The cap is 0.45 times the logarithm of the largest number, 40 in float32 and 319 in float64: there the square of the
    exponential, which products with data may need, is still finite. Beyond it the exponential continues as its
    second-order Taylor polynomial: with r, b the answer, value, slope and curvature are r (1 + b + b^2 / 2), r (1 + b)
    and r.
    """
    xp = namespace(u)
    cap = exponent_cap(u.dtype, xp)
    return xp.exp(xp.clip(u, max=cap)), xp.clip(u - cap, min=0.0)


def exponential_excess(x: Array) -> Array:
    """Return e^x - 1 - x without cancellation, for x that are not large; not negative by rounding."""
    xp = namespace(x)
    return xp.clip(xp.expm1(x) - x, min=0.0)
