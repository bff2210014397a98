"""Whether two computations from the same events agree, on whatever machine each of them was made."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

ROUNDING = 1e-6
"""The relative difference that two processors may make: sums of products differ by about 1e-13, and a system of
equations of correlated attributes multiplies that by its condition number, here of up to 1e7."""


def nearly_equal(mine: Any, yours: Any) -> bool:
    """Return whether two values agree: everything exactly, but floating-point numbers to `ROUNDING`.

    Numbers of an array may differ by `ROUNDING` of the largest of them. Dataclasses are compared field by field.
    """
    if type(mine) is not type(yours):
        return False
    if is_dataclass(mine):
        return all(nearly_equal(getattr(mine, field.name), getattr(yours, field.name)) for field in fields(mine))
    if isinstance(mine, list | tuple):
        return len(mine) == len(yours) and all(map(nearly_equal, mine, yours))
    if isinstance(mine, dict):
        return mine.keys() == yours.keys() and all(nearly_equal(mine[key], yours[key]) for key in mine)
    if isinstance(mine, float | np.ndarray):
        return _nearly_equal_arrays(np.asarray(mine), np.asarray(yours))
    return bool(mine == yours)


def _nearly_equal_arrays(mine: Any, yours: Any) -> bool:
    if mine.shape != yours.shape or mine.dtype != yours.dtype:
        return False
    if mine.dtype.kind != "f":
        return bool(np.array_equal(mine, yours))
    size = np.max(np.abs(mine), initial=0.0, where=np.isfinite(mine))
    return bool(np.allclose(mine, yours, rtol=0.0, atol=ROUNDING * size, equal_nan=True))
