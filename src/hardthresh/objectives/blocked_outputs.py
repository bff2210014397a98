"""Least squares of several outputs over a table in blocks, reduced by one reading to a few equivalent rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from hardthresh.core.objective import Traits
from hardthresh.core.registry import register
from hardthresh.core.threads import serial_blas
from hardthresh.designs import DenseDesign, Serial, from_arrays
from hardthresh.designs.engine import Engine
from hardthresh.losses import MultiTask

from .block_folds import BlockFolds
from .blocked_least_squares import mean_products
from .column_sums import ColumnSums
from .first_reading import FirstReading, read_first
from .fold_sums import ColumnSumsByFold
from .guess import Guess, simple_guess, some_rows
from .multi_output import MultiOutputModel
from .table_moments import Units


def _examples() -> list[BlockedOutputs]:
    """Return models for the conformance tests: 30 rows in three blocks, two and three outputs; one has weights."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 6)), rng.standard_normal((30, 3))
    weights, offset = rng.integers(0, 3, 30).astype(float), 0.1 * rng.standard_normal((30, 3))
    weighted = from_arrays(X[:, :4], Y, sample_weight=weights, offset=offset, rows=12)
    return [
        blocked_outputs(Serial(from_arrays(X, Y[:, :2], rows=12)), intercept=False),
        blocked_outputs(Serial(weighted), l2=0.1),
    ]


@register("objective", "blocked_outputs", _examples)
class BlockedOutputs(MultiOutputModel, ColumnSumsByFold):
    r"""Least squares of several outputs over a table in blocks, reduced by one reading to a few equivalent rows.

    .. math:: f(W) = \frac{1}{2 \sum_i s_i} \sum_i s_i \|W^\top z_i + o_i - y_i\|^2
              + \tfrac{1}{2} \sum_j \lambda_j \|w_j\|^2

    for the standardised columns z of a table in blocks. f depends on the rows only through the products G of the
    columns with each other, their products C with the targets, and the mean squares of the targets. So the rows of the
    triangular factor R of :math:`G = R^\top R`, with the targets :math:`R^{-\top} C`, and a row of zeros whose targets
    are the residual part of each output, have the same f. This class is a `MultiOutputModel` of these rows.

    Parameters
    ----------
    engine : Engine
        The blocks, and the workers that process them.
    units : Units
        The standardised coordinates of points.
    l2 : float or array, shape (d,)
        The ridge of each coordinate.
    first : FirstReading
        The sums of the first pass over the table: the products of all columns.
    begun : int
        The number of passes of the engine before the first.
    folds : BlockFolds, optional
        The folds; sums over the rows of each fold are stored separately.

    See Also
    --------
    blocked_outputs : Constructs this objective from blocks.

    Notes
    -----
    Nothing is read after the first reading. Its Gram matrix and R take 16 bytes for each pair of columns, and R
    :math:`d^3 / 3` multiplications. What the products have lost is lost: columns whose rest, given others, is less than
    about 1e-6 of their length count as combinations of these.

    References
    ----------
    Cholesky factors of semidefinite matrices, with pivots: N. J. Higham (1990), Analysis of the Cholesky decomposition
    of a semi-definite matrix, *Reliable Numerical Computation*, 161-185.
    """

    def __init__(
        self,
        engine: Engine,
        units: Units,
        l2: Any,
        first: FirstReading,
        begun: int,
        folds: BlockFolds | None = None,
    ) -> None:
        found = first.moments
        gap = found.target_mean - units.level
        cross = (found.crossed + np.multiply.outer(found.mean - units.mean, gap)) * units.inverse_scale[:, None]
        if units.intercept:
            cross = np.concatenate([cross, gap[None]])
        X, Y = _rows_of_products(mean_products(units, first), cross, found.target_variance + gap * gap)
        rows = DenseDesign.of((X * np.sqrt(len(X))).astype(units.dtype))
        super().__init__(rows, Y * np.sqrt(len(Y)), MultiTask(), l2=l2)
        self.targets = replace(self.targets, n_examples=found.total)
        self.engine, self.units, self.moments, self._begun = engine, units, found, begun
        self.whole_weights, self.parts, self._first = first.whole, first.parts, first
        self.folds = BlockFolds.none() if folds is None else folds

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Quadratic, a mean over the rows of the table."""
        return Traits(quadratic=True, n_rows=self.moments.n_rows)

    @property
    def readings(self) -> int:
        """Readings of the table for this model so far, the first one included."""
        return self.engine.readings - self._begun

    def training_model(self, fold: int, l2: Any, *, intercept: bool, scale: bool) -> BlockedOutputs:
        """Return the model of the rows that a fold trains on, in units of its own; of all rows with -1: no reading."""
        return self.of_rows(self._first.without(fold), l2, intercept=intercept, scale=scale)

    def of_rows(self, first: FirstReading, l2: Any, *, intercept: bool, scale: bool) -> BlockedOutputs:
        """Return the model of some rows, in units of their own, from what a reading of them alone would have found."""
        units = _units_of(first, self.engine, intercept=intercept, scale=scale, centre=intercept)
        return BlockedOutputs(self.engine, units, l2, first, self._begun)

    def sums_of(self, part: int, columns: np.ndarray) -> list[ColumnSums]:
        """Return the moments of some columns, as they are in the data, and of each output over the rows of a fold."""
        return self._first.column_sums(part, columns)

    rows: ClassVar[None] = None  # type: ignore[assignment] # there are no mini-batches


def least_squares_of_products(
    gram: np.ndarray, cross: np.ndarray, square: np.ndarray, l2: Any, total: float, dtype: Any
) -> MultiOutputModel:
    """Return least squares of several outputs with given mean products, as of `_rows_of_products`, of so many rows."""
    X, Y = _rows_of_products(gram, cross, square)
    rows = DenseDesign.of((X * np.sqrt(len(X))).astype(dtype))
    model = MultiOutputModel(rows, Y * np.sqrt(len(Y)), MultiTask(), l2=l2)
    return model._with(targets=replace(model.targets, n_examples=total))


@serial_blas()
def _rows_of_products(gram: np.ndarray, cross: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y with the products X'X, X'Y and the diagonal of Y'Y.

    Parameters
    ----------
    gram : array, shape (d, d)
        X'X, semidefinite up to rounding.
    cross : array, shape (d, q)
        X'Y.
    square : array, shape (q,)
        The diagonal.
    """
    (d, q), size = cross.shape, np.sqrt(gram.diagonal())
    size = np.where(size > 0, size, 1.0)
    factor, pivots, rank, _ = dpstrf(gram / np.outer(size, size))
    order, R = pivots - 1, np.triu(factor)[:rank]
    X, Y = np.zeros((rank + q, d)), np.zeros((rank + q, q))
    X[:rank, order] = R
    if rank:
        Y[:rank] = solve_triangular(R[:, :rank], (cross / size[:, None])[order[:rank]], trans="T")
    rest = square - np.sum(Y[:rank] ** 2, axis=0)
    Y[rank:] = np.diag(np.sqrt(np.maximum(rest, 0.0)))
    return X * size, Y


