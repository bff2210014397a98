"""Paths on the training rows of each fold, for held-out scores.

For least squares the folds share their products with the data: sums over training rows are products with masked
right-hand sides, one for each fold. If there are up to 16 folds, and each row is held out once, the Gram matrix of a
fold's training rows is the sum of those of the other folds' held-out rows; else each fold computes its own. Nothing
that a fold decides depends on a row held out from it: its columns are standardised and screened by sums over its own
training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import ceil
from operator import add

import numpy as np

from hardthresh.arrays import double, gather, move, namespace, to_numpy
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.designs import Design, Standardized
from hardthresh.objectives import LinearModel

from .iteration import EFFORTS
from .model import screen, tolerances_at_scale, union
from .search import descend, forward_backward, grow
from .state import next_checkpoint, path_cap
from .tableau import Tableau

_FOLDS = 16
"""How many folds share their work, a limit of memory: with 4 to 64 the scores of 40 models are the same. More folds are
divided into batches, in none of which each row is held out once, so that each fold computes its own Gram matrix."""
_ENTRIES = 1 << 23
"""Limit of the entries of the right-hand sides of one product with the data: 64 MB."""
_SCREENING_RATIO = EFFORTS["fast"].screening_ratio
"""A fold only has to rank the budgets."""
_CONSTANT = 64
"""A column is constant in a fold if its variance, a difference of squares, is at most so many units of their rounding:
sums by pairs of up to 2^64 rows are off by less."""
_BACKWARD_START = 1.25
"""Where the backward path starts, as a multiple of the largest budget. On 40 models the best held-out loss is lower by
0.1 to 0.4 % with 1 or 1.5 to 3; the time grows by up to a third."""


@dataclass(frozen=True, slots=True)
class FoldPath:
    """The fits of all budgets on the training rows of a fold.

    Attributes
    ----------
    columns : array of int
        The columns that any of them uses, increasing; an intercept's is not among them.
    coefs : array, shape (n_budgets, n_columns)
        Their coefficients, zero where not chosen.
    intercepts : array, shape (n_budgets,)
        The intercepts; zero without one.
    """

    columns: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray


@serial_blas()
def least_squares_fold_paths(
    objective: LinearModel,
    selection: CoordinateBudget,
    training: Sequence[np.ndarray],
    budgets: Sequence[int],
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[FoldPath]:
    """Return the path of every fold of a least-squares problem.

    Parameters
    ----------
    objective : LinearModel
        The squared loss on all rows. Its ridge is that of a column of unit variance if `standardize`, else of the
        column as it is.
    selection : CoordinateBudget
        Which columns are free, and their signs; its budget is not used.
    training : sequence of array of int
        The training rows of each fold.
    budgets : sequence of int
        Increasing numbers of columns.
    intercept : bool
        Whether the last column is one everywhere, and free.
    standardize : bool
        Whether the ridge is that of columns scaled to unit variance over the fold's training rows.
    tol : float
        Decrease of an exchange, relative to the null model, that counts as progress.

    Returns
    -------
    list of FoldPath

    Raises
    ------
    InvalidInputError
        For another loss, budgets that decrease, or training rows that are empty or anything but row numbers.

    Notes
    -----
    A fold's search is that of `hardthresh.solvers.WorkingSet` with effort "fast", for all budgets at once: a forward
    path with screening at checkpoints of 4, 10, 25, ... columns, once more screening at the fits with these budgets and
    the largest, improved by exchanges, and a forward path (to 1.25 times the largest budget) and a backward path. No
    budget is rechecked by a gradient of its own, and there are no add-drop moves. Cost: about ``3 + 2 log(K)``
    products of the data with a right-hand side for each fold, which BLAS does at a third of a pass each, a Gram matrix
    of the union of the working sets at each checkpoint, and a few hundred updates of a tableau for each fold.
    """
    if not objective.traits.quadratic:
        raise InvalidInputError(f"folds share their work for the squared loss only, not for {objective.loss}")
    steps = np.diff(np.asarray(budgets, dtype=np.int64), prepend=0)
    if len(budgets) == 0 or not np.all(steps >= 0):
        raise InvalidInputError(f"budgets must be numbers >= 0 that do not fall, at least one; got {list(budgets)}")
    training = [np.asarray(rows) for rows in training]
    if any(rows.dtype.kind not in "iu" or rows.size == 0 for rows in training):
        raise InvalidInputError("training must hold an array of row numbers for each fold, none of them empty")
    paths: list[FoldPath] = []
    for start in range(0, len(training), _FOLDS):
        some = training[start : start + _FOLDS]
        folds = _Folds(objective, selection, some, intercept=intercept, standardize=standardize, tol=tol)
        paths += folds.paths(list(budgets))
    return paths


@dataclass(slots=True)
class _Fold:
    """A fold: its working set, the loss of its null model, and the fits at which columns are to be screened."""

    working_set: np.ndarray
    scale: float = 0.0
    fits: list[_Fit] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A fit of a fold, and the score above which a column joins the working set."""

    columns: np.ndarray
    coef: np.ndarray
    intercept: float
    threshold: float


