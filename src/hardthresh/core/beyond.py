"""Objectives far beyond a point, along its large entries."""

from __future__ import annotations

from math import inf

import numpy as np

from .errors import NotFiniteError
from .objective import Objective
from .typing import Array, library

_LARGE = 1e-3
"""Share of the largest entry from which on entries are large. Arbitrary: those that do not grow stay where they are."""


def large_entries(w: Array) -> Array:
    """Return a point whose entries below a thousandth of the largest are set to zero."""
    xp = library(w)
    size = xp.abs(w)
    return xp.where(size >= _LARGE * xp.max(size), w, xp.zeros_like(w))


def value_beyond(objective: Objective, w: Array, factor: float) -> float:
    """Return f where the large entries of a point are multiplied; minus infinity where f is not a number."""
    with np.errstate(all="ignore"):
        try:
            return objective.value(w + (factor - 1.0) * large_entries(w))
        except NotFiniteError:
            return -inf