def blocked_outputs(
    engine: Engine,
    *,
    l2: Any = 0.0,
    intercept: bool = True,
    scale: bool = True,
    centre: bool | None = None,
    guess: Guess | None = None,
    folds: BlockFolds | None = None,
) -> BlockedOutputs:
    """Return least squares of the outputs of a table in blocks, after one reading (pass over the table).

    It is the objective of `MultiOutputModel` on standardised columns. A point has one row for each column and, last,
    the intercepts minus `units.level`.

    Parameters
    ----------
    engine : Engine
        The blocks, with targets of shape (n, q), and where they are worked on.
    l2 : float or array, shape (d,) or (d + 1,)
        The ridge on standardised coordinates; a number spares the intercepts.
    intercept, scale : bool
        Whether there is an intercept, and whether columns are scaled.
    centre : bool, optional
        Whether columns are centred; default: with an intercept.
    guess : Guess, optional
        Statistics of a sample of rows, which guide the first reading. Default: the means of the columns in the sample.
    folds : BlockFolds, optional
        The folds of a cross-validation; sums over the rows of each fold are stored separately.

    Returns
    -------
    BlockedOutputs

    Raises
    ------
    InvalidInputError
        For NaN or infinity, negative weights, a ridge that is negative, and blocks with different numbers of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.constraints import RowSparsity
    >>> from hardthresh.designs import Serial, from_arrays
    >>> from hardthresh.objectives import blocked_outputs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 30))
    >>> Y = X[:, [3, 20]] @ [[1.0, 2.0], [-2.0, 0.5]] + 0.1 * rng.standard_normal((5000, 2))
    >>> model = blocked_outputs(Serial(from_arrays(X, Y, rows=1024)))
    >>> minimize(model, RowSparsity(2, free=(30,))).support.rows.tolist()
    [3, 20, 30]
    """
    begun, loss = engine.readings, MultiTask()
    guess = simple_guess(some_rows(engine), loss, np.arange(engine.blocks.n_columns)) if guess is None else guess
    first = read_first(engine, loss, guess, folds)
    units = _units_of(first, engine, intercept=intercept, scale=scale, centre=intercept if centre is None else centre)
    ridge = np.asarray(l2, dtype=np.float64)
    if intercept and ridge.ndim == 0:
        ridge = np.append(np.full(units.mean.size, float(ridge)), 0.0)
    return BlockedOutputs(engine, units, ridge, first, begun, folds)


def _units_of(first: FirstReading, engine: Engine, *, intercept: bool, scale: bool, centre: bool) -> Units:
    """Return the units of the rows of a reading."""
    found, dtype = first.moments, engine.blocks.dtype
    return Units.of(found, level=found.target_mean, intercept=intercept, scale=scale, centre=centre, dtype=dtype)
