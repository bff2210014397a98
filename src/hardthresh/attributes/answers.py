"""What somebody answered, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from math import isfinite, nan
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array, is_real


def as_numbers(values: Any, count: int, whose: str, named: Callable[[int], str]) -> Array:
    """Return `count` values as a float64 array, NaN for None.

    Parameters
    ----------
    values : sequence
        Numbers or None.
    count : int
        How many there must be.
    whose : str
        Whose values they are, for messages.
    named : callable
        What a message calls the value at a place.

    Raises
    ------
    InvalidInputError
        For another number of values, or one that is no number.
    """
    if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__"):
        raise InvalidInputError(
            f"{whose} has {values!r} for values; a list of {count} numbers is needed, in the order asked"
        )
    if len(values) != count:
        raise InvalidInputError(f"{whose} has {len(values)} values; {count} are needed, one for each attribute")
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and values.ndim == 1:
        return values.astype(np.float64)
    return np.array([_number(value, whose, named, place) for place, value in enumerate(values)], dtype=np.float64)


def as_target(y: Any, example: Any) -> float:
    """Return the target of an example as a float.

    Raises
    ------
    InvalidInputError
        If it is no finite number.
    """
    if not (_is_number(y) and isfinite(y)):
        raise InvalidInputError(f"the target of example {example!r} is {y!r}; it must be a finite number")
    return float(y)


def _is_number(value: Any) -> bool:
    return is_real(value) or isinstance(value, (bool, np.bool_)) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _number(value: Any, whose: str, named: Callable[[int], str], place: int) -> float:
    if value is None:
        return nan
    if not _is_number(value):
        raise InvalidInputError(f"{named(place)} of {whose} is {value!r}; a measurement must be a number")
    return float(value)
