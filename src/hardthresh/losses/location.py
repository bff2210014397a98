"""Location of weighted numbers: their mean, quantiles, and where a slope that rises crosses zero."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array


def average(y: Array, weights: Array) -> float:
    """Return the weighted mean, in the precision of the numbers."""
    xp = namespace(y)
    return float(xp.sum(weights * y)) / float(xp.sum(weights))


def quotient(above: float, below: float) -> float:
    """Return a quotient of sums; NaN if the denominator is not positive, or the numerator has overflowed."""
    return above / below if below > 0 and isfinite(above) else nan


def check_squares(y: Array, least: float = 0.0) -> None:
    """Refuse targets of which a sum of squares overflows, or of which the largest is not zero but at most `least`.

    Raises
    ------
    InvalidInputError
        With the largest.
    """
    xp = namespace(y)
    largest = float(xp.max(xp.abs(y)))
    if largest > 0.0 and not least < largest < float(xp.finfo(y.dtype).max) ** 0.5 / y.shape[0]:
        raise InvalidInputError(
            f"the squares of the targets leave the range of {y.dtype} (the largest is {largest:.3g}); rescale y"
        )


def weighted_quantile(y: np.ndarray, weights: np.ndarray, quantile: float) -> float:
    """Return the smallest number at which the weights of all numbers up to it reach a share of their sum.

    It minimises the weighted mean of the pinball loss; weights are repetitions.
    """
    order = np.argsort(y, kind="stable")
    below = np.cumsum(weights[order])
    share = quantile * below[-1] * (1 - 1e-12)  # sums of equal weights that reach the share up to rounding
    return float(y[order[min(int(np.searchsorted(below, share)), y.size - 1)]])


def crossing(slope: Callable[[float], float], start: float) -> float:
    """Return where a function that does not decrease crosses zero, by doubling steps from a start and Brent's method.

    If it never does, what is returned is as far away as doubling leads.
    """
    from scipy.optimize import brentq

    first = slope(start)
    if first == 0.0:
        return start
    step = -1.0 if first > 0.0 else 1.0
    near, far = start, start + step
    while slope(far) * first > 0.0:
        step *= 2.0
        near, far = far, far + step
        if abs(step) > 1e300:  # almost the largest number
            return far
    return float(brentq(slope, near, far, xtol=1e-300, rtol=1e-14, maxiter=500))
