"""Least squares on several sets of training rows, which share their products with the data."""

from __future__ import annotations

from functools import reduce

import numpy as np

from hardthresh.arrays import double, gather, move, namespace
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.designs import Design, centred_block
from hardthresh.objectives import LinearModel

from .fold_moments import Fold, FoldFit
from .model import Gram, difference, tolerances_at_scale, union
from .tableau import Tableau

ENTRIES = 1 << 23
"""Limit of the entries of the right-hand sides of one product with the data, and of the Gram matrices of all columns:
64 MB each."""
_CONSTANT = 64
"""A column is constant in a fold if its variance is at most so many units of rounding of its mean square: sums by pairs
of up to 2^64 rows are off by less."""
_ALIKE = 1e-4
"""Screening may be in single precision if no column that varies in a fold has a variance there of less than this share
of its mean square: then the rounding of 1e-6 of the column is at most 1e-4 of its part in the fold."""
_SMALLEST = 1e-60
"""Nor if a mean square is below this number or above its inverse: entries of 1e-30 have all digits of single precision,
down to a hundred millionth of them."""


class WorkingSets:
    """The working sets of several sets of training rows, to which columns are added by the gradients at fits.

    A subclass computes the moments, `_folds`, and fills the working sets.
    """

    _folds: list[Fold]
    _together: int
    """At how many fits columns are screened together."""

    def __init__(
        self,
        selection: CoordinateBudget,
        size: int,
        eps: float,
        *,
        intercept: bool,
        standardize: bool,
        tol: float,
    ) -> None:
        self._intercept, self._bounds, self._tol, self._standardize = intercept, selection.bounds, tol, standardize
        self._n_columns, self._eps = size - intercept, eps
        self._free = np.array([j for j in selection.free if not (intercept and j == size - 1)], dtype=np.int64)

    def _fold(self, mean: np.ndarray, variance: np.ndarray, slope: np.ndarray, level: float, spread: float) -> Fold:
        """Return the null model of a set, from the moments of its columns and of its targets.

        Parameters
        ----------
        mean, variance, slope : array, shape (d,)
            The mean of each column, its variance and its covariance with y.
        level, spread : float
            The mean of y and its variance.
        """
        if self._intercept:
            variance[~(variance > _CONSTANT * self._eps * (variance + mean * mean))] = 0.0
        penalty = variance.copy() if self._standardize else np.ones_like(variance)
        penalty[self._free] = 0.0
        variance[~(variance > 0)] = np.inf
        outside = np.isfinite(variance)
        outside[self._free] = False
        scale = 0.5 * spread
        if scale <= 0.5 * (_CONSTANT * self._eps * level) ** 2:  # a constant target
            slope, scale = np.zeros_like(slope), 0.0
        return Fold(mean, slope, variance, penalty, outside, level, scale, self._free)

    def _tableau(self, number: int, ridge: float) -> Tableau:
        """Return the tableau of a fold's null model with a ridge; the next tableau of the fold changes its matrix."""
        self._extend_gram(number)
        fold = self._folds[number]
        columns, matrix = fold.working_set, fold.gram.matrix
        np.fill_diagonal(matrix, fold.diagonal + ridge * fold.penalty[fold.gram.columns])
        free = np.searchsorted(columns, self._free).tolist()
        bounds = None if self._bounds is None else self._bounds[:, columns]
        return Tableau(
            matrix, fold.slope[columns], free, n_free=len(free), gram_rows=fold.gram.rows(columns), bounds=bounds
        )

    def _tolerances(self, fold: Fold, tableau: Tableau) -> tuple[float, float]:
        """Return what is rounding and what is negligible for a fold: its null model has the free columns."""
        scale = max(fold.scale - tableau.decrease, self._eps * fold.scale)
        return tolerances_at_scale(self._eps, self._tol, scale)

    def _screen_at_fits(self) -> None:
        """Add columns to the working sets by the gradients at all of their `fits`."""
        fits = [(fold, fit) for fold in range(len(self._folds)) for fit in self._folds[fold].fits]
        for start in range(0, len(fits), self._together):
            some = fits[start : start + self._together]
            for (number, fit), slope in zip(some, self._slopes(some), strict=True):
                self._folds[number].screen(slope, fit, self._bounds)

    def _extend_gram(self, number: int) -> None:
        """Compute what the Gram matrix of a fold lacks of its working set."""
        raise NotImplementedError

    def _slopes(self, fits: list[tuple[int, FoldFit]]) -> np.ndarray:
        """Return the negative gradients at some fits of sets, shape (n_fits, d)."""
        raise NotImplementedError


