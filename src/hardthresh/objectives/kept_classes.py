"""The log-loss of classes on columns that are kept, and what it has in common with that of all columns."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from hardthresh.core.objective import Evaluation, Traits
from hardthresh.core.support import Support
from hardthresh.losses import Multinomial, Squared

from .blocked_outputs import least_squares_of_products
from .class_fits import ClassFits, class_models
from .class_readings import class_block, class_newton, class_score, column_gram
from .kept_columns import KeptColumns, KeptModel, TrainingColumns
from .multi_output import MultiOutputModel
from .readings import Sums
from .shared import ScreenedExactly
from .table_moments import TableMoments, Units


class _Products(KeptModel):
    """The linear model of some columns and one output: least squares, whose Hessian is the products of columns."""

    def _hessian(self, at: Evaluation) -> np.ndarray:
        (own,) = self._sums(column_gram, self._columns.places(self._inner))
        products = self._columns.in_units(self._inner, own) / self._units.total
        return products if self._last else products[:-1, :-1]


class ColumnProducts:
    """The products of the columns of a table in blocks, of those that are asked for.

    Parameters
    ----------
    squares : array, shape (p,)
        The products of each with itself.
    part : callable
        Returns the products of some, from their places.
    """

    def __init__(self, squares: np.ndarray, part: Any) -> None:
        self._squares, self._part = squares, part
        self.shape = squares.shape

    def columns(self, indices: np.ndarray) -> _Products:
        """Return the model of some columns: a reading if some of them are not kept."""
        found: _Products = self._part(indices)
        return found

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return the products of all."""
        return self.columns(np.arange(self._squares.size)).hessian(at)

    def hessian_diag(self, at: Evaluation) -> np.ndarray:
        """Return the squares: no reading."""
        return self._squares


class Classes(ScreenedExactly):
    """What a model of all columns and one of some have in common: a matrix with a row of q coefficients for each."""

    loss: Multinomial
    l2: np.ndarray
    shape: tuple[int, ...]
    convex = True
    lower_bound = 0.0

    @property
    def coefficients_per_row(self) -> int:
        """The number of coefficients of a row: C - 1 of C classes, as equal ones for all change no loss."""
        return self.shape[1] - 1

    def rows_of(self, support: Support) -> np.ndarray:
        """Return the rows of a support of whole rows."""
        rows: np.ndarray = support.indices[:: self.shape[1]] // self.shape[1]
        return rows

    def row_ridge(self) -> np.ndarray:
        """Return the ridge of each row."""
        return self.l2

    def output_bound(self) -> float:
        """Return the largest second derivative of a row in any direction of its predictions."""
        return float(self.loss.curvature_bound)

    def centre(self, w: np.ndarray) -> np.ndarray:
        """Return coefficients of least norm of the same losses: those of all classes add up to 0."""
        centred: np.ndarray = self.loss.centre(w)
        return centred

    def double(self) -> Self:
        """Return the model: its sums are in double precision."""
        return self


class KeptClasses(Classes, KeptModel):
    """The model of some columns of a `BlockedClasses`, all of which are kept: nothing about it is a reading."""

    loss: Multinomial  # type: ignore[assignment]
    hessian_diag: ClassVar[None] = None  # type: ignore[assignment] # its coordinates are no columns: it is a RowObjective
    cross_hessian: ClassVar[None] = None  # type: ignore[assignment]
    _known: tuple[bytes, np.ndarray] | None = None
    """The point that was last asked about, and the Hessian there without the ridge: each product with it asks again."""
    _gram: np.ndarray | None = None
    """The products of the columns, once they were asked for."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of a point: a row for each column."""
        return (self.indices.size, int(self.loss.n_classes or 0))

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Not quadratic, a mean over the rows of the table."""
        return Traits(quadratic=False, n_rows=self._moments.n_rows)

    def zeros(self) -> np.ndarray:
        """Return the zero point."""
        return np.zeros(self.shape, dtype=self._units.dtype)

    @property
    def units(self) -> Units:
        """The coordinates of the whole model."""
        return self._units

    @property
    def moments(self) -> TableMoments:
        """The moments of the rows."""
        return self._moments

    def least_squares(self, at: Evaluation, into: np.ndarray, back: np.ndarray, l2: np.ndarray) -> MultiOutputModel:
        """Return least squares of rotated predictions that stands for the loss near an evaluated point.

        Parameters
        ----------
        at : Evaluation
            The point W.
        into, back : array, shape (q, r)
            The targets are U into - G back, for the predictions U of W, without the offset, and the slopes G there.
        l2 : array, shape (p,)
            The ridge of each row.
        """
        if self._gram is None:
            self._gram = self.column_products().hessian(at)
        point = np.asarray(at.point, dtype=np.float64)
        plain = np.asarray(at.gradient, dtype=np.float64) - self.l2[:, None] * point
        cross = self._gram @ point @ into - plain @ back
        known = np.zeros(into.shape[1]), l2, self._moments.total, self._units.dtype
        return least_squares_of_products(self._gram, cross, *known)

    def models(self, fits: ClassFits, axes: np.ndarray) -> Sums:
        """Return what `class_models` says of fits to the rows that a fold trains on."""
        assert isinstance(self._columns, TrainingColumns)
        self._meter.add(sum(own.size for own in fits.columns) * axes.shape[0] / self._units.size)
        return self._columns.sums_of_rows(class_models, fits, self.loss, axes)

    @property
    def kept(self) -> KeptColumns:
        """The columns that are kept."""
        return self._columns

    def column_products(self) -> Any:
        """Return the products of these columns."""
        squares = np.append(self._units.squares, 1.0)[self.indices]
        return ColumnProducts(squares, lambda some: self._products(self.indices[some]))

    def _products(self, indices: np.ndarray) -> _Products:
        every = np.zeros(self._units.size)
        return _Products(self._columns, self._units, Squared(), self._moments, every, indices, self._meter)

    def output_block(self, at: Evaluation) -> np.ndarray:
        """Return the mean second derivatives of the rows at an evaluated point, shape (q, q)."""
        (total,) = self._sums(class_block, self._columns.point(self._whole(at)), self.loss)
        return np.asarray(total / self._units.total)

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return the Hessian over the flat point, shape (sq, sq)."""
        return self._hessian(at) + np.diag(np.repeat(self.l2, self.shape[1]))

    def _hessian(self, at: Evaluation) -> np.ndarray:
        whole = self._whole(at)
        if self._known is None or self._known[0] != whole.tobytes():
            point = self._columns.point(whole)
            (own,) = self._sums(class_newton, self._columns.places(self._inner), point, self.loss)
            blocks = self._columns.in_units(self._inner, own) / self._units.total
            blocks = blocks if self._last else blocks[..., :-1, :-1]
            size = blocks.shape[0] * blocks.shape[-1]
            self._known = whole.tobytes(), blocks.transpose(2, 0, 3, 1).reshape(size, size)
        return self._known[1]

    def curvature_along(self, at: Evaluation, direction: np.ndarray) -> float:
        """Return direction' H direction."""
        return float(np.sum(direction * self.curvature(at, direction)))

    def curvature(self, at: Evaluation, direction: np.ndarray) -> np.ndarray:
        """Return the Hessian times a direction."""
        image: np.ndarray = (self.hessian(at) @ direction.ravel()).reshape(direction.shape)
        return image.astype(self._units.dtype)

    def scores(self, full: np.ndarray) -> Sums:
        """Return what `class_score` says of a point of the whole model."""
        return self._sums(class_score, self._columns.point(np.asarray(full, dtype=np.float64)), self.loss)
