"""The base class of linear models of a table in blocks, which stores no array with an entry for each row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import inf
from typing import Any, Self

import numpy as np

from hardthresh.arrays import double, scatter
from hardthresh.core.errors import CapabilityError
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, Evaluation, Traits
from hardthresh.designs.engine import Engine
from hardthresh.losses import Loss

from .block_folds import BlockFolds
from .block_rows import ROWS, Point
from .first_reading import FirstReading
from .fold_sums import SumsByFold
from .inputs import checked_ridge
from .readings import Sums, Task, curve, curve_along, look, together
from .sandwich import sandwich
from .shared import OneNumberPerRow, ScreenedExactly
from .table_moments import Units

MOST_POINTS = 32
"""Points of one reading: they share one product with X, whose result has d numbers for each. They take 0.5 to 0.65
CPU s for each GB, 16 of them 0.33 and one 0.06: less than a second reading. A path of 1 to 30 columns is one look."""
REMEMBERED = 64
"""Points whose evaluations are remembered, the last ones: a run asks again about those of its last iterations."""
_ROOM = 1 << 22
"""Most entries of what is read of Hessians together, and of what it takes beside some rows: 32 MB. Of 400 columns there
is room for those at 585 points with three of them and an intercept."""


class Memory(dict[bytes, Any]):
    """What is known at points. It can be read again, and is no part of a state."""

    def __reduce__(self) -> Any:
        return Memory, ()


class Blocked(OneNumberPerRow, ScreenedExactly, SumsByFold):
    """Base of the linear models over blocks; see `blocked_model`.

    There is no prediction to reuse: a block makes it anew from the few coefficients that are not zero.
    """

    share = 1.0
    """The share of the examples, by weight, that information criteria count."""

    def __init__(
        self,
        engine: Engine,
        loss: Loss,
        units: Units,
        l2: Any,
        first: FirstReading,
        begun: int,
        folds: BlockFolds | None = None,
    ) -> None:
        self.folds = BlockFolds.none() if folds is None else folds
        self.parts, self.whole_weights = first.parts, first.whole
        self.engine, self.loss, self.units, self.moments, self._begun = engine, loss, units, first.moments, begun
        self.l2 = np.full(units.size, double(checked_ridge(l2, np.zeros(1), units.size)))
        self.n_examples = self.total_weight = first.moments.total
        self.lower_bound, self.convex = float(loss.lower_bound), bool(loss.convex)
        self._memory, self._images, self._meter = Memory(), Memory(), Meter()
        points = [units.coordinates(point) for point in first.points]
        self.guessed = tuple(self._remembered(w, first.looks, i, first.centre) for i, w in enumerate(points))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of w, the intercept included."""
        return (self.units.size,)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic if the loss is; a reading is expensive."""
        return Traits(quadratic=self.loss.quadratic, n_rows=self.moments.n_rows, reading_is_dear=True)

    @property
    def readings(self) -> int:
        """Readings of the table for this model so far, the first one included."""
        return self.engine.readings - self._begun

    @property
    def passes(self) -> float:
        """Data passes so far, those of the first reading that evaluated points among them."""
        return self._meter.passes + len(self.guessed)

    def end_fit(self) -> None:
        """Release what is kept at the blocks, if it is large: here nothing is."""

    def zeros(self) -> np.ndarray:
        """Return w = 0."""
        return np.zeros(self.units.size, dtype=self.units.dtype)

    def attains_bound(self) -> bool:
        """Return whether every loss has a finite minimiser, or every coordinate a ridge."""
        return self.moments.attain_bound(self.l2)

    def evaluate(self, w: np.ndarray, prediction: Any = None) -> Evaluation:
        """Return value and gradient at w: one reading, unless it was asked about before."""
        return self.evaluate_many([w])[0]

    def evaluate_many(self, points: Sequence[np.ndarray]) -> list[Evaluation]:
        """Return value and gradient at several points: one reading for 32 of them."""
        found: dict[bytes, Evaluation] = {}
        asked = []
        for w in points:
            key = w.tobytes()
            if key in found:
                continue
            if key in self._memory:
                found[key] = self._memory[key][0]
            elif (known := self._known(w)) is not None:
                found[key] = known
            else:
                found[key] = Evaluation(w, inf, w)  # until it is read
                asked.append(w)
        for start in range(0, len(asked), MOST_POINTS):
            some = asked[start : start + MOST_POINTS]
            linear, centre = [self.units.point(w) for w in some], self.units.centre
            looks = self.engine.sweep(look, linear, self.loss, centre)
            self._meter.add(len(some) + sum(point.columns.size for point in linear) / self.units.size)
            for i, w in enumerate(some):
                found[w.tobytes()] = self._remembered(w, looks, i, centre)
        return [Evaluation(w, found[w.tobytes()].value, found[w.tobytes()].gradient) for w in points]

    def remembers(self, w: np.ndarray) -> bool:
        """Return whether the evaluation of a point is one of the last, so that it takes no reading."""
        return w.tobytes() in self._memory

    def value(self, w: np.ndarray, prediction: Any = None) -> float:
        """Return f(w): a reading only if it has columns that are not known here."""
        key = w.tobytes()
        if key in self._memory:
            return float(self._memory[key][0].value)
        known = self._value_of_few(w)
        return self.evaluate(w).value if known is None else known

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding; see `Composite.rounding`."""
        terms = self._memory[key][1] if (key := at.point.tobytes()) in self._memory else abs(at.value)
        return UNITS * float(np.finfo(self.units.dtype).eps) * (terms + 0.5 * self._ridge(at.point))

    def curvature(self, at: Evaluation, direction: np.ndarray) -> np.ndarray:
        """Return the Hessian at an evaluated point times a direction: one reading.

        That of directions along the coordinates of the point, the intercept among them, is one for all of them.
        """
        own = self._own_coordinates(at.point)
        if np.isin(np.flatnonzero(direction), own).all():
            image = self._images_of(at.point) @ np.asarray(direction[own], dtype=np.float64)
        else:
            line, units = self.units.point(direction, level=0.0), self.units
            slopes, products = self.engine.sweep(curve, units.point(at.point), [line], self.loss, units.centre)
            self._meter.add(1 + line.columns.size / units.size)
            image = units.gradient(products[:, 0], slopes[0], units.centre)
        image = np.asarray(image + self.l2 * direction)
        return image.astype(self.units.dtype, copy=False)

    def _own_coordinates(self, w: np.ndarray) -> np.ndarray:
        """Return the coordinates of a point that are not zero, and the intercept."""
        d = self.units.mean.size
        return np.flatnonzero(np.append(w[:d] != 0, [True] * self.units.intercept))

    def _images_of(self, w: np.ndarray) -> np.ndarray:
        """Return the Hessian of the mean loss for each coordinate of a point, in columns: one reading, remembered."""
        if w.tobytes() not in self._images:
            unit = self._unit_points(self._own_coordinates(w))
            slopes, products = self.engine.sweep(curve, self.units.point(w), unit, self.loss, self.units.centre)
            self._meter.add(len(unit) * (1.0 + 1.0 / self.units.size))
            self._images.clear()
            self._images[w.tobytes()] = self._gradients(slopes, products, self.units.centre)
        images: np.ndarray = self._images[w.tobytes()]
        return images

    def _unit_points(self, coordinates: np.ndarray) -> list[Point]:
        """Return the linear predictor of some coordinates."""
        size = self.units.size
        unit = (scatter(np.ones(1), np.array([j]), size) for j in coordinates)
        return [self.units.point(e, level=0.0) for e in unit]

    def _gradients(self, slopes: np.ndarray, products: np.ndarray, centre: np.ndarray | None) -> np.ndarray:
        """Return gradients of the mean loss, in columns."""
        columns = [self.units.gradient(products[:, i], slopes[i], centre) for i in range(slopes.size)]
        return np.column_stack(columns) if columns else np.empty((self.units.size, 0))

    def expand(self, points: Sequence[np.ndarray]) -> None:
        """Read what is asked about several points next: values, gradients, and the Hessian in its own coordinates.

        It is one reading, unless all is known of the first point; of as many of the first points as it has room for.
        They are remembered until others are read.
        """
        if not points or self._is_expanded(points[0]):
            return
        sizes = np.array([self._own_coordinates(w).size for w in points])
        room = _ROOM // max(self.units.size, ROWS)
        some = points[: max(1, int(np.searchsorted(np.cumsum(sizes + 3), room, side="right")))]
        tasks, looks = [self._expansion(some)], not all(self.remembers(w) for w in some)
        if looks:
            linear = [self.units.point(w) for w in some]
            tasks.append((look, (linear, self.loss, self.units.centre)))
            self._meter.add(len(some) + sum(point.columns.size for point in linear) / self.units.size)
        sums = self.engine.sweep(together, *tasks)
        self._images.clear()
        self._remember_expansion(some, *sums[: -4 if looks else None])
        for i, w in enumerate(some if looks else ()):
            self._remembered(w, sums[-4:], i, self.units.centre, max(REMEMBERED, len(some)))

    def _is_expanded(self, w: np.ndarray) -> bool:
        """Return whether all that `expand` reads is known of a point."""
        return w.tobytes() in self._images and self.remembers(w)

    def _expansion(self, points: Sequence[np.ndarray]) -> tuple[Task, tuple[Any, ...]]:
        """Return the task, with its arguments, that reads the Hessians at several points in their own coordinates."""
        raise NotImplementedError

    def _remember_expansion(self, points: Sequence[np.ndarray], *sums: np.ndarray) -> None:
        """Remember what it returned."""
        raise NotImplementedError

    def curvature_along(self, at: Evaluation, direction: np.ndarray) -> float:
        """Return direction' H direction: a reading of the columns of both, if new ones are among them."""
        own = np.flatnonzero(direction)
        if self._are_members(own):
            part = direction[own]
            return float(part @ (self.columns(own).hessian(at) @ part))
        line, point = self.units.point(direction, level=0.0), self.units.point(at.point)
        columns = np.union1d(line.columns, point.columns)
        line, point = (one._replace(columns=np.searchsorted(columns, one.columns)) for one in (line, point))
        (square,) = self.engine.sweep(curve_along, point, [line], self.loss, columns=columns)
        self._meter.add(columns.size / self.units.size)
        return float(square[0]) / self.units.total + self._ridge(direction)

    def squared_effects(
        self, w: np.ndarray, indices: np.ndarray, inverse: np.ndarray, frequency: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the `squared_effects` of all rows on some coordinates: one reading of their columns.

        Parameters
        ----------
        w : array, shape (d,)
            A point of these coordinates.
        indices : array of int, shape (s,)
            The coordinates, increasing.
        inverse : array, shape (s, s)
            The inverse of the Hessian in them.
        frequency : bool
            Whether weights say how often rows are repeated.
        """
        inner, point = indices[indices < self.units.mean.size], self.units.point(w)
        scaled = self.units.scaled(inner)._replace(columns=np.arange(inner.size))
        point = point._replace(columns=np.searchsorted(inner, point.columns))
        given = scaled, inner.size < indices.size, point, self.loss, self.units.total, frequency, inverse
        squares, decided = self.engine.sweep(sandwich, *given, columns=inner)
        self._meter.add(inner.size / self.units.size)
        return squares, decided > 0

    def mean_curvature(self, at: Evaluation) -> float:
        """Return the mean of the second derivatives of the losses at a point."""
        raise NotImplementedError

    @property
    def members(self) -> np.ndarray:
        """The columns about whose model nothing has to be read, increasing."""
        raise NotImplementedError

    def typical_curvature(self) -> np.ndarray:
        """Return the mean curvature of the losses at the null model times that of each column: no reading."""
        raise NotImplementedError

    def columns(self, indices: np.ndarray) -> Any:
        """Return the model of some columns, by increasing index: one reading if some of them are new."""
        raise NotImplementedError

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return the Hessian; for models of few columns."""
        hessian: np.ndarray = self._by_columns().hessian(at)
        return hessian

    def cross_hessian(self, at: Evaluation, other: Any) -> np.ndarray:
        """Return the block of the Hessian between all columns and those of a part."""
        crossed: np.ndarray = self._by_columns().cross_hessian(at, other)
        return crossed

    def _by_columns(self) -> Any:
        """Return the model of all columns, of which all are kept."""
        return self.columns(np.arange(self.units.size))

    def double(self) -> Self:
        """Return the model: its sums are in double precision."""
        return self

    def metered(self, meter: Meter) -> Self:
        """Return the same objective, adding the data passes that it makes to a meter."""
        other = copy(self)
        other._meter = meter
        return other

    def read(self, task: Task, *arguments: Any, products: int) -> Sums:
        """Return the sums of a task over the table, which multiplies it with so many right-hand sides: one reading."""
        self._meter.add(products)
        return self.engine.sweep(task, *arguments)

    def with_ridge(self, l2: Any) -> Self:
        """Return the same model with another ridge: what was read serves both."""
        other = copy(self)
        other.l2 = np.full(self.units.size, double(checked_ridge(l2, np.zeros(1), self.units.size)))
        other._memory, other._images = Memory(), Memory()
        change = other.l2 - self.l2
        other.guessed = tuple(other._ridged(at, change) if at.value < inf else at for at in self.guessed)
        return other

    def _ridged(self, at: Evaluation, change: np.ndarray) -> Evaluation:
        """Return an evaluation with another ridge, and remember it."""
        w = np.asarray(at.point, dtype=np.float64)
        gradient = (at.gradient + change * w).astype(self.units.dtype)
        new = Evaluation(at.point, at.value + 0.5 * float(change @ (w * w)), gradient)
        self._memory[at.point.tobytes()] = new, abs(new.value)
        return new

    def with_loss(self, loss: Loss) -> Self:
        """Return the model of another loss; of squared errors, whose products serve no other, only the model itself.

        Raises
        ------
        CapabilityError
            For another loss.
        """
        if loss == self.loss:
            return self
        raise CapabilityError("the products of squared errors are of no other loss; fit the model again with that loss")

    def with_examples(self, count: float) -> Self:
        """Return the same objective of weights that stand for `count` examples: f is the same, criteria are not."""
        other = copy(self)
        other.n_examples = float(count)
        return other

    def minus_twice_log_likelihood(self, at: Evaluation) -> float:
        """Return minus twice the log-likelihood, without the ridge, up to a constant of the data: no reading.

        Raises
        ------
        CapabilityError
            For losses without a likelihood.
        """
        if not self.loss.has_likelihood:
            raise self.loss.no_likelihood()
        return self.working_criterion(at)

    def working_criterion(self, at: Evaluation) -> float:
        """Return minus twice the log-likelihood, or what ranks fits in its place; see `Loss.working_criterion`."""
        return self.loss.criterion_of_mean(at.value - 0.5 * self._ridge(at.point), self.n_examples)

    @property
    def _squares(self) -> np.ndarray:
        """The mean squares of the columns, and of the ones of the intercept."""
        return np.append(self.units.squares, 1.0) if self.units.intercept else self.units.squares

    def _diagonal(self, own: np.ndarray) -> np.ndarray:
        """Return the diagonal of the Hessian from that of the mean loss."""
        diagonal: np.ndarray = own + self.l2
        return diagonal.astype(self.units.dtype)

    def row_ridge(self) -> np.ndarray:
        """Return the ridge of each coordinate, shape (d,)."""
        return self.l2

    def _ridge(self, w: np.ndarray) -> float:
        """Return the sum of the squares of a point, times the ridge."""
        w = np.asarray(w, dtype=np.float64)
        return float(self.l2 @ (w * w))

    def _remembered(
        self, w: np.ndarray, looks: Any, i: int, centre: np.ndarray | None, most: int = REMEMBERED
    ) -> Evaluation:
        """Return the evaluation of a point from what `look` says of it, and remember it among the last ones."""
        values, terms, slopes, products = looks
        gradient = self.units.gradient(products[:, i], slopes[i], centre) + self.l2 * w
        value = float(values[i]) / self.units.total + 0.5 * self._ridge(w)
        at = Evaluation(w, value, gradient.astype(self.units.dtype))
        self._memory.pop(w.tobytes(), None)  # so that it is the last one
        self._memory[w.tobytes()] = at, float(terms[i]) / self.units.total
        while len(self._memory) > most:
            del self._memory[next(iter(self._memory))]
        return at

    def _known(self, w: np.ndarray) -> Evaluation | None:
        """Return the evaluation of a point that needs no reading; else None."""
        raise NotImplementedError

    def _value_of_few(self, w: np.ndarray) -> float | None:
        """Return the value of a point about whose columns nothing has to be read; else None."""
        chosen = np.flatnonzero(w)
        return (
            float(self.columns(chosen).value(np.asarray(w[chosen], dtype=np.float64)))
            if self._are_members(chosen)
            else None
        )

    def _are_members(self, coordinates: np.ndarray) -> bool:
        """Return whether nothing has to be read about the model of some coordinates."""
        return bool(np.isin(coordinates[coordinates < self.units.mean.size], self.members).all())
