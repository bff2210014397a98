"""Reduced-rank regression: the problem of a table, and its global minimum in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hardthresh.arrays import truncated_svd
from hardthresh.arrays.pieces import steps
from hardthresh.constraints import Rank
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array
from hardthresh.designs import Standardized, as_design
from hardthresh.objectives import MultiOutputModel

from ..base import numpy_dtype
from ..table import Table, standardize_table


@dataclass(frozen=True, slots=True)
class ReducedRankFactors:
    """A matrix W = L R' of coefficients of standardised columns, its directions by decreasing importance.

    Attributes
    ----------
    left : array, shape (p, r)
        L.
    right : array, shape (q, r)
        R, with orthonormal columns.
    """

    left: Array
    right: Array

    @classmethod
    def of(cls, W: Array, rank: int) -> ReducedRankFactors:
        """Return the factors of a matrix of at most some rank."""
        U, s, Vt = truncated_svd(W, rank)
        return cls(U * s, Vt.T)

    def first(self, rank: int) -> ReducedRankFactors:
        """Return the factors of the first directions."""
        return ReducedRankFactors(self.left[:, :rank], self.right[:, :rank])


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The coefficients W = U diag(s) V' on the scale of the data, with U and V orthonormal, and the intercepts."""

    U: Array
    s: Array
    V: Array
    intercept: Array

    def predict(self, X: Array) -> Array:
        """Return X W + intercept, without ever forming W."""
        return ((X @ self.U) * self.s) @ self.V.T + self.intercept

    def attributes(self, given: Table) -> dict[str, Any]:
        """Return the fitted attributes; the intercept is a float if the targets had one dimension."""
        return {
            "U_": self.U,
            "V_": self.V,
            "singular_values_": self.s,
            "intercept_": self.intercept if given.y.ndim == 2 else float(self.intercept[0]),
            "rank_": int(self.s.size),
        }


