"""Paths of the folds of a table in blocks, by least squares: their statistics are sums over the rows of each fold.

The last path is that of all rows. Each fold begins with the columns that a pilot on its own training rows has named, or
with all of them, and screens the others once, at the fits along its path: one reading for all folds, and another one
for the products of what they add.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.threads import serial_blas
from hardthresh.objectives.blocked import MOST_POINTS, Blocked

from .fold_moments import FoldFit
from .fold_path import FoldPath, checked_budgets, checked_ridges, searched_ridge
from .fold_search import FoldSearch
from .model import Gram, difference, union
from .state import next_checkpoint


@serial_blas()
def blocked_fold_paths(
    objective: Blocked,
    selection: CoordinateBudget,
    members: Sequence[np.ndarray],
    budgets: Sequence[int],
    ridges: Sequence[float] | np.ndarray = (0.0,),
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[FoldPath]:
    """Return the least-squares path of every fold of a table in blocks, and that of all rows.

    Parameters
    ----------
    objective : Blocked
        A model of the table, whose sums of each fold are kept apart. The loss is that of squared errors of its targets,
        whatever its own.
    selection : CoordinateBudget
        Which columns are free, and their bounds; its budget is not used.
    members : sequence of array of int
        The columns with which each fold begins, and all rows.
    budgets, ridges, intercept, standardize, tol :
        As for `least_squares_fold_paths`.

    Returns
    -------
    list of FoldPath
        One for each fold, and that of all rows.

    Notes
    -----
    The search is that of `least_squares_fold_paths`, but for its screening: once, at the fits of 4, 10, 25, ... columns
    that exchanges have improved. Cost: two readings, or none if the products of all columns are known.
    """
    budgets = checked_budgets(budgets)
    alphas = checked_ridges(ridges, objective.folds.count + 1)
    folds = BlockedFolds(objective, selection, members, intercept=intercept, standardize=standardize, tol=tol)
    return folds.paths(budgets, alphas)


class BlockSearch(FoldSearch):
    """Folds of a table in blocks that begin with the columns of their pilots, and screen the others once."""

    _together = MOST_POINTS

    def __init__(
        self,
        objective: Blocked,
        selection: CoordinateBudget,
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        units = objective.units
        eps = float(np.finfo(units.dtype).eps)
        super().__init__(selection, units.size, eps, intercept=intercept, standardize=standardize, tol=tol)
        if self._bounds is not None:
            self._bounds = self._bounds[:, : units.mean.size]  # of the columns: moments have no intercept
        self._objective = objective

    def begin(self, members: Sequence[np.ndarray]) -> None:
        """Set the columns with which each fold begins, which it does not screen."""
        for fold, columns in zip(self._folds, members, strict=True):
            some = columns[fold.outside[columns]]
            fold.working_set = union(self._free, some)
            fold.outside[some] = False

    def working_set(self, number: int) -> np.ndarray:
        """Return the columns among which a fold has searched."""
        return self._folds[number].working_set

    def paths(self, budgets: list[int], ridges: np.ndarray) -> list[FoldPath]:
        """Return the fits of all budgets with all ridges, after a screening of the columns."""
        marks, last = [0], 0
        while last < budgets[-1]:
            last = next_checkpoint(last)
            marks.append(min(last, budgets[-1]))
        if any(fold.outside.any() for fold in self._folds):
            self._screen(marks, searched_ridge(ridges).tolist(), with_exchanges=True)
        return [self._path(number, budgets, own.tolist()) for number, own in enumerate(ridges)]

    def _lacks(self, number: int) -> bool:
        """Return whether the Gram matrix of a fold lacks columns of its working set."""
        fold = self._folds[number]
        return bool(difference(fold.working_set, np.sort(fold.gram.columns)).size)

    def _every(self) -> np.ndarray:
        """Return the columns of all working sets."""
        every: np.ndarray = reduce(union, [fold.working_set for fold in self._folds])
        return every

    def _coordinates(self, fit: FoldFit) -> np.ndarray:
        """Return the coefficients of a fit, shape (d + 1,) or (d,); an intercept is zero."""
        w = np.zeros(self._objective.units.size)
        w[fit.columns] = fit.coef
        return w


class BlockedFolds(BlockSearch):
    """Folds whose moments and Gram matrices are sums of those of the rows that each holds out."""

    def __init__(
        self,
        objective: Blocked,
        selection: CoordinateBudget,
        members: Sequence[np.ndarray],
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        super().__init__(objective, selection, intercept=intercept, standardize=standardize, tol=tol)
        units, parts = objective.units, objective.part_moments(intercept)
        self._weight = np.array([part.total for part in parts])
        self._mean = np.stack([(part.mean - units.mean * intercept) * units.inverse_scale for part in parts])
        left = np.vstack([1.0 - np.eye(len(parts)), np.ones(len(parts))]) * self._weight
        self._share = left / left.sum(axis=1, keepdims=True)
        scale = units.inverse_scale
        squares, products = (
            self._weight[:, None] * np.stack(each)
            for each in ([(part.deviation * scale) ** 2 for part in parts], [part.crossed * scale for part in parts])
        )
        level = np.array([part.target_mean for part in parts])
        spread = np.array([part.target_variance for part in parts])
        moments = self._mean, squares, products, level, spread
        self._folds = list(self._null_models(self._weight, self._share, *moments))
        self.begin(members)

    @property
    def totals(self) -> np.ndarray:
        """The weight of the rows that each fold trains on, and of all rows."""
        totals: np.ndarray = (self._share > 0) @ self._weight
        return totals

    @property
    def target_means(self) -> np.ndarray:
        """The mean of the targets of the rows that each fold trains on, and of all rows."""
        means: np.ndarray = self._share @ [part.target_mean for part in self._objective.parts]
        return means

    def penalty(self, number: int) -> np.ndarray:
        """Return the share of each column of a fold in a ridge."""
        return self._folds[number].penalty

    def _extend_gram(self, number: int) -> None:
        if not self._lacks(number):
            return
        fold = self._folds[number]
        columns = fold.working_set
        moments = self._objective.part_products(self._every(), columns, self._intercept)
        gap = self._mean[:, columns] - fold.mean[columns]
        gram = np.tensordot(self._share[number], moments, 1) + (gap.T * self._share[number]) @ gap
        fold.gram, fold.diagonal = Gram(columns, gram), gram.diagonal().copy()

    def _slopes(self, fits: list[tuple[int, FoldFit]]) -> np.ndarray:
        slopes = np.stack([self._folds[number].slope for number, _ in fits])
        asked = [place for place, (_, fit) in enumerate(fits) if fit.columns.size]
        if asked:
            points = [(self._coordinates(fits[place][1]), fits[place][1].intercept) for place in asked]
            numbers = np.array([fits[place][0] for place in asked])
            left_out = np.where(numbers < self._weight.size, numbers, -1)
            found = self._objective.residual_products(points, left_out)
            slopes[asked] = double(found) / self.totals[numbers, None]
        return slopes
