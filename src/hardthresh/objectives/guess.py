"""Statistics of a sample of rows of a table in blocks, before the first pass over the table."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays.pieces import steps
from hardthresh.core.support import Support
from hardthresh.designs.blocks import RowBlocks, Rows
from hardthresh.designs.engine import Engine, NoRows, stacked
from hardthresh.losses import Multinomial

from .block_folds import BlockFolds
from .block_rows import Point, pulled, rows_of, squares_about

_WITH_BLOCK, _LARGEST_PILOT = 160 << 20, 256 << 20
"""Bytes of the rows that are examined before the first reading, with the block that they are taken from, and of these
rows alone where blocks are as large as that. So a fit of columns that fill 80 MB with 1024 rows needs 200 MB."""
_TOGETHER = 1024
"""Columns whose moments in these rows are computed together, in double precision: 8 MiB of 1024 rows. Arbitrary."""
_PILOT_BLOCKS = 4
"""How many blocks these are, if they have enough rows. Arbitrary."""


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """What some rows of a table promise about all of it: the first reading finds out what is true of that.

    It changes the route of a fit, never what is certified about the answer.

    Attributes
    ----------
    shift, scale : array, shape (d,)
        The mean of each column in these rows, and the factor that gives it a variance of one there.
    level : float, or array of shape (q,)
        A prediction close to the best constant one; of several outputs their means.
    members : array of int, shape (m,)
        The columns that matter, increasing.
    points : tuple of Point
        Models that are worth being evaluated; the last one is the best guess of the answer.
    support : Support or None
        That of the best guess.
    """

    shift: np.ndarray
    scale: np.ndarray
    level: Any
    members: np.ndarray
    points: tuple[Point, ...] = ()
    support: Support | None = None


def room_for_rows(blocks: RowBlocks) -> int:
    """Return how many bytes the rows of a pilot may have: with a block at most two blocks, or 160 MiB."""
    return max(_WITH_BLOCK - blocks.largest, min(blocks.largest, _LARGEST_PILOT))


def some_rows(engine: Engine, least: int = 0, folds: BlockFolds | None = None) -> Rows:
    """Return rows of positive weight from some blocks, as far apart as can be: at least so many if there is room.

    No block is loaded twice, and of none more is brought here than is returned: see `room_for_rows`. With the folds of
    a cross-validation, `Rows.fold` numbers the fold of each row.
    """
    most, room = len(engine.blocks), room_for_rows(engine.blocks)
    count, size, found, seen = min(_PILOT_BLOCKS, most), 0, [], set[int]()
    while True:
        new = sorted({int(number) for number in np.linspace(0, most - 1, count)} - seen)
        share = (room - size) // max(1, len(new))
        with suppress(NoRows):
            found.append(engine.rows([(number, _Spread(share, number, folds)) for number in new]))
            size += found[-1].nbytes
        enough = sum(rows.X.shape[0] for rows in found) >= max(least, 1)
        if enough or count == most or 2 * size > room:
            return found[0] if len(found) == 1 else stacked(found)
        seen.update(new)
        count = min(2 * count, most)


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """Chooses the rows of positive weight of a block, or of these so many bytes, as far apart as can be.

    Attributes
    ----------
    most : int
        Bytes of X, of which one row is chosen at least.
    number : int
        That of the block.
    folds : BlockFolds or None
        The folds of a cross-validation, whose numbers the rows get.
    """

    most: int
    number: int
    folds: BlockFolds | None

    def __call__(self, rows: Rows) -> Rows:
        n = rows.X.shape[0]
        if self.folds is not None:
            rows = replace(rows, fold=self.folds.of(self.number, rows.fold, n))
        counted = np.arange(n) if rows.weight is None else np.flatnonzero(rows.weight)
        share = max(1, self.most * n // max(1, rows.nbytes))
        if counted.size > share:
            counted = counted[np.arange(share) * counted.size // share]
        return rows if counted.size == n else taken(rows, counted)


def taken(rows: Rows, some: Any) -> Rows:
    """Return some of the rows."""
    return rows.apply(lambda part: part[some])


def simple_guess(rows: Rows, loss: Any, members: np.ndarray | None = None) -> Guess:
    """Return a guess without points: centres and scales of the columns in some rows, and the columns that matter."""
    X, d = rows.X, rows.X.shape[1]
    weight = np.ones(X.shape[0]) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
    weight = weight / weight.sum() if weight.size else weight
    mean, square = np.zeros(d), np.zeros(d)
    if issparse(X) and weight.size:
        mean = pulled(X, weight)
        square = squares_about(X, weight, mean)
    elif weight.size:
        for some in steps(d, _TOGETHER):
            for part in rows_of(X, weight, weight, None):
                mean[some] += part.weight @ part.X[:, some].astype(np.float64)
            for part in rows_of(X, weight, weight, None):
                square[some] += part.weight @ np.square(part.X[:, some] - mean[some])
    deviation = np.sqrt(square)
    known = deviation > 0
    scale = np.where(known, 1.0 / np.where(known, deviation, 1.0), 1.0)
    return Guess(mean, scale, _level(rows, weight, loss), np.empty(0, dtype=np.int64) if members is None else members)


def _level(rows: Rows, weight: np.ndarray, loss: Any) -> Any:
    """Return a prediction close to the best constant one: of squared errors the mean, about which targets are summed.

    Targets that are not finite do not count; the first reading refuses them. Of classes it is 0 for each of them.
    """
    if isinstance(loss, Multinomial):
        return np.zeros(loss.n_outputs(np.asarray(rows.y)))
    y = np.asarray(rows.y, dtype=np.float64)
    if loss.quadratic and rows.offset is not None and np.shape(rows.offset) == y.shape:
        y = y - rows.offset
    counted = np.isfinite(y).all(axis=tuple(range(1, y.ndim)))
    y, weight = y[counted], weight[counted]
    if not weight.sum() > 0:
        return np.zeros(y.shape[1:]) if y.ndim > 1 else 0.0
    if y.ndim > 1:
        return np.average(y, axis=0, weights=weight)
    return float(np.average(y, weights=weight) if loss.quadratic else loss.initial_prediction(y, weight))
