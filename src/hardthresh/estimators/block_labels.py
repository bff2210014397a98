"""The labels of tables in blocks: which there are, their weights, and targets that number them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.constraints.labels import is_missing
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array
from hardthresh.designs import Engine, Rows
from hardthresh.designs.blocks import Block, BlockAround, as_rows
from hardthresh.designs.engine import NoRows
from hardthresh.designs.locating import refuse_not_finite
from hardthresh.objectives.block_rows import NO_CLASS, NO_TARGETS, NO_WEIGHT, places_of
from hardthresh.objectives.guess import some_rows

from .validation import check_labels


@dataclass(frozen=True, eq=False)
class LabelledBlock(BlockAround):
    """A block whose targets are the numbers of their classes; `NO_CLASS` for labels that are none of these.

    Attributes
    ----------
    block : Block
        The block with labels.
    classes : array
        The labels, sorted.
    numbers : array
        The number of each.
    weights : array, or None
        The weight of each class.
    """

    classes: np.ndarray
    numbers: np.ndarray
    weights: np.ndarray | None

    def load(self) -> Rows:
        rows = as_rows(self.block.load())
        places = places_of(_given_labels(rows), self.classes)
        weight = rows.weight
        if self.weights is not None:
            weight = np.append(self.weights, 1.0)[places] * (1.0 if weight is None else weight)
        return replace(rows, y=np.append(self.numbers, NO_CLASS)[places], weight=weight)

    def select(self, columns: Array) -> Block:
        return replace(self, block=self.block.select(columns))


def labels_of_some(engine: Engine) -> np.ndarray:
    """Return the labels in some rows, sorted."""
    return _labels_in(engine, _given_labels(some_rows(engine)))


def _labels_in(engine: Engine, labels: np.ndarray) -> np.ndarray:
    """Return labels of some rows of a table, each once, sorted; refuse NaN, with its place."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        refuse_not_finite(engine)
    return distinct_labels(labels)


def labels_of_all(engine: Engine) -> np.ndarray:
    """Return the labels in all rows, sorted."""
    found = np.empty(0)
    for rows, counted in counted_rows(engine):
        labels = _labels_in(engine, _given_labels(rows)[counted])
        if labels.size:
            found = distinct_labels(np.concatenate([found, labels])) if found.size else labels
    if not found.size:
        raise InvalidInputError(NO_WEIGHT)
    return found


def counted_rows(engine: Engine) -> Iterator[tuple[Rows, Any]]:
    """Yield the rows of one block after another with a column at most, and which of them have a positive weight."""
    few = engine.on_blocks(engine.blocks.select(np.arange(min(1, engine.blocks.n_columns))))  # X may be elsewhere
    for number in range(len(few.blocks)):
        try:
            rows = few.rows([number])
        except NoRows:
            continue
        yield rows, slice(None) if rows.weight is None else np.flatnonzero(rows.weight)


def _given_labels(rows: Rows) -> np.ndarray:
    """Return the labels of rows."""
    if rows.y is None:
        raise InvalidInputError(NO_TARGETS)
    return np.asarray(rows.y)


def distinct_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels, each once, sorted; raise `InvalidInputError` if some are missing, or cannot be sorted."""
    if labels.dtype.kind == "O" and any(map(is_missing, labels.tolist())):
        raise InvalidInputError(
            "y has missing labels; leave out these rows, or give them a class of their own, such as 'missing'"
        )
    check_labels(labels)
    return np.unique(labels)


def class_totals(engine: Engine, classes: np.ndarray) -> np.ndarray:
    """Return the weight of the rows of each class: a reading of the targets alone, where files allow that."""
    (totals,) = engine.sweep(_totals, classes, columns=np.arange(min(1, engine.blocks.n_columns)))
    return np.asarray(totals)


def _totals(X: Any, y: Any, weight: Any, offset: Any, classes: np.ndarray) -> tuple[np.ndarray]:
    """Return the weight of the rows of each class, and of others last: a task."""
    return (np.bincount(places_of(y, classes), weight, minlength=classes.size + 1).astype(np.float64),)
