"""Validated training data as a table of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from hardthresh.arrays import as_double, double, gather_columns, move, namespace, to_numpy
from hardthresh.core.typing import Array
from hardthresh.designs import DenseDesign, Design, SparseDesign, Standardized, centred_block, standardize
from hardthresh.designs.standardized import squares_fit_single
from hardthresh.objectives.inputs import mean_weights

from .posed import Asked, Posed, objective_of

_BLOCK = 1 << 17
"""Entries of columns that are copied at a time: 1 MB."""


def smallest_square_root(dtype: Any) -> float:
    """Return the smallest number whose square does not underflow."""
    return float(np.sqrt(np.finfo(dtype).tiny))


@dataclass(frozen=True, slots=True)
class Table:
    """Validated training data: rows of X, and one entry for each of them of everything else, None where not given.

    X holds finite floating-point numbers, which are not examined again.

    As given, only X is where the user's data live: targets may be labels, so what has one entry per row is NumPy's
    until `with_targets` brings it to X. NumPy's X is never copied: the table knows which rows it has.
    """

    shows_readings: ClassVar[bool] = False
    """Whether each reading of the table shows its own progress."""

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
        if isinstance(X, np.ndarray | Design):
            places = rows if self.rows is None else self.rows[rows]
        else:
            X = _take(X.tocsr() if hasattr(X, "tocsr") else X, rows)
        y, sample_weight, offset = (_take(a, rows) for a in (self.y, self.sample_weight, self.offset))
        return replace(self, X=X, y=y, sample_weight=sample_weight, offset=offset, rows=places)

    def with_targets(self, y: np.ndarray) -> Table:
        """Return the table with other targets, and everything in the library and on the device of X."""
        weight, offset = (None if a is None else self.to_backend(a) for a in (self.sample_weight, self.offset))
        return replace(self, y=self.to_backend(y), sample_weight=weight, offset=offset)

    def encoded(self, encode: Callable[[np.ndarray], np.ndarray]) -> Table:
        """Return the table with targets as a loss takes them, which a function makes of these."""
        return self.with_targets(encode(self.y))

    def unlabelled(self) -> Any:
        """Return the table with labels as targets if these were numbered before all were seen; None if not."""
        return None

    def to_backend(self, x: np.ndarray) -> Array:
        """Return a NumPy array in the library and on the device of X."""
        return x if issparse(self.X) or isinstance(self.X, Design) else move(x, self.X)

    def design(self) -> Design:
        """Return the design of the rows."""
        if isinstance(self.X, Design):
            design = self.X
        else:
            design = SparseDesign.of(self.X) if issparse(self.X) else DenseDesign.of(self.X)
        return design if self.rows is None else design.rows(self.rows)

    def matrix(self, columns: Array | None = None) -> Any:
        """Return X of the rows, or some columns of it, as an array: a copy if the table has not all rows of X."""
        if isinstance(self.X, Design):
            design = self.design()
            return (design if columns is None else design.columns(columns)).dense()
        if self.rows is None:
            return self.X if columns is None else take_columns(self.X, columns)
        return self.X[self.rows] if columns is None else self.X[np.ix_(self.rows, columns)]

    def column_moments(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and the covariances of some columns, in double precision."""
        design = self.design()
        like = design.zeros(1)
        weights = mean_weights(self.sample_weight, like, design.shape[0])
        rows, some = move(np.arange(design.shape[0]), like), move(columns, like)
        center = design.columns(some).pullback(weights)
        block = centred_block(design, rows, some, center)
        shift = double(block.pullback(weights))  # the rounding of the mean
        with np.errstate(over="ignore", invalid="ignore"):
            products = double(block.gram(weights))
            deviation = np.sqrt(products.diagonal())
        if like.dtype != namespace(like).float64 and not np.all(squares_fit_single(deviation)):
            products = double(block.double().gram(as_double(weights)))
        return double(center) + shift, products - np.outer(shift, shift)

    def measured(self, model: Any) -> Table:
        """Return the table with what a model of it has found out about its columns: here they are in memory."""
        return self

    def are_tiny(self, columns: np.ndarray) -> np.ndarray:
        """Return for each of some columns whether it is not zero, but so small that all of its squares underflow."""
        size = max(1, _BLOCK // self.n_rows)
        tiny = np.zeros(columns.size, dtype=bool)
        for start in range(0, columns.size, size):
            some = self.matrix(self.to_backend(columns[start : start + size]))
            sizes = abs(some).max(axis=0).toarray().ravel() if issparse(some) else None
            largest = np.max(np.abs(to_numpy(some)), axis=0) if sizes is None else sizes
            tiny[start : start + size] = (largest > 0) & (largest < smallest_square_root(largest.dtype))
        return tiny

    def largest_target(self) -> float:
        """Return the size of the largest target."""
        xp = namespace(self.y)
        return float(xp.max(xp.abs(self.y)))

    def going_on(self, coef: np.ndarray, intercept: Any) -> Table:
        """Return the table for a fit that continues from a last one: rows in memory need not know where it begins."""
        return self

    def pose(self, asked: Asked) -> Posed:
        """Return the objective that settings ask for, and its units."""
        loss, fit_intercept = asked.loss, asked.fit_intercept
        if asked.scaling is None:
            centre = fit_intercept or not loss.takes_intercept
            standardized, weights = standardize_table(
                self, fit_intercept=fit_intercept, scale=asked.scale, centre=centre
            )
            level = loss.initial_prediction(self.y, weights) if fit_intercept else 0.0
        else:
            standardized, level = asked.scaling.standardized, asked.scaling.level
        offset = self.offset
        if level:
            loss.check_targets(self.y)  # before they are blamed on the offset
            offset = level + (0 * self.y if offset is None else offset)
        settings = {"sample_weight": self.sample_weight, "offset": offset, "l2": asked.ridge}
        objective = objective_of(standardized, self.y, loss, **settings)
        return Posed(objective, standardized.mean, standardized.inverse_scale, level, self.offset is not None)

    def as_given(self) -> Any:
        """Return the rows as the user gave them, for functions of the user."""
        if self.given is None:
            return self.matrix()
        return self.given if self.rows is None else _safe_indexing(self.given, self.rows)

    def row_weights(self) -> np.ndarray:
        """Return the weight of each row, shape (n,)."""
        return np.ones(self.n_rows) if self.sample_weight is None else double(self.sample_weight)

    def weighted_rows(self) -> np.ndarray:
        """Return the indices of the rows of positive weight."""
        return np.arange(self.n_rows) if self.sample_weight is None else np.flatnonzero(self.sample_weight)

    def weighted(self) -> Table:
        """Return the table of the rows of positive weight."""
        if self.sample_weight is None or np.all(self.sample_weight):
            return self
        return self.take(self.weighted_rows())


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the columns of a table are standardised by what is known of other rows, too.

    Attributes
    ----------
    standardized : Standardized
        The standardised columns, with a column of ones for the intercept.
    level : float
        The prediction from which the intercept is counted.
    """

    standardized: Standardized
    level: float


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
    if isinstance(X, Design):
        return X.columns(columns).dense()
    return X[:, columns] if issparse(X) else gather_columns(X, columns)


def _take(a: Any, rows: np.ndarray) -> Any:
    if a is None or isinstance(a, np.ndarray) or issparse(a):
        return None if a is None else a[rows]
    return namespace(a).take(a, move(rows, a), axis=0)
