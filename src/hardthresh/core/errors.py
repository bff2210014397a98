"""Exceptions and warnings: every message says what, which value, and what to do."""

from __future__ import annotations

import re
import sys
import warnings
from reprlib import Repr
from typing import Any

import numpy as np

_INNER = {"hardthresh", "sklearn", "joblib", "numpy", "contextlib", "functools"}
"""Packages between a user's line and ours: theirs are the decorators, meta-estimators and parallel loops."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line of the user's code that called the library, however far above it is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def format_value(value: object) -> str:
    """Return a value as an error message shows it: in one line of plain Python, without NumPy types or addresses.

    Examples
    --------
    >>> format_value([np.int64(3), np.str_("age")])
    "[3, 'age']"
    """
    if isinstance(value, type):
        return f"the class {value.__name__}; write {value.__name__}(...)"
    return _FORMAT.repr(value)


def numbered(noun: str, number: int) -> str:
    """Return how a message names a column or a row that has no name.

    Examples
    --------
    >>> numbered("feature", 4335)
    'feature 4335 (counted from 0)'
    """
    return f"{noun} {number} (counted from 0)"


def plural(count: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "class")
    ('1 row', '2,000 classes')
    """
    return f"{count:,} {noun if count == 1 else re.sub('s$', 'se', noun) + 's'}"


class _Format(Repr):
    """Representations of limited length."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 8
        self.maxstring = self.maxother = 160

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, np.floating):  # a float32 has fewer digits than the float of the same value
            return str(x)
        return super().repr1(x.item() if isinstance(x, np.generic) else x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        text = " ".join(super().repr_instance(x, level).split())
        if " at 0x" not in text:
            return text
        return f"the function {x.__name__}" if hasattr(x, "__name__") else f"an instance of {type(x).__name__}"


_FORMAT = _Format()


class HardThreshError(Exception):
    """Base class of every error that hardthresh raises on purpose."""


class InvalidInputError(HardThreshError, ValueError):
    """An argument or the data cannot be used as given."""


class NotFiniteError(InvalidInputError):
    """A point became infinite or NaN."""


class OutOfMemoryError(HardThreshError, MemoryError):
    """The data and the memory that a fit needs do not fit into memory."""


class CapabilityError(HardThreshError, TypeError):
    """A solver or step rule needs something that the objective or the constraint does not provide."""


class DataLostError(HardThreshError):
    """The data cannot be read any more, such as those of a cluster that is gone.

    Attributes
    ----------
    state : State or None
        The last state of the run, from which `hardthresh.minimize` can continue when the data are available again; None
        if there was no state yet.
    """

    state: Any = None


class StallWarning(UserWarning):
    """A method makes no more progress, although there is no evidence that it has reached a minimum."""


class SearchRangeWarning(UserWarning):
    """The best of several numbers is the largest or the smallest that was compared, so a better one may lie beyond."""


class NothingFoundWarning(UserWarning):
    """The model has no features: no number of features predicts better than none, or the ridge is too large."""


class CriterionWarning(UserWarning):
    """An information criterion was used where it does not account for the overfitting of the search."""


class MissingDependencyError(HardThreshError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""