@dataclass(frozen=True, slots=True)
class LowRankProblem:
    """A reduced-rank regression of centred outputs on standardised columns; the intercepts follow from the means.

    Attributes
    ----------
    objective, constraint :
        The objective to minimise, and the constraint.
    table : Table
        The data as they were given.
    mean, inverse_scale : array, shape (p,)
        The mean of each column and the factor after subtracting it; 0 marks a constant column.
    target_mean : array, shape (q,)
        The means subtracted from the outputs; zero without an intercept.
    centred : bool
        Whether the columns and the outputs are: there is an intercept.
    """

    objective: MultiOutputModel
    constraint: Rank
    table: Table
    mean: Array
    inverse_scale: Array
    target_mean: Array
    centred: bool

    def with_budget(self, rank: int) -> LowRankProblem:
        """Return the problem with another rank."""
        return replace(self, constraint=Rank(rank))

    def coefficients(self, factors: ReducedRankFactors) -> Coefficients:
        """Return the coefficients on the scale of the data."""
        dtype = numpy_dtype(self.table.X)
        U, s, V = _orthonormal(factors.left * self.inverse_scale.astype(np.float64)[:, None], factors.right)
        kept = s >= np.finfo(dtype).tiny
        U, s, V = U[:, kept].astype(dtype), s[kept].astype(dtype), V[:, kept].astype(dtype)
        sign = np.where(V[np.argmax(np.abs(V), axis=0), np.arange(s.size)] < 0, -1, 1).astype(dtype)
        U, V = U * sign, V * sign
        return Coefficients(U, s, V, self.target_mean - ((self.mean @ U) * s) @ V.T)

    def value(self, factors: ReducedRankFactors) -> float:
        """Return the objective, without ever forming W."""
        prediction = self.objective.design.predict(factors.left) @ factors.right.T
        return self.objective.value(factors.left, prediction)  # whose norm is that of W: R is orthonormal

    def least_squares(self) -> ReducedRankFactors:
        r"""Return the factors of the global minimum.

        With A and B the standardised columns and the centred outputs, each row times the root of its weight, and
        :math:`A = P D Q^\top`,

        .. math:: \|B - AW\|^2 + \alpha \|W\|^2
                  = c + \|K - (D^2 + \alpha)^{1/2} Q^\top W\|^2 + \alpha \|(I - QQ^\top) W\|^2,
                  \qquad K = (D^2 + \alpha)^{-1/2} D P^\top B,

        so the best K of a rank is its truncated singular value decomposition (Eckart and Young), and W is
        :math:`Q (D^2 + \alpha)^{-1/2}` times that: without a ridge, the answer of least norm.
        """
        objective, alpha = self.objective, self.objective.l2
        dtype = numpy_dtype(self.table.X)
        d, seen, lift = self._sparse_spectrum() if issparse(self.table.X) else self._dense_spectrum()
        root = np.hypot(d, sqrt(alpha))
        K = (d / root)[:, None] * seen
        L, s, Rt = truncated_svd(K, min(self.constraint.r, *objective.shape))
        return ReducedRankFactors(lift((L * s) / root[:, None]).astype(dtype), Rt.T.astype(dtype))

    def _dense_spectrum(self) -> Spectrum:
        """Return D, P'B and the product with Q, from the singular values of A: no precision is squared away."""
        design, Y = self.objective.design, self.objective.Y
        (n, p), q = design.shape, Y.shape[1]
        root = np.sqrt(self.objective.weights)[:, None]
        size = 4 * (p + q)
        if q > p or n <= size:
            A, B = self._explicit_columns() * root, Y * root
        else:  # many rows: the triangle of a QR decomposition stands for them, and X is never copied as a whole
            blocks = steps(n, size)
            rest = self._mean_of_columns(blocks)
            stacked: np.ndarray = np.empty((0, p + q), dtype=Y.dtype)
            for rows in blocks:
                block = np.hstack([design.rows(rows).dense() - rest, Y[rows]]) * root[rows]
                stacked = np.asarray(np.linalg.qr(np.vstack([stacked, block]), mode="r"))
            A, B = stacked[:, :p], stacked[:, p:]
        P, d, Qt = np.linalg.svd(A, full_matrices=False)
        eps = float(np.finfo(d.dtype).eps)
        kept = d > eps * max(max(n, p) * np.max(d, initial=0.0), self._far_from_zero())
        return d[kept], P[:, kept].T @ B, lambda inner: Qt[kept].T @ inner

    def explicit(self) -> LowRankProblem:
        """Return the problem with its columns standardised explicitly, for a solver; sparse X stays as it is.

        Columns that are centred on the fly keep rounding of the size of their means. Without a ridge a solver takes
        that for directions in which it can fit, and goes far along them.
        """
        if issparse(self.table.X):
            return self
        columns, old = self._explicit_columns(), self.objective
        return replace(self, objective=MultiOutputModel(columns, old.Y, sample_weight=old.weights, l2=old.l2))

    def _explicit_columns(self) -> np.ndarray:
        """Return the standardised columns of dense X."""
        columns: np.ndarray = self.objective.design.dense()
        columns -= self._mean_of_columns([slice(0, columns.shape[0])], columns)
        return columns

    def _mean_of_columns(self, blocks: list[slice], columns: np.ndarray | None = None) -> np.ndarray:
        """Return what the means of the standardised columns still are, after rounding of the means of the data.

        That is the same number in all rows of a column, which are all zero in one direction if they are centred: as
        small as it is, least squares would make much of it. Zero without an intercept.
        """
        mean = np.zeros(self.mean.shape[0])
        if not self.centred:
            return mean.astype(self.mean.dtype)
        weights = self.objective.weights.astype(np.float64)
        for rows in blocks:
            block = self.objective.design.rows(rows).dense() if columns is None else columns
            mean += weights[rows] @ block
        return mean.astype(self.mean.dtype)

    def _far_from_zero(self) -> float:
        """Return how long the means of the columns are in standard deviations: the rounding of the data in these."""
        return float(np.linalg.norm(self.mean.astype(np.float64) * self.inverse_scale))

    def _sparse_spectrum(self) -> Spectrum:
        """Return the same from the eigenvalues of A'A or AA', whichever is smaller: A is never made dense."""
        X, weights = self.table.X, self.objective.weights.astype(np.float64)
        mean, scale = self.mean.astype(np.float64), self.inverse_scale.astype(np.float64)
        design = Standardized(as_design(X), mean, scale, intercept=False)
        B = np.sqrt(weights)[:, None] * self.objective.Y
        n, p = X.shape
        if p <= n:
            d, Q = _roots(design.gram(weights), self._far_from_zero())
            moments = design.pullback(np.sqrt(weights)[:, None] * B)
            return d, (Q.T @ moments) / d[:, None], lambda inner: Q @ inner
        shift = X @ (scale * scale * mean)
        products = as_design(X.T).gram(scale * scale) - shift[:, None] - shift + np.sum((scale * mean) ** 2)
        root = np.sqrt(weights)
        d, P = _roots(products * root[:, None] * root, self._far_from_zero())
        return d, P.T @ B, lambda inner: design.pullback(root[:, None] * (P @ (inner / d[:, None])))


