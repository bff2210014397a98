"""Whether a function of any kind is quadratic, from a few gradients and products with its Hessian."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf, nan

import numpy as np
from array_api_compat import device

from hardthresh.arrays import namespace
from hardthresh.core.stationarity import norm
from hardthresh.core.typing import Array

from .derivatives import copied

_LENGTHS = (1.0, 1e3, 1e6)
"""Lengths of the steps at which it is tried whether a function is quadratic. Arbitrary: what differs farther out is not
seen."""
_SHARE = 64.0
"""Units of rounding by which products with a constant Hessian may differ. Arbitrary."""


def least_curvature(gradient: Callable[[Array], Array], zeros: Array) -> float:
    """Return the least second derivative along three lines, from three gradients on each.

    Parameters
    ----------
    gradient : callable
        Of f at a point. It may raise anything outside of the domain.
    zeros : array
        The point through which the lines go. They are drawn at random, and the points on them are about 1, 10^3 and
        10^6 away from it in each coordinate.

    Returns
    -------
    float
        NaN where the gradients on a line are not those of a quadratic, up to the root of the rounding, or not finite.
    """
    eps, rng, least = float(namespace(zeros).finfo(zeros.dtype).eps), np.random.default_rng(1), inf
    with suppress(Exception), np.errstate(all="ignore"):
        here = gradient(copied(zeros))
        for length in _LENGTHS:
            step = _drawn(rng, zeros, length)
            ahead, behind = gradient(1.0 * step), gradient(-2.0 * step)
            limit = eps**0.5 * sum(map(norm, (here, ahead, behind)))
            if not (0.0 < limit < inf and norm(behind + 2.0 * ahead - 3.0 * here) <= limit):
                return nan
            least = min(least, float(namespace(step).sum(step * (ahead - here))) / length**2)
        return least
    return nan


def has_constant_hessian(product: Callable[[Array, Array], Array], zeros: Array, tried: bool) -> bool:
    """Return whether products with the Hessian are the same everywhere and not zero.

    Parameters
    ----------
    product : callable
        The Hessian at a point times a direction; it may raise anything.
    zeros : array
        A point.
    tried : bool
        Whether they are compared at this point, at two opposite points drawn at random, and at one of NaN, which only
        what does not use the point survives. Else they are known not to depend on it.

    Notes
    -----
    A function that branches on comparisons survives NaN, if the same branch is taken at all these points: that is seen
    in gradients far away (`least_curvature`).
    """
    rng = np.random.default_rng(0)
    v, w = _drawn(rng, zeros), _drawn(rng, zeros)
    points = [copied(zeros)] + ([zeros + namespace(zeros).nan, w, -10.0 * w] if tried else [])
    try:
        here, *others = (product(point, v) for point in points)
    except Exception:  # a function may refuse NaN, or be infinite at zero, in any way
        return False
    size = norm(here)
    limit = _SHARE * float(namespace(v).finfo(v.dtype).eps) * size
    return 0.0 < size < inf and all(norm(other - here) <= limit for other in others)


def _drawn(rng: np.random.Generator, like: Array, length: float = 1.0) -> Array:
    """Return a point drawn at random, in the library of another."""
    x = length * rng.standard_normal(tuple(like.shape))
    return namespace(like).asarray(x, dtype=like.dtype, device=device(like))
