"""The log-loss of classes over a table in blocks; the columns of the working set are stored with the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from hardthresh.arrays import double, inverse_semidefinite
from hardthresh.core.meter import Meter
from hardthresh.core.objective import UNITS, Evaluation, Traits
from hardthresh.core.registry import register
from hardthresh.designs import Serial, from_arrays
from hardthresh.designs.engine import Engine
from hardthresh.losses import Multinomial

from .block_folds import BlockFolds
from .block_rows import Point, powers_of_two
from .blocked import MOST_POINTS, REMEMBERED, Memory
from .blocked_recession import falling_beyond
from .class_readings import class_curve, class_curve_along, class_squares
from .first_reading import FirstReading, read_first
from .guess import Guess, simple_guess, some_rows
from .inputs import checked_ridge
from .kept_classes import Classes, ColumnProducts, KeptClasses
from .kept_columns import KeptColumns, TrainingColumns
from .readings import Sums, look, together
from .table_moments import Units, chosen_columns


def _examples() -> list[BlockedClasses]:
    """Return models for the conformance tests: 30 rows in three blocks, four classes; one has weights.

    They have fewer rows of coefficients than classes: gradients add up to 0 over these, so that in taller ones rounding
    would determine the last singular vectors.
    """
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.integers(0, 4, 30).astype(float)
    weights, offset = rng.integers(0, 3, 30).astype(float), 0.1 * rng.standard_normal((30, 4))
    weighted = from_arrays(X[:, :2], y, sample_weight=weights, offset=offset, rows=12)
    return [
        blocked_classes(Serial(from_arrays(X, y, rows=12)), 4, l2=0.3, intercept=False),
        blocked_classes(Serial(weighted), 4, l2=0.1),
    ]


@register("objective", "blocked_classes", _examples)
class BlockedClasses(Classes):
    r"""The mean log-loss of classes over a table in blocks; the columns of the working set are stored with the blocks.

    .. math:: f(W) = \frac{1}{\sum_i s_i} \sum_i s_i \Bigl(\log \sum_c e^{u_{ic}} - u_{i y_i}\Bigr)
              + \tfrac{1}{2} \sum_j \lambda_j \|w_j\|^2, \qquad u_i = W^\top z_i + o_i

    for the standardised columns z of a table in blocks: the `MultiOutputModel` of the loss `Multinomial`.

    Parameters
    ----------
    engine : Engine
        The blocks, and the workers that process them.
    loss : Multinomial
        The loss, with its number of classes.
    units : Units
        The standardised coordinates of points.
    l2 : float or array, shape (d,)
        The ridge of each row.
    first : FirstReading
        The sums of the first pass over the table.
    begun : int
        The number of passes of the engine before the first.
    folds : BlockFolds, optional
        The folds; sums over the rows of each fold are stored separately.

    See Also
    --------
    blocked_classes : Constructs this objective from blocks.

    Notes
    -----
    A reading is one pass over all blocks of the table. Cost: the gradients at up to 32 points take one reading. A model
    of some `columns` takes one reading for the columns that are not stored yet; its own methods read nothing more.
    """

    def __init__(
        self,
        engine: Engine,
        loss: Multinomial,
        units: Units,
        l2: Any,
        first: FirstReading,
        begun: int,
        folds: BlockFolds | None = None,
    ) -> None:
        self.folds = BlockFolds.none() if folds is None else folds
        self.parts, self._first = first.parts, replace(first, kept=None)  # kept columns are those of `kept` alone
        self.engine, self.loss, self.units, self.moments, self._begun = engine, loss, units, first.moments, begun
        self.l2 = np.full(units.size, double(checked_ridge(l2, np.zeros(1), units.size)))
        self.whole_weights, self.share = first.whole, 1.0
        self.n_examples = self.total_weight = first.moments.total
        self._memory, self._images, self._squares, self._meter = Memory(), Memory(), Memory(), Meter()
        self._kept = KeptColumns(engine, units, first)
        points = [units.coordinates(point) for point in first.points]
        self.guessed = tuple(self._remembered(w, first.looks, i, first.centre) for i, w in enumerate(points))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of W: a row for each column and, last, that of the intercepts."""
        return (self.units.size, int(self.loss.n_classes or 0))

    @property
    def n_targets(self) -> float:
        """The number of targets that criteria count: one for each row."""
        return self.n_examples

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """The traits of this objective: a mean over rows, for which a reading is expensive."""
        return Traits(quadratic=False, n_rows=self.moments.n_rows, reading_is_dear=True)

    @property
    def readings(self) -> int:
        """The number of readings (passes over the table) for this model so far, including the first."""
        return self.engine.readings - self._begun

    @property
    def passes(self) -> float:
        """The data passes so far, including those of the first reading that evaluated points."""
        return self._meter.passes + len(self.guessed) * self.shape[1]

    @property
    def kept(self) -> KeptColumns:
        """The columns that are stored."""
        return self._kept

    def end_fit(self) -> None:
        """Release the stored columns if they are large; columns that are needed later are read again."""
        self._kept = self._kept.after_fit(self.moments.n_rows)

    def training_model(self, fold: int, l2: Any, *, intercept: bool, scale: bool) -> KeptClasses:
        """Return the model of the training rows of a fold (-1: of all rows), standardised by these; no reading.

        All columns have to be stored.
        """
        first, level = self._first.without(fold), np.zeros(self.shape[1])
        dtype = self.units.dtype
        units = Units.of(first.moments, level=level, intercept=intercept, scale=scale, centre=intercept, dtype=dtype)
        columns = TrainingColumns(self._kept, units, self.folds, fold)
        ridge = np.full(units.size, double(checked_ridge(l2, np.zeros(1), units.size)))
        every = np.arange(units.size)
        return KeptClasses(columns, units, self.loss, first.moments, ridge, every, self._meter)  # type: ignore[arg-type]

    def column_moments(self, columns: np.ndarray, left_out: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Return means and covariances of some columns, on the scale of the data, over all rows outside a fold."""
        model = self.training_model(left_out, 0.0, intercept=True, scale=True)
        scale = np.where(model.units.inverse_scale[columns] > 0, model.units.inverse_scale[columns], 1.0)
        products = model.column_products().columns(np.append(columns, model.shape[0] - 1)).hessian(None)
        mean = products[:-1, -1]
        covariance = (products[:-1, :-1] - np.outer(mean, mean)) / np.outer(scale, scale)
        return model.units.mean[columns] + mean / scale, covariance

    @property
    def members(self) -> np.ndarray:
        """The columns that are kept, increasing."""
        return self._kept.index

    def zeros(self) -> np.ndarray:
        """Return W = 0."""
        return np.zeros(self.shape, dtype=self.units.dtype)

    def attains_bound(self) -> bool:
        """Return whether every row has a ridge."""
        return bool((self.l2 > 0).all())

    def recession(self, at: Evaluation, indices: np.ndarray) -> np.ndarray | None:
        """Return a direction along which f decreases indefinitely, or None: see `falling_beyond`."""
        found = falling_beyond(self, at, indices[:: self.shape[1]] // self.shape[1])
        return None if found is None else self.centre(found)

    def evaluate(self, w: np.ndarray, prediction: Any = None) -> Evaluation:
        """Return value and gradient at W: one reading, unless they were computed before."""
        return self.evaluate_many([w])[0]

    def evaluate_many(self, points: Sequence[np.ndarray]) -> list[Evaluation]:
        """Return value and gradient at several points: a reading for each 32, none if all columns are stored."""
        if self._kept.index.size == self.units.mean.size:
            return self.columns(np.arange(self.units.size)).evaluate_many(points)
        known = {w.tobytes(): self._memory[w.tobytes()][0] for w in points if w.tobytes() in self._memory}
        asked = list({w.tobytes(): w for w in points if w.tobytes() not in known}.values())
        for start in range(0, len(asked), MOST_POINTS):
            some, centre = asked[start : start + MOST_POINTS], self.units.centre
            looks = self.engine.sweep(look, [self.units.point(w) for w in some], self.loss, centre)
            self._meter.add(len(some) * self.shape[1])
            for i, w in enumerate(some):
                known[w.tobytes()] = self._remembered(w, looks, i, centre)
        return [Evaluation(w, known[w.tobytes()].value, known[w.tobytes()].gradient) for w in points]

    def _remembered(self, w: np.ndarray, looks: Sums, place: int, centre: np.ndarray | None) -> Evaluation:
        """Return and remember the evaluation of one of the points of a look."""
        values, terms, slopes, products = looks
        gradient = self.units.gradient(products[:, place], slopes[place], centre) + self.l2[:, None] * w
        total = self.units.total
        at = Evaluation(w, float(values[place]) / total + 0.5 * self._ridge(w), gradient.astype(self.units.dtype))
        self._memory[w.tobytes()] = at, float(terms[place]) / total
        while len(self._memory) > REMEMBERED:
            del self._memory[next(iter(self._memory))]
        return at

    def value(self, w: np.ndarray, prediction: Any = None) -> float:
        """Return f(W): a reading only if W has columns that are not stored."""
        key = w.tobytes()
        if key in self._memory:
            return float(self._memory[key][0].value)
        own = self._own_rows(w)
        if self._kept.have(own[own < self.units.mean.size]):
            return self.columns(own).evaluate(w[own]).value
        return self.evaluate(w).value

    def rounding(self, at: Evaluation) -> float:
        """Return how much of the value at an evaluated point may be rounding; see `Composite.rounding`."""
        terms = self._memory[key][1] if (key := at.point.tobytes()) in self._memory else abs(at.value)
        return UNITS * float(np.finfo(self.units.dtype).eps) * (terms + 0.5 * self._ridge(at.point))

    def minus_twice_log_likelihood(self, at: Evaluation) -> float:
        """Return minus twice the log-likelihood of the classes, without the ridge."""
        return 2.0 * self.n_targets * (at.value - 0.5 * self._ridge(at.point))

    def shrinkage(self, at: Evaluation, rows: np.ndarray) -> float:
        """Return how many coefficients of some rows the ridge takes away, as `MultiOutputModel.shrinkage`."""
        few, axes = self.columns(rows), self.loss.axes(self.shape[1])
        turn = np.kron(np.eye(rows.size), axes)
        inverse = inverse_semidefinite(turn.T @ few.hessian(at) @ turn)
        return float(np.repeat(few.row_ridge(), axes.shape[1]) @ np.diagonal(inverse))

    def column_products(self) -> Any:
        """Return the products of the columns: one reading for those that are not kept."""
        squares = np.append(self.units.squares, 1.0)[: self.units.size]
        return ColumnProducts(squares, lambda some: self.columns(some)._products(some))

    def output_block(self, at: Evaluation) -> np.ndarray:
        """Return the mean second derivatives of the rows at an evaluated point, shape (q, q)."""
        return self._columns_at(at.point).output_block(at)

    def columns(self, indices: np.ndarray) -> KeptClasses:
        """Return the model of some columns: one reading if some of them are not kept yet."""
        return KeptClasses(self._kept, self.units, self.loss, self.moments, self.l2, indices, self._meter)  # type: ignore[arg-type]

    def hessian(self, at: Evaluation) -> np.ndarray:
        """Return the whole Hessian; for models of few columns."""
        return self.columns(np.arange(self.units.size)).hessian(at)

    def curvature(self, at: Evaluation, direction: np.ndarray) -> np.ndarray:
        """Return the Hessian at an evaluated point times a direction: one reading.

        That of directions along the rows of the point, the intercepts among them, is one for all of them.
        """
        own, q = self._own_rows(at.point), self.shape[1]
        if np.isin(chosen_columns(direction), own).all():
            self.expand(at)
            images = self._images[at.point.tobytes()]
            image = images @ np.asarray(direction[own], dtype=np.float64).ravel()
        else:
            arguments = self.units.point(at.point), [self._direction(direction)], self.loss, self.units.centre
            slopes, products = self.engine.sweep(class_curve, *arguments)
            self._meter.add(2 * q)
            image = self.units.gradient(products[:, 0], slopes[0], self.units.centre)
        return np.asarray(image + self.l2[:, None] * direction).astype(self.units.dtype, copy=False)

    def curvature_along(self, at: Evaluation, direction: np.ndarray) -> float:
        """Return direction' H direction: a reading of the columns of both, unless they are kept."""
        d = self.units.mean.size
        columns = np.union1d(chosen_columns(at.point[:d]), chosen_columns(direction[:d]))
        self._meter.add(2 * columns.size * self.shape[1] / self.units.size)
        if self._kept.have(columns):
            ends = [self._kept.point(np.asarray(w, dtype=np.float64)) for w in (at.point, direction)]
            (square,) = self._kept.sums(class_curve_along, *ends, self.loss)
        else:
            ends = [self.units.point(at.point), self._direction(direction)]
            ends = [end._replace(columns=np.searchsorted(columns, end.columns)) for end in ends]
            (square,) = self.engine.sweep(class_curve_along, *ends, self.loss, columns=columns)
        return float(square[0]) / self.units.total + self._ridge(direction)

    def expand(self, at: Evaluation) -> None:
        """Read the Hessian at a point along its own rows, and the block of each row: one reading, remembered."""
        key, units, q = at.point.tobytes(), self.units, self.shape[1]
        if key in self._images:
            return
        point, unit = units.point(at.point), []
        for row in self._own_rows(at.point):
            for c in range(q):
                e = np.zeros(self.shape)
                e[row, c] = 1.0
                unit.append(self._direction(e))
        factor = powers_of_two(units.inverse_scale, units.dtype)
        tasks = [
            (class_curve, (point, unit, self.loss, units.centre)),
            (class_squares, (point, self.loss, units.mean, factor)),
        ]
        slopes, products, squares, sums = self.engine.sweep(together, *tasks)
        self._meter.add((len(unit) + q) * q)
        images = [units.gradient(products[:, i], slopes[i], units.centre) for i in range(len(unit))]
        self._images.clear()
        self._images[key] = np.stack(images, axis=-1) if images else np.zeros((*self.shape, 0))
        blocks = squares * (units.inverse_scale**2)[:, None]
        blocks = np.vstack([blocks, sums]) if units.intercept else blocks
        self._squares.clear()
        self._squares[key] = blocks.reshape(-1, q, q) / units.total

    def row_blocks(self, at: Evaluation) -> np.ndarray:
        """Return the block of the Hessian of each row, without the ridge, shape (p, q, q): see `expand`."""
        self.expand(at)
        blocks: np.ndarray = self._squares[at.point.tobytes()]
        return blocks

    def with_ridge(self, l2: Any) -> Self:
        """Return the same model with another ridge: what was read serves both, but for evaluations."""
        other = copy(self)
        other.l2 = np.full(self.units.size, double(checked_ridge(l2, np.zeros(1), self.units.size)))
        other._memory, other.guessed = Memory(), ()
        return other

    def with_examples(self, count: float) -> Self:
        """Return the same objective of weights that stand for `count` examples: f is the same, criteria are not."""
        other = copy(self)
        other.n_examples = float(count)
        return other

    def metered(self, meter: Meter) -> Self:
        """Return the same objective, adding the data passes that it makes to a meter."""
        other = copy(self)
        other._meter = meter
        return other

    def scores(self, w: np.ndarray) -> Sums:
        """Return what `class_score` says of a point: a reading only if it has columns that are not kept."""
        return self._columns_at(w).scores(w)

    def _columns_at(self, w: np.ndarray) -> KeptClasses:
        return self.columns(self._own_rows(w))

    def _own_rows(self, w: np.ndarray) -> np.ndarray:
        """Return the rows of a point that are not zero, and that of the intercepts."""
        d = self.units.mean.size
        inner = chosen_columns(w[:d])
        return np.append(inner, d) if self.units.intercept else inner

    def _direction(self, w: np.ndarray) -> Point:
        point = self.units.point(w, level=0.0)
        return point._replace(level=np.zeros(self.shape[1]) + point.level)

    def _ridge(self, w: np.ndarray) -> float:
        return float(np.sum(self.l2 @ (np.asarray(w, dtype=np.float64) ** 2)))


def blocked_classes(
    engine: Engine,
    n_classes: int,
    *,
    l2: Any = 0.0,
    intercept: bool = True,
    scale: bool = True,
    centre: bool | None = None,
    guess: Guess | None = None,
    folds: BlockFolds | None = None,
) -> BlockedClasses:
    """Return the log-loss of the classes of a table in blocks, after one reading (one pass over the table).

    It is the objective of `MultiOutputModel` with the loss `Multinomial` on standardised columns.

    Parameters
    ----------
    engine : Engine
        The blocks, whose targets are 0, 1, ..., n_classes - 1, and where they are worked on.
    n_classes : int
        The number of classes, >= 2.
    l2 : float or array, shape (d,) or (d + 1,)
        The ridge on standardised coordinates; a number spares the intercepts.
    intercept, scale : bool
        Whether there are intercepts, and whether columns are scaled.
    centre : bool, optional
        Whether columns are centred; default: with intercepts.
    guess : Guess, optional
        Statistics of a sample of rows, which guide the first reading. Default: only the means of the columns in the
        sample.
    folds : BlockFolds, optional
        The folds of a cross-validation; sums over the rows of each fold are stored separately.

    Returns
    -------
    BlockedClasses

    Raises
    ------
    InvalidInputError
        For NaN or infinity, targets that are not class numbers, negative weights, and a negative ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import RowSparsity
    >>> from hardthresh.designs import Serial, from_arrays
    >>> from hardthresh.objectives import blocked_classes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 30))
    >>> U = X[:, [3, 20]] @ [[2.0, 0.0, -2.0], [0.0, 2.0, -2.0]]
    >>> y = np.argmax(U + rng.gumbel(size=U.shape), axis=1)
    >>> model = blocked_classes(Serial(from_arrays(X, y, rows=1024)), 3)
    >>> minimize(model, RowSparsity(2, free=(30,))).support.rows.tolist()
    [3, 20, 30]
    """
    begun, loss = engine.readings, Multinomial(n_classes)
    guess = simple_guess(some_rows(engine), loss) if guess is None else guess
    first = read_first(engine, loss, guess, folds)
    units = Units.of(
        first.moments,
        level=np.zeros(n_classes),
        intercept=intercept,
        scale=scale,
        centre=intercept if centre is None else centre,
        dtype=engine.blocks.dtype,
    )
    ridge = np.asarray(l2, dtype=np.float64)
    if intercept and ridge.ndim == 0:
        ridge = np.append(np.full(units.mean.size, float(ridge)), 0.0)
    return BlockedClasses(engine, loss, units, ridge, first, begun, folds)
