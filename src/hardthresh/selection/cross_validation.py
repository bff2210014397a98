"""Paths on the training rows of each fold, for held-out scores.

For least squares all folds share their work: the Gram matrix of a fold's training rows is the sum of those of the other
folds' held-out rows, and sums over training rows are products with masked right-hand sides, one for each fold. Nothing
that a fold decides depends on a row held out from it: its columns are standardised, screened, and let into its working
set by sums over its own training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np

from hardthresh.arrays import gather, mask_of, move, namespace, to_numpy, top_k
from hardthresh.core.constraint import Selection
from hardthresh.core.typing import Array
from hardthresh.designs import Design, Standardized
from hardthresh.objectives import LinearModel
from hardthresh.solvers.local_search import descend, grow
from hardthresh.solvers.tableau import Tableau
from hardthresh.solvers.working_set import EFFORTS, next_mark

_TOGETHER = 16  # folds at a time: their right-hand sides are kept


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


def least_squares_fold_paths(
    objective: LinearModel,
    selection: Selection,
    training: Sequence[np.ndarray],
    budgets: Sequence[int],
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[FoldPath]:
    """Return the path of every fold of a least-squares problem: greedy walks, each budget polished by exchanges.

    Parameters
    ----------
    objective : LinearModel
        The squared loss on all rows. Its ridge is that of a column of unit variance if `standardize`, else of the
        column as it is.
    selection : Selection
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
        What an exchange must gain, relative to the null model.

    Returns
    -------
    list of FoldPath

    Notes
    -----
    The walk is that of `hardthresh.solvers.WorkingSet` on the fold's own rows, without the way back. Cost: about
    ``3 + log(K)`` products of the data with a right-hand side for each fold, which BLAS does at a third of a pass each,
    a Gram matrix of the working sets' union, and 50 to 100 updates of a tableau for each fold.
    """
    paths: list[FoldPath] = []
    for start in range(0, len(training), _TOGETHER):
        some = training[start : start + _TOGETHER]
        folds = _Folds(objective, selection, some, intercept=intercept, standardize=standardize, tol=tol)
        paths += folds.paths(list(budgets))
    return paths


@dataclass(slots=True)
class _Walk:
    """How far a fold has come: its working set, what a column must promise, its null model's loss, its fits."""

    members: np.ndarray
    bar: float = 0.0
    scale: float = 0.0
    support: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    coef: np.ndarray = field(default_factory=lambda: np.empty(0))
    constant: float = 0.0
    fits: list[tuple[np.ndarray, np.ndarray, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Sums over some rows: the weight, and about their weighted means the products of columns and with the target.

    Moments of disjoint rows add up to those of all of them, and nothing is subtracted (Chan, Golub and LeVeque 1983).
    """

    mass: float
    mean: np.ndarray
    gram: np.ndarray
    level: float
    target: np.ndarray

    def __add__(self, other: _Moments) -> _Moments:
        mass = self.mass + other.mass
        gap, lift = other.mean - self.mean, other.level - self.level
        weight = self.mass * (other.mass / mass)
        return _Moments(
            mass,
            self.mean + other.mass / mass * gap,
            self.gram + other.gram + weight * np.outer(gap, gap),
            self.level + other.mass / mass * lift,
            self.target + other.target + weight * lift * gap,
        )

    def of(self, places: np.ndarray) -> _Moments:
        """Return the moments of some of the columns."""
        return _Moments(
            self.mass, self.mean[places], self.gram[np.ix_(places, places)], self.level, self.target[places]
        )


class _Folds:
    """Folds that share their products with the data."""

    def __init__(
        self,
        objective: LinearModel,
        selection: Selection,
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
        each_once = bool(np.all(np.sum(inside == 0, axis=1) == 1)) and bool(np.all(inside <= 1))
        self._disjoint = len(training) > 1 and each_once and all(np.any(weight[rows]) for rows in self._held_out)
        self._design, self._row_weights, self._intercept = objective.design, objective.weights, intercept
        weights = xp.astype(move(inside, objective.y), objective.y.dtype) * objective.weights[:, None]
        self._weights = weights / xp.sum(weights, axis=0)[None, :]
        self._y = objective.y if objective.offset is None else objective.y - objective.offset
        self._signs, self._tol = selection.signs, tol
        last = objective.design.shape[1] - 1
        self._free = np.array([j for j in selection.free if not (intercept and j == last)], dtype=np.int64)
        ridge = objective.l2 if objective.l2.ndim else xp.zeros_like(objective.zeros()) + objective.l2
        spread = self._design.pullback_squares(self._weights)
        if intercept:
            means = self._design.pullback(self._weights)
            varies = spread - means * means > 64 * float(xp.finfo(spread.dtype).eps) * spread
            spread = xp.where(varies, spread - means * means, 0 * spread)
        self._ridge = ridge[:, None] * (spread if standardize else xp.ones_like(spread))
        self._bend = spread + self._ridge
        self._eps = float(xp.finfo(objective.y.dtype).eps)

    def paths(self, budgets: list[int]) -> list[FoldPath]:
        """Walk through all budgets, reading the data where the solver's walk does."""
        walks = [_Walk(members=self._free) for _ in self._training]
        walked = -1
        while walked < budgets[-1]:
            mark = 0 if walked < 0 else min(next_mark(walked), budgets[-1])
            for fold, (walk, moments) in enumerate(zip(walks, self._moments(walks), strict=True)):
                self._walk_on(fold, walk, moments, [k for k in budgets if walked < k <= mark], mark)
            walked = mark
            if walked < budgets[-1]:
                self._let_in(walks, most=max(64, 2 * walked))
        return [self._path(walk) for walk in walks]

    def _moments(self, walks: list[_Walk]) -> list[_Moments]:
        """Return the moments of each fold's training rows, for its members.

        Where each row is held out once, they are the sums of those of the other folds' held-out rows, so that each row
        is multiplied once for all folds.
        """
        columns = np.unique(np.concatenate([walk.members for walk in walks]))
        block = self._design.columns(move(columns, self._y))
        parts = [self._moments_of(block, rows) for rows in (self._held_out if self._disjoint else self._training)]
        found = []
        for fold, walk in enumerate(walks):
            places = np.searchsorted(columns, walk.members)
            chosen = parts[:fold] + parts[fold + 1 :] if self._disjoint else [parts[fold]]
            found.append(reduce(add, (part.of(places) for part in chosen)))
        return found

    def _moments_of(self, block: Design, rows: np.ndarray) -> _Moments:
        xp = namespace(self._y)
        where = move(rows, self._y)
        weights, y, part = gather(self._row_weights, where), gather(self._y, where), block.rows(where)
        mass, size = float(xp.sum(weights)), part.shape[1]
        if not self._intercept:
            return _Moments(mass, np.zeros(size), _double(part.gram(weights)), 0.0, _double(part.pullback(weights * y)))
        mean = part.pullback(weights) / mass
        level = float(xp.sum(weights * y)) / mass
        centred = Standardized(part, mean, xp.ones_like(mean), False).columns(move(np.arange(size), self._y))
        target = centred.pullback(weights * (y - level))
        return _Moments(mass, _double(mean), _double(centred.gram(weights)), level, _double(target))

    def _walk_on(self, fold: int, walk: _Walk, moments: _Moments, budgets: list[int], mark: int) -> None:
        """Add columns up to a mark, and keep the polished fit of each budget on the way."""
        free = self._free.size
        gram, target = moments.gram / moments.mass, moments.target / moments.mass
        gram[np.diag_indices_from(gram)] += _double(gather(self._ridge[:, fold], move(walk.members, self._y)))
        order = np.concatenate([self._free, walk.support[~np.isin(walk.support, self._free)]])
        tableau = Tableau(
            gram,
            target,
            np.searchsorted(walk.members, order).tolist(),
            free=free,
            signs=None if self._signs is None else self._signs[walk.members],
        )
        least, negligible = 4 * self._eps * walk.scale, max(self._tol, 4 * self._eps) * walk.scale
        for k in budgets:
            grow(tableau, free + k, least)
            fit = descend(tableau.copy(), free + k, least, negligible)
            constant = moments.level - float(fit.coef @ moments.mean[fit.chosen])
            walk.fits.append((walk.members[fit.chosen], fit.coef, constant))
        grow(tableau, free + mark, least)
        places = np.argsort(tableau.chosen)
        walk.support, walk.coef = walk.members[tableau.chosen][places], tableau.coef[places]
        walk.constant = moments.level - float(tableau.coef @ moments.mean[tableau.chosen])
        walk.bar = tableau.best_addition()[1] if mark else 0.0

    def _let_in(self, walks: list[_Walk], most: int) -> None:
        """Let columns into each fold's working set, by the gradient over its training rows."""
        xp = namespace(self._y)
        residuals = []
        for walk in walks:
            coef = xp.astype(move(walk.coef, self._y), self._y.dtype)
            explained = self._design.columns(move(walk.support, self._y)).predict(coef) if coef.shape[0] else 0.0
            residuals.append(self._y - walk.constant - explained)
        residual = xp.stack(residuals, axis=1)
        slopes = self._design.pullback(self._weights * residual)
        losses = to_numpy(xp.sum(self._weights * residual * residual, axis=0))
        for fold, walk in enumerate(walks):
            walk.scale = walk.scale or 0.5 * float(losses[fold])
            slope, bend = slopes[:, fold], self._bend[:, fold]
            eligible = (bend > 0) & ~mask_of(move(walk.members, self._y), bend.shape[0])
            if self._signs is not None:
                wanted = move(self._signs, self._y)
                eligible = eligible & ((wanted == 0) | ((slope > 0) == (wanted > 0)))
            gain = xp.where(eligible, slope * slope / (2 * xp.where(bend > 0, bend, xp.ones_like(bend))), 0 * bend)
            gain = xp.where(gain > EFFORTS["balanced"].share * walk.bar, gain, 0 * gain)
            new = to_numpy(top_k(gain, min(most, int(xp.count_nonzero(gain)))))
            walk.members = np.sort(np.concatenate([walk.members, new]))

    def _path(self, walk: _Walk) -> FoldPath:
        columns = np.unique(np.concatenate([chosen for chosen, *_ in walk.fits]))
        coefs = np.zeros((len(walk.fits), columns.size))
        for row, (chosen, coef, _) in enumerate(walk.fits):
            coefs[row, np.searchsorted(columns, chosen)] = coef
        return FoldPath(columns, coefs, np.array([constant for *_, constant in walk.fits]))


def _double(x: Array) -> np.ndarray:
    return np.asarray(to_numpy(x), dtype=np.float64)
