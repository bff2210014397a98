"""Two halves of data for intervals after selection: one chooses features, and the other estimates coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.designs import Engine, Rows
from hardthresh.designs.blocks import Block, BlockAround, as_rows
from hardthresh.objectives.half_readings import BlockHalves
from hardthresh.objectives.inputs import weighted_rows
from hardthresh.selection.stability import complementary_pairs

from ..block_labels import distinct_labels
from ..blocked import as_blocks
from ..validation import check_columns
from .survival_targets import SurvivalTargets


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Two halves of data that have no row in common.

    Attributes
    ----------
    first, second : tuple
        X, y, sample_weight and offset of the rows that choose features, and of those that estimate coefficients.
    names : tuple of str
        How a message calls each.
    n_first : int, or None
        The number of rows of the first, without those of weight 0; None if it is known after a reading.
    groups : tuple of (array or None)
        The group of each row of the halves.
    """

    first: tuple[Any, ...]
    second: tuple[Any, ...]
    names: tuple[str, str]
    n_first: int | None = None
    groups: tuple[np.ndarray | None, np.ndarray | None] = (None, None)


def halves_of_rows(model: Any, data: tuple[Any, ...], groups: Any, seed: int) -> Halves:
    """Return halves of rows in memory, with equal shares of classes or events; no group is in both.

    Parameters
    ----------
    model : estimator
        What is to be fitted.
    data : tuple
        X, y, sample_weight and offset.
    groups : array, shape (n,), or None
        The group of each row.
    seed : int
        What the halves are drawn from.

    Raises
    ------
    InvalidInputError
        For fewer than four rows of positive weight, other columns than those of the model, and a single group.
    """
    X, y, sample_weight, _ = data
    if hasattr(model, "n_features_in_"):
        check_columns(model, X)
    rows, labels, classes = (
        weighted_rows(sample_weight, _num_samples(X)),
        group_labels(groups, X),
        model._labels_to_balance(y),
    )
    own, classes = (None if part is None else part[rows] for part in (labels, classes))
    _check_can_be_split(rows.size, own)
    first = _half(rows, classes, own, seed)
    second = np.setdiff1d(rows, first)
    return Halves(
        tuple(_rows_of(part, first) for part in data),
        tuple(_rows_of(part, second) for part in data),
        (
            f"the {plural(first.size, 'row')} that choose the features",
            f"the {plural(second.size, 'row')} that estimate the coefficients",
        ),
        first.size,
        (None, None) if labels is None else (labels[first], labels[second]),
    )


def halves_of_blocks(model: Any, data: tuple[Any, ...], seed: int) -> Halves:
    """Return halves of a table in blocks, which are drawn in each block as that is read; see `BlockHalves`.

    Parameters
    ----------
    model, data, seed :
        As of `halves_of_rows`.

    Raises
    ------
    InvalidInputError
        For fewer than four rows, blocks of a single row, and other columns than those of the model.
    """
    engine = as_blocks(*data)
    if hasattr(model, "n_features_in_"):
        model._validate_blocks(engine, reset=False)
    if engine.blocks.n_rows is not None:
        _check_can_be_split(engine.blocks.n_rows, None)
    _check_blocks_can_be_split([block.rows for block in engine.blocks])
    pair = BlockHalves(1, seed, by_label=model._loss.classifies)
    first, second = (_half_of_blocks(engine, pair, side) for side in (0, 1))
    return Halves(
        (first, None, None, None),
        (second, None, None, None),
        ("the half of the rows that chooses the features", "the half of the rows that estimates the coefficients"),
    )


def _half_of_blocks(engine: Engine, pair: BlockHalves, side: int) -> Engine:
    """Return an engine on the rows of half of each block."""
    blocks = engine.blocks
    own = tuple(HalfBlock(block, blocks.first + number, pair, side) for number, block in enumerate(blocks))
    found: Engine = engine.on_blocks(replace(blocks, blocks=own))
    return found


@dataclass(frozen=True, eq=False)
class HalfBlock(BlockAround):
    """A block of which the rows that are not in a half have weight 0, so that no reading counts them.

    Attributes
    ----------
    block : Block
        The block of all rows.
    number : int
        Its number in the table, which the half is drawn from.
    pair : BlockHalves
        The halves.
    side : int
        Which of the two: 0 or 1.
    """

    number: int
    pair: BlockHalves
    side: int

    def load(self) -> Rows:
        rows = as_rows(self.block.load())
        if rows.y is None or (rows.weight is not None and len(rows.weight) != len(rows.y)):
            return rows  # what reads them says what is wrong
        try:
            there = self.pair.of(self.number, rows.y, rows.weight)[:, 0] == self.side
        except TypeError:  # labels that cannot be sorted, as where some are missing
            distinct_labels(np.asarray(rows.y)[slice(None) if rows.weight is None else np.flatnonzero(rows.weight)])
            raise
        return replace(rows, weight=np.where(there, 1.0 if rows.weight is None else rows.weight, 0.0))

    def select(self, columns: np.ndarray) -> Block:
        return replace(self, block=self.block.select(columns))


def group_labels(groups: Any, X: Any) -> np.ndarray | None:
    """Return the group of each row; None if there are none."""
    labels = None if groups is None else np.asarray(groups)
    if labels is not None and labels.shape != (_num_samples(X),):
        raise InvalidInputError(f"groups has shape {labels.shape}; a label for each row of X is needed")
    return labels


def _check_can_be_split(n_rows: int, groups: np.ndarray | None) -> None:
    """Raise `InvalidInputError` unless there are two rows for each half, and a group."""
    if n_rows < 4:
        raise InvalidInputError(
            f'kind="split" needs at least 4 rows, 2 to choose features and 2 to estimate, got {n_rows}; '
            'kind="refit" takes all rows for both'
        )
    if groups is not None and np.unique(groups).size < 2:
        raise InvalidInputError(
            'kind="split" needs at least 2 groups, one to choose features and one to estimate; all rows have the '
            f"label {format_value(groups.tolist()[0])}"
        )


def _check_blocks_can_be_split(sizes: Sequence[int | None]) -> None:
    """Raise `InvalidInputError` unless halves of blocks of some numbers of rows, None if not known, have two rows."""
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes) and sum(size // 2 for size in known) < 2:
        raise InvalidInputError(
            'kind="split" takes half of the rows of each block, and leaves out one of an odd number: blocks of '
            f"{plural(max(known), 'row')} at most have {plural(sum(size // 2 for size in known), 'row')} for each "
            "half, and 2 are needed; cut the table into larger blocks"
        )


def _half(rows: np.ndarray, balanced: np.ndarray | None, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Return half of some rows: of rows of each label, if there are labels, or of their groups."""
    if groups is None:
        [(first, _)] = complementary_pairs(rows.size, 1, seed, balanced)
        return np.sort(rows[first])
    numbers = np.unique(groups, return_inverse=True)[1]
    [(first, _)] = complementary_pairs(int(numbers.max()) + 1, 1, seed)
    return rows[np.isin(numbers, first)]


def _rows_of(part: Any, rows: np.ndarray) -> Any:
    """Return some rows of data, targets or what has one entry for each of them."""
    if part is None or isinstance(part, int | float):  # one number for all rows
        return part
    return part.take(rows) if isinstance(part, SurvivalTargets) else _safe_indexing(part, rows)
