"""Linear models of any smooth loss over a table in blocks; the working set is stored with the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation
from hardthresh.core.registry import register
from hardthresh.designs import Serial, from_arrays
from hardthresh.designs.engine import Engine
from hardthresh.losses import Loss, Squared

from .block_folds import BlockFolds, by_fold
from .block_rows import Point, powers_of_two
from .blocked import Blocked, Memory
from .blocked_least_squares import BlockedLeastSquares
from .blocked_recession import falling_beyond
from .composite import as_loss
from .first_reading import FirstReading, read_first
from .guess import Guess, simple_guess, some_rows
from .kept_columns import KeptColumns, KeptModel
from .readings import Sums, Task, expansions, newton
from .row_sums import RowSums, quantile_of, row_sums, rows_near
from .table_moments import Units


def _examples(loss: str) -> list[BlockedLeastSquares | BlockedModel]:
    """Return models of a loss for the conformance tests: 12 coordinates, 30 rows in three blocks; one has weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 12))
    y = as_loss(loss).example_target(0.4 * (X[:, 3] - X[:, 8]), rng)
    weights, offset = rng.integers(0, 3, 30).astype(float), 0.1 * rng.standard_normal(30)
    weighted = from_arrays(X[:, :11], y, sample_weight=weights, offset=offset, rows=12)
    return [
        blocked_model(Serial(from_arrays(X, y, rows=12)), loss, l2=rng.uniform(0.0, 1.0, 12), intercept=False),
        blocked_model(Serial(weighted), loss, l2=0.1),
    ]


