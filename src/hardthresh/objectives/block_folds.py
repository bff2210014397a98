"""The folds of a cross-validation over blocks, and passes with separate sums for each fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.randomness import Purpose, generator
from hardthresh.designs.engine import FOLD, NUMBER

from .block_rows import places_of
from .readings import Sums, Task, look, together


@dataclass(frozen=True, slots=True, eq=False)
class BlockFolds:
    """Which fold each row of a table in blocks is held out in.

    Attributes
    ----------
    count : int
        The number of folds; with 1, all rows are one part.
    seed : int
        Without labels, the fold of row i of block b is the i-th number from ``generator(seed, b, ...)``: it depends on
        these three alone, never on the engine.
    labels : array, shape (count,), or None
        The values of the fold column of the blocks, sorted.
    members : tuple of array of int
        The columns with which each fold begins, and all rows, as their pilots say.
    """

    count: int
    seed: int = 0
    labels: np.ndarray | None = None
    members: tuple[np.ndarray, ...] = ()

    @classmethod
    def none(cls) -> BlockFolds:
        """Return one part of all rows."""
        return cls(1)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What tasks by fold take first."""
        return replace(self, members=()), NUMBER, FOLD

    def of(self, number: int, column: np.ndarray | None, n: int) -> np.ndarray:
        """Return the fold of each row of a block; -1 for a label that is none of the known ones.

        Parameters
        ----------
        number : int
            The number of the block.
        column : array, shape (n,), or None
            Its fold column.
        n : int
            Its rows.
        """
        if self.count == 1:
            return np.zeros(n, dtype=np.int64)
        if self.labels is None:
            return generator(self.seed, number, Purpose.FOLDS_OF_BLOCKS).integers(self.count, size=n)
        if column is None:
            raise InvalidInputError(f"block {number} has no fold column, and others have; give all of them one")
        places = places_of(column, self.labels)
        return np.where(places < self.labels.size, places, -1)

    def check(self, totals: np.ndarray) -> None:
        """Check that each fold has rows to hold out, by the weight of the rows of each."""
        empty = np.flatnonzero(~(totals > 0))
        if empty.size and self.count > 1:
            name = int(empty[0]) if self.labels is None else format_value(self.labels[empty[0]])
            raise InvalidInputError(f"fold {name} of cv has no rows to hold out; use fewer folds")


def weights_of(fold: int, own: np.ndarray, weight: Any) -> np.ndarray:
    """Return the weights of the rows of a fold: zero for others."""
    there = own == fold
    return there.astype(np.float64) if weight is None else np.where(there, weight, 0.0)


def on_training_rows(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    left_out: int,
    task: Task,
    arguments: tuple[Any, ...],
) -> Sums:
    """Return the result of a task for the rows that a fold trains on; for all with -1."""
    there = folds.of(number, column, X.shape[0]) != left_out
    own = there.astype(np.float64) if weight is None else np.where(there, weight, 0.0)
    return task(X, y, own, offset, *arguments)


def by_fold(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    *tasks: tuple[Task, tuple[Any, ...]],
) -> Sums:
    """Return the results of several tasks for the rows of each fold, along a new first axis."""
    if folds.count == 1:
        return tuple(part[None] for part in together(X, y, weight, offset, *tasks))
    own = folds.of(number, column, X.shape[0])
    parts = [together(X, y, weights_of(fold, own, weight), offset, *tasks) for fold in range(folds.count)]
    return tuple(np.stack(part) for part in zip(*parts, strict=True))


def look_by_fold(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    folds: BlockFolds,
    number: int,
    column: Any,
    points: list[Any],
    left_out: np.ndarray,
    loss: Any,
    centre: np.ndarray | None,
) -> Sums:
    """Return what `look` says of points that each concern all rows but those of a fold; of all with -1.

    Parameters
    ----------
    left_out : array of int, shape (q,)
        The fold whose rows a point does not count.
    """
    own, total = folds.of(number, column, X.shape[0]), None
    for fold in range(folds.count):
        here = np.flatnonzero(left_out != fold)
        if not here.size:
            continue
        some = look(X, y, weights_of(fold, own, weight), offset, [points[i] for i in here], loss, centre)
        if total is None:
            axes = (0, 0, 0, 1)
            total = tuple(
                np.zeros((*part.shape[:axis], len(points), *part.shape[axis + 1 :]))
                for part, axis in zip(some, axes, strict=True)
            )
        for whole, part in zip(total[:3], some[:3], strict=True):
            whole[here] += part
        total[3][:, here] += some[3]
    assert total is not None
    return total
