"""Validated training data as a table of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from hardthresh.arrays import gather_columns, move, namespace
from hardthresh.core.typing import Array
from hardthresh.designs import DenseDesign, Design, SparseDesign, Standardized, standardize
from hardthresh.objectives.inputs import mean_weights


@dataclass(frozen=True, slots=True)
class Table:
    """Validated training data: rows of X, and one entry for each of them of everything else, None where not given.

    X holds finite floating-point numbers, which are not looked at again.

    As given, only X is where the user's data live: targets may be labels, so what has one entry per row is NumPy's
    until `with_targets` brings it to X. NumPy's X is never copied: the table knows which rows it has.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None
    rows: np.ndarray | None = None
    """The rows of X that the table has; None for all of them."""
    given: Any = None
    """The data frame or array that X encodes, all of its rows; None if X is what was given."""
    codes: Any = None
    """What is known of the targets besides their numbers, such as the labels that these stand for; None for most."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0] if self.rows is None else self.rows.size)

    def take(self, rows: np.ndarray) -> Table:
        """Return the table of some rows."""
        X, places = self.X, None
        if isinstance(X, np.ndarray):
            places = rows if self.rows is None else self.rows[rows]
        else:
            X = _take(X.tocsr() if hasattr(X, "tocsr") else X, rows)
        y, sample_weight, offset = (_take(a, rows) for a in (self.y, self.sample_weight, self.offset))
        return replace(self, X=X, y=y, sample_weight=sample_weight, offset=offset, rows=places)

    def with_targets(self, y: np.ndarray) -> Table:
        """Return the table with other targets, and everything in the library and on the device of X."""
        weight, offset = (None if a is None else self.to_backend(a) for a in (self.sample_weight, self.offset))
        return replace(self, y=self.to_backend(y), sample_weight=weight, offset=offset)

    def to_backend(self, x: np.ndarray) -> Array:
        """Return a NumPy array in the library and on the device of X."""
        return x if issparse(self.X) else move(x, self.X)

    def design(self) -> Design:
        """Return the design of the rows."""
        design: Design = SparseDesign.of(self.X) if issparse(self.X) else DenseDesign.of(self.X)
        return design if self.rows is None else design.rows(self.rows)

    def matrix(self, columns: Array | None = None) -> Any:
        """Return X of the rows, or some columns of it, as an array: a copy if the table has not all rows of X."""
        if self.rows is None:
            return self.X if columns is None else take_columns(self.X, columns)
        return self.X[self.rows] if columns is None else self.X[np.ix_(self.rows, columns)]

    def as_given(self) -> Any:
        """Return the rows as the user gave them, for functions of the user."""
        if self.given is None:
            return self.matrix()
        return self.given if self.rows is None else _safe_indexing(self.given, self.rows)

    def weighted_rows(self) -> np.ndarray:
        """Return the indices of the rows of positive weight."""
        return np.arange(self.n_rows) if self.sample_weight is None else np.flatnonzero(self.sample_weight)

    def weighted(self) -> Table:
        """Return the table of the rows of positive weight."""
        if self.sample_weight is None or np.all(self.sample_weight):
            return self
        return self.take(self.weighted_rows())


def standardize_table(
    table: Table, *, fit_intercept: bool, scale: bool, centre: bool | None = None
) -> tuple[Standardized, Array]:
    """Return the standardised columns of a table, with a column of ones for the intercept, and normalised weights.

    They are centred if there is an intercept, or as `centre` says.
    """
    design = table.design()
    weights = mean_weights(table.sample_weight, design.zeros(1), design.shape[0])
    return standardize(design, weights, scale=scale, intercept=fit_intercept, centre=centre), weights


def take_columns(X: Any, columns: Array) -> Any:
    """Return some columns of a table's X."""
    return X[:, columns] if issparse(X) else gather_columns(X, columns)


def _take(a: Any, rows: np.ndarray) -> Any:
    if a is None or isinstance(a, np.ndarray) or issparse(a):
        return None if a is None else a[rows]
    return namespace(a).take(a, move(rows, a), axis=0)