@register("objective", "blocked_model", lambda: [*_examples("logistic"), *_examples("poisson")])
class BlockedModel(Blocked):
    """A linear model of any smooth loss over a table in blocks, with the working set stored with the blocks.

    Parameters
    ----------
    engine : Engine
        The blocks, and the workers that process them.
    loss : Loss
        Any loss of one prediction for each row, without a kink.
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
        self._kept, self._diagonals = KeptColumns(engine, units, first), Memory()
        self._targets: dict[Any, float] = {}

    @property
    def members(self) -> np.ndarray:
        return self._kept.index

    def typical_curvature(self) -> np.ndarray:
        null = self.guessed[0].point if self.guessed else self.zeros()
        none = np.empty(0, dtype=np.int64)
        return self._diagonal(self.columns(none).mean_curvature(null) * self._squares)

    def columns(self, indices: np.ndarray) -> KeptModel:
        """Return the model of some columns: one reading if some of them are not kept yet."""
        return KeptModel(self._kept, self.units, self.loss, self.moments, self.l2, indices, self._meter)

    def hessian_diag(self, at: Evaluation) -> np.ndarray:
        """Return the diagonal of the Hessian: a reading, unless all examples have the same second derivative."""
        bend = self._constants(at.point, self.loss.curvature)
        if bend is not None and bend[1] == 0.0:
            return self._diagonal(bend[0] * self._squares)
        key = at.point.tobytes()
        if key not in self._diagonals:
            self.expand([at.point])  # with what whoever asks for the diagonal asks for next
        return self._diagonal(self._diagonals[key])

    def _is_expanded(self, w: np.ndarray) -> bool:
        return super()._is_expanded(w) and w.tobytes() in self._diagonals

    def _expansion(self, points: Sequence[np.ndarray]) -> tuple[Task, tuple[Any, ...]]:
        units = self.units
        unit = [self._unit_points(self._own_coordinates(w)) for w in points]
        self._meter.add(len(points) + sum(map(len, unit)) * (1.0 + 1.0 / units.size))
        factor = powers_of_two(units.inverse_scale, units.dtype)
        return expansions, ([units.point(w) for w in points], unit, self.loss, units.mean, factor)

    def _remember_expansion(self, points: Sequence[np.ndarray], *sums: np.ndarray) -> None:
        units, (square, products, slopes) = self.units, sums
        self._diagonals.clear()
        start = len(points)
        for i, w in enumerate(points):
            own = slice(start, start := start + self._own_coordinates(w).size)
            inner = square[:, i] * units.inverse_scale**2
            total = np.append(inner, slopes[i]) if units.intercept else inner
            self._diagonals[w.tobytes()] = total / units.total
            self._images[w.tobytes()] = self._gradients(slopes[own], products[:, own], units.mean)

    def with_loss(self, loss: Loss) -> Self:
        """Return the model of another loss of the same kind, with the stored columns: no reading.

        What is known of all columns at points is lost with the loss: in `guessed` these have the value infinity.
        """
        if loss == self.loss:
            return self
        other = copy(self)
        other.loss, other.lower_bound, other.convex = loss, float(loss.lower_bound), bool(loss.convex)
        other._memory, other._images, other._diagonals = Memory(), Memory(), Memory()
        other.guessed = tuple(replace(at, value=inf, gradient=0.0 * at.gradient) for at in self.guessed)
        return other

    def mean_of_rows(self, w: np.ndarray, function: RowSums, *arguments: Any) -> Sums:
        """Return the weighted means over rows of a function of targets and predictions: no reading.

        Parameters
        ----------
        w : array, shape (d,)
            A point; its columns are read if they are not stored yet.
        function : callable
            ``function(y, u, weight, *arguments)`` returns sums over some rows, of targets, predictions and weights.
        *arguments : object
            More arguments of the function, which can be pickled.
        """
        point = self._kept.point(np.asarray(w, dtype=np.float64))
        self._meter.add(point.columns.size / self.units.size)
        return tuple(part / self.units.total for part in self._kept.sums(row_sums, point, function, arguments))

    def rows_near(self, w: np.ndarray, indices: np.ndarray, distance: float) -> tuple[float, float, int]:
        """Return the shares of the rows within and beyond a distance from their predictions: no reading.

        The third number counts the distinct targets with some coordinates of the first rows; those that share a hash of
        16 bits are taken for one.
        """
        kept, inner = self._kept, indices[indices < self.units.mean.size]
        point = kept.point(np.asarray(w, dtype=np.float64))
        weights, places = kept.sums(rows_near, point, kept.places(inner), distance)
        near, others = (weights / self.units.total).tolist()
        return near, others, int(np.count_nonzero(places))

    def target_quantile(self, quantile: float, about: float | None = None, *, without_offset: bool = True) -> float:
        """Return a quantile of the targets less the offset, exact to the last bit; see `quantile_of`: no reading.

        Parameters
        ----------
        quantile : float
            Above 0; infinity for the largest number.
        about : float, optional
            Of the distances from it; default: of the targets themselves.
        without_offset : bool
            Whether the offset is subtracted from the targets.
        """
        asked = quantile, about, without_offset
        if asked not in self._targets:
            self._targets[asked] = quantile_of(self._kept.sums, *asked)
        return self._targets[asked]

    def working_criterion(self, at: Evaluation) -> float:
        """Return minus twice the log-likelihood, or its substitute; see `Loss.working_criterion`."""
        return super().working_criterion(at) - 2.0 * self.n_examples * self.mean_saturated()

    def mean_saturated(self) -> float:
        """Return the mean log-likelihood of targets that are predicted exactly; see `Loss.saturated`."""
        if not self.loss.saturates:
            return 0.0
        if self.loss not in self._targets:
            self._targets[self.loss] = float(self.mean_of_rows(self.zeros(), _saturated, self.loss)[0])
        return self._targets[self.loss]

    def share_right(self, w: np.ndarray) -> float:
        """Return the weighted accuracy of the signs of the predictions, for targets 0 and 1."""
        return self._columns_at(w).share_right(w)

    @property
    def kept(self) -> KeptColumns:
        """The columns that are kept."""
        return self._kept

    def end_fit(self) -> None:
        """Release the columns that are kept, if they are large; those that are asked for later are read again."""
        self._kept = self._kept.after_fit(self.moments.n_rows)

    def _part_products(self, every: np.ndarray, columns: np.ndarray) -> np.ndarray:
        kept = self._kept
        kept.include(every)
        tasks = (newton, (kept.places(columns), Point.constant(0.0), Squared()))
        (sums,) = kept.sums(by_fold, *self.folds.arguments, tasks)
        self._meter.add(kept.index.size / self.units.size)
        return kept.in_units(columns, sums) / sums[:, -1:, -1:]

    def mean_curvature(self, at: Evaluation) -> float:
        """Return the mean of the second derivatives of the losses at a point, or their bound where it is zero."""
        return self._columns_at(at.point).mean_curvature(at.point) or float(self.loss.curvature_bound)

    def mean_dispersion(self, at: Evaluation) -> float:
        """Return the dispersion of the targets about a point; see `Loss.dispersion`."""
        return self._columns_at(at.point).mean_dispersion(at)

    def _columns_at(self, w: np.ndarray) -> KeptModel:
        """Return the model of the columns of a point."""
        return self.columns(self._own_coordinates(w))

    def recession(self, at: Evaluation, indices: np.ndarray) -> np.ndarray | None:
        """Return a direction along which f decreases indefinitely, or None: see `falling_beyond`."""
        return None if self.attains_bound() else falling_beyond(self, at, indices)

    def _constants(self, w: np.ndarray, function: Any) -> tuple[float, float] | None:
        """Return a and b for which a derivative of the loss is a + b y, where all predictions are the same.

        None where they are not, or where it is not linear in the target.
        """
        units = self.units
        if w[: units.mean.size].any() or self.moments.with_offset or not self.loss.linear_in_target:
            return None
        u = np.full(2, units.level + (float(w[-1]) if units.intercept else 0.0))
        one, two = function(np.array([1.0, 2.0]), u).tolist()  # targets in the domain of all losses with a log link
        return 2.0 * one - two, two - one

    def _known(self, w: np.ndarray) -> Evaluation | None:
        line = self._constants(w, self.loss.gradient)
        if line is None:
            return None
        units, found, slope = self.units, self.moments, line[1]
        mean = line[0] + slope * found.target_mean
        inner = (mean * (found.mean - units.mean) + slope * found.crossed) * units.inverse_scale
        gradient = (np.append(inner, mean) if units.intercept else inner) + self.l2 * w
        value = self._value_of_few(w)
        return None if value is None else Evaluation(w, value, gradient.astype(units.dtype))


def _saturated(y: np.ndarray, u: np.ndarray, weight: np.ndarray, loss: Loss) -> Sums:
    """Return the sum of the log-likelihoods of targets that are predicted exactly."""
    return (np.asarray(weight @ loss.saturated(y)),)


def blocked_model(
    engine: Engine,
    loss: str | Loss = "squared",
    *,
    l2: Any = 0.0,
    intercept: bool = True,
    scale: bool = True,
    centre: bool | None = None,
    guess: Guess | None = None,
    products: bool = False,
    folds: BlockFolds | None = None,
) -> BlockedLeastSquares | BlockedModel:
    r"""Return the model of a table in blocks, after one reading (one pass over the table).

    It is the objective of `LinearModel` on standardised columns. A point has one coordinate for each column and, last,
    the intercept minus `units.level`.

    Parameters
    ----------
    engine : Engine
        The blocks, and the workers that process them.
    loss : str or Loss
        "squared", "logistic", "poisson", ..., or an instance.
    l2 : float or array, shape (d,) or (d + 1,)
        The ridge on standardised coordinates.
    intercept, scale : bool
        Whether there is an intercept, and whether columns are scaled.
    centre : bool, optional
        Whether columns are centred; default: with an intercept.
    guess : Guess, optional
        Statistics of a sample of rows, which guide the first reading. Default: only the means of the columns in the
        sample.
    products : bool
        For squared errors, whether the first reading computes the products of all columns, so that it is the last.
    folds : BlockFolds, optional
        The folds of a cross-validation; sums over the rows of each fold are stored separately.

    Returns
    -------
    BlockedLeastSquares or BlockedModel

    Raises
    ------
    InvalidInputError
        For NaN or infinity, targets outside the domain, negative weights, or a ridge that is negative.
    CapabilityError
        For a loss of several predictions, of all examples at once, or with a kink.

    Notes
    -----
    A reading is one pass over all blocks of the table. Cost: the gradients at up to 32 points take one reading. A model
    of some `columns` takes one reading for the columns that are new. For squared errors their products are stored; for
    other losses the columns themselves are stored with the blocks, in memory or in a scratch file. The methods of this
    model read nothing more.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.designs import Serial, from_arrays
    >>> from hardthresh.objectives import blocked_model
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 300))
    >>> y = X[:, [3, 50]] @ [1.0, -2.0] + 0.1 * rng.standard_normal(5000)
    >>> model = blocked_model(Serial(from_arrays(X, y, rows=1024)))
    >>> minimize(model, Sparsity(2, free=(300,))).support
    Coordinates([3, 50, 300])
    """
    read = as_loss(loss)
    if read.kink() is not None:
        raise CapabilityError(
            f"the {type(read).__name__} loss has a kink, and is not computed over blocks; use a loss without, such as "
            "Huber(), or rows in memory"
        )
    begun = engine.readings
    guess = simple_guess(some_rows(engine), read) if guess is None else guess
    if products and read.quadratic:
        every = np.arange(engine.blocks.n_columns)
        guess = Guess(guess.shift, guess.scale, guess.level, every, guess.points, guess.support)
    first = read_first(engine, read, guess, folds)
    found = first.moments
    level = float(found.target_mean) if read.quadratic else guess.level
    units = Units.of(
        found,
        level=level,
        intercept=intercept,
        scale=scale,
        centre=intercept if centre is None else centre,
        dtype=engine.blocks.dtype,
    )
    ridge = np.asarray(double(np.asarray(l2)), dtype=np.float64)
    if ridge.ndim == 1 and intercept and ridge.size == units.size - 1:
        ridge = np.append(ridge, 0.0)
    if ridge.ndim == 0 and intercept:
        ridge = np.append(np.full(units.size - 1, float(ridge)), 0.0)
    kind = BlockedLeastSquares if read.quadratic else BlockedModel
    return kind(engine, read, units, ridge, first, begun, folds)


register("objective", "blocked_least_squares", lambda: _examples("squared"))(BlockedLeastSquares)
