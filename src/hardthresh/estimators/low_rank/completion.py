"""Matrix completion: observed entries, the scale of columns, factors, and the coordinates of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from hardthresh.arrays import FactoredMatrix, truncated_svd
from hardthresh.constraints import Rank
from hardthresh.core.errors import InvalidInputError, numbered
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.typing import Array
from hardthresh.objectives import MatrixCompletion

_BLOCK = 1 << 20  # numbers of the small systems that are solved at a time: 8 MB
_TIED = 1e-8
"""Relative difference below which two singular values count as equal. Rounding of columns whose mean is up to 1e7
standard deviations is less; without a symmetry of the table, values are rarely so close."""
_MOST_TIED = 10  # directions that are tried
_CONCENTRATED = 0.6  # of the squares of a direction: one row or column carries it. Arbitrary above one half
_INDEPENDENT = 0.5  # of the variance of a column, as the error of what the others tell of it. Arbitrary
_FEW = 10  # among so many rows or columns or fewer, one may carry a direction as a matter of course
_ROUNDING = 1e-10  # of the largest: smaller eigenvalues of a row's system without a ridge are rounding


@dataclass(frozen=True, slots=True)
class Cells:
    """The observed entries of a table, by row and then column.

    Attributes
    ----------
    rows, cols, values : array, shape (n_observed,)
        Their rows, columns and values.
    shape : tuple of int
        Of the table.
    """

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, X: Any) -> Cells:
        """Return the entries that are not NaN; of a sparse table, the stored ones among them."""
        if issparse(X):
            coo = X.tocsr().sorted_indices().tocoo()
            rows, cols, values = coo.row, coo.col, coo.data
            seen = ~np.isnan(values)
            return cls(rows[seen], cols[seen], values[seen], X.shape)
        rows, cols = np.nonzero(~np.isnan(X))
        return cls(rows, cols, X[rows, cols], X.shape)

    def take(self, which: np.ndarray) -> Cells:
        """Return some of the entries, in a table of the same shape."""
        return replace(self, rows=self.rows[which], cols=self.cols[which], values=self.values[which])

    def csr(self, values: np.ndarray) -> Any:
        """Return a sparse table with other values in the same places."""
        return csr_array((values, (self.rows, self.cols)), shape=self.shape)


@dataclass(frozen=True, slots=True)
class Columns:
    """The centre and the scale of each column, by its own observed entries.

    Attributes
    ----------
    mean, scale : array, shape (n_features,)
        The number to subtract, NaN for a column without an observed entry, and the one to divide by then, > 0.
    varies : array of bool, shape (n_features,)
        Whether each column varies; the others are known without any factor.
    """

    mean: np.ndarray
    scale: np.ndarray
    varies: np.ndarray

    @classmethod
    def of(cls, cells: Cells, *, center: bool, standardize: bool) -> Columns:
        """Return the mean and the standard deviation of each column, about zero if columns are not centred."""
        cols, p = cells.cols, cells.shape[1]
        counts = np.bincount(cols, minlength=p)
        size = np.zeros(p)
        np.maximum.at(size, cols, np.abs(cells.values))
        size[size == 0] = 1.0
        relative = cells.values / size[cols]  # in [-1, 1]: no square overflows, and the largest does not underflow
        at_least_one = np.maximum(counts, 1)
        mean = np.bincount(cols, relative, p) / at_least_one if center else np.zeros(p)
        deviation = np.sqrt(np.bincount(cols, (relative - mean[cols]) ** 2, p) / at_least_one)
        rounding = 10 * float(np.finfo(cells.values.dtype).eps)
        varies = deviation > rounding * np.abs(mean)
        scale = np.where(varies, size * deviation, 1.0) if standardize else np.ones(p)
        return cls(np.where(counts > 0, size * mean, np.nan), scale, varies)

    def standardized(self, cells: Cells) -> np.ndarray:
        """Return the entries in standard units."""
        return np.asarray((cells.values - self.mean[cells.cols]) / self.scale[cells.cols])


@dataclass(frozen=True, slots=True)
class Factors:
    """A matrix U diag(s) V' in standard units, with orthonormal U and V, s decreasing."""

    U: np.ndarray
    s: np.ndarray
    V: np.ndarray

    @classmethod
    def of(cls, left: np.ndarray, right: np.ndarray) -> Factors:
        """Return the factors of left right', where the right factor is orthonormal."""
        U, s, turn = np.linalg.svd(left, full_matrices=False)
        kept = s > max(left.shape) * np.finfo(s.dtype).eps * np.max(s, initial=0.0)
        U, s, V = U[:, kept], s[kept], right @ turn[kept].T
        sign = np.where(V[np.argmax(np.abs(V), axis=0), np.arange(s.size)] < 0, -1, 1).astype(V.dtype)
        return cls(U * sign, s, V * sign)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return single entries."""
        return np.asarray(np.einsum("ij,ij->i", self.U[rows] * self.s, self.V[cols]))


@dataclass(frozen=True, slots=True)
class CompletionProblem:
    """The problem of completing the columns that vary, in standard units, by a matrix of some rank.

    Attributes
    ----------
    objective, constraint :
        The objective to minimise, and the constraint.
    cells, columns :
        The table as it was given.
    ridge : float
        Of one row of it: what its sum of squared errors is weighed against.
    """

    objective: MatrixCompletion
    constraint: Rank
    cells: Cells
    columns: Columns
    ridge: float

    @classmethod
    def of(cls, cells: Cells, columns: Columns, alpha: float) -> CompletionProblem:
        """Return the problem with rank 0, for a table with at least one column that varies."""
        place = np.cumsum(columns.varies) - 1
        seen = columns.varies[cells.cols]
        size = np.unique(cells.rows).size * int(columns.varies.sum())  # empty rows and dull columns change nothing
        objective = MatrixCompletion(
            cells.rows[seen],
            place[cells.cols[seen]],
            columns.standardized(cells)[seen].astype(cells.values.dtype),
            shape=(cells.shape[0], int(columns.varies.sum())),
            l2=alpha / size,
        )
        return cls(objective, Rank(0), cells, columns, alpha * int(seen.sum()) / size)

    def with_budget(self, rank: int) -> CompletionProblem:
        """Return the problem with another rank."""
        return replace(self, constraint=Rank(rank))

    def factors(self, W: Array) -> Factors:
        """Return the factors of a point, with the coordinates of each row computed anew by `scores`.

        So a row of the fit has the same coordinates when it is transformed.
        """
        dtype = self.cells.values.dtype
        _, _, Vt = truncated_svd(W, min(self.constraint.r, *self.objective.shape))
        right: np.ndarray = np.zeros((self.cells.shape[1], Vt.shape[0]))
        right[self.columns.varies] = Vt.T
        left = scores(self.cells.csr(self.columns.standardized(self.cells)), right, self.ridge)
        found = Factors.of(left, right)
        with np.errstate(over="ignore"):
            sizes = found.s.astype(dtype)
        _check_coordinates(sizes)
        return Factors(found.U.astype(dtype), sizes, found.V.astype(dtype))

    def value(self, factors: Factors) -> float:
        """Return the objective, without ever forming the matrix."""
        return self.objective.value(self._point(factors.U * factors.s, factors.V[self.columns.varies]))

    def _point(self, left: np.ndarray, right: np.ndarray) -> Any:
        return FactoredMatrix.product(left, right) if self.objective.design.factored else left @ right.T

    def first_points(self, seed: int) -> list[Array | None]:
        """Return the starts of fits of rank 1: None, for zero, or several points if leading singular values are tied.

        The singular vectors of tied values are determined up to a rotation only: rounding and the order of rows and
        columns choose one. Vectors with zeros, as of a part of the table that shares no row and no column with the
        rest, may also be saddle points, which a fit does not leave. The points lie along a random rotation of the
        singular vectors, each at the minimum of the objective along it.
        """
        at = self.objective.evaluate(self.objective.zeros())
        eps = float(np.finfo(self.objective.y.dtype).eps)
        if not np.isfinite(at.value):
            return [None]

        def tied(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            U, s, Vt = truncated_svd(at.gradient, count)
            m = int(np.count_nonzero(s >= (1.0 - max(_TIED, 100.0 * eps)) * np.max(s, initial=0.0)))
            return U[:, :m], s[:m], Vt[:m].T

        if tied(2)[1].size < 2:
            return [None]
        U, s, V = tied(_MOST_TIED)
        rotation, _ = np.linalg.qr(generator(seed, 0, Purpose.TIED_DIRECTIONS).standard_normal((s.size, s.size)))
        points: list[Array | None] = []
        for weights in rotation.astype(U.dtype):
            direction = self._point(-(U @ weights)[:, None], (V @ weights)[:, None])
            step = float(s[0]) / self.objective.curvature_along(at, direction)
            points.append(step * direction)
        return points


def free_numbers(rank: int, shape: tuple[int, int]) -> int:
    """Return the number of free parameters of a matrix of some rank."""
    return rank * (shape[0] + shape[1] - rank)


def scores(Z: Any, V: np.ndarray, ridge: float) -> np.ndarray:
    r"""Return the coordinates of rows in terms of directions V, by their observed entries: shape (n_rows, r).

    .. math:: u_i = \arg\min_u \; \sum_{j \in \Omega_i} (z_{ij} - v_j^\top u)^2 + \rho \|u\|^2

    `Z` is sparse and stores what is observed. Without a ridge, the solution of least norm.

    Raises
    ------
    InvalidInputError
        If the coordinates of a row leave the range of float64: the directions are almost zero where it is observed.
    """
    n, r = Z.shape[0], V.shape[1]
    V = V.astype(np.float64)
    found: np.ndarray = np.zeros((n, r))
    if r == 0:
        return found
    Z = Z.tocsr()
    height = max(1, _BLOCK // (r * r))
    for top in range(0, n, height):
        block = Z[top : top + height]
        b = block.astype(np.float64) @ V
        seen = csr_array((np.ones(block.indices.size), block.indices, block.indptr), shape=block.shape)
        G: np.ndarray = np.empty((b.shape[0], r, r))
        for a in range(r):
            G[:, a] = seen @ (V * V[:, a : a + 1])
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            found[top : top + height] = _solved(G, b, ridge)
    _check_coordinates(found)
    return found


def _check_coordinates(coordinates: np.ndarray) -> None:
    """Check that coordinates of rows, or singular values, are finite."""
    if not np.all(np.isfinite(coordinates)):
        raise InvalidInputError(
            f"the coordinates of some rows leave the range of {coordinates.dtype}: where these rows are observed the "
            "directions are almost zero, because the scales of the columns of X are too far apart; set "
            "standardize=True, or rescale the columns"
        )


def error_without(cells: Cells, standard: np.ndarray, V: np.ndarray, ridge: float, column: int) -> tuple[float, float]:
    """Return the mean squared errors of a column, predicted by the other entries of its rows and by its mean."""
    own = cells.cols == column
    others = np.flatnonzero(~own)
    Z = csr_array((standard[others], (cells.rows[others], cells.cols[others])), shape=cells.shape)[cells.rows[own]]
    said = scores(Z, V, ridge) @ V[column].astype(np.float64)
    return float(np.mean((said - standard[own]) ** 2)), float(np.mean(standard[own] ** 2))


def _solved(G: np.ndarray, b: np.ndarray, ridge: float) -> np.ndarray:
    """Return the solutions of small systems with a ridge, those of least norm if it is zero."""
    if ridge > 0:
        return np.asarray(np.linalg.solve(G + ridge * np.eye(G.shape[1]), b[..., None])[..., 0])
    values, vectors = np.linalg.eigh(G)
    sound = values > _ROUNDING * np.max(values, axis=1, initial=0.0, keepdims=True)
    inverse = np.where(sound, 1.0 / np.where(sound, values, 1.0), 0.0)
    return np.asarray(np.einsum("nij,nj->ni", vectors, inverse * np.einsum("nij,ni->nj", vectors, b)))


def check_observed(cells: Cells) -> None:
    """Check that a table has an observed entry."""
    if cells.values.size == 0:
        raise InvalidInputError(
            "no entry of X is observed: every one is NaN (or not stored); there is nothing to learn"
        )


def concentrated_directions(
    cells: Cells, standard: np.ndarray, factors: Factors, ridge: float, name: Callable[[int], str]
) -> list[str]:
    """Return a description of each direction that lies in one row, or in one column that the others do not predict.

    Parameters
    ----------
    cells : Cells
        The observed entries of the columns that vary.
    standard : array, shape (n_observed,)
        These entries in standard units.
    factors : Factors
        The directions.
    ridge : float
        Of one row.
    name : callable
        Returns the name of a column in messages.
    """
    found = []
    if cells.shape[1] > _FEW:
        for j in np.unique(np.nonzero(factors.V**2 > _CONCENTRATED)[0]):
            error, variance = error_without(cells, standard, factors.V, ridge, int(j))
            if error > _INDEPENDENT * variance:
                found.append(
                    f"one direction lies almost only in {name(int(j))}, which the others do not tell (squared error "
                    f"{error / variance:.2g} of its variance)"
                )
    if cells.shape[0] > _FEW:
        rows = np.unique(np.nonzero(factors.U**2 > _CONCENTRATED)[0])
        found += [f"one direction lies almost only in {numbered('row', i)}" for i in rows]
    return found
