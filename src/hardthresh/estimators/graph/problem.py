"""The problem of a sparse Gaussian graphical model for standardised columns, and its precision matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.arrays import symmetric_part
from hardthresh.constraints import EdgeSparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.objectives import GraphicalModel

from .covariance_selection import most_likely_precision, positive_definite

_ROUNDING = 1e-8  # of the largest eigenvalue: how far below zero one may be in a covariance matrix, of float32 too


@dataclass(frozen=True, slots=True)
class Precision:
    """A positive definite precision matrix and its inverse.

    Attributes
    ----------
    matrix, inverse : array, shape (p, p)
        The inverse is symmetric to the last bit, too.
    kept : float
        The share of the entries off the diagonal of the pseudo-likelihood's minimiser that could be kept for it to
        become positive definite; 1 where it was.
    reached : bool
        Whether the likelihood on the graph was maximised, if that was asked for.
    """

    matrix: np.ndarray
    inverse: np.ndarray
    kept: float
    reached: bool

    @property
    def n_edges(self) -> int:
        """The number of pairs that are joined."""
        return int(np.count_nonzero(np.triu(self.matrix, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class GraphProblem:
    """The minimisation over graphs, in standard units.

    Attributes
    ----------
    objective : GraphicalModel
        The pseudo-likelihood of standardised columns.
    constraint : EdgeSparsity
        The matrices with at most so many edges.
    covariance : array, shape (p, p)
        Their covariance matrix.
    location, scale : array, shape (p,)
        The number subtracted from each column, and the one by which it was divided then.
    alpha : float
        The ridge of the objective.
    """

    objective: GraphicalModel
    constraint: EdgeSparsity
    covariance: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    alpha: float

    @classmethod
    def of_rows(cls, X: np.ndarray, *, standardize: bool, alpha: float, names: Any) -> GraphProblem:
        """Return the problem of observed rows; `names(j)` is the name of column j in messages."""
        location = X.mean(axis=0, dtype=np.float64)
        centred = X - location
        shift = centred.mean(axis=0)  # the rounding of the mean, which would pass for variation of a constant column
        location, centred = location + shift, centred - shift
        largest = np.max(np.abs(centred), axis=0)
        size = np.where(largest > 0, largest, 1.0)
        scale = size * np.sqrt(np.mean((centred / size) ** 2, axis=0))
        rounding = 10 * np.finfo(X.dtype).eps * np.abs(location)
        _check_variation(scale <= rounding, "has the same value in every row", names)
        scale = scale if standardize else np.ones_like(scale)
        Z = (centred / scale).astype(X.dtype, copy=False)
        covariance = symmetric_part((Z.T @ Z).astype(np.float64) / X.shape[0])
        return cls._of(Z, covariance, location, scale, alpha, names)

    @classmethod
    def of_covariance(cls, S: np.ndarray, *, standardize: bool, alpha: float, names: Any) -> GraphProblem:
        """Return the problem of a covariance matrix, through as many rows as its rank that have this covariance."""
        dtype, S = S.dtype, S.astype(np.float64)
        if S.shape[0] != S.shape[1]:
            raise InvalidInputError(f'with covariance="precomputed" X must be a square matrix, got shape {S.shape}')
        if np.max(np.abs(S - S.T)) > 1e-6 * np.max(np.abs(S)):
            i, j = np.unravel_index(np.argmax(np.abs(S - S.T)), S.shape)
            raise InvalidInputError(
                f"a covariance matrix is symmetric, but entry ({i}, {j}) is {S[i, j]:.6g} and ({j}, {i}) is "
                f"{S[j, i]:.6g}"
            )
        diagonal = np.diag(S)
        _check_variation(diagonal <= 0, "has no positive variance", names)
        deviation = np.sqrt(diagonal)
        correlation = symmetric_part(S) / deviation[:, None] / deviation
        values, vectors = np.linalg.eigh(correlation)
        if values[0] < -_ROUNDING * max(1.0, values[-1]) * S.shape[0]:
            raise InvalidInputError(
                f"a covariance matrix has no negative eigenvalue, but the correlations of this one have {values[0]:.3g}"
            )
        scale = deviation if standardize else np.ones_like(deviation)
        unit = deviation / scale
        kept = values > _ROUNDING * values[-1]
        rows = np.sqrt(values[kept] * np.sum(kept))[:, None] * vectors[:, kept].T * unit
        covariance = correlation * unit[:, None] * unit
        return cls._of(rows.astype(dtype), covariance, np.zeros(S.shape[0]), scale, alpha, names)

    @classmethod
    def _of(
        cls, Z: np.ndarray, covariance: np.ndarray, location: np.ndarray, scale: np.ndarray, alpha: float, names: Any
    ) -> GraphProblem:
        if alpha == 0.0:
            _check_copies(covariance, names)
        return cls(
            GraphicalModel(Z, l2=alpha), EdgeSparsity.of_edges(0, scale.size), covariance, location, scale, alpha
        )

    def with_budget(self, n_edges: int) -> GraphProblem:
        """Return the problem with another number of edges."""
        return replace(self, constraint=EdgeSparsity.of_edges(n_edges, self.scale.size))

    def definite(self, W: np.ndarray) -> Precision:
        """Return a positive definite precision matrix with the graph of W, in standard units."""
        definite, kept = positive_definite(np.asarray(W, dtype=np.float64), self.covariance)
        return Precision(definite, symmetric_part(np.linalg.inv(definite)), kept, reached=True)

    def most_likely(self, start: Precision, alpha: float, tol: float) -> Precision:
        """Return the precision matrix of the largest likelihood, with a ridge, on the graph of another one."""
        matrix, reached = most_likely_precision(self.covariance, start.matrix, alpha, tol)
        return Precision(matrix, symmetric_part(np.linalg.inv(matrix)), start.kept, reached)

    def log_likelihood(self, precision: Precision, rows: np.ndarray) -> float:
        """Return the mean Gaussian log-likelihood of other rows, in the units of the data."""
        Z = (rows - self.location) / self.scale
        forms = float(np.mean(np.sum(Z * (Z @ precision.matrix), axis=1)))
        determinant = float(np.linalg.slogdet(precision.matrix)[1]) - 2.0 * float(np.sum(np.log(self.scale)))
        return 0.5 * (determinant - forms - self.scale.size * float(np.log(2.0 * np.pi)))


def _check_variation(constant: np.ndarray, what: str, names: Any) -> None:
    if np.any(constant):
        raise InvalidInputError(f"{names(int(np.argmax(constant)))} {what}, so it has no precision; leave it out")


def _check_copies(covariance: np.ndarray, names: Any) -> None:
    """Check that no column determines another one, as there is no ridge to bound their precision."""
    deviation = np.sqrt(np.diag(covariance))
    correlation = np.abs(np.triu(covariance / deviation[:, None] / deviation, 1))
    i, j = np.unravel_index(np.argmax(correlation), correlation.shape)
    if correlation[i, j] >= 1.0 - 1e-10:
        raise InvalidInputError(
            f"{names(int(i))} and {names(int(j))} are copies of each other up to units, so their precision is "
            "infinite; leave one of them out, or take alpha > 0"
        )
