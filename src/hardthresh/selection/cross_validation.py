"""Paths on the training rows of each fold, for held-out scores.

For least squares all folds share their work: the Gram matrix of a fold's training rows is that of all rows minus that
of the rows held out, and sums over training rows are products with masked right-hand sides, one for each fold. Nothing
that a fold decides depends on a row held out from it: its columns are standardised, screened, and let into its working
set by sums over its own training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hardthresh.arrays import gather, mask_of, move, namespace, solve_semidefinite, to_numpy, top_k
from hardthresh.core.constraint import Selection
from hardthresh.core.typing import Array
from hardthresh.designs import Design
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
        The columns that any of them uses, increasing.
    coefs : array, shape (n_budgets, n_columns)
        Their coefficients, zero where not chosen.
    """

    columns: np.ndarray
    coefs: np.ndarray


def least_squares_fold_paths(
    objective: LinearModel,
    selection: Selection,
    training: Sequence[np.ndarray],
    budgets: Sequence[int],
    *,
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
    two Gram matrices of the working sets' union, and 50 to 100 updates of a tableau for each fold.
    """
    paths: list[FoldPath] = []
    for start in range(0, len(training), _TOGETHER):
        folds = _Folds(objective, selection, training[start : start + _TOGETHER], standardize, tol)
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
    fits: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)


class _Folds:
    """Folds that share their products with the data."""

    def __init__(
        self,
        objective: LinearModel,
        selection: Selection,
        training: Sequence[np.ndarray],
        standardize: bool,
        tol: float,
    ) -> None:
        xp = namespace(objective.y)
        n, d = objective.design.shape
        inside = np.zeros((n, len(training)))
        for fold, rows in enumerate(training):
            inside[rows, fold] = 1.0
        self._held_out = [np.flatnonzero(inside[:, fold] == 0) for fold in range(len(training))]
        self._training = training
        self._design: Design = objective.design
        self._all_weights = objective.weights
        weights = xp.astype(move(inside, objective.y), objective.y.dtype) * objective.weights[:, None]
        self._mass = xp.sum(weights, axis=0)
        self._weights = weights / self._mass[None, :]
        self._selection, self._tol = selection, tol
        self._free = np.asarray(selection.free, dtype=np.int64)
        self._y = objective.y if objective.offset is None else objective.y - objective.offset
        self._shift = np.zeros(self._free.size)  # what free columns explain in all rows, taken off for its size only
        if self._free.size:
            block = self._design.columns(move(self._free, self._y))
            target = _double(block.pullback(self._all_weights * self._y))
            self._shift = solve_semidefinite(_double(block.gram(self._all_weights)), target)
            self._y = self._y - block.predict(xp.astype(move(self._shift, self._y), self._y.dtype))
        ridge = objective.l2 if objective.l2.ndim else xp.zeros_like(objective.zeros()) + objective.l2
        bend = self._design.pullback_squares(self._weights)
        self._ridge = ridge[:, None] * xp.ones_like(bend)
        if standardize and bool(xp.any(ridge > 0)):
            means = self._design.pullback(self._weights)
            self._ridge = self._ridge * (bend - means * means)
        self._bend = bend + self._ridge
        self._eps = float(xp.finfo(objective.y.dtype).eps)

    def paths(self, budgets: list[int]) -> list[FoldPath]:
        """Walk through all budgets, reading the data where the solver's walk does."""
        walks = [_Walk(members=self._free) for _ in self._training]
        walked = -1
        while walked < budgets[-1]:
            mark = 0 if walked < 0 else min(next_mark(walked), budgets[-1])
            for walk, (gram, target) in zip(walks, self._models(walks), strict=True):
                self._walk_on(walk, gram, target, [k for k in budgets if walked < k <= mark], mark)
            walked = mark
            if walked < budgets[-1]:
                self._let_in(walks, most=max(64, 2 * walked))
        return [self._path(walk) for walk in walks]

    def _models(self, walks: list[_Walk]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return each fold's Gram matrix and target for its members: the whole one less that of the rows held out."""
        columns = np.unique(np.concatenate([walk.members for walk in walks]))
        if columns.size == 0:
            return [(np.zeros((0, 0)), np.zeros(0))] * len(walks)
        block = self._design.columns(move(columns, self._y))
        whole = _double(block.gram(self._all_weights))
        targets = _double(block.pullback(self._weights * self._y[:, None]))
        models = []
        for fold, walk in enumerate(walks):
            held_out, rows = self._held_out[fold], self._training[fold]
            if held_out.size < rows.size:
                gram = whole - self._gram_of(block, held_out)
            else:
                gram = self._gram_of(block, rows)
            places = np.searchsorted(columns, walk.members)
            gram = gram[np.ix_(places, places)] / float(self._mass[fold])
            gram[np.diag_indices(places.size)] += _double(gather(self._ridge[:, fold], move(walk.members, self._y)))
            models.append((gram, targets[places, fold]))
        return models

    def _gram_of(self, block: Design, rows: np.ndarray) -> np.ndarray:
        if rows.size == 0:
            return np.zeros((block.shape[1], block.shape[1]))
        where = move(rows, self._y)
        return _double(block.rows(where).gram(gather(self._all_weights, where)))

    def _walk_on(self, walk: _Walk, gram: np.ndarray, target: np.ndarray, budgets: list[int], mark: int) -> None:
        """Add columns up to a mark, and keep the polished fit of each budget on the way."""
        free = self._free.size
        counted = ~np.isin(walk.support, self._free)
        places = np.searchsorted(walk.members, np.concatenate([self._free, walk.support[counted]]))
        tableau = Tableau(
            gram,
            target,
            places.tolist(),
            free=free,
            signs=None if self._selection.signs is None else self._selection.signs[walk.members],
            feasible=np.concatenate([np.zeros(free), walk.coef[counted]]),
        )
        least, negligible = self._eps * walk.scale, max(self._tol, 4 * self._eps) * walk.scale
        for k in budgets:
            grow(tableau, free + k, least)
            fit = descend(tableau.copy(), free + k, least, negligible)
            walk.fits.append((walk.members[fit.chosen], fit.coef))
        grow(tableau, free + mark, least)
        order = np.argsort(tableau.chosen)
        walk.support, walk.coef = walk.members[tableau.chosen][order], tableau.coef[order]
        walk.bar = tableau.best_addition()[1] if mark else 0.0

    def _let_in(self, walks: list[_Walk], most: int) -> None:
        """Let columns into each fold's working set, by the gradient over its training rows."""
        xp = namespace(self._y)
        residuals = []
        for walk in walks:
            support = move(walk.support, self._y)
            coef = xp.astype(move(walk.coef, self._y), self._y.dtype)
            residuals.append(self._y - self._design.columns(support).predict(coef) if walk.support.size else self._y)
        residual = xp.stack(residuals, axis=1)
        slopes = self._design.pullback(self._weights * residual)
        losses = to_numpy(xp.sum(self._weights * residual * residual, axis=0))
        for fold, walk in enumerate(walks):
            walk.scale = walk.scale or 0.5 * float(losses[fold])
            slope, bend = slopes[:, fold], self._bend[:, fold]
            eligible = (bend > 0) & ~mask_of(move(walk.members, self._y), bend.shape[0])
            if self._selection.signs is not None:
                wanted = move(self._selection.signs, self._y)
                eligible = eligible & ((wanted == 0) | ((slope > 0) == (wanted > 0)))
            gain = xp.where(eligible, slope * slope / (2 * xp.where(bend > 0, bend, xp.ones_like(bend))), 0 * bend)
            gain = xp.where(gain > EFFORTS["balanced"].share * walk.bar, gain, 0 * gain)
            new = to_numpy(top_k(gain, min(most, int(xp.count_nonzero(gain)))))
            walk.members = np.sort(np.concatenate([walk.members, new]))

    def _path(self, walk: _Walk) -> FoldPath:
        columns = np.unique(np.concatenate([chosen for chosen, _ in walk.fits]))
        coefs = np.zeros((len(walk.fits), columns.size))
        for row, (chosen, coef) in enumerate(walk.fits):
            coefs[row, np.searchsorted(columns, chosen)] = coef
        coefs[:, np.searchsorted(columns, self._free)] += self._shift
        return FoldPath(columns, coefs)


def _double(x: Array) -> np.ndarray:
    return np.asarray(to_numpy(x), dtype=np.float64)
