"""Least squares over a table in blocks; of the working set, only the products of its columns are stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from hardthresh.core.objective import Evaluation
from hardthresh.designs.engine import Engine
from hardthresh.losses import Loss

from .block_folds import BlockFolds, by_fold
from .block_rows import Scaled
from .blocked import Blocked
from .first_reading import FirstReading
from .gram_model import GramModel
from .readings import Task, curve, gram
from .table_moments import Units


class BlockedLeastSquares(Blocked):
    """Least squares over a table in blocks; of the working set, only the products of its columns are stored.

    Parameters
    ----------
    engine : Engine
        The blocks, and the workers that process them.
    loss : Loss
        `Squared`.
    units : Units
        The standardised coordinates of points.
    l2 : array, shape (d,)
        The ridge of each coordinate.
    first : FirstReading
        The sums of the first pass over the table.
    begun : int
        The number of passes of the engine before the first.
    folds : BlockFolds, optional
        The folds; sums over the rows of each fold are stored separately.

    See Also
    --------
    blocked_model : Constructs this objective from blocks and a loss.
    """

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
        super().__init__(engine, loss, units, l2, first, begun, folds)
        found, d = first.moments, units.mean.size
        gap = found.target_mean - units.level
        self._square = found.target_variance + gap * gap
        self._cross = (found.crossed + (found.mean - units.mean) * gap) * units.inverse_scale
        if units.intercept:
            self._cross = np.append(self._cross, gap)
        self._store = _Products(units, first)
        self._cross[:d] *= units.inverse_scale > 0

    def hessian_diag(self, at: Evaluation) -> np.ndarray:
        """Return the diagonal of the Hessian: no reading."""
        return self._diagonal(self._squares)

    @property
    def members(self) -> np.ndarray:
        return np.sort(self._store.index)

    def typical_curvature(self) -> np.ndarray:
        return self._diagonal(self._squares)

    def columns(self, indices: np.ndarray) -> GramModel:
        """Return the model of some columns: one reading if the products of some of them are not known yet."""
        d, store = self.units.mean.size, self._store
        self._include(indices[indices < d])
        at = np.append(d, store.index) if self.units.intercept else store.index
        model = GramModel.of(
            store.gram(self.units.intercept), self._cross[at], self._square, self.l2[at], self.n_examples
        )
        return model.columns(self._places(indices))

    def _places(self, coordinates: np.ndarray) -> np.ndarray:
        """Return where some coordinates are among those whose products are known."""
        d = self.units.mean.size
        places = self._store.places(np.minimum(coordinates, d - 1))
        if not self.units.intercept:
            return places
        return np.where(coordinates == d, 0, places + 1)  # first: it stays there when columns are added

    def _include(self, columns: np.ndarray) -> None:
        """Have the products of some columns: one reading if there are new ones."""
        new = np.setdiff1d(columns, self._store.index)
        if new.size:
            self._store.extend(self.engine, self.folds, new)
            self._meter.add(new.size / self.units.size)

    def expand(self, points: Sequence[np.ndarray]) -> None:
        """Read the sums that the next evaluations need, unless the products of all columns are known."""
        if not self._knows_all():
            super().expand(points)

    def _expansion(self, points: Sequence[np.ndarray]) -> tuple[Task, tuple[Any, ...]]:
        unit = self._unit_points(self._own_coordinates_of(points))
        self._meter.add(len(unit) * (1.0 + 1.0 / self.units.size))
        return curve, (self.units.point(points[0]), unit, self.loss, self.units.centre)

    def _remember_expansion(self, points: Sequence[np.ndarray], *sums: np.ndarray) -> None:
        slopes, products = sums
        every, images = self._own_coordinates_of(points), self._gradients(slopes, products, self.units.centre)
        for w in points:
            self._images[w.tobytes()] = images[:, every.searchsorted(self._own_coordinates(w))]

    def _own_coordinates_of(self, points: Sequence[np.ndarray]) -> np.ndarray:
        """Return the coordinates of several points: the Hessian is the same at all of them."""
        return reduce(np.union1d, map(self._own_coordinates, points))

    def _images_of(self, w: np.ndarray) -> np.ndarray:
        if not self._knows_all():
            return super()._images_of(w)
        every, own = np.arange(self.units.size), self._own_coordinates(w)
        images: np.ndarray = self._store.gram(self.units.intercept)[np.ix_(self._places(every), self._places(own))]
        return images

    def _knows_all(self) -> bool:
        """Return whether the products of all columns are known."""
        return self._store.index.size == self.units.mean.size

    def _part_products(self, every: np.ndarray, columns: np.ndarray) -> np.ndarray:
        self._include(every)
        return np.stack([self._store.part_gram(part, columns) for part in range(len(self.parts))])

    def mean_curvature(self, at: Evaluation) -> float:
        """Return the mean of the second derivatives of the losses: 1."""
        return 1.0

    def mean_dispersion(self, at: Evaluation) -> float:
        """Return the mean square of the residuals at a point."""
        return 2.0 * (at.value - 0.5 * self._ridge(at.point))

    def recession(self, at: Evaluation, indices: np.ndarray) -> None:
        """Return None: least squares have a minimiser."""

    def _known(self, w: np.ndarray) -> Evaluation | None:
        if self._knows_all():
            at = self._by_columns().evaluate(np.asarray(w, dtype=np.float64))
            return Evaluation(w, at.value, at.gradient.astype(self.units.dtype))
        if w[: self.units.mean.size].any():
            return None
        gradient = -self._cross + self.l2 * w
        value = 0.5 * self._square + 0.5 * self._ridge(w)
        if self.units.intercept:
            last = float(w[-1])
            gradient[-1] += last
            gradient[:-1] += last * (self.moments.mean - self.units.mean) * self.units.inverse_scale
            value += 0.5 * last * last - last * float(self._cross[-1])
        return Evaluation(w, value, gradient.astype(self.units.dtype))


def mean_products(units: Units, first: FirstReading) -> np.ndarray:
    """Return the mean products of the coordinates of a model whose first reading has those of all columns."""
    products = _Products(units, first)
    if not units.intercept:
        return products.gram(False)
    return np.roll(products.gram(True), -1, axis=(0, 1))


class _Products:
    """The products of the columns of a working set, in the order in which these came, and with a column of ones."""

    def __init__(self, units: Units, first: FirstReading) -> None:
        self._units, self._columns = units, first.members
        m = first.members.columns.size
        self._own = np.zeros((len(first.parts), m + 1, m + 1))
        if first.gram is not None:
            self._own[:, :-1] = first.gram
        self._own[:, -1, :-1], self._own[:, -1, -1] = self._own[:, :-1, -1], [part.total for part in first.parts]
        self._made: np.ndarray | None = None

    @property
    def index(self) -> np.ndarray:
        """The columns."""
        return self._columns.columns

    def places(self, columns: np.ndarray) -> np.ndarray:
        """Return where some columns are, by the order in which they came; of others the answer means nothing."""
        if not self.index.size:
            return np.zeros_like(columns)
        order = np.argsort(self.index)
        at = np.minimum(self.index.searchsorted(columns, sorter=order), self.index.size - 1)
        found: np.ndarray = order[at]
        return found

    def extend(self, engine: Engine, folds: BlockFolds, new: np.ndarray) -> None:
        """Add columns, increasing: one reading, of these and those before."""
        added = self._units.scaled(new)
        union = np.sort(np.concatenate([self.index, new]))
        every = Scaled(*(np.concatenate(pair) for pair in zip(self._columns, added, strict=True)))
        first, second = (one._replace(columns=np.searchsorted(union, one.columns)) for one in (added, every))
        (products,) = engine.sweep(by_fold, *folds.arguments, (gram, (first, second)), columns=union)
        m, count = self.index.size, new.size
        own = np.zeros((len(products), m + count + 1, m + count + 1))
        before = np.append(np.arange(m), m + count)
        own[:, before[:, None], before] = self._own
        own[:, m : m + count] = products
        own[:, :, m : m + count] = products.transpose(0, 2, 1)
        block = products[:, :, m : m + count]
        own[:, m : m + count, m : m + count] = 0.5 * (block + block.transpose(0, 2, 1))
        self._columns, self._own, self._made = every, own, None

    def gram(self, intercept: bool) -> np.ndarray:
        """Return the mean products of the coordinates of a model, with the intercept first if there is one."""
        if self._made is None:
            own = self._own.sum(axis=0)
            self._made = np.roll(self._in_units(own) / own[-1, -1], 1, axis=(0, 1))
        return self._made if intercept else self._made[1:, 1:]

    def part_gram(self, part: int, columns: np.ndarray) -> np.ndarray:
        """Return the mean products of some columns, with ones last, over the rows of a part."""
        at = np.append(self.places(columns), self.index.size)
        products: np.ndarray = self._in_units(self._own[part])[np.ix_(at, at)] / self._own[part, -1, -1]
        return products

    def _in_units(self, own: np.ndarray) -> np.ndarray:
        """Return sums of products in the coordinates of the model."""
        exact, units = self._units.scaled(self.index), self._units
        factor = units.inverse_scale[self.index] / self._columns.scale
        shift = (self._columns.centre - exact.centre) * units.inverse_scale[self.index]
        scale, ones = np.append(factor, 1.0), np.append(shift, 0.0)
        last = scale * own[:, -1]
        made = scale[:, None] * own * scale + np.outer(last, ones) + np.outer(ones, last)
        made += own[-1, -1] * np.outer(ones, ones)
        symmetric: np.ndarray = 0.5 * (made + made.T)
        return symmetric
