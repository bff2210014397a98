"""Tables in blocks as estimators take them: what has an entry for each row stays where the blocks are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hardthresh.core.errors import CapabilityError, InvalidInputError, plural
from hardthresh.core.typing import Array
from hardthresh.designs import Engine, RowBlocks, Rows, Serial, engine_of, from_dask
from hardthresh.designs.blocks import Block, BlockAround, as_rows, in_blocks
from hardthresh.designs.formats.dask_tables import is_dask
from hardthresh.objectives.block_folds import BlockFolds
from hardthresh.objectives.block_rows import Point

from .block_labels import LabelledBlock
from .block_posing import pose_blocks, pose_training
from .posed import Asked, Posed
from .table import Table, smallest_square_root


def is_blocks(X: Any) -> bool:
    """Return whether X is a table in blocks, an engine that holds one, or a Dask array or data frame."""
    return is_dask(X) or in_blocks(X)


def as_blocks(X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Engine:
    """Return an engine on a table in blocks; targets, weights and offsets are those of the blocks, or arrays beside it.

    Parameters
    ----------
    X : RowBlocks, Engine, Dask array or Dask data frame
        The table; blocks alone are read one after another, by `Serial`, and those of Dask on the cluster of the current
        client, if there is one.
    y, sample_weight, offset : array, shape (n,), optional
        What the blocks do not have; of Dask, if X is.

    Raises
    ------
    InvalidInputError
        For arrays of another length, or beside blocks whose numbers of rows are not known.
    """
    if is_dask(X):
        return engine_of(from_dask(X, y, sample_weight, offset))
    given = {name: part for name, part in (("y", y), ("weight", sample_weight), ("offset", offset)) if part is not None}
    engine: Any = Serial(X) if isinstance(X, RowBlocks) else X
    found: Engine = engine
    if not given:
        return found
    blocks = engine.blocks
    n = blocks.n_rows
    if n is None:
        raise InvalidInputError(
            f"the rows of the blocks are not counted yet, so {' and '.join(given)} cannot be cut to them; give these "
            "with the blocks"
        )
    for name, part in given.items():
        given[name] = np.asarray(part)
        if given[name].shape[:1] != (n,):
            raise InvalidInputError(f"{name} has shape {given[name].shape}; the blocks have {plural(n, 'row')}")
    start, joined = 0, []
    for block in blocks:
        assert block.rows is not None
        rows = slice(start, start + block.rows)
        joined.append(JoinedBlock(block, {name: part[rows] for name, part in given.items()}))
        start = rows.stop
    found = engine.on_blocks(replace(blocks, blocks=tuple(joined)))
    return found


@dataclass(frozen=True, eq=False)
class JoinedBlock(BlockAround):
    """A block with targets, weights or offsets that were given beside it."""

    parts: dict[str, Any]

    def load(self) -> Rows:
        return replace(as_rows(self.block.load()), **self.parts)

    def held(self) -> list[Any]:
        return [*self.parts.values(), *self.block.held()]

    def bare(self) -> Block:
        return JoinedBlock(self.block.bare(), dict.fromkeys(self.parts))

    def holding(self, parts: Sequence[Any]) -> Block:
        own, others = parts[: len(self.parts)], parts[len(self.parts) :]
        return JoinedBlock(self.block.holding(others), dict(zip(self.parts, own, strict=True)))

    def select(self, columns: Array) -> Block:
        return JoinedBlock(self.block.select(columns), self.parts)


@dataclass(frozen=True, eq=False)
class OutputBlock(BlockAround):
    """A block whose targets, a column of them, are those of one output."""

    def load(self) -> Rows:
        rows = as_rows(self.block.load())
        parts = {name: part for name in ("y", "offset") if np.shape(part := getattr(rows, name))[1:] == (1,)}
        return replace(rows, **{name: part[:, 0] for name, part in parts.items()})

    def select(self, columns: Array) -> Block:
        return OutputBlock(self.block.select(columns))


@dataclass(frozen=True, slots=True)
class BlockTable(Table):
    """Training data in blocks: X names them, and targets, weights and offsets are in them.

    y is empty; where it is known that there are several outputs, its shape is (0, n_outputs).

    Attributes
    ----------
    engine : Engine
        Where the blocks are worked on.
    folds : BlockFolds, or None
        The folds of a cross-validation.
    sums : Blocked, or None
        A model of the table, which knows the moments of its columns.
    left_out : int
        The fold whose rows the table has not; -1 for a table of all rows.
    chosen : array of int, or None
        The columns that the first reading is about, where they are chosen already and need no pilot.
    last : Point, or None
        The last fit, if this one continues from there: it takes the place of the pilot.
    """

    shows_readings: ClassVar[bool] = True

    engine: Any = None
    folds: BlockFolds | None = None
    sums: Any = None
    left_out: int = -1
    chosen: np.ndarray | None = None
    last: Point | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows, 0 if they were not counted yet."""
        return int(self.X.n_rows or 0)

    def weighted(self) -> BlockTable:
        """Return the table: a reading leaves out rows of weight 0."""
        return self

    def take(self, rows: np.ndarray) -> Table:
        """Refuse to: rows of blocks are not gathered."""
        raise CapabilityError("rows of a table in blocks cannot be taken; give arrays, or a smaller table")

    def measured(self, model: Any) -> BlockTable:
        """Return the table with the sums that a model of it has found."""
        return replace(self, sums=model)

    def without(self, fold: int) -> BlockTable:
        """Return the table of the rows that a fold trains on."""
        return replace(self, left_out=fold)

    def going_on(self, coef: np.ndarray, intercept: Any) -> BlockTable:
        """Return the table whose first reading examines the last fit; of several outputs it does not."""
        if coef.ndim != 1:
            return self
        support = np.flatnonzero(coef)
        few = np.asarray(coef[support], dtype=np.float64)
        return replace(self, last=Point(support, np.zeros(support.size), few, float(intercept)))

    def column_moments(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and the covariances of some columns."""
        found: tuple[np.ndarray, np.ndarray] = self.sums.column_moments(columns, self.left_out)
        return found

    def are_tiny(self, columns: np.ndarray) -> np.ndarray:
        """Return for each of some columns without a deviation whether it is none of zeros, and its squares underflow.

        A column of other entries, whose mean is none of these, has a deviation where it varies.
        """
        found = self.sums.moments
        mean, crossed = found.mean[columns], found.crossed.reshape(found.mean.size, -1)[columns].any(axis=1)
        tiny: np.ndarray = ((mean != 0) | crossed) & (np.abs(mean) < smallest_square_root(self.X.dtype))
        return tiny

    def largest_target(self) -> float:
        """Return what stands for the size of the largest target: that of their mean, and their deviation."""
        found = self.sums.moments
        return float(np.max(np.abs(found.target_mean) + np.sqrt(found.target_variance)))

    def to_backend(self, x: np.ndarray) -> Array:
        """Return a NumPy array as it is."""
        return x

    def pose(self, asked: Asked) -> Posed:
        """Return the objective that settings ask for: a pilot and the first reading, or what that knows of a fold."""
        if self.sums is not None:
            return pose_training(self.sums, asked, self.left_out)
        return pose_blocks(self.engine, asked, self.folds, self.chosen, self.last)

    def labelled(self, classes: np.ndarray, numbers: np.ndarray, weights: np.ndarray | None) -> BlockTable:
        """Return the table with the numbers of classes as targets, and rows weighted by class."""
        blocks = replace(self.X, blocks=tuple(LabelledBlock(block, classes, numbers, weights) for block in self.X))
        return self._on(blocks)

    def unlabelled(self) -> BlockTable | None:
        """Return the table with labels as targets, if they are numbered as its blocks are read; else None."""
        if not all(isinstance(block, LabelledBlock) for block in self.X):
            return None
        return self._on(replace(self.X, blocks=tuple(block.block for block in self.X)))

    def with_outputs(self, outputs: tuple[int, ...]) -> BlockTable:
        """Return the table with what is known of the shape of the targets of a row, of which one is a number."""
        if outputs == (1,):
            return self._on(replace(self.X, blocks=tuple(map(OutputBlock, self.X))))
        return replace(self, y=np.empty((0, *outputs)))

    def encoded(self, encode: Callable[[np.ndarray], np.ndarray]) -> Table:
        """Return the table: its targets are numbers, or labels that `labelled` numbers."""
        return self

    def _on(self, blocks: RowBlocks) -> BlockTable:
        """Return the table of other blocks of the same rows."""
        return replace(self, X=blocks, engine=self.engine.on_blocks(blocks))