@dataclass(frozen=True, slots=True)
class _Moments:
    """Over some rows: total weight, weighted means of the columns and of y, and the centred products X'X and X'y.

    Without an intercept the means are 0. Moments of disjoint rows add up to those of all of them, and nothing is
    subtracted (Chan, Golub and LeVeque 1983).
    """

    weight: float
    x_mean: np.ndarray
    gram: np.ndarray
    y_mean: float
    xy: np.ndarray

    def __add__(self, other: _Moments) -> _Moments:
        weight = self.weight + other.weight
        dx, dy = other.x_mean - self.x_mean, other.y_mean - self.y_mean
        between = self.weight * (other.weight / weight)
        return _Moments(
            weight,
            self.x_mean + other.weight / weight * dx,
            self.gram + other.gram + between * np.outer(dx, dx),
            self.y_mean + other.weight / weight * dy,
            self.xy + other.xy + between * dy * dx,
        )

    def of(self, places: np.ndarray) -> _Moments:
        """Return the moments of some of the columns."""
        return _Moments(
            self.weight, self.x_mean[places], self.gram[np.ix_(places, places)], self.y_mean, self.xy[places]
        )


class _Folds:
    """Folds that share their products with the data."""

    def __init__(
        self,
        objective: LinearModel,
        selection: CoordinateBudget,
        training: Sequence[np.ndarray],
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        xp = namespace(objective.y)
        n = objective.design.shape[0]
        inside = np.zeros((n, len(training)))
        for fold, rows in enumerate(training):
            np.add.at(inside[:, fold], rows, 1.0)  # a row may be drawn twice
        self._training = training
        self._held_out = [np.flatnonzero(inside[:, fold] == 0) for fold in range(len(training))]
        weight = to_numpy(objective.weights)
        weightless = any(rows.size and not np.any(weight[rows]) for rows in self._held_out)
        once = bool(np.all(np.sum(inside == 0, axis=1) == 1)) and bool(np.all(inside <= 1))
        self._disjoint = once and not weightless  # each row is held out by one fold, and others may train on all
        self._design, self._row_weights, self._intercept = objective.design, objective.weights, intercept
        weights = move(inside, objective.y)
        weights *= xp.astype(objective.weights, xp.float64)[:, None]
        weights /= xp.sum(weights, axis=0)[None, :]
        self._weights = xp.astype(weights, objective.y.dtype, copy=False)
        self._y = objective.y if objective.offset is None else objective.y - objective.offset
        self._signs, self._tol = selection.signs, tol
        last = objective.design.shape[1] - 1
        self._free = np.array([j for j in selection.free if not (intercept and j == last)], dtype=np.int64)
        ridge = objective.l2 if objective.l2.ndim else xp.zeros_like(objective.zeros()) + objective.l2
        spread = self._design.pullback_squares(self._weights)
        if intercept:
            means = self._design.pullback(self._weights)
            varies = spread - means * means > _CONSTANT * float(xp.finfo(spread.dtype).eps) * spread
            spread = xp.where(varies, spread - means * means, 0 * spread)
        self._ridge = ridge[:, None] * (spread if standardize else xp.ones_like(spread))
        self._curvature = spread + self._ridge
        self._eps = float(xp.finfo(objective.y.dtype).eps)

    def paths(self, budgets: list[int]) -> list[FoldPath]:
        """Fill the working sets, first along a forward path, then by the best fits at its checkpoints; fit all."""
        folds = [_Fold(self._free) for _ in self._training]
        checkpoint, checkpoints = 0, []
        while checkpoint < budgets[-1]:
            self._screen(folds, [checkpoint], with_exchanges=False)
            checkpoint = next_checkpoint(checkpoint)
            checkpoints.append(min(checkpoint, budgets[-1]))
        if checkpoints:
            self._screen(folds, checkpoints, with_exchanges=True)
        return [self._path(fold, tableau, moments, budgets) for fold, tableau, moments in self._tableaus(folds)]

    def _moments(self, folds: list[_Fold]) -> list[_Moments]:
        """Return the moments of each fold's training rows, for its members.

        Where each row is held out once, they are the sums of those of the other folds' held-out rows, so that each row
        is multiplied once for all folds.
        """
        columns = np.unique(np.concatenate([fold.working_set for fold in folds]))
        block = self._design.columns(move(columns, self._y))
        rows = self._held_out if self._disjoint else self._training
        parts = {number: self._moments_of(block, some) for number, some in enumerate(rows) if some.size}
        found = []
        for number, fold in enumerate(folds):
            places = np.searchsorted(columns, fold.working_set)
            if self._disjoint:  # the rows that the other folds hold out
                found.append(reduce(add, (part.of(places) for other, part in parts.items() if other != number)))
            else:
                found.append(parts[number].of(places))
        return found

    def _moments_of(self, block: Design, rows: np.ndarray) -> _Moments:
        xp = namespace(self._y)
        where = move(rows, self._y)
        weights, y, part = gather(self._row_weights, where), gather(self._y, where), block.rows(where)
        weight, size = float(xp.sum(weights, dtype=xp.float64)), part.shape[1]
        if not self._intercept:
            return _Moments(weight, np.zeros(size), double(part.gram(weights)), 0.0, double(part.pullback(weights * y)))
        x_mean = part.pullback(weights) / weight
        y_mean = float(xp.sum(weights * y)) / weight
        centred = Standardized(part, x_mean, xp.ones_like(x_mean), False).columns(move(np.arange(size), self._y))
        xy = centred.pullback(weights * (y - y_mean))
        return _Moments(weight, double(x_mean), double(centred.gram(weights)), y_mean, double(xy))

    def _tableaus(self, folds: list[_Fold]) -> Iterator[tuple[_Fold, Tableau, _Moments]]:
        """Yield each fold with the tableau of its null model."""
        for number, (fold, moments) in enumerate(zip(folds, self._moments(folds), strict=True)):
            gram, slope = moments.gram / moments.weight, moments.xy / moments.weight
            gram[np.diag_indices_from(gram)] += double(gather(self._ridge[:, number], move(fold.working_set, self._y)))
            signs = None if self._signs is None else self._signs[fold.working_set]
            free = np.searchsorted(fold.working_set, self._free).tolist()
            yield fold, Tableau(gram, slope, free, n_free=len(free), signs=signs), moments

    def _screen(self, folds: list[_Fold], budgets: list[int], *, with_exchanges: bool) -> None:
        """Add columns to the folds' working sets by the gradients at fits with some budgets, greedy or exchanged."""
        for fold, tableau, moments in self._tableaus(folds):
            rounding, negligible = tolerances_at_scale(self._eps, self._tol, fold.scale)
            fold.fits = []
            for k in budgets:
                size = tableau.n_free + k
                grow(tableau, size, rounding)
                best = descend(tableau, size, rounding, negligible) if with_exchanges else tableau
                if with_exchanges and best.size == size:
                    score = best.lowest_chosen_score()
                elif k:
                    score = best.highest_score()
                else:
                    score = 0.0
                intercept = moments.y_mean - float(best.coef @ moments.x_mean[best.chosen])
                order = np.argsort(best.chosen)
                columns, threshold = fold.working_set[best.chosen][order], max(_SCREENING_RATIO * score, rounding)
                fold.fits.append(_Fit(columns, best.coef[order], intercept, threshold))
        xp = namespace(self._y)
        fits = [(number, fit) for number, fold in enumerate(folds) for fit in fold.fits]
        size = max(1, _ENTRIES // self._y.shape[0])
        for start in range(0, len(fits), size):
            some = fits[start : start + size]
            weighted = []
            for number, fit in some:
                residual = self._residual(fit)
                weighted.append(self._weights[:, number] * residual)
                if folds[number].scale == 0.0:  # the first screening is at the null model
                    folds[number].scale = 0.5 * float(xp.sum(weighted[-1] * residual))
            slopes = self._design.pullback(xp.stack(weighted, axis=1))
            for place, (number, fit) in enumerate(some):
                fold, most = folds[number], path_cap(fit.columns.size)
                gradient, curvature, inside = -slopes[:, place], self._curvature[:, number], fold.working_set
                new = screen(gradient, curvature, inside, self._signs, fit.threshold, most)
                fold.working_set = union(inside, new)

    def _residual(self, fit: _Fit) -> Array:
        if fit.columns.size == 0:
            return self._y - fit.intercept
        coef = namespace(self._y).astype(move(fit.coef, self._y), self._y.dtype)
        return self._y - fit.intercept - self._design.columns(move(fit.columns, self._y)).predict(coef)

    def _path(self, fold: _Fold, tableau: Tableau, moments: _Moments, budgets: list[int]) -> FoldPath:
        """Return for each budget the better of the forward and the backward path, improved by exchanges."""
        rounding, negligible = tolerances_at_scale(self._eps, self._tol, fold.scale)
        sizes = [tableau.n_free + k for k in budgets]
        backward_start = tableau.n_free + ceil(_BACKWARD_START * budgets[-1])
        best = forward_backward(tableau, sizes, backward_start, rounding, negligible)
        used = np.unique(np.concatenate([fit.chosen for fit in best.values()]))
        coefs, intercepts = np.zeros((len(sizes), len(used))), np.empty(len(sizes))
        for row, size in enumerate(sizes):
            chosen, coef = best[size].chosen, best[size].coef
            coefs[row, np.searchsorted(used, chosen)] = coef
            intercepts[row] = moments.y_mean - float(coef @ moments.x_mean[chosen])
        return FoldPath(fold.working_set[used], coefs, intercepts)