class TrainingSets(WorkingSets):
    """Sets of training rows in memory, with the gradients of all from one product with the data."""

    _single: bool
    """Whether screening may be in single precision."""

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
        self._design, self._row_weights = objective.design, objective.weights
        self._y = objective.y if objective.offset is None else objective.y - objective.offset
        eps = float(namespace(self._y).finfo(self._y.dtype).eps)
        super().__init__(
            selection, objective.design.shape[1], eps, intercept=intercept, standardize=standardize, tol=tol
        )
        self._training, self._together = training, max(1, ENTRIES // self._y.shape[0])
        shares = row_shares(training, double(self._row_weights))
        self._weights = namespace(self._y).astype(move(shares, self._y), self._y.dtype, copy=False)

    def _in_single(self, size: np.ndarray) -> bool:
        """Return whether screening may be in single precision, for the mean square of each column over all sets."""
        in_range = bool(np.all((size == 0.0) | ((size > _SMALLEST) & (size < 1.0 / _SMALLEST))))
        return in_range and all(np.all(fold.variance >= _ALIKE * size) for fold in self._folds)

    def _extend_gram(self, number: int) -> None:
        """Compute what the Gram matrix of a fold lacks of its working set."""
        fold, rows = self._folds[number], self._training[number]
        columns, known = fold.working_set, fold.gram.columns
        new = difference(columns, np.sort(known))
        if new.size == 0:
            return
        block = self._centred(columns, rows, fold.mean)
        added = block.columns(move(columns.searchsorted(new), self._y)) if known.size else block
        products, every = self._products(block, added, rows), np.concatenate([known, new])
        matrix = np.empty((every.size, every.size))
        matrix[: known.size, : known.size] = fold.gram.matrix
        matrix[:, known.size :] = products[columns.searchsorted(every)]
        matrix[known.size :, : known.size] = matrix[: known.size, known.size :].T
        fold.gram = Gram(every, matrix)
        fold.diagonal = np.concatenate([fold.diagonal, matrix.diagonal()[known.size :]])

    def _covariances(self, columns: np.ndarray, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return the covariances of some columns over some rows, with the mean of each of all columns."""
        block = self._centred(columns, rows, mean)
        return self._products(block, block, rows)

    def _centred(self, columns: np.ndarray, rows: np.ndarray, mean: np.ndarray) -> Design:
        """Return some columns of some rows, less their means if there is an intercept."""
        where, some = move(rows, self._y), move(columns, self._y)
        if not self._intercept:
            return self._design.block(where, some)
        center = namespace(self._y).astype(move(mean[columns], self._y), self._y.dtype)
        return centred_block(self._design, where, some, center)

    def _products(self, left: Design, right: Design, rows: np.ndarray) -> np.ndarray:
        """Return the weighted mean products of two blocks of columns of some rows."""
        weights = gather(self._row_weights, move(rows, self._y))
        products = double(left.gram(weights, None if left is right else right))
        products /= np.sum(double(weights))
        return products

    def _slopes(self, fits: list[tuple[int, FoldFit]]) -> np.ndarray:
        """Return the negative gradients at some fits of sets, shape (n_fits, d): one product with the data for all."""
        if all(fit.columns.size == 0 for _, fit in fits):
            return np.stack([self._folds[number].slope for number, _ in fits])
        xp, like = namespace(self._y), self._y
        columns = reduce(union, (fit.columns for _, fit in fits))
        coefs = np.zeros((columns.size, len(fits)))
        for place, (_, fit) in enumerate(fits):
            coefs[np.searchsorted(columns, fit.columns), place] = fit.coef
        coef, intercepts = (
            xp.astype(move(x, like), like.dtype) for x in (coefs, np.array([fit.intercept for _, fit in fits]))
        )
        residual = like[:, None] - intercepts - self._design.columns(move(columns, like)).predict(coef)
        residual *= xp.take(self._weights, move(np.array([number for number, _ in fits]), like), axis=1)
        pullback = self._design.screening_pullback if self._single else self._design.pullback
        return double(pullback(residual)).T


def row_counts(training: list[np.ndarray], n: int) -> np.ndarray:
    """Return how often each of n rows is in each set, shape (n, n_sets)."""
    counts = np.zeros((n, len(training)))
    for number, rows in enumerate(training):
        np.add.at(counts[:, number], rows, 1.0)  # a row may be drawn twice
    return counts


def row_shares(training: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the share that each row has in the weight of each set, shape (n, n_sets)."""
    shares = row_counts(training, weights.size)
    shares *= weights[:, None]
    shares /= shares.sum(axis=0)
    return shares
