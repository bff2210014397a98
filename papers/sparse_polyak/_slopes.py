"""Iterations in fractions, and the slope with which they grow: whole counts are too coarse for small differences."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, log
from typing import Any

import numpy as np


def crossing(values: Any, level: float) -> float:
    """Return when a sequence first comes down to a positive level, with its logarithm linear between iterates; or inf.

    A value of 0 or less ends the last interval at its iterate.
    """
    sequence = np.asarray(values, dtype=float)
    below = np.flatnonzero(sequence <= level)
    if not below.size:
        return inf
    t = int(below[0])
    if t == 0 or sequence[t] <= 0.0:
        return float(t)
    before, after = log(sequence[t - 1]), log(sequence[t])
    return t - 1 + (before - log(level)) / (before - after)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y over log x by least squares; inf if a y is not finite."""
    if not all(isfinite(value) for value in y):
        return inf
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
