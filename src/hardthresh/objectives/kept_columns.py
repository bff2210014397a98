"""Columns that are kept where their blocks are, and the model of them, which needs no reading of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, Evaluation, Traits
from hardthresh.designs.engine import FOLD, Engine
from hardthresh.designs.scratch import MOST_IN_MEMORY
from hardthresh.losses import Loss
from hardthresh.losses.location import quotient

from .block_folds import BlockFolds, on_training_rows
from .block_rows import Point, Scaled
from .first_reading import FirstReading
from .inputs import checked_ridge
from .readings import Sums, dispersion, kept, look, newton, score
from .shared import ScreenedExactly
from .table_moments import TableMoments, Units, chosen_columns

_REMEMBERED = 64
"""Points of which is remembered what was found: a refit asks up to four times about one. Arbitrary."""
MOST_AFTER_A_FIT = MOST_IN_MEMORY
"""Bytes of kept columns that stay after a fit, wherever they are, so that what is read afterwards depends on the table
alone."""


class KeptColumns:
    """The columns of a working set, kept at the blocks; more are kept once they are asked for, by a reading.

    Parameters
    ----------
    engine : Engine
        Where the table is.
    units : Units
        The coordinates of the model.
    first : FirstReading
        What has been kept so far.
    """

    def __init__(self, engine: Engine, units: Units, first: FirstReading) -> None:
        self._engine, self._units = engine, units
        self._columns, self._parts = first.members, first.kept
        self._looks: dict[tuple[Loss, bytes], Sums] = {}

    def __getstate__(self) -> dict[str, Any]:
        none = self._units.scaled(np.empty(0, dtype=np.int64))
        return {**vars(self), "_columns": none, "_parts": None, "_looks": {}}

    @property
    def index(self) -> np.ndarray:
        """The columns that are kept, increasing."""
        return self._columns.columns

    def after_fit(self, n_rows: int) -> KeptColumns:
        """Return these columns, or none after those of many rows were released: what is asked for is then read again.

        Models of these columns can still be used; they keep all of theirs again.
        """
        if n_rows * self.index.size * np.dtype(self._units.dtype).itemsize <= MOST_AFTER_A_FIT:
            return self
        if self._parts is not None:
            self._parts.release()
        self._parts, self._looks = None, {}
        none = copy(self)
        none._columns, none._looks = self._units.scaled(np.empty(0, dtype=np.int64)), {}
        return none

    def have(self, columns: np.ndarray) -> bool:
        """Return whether some columns are kept."""
        return bool(np.isin(columns, self.index).all())

    def include(self, columns: np.ndarray) -> None:
        """Keep some more columns: one reading if there are new ones."""
        if self._parts is not None and self.have(columns):
            return
        union = np.union1d(self.index, columns)
        new = self._units.scaled(union)
        places = Scaled(np.arange(union.size), new.centre, new.scale)
        before, self._parts, self._looks = self._parts, None, {}
        if before is not None:  # first, so that there is never room taken for both
            before.release()
        self._columns, self._parts = new, self._engine.keep(kept, places, FOLD, columns=union)

    def sums(self, task: Any, *arguments: Any) -> Sums:
        """Return the sums of a task over what is kept."""
        self.include(self.index)
        found: Sums = self._engine.sweep(task, *arguments, on=self._parts)
        return found

    def looks(self, loss: Loss, points: Sequence[np.ndarray], look_at: Callable[[list[Point]], Sums]) -> Sums:
        """Return what `look` says of several points and a loss, those of which it is not remembered together.

        Points are asked about again: for their values, and for the rounding of these.

        Parameters
        ----------
        loss : Loss
            The loss.
        points : sequence of array, shape (d,)
            Points of the whole model.
        look_at : callable
            Returns what it says of some of them.
        """
        predictors = [self.point(w) for w in points]  # which may keep more columns, so that nothing is remembered
        keys = [(loss, _named(w)) for w in points]
        new = {key: one for key, one in zip(keys, predictors, strict=True) if key not in self._looks}
        if new:
            *of_points, products = look_at([*new.values()])
            for i, key in enumerate(new):
                self._looks[key] = (*(part[i] for part in of_points), products[:, i])
        found = [self._looks[key] for key in keys]
        while len(self._looks) > _REMEMBERED:
            del self._looks[next(iter(self._looks))]
        axes = (0, 0, 0, 1)  # of the points in values, terms, slopes and products
        return tuple(np.stack(parts, axis=axis) for axis, parts in zip(axes, zip(*found, strict=True), strict=True))

    def places(self, columns: np.ndarray) -> np.ndarray:
        """Return where some columns are among those that are kept."""
        found: np.ndarray = np.searchsorted(self.index, columns)
        return found

    def change(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a and b for which the coordinate z of a column is a times what is kept of it, plus b."""
        own, at = self._units.scaled(columns), self.places(columns)
        factor = self._units.inverse_scale[columns] / self._columns.scale[at]
        return factor, (self._columns.centre[at] - own.centre) * self._units.inverse_scale[columns]

    def in_units(self, columns: np.ndarray, products: np.ndarray) -> np.ndarray:
        """Return products of what is kept of some columns, and of ones, last, as those of the coordinates."""
        factor, shift = self.change(columns)
        change = np.diag(np.append(factor, 1.0))
        change[:-1, -1] = shift
        changed: np.ndarray = change @ products @ change.T
        return changed

    def point(self, full: np.ndarray) -> Point:
        """Return the linear predictor of a point of the whole model in terms of what is kept."""
        d = self._units.mean.size
        chosen = chosen_columns(full[:d])
        self.include(chosen)
        factor, shift = self.change(chosen)
        level = self._units.level + (full[d] if self._units.intercept else 0.0) + shift @ full[chosen]
        coef = (full[chosen].T * factor).T
        return Point(self.places(chosen), np.zeros(chosen.size), coef, level if coef.ndim > 1 else float(level))


