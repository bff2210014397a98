"""Checks that are the same everywhere: settings that are integers or one of a few words, numbers that overflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from .errors import InvalidInputError, format_value
from .typing import is_integer


def checked_integer(name: str, value: Any, least: int | None = None) -> int:
    """Return a setting as a plain integer.

    Raises
    ------
    InvalidInputError
        If it is no integer (a truth value is none), or below `least`.
    """
    if not is_integer(value):
        raise InvalidInputError(f"{name} must be an integer, got {format_value(value)}")
    if least is not None and value < least:
        raise InvalidInputError(f"{name} must be >= {least}, got {value}")
    return int(value)


def checked_word(name: str, word: Any, known: Iterable[str]) -> str:
    """Return a setting that is one of some words.

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


def without_overflow_warnings(function: Function) -> Function:
    """Decorate a function that refuses or reports numbers that are not finite: NumPy need not warn of them besides."""
    quiet: Function = np.errstate(over="ignore", invalid="ignore")(function)
    return quiet
