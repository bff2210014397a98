"""Checks of settings (integers, numbers, words), and who is warned of numbers that overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from math import inf, isfinite, isnan, nan
from operator import ge, gt, le, lt
from typing import Any, TypeVar

import numpy as np

from .errors import InvalidInputError, format_value
from .typing import is_integer, is_real


def checked_integer(
    name: str, value: Any, least: int | None = None, most: int | None = None, what: str = "the limit"
) -> int:
    """Return a setting as a plain integer: every budget (non-zeros, groups, edges, a rank), count and seed.

    Parameters
    ----------
    name : str
        What messages call the setting.
    value : int
        The setting.
    least, most : int, optional
        Its range; with `most` alone it begins at 0.
    what : str
        What `most` is, for the message: "the number of features".

    Raises
    ------
    InvalidInputError
        If it is not an integer (True and False are not), or below `least`, or above `most`, which the message calls
        `what`.
    """
    if not is_integer(value):
        raise InvalidInputError(f"{name} must be an integer, got {format_value(value)}")
    if most is not None and not (least or 0) <= value <= most:
        raise InvalidInputError(f"{name} must be between {least or 0} and {what} ({most:,}), got {value}")
    if least is not None and value < least:
        raise InvalidInputError(f"{name} must be >= {least}, got {value}")
    return int(value)


_LIMITS: dict[str, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


def checked_number(
    name: str,
    value: Any,
    *,
    above: float = -inf,
    least: float = -inf,
    below: float = inf,
    most: float = inf,
    finite: bool = True,
    advice: str = "",
) -> float:
    """Return a setting as a float: every step, tolerance, ratio and constant.

    Parameters
    ----------
    name : str
        What messages call the setting.
    value : float
        The setting.
    above, least, below, most : float
        Its range: value > above, value >= least, value < below and value <= most.
    finite : bool
        Whether infinity is refused.
    advice : str
        What the message ends with.

    Raises
    ------
    InvalidInputError
        If it is not a real number (True and False are not, nor is NaN), not finite or outside its range.
    """
    number = _as_float(value) if is_real(value) else nan
    ends = (above, least, below, most)
    limits = [(sign, end) for sign, end in zip(_LIMITS, ends, strict=True) if isfinite(end)]
    if (
        isnan(number)
        or (finite and not isfinite(number))
        or not all(_LIMITS[sign](number, end) for sign, end in limits)
    ):
        allowed = " and ".join(f"{sign} {end:.6g}" for sign, end in limits)
        kind = "a finite number" if finite else "a number"
        message = f"{name} must be {kind}{allowed and f' {allowed}'}, got {format_value(value)}"
        raise InvalidInputError(f"{message}; {advice}" if advice else message)
    return number


def seed_of(random_state: Any) -> int:
    """Return the seed that a `random_state` stands for; 0 for None."""
    if random_state is None:
        return 0
    from sklearn.utils import check_random_state  # which not everyone who imports this room needs

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InvalidInputError(
            f"random_state must be None, an integer or a RandomState, got {format_value(random_state)}"
        ) from error


def _as_float(value: Any) -> float:
    """Return a real number as a float; NaN for an integer beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return nan


def checked_word(name: str, word: Any, known: Iterable[str]) -> str:
    """Return a setting that must be one of some words.

    Raises
    ------
    InvalidInputError
        If it is not; the message lists those that are.
    """
    known = tuple(known)
    if not isinstance(word, str) or word not in known:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, known))}; got {format_value(word)}")
    return word


Function = TypeVar("Function", bound=Callable[..., Any])

_errors_of_caller: ContextVar[dict[str, Any] | None] = ContextVar("_errors_of_caller", default=None)
"""NumPy's error handling where the library was called; None outside of `without_overflow_warnings`."""


def without_overflow_warnings(function: Function) -> Function:
    """Decorate a function that raises or reports on overflow itself, so that NumPy does not warn of it too.

    Run the user's code within `with_warnings_of_caller`.
    """

    @wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        if _errors_of_caller.get() is not None:  # called within such a function
            return function(*args, **kwargs)
        token = _errors_of_caller.set(dict(np.geterr()))
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return function(*args, **kwargs)
        finally:
            _errors_of_caller.reset(token)

    return quiet  # type: ignore[return-value]


@contextmanager
def with_warnings_of_caller() -> Iterator[None]:
    """Run the user's code under NumPy's error handling at the call of the library; also a decorator."""
    errors = _errors_of_caller.get() or {}
    token = _errors_of_caller.set(None)  # the library may be called in it, under another error handling
    try:
        with np.errstate(**errors):
            yield
    finally:
        _errors_of_caller.reset(token)
