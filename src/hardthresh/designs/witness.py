"""Checks that all passes over a table read the same rows, on any engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array
from hardthresh.designs.engine import Task
from hardthresh.designs.tree import Sums

_SAMPLE = 16
"""Rows of a block, at most, whose entries tell whether it is the same in each reading; arbitrary."""
_SAME = 1e-9
"""Relative difference of the sums of two readings of the same data, on workers with different instructions."""


class Witness:
    """Sums of the rows of a table that each reading finds beside its own, and which have to be those of the first."""

    def __init__(self) -> None:
        self._first: Array | None = None

    def checked(self, sums: Sums) -> Sums:
        """Return the sums of a reading without those of the witness.

        Raises
        ------
        InvalidInputError
            If the rows are not those of the first reading.
        """
        *found, witness = sums
        first = witness if self._first is None else self._first
        with np.errstate(invalid="ignore"):  # infinity, which is refused elsewhere
            differs = np.abs(witness - first) > _SAME * np.abs(first)
        if np.any(differs):
            raise InvalidInputError("the data differ from reading to reading; persist X or seed what it is made by")
        self._first = np.where(np.isnan(first), witness, first)
        return tuple(found)


def sums_only(witness: Task, task: Task, *data: Any) -> Sums:
    """Return the sums of a task and the witness of its rows, the last one."""
    return (*task(*data), *witness(*data[:4]))


def sums_and_kept(witness: Task, task: Task, *data: Any) -> tuple[Sums, Any]:
    """Return the sums of a task and the witness, the last one, and the rows that the task keeps."""
    sums, kept = task(*data)
    return (*sums, *witness(*data[:4])), kept


def witness_of(columns: Array | None) -> Task:
    """Return the task that finds the witness of rows of which some columns are read, or all."""
    return _of_rows if columns is None else _of_other_parts


def _of_rows(X: Any, y: Any, weight: Any, offset: Any) -> Sums:
    """Return sums that differ if the rows do: their number, and the sizes of entries; NaN of what is not here."""
    return _sizes(X.shape[0], X[:: -(-X.shape[0] // _SAMPLE)], y, weight, offset)


def _of_other_parts(X: Any, y: Any, weight: Any, offset: Any) -> Sums:
    """Return the same without the sizes of the entries of X."""
    return _sizes(X.shape[0], None, y, weight, offset)


def _sizes(n_rows: int, *parts: Any) -> Sums:
    return (np.array([n_rows, *map(_size_of, parts)]),)


def _size_of(x: Any) -> float:
    """Return the sum of absolute entries; NaN if they are not numbers."""
    return float(abs(x).sum(dtype=np.float64)) if x is not None and x.dtype.kind in "fiu" else np.nan
