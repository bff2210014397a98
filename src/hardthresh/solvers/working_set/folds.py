"""Paths on the training rows of each fold, for held-out scores.

A path has a fit for each number of columns and each ridge. For least squares the folds share their readings of the
data. Rows that the same folds train on are a part; moments of the columns over all parts come from one reading, and are
added up for each fold. Later gradients are products with right-hand sides that are zero where a fold does not train,
one for each fold. If columns are few, all of them are each fold's working set, and its Gram matrix is the sum of those
of its parts; else each fold screens the columns, and computes a Gram matrix of its own, which grows with its working
set. On a Gram matrix a ridge is a diagonal. Nothing that a fold decides depends on a row held out from it: its columns
are standardised and screened by moments of its own training rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardthresh.arrays import double, move
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.threads import serial_blas
from hardthresh.objectives import LinearModel

from .fold_moments import Parts
from .fold_path import FoldPath, checked_budgets, checked_ridges, checked_training, searched_ridge
from .fold_search import FoldSearch
from .model import Gram, union
from .state import next_checkpoint
from .training_sets import ENTRIES, TrainingSets, row_counts

_FOLDS = 16
"""How many folds share their work, a limit of memory: with 4 to 64 the scores of 40 models are the same. More folds are
divided into batches."""
_FEW, _FEW_PER_CHOICE = 100, 4
"""Up to so many columns, and so many more for each in the largest model, are not screened. For 50 of 200, 300 and 400
columns screening takes 1.1, 1.0 and 0.9 of the time, with 120 to 200 rows; for 10 of 100, 200 and 300 columns 1.4, 0.9
and 0.7. Unlike the solver, which needs its own coefficients, folds do so in single precision, too: on 30 tables of
120 x 90, with means of up to a thousand deviations, mean scores differ by 9e-4 at most, and the chosen k is equal."""


@serial_blas()
def least_squares_fold_paths(
    objective: LinearModel,
    selection: CoordinateBudget,
    training: Sequence[np.ndarray],
    budgets: Sequence[int],
    ridges: Sequence[float] | np.ndarray = (0.0,),
    *,
    intercept: bool,
    standardize: bool,
    tol: float = 1e-8,
) -> list[FoldPath]:
    """Return the path of every fold of a least-squares problem.

    Parameters
    ----------
    objective : LinearModel
        The squared loss on all rows. Its own ridge is not used.
    selection : CoordinateBudget
        Which columns are free, and their bounds; its budget is not used.
    training : sequence of array of int
        The training rows of each fold.
    budgets : sequence of int
        Increasing numbers of columns.
    ridges : sequence of float, or array, shape (n_folds, n_ridges)
        Ridges >= 0 of the columns that are not free, at least one: the same for all folds, or a row for each.
    intercept : bool
        Whether the last column is one everywhere, and free.
    standardize : bool
        Whether a ridge is that of columns scaled to unit variance over the fold's training rows, or of the columns as
        they are.
    tol : float
        Decrease of an exchange, relative to the null model, that counts as progress.

    Returns
    -------
    list of FoldPath

    Raises
    ------
    InvalidInputError
        For another loss, budgets that decrease, ridges that are negative or none, or training rows that are empty, of
        no weight, or anything but row numbers.

    Notes
    -----
    A fold's search is that of `hardthresh.solvers.WorkingSet` with effort "fast", for all budgets at once: a forward
    path with screening at checkpoints of 4, 10, 25, ... columns, once more screening at the fits with these budgets and
    the largest, improved by exchanges, and then sweeps over the budgets, but not over others near them. No budget is
    rechecked by a gradient of its own, and there are no add-drop moves. Up to 100 columns, and 4 more for each in the
    largest model, are not screened. Each ridge is searched on its own, on the columns that one of the smaller ridges
    finds by screening.

    Cost: one reading of the data, about ``2 log(K)`` products of the data with a right-hand side for each fold, which
    BLAS does at a third of a pass each, a Gram matrix of each fold's working set, and a few hundred updates of a
    tableau for each fold. Without screening, the Gram matrices are sums of those of parts of the rows, so that each row
    is multiplied once for all folds.
    """
    if not objective.traits.quadratic:
        raise InvalidInputError(f"folds share their work for the squared loss only, not for {objective.loss}")
    budgets, training = checked_budgets(budgets), checked_training(training, objective)
    ridges = checked_ridges(ridges, len(training))
    paths: list[FoldPath] = []
    for start in range(0, len(training), _FOLDS):
        some = training[start : start + _FOLDS]
        folds = _Folds(objective, selection, some, intercept=intercept, standardize=standardize, tol=tol)
        paths += folds.paths(budgets, ridges[start : start + _FOLDS])
    return paths


class _Folds(FoldSearch, TrainingSets):
    """Folds whose moments and Gram matrices are sums of those of parts of the rows."""

    def __init__(
        self,
        objective: LinearModel,
        selection: CoordinateBudget,
        training: list[np.ndarray],
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        super().__init__(objective, selection, training, intercept=intercept, standardize=standardize, tol=tol)
        weights = double(self._row_weights)
        self._parts = Parts.of(training, row_counts(training, weights.size), weights)
        parts = [move(rows, self._y) for rows in self._parts.rows]
        read = self._design.part_moments(self._row_weights, self._y, parts, centred=intercept)
        self._part_mean, squares, products = (double(each) for each in read)
        level, spread = self._levels(weights)
        of_parts = self._part_mean, squares, products, level, spread
        self._folds = list(self._null_models(self._parts.weight, self._parts.share, *of_parts))
        total = self._parts.weight.sum()
        size = np.sum(squares + self._parts.weight[:, None] * self._part_mean**2, axis=0) / total
        self._single = self._in_single(size)

    def _levels(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of y over each part."""
        parts, y = self._parts, double(self._y)
        level, spread = np.zeros(len(parts.rows)), np.zeros(len(parts.rows))
        for part, rows in enumerate(parts.rows):
            share = weights[rows] / parts.weight[part]
            level[part] = share @ y[rows] if self._intercept else 0.0
            spread[part] = share @ (y[rows] - level[part]) ** 2
        return level, spread

    def paths(self, budgets: list[int], ridges: np.ndarray) -> list[FoldPath]:
        """Fill the working sets, with all columns or by screening, and fit all budgets with all ridges."""
        if self._takes_all_columns(budgets[-1]):
            self._add_grams_of_parts()
        else:
            self._screen_along_forward_path(budgets[-1], searched_ridge(ridges).tolist())
        return [self._path(number, budgets, own.tolist()) for number, own in enumerate(ridges)]

    def _takes_all_columns(self, budget: int) -> bool:
        """Return whether the columns are few, and so are the numbers in their Gram matrices."""
        entries = self._n_columns**2 * (len(self._folds) + len(self._parts.rows))
        return self._n_columns <= _FEW + _FEW_PER_CHOICE * budget and entries <= ENTRIES

    def _add_grams_of_parts(self) -> None:
        """Take all columns that vary as the working sets; their Gram matrices are sums of those of the parts."""
        parts, columns = self._parts, np.arange(self._n_columns)
        means, share = self._part_mean[:, columns], parts.share
        grams = np.stack([self._covariances(columns, *each) for each in zip(parts.rows, self._part_mean, strict=True)])
        sums = (share @ grams.reshape(len(grams), -1)).reshape(-1, columns.size, columns.size)
        for fold, shares, gram in zip(self._folds, share, sums, strict=True):
            gap = means - fold.mean[columns]
            gram += (gap.T * shares) @ gap
            fold.working_set = union(self._free, np.flatnonzero(fold.outside[columns]))
            fold.gram, fold.diagonal = Gram(columns, gram), gram.diagonal().copy()

    def _screen_along_forward_path(self, budget: int, ridges: list[float]) -> None:
        """Fill the working sets, first along forward paths, then by the best fits at their checkpoints.

        One ridge serves the others: with the second of six mean scores of 100 models are the same as with the smallest
        and the largest together, within 3e-4, and better than with the smallest alone by 2e-3.
        """
        checkpoint, checkpoints = 0, []
        while checkpoint < budget:
            self._screen([checkpoint], ridges, with_exchanges=False)
            checkpoint = next_checkpoint(checkpoint)
            checkpoints.append(min(checkpoint, budget))
        if checkpoints:
            self._screen(checkpoints, ridges, with_exchanges=True)