class TrainingColumns(KeptColumns):
    """Kept columns of which the rows that a fold holds out do not count.

    Parameters
    ----------
    kept : KeptColumns
        All columns of all rows.
    units : Units
        The coordinates of the model.
    folds : BlockFolds
        The folds.
    fold : int
        Which rows do not count; -1 for none.
    """

    def __init__(self, kept: KeptColumns, units: Units, folds: BlockFolds, fold: int) -> None:
        self._engine, self._units, self._looks = kept._engine, units, {}
        self._columns, self._parts = kept._columns, kept._parts
        self.rows = (*folds.arguments, fold)

    def sums(self, task: Any, *arguments: Any) -> Sums:
        """Return the sums of a task over what is kept of the rows that count."""
        return super().sums(on_training_rows, *self.rows, task, arguments)

    def sums_of_rows(self, task: Any, *arguments: Any) -> Sums:
        """Return the sums of a task that takes the folds, and the one that does not count, itself."""
        return super().sums(task, *self.rows, *arguments)


class KeptModel(ScreenedExactly):
    """The model of some columns of a `BlockedModel`, all of which are kept.

    Parameters
    ----------
    columns : KeptColumns
        What is kept.
    units, loss, moments :
        Those of the whole model.
    l2 : array, shape (d,)
        The ridge of all coordinates.
    indices : array of int
        The coordinates that this model has, increasing.
    meter : Meter
        Its data passes.
    above : KeptModel, optional
        The model that this one is a part of, if not the whole one.
    """

    def __init__(
        self,
        columns: KeptColumns,
        units: Units,
        loss: Loss,
        moments: TableMoments,
        l2: np.ndarray,
        indices: np.ndarray,
        meter: Meter,
        above: KeptModel | None = None,
    ) -> None:
        self._columns, self._units, self.loss, self._moments, self._all = columns, units, loss, moments, l2
        self.indices, self._meter, self._above = indices, meter, above
        self.l2 = l2[indices]
        self.lower_bound = float(loss.lower_bound)
        d = units.mean.size
        self._inner = indices[indices < d]
        self._last = units.intercept and indices.size > self._inner.size
        columns.include(self._inner)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of a point of these columns."""
        return (self.indices.size,)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those of the whole model; kept columns are not dear."""
        return Traits(quadratic=self.loss.quadratic, n_rows=self._moments.n_rows)

    def attains_bound(self) -> bool:
        """Return whether every loss has a finite minimiser, or every coordinate a ridge."""
        return self._moments.attain_bound(self.l2)

    def zeros(self) -> np.ndarray:
        """Return the zero point."""
        return np.zeros(self.indices.size, dtype=self._units.dtype)

    def evaluate(self, w: np.ndarray, prediction: Any = None) -> Evaluation:
        """Return value and gradient at w: a sweep over kept columns."""
        return self.evaluate_many([w])[0]

    def evaluate_many(self, points: Sequence[np.ndarray]) -> list[Evaluation]:
        """Return value and gradient at several points: one sweep over kept columns for all of them."""
        if not points:
            return []
        values, _, slopes, products = self._look([self._full(w) for w in points])
        factor, shift = self._columns.change(self._inner)
        own, found = products[self._columns.places(self._inner)], []
        for i, (w, value) in enumerate(zip(points, values, strict=True)):
            inner = (factor * own[:, i].T).T + np.multiply.outer(shift, slopes[i])
            slope = (np.concatenate([inner, slopes[i][None]]) if self._last else inner) / self._units.total
            ridge = 0.5 * float(np.sum(self.l2 @ (np.asarray(w, dtype=np.float64) ** 2)))
            gradient = (slope.T + self.l2 * w.T).T.astype(self._units.dtype)
            found.append(Evaluation(w, float(value) / self._units.total + ridge, gradient))
        return found

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value may be rounding, as `Composite.rounding`."""
        values, terms, _, _ = self._look([self._whole(at)])
        eps = float(np.finfo(self._units.dtype).eps)
        return UNITS * eps * max(float(terms[0]) / self._units.total, abs(float(values[0])) / self._units.total)

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return the Hessian at a point of this model, or of one that it is a part of."""
        return self._hessian(at) + np.diag(self.l2)

    def _hessian(self, at: Evaluation) -> np.ndarray:
        point = self._columns.point(self._whole(at))
        (own,) = self._sums(newton, self._columns.places(self._inner), point, self.loss)
        hessian = self._columns.in_units(self._inner, own) / self._units.total
        return hessian if self._last else hessian[:-1, :-1]

    def mean_curvature(self, full: np.ndarray) -> float:
        """Return the mean of the second derivatives of the losses at a point of the whole model."""
        (own,) = self._sums(newton, np.empty(0, dtype=np.int64), self._columns.point(full), self.loss)
        return float(own[-1, -1]) / self._units.total

    def share_right(self, full: np.ndarray) -> float:
        """Return the share of the weight of rows whose target is on the side of its prediction, at a point of all."""
        _, right, _ = self._sums(score, [self._columns.point(np.asarray(full, dtype=np.float64))], self.loss, 0.0)
        return float(right[0]) / self._units.total

    def mean_dispersion(self, at: Evaluation) -> float:
        """Return the dispersion of the targets at a point, as `hessian`; NaN without curvature."""
        ((above, below),) = self._sums(dispersion, self._columns.point(self._whole(at)), self.loss)
        return quotient(float(above), float(below))

    def hessian_diag(self, at: Evaluation) -> np.ndarray:
        """Return the diagonal of the Hessian."""
        diagonal: np.ndarray = self.hessian(at).diagonal().astype(self._units.dtype)
        return diagonal

    def cross_hessian(self, at: Evaluation, other: KeptModel) -> np.ndarray:
        """Return the block of the Hessian between the columns of this model and those of another part of the same."""
        both = np.union1d(self.indices, other.indices)
        hessian = self._part(both)._hessian(Evaluation(self._whole(at), at.value, at.gradient))
        places = np.searchsorted(both, self.indices), np.searchsorted(both, other.indices)
        crossed: np.ndarray = hessian[np.ix_(*places)]
        return crossed

    def curvature(self, at: Evaluation, direction: np.ndarray) -> np.ndarray:
        """Return the Hessian times a direction."""
        image: np.ndarray = self.hessian(at) @ direction
        return image.astype(self._units.dtype)

    def columns(self, indices: np.ndarray) -> Self:
        """Return the model of some columns, by increasing index."""
        return self._part(self.indices[indices])

    def with_ridge(self, l2: Any) -> Self:
        """Return the same model with another ridge: a number, or an array of shape (s,)."""
        every = self._all.copy()
        every[self.indices] = double(checked_ridge(l2, np.zeros(1), self.indices.size))
        return type(self)(
            self._columns, self._units, self.loss, self._moments, every, self.indices, self._meter, above=self._above
        )

    def recession(self, at: Evaluation, indices: np.ndarray) -> None:
        """Return None: the whole model is asked."""

    def double(self) -> Self:
        """Return the model."""
        return self

    def _part(self, indices: np.ndarray) -> Self:
        return type(self)(
            self._columns, self._units, self.loss, self._moments, self._all, indices, self._meter, above=self
        )

    def _look(self, points: Sequence[np.ndarray]) -> Sums:
        """Return what `look` says of points of the whole model."""
        return self._columns.looks(self.loss, points, lambda some: self._sums(look, some, self.loss, count=len(some)))

    def _sums(self, task: Any, *arguments: Any, count: int = 1) -> Sums:
        """Return the sums of a task over what is kept, which multiplies it with so many vectors."""
        self._meter.add(count * self._columns.index.size / self._units.size)
        return self._columns.sums(task, *arguments)

    def _full(self, w: np.ndarray) -> np.ndarray:
        """Return the point of the whole model."""
        full = np.zeros((self._units.size, *w.shape[1:]))
        full[self.indices] = w
        return full

    def _whole(self, at: Evaluation) -> np.ndarray:
        """Return the point of the whole model at which this one, or one that it is a part of, was evaluated."""
        size = at.point.shape[0]
        if size == self._units.size:
            return np.asarray(at.point, dtype=np.float64)
        model: KeptModel | None = self
        while model is not None and model.indices.size != size:
            model = model._above
        assert model is not None  # a point of no model that this is a part of
        return model._full(at.point)


def _named(w: np.ndarray) -> bytes:
    """Return the name of a point: its columns and their coefficients."""
    chosen = np.flatnonzero(w)
    return chosen.tobytes() + w.ravel()[chosen].tobytes()
