"""The problem that branch and bound solves: a quadratic over columns of unit length, free coordinates swept out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hardthresh.arrays import double, inverse_semidefinite
from hardthresh.core.objective import Evaluation, LinearObjective, value_rounding
from hardthresh.core.schema import stored
from hardthresh.solvers.perspective import removable

from .rows import EPS, MADE_UP, UNITS, Rows

NEARLY = 1e-4
"""Columns of which others leave less than this share of the square are examined in the rows, which have twice the
digits of a Gram matrix. Above it at least eleven digits are left."""

_LOST = 1e-12
"""The relative error of a square from which the Gram matrix of a column, such as one that was centred by its large
mean, is computed from the rows. Rounding of a sum of squares is below a tenth of it for up to a million rows."""

_ARITHMETIC = 8.0 * EPS
"""The relative rounding of a closed form for one column or two: a few units for each of its four products and sums."""

_UNCLEAR = 1e-2
"""The largest relative rounding of an entry of a Schur complement that the margins, which are of first order, hold for.
"""


@stored("state/branch_and_bound_problem")
@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    r"""A quadratic over m columns that count, at the minimum over the free coordinates.

    .. math:: q(x) = \tfrac{1}{2} x^\top Q x - c^\top x + q_0, \qquad Q_{jj} = 1

    It is :math:`f(w)` minimised over the free coordinates of w, for :math:`w_j = s_j x_j`: a change of units leaves the
    number of non-zeros as it is. Columns that the free ones make up, and copies of others where there is no ridge, are
    left out, as no answer needs them.

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
        Two values that differ by less are equal up to rounding.
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
    def of(cls, objective: LinearObjective, null: Evaluation, free: np.ndarray, rows: Rows | None) -> Quadratic:
        """Return the problem of a quadratic objective in double precision, evaluated at its null model.

        Columns that are nearly combinations of the free ones, or lose digits in the Gram matrix, are swept in the rows,
        if there are any. Cost: two data passes, and one for each of these columns.
        """
        problem = cls.with_copies(objective, null, free, rows)
        return problem.part(problem.originals(rows) == np.arange(problem.size))

    @classmethod
    def with_copies(
        cls, objective: LinearObjective, null: Evaluation, free: np.ndarray, rows: Rows | None
    ) -> Quadratic:
        """Return the problem as `of` does, but with the copies of columns that an answer does not need."""
        hessian, slope = np.array(double(objective.hessian(null))), -np.asarray(double(null.gradient))
        d = slope.size
        ridge = np.zeros(d) if rows is None else rows.ridge
        counted = np.setdiff1d(np.arange(d), free)
        before, used = hessian.diagonal().copy(), np.zeros(d, dtype=bool)
        used[counted] = before[counted] > 0
        amplified, lost = np.ones(d), np.zeros(d)
        if rows is not None:
            lost[used] = np.abs(rows.squares()[used] / before[used] - 1.0)
        if free.size:
            cross = hessian[:, free]
            inverse = np.asarray(inverse_semidefinite(hessian[np.ix_(free, free)]))
            hessian -= cross @ inverse @ cross.T
            slope = slope - cross @ (inverse @ slope[free])
        left = hessian.diagonal()
        amplified[used] = before[used] / np.maximum(left[used], NEARLY * before[used])
        near = np.flatnonzero(used & ((left <= NEARLY * before) | (lost > _LOST)))
        if rows is not None and near.size:
            hessian[near], slope[near], made_up = rows.swept(near)
            hessian[:, near] = hessian[near].T
            used[near[made_up]] = False
            shares = before[near] / np.where(made_up, 1.0, hessian.diagonal()[near])
            amplified[near] = UNITS * np.sqrt(np.maximum(shares, lost[near] / EPS))
        else:
            used[near] = left[near] > MADE_UP * before[near]
            amplified[near] = before[near] / np.where(used[near], left[near], 1.0)
        counted = np.flatnonzero(used)
        scale = 1.0 / np.sqrt(hessian.diagonal()[counted])
        hessian = hessian[np.ix_(counted, counted)]
        hessian *= scale[:, None]
        hessian *= scale
        np.fill_diagonal(hessian, 1.0)
        sums = np.abs(hessian).sum(axis=0)
        return cls(
            hessian=hessian,
            slope=slope[counted] * scale,
            constant=float(null.value),
            ridge=ridge[counted] * scale**2,
            diagonal=ridge[counted] * scale**2,
            columns=counted,
            n_rows=int(objective.traits.n_rows),
            resolution=value_rounding(objective, null),
            rounding=EPS * float(np.max(amplified[counted], initial=1.0)) * float(np.max(sums, initial=0.0)),
        )

    @property
    def size(self) -> int:
        """m."""
        return self.slope.size

    @property
    def scale(self) -> float:
        """The size of an entry of c, for its rounding."""
        return float(max(np.max(np.abs(self.slope), initial=0.0), np.sqrt(2.0 * abs(self.constant))))

    def originals(self, rows: Rows | None) -> np.ndarray:
        """Return for each column the first one that it is a multiple of, up to rounding; with a ridge itself."""
        first = np.arange(self.size)
        if self.size < 2 or self.ridge.any():
            return first
        later, earlier = np.nonzero(np.tril(np.abs(self.hessian), -1) >= 1.0 - max(self.rounding, MADE_UP))
        for i, j in zip(later.tolist(), earlier.tolist(), strict=True):
            if first[i] == i and first[j] == j:
                copied = rows is None or bool(rows.made_up(self.columns[[j]], self.columns[[i]])[0])
                first[i] = j if copied else i
        return first

    def part(self, kept: np.ndarray) -> Quadratic:
        """Return the problem of some columns, of which a mask is given."""
        if kept.all():
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
    constant, error : float
        The minimum on I alone, and how much of it may be rounding.
    rounding : float
        How much of an entry of M may be rounding.
    """

    problem: Quadratic
    columns: np.ndarray
    half: np.ndarray
    slope: np.ndarray
    diagonal: np.ndarray
    constant: float
    error: float
    rounding: float

    @classmethod
    def of(cls, problem: Quadratic, chosen: np.ndarray, others: np.ndarray) -> Reduced | None:
        r"""Return the quadratic over some columns; None if the chosen ones are too nearly dependent to say.

        A change of the entries of Q by :math:`\epsilon` moves the minimum on I by :math:`\epsilon \|x_I\|_1^2`, to
        first order, and an entry of M by :math:`\epsilon (1 + \|Q_{II}^{-1} Q_{Ij}\|_1)^2` at most.
        """
        if chosen.size == 0:
            return cls(problem, others, np.zeros((0, others.size)), problem.slope[others], np.ones(others.size),
                       problem.constant, 0.0, problem.rounding)  # fmt: skip
        Q = problem.hessian
        try:
            factor = np.linalg.inv(np.linalg.cholesky(Q[np.ix_(chosen, chosen)]))
        except np.linalg.LinAlgError:
            return None
        rounding = problem.rounding * (1.0 + np.sqrt(chosen.size) * float(np.linalg.norm(factor))) ** 2
        if not rounding <= _UNCLEAR:
            return None
        half, pull = factor @ Q[np.ix_(chosen, others)], factor @ problem.slope[chosen]
        diagonal = 1.0 - np.einsum("ij,ij->j", half, half)
        size = float(np.abs(pull @ factor).sum())
        error = problem.rounding * size * (size + problem.scale)
        constant = problem.constant - 0.5 * float(pull @ pull)
        return cls(problem, others, half, problem.slope[others] - pull @ half, diagonal, constant, error, rounding)

    def on(self, kept: np.ndarray) -> Reduced:
        """Return the quadratic over a part of the columns, of which the places or a mask are given."""
        return replace(
            self,
            columns=self.columns[kept],
            half=self.half[:, kept],
            slope=self.slope[kept],
            diagonal=self.diagonal[kept],
        )

    def lowered(self) -> tuple[float, np.ndarray]:
        r"""Return a constant and a diagonal with which the quadratic is below the true one for two columns or one.

        Rounding :math:`\epsilon` of M changes it by :math:`\epsilon \|x\|_1^2 / 2 \le \epsilon \|x\|^2`, and that of
        the slope, :math:`\epsilon s`, by :math:`\epsilon s \|x\|_1 \le \epsilon (s^2 / 2 + \|x\|^2)`.
        """
        scale = self.problem.scale
        return self.constant - self.error - 0.5 * self.rounding * scale**2, self.diagonal - 4.0 * self.rounding

    def bounds(self, k: int) -> np.ndarray:
        r"""Return lower bounds of the quadratic over each column, or over each pair of two, by closed forms.

        .. math:: q_I - \frac{c_i^2}{2 M_{ii}}, \qquad
                  q_I - \frac{c_i^2 M_{jj} + c_j^2 M_{ii} - 2 c_i c_j M_{ij}}{2 (M_{ii} M_{jj} - M_{ij}^2)}

        Of a pair of near copies both differences are left by terms that are almost equal, so their rounding,
        :math:`\epsilon` of these terms, is added to the first and subtracted from the second. The bound is -inf where
        nothing is left to divide by.

        Parameters
        ----------
        k : {1, 2}
            1 for single columns, 2 for pairs.

        Returns
        -------
        array, shape (m,) or (m, m)
            The bounds; of pairs those with i < j, and inf elsewhere.
        """
        c = self.slope
        constant, diagonal = self.lowered()
        if k == 1:
            above, below = c**2, diagonal
        else:
            M, of_each = self.rows(np.arange(c.size)), np.outer(c**2, diagonal)
            across, whole = 2.0 * np.outer(c, c) * M, np.outer(diagonal, diagonal)
            of_each += of_each.T
            above = of_each - across + _ARITHMETIC * (np.abs(of_each) + np.abs(across))
            below = whole - M**2 - _ARITHMETIC * np.abs(whole)
            below[(diagonal <= 0) | (diagonal <= 0)[:, None]] = 0.0
        gain = np.divide(above, below, out=np.full(below.shape, np.inf), where=below > 0)
        bounds: np.ndarray = constant - 0.5 * gain - _ARITHMETIC * abs(constant)
        if k == 2:
            bounds[np.tril_indices(c.size)] = np.inf  # each pair once
        return bounds

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

        It is what is `removable` from the scaled matrix. Cost: :math:`O(m^3)`.
        """
        return removable(matrix, 4.0 * shape.size * self.rounding / min(1.0, float(shape.min())))
