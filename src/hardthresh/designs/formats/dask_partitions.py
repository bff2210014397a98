"""What the partitions of data frames of Dask become, and what is wrong with those that differ from what Dask says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a table needs of each partition: one object in a graph, so that it is sent once to each worker.

    No tuple of names, in a graph of which each text may be a key.

    Attributes
    ----------
    name : str
        What the partitions are part of: X, y, sample_weight, offset or fold.
    columns : tuple or None
        The columns of X, in order; None of other parts.
    dtype : dtype or None
        What numbers become; None for what they are.
    numeric : bool
        Whether there have to be numbers.
    place : int or None
        Which of a tuple of data frames each partition is; None if it is one itself.
    """

    name: str
    columns: tuple[Hashable, ...] | None
    dtype: np.dtype[Any] | None
    numeric: bool
    place: int | None

    @classmethod
    def of(cls, meta: Any, name: str, dtype: np.dtype[Any] | None, place: int | None) -> Wanted:
        """Return what Dask says of the partitions of a data frame or series."""
        columns = tuple(meta.columns) if name == "X" else None
        return cls(name, columns, dtype, all(_is_numeric(kind) for _, kind in types_of(meta)), place)


def rows_of_partition(part: Any, wanted: Wanted, number: int) -> Array:
    """Return a partition of a data frame or series as an array: a task. What is missing becomes NaN, among numbers.

    Raises
    ------
    InvalidInputError
        If it has other columns than Dask says, or no numbers where they are needed; the message has its number.
    """
    if wanted.place is not None:
        part = part[wanted.place]
    if wanted.columns is not None and tuple(part.columns) != wanted.columns:
        part = _with_columns(part, wanted.columns, number)
    if wanted.numeric:
        _require_numbers(part, wanted.name, number)
    given = part.to_numpy() if wanted.dtype is None else part.to_numpy(dtype=wanted.dtype, na_value=np.nan)
    return np.asarray(given)


def types_of(frame: Any) -> list[tuple[Hashable, Any]]:
    """Return the names and types of the columns of a data frame, or of a series."""
    return [*frame.dtypes.items()] if hasattr(frame, "columns") else [(frame.name, frame.dtype)]


def refuse_column(name: Hashable, kind: Any, part: str, where: str = "") -> None:
    """Raise an error about a column that has no numbers."""
    which = part if name is None or name == part else f"column {format_value(name)} of {part}"
    raise InvalidInputError(
        f"{which} is of type {kind}{where}, and only numbers can be computed with: "
        "encode it as numbers, for example one column for each category, or leave it out"
    )


def refuse_lacking(error: KeyError, where: str, columns: Iterable[Hashable]) -> None:
    """Raise an error about a partition that lacks a column, if a `KeyError` that computing it has raised is about one.

    Parameters
    ----------
    error : KeyError
        What pandas says: the name of a column, or a text with the names of those that are not there.
    where : str
        Which blocks these are, in words.
    columns : iterable
        The columns that the partitions should have.
    """
    said = error.args[0] if error.args else None
    lacking = [name for name in columns if name == said or (isinstance(said, str) and repr(name) in said)]
    if lacking:
        raise InvalidInputError(
            f"{where} has no column {format_value(lacking[0])}, which the data frame should have: all partitions of a "
            "table need the same columns; add it there, or leave it out of all"
        ) from error


def _with_columns(part: Any, columns: tuple[Hashable, ...], number: int) -> Any:
    """Return a partition whose columns are in the order of the table."""
    own = [*part.columns]
    for name in columns:
        if own.count(name) != 1:
            how_many = "no column" if name not in own else "more than one column"
            raise InvalidInputError(
                f"block {number} has {how_many} {format_value(name)}, which the data frame should have: all partitions "
                "of a table need the same columns; add it there, or leave it out of all"
            )
    more = [name for name in own if name not in {*columns}]
    if more:
        raise InvalidInputError(
            f"block {number} has the column {format_value(more[0])}, which the data frame should not have: all "
            "partitions of a table need the same columns; choose those of X by their names, as table[names]"
        )
    return part[[*columns]]


def _require_numbers(part: Any, name: str, number: int) -> None:
    """Raise an error about the first column that has none, whatever Dask says of it."""
    for column, kind in types_of(part):
        if not _is_numeric(kind) and not _holds_numbers(part[column] if hasattr(part, "columns") else part):
            refuse_column(column, kind, name, f" in block {number}")


def _is_numeric(kind: Any) -> bool:
    return getattr(kind, "kind", "O") in "fiub"


def _holds_numbers(column: Any) -> bool:
    """Return whether a column of objects has numbers only, and values that are missing."""
    if getattr(column.dtype, "kind", "O") != "O":
        return False  # dates and times, which would become nanoseconds
    if any(isinstance(value, str) for value in column):
        return False  # also digits, as the type of such a column in a file of numbers would not be text
    try:
        column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return False
    return True
