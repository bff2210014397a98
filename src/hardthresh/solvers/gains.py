"""The decrease of f by a step of one column from zero, within bounds."""

from __future__ import annotations

import numpy as np


def twice_gains(slope: np.ndarray, rest: np.ndarray, bounds: np.ndarray | None) -> np.ndarray:
    """Return twice the gain of a step of each column from zero: to the minimum, or to a bound on the way.

    The minimum is at the slope divided by the rest, which is positive, or infinite: then the gain is zero.
    """
    step = slope / rest
    whole: np.ndarray = slope * step
    if bounds is None:
        return whole
    inside = np.minimum(np.maximum(step, bounds[0]), bounds[1])
    with np.errstate(invalid="ignore"):  # where the rest is infinite
        part = inside * (2.0 * slope - rest * inside)
    return np.where(inside == step, whole, part)
