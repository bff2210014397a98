"""The quadratic model of an objective on a support, with the exact effect of each exchange and its rounding."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, sqrt

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.objective import Evaluation, LinearObjective, UnitHessians
from hardthresh.core.typing import Array

from .gains import twice_gains
from .support_model import CERTAIN, MARGIN, Candidates, Removal, SupportModel

_ZERO = 1e2
"""A difference of columns is zero if it is at most this many eps times the sum of their lengths: room for the rounding
of the columns themselves, which were centred and scaled."""

_GATHERED = 64
"""Number of columns that are gathered at once; between 16 and 512 the run time hardly depends on it."""

_ENTRIES = 1 << 22
"""Most entries of the Hessians of the units that are compared at once: 32 MB."""


class ExchangeModel(SupportModel):
    r"""The quadratic model of f at any point, with the exact effect of each exchange on it, and bounds of its rounding.

    Attributes
    ----------
    refit : float
        The decrease of the model when the support is refitted. All other decreases include it.
    nearly_dependent : tuple of int
        Coordinates of the support that are linearly dependent but for a rest which is more than rounding, and too small
        for the model to use.

    Notes
    -----
    With the images V = H F, the support leaves :math:`1 - \|V_j\|^2` of the curvature of column j unexplained.
    The images also serve to orthonormalise F once more ("CholeskyQR2"): its error is then that of a QR factorisation,
    eps times the condition number of the columns, where that of an inverse of H_SS is eps times its square.

    Where the rest of a column is too small to be read off V, it is computed as a difference of columns. So copies, and
    other columns in the span of the support, are told from those that are close to it, and what these bring is known
    as long as their rest is some thousand times its rounding. In less than double precision the rounding of copies is
    more than many a rest that helps, so that copies are taken for columns that are close to the span.

    Cost: the Hessian of the support, and one data pass for each of its columns; for units of several columns also their
    Hessians.

    References
    ----------
    Y. Yamamoto, Y. Nakatsukasa, Y. Yanagisawa and T. Fukaya (2015), Roundoff error analysis of the CholeskyQR2
    algorithm, *ETNA* 44, 306-326.
    """

    def __init__(
        self,
        objective: LinearObjective,
        at: Evaluation,
        indices: Array,
        held: np.ndarray | None = None,
        bounds: np.ndarray | None = None,
    ) -> None:
        super().__init__(objective, at, indices, held, bounds)
        self._tells_copies = self._eps <= float(np.finfo(np.float64).eps)
        images = super()._images_of(np.eye(self._factor.shape[1]))
        gram = self._factor.T @ images[self._support]
        if np.linalg.norm(gram - np.eye(gram.shape[0])) < 0.5:  # so that it is positive definite
            again = np.linalg.inv(np.linalg.cholesky(0.5 * (gram + gram.T))).T
            self._factor, images = self._factor @ again, images @ again
        else:  # the products are too inexact to say anything
            self._rounding = 1.0
        self._images, self._own = images, images[self._support].T
        slope = self._factor.T @ self._gradient[self._support]
        self._gradient = self._gradient - images @ slope
        self._fitted = self._own @ self._coef - slope
        self.refit = 0.5 * float(slope @ slope)
        bound = max(float(objective.lower_bound), -abs(at.value))
        self._level = max(at.value - self.refit - bound, 0.0)
        self.nearly_dependent = self._find_near_dependence()

    def candidates(self, numbers: np.ndarray, *, find_copies: bool = False) -> Iterator[Candidates]:
        """Yield the units that may join the support, those of equal size together.

        Parameters
        ----------
        numbers : array of int, shape (d,)
            The unit of each coordinate, negative for coordinates that may not join.
        find_copies : bool
            Whether to tell the span of the support from what is close to it, which costs 4s/d data passes for each
            column in question. Otherwise both are close to it.
        """
        order = np.argsort(numbers, kind="stable")
        order = order[numbers[order] >= 0]
        names, starts, sizes = np.unique(numbers[order], return_index=True, return_counts=True)
        for m in np.unique(sizes).tolist():
            units = np.flatnonzero(sizes == m)
            for part in np.array_split(units, max(1, units.size * m * m // _ENTRIES)):
                columns = order[starts[part, None] + np.arange(m)]
                matters = self._scale[columns].any(axis=1)
                yield self._candidates(names[part][matters], columns[matters], find_copies)

    def _candidates(self, numbers: np.ndarray, columns: np.ndarray, find_copies: bool) -> Candidates:
        m, rows = columns.shape[1], self._images[columns]
        if m == 1:
            rest, axes = 1.0 - np.sum(rows * rows, axis=2), np.ones((numbers.size, 1, 1))
        else:
            rest, vectors = np.linalg.eigh(self._hessians(columns) - rows @ rows.transpose(0, 2, 1))
            axes = vectors.transpose(0, 2, 1)
        unexplained = np.maximum(rest, np.finfo(float).tiny)
        error = np.full(rest.shape, MARGIN * m * self._rounding)
        if find_copies:
            unit, axis = np.nonzero(rest <= CERTAIN * error)
            for i, j, (length, rounding) in zip(unit, axis, self._rests(columns[unit], axes[unit, axis]), strict=True):
                if length <= rounding and self._tells_copies:
                    unexplained[i, j], error[i, j] = 0.0, 0.0
                elif m == 1:
                    unexplained[i, j], error[i, j] = length**2, 2.0 * MARGIN * length * rounding / _ZERO
        return Candidates(numbers, columns, axes, unexplained, error)

    def decreases(self, candidates: Candidates, removal: Removal) -> np.ndarray:
        """Return the decrease when each candidate joins after a removal, with a refit of all coefficients."""
        return self.refit + self._gains(candidates, removal)[0] - removal.cost

    def most(self, candidates: Candidates) -> np.ndarray:
        """Return upper bounds of the decrease when each candidate joins and nothing leaves."""
        nothing = Removal(0.0, self._gradient, np.zeros((self._scale.size, 0)))
        return self.refit + self._gains(candidates, nothing)[1]

    def bounded_decreases(self, candidates: Candidates, removal: Removal) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the decreases, upper bounds of them, and whether a refit is well-conditioned.

        The bound is inf where a candidate is too close to the span of what is left to say.
        """
        gains, bounds, easy = self._gains(candidates, removal)
        return self.refit + gains - removal.cost, self.refit + bounds - removal.cost, easy

    def _gains(self, candidates: Candidates, removal: Removal) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the decrease when each candidate joins what a removal has left, an upper bound, and if it is easy.

        Of a candidate's combinations some are in the span of what is left, and bring nothing; some are too close to it,
        and count as nothing in the decrease.
        """
        slope, lost = candidates.rotate(removal.gradient), candidates.rotate(removal.lost)
        regained = np.sum(lost * lost, axis=2)
        useless = (candidates.unexplained == 0.0) & (regained <= (_ZERO * self._rounding) ** 2)
        m = slope.shape[1]
        if m == 1:
            curvature = candidates.unexplained + regained
            error = candidates.error + 2.0 * MARGIN * self._rounding * np.sqrt(regained)
        else:
            lost = np.where(useless[:, :, None], 0.0, lost)
            diagonal = np.where(useless, 1.0, candidates.unexplained)
            matrix = lost @ lost.transpose(0, 2, 1) + diagonal[:, :, None] * np.eye(m)
            curvature, vectors = np.linalg.eigh(matrix)
            slope = np.einsum("bij,bi->bj", vectors, np.where(useless, 0.0, slope))
            useless, error = np.zeros_like(useless), np.full(useless.shape, MARGIN * m * self._rounding)
        close = ~useless & (curvature <= CERTAIN * error)
        easy = useless | (curvature > CERTAIN * MARGIN * self._rounding)
        curvature, error = np.where(useless | close, 1.0, curvature), np.where(useless | close, 0.0, error)
        box = None if self._bounds is None else self._bounds[:, candidates.columns]  # of single columns
        gains = np.where(useless | close, 0.0, 0.5 * twice_gains(-slope, curvature, box))
        slack = _ZERO * self._rounding * sqrt(2.0 * max(self._level + removal.cost, 0.0))  # of products with residuals
        ends = [twice_gains(change - slope, curvature - error, box) for change in (-slack, slack)]
        bounds = np.where(useless, 0.0, 0.5 * np.maximum(*ends))
        return gains.sum(axis=1), np.where(close, inf, bounds).sum(axis=1), easy.all(axis=1)

    def _images_of(self, basis: np.ndarray) -> np.ndarray:
        images: np.ndarray = self._images @ basis
        return images

    def _find_near_dependence(self) -> tuple[int, ...]:
        """Return the coordinates of the support that are nearly dependent, and add their rests to `refit`."""
        columns = self._support[self._dependent]
        found = set()
        rests = self._rests(columns[:, None], np.ones((columns.size, 1)))
        for place, column, (length, rounding) in zip(self._dependent, columns, rests, strict=True):
            if length > rounding or not self._tells_copies:
                weights = np.abs(self._factor @ self._own[:, place])
                found |= {int(column), *self._support[weights > sqrt(self._eps)].tolist()}
            if length > rounding:
                self.refit += 0.5 * float(self._gradient[column] / length) ** 2
        return tuple(sorted(found))

    def _rests(self, columns: np.ndarray, weights: np.ndarray) -> Iterator[tuple[float, float]]:
        """Yield the distance of combinations of columns from the span of the support, and the rounding of each.

        The projection on the span is corrected once by that of its residual, as in iterative refinement.
        """
        count = max(1, _GATHERED // max(1, columns.shape[1]))
        for start in range(0, columns.shape[0], count):
            chunk = slice(start, start + count)
            every = np.union1d(self._support, columns[chunk])
            small, at = self._small(every)
            own, scale = np.searchsorted(every, self._support), self._scale[every]
            for unit, weight in zip(columns[chunk], weights[chunk], strict=True):
                rest = np.zeros(every.size)
                rest[np.searchsorted(every, unit)] = weight
                rest[own] -= self._factor @ (self._images[unit].T @ weight)
                image = scale * to_numpy(small.curvature(at, self._as_point(rest * scale)))
                rest[own] -= self._factor @ (self._factor.T @ image[own])
                square = small.curvature_along(at, self._as_point(rest * scale))
                yield sqrt(max(square, 0.0)), _ZERO * self._eps * float(np.sum(np.abs(rest)))

    def _hessians(self, columns: np.ndarray) -> np.ndarray:
        """Return the Hessian of each of some units of columns, with unit diagonal, shape (b, m, m)."""
        b, m = columns.shape
        if isinstance(self._objective, UnitHessians):
            blocks = self._objective.hessian_blocks(self._at, columns)
            if blocks is not None:
                scale = self._scale[columns]
                return np.asarray(blocks * scale[:, :, None] * scale[:, None, :])
        hessians = np.empty((b, m, m))
        count = max(1, _GATHERED // m)
        for start in range(0, b, count):
            units = columns[start : start + count]
            every = np.sort(units, axis=None)
            places = np.searchsorted(every, units)
            hessians[start : start + count] = self._hessian(every)[places[:, :, None], places[:, None, :]]
        return hessians