def _orthonormal(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, s and V of the matrix left right', where the right one has orthonormal columns.

    A decomposition of the left one alone would not do. Its rows have the units of the columns of the data, which may
    lie many powers of ten apart: its own U keeps no digits of small rows, and its turn leaves small directions
    anything but orthogonal. So each row is only ever turned, which it survives with all its digits, and a turn is
    trusted for the directions within a factor of 20 of its largest; the others are made orthogonal to these, which
    is a change by rounding, and turned again among themselves.

    Raises
    ------
    InvalidInputError
        If the left factor is not finite.
    """
    if not np.all(np.isfinite(left)):
        raise InvalidInputError("the coefficients leave the range of float64; rescale X or y")
    U, s, V = left[:, :0].astype(np.float64), np.empty(0), right[:, :0].astype(np.float64)
    left, right = left.astype(np.float64), right.astype(np.float64)
    while left.shape[1]:
        _, sizes, turn = np.linalg.svd(left, full_matrices=False)
        if sizes[0] == 0:
            break
        trusted = int(np.count_nonzero(sizes > 0.05 * sizes[0]))
        left, right = left @ turn.T, right @ turn.T
        directions = left[:, :trusted] / sizes[:trusted]
        lengths = np.sqrt(np.sum(directions * directions, axis=0))
        U, V = np.hstack([U, directions / lengths]), np.hstack([V, right[:, :trusted]])
        s = np.concatenate([s, sizes[:trusted] * lengths])
        left, right = left[:, trusted:], right[:, trusted:]
        left = left - U @ (U.T @ left)
    order = np.argsort(-s, kind="stable")
    return U[:, order], s[order], V[:, order]


Spectrum = tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]


def _roots(A: np.ndarray, far: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the roots of the eigenvalues of a semidefinite matrix that are more than rounding, and eigenvectors.

    Its entries are differences of products of columns whose means are `far` from zero, which must not be forgotten.
    """
    values, vectors = np.linalg.eigh(A)
    kept = values > A.shape[0] * np.finfo(values.dtype).eps * max(np.max(values, initial=0.0), far * far)
    return np.sqrt(values[kept]), vectors[:, kept]


def with_matrix(table: Table) -> Table:
    """Return the table with its targets as a matrix."""
    return replace(table, y=table.y.reshape((table.y.shape[0], -1)))


def build_low_rank_problem(
    table: Table, *, rank: int, alpha: float, fit_intercept: bool, scale: bool
) -> LowRankProblem:
    """Return the problem of fitting a table whose targets are a matrix.

    Raises
    ------
    InvalidInputError
        If entries are so large that the scale of a column overflows.
    """
    columns, weights = standardize_table(table, fit_intercept=fit_intercept, scale=scale)
    design = Standardized(table.design(), columns.mean, columns.inverse_scale, intercept=False)
    Y, target_mean = table.y, np.zeros(table.y.shape[1], dtype=table.y.dtype)
    if fit_intercept:
        with np.errstate(over="ignore", invalid="ignore"):  # the objective refuses targets whose squares overflow
            target_mean, deviation = as_design(Y).moments(weights)
        Y = np.where(deviation == 0, 0 * target_mean, Y - target_mean)  # a constant output is all intercept
        Y = Y - (weights.astype(np.float64) @ Y).astype(Y.dtype)  # the rounding of large means
    objective = MultiOutputModel(design, Y, sample_weight=table.sample_weight, l2=alpha)
    return LowRankProblem(objective, Rank(rank), table, columns.mean, columns.inverse_scale, target_mean, fit_intercept)
