"""The location of invalid entries in a table in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from hardthresh.core.errors import InvalidInputError, numbered, plural
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import RowBlocks, Rows
from hardthresh.designs.engine import NUMBER, Engine
from hardthresh.designs.tree import Sums


def refuse_not_finite(engine: Engine) -> NoReturn:
    """Raise an error that says where the first entry is that is not finite, in a table whose sums are not.

    The table is read again: once by the engine, for the first such block, and then that block.

    Parameters
    ----------
    engine : Engine
        Of the table, in which `numpy.inf` or NaN are.

    Raises
    ------
    InvalidInputError
        Always: with the column, the block, its rows, and the first row; or that the finite entries are too large for
        their sums.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.designs import Serial, from_arrays
    >>> X = np.ones((3000, 5))
    >>> X[2100, 3] = np.nan
    >>> refuse_not_finite(Serial(from_arrays(X, rows=1024)))
    Traceback (most recent call last):
    ...
    hardthresh.core.errors.InvalidInputError: X contains NaN or infinity: feature 3 (counted from 0), block 2 (rows ...
    """
    blocks = engine.blocks
    rows, wrong = engine.sweep(_faults, NUMBER, blocks.first, len(blocks))
    if not wrong.any():
        raise InvalidInputError(
            "the entries of X and y are finite, but sums of their squares are not: divide the columns by their size"
        )
    block = int(np.flatnonzero(wrong)[0])
    name, row, column = _first_fault(engine.rows([block]))
    where = "" if column is None else f"{_named(blocks, column)}, "
    raise _not_finite(name, where, _place(rows, block, row))


def check_finite(blocks: RowBlocks, rows: Rows, block: int, first: int, columns: Array) -> None:
    """Raise an error that says where X, or the offset, of some rows is not finite; of large finite entries nothing.

    Parameters
    ----------
    blocks : RowBlocks
        The table.
    rows : Rows
        The rows of a block, of some columns.
    block, first : int
        Its number, and the number of its first row.
    columns : array of int
        The columns, by their number in the table.

    Raises
    ------
    InvalidInputError
        See `refuse_not_finite`.
    """
    known = Rows(rows.X, offset=rows.offset)
    if all(_finite(part).all() for _, part in _parts(known)):
        return
    name, row, column = _first_fault(known)
    where = "" if column is None else f"{_named(blocks, int(columns[column]))}, "
    raise _not_finite(name, where, _place_in_block(block, first, rows.X.shape[0], row))


def refuse_negative_weights(engine: Engine) -> NoReturn:
    """Raise an error that says where the first negative weight is; the table is read as by `refuse_not_finite`.

    Parameters
    ----------
    engine : Engine
        Of the table, some weights of which are negative.

    Raises
    ------
    InvalidInputError
        Always: with the number of such rows, and with the block, its rows, and the first of them.
    """
    rows, negative = engine.sweep(_negative, NUMBER, engine.blocks.first, len(engine.blocks))
    count, block = int(negative.sum()), int(np.argmax(negative > 0))
    row = int(np.argmax(np.asarray(engine.rows([block]).weight) < 0))
    verb = "is" if count == 1 else "are"
    raise InvalidInputError(
        f"sample_weight must be non-negative; {plural(count, 'row')} {verb} not: {_place(rows, block, row)}"
    )


def _negative(X: Any, y: Array | None, weight: Array | None, offset: Array | None, *where: int) -> Sums:
    """Return, in the place of this block among zeros, how many rows it has, and how many of negative weight: a task."""
    number, first, n_blocks = where
    rows, negative = np.zeros(n_blocks), np.zeros(n_blocks)
    rows[number - first] = X.shape[0]
    negative[number - first] = 0 if weight is None else np.count_nonzero(np.asarray(weight) < 0)
    return rows, negative


def _place(rows: Array, block: int, row: int) -> str:
    """Return where a row of a block is; `rows` are those of each block."""
    return _place_in_block(block, int(rows[:block].sum()), int(rows[block]), row)


def _place_in_block(block: int, start: int, size: int, row: int) -> str:
    """Return where a row of a block of that size is, which begins with the row `start` of the table."""
    return f"block {block} (rows {start:,}..{start + size - 1:,}, first at row {row:,} of the block)"


def _faults(X: Any, y: Array | None, weight: Array | None, offset: Array | None, *where: int) -> Sums:
    """Return, in the place of this block among zeros, how many rows it has and whether any is at fault: a task."""
    number, first, n_blocks = where
    rows, wrong = np.zeros(n_blocks), np.zeros(n_blocks)
    rows[number - first] = X.shape[0]
    wrong[number - first] = any(not _finite(part).all() for _, part in _parts(Rows(X, y, weight, offset)))
    return rows, wrong


def _first_fault(rows: Rows) -> tuple[str, int, int | None]:
    """Return the name of the array at fault, the first row of the block where it is, and the column in X."""
    for name, part in _parts(rows):
        finite = _finite(part)
        if finite.all():
            continue
        if sp.issparse(part):
            entry = int(np.flatnonzero(~finite)[0])  # entries lie row by row
            return name, int(np.searchsorted(part.indptr, entry, side="right")) - 1, int(part.indices[entry])
        row = int(np.flatnonzero(~finite.reshape(finite.shape[0], -1).all(axis=1))[0])
        return name, row, int(np.flatnonzero(~finite[row])[0]) if name == "X" else None
    raise InvalidInputError("the data differ from reading to reading; persist X or seed it")


def _parts(rows: Rows) -> Iterator[tuple[str, Any]]:
    """Yield the numeric parts of rows with their names."""
    for name, part in zip(("X", "y", "sample_weight", "offset"), rows, strict=True):
        if part is not None and part.dtype.kind == "f":
            yield name, part


def _finite(part: Any) -> Array:
    return np.isfinite(part.data if sp.issparse(part) else part)


def _not_finite(name: str, column: str, place: str) -> InvalidInputError:
    return InvalidInputError(f"{name} contains NaN or infinity: {column}{place}; remove or impute it")


def _named(blocks: RowBlocks, column: int) -> str:
    """Return what a message calls a column."""
    return numbered("feature", column) if blocks.feature_names is None else f"column {blocks.feature_names[column]!r}"
