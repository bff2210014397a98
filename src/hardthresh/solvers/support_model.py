"""The quadratic model of an objective at a minimiser on its support, and the effect of exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.arrays import gather, inverse_factor, move, scatter, to_numpy
from hardthresh.core.objective import Evaluation, LinearObjective
from hardthresh.core.typing import Array

from .gains import twice_gains

CERTAIN = 1e2
"""A curvature is divided by only if it is this many times the bound of its error."""

MARGIN = 10.0
"""A bound of an error over the error that one expects; with `CERTAIN`, the factor 1000 of `inverse_factor`."""


@dataclass(frozen=True, eq=False, slots=True)
class Removal:
    """The quadratic model after some columns have left the support and the others were refitted.

    Attributes
    ----------
    cost : float
        The increase of the model.
    gradient : array, shape (d,)
        Its gradient, with respect to columns of unit curvature.
    lost : array, shape (d, m)
        Inner products of all columns with an orthonormal basis of what the span of the support has lost.
    """

    cost: float
    gradient: np.ndarray
    lost: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class Candidates:
    """Units of m columns each that may join the support.

    Attributes
    ----------
    numbers : array of int, shape (b,)
        The number of each unit.
    columns : array of int, shape (b, m)
        The coordinates of each unit.
    axes : array, shape (b, m, m)
        Orthonormal combinations of the columns of each unit, as rows of weights.
    unexplained : array, shape (b, m)
        The curvature of each combination that the support does not explain; exactly 0 if the combination is in the span
        of the support.
    error : array, shape (b, m)
        Bounds of the error of `unexplained`.
    """

    numbers: np.ndarray
    columns: np.ndarray
    axes: np.ndarray
    unexplained: np.ndarray
    error: np.ndarray

    def rotate(self, rows: np.ndarray) -> np.ndarray:
        """Return, from one row for each column, the rows of the combinations: shape (b, m, ...)."""
        own: np.ndarray = rows[self.columns]
        return own if self.columns.shape[1] == 1 else np.einsum("bij,bj...->bi...", self.axes, own)


class SupportModel:
    r"""The quadratic model of f at a minimiser on its support, in terms of linearly independent columns.

    Parameters
    ----------
    objective : LinearObjective
        f.
    at : Evaluation
        f at the point.
    indices : array of int
        The support, as increasing coordinates.
    held : array of int, optional
        Chosen coordinates at a bound, outside `indices`. They stay where they are until they leave.
    bounds : array, shape (2, d), optional
        Lower bounds, <= 0, and upper ones, >= 0, of the coordinates that join. Those of the others are ignored.

    Notes
    -----
    "Columns" are those of a square root of the Hessian H, scaled to unit length. F holds the coefficients of an
    orthonormal basis of the span of the support's columns: F' H_SS F = I, with zero rows for columns that depend on
    others. When columns leave the support, its span loses the span of their rows of F.

    Cost: the Hessian of the support, and one data pass for each `removal` of one column.
    """

    def __init__(
        self,
        objective: LinearObjective,
        at: Evaluation,
        indices: Array,
        held: np.ndarray | None = None,
        bounds: np.ndarray | None = None,
    ) -> None:
        self._objective, self._at, self._indices = objective, at, indices
        self._support = to_numpy(indices)
        point, gradient, diagonal = (
            to_numpy(x).astype(np.float64) for x in (at.point, at.gradient, objective.hessian_diag(at))
        )
        length = np.sqrt(np.maximum(diagonal, 0.0))
        self._scale = np.where(length > 0, 1 / np.where(length > 0, length, 1.0), 0.0)
        self._eps = float(np.finfo(to_numpy(at.point).dtype).eps)
        self._bounds = None if bounds is None else np.where(length > 0, bounds, 0.0) * length
        self._point = point * length
        self._coef = self._point[self._support]
        self._gradient = gradient * self._scale
        self._chosen = self._support if held is None else np.union1d(self._support, held)
        self._block, self._places = self._hessian(self._chosen), np.searchsorted(self._chosen, self._support)
        block = self._block[np.ix_(self._places, self._places)]
        self._factor = inverse_factor(block, self._eps)
        self._dependent = np.flatnonzero(~self._factor.any(axis=1))
        self._own = self._factor.T @ block  # the support's columns in the orthonormal basis
        self._fitted = self._own @ self._coef  # the minimiser in the orthonormal basis
        condition = float(np.max(np.linalg.norm(self._factor, axis=1), initial=1.0))
        self._rounding = self._eps * max(1, self._support.size) * condition

    def candidates(self, numbers: np.ndarray) -> Iterator[Candidates]:
        """Yield the single columns that may join the support.

        Parameters
        ----------
        numbers : array of int, shape (d,)
            0, 1, 2, ..., with a negative number in place of those that may not join.
        """
        columns = numbers[(numbers >= 0) & (self._scale > 0)]
        ones = np.ones((columns.size, 1, 1))
        yield Candidates(columns, columns[:, None], ones, ones[:, :, 0], 0.0 * ones[:, :, 0])

    def decreases(self, candidates: Candidates, removal: Removal) -> np.ndarray:
        """Return lower bounds of the decrease when each candidate joins after a removal: without a refit."""
        columns = candidates.columns[:, 0]
        box = None if self._bounds is None else self._bounds[:, columns]
        decreases: np.ndarray = 0.5 * twice_gains(-removal.gradient[columns], np.ones(columns.size), box) - removal.cost
        return decreases

    def cost(self, columns: np.ndarray) -> float:
        """Return the increase of the model when some columns leave the support, or some of those held."""
        if not np.isin(columns, self._support).all():
            step = self._leaving(columns)
            return 0.5 * float(step @ self._block @ step) - float(self._gradient[columns] @ self._point[columns])
        coef = self._lost_basis(columns).T @ self._fitted
        return 0.5 * float(coef @ coef)

    def removal(self, columns: np.ndarray) -> Removal:
        """Return the model after some columns have left the support, or some of those held."""
        if not np.isin(columns, self._support).all():
            image = self._image(self._chosen, self._leaving(columns))
            return Removal(self.cost(columns), self._gradient - image, np.zeros((image.size, 0)))
        basis = self._lost_basis(columns)
        coef, lost = basis.T @ self._fitted, self._images_of(basis)
        return Removal(0.5 * float(coef @ coef), self._gradient - lost @ coef, lost)

    def _leaving(self, columns: np.ndarray) -> np.ndarray:
        """Return what the chosen coefficients lose when held columns leave and the support is refitted."""
        step = np.zeros(self._chosen.size)
        step[np.searchsorted(self._chosen, columns)] = self._point[columns]
        step[self._places] -= self._factor @ (self._factor.T @ (self._block @ step)[self._places])
        return step

    def _lost_basis(self, columns: np.ndarray) -> np.ndarray:
        """Return an orthonormal basis of what the span of the support loses with some columns, shape (r, m)."""
        places = np.searchsorted(self._support, columns)
        basis = np.linalg.qr(self._factor[np.setdiff1d(places, self._dependent)].T)[0]
        others = np.setdiff1d(self._dependent, places)
        if others.size and basis.size:  # columns that depended on those that leave keep a part of the span
            left, sizes, _ = np.linalg.svd(basis.T @ self._own[:, others])
            basis = basis @ left[:, int(np.sum(sizes > CERTAIN * MARGIN * self._rounding)) :]
        return basis

    def _images_of(self, basis: np.ndarray) -> np.ndarray:
        """Return the inner products of all columns with directions in the orthonormal basis, shape (d, m)."""
        images = [self._image(self._support, direction) for direction in (self._factor @ basis).T]
        return np.reshape(images, (-1, self._scale.size)).T

    def _image(self, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return the inner products of all columns with a combination of some, shape (d,)."""
        direction = scatter(self._as_point(self._scale[columns] * coef), move(columns, self._indices), self._scale.size)
        image: np.ndarray = self._scale * to_numpy(self._objective.curvature(self._at, direction))
        return image

    def _hessian(self, columns: np.ndarray) -> np.ndarray:
        """Return the Hessian of some columns, increasing, with unit diagonal."""
        if columns.size == 0:
            return np.zeros((0, 0))
        small, at = self._small(columns)
        scale = self._scale[columns]
        hessian: np.ndarray = to_numpy(small.hessian(at)).astype(np.float64) * scale[:, None] * scale
        return hessian

    def _small(self, columns: np.ndarray) -> tuple[Any, Evaluation]:
        """Return the objective of some columns, increasing, evaluated at the point."""
        indices = move(columns, self._indices)
        small = self._objective.columns(indices)
        return small, small.evaluate(gather(self._at.point, indices), self._at.prediction)

    def _as_point(self, v: np.ndarray) -> Array:
        """Return a vector in the library and the precision of the point."""
        return move(v.astype(to_numpy(self._at.point[:0]).dtype), self._at.point)
