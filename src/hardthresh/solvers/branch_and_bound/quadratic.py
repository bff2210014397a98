"""The problem that branch and bound solves: a quadratic over columns of unit length, free coordinates swept out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigvalsh

from hardthresh.arrays import as_double, double, inverse_semidefinite, to_numpy
from hardthresh.core.objective import Evaluation, LinearObjective, value_rounding
from hardthresh.core.schema import stored
from hardthresh.objectives import LinearModel

EPS = float(np.finfo(np.float64).eps)

DEPENDENT = 1e-11
"""A column is a combination of others if they leave less than this share of its square. Rounding of a Gram matrix is
some 1e-15 of it; a share below this has lost four digits of its slope at least, and is not told from rounding."""

_SHRUNK = 1e-9
"""The smallest eigenvalue is lowered by this share, besides its rounding: as in the specification of the bound."""


@stored("state/branch_and_bound_problem")
@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    r"""A quadratic over m columns that count, at the minimum over the free coordinates.

    .. math:: q(x) = \tfrac{1}{2} x^\top Q x - c^\top x + q_0, \qquad Q_{jj} = 1

    It is :math:`f(w)` minimised over the free coordinates of w, for :math:`w_j = s_j x_j`: a change of units leaves the
    number of non-zeros as it is. Columns without curvature, and copies of others where there is no ridge, are left out,
    as no answer needs them.

    Attributes
    ----------
    hessian : array, shape (m, m)
        Q.
    slope : array, shape (m,)
        c.
    constant : float
        :math:`q_0`, the value of the null model.
    ridge : array, shape (m,)
        The part of the diagonal of Q that is known to be a ridge: Q without it is positive semidefinite.
    diagonal : array, shape (m,)
        A diagonal that leaves Q positive semidefinite when it is subtracted.
    columns : array of int, shape (m,)
        The coordinate of w for each column, increasing.
    n_rows : int
        The number of examples: without the ridge the rank of Q is no larger.
    resolution : float
        Two values that differ by less are equal but for rounding.
    rounding : float
        The relative rounding of an entry of a product with Q.
    """

    hessian: np.ndarray
    slope: np.ndarray
    constant: float
    ridge: np.ndarray
    diagonal: np.ndarray
    columns: np.ndarray
    n_rows: int
    resolution: float
    rounding: float

    @classmethod
    def of(cls, objective: LinearObjective, null: Evaluation, free: tuple[int, ...]) -> Quadratic:
        """Return the problem of a quadratic objective, evaluated at its null model. Cost: one or two data passes."""
        exact = objective.double()
        if exact is not objective:
            null = exact.evaluate(as_double(null.point))
        hessian = np.asarray(double(exact.hessian(null)))
        slope = -np.asarray(double(null.gradient))
        d, fixed = slope.size, np.array(free, dtype=np.int64)
        ridge = np.broadcast_to(to_numpy(exact.l2), (d,)) if isinstance(exact, LinearModel) else np.zeros(d)
        counted = np.setdiff1d(np.arange(d), fixed)
        before = hessian.diagonal()[counted]
        if fixed.size:
            cross = hessian[np.ix_(counted, fixed)]
            inverse = np.asarray(inverse_semidefinite(hessian[np.ix_(fixed, fixed)]))
            hessian = hessian[np.ix_(counted, counted)] - cross @ inverse @ cross.T
            slope = slope[counted] - cross @ (inverse @ slope[fixed])
        diagonal = hessian.diagonal()
        useful = np.flatnonzero(diagonal > DEPENDENT * before)
        counted, scale = counted[useful], 1.0 / np.sqrt(diagonal[useful])
        hessian = hessian[np.ix_(useful, useful)]
        hessian *= scale[:, None]
        hessian *= scale
        np.fill_diagonal(hessian, 1.0)
        amplified = float(np.max(before[useful] * scale**2, initial=1.0))
        problem = cls(
            hessian=hessian,
            slope=slope[useful] * scale,
            constant=float(null.value),
            ridge=ridge[counted] * scale**2,
            diagonal=ridge[counted] * scale**2,
            columns=counted,
            n_rows=int(objective.traits.n_rows),
            resolution=value_rounding(exact, null),
            rounding=EPS * amplified * float(np.max(np.abs(hessian).sum(axis=0), initial=0.0)),
        )
        return problem if problem.ridge.any() else problem._without_copies()

    @property
    def size(self) -> int:
        """m."""
        return self.slope.size

    def _without_copies(self) -> Quadratic:
        """Return the problem without columns that are equal, up to their signs, to one before them."""
        if self.size < 2:
            return self
        alike = np.tril(np.abs(self.hessian), -1) >= 1.0 - DEPENDENT
        kept = np.flatnonzero(~alike.any(axis=1))
        if kept.size == self.size:
            return self
        return replace(
            self,
            hessian=np.ascontiguousarray(self.hessian[np.ix_(kept, kept)]),
            slope=self.slope[kept],
            ridge=self.ridge[kept],
            diagonal=self.diagonal[kept],
            columns=self.columns[kept],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    r"""The quadratic over some columns at the minimum over others, which are chosen.

    With L the Cholesky factor of :math:`Q_{II}` for the chosen columns I, and :math:`B = L^{-1} Q_{IF}`, the Hessian of
    the others F is the Schur complement :math:`M = Q_{FF} - B^\top B`, of which rows are computed when they are needed.

    Attributes
    ----------
    problem : Quadratic
        The whole.
    columns : array of int, shape (m,)
        F.
    half : array, shape (|I|, m)
        B.
    slope, diagonal : array, shape (m,)
        The slope and the diagonal of M.
    constant : float
        The minimum on I alone.
    """

    problem: Quadratic
    columns: np.ndarray
    half: np.ndarray
    slope: np.ndarray
    diagonal: np.ndarray
    constant: float

    @classmethod
    def of(cls, problem: Quadratic, chosen: np.ndarray, others: np.ndarray) -> Reduced:
        """Return the quadratic over some columns, without those that the chosen ones make up."""
        if chosen.size == 0:
            return cls(problem, others, np.zeros((0, others.size)), problem.slope[others], np.ones(others.size),
                       problem.constant)  # fmt: skip
        Q = problem.hessian
        factor = np.linalg.inv(np.linalg.cholesky(Q[np.ix_(chosen, chosen)]))
        half, pull = factor @ Q[np.ix_(chosen, others)], factor @ problem.slope[chosen]
        diagonal = 1.0 - np.einsum("ij,ij->j", half, half)
        kept = np.flatnonzero(diagonal > DEPENDENT)
        if kept.size < others.size:
            others, half, diagonal = others[kept], half[:, kept], diagonal[kept]
        constant = problem.constant - 0.5 * float(pull @ pull)
        return cls(problem, others, half, problem.slope[others] - pull @ half, diagonal, constant)

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Return rows of M, for places in `columns`."""
        rows: np.ndarray = self.problem.hessian[self.columns[places]][:, self.columns]
        if self.half.shape[0]:
            rows -= self.half[:, places].T @ self.half
        return rows

    def scaled(self, shape: np.ndarray) -> np.ndarray:
        r"""Return :math:`\Sigma^{-1/2} M \Sigma^{-1/2}` for a diagonal :math:`\Sigma > 0`."""
        scale = 1.0 / np.sqrt(shape)
        matrix = self.rows(np.arange(self.columns.size))
        matrix *= scale[:, None]
        matrix *= scale
        return matrix

    def curvature(self, matrix: np.ndarray, shape: np.ndarray) -> float:
        r"""Return a number :math:`\mu \ge 0` for which :math:`M - \mu \Sigma` is positive semidefinite.

        It is the smallest eigenvalue of the scaled matrix less its rounding. Cost: :math:`O(m^3)`.
        """
        lowest = float(eigvalsh(matrix, subset_by_index=(0, 0), check_finite=False)[0])
        rounding = 4.0 * shape.size * self.problem.rounding / min(1.0, float(shape.min()))
        return max(0.0, lowest * (1.0 - _SHRUNK) - rounding)
