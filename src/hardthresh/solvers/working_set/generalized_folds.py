"""Paths on the training rows of each fold for losses that are not squared, for held-out scores.

Supports come from least squares on the quadratic approximation of the loss at the fold's null model. The loss itself is
then minimised on each of them. Nothing passes from fold to fold, and a fold sees its training rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hardthresh.arrays import double, gather, move, namespace
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.threads import serial_blas
from hardthresh.objectives import LinearModel

from .fold_path import FoldPath, checked_budgets, checked_ridges, checked_training
from .folds import least_squares_fold_paths
from .model import union
from .refits import ColumnsToRefit
from .support_grid import ENTRIES, different_refits, unconverged_refit

_LEAST_CURVATURE = 1e-4
"""The curvature of a loss at the null model counts as at least this share of the largest one: working responses are
divided by it. Rows with less, of a probability within 1e-5 of 0 or 1 beside others of 1/2, have no say in the moments
of a column. Arbitrary, and only free columns or an offset lead there."""
_ROUNDING = 1e-10
"""Numbers that differ by this share count as equal: far above the rounding of a loss, and far below what matters."""


@serial_blas()
def generalized_fold_paths(
    objective: LinearModel,
    selection: CoordinateBudget,
    training: Sequence[np.ndarray],
    budgets: Sequence[int],
    ridges: Sequence[float],
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[FoldPath]:
    r"""Return the fits of all budgets and ridges on the training rows of every fold, for any smooth convex loss.

    .. math:: f(w) = \sum_i \omega_i \, \ell(y_i, x_i^\top w + o_i) + \tfrac{1}{2} \alpha \sum_j s_j^2 w_j^2

    Parameters
    ----------
    objective : LinearModel
        The loss on all rows. Its own ridge is not used.
    selection : CoordinateBudget
        Which columns are free, and their bounds; its budget is not used. Free columns have no ridge.
    training : sequence of array of int
        The training rows of each fold.
    budgets : sequence of int
        Increasing numbers of columns.
    ridges : sequence of float
        The values of :math:`\alpha`, each >= 0.
    intercept : bool
        Whether the last column is one everywhere, and free.
    standardize : bool
        Whether the ridge is that of columns of unit variance over the fold's training rows: then :math:`s_j^2` is the
        variance of a column there, else 1. Without an intercept it is the mean square.
    tol : float
        Decrease of an exchange, relative to the null model, that counts as progress in the search for supports.

    Returns
    -------
    list of FoldPath
        Grids of fits; the message of a fit that did not converge names its budget and its ridge.

    Raises
    ------
    InvalidInputError
        For budgets that decrease, ridges that are negative or not finite, or training rows that are empty, of no
        weight, or anything but row numbers.

    Notes
    -----
    For each fold:

    1. The null model, of the intercept and the free columns, is fitted without a ridge.
    2. Its working responses and expected curvatures make a least-squares problem, whose supports for all budgets and
       ridges come from `least_squares_fold_paths`: what one step of Fisher scoring from the null model would choose.
       Without an offset and free columns that is least squares of y, for which the folds share their work.
    3. The loss is minimised by Newton steps on each of these supports, once where several budgets or ridges share
       support and ridge, within the bounds of the coefficients.

    Heuristic. One step of scoring misses features where effects are large: of 60 folds of 67 rows and 12 columns, three
    of which make the log-mean vary by 0.5, 1 and 1.5, a search by `WorkingSet` chooses others in 17, 16 and 20 for
    negative binomial counts, in 20, 13 and 21 for gamma and in 4, 5 and 10 for Poisson targets, and predicts held-out
    rows better in 7, 12 and 19, in 11, 13 and 21, and in 1, 5 and 10 of them.

    With ridges > 0 each refit has a minimum, unless free columns alone separate the targets; without a ridge
    a refit that does not converge within its limit of steps ends with the lowest point it has seen.

    Cost: that of `least_squares_fold_paths`, and for each different fit of s columns two to four products of these with
    each other.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.core.constraint import CoordinateBudget
    >>> X = np.random.default_rng(0).standard_normal((60, 8))
    >>> y = (X[:, 2] - X[:, 5] > 0).astype(float)
    >>> model = LinearModel(np.column_stack([X, np.ones(60)]), y, loss="logistic")
    >>> free_intercept = CoordinateBudget(9, 2, (8,))
    >>> (path,) = generalized_fold_paths(
    ...     model, free_intercept, [np.arange(40)], [0, 1, 2], [0.1, 0.01], intercept=True, standardize=True
    ... )
    >>> path.columns.tolist(), path.coefs.shape
    ([2, 5], (3, 2, 2))
    """
    budgets, training = checked_budgets(budgets), checked_training(training, objective)
    alphas = checked_ridges(ridges, len(training))
    folds = [_Fold.of(objective, selection, rows, intercept=intercept, standardize=standardize) for rows in training]
    nulls = [fold.null_model() for fold in folds]
    own = alphas / np.array([[fold.weights @ null.curvature] for fold, null in zip(folds, nulls, strict=True)])
    search = partial(least_squares_fold_paths, intercept=intercept, standardize=standardize, tol=tol)
    signs_only = selection.bounds is None or not np.any(np.isfinite(selection.bounds) & (selection.bounds != 0.0))
    if intercept and signs_only and all(fold.is_affine(null) for fold, null in zip(folds, nulls, strict=True)):
        found = search(_of_targets(objective), selection, training, budgets, own)
    else:
        models = (fold.on_all_rows(null) for fold, null in zip(folds, nulls, strict=True))
        problems = zip(models, training, own, strict=True)
        found = [search(model, selection, [rows], budgets, its)[0] for model, rows, its in problems]
    each = zip(folds, nulls, found, strict=True)
    return [fold.path(null, path, budgets, alphas[0]) for fold, null, path in each]


def _of_targets(objective: LinearModel) -> LinearModel:
    """Return least squares of the targets, in units in which their squares are in range."""
    y = objective.y
    exponent = int(np.frexp(float(namespace(y).max(namespace(y).abs(y))))[1])
    return LinearModel(objective.design, y * 2.0**-exponent, sample_weight=objective.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Null:
    """The null model of a fold, of the intercept and the free columns, and its quadratic approximation.

    Attributes
    ----------
    coef : array, shape (n_free,)
        The coefficients, with that of the column of ones.
    converged : bool
        Whether it is a minimum.
    target, curvature : array, shape (n_rows,)
        Working responses without the offset, and the expected curvatures of the losses.
    """

    coef: np.ndarray
    converged: bool
    target: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """The training rows of a fold and its null model.

    Attributes
    ----------
    objective, selection, intercept, standardize :
        As for `generalized_fold_paths`.
    free : array of int
        The free columns, without the intercept.
    rows : array of int
        The training rows.
    y, weights, offset : array, shape (n_rows,)
        Of these rows, in double precision; the weights sum to one.
    """

    objective: LinearModel
    selection: CoordinateBudget
    intercept: bool
    standardize: bool
    free: np.ndarray
    rows: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    offset: np.ndarray | None

    @classmethod
    def of(
        cls,
        objective: LinearModel,
        selection: CoordinateBudget,
        rows: np.ndarray,
        *,
        intercept: bool,
        standardize: bool,
    ) -> _Fold:
        """Return the fold of some training rows."""
        last = objective.shape[0] - 1
        free = np.array([j for j in selection.free if not (intercept and j == last)], dtype=np.int64)
        where = move(rows, objective.y)
        y, weights = double(gather(objective.y, where)), double(gather(objective.weights, where))
        offset = None if objective.offset is None else double(gather(objective.offset, where))
        return cls(
            objective, selection, intercept, standardize, np.sort(free), rows, y, weights / weights.sum(), offset
        )

    @without_overflow_warnings
    def null_model(self) -> _Null:
        """Return the null model."""
        loss, few = self.objective.loss, self.few_columns(self.free)
        every = np.ones((1, few.model.penalties.size), dtype=bool)
        (coef,), (converged,) = few.model.refits(every, np.zeros(1), np.array([-1]), few.bounds)
        prediction = coef @ few.model.columns
        u = prediction if self.offset is None else prediction + self.offset
        curvature = loss.curvature(loss.mean(u), u)  # at the expected target
        curvature = np.maximum(curvature, _LEAST_CURVATURE * (curvature.max() or 1.0))  # 0 where a hinge is flat
        return _Null(coef, bool(converged), prediction - loss.gradient(self.y, u) / curvature, curvature)

    def is_affine(self, null: _Null) -> bool:
        """Return whether least squares of y chooses what that of the working responses does.

        These are an affine function of y if the null model predicts the same for all rows, whose curvatures are the
        same then, as without an offset and free columns.
        """
        least, most = self.y.argmin(), self.y.argmax()
        run = float(self.y[most] - self.y[least])
        slope = float(null.target[most] - null.target[least]) / run if run else 0.0
        gap = null.target - null.target[least] - slope * (self.y - self.y[least])
        return bool(np.abs(gap).max() <= _ROUNDING * np.abs(null.target).max())

    def on_all_rows(self, null: _Null) -> LinearModel:
        """Return least squares of the working responses, where rows of other folds have no weight."""
        like = self.objective.y
        y, sample_weight = np.zeros(like.shape[0]), np.zeros(like.shape[0])
        y[self.rows] = null.target  # a row may be drawn twice, but is the same
        sample_weight[self.rows] = self.weights * null.curvature
        y, sample_weight = (namespace(like).astype(move(x, like), like.dtype) for x in (y, sample_weight))
        return LinearModel(self.objective.design, y, sample_weight=sample_weight)

    def path(self, null: _Null, found: FoldPath, budgets: list[int], ridges: np.ndarray) -> FoldPath:
        """Return the fits of all budgets and ridges on the supports that least squares has found."""
        columns = union(found.columns, self.free)
        chosen = np.zeros((len(budgets), ridges.size, columns.size), dtype=bool)
        chosen[:, :, columns.searchsorted(found.columns)] = found.coefs != 0
        chosen[:, :, columns.searchsorted(self.free)] = True
        path = self.refitted(null, columns, chosen, budgets, ridges)
        if not null.converged:
            path.unconverged.insert(0, "the null model has not converged; the free columns may separate the targets")
        return path

    def refitted(
        self, null: _Null, columns: np.ndarray, chosen: np.ndarray, budgets: list[int], ridges: np.ndarray
    ) -> FoldPath:
        """Return the fits on some supports: half of the ridges, or of the budgets, at a time if there are many entries.

        Parameters
        ----------
        null : _Null
            Where to start.
        columns : array of int
            Some columns, increasing.
        chosen : array of bool, shape (n_budgets, n_ridges, n_columns)
            Which of them are in the support of each budget and ridge.
        budgets, ridges :
            As for `generalized_fold_paths`.
        """
        used = chosen.any(axis=(0, 1))
        columns, chosen = columns[used], chosen[:, :, used]
        if columns.size * self.rows.size <= ENTRIES or chosen.shape[:2] == (1, 1):
            return self.few_columns(columns, null.coef).path(chosen, budgets, ridges)
        axis, middle = (1, ridges.size // 2) if ridges.size > 1 else (0, len(budgets) // 2)
        first, second = np.split(chosen, [middle], axis=axis)
        if axis == 1:
            left = self.refitted(null, columns, first, budgets, ridges[:middle])
            right = self.refitted(null, columns, second, budgets, ridges[middle:])
        else:
            left = self.refitted(null, columns, first, budgets[:middle], ridges)
            right = self.refitted(null, columns, second, budgets[middle:], ridges)
        return _joined(left, right, axis)

    def few_columns(self, columns: np.ndarray, null: np.ndarray | None = None) -> _Columns:
        """Return some columns of the fold, to be refitted.

        Parameters
        ----------
        columns : array of int
            Which ones, increasing; the free ones among them.
        null : array, shape (n_free,), optional
            The coefficients of the null model, with that of the column of ones.
        """
        design, like = self.objective.design, self.objective.y
        X = double(design.block(move(self.rows, like), move(columns, like)).dense()).T
        size = columns.size + self.intercept
        rows, penalties, start = np.ones((size, self.rows.size)), np.zeros(size), np.zeros(size)
        mean = X @ self.weights if self.intercept else np.zeros(columns.size)
        some = rows[: columns.size]
        np.subtract(X, mean[:, None], out=some)
        scale = np.sqrt((some * some) @ self.weights)
        scale[scale == 0.0] = 1.0
        some /= scale[:, None]
        penalties[: columns.size] = 1.0 if self.standardize else scale**-2.0
        free = columns.searchsorted(self.free)
        penalties[free] = 0.0
        if null is not None:
            start[np.append(free, columns.size) if self.intercept else free] = null
        elif self.intercept:
            start[-1] = self.level()
        bounds = None
        if self.selection.bounds is not None:
            bounds = np.stack([np.full(size, -np.inf), np.full(size, np.inf)])  # also of the intercept
            bounds[:, : columns.size] = self.selection.bounds[:, columns] * scale
        mean_loss = self.objective.loss.prepare(self.y, self.weights)
        model = ColumnsToRefit(rows, mean_loss, self.offset, penalties, start)
        return _Columns(columns, mean, scale, bounds, self.intercept, model)

    def level(self) -> float:
        """Return an intercept to start from."""
        level: float = self.objective.loss.initial_prediction(self.y, self.weights)
        return level if self.offset is None else level - float(self.weights @ self.offset)


def _joined(left: FoldPath, right: FoldPath, axis: int) -> FoldPath:
    """Return a grid of fits of which two parts are known: budgets (axis 0) or ridges (1)."""
    columns = union(left.columns, right.columns)
    halves = []
    for half in (left, right):
        coefs = np.zeros((*half.intercepts.shape, columns.size))
        coefs[:, :, columns.searchsorted(half.columns)] = half.coefs
        halves.append(coefs)
    intercepts = np.concatenate([left.intercepts, right.intercepts], axis=axis)
    return FoldPath(columns, np.concatenate(halves, axis=axis), intercepts, left.unconverged + right.unconverged)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Some columns of a fold, centred and scaled, with a column of ones if there is an intercept.

    Attributes
    ----------
    columns : array of int
        Which columns of the data.
    mean, scale : array, shape (n_columns,)
        What is subtracted from each, and what it is divided by.
    bounds : array, shape (2, n_columns), or None
        The bounds of the coefficients of these columns, and of that of ones.
    intercept : bool
        Whether there is one.
    model : ColumnsToRefit
        The loss on these columns.
    """

    columns: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    bounds: np.ndarray | None
    intercept: bool
    model: ColumnsToRefit

    def path(self, chosen: np.ndarray, budgets: list[int], ridges: np.ndarray) -> FoldPath:
        """Return the fits on the supports of budgets and ridges."""
        n_budgets, n_ridges, n_columns = chosen.shape
        if self.intercept:
            chosen = np.concatenate([chosen, np.ones((n_budgets, n_ridges, 1), dtype=bool)], axis=2)
        refit_of, refits, starts = different_refits(chosen, ridges)
        wanted, ridge_of = chosen.reshape(n_budgets * n_ridges, -1)[refits], ridges[refits % n_ridges]
        coefs, converged = self.model.refits(wanted, ridge_of, starts, self.bounds)
        unconverged = [
            unconverged_refit(budgets[refit // n_ridges], float(ridges[refit % n_ridges]))
            for refit in refits[~converged].tolist()
        ]
        slopes = (coefs[:, :n_columns] / self.scale)[refit_of]
        levels = coefs[:, n_columns:].sum(axis=1)[refit_of]
        return FoldPath(self.columns, slopes, levels - slopes @ self.mean, unconverged)
