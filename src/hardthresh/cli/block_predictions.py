"""The rows of a table in blocks that `predict` works on, some after the others, here or read by a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError

from .block_training import Closer, engine_on
from .blocks import blocks_of, how_read
from .data import Data, Request
from .terminal import write_stderr

if TYPE_CHECKING:
    from hardthresh.designs import Engine
    from hardthresh.designs.blocks import Rows

ROWS = 1 << 16
"""Rows that are predicted at a time, at most: their predictions are some 10 MB of Python objects. Arbitrary."""
BLOCKS = 8
"""Blocks that workers of a cluster read ahead, each of at most 32 MiB of the columns that a model reads. Arbitrary."""
ENTRIES = 1 << 22
"""Entries of the rows of a model that fills in missing values, which it takes whole: 32 MB. Arbitrary."""


def parts_of(
    path: Any, request: Request, kind: str | None, used: Sequence[int], *, wide: int, dask: str | None, close: Closer
) -> Iterator[Data]:
    """Yield the columns that a model reads, of some rows of a table after the other.

    Parameters
    ----------
    path : Path
        The file or folder.
    request : Request
        `only` names the columns, if the model has names.
    kind : str or None
        One of `formats.kinds.KINDS`.
    used : sequence of int
        The columns of the model that it reads.
    wide : int
        How many it was fitted on.
    dask : str or None
        Where the scheduler of a cluster is, whose workers read the columns; None: threads of this process do.
    close : callable
        Called with what ends the connection to the cluster.

    Raises
    ------
    InvalidInputError
        If the table lacks columns, or has entries that are not finite.
    """
    from hardthresh.designs.formats.parquet import ParquetBlock, with_texts
    from hardthresh.designs.local import in_order

    if not isinstance(path, Path):
        raise InvalidInputError(f"{path} is a database: write the rows of the query to a Parquet file first")
    if request.categorical:
        raise InvalidInputError(
            f"the model has categorical columns, which {how_read(dask)} does not read; leave it out"
        )
    if not used:
        raise InvalidInputError(
            "the model has no features: it predicts the same for every row, as hardthresh show says"
        )
    blocks = blocks_of(path, request, kind)
    if request.id is not None and all(isinstance(each, ParquetBlock) for each in blocks):
        blocks = with_texts(blocks)
    if blocks.feature_names is None or request.only is None:
        if blocks.n_columns != wide:
            raise InvalidInputError(
                f"{path} has {blocks.n_columns:,} feature columns; the model was fitted on {wide:,} and matches them "
                "by position: leave out other columns with --drop"
            )
        if request.only is not None:
            write_stderr(f"note: {path} has no column names; its columns are matched by position")
        blocks = blocks.select(np.asarray(used))
    names = tuple(map(str, used)) if request.only is None else tuple(request.only)
    size = max(1, min(ROWS, ENTRIES // wide)) if request.may_be_missing else ROWS
    ahead, first = blocks.readers if dask is None else BLOCKS, 0
    for block in in_order(partial(_rows, engine_on(blocks, dask, close)), range(len(blocks)), ahead, ahead):
        if block is None:
            continue
        for start in range(0, block.X.shape[0], size):
            some = slice(start, start + size)
            rows = block.apply(itemgetter(some))
            X = rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X
            if not request.may_be_missing:
                _refuse_not_finite(X, path, names, first + start)
            yield Data(
                source=str(path),
                X=X,
                names=names,
                offset=rows.offset,
                ids=None if request.id is None or rows.y is None else _texts_of(rows.y, path, request.id),
                id_name=_name_of(request.id or ""),
            )
        first += block.X.shape[0]


def _texts_of(ids: np.ndarray, path: Path, name: str) -> list[str]:
    """Return the ids of some rows as texts."""
    if ids.shape[1:] not in ((), (1,)):
        raise InvalidInputError(
            f"the id {name!r} of {path} has {ids.shape[1]:,} entries for each row; one is needed: give another array"
        )
    return [str(value) for value in ids.ravel()]  # as of rows in memory


def _name_of(column: str) -> str:
    """Return what a column of ids is called: a .npy file by its name without folder and ending."""
    return Path(column).stem if column.endswith(".npy") else column


def _rows(engine: Engine, number: int) -> Rows | None:
    """Return the rows of a block; None if it has none."""
    from hardthresh.designs.engine import NoRows

    try:
        return engine.rows([number])
    except NoRows:
        return None


def _refuse_not_finite(X: np.ndarray, path: Path, names: Sequence[str], first: int) -> None:
    """Refuse entries that are not finite, with the place of the first."""
    wrong = ~np.isfinite(X)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise InvalidInputError(
            f"{path} has a missing or infinite value in column {names[column]!r}, row {first + row + 1}; impute or "
            "remove it first"
        )
