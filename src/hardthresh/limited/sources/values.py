"""The values and targets of an answer, and the record of a purchase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array, is_integer, is_real


@stored("purchase/answer")
@dataclass(frozen=True, slots=True)
class Answer:
    """The record of one purchase: what was requested of an example, and what was received.

    Attributes
    ----------
    example : int or str
        The number or name of the example.
    indices : list of int
        The requested attributes.
    observed : list of float, or None
        Their values, finite; None if the example is absent or lacks a value.
    target : float or None
        The target, finite; None if the example is absent or lacks a value.
    paid : bool
        Whether it was paid for.
    cost : float
        Its cost.
    who : str or None
        Who bought it, if it is known.
    answered_at : str or None
        When the answer arrived, in UTC and ISO 8601, if it is known.

    Raises
    ------
    InvalidInputError
        For other types, another number of values, or values that are not finite.
    """

    example: int | str
    indices: list[int]
    observed: list[float] | None
    target: float | None
    paid: bool
    cost: float
    who: str | None = None
    answered_at: str | None = None

    def __post_init__(self) -> None:
        example_name(self.example)
        if not (isinstance(self.indices, list) and all(map(is_integer, self.indices))):
            raise InvalidInputError(f"indices must be a list of integers, got {format_value(self.indices)}")
        if self.observed is None:
            return
        values = as_numbers(self.observed, len(self.indices), "an answer", lambda place: f"value {place}").tolist()
        if not (isinstance(self.target, float) and all(map(isfinite, [*values, self.target]))):
            raise InvalidInputError("the values and the target of an answer must be finite numbers")
        object.__setattr__(self, "observed", values)


def as_numbers(values: Any, count: int, whose: str, named: Callable[[int], str], remedy: str = "") -> Array:
    """Return `count` values as a float64 array, NaN for None.

    Parameters
    ----------
    values : sequence
        Numbers or None.
    count : int
        The required number of values.
    whose : str
        The owner of the values, for messages.
    named : callable
        Returns the name of the value at a position, for messages.
    remedy : str
        What to do about a missing or infinite value, for messages. Such values raise an error only if this is given.

    Raises
    ------
    InvalidInputError
        For another number of values, and for anything but numbers.
    """
    if isinstance(values, (str, bytes, Mapping, Set)) or not hasattr(values, "__len__"):
        raise InvalidInputError(
            f"{whose} has {format_value(values)} for values; a list of {count} numbers is needed, in the order asked"
        )
    if len(values) != count:
        raise InvalidInputError(f"{whose} has {len(values)} values; {count} are needed, one for each attribute")
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and values.ndim == 1:
        numbers = values.astype(np.float64)
    else:
        numbers = np.array([_number(value, whose, named, place) for place, value in enumerate(values)], np.float64)
    for place in np.flatnonzero(~np.isfinite(numbers))[: 1 if remedy else 0]:
        raise InvalidInputError(
            f"{named(place)} of {whose} is {numbers[place]}; a measurement must be a finite number: {remedy}"
        )
    return numbers


def as_target(y: Any, example: Any) -> float:
    """Return the target of an example as a float.

    Raises
    ------
    InvalidInputError
        If it is anything but a finite number.
    """
    if not (_is_number(y) and isfinite(y)):
        raise InvalidInputError(
            f"the target of example {format_value(example)} is {format_value(y)}; it must be a finite number"
        )
    return float(y)


def example_name(name: Any) -> int | str:
    """Return the number or name of an example in a form that a file can store.

    Raises
    ------
    InvalidInputError
        If it is neither an integer of 64 bits nor a string of Unicode characters.
    """
    if is_integer(name) and -(2**63) <= name < 2**63:
        return int(name)
    if isinstance(name, str) and _is_text(name):
        return str(name)
    raise InvalidInputError(f"the names of examples in a journal must be integers (64 bits) or strings, got {name!r}")


def _is_number(value: Any) -> bool:
    return is_real(value) or isinstance(value, (bool, np.bool_)) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _is_text(text: str) -> bool:
    """Return whether UTF-8 can encode a string: it has no unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: Any, whose: str, named: Callable[[int], str], place: int) -> float:
    if value is None:
        return nan
    if not _is_number(value):
        raise InvalidInputError(f"{named(place)} of {whose} is {format_value(value)}; a measurement must be a number")
    return float(value)
