"""Cross-validation over rows in memory: which rows are held out where, and how fits predict these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.selection import null_p_value
from hardthresh.selection.grid import standard_error
from hardthresh.solvers.start import starting_point

from ..folds import Metadata, Splits
from ..table import Table
from .averages import exponential_average, stacked_average
from .grid_models import Search
from .null_comparison import NullComparison, are_counts, compare_with_none, mean_over_rows, rows_of_weight
from .problem import Problem
from .rows import Rows


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How one model for each fold predicts the rows that this holds out.

    Attributes
    ----------
    scores : dict
        The scores, by name.
    calibration : array, or None
        The calibration of the predictions.
    rows : Rows, or None
        The held-out rows and what is expected of them.
    """

    scores: dict[str, float]
    calibration: Any = None
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class RowSplits:
    """The folds of a table in memory; `BlockSplits` are those of one in blocks.

    Attributes
    ----------
    splits : list of (array of int, array of int)
        The rows that each fold trains on, and those that it holds out.
    score_params : list of dict
        The metadata for the scorer of each.
    groups : array of int, shape (n,), or None
        The number of the group of each row.
    """

    splits: Splits
    score_params: list[Metadata]
    groups: np.ndarray | None

    def described(self, table: Table) -> Table:
        """Return the table: its targets are there."""
        return table

    def divided(self, table: Table, pose: Callable[[Any, int], Problem]) -> tuple[Table, Problem]:
        """Return the table and its problem."""
        return table, pose(table, 0)

    def training_tables(self, table: Table) -> Iterator[Table]:
        """Yield the rows that each fold trains on."""
        return (table.take(train) for train, _ in self.splits)

    def fewest_rows(self, model: Any) -> int:
        """Return how many rows the fold with the fewest trains on."""
        return min(train.size for train, _ in self.splits)

    def search(
        self, estimator: Any, table: Table, problem: Problem, sizes: np.ndarray, ridges: np.ndarray, seed: int
    ) -> Search:
        """Return the fits of all sizes with all ridges in each fold and on all rows, and their held-out scores."""
        training = [*(train for train, _ in self.splits), np.arange(table.n_rows)]
        *folds, everywhere = estimator._fold_fits(table, problem, training, sizes, ridges, seed)
        scores = [
            estimator._scores(fold, table, split, params)
            for fold, split, params in zip(folds, self.splits, self.score_params, strict=True)
        ]
        return Search(sizes, ridges, folds, everywhere, np.stack(scores, axis=2))

    def compared_with_none(
        self, estimator: Any, search: Search, single: tuple[int, int], problem: Problem, table: Table, seed: int
    ) -> NullComparison:
        """Return whether a single model predicts held-out rows better than the null model."""

        def p_value() -> float:
            model = problem.objective
            at = starting_point(model, problem.with_budget(0).constraint, None)[0]
            slope = double(model.mean_loss.slopes(at.prediction))
            structure = problem.constraint.structure(tuple(model.shape))
            signs = structure.signs if isinstance(structure, CoordinateBudget) else None
            tested, slope, free, signs = problem.tested(slope, signs)
            return null_p_value(tested, slope, free, signs, seed, self.groups)

        prediction, (row, ridge) = search.everywhere.prediction, single
        if estimator.scoring is not None or self.groups is not None or row == 0 or not prediction.by_row:
            gains = search.scores[row, ridge] - search.scores[0, 0]
            return compare_with_none(float(gains.mean()), float(standard_error(gains)), p_value, clear=False)
        places = [0, row], [0, ridge]
        fits = [(fold.coefs[places], fold.intercepts[places]) for fold in search.folds]
        rows, u = self._predictors(fits, search, table)
        losses = prediction.losses(double(table.y)[rows], u)
        gains = prediction.score_scale * (losses[:, 0] - losses[:, 1])
        weights = table.row_weights()
        gain, error = mean_over_rows(gains, rows, weights)
        return compare_with_none(gain, error, p_value, clear=are_counts(weights) or np.ptp(weights) == 0)

    def n_rows(self, table: Table) -> float:
        """Return how many rows there are: weights that are whole numbers count rows, others do not."""
        return rows_of_weight(table.row_weights())

    def average(self, search: Search, candidates: np.ndarray, averaging: str, table: Table) -> np.ndarray:
        """Return the weights of all models in the average, shape (n_sizes, n_ridges)."""
        weights = table.row_weights()
        if averaging == "exponential":
            return exponential_average(search, candidates, self.n_rows(table))
        rows, u = self._predictors([fold.flat() for fold in search.folds], search, table)
        return stacked_average(search, candidates, double(table.y)[rows], u, weights[rows])

    def held_out(
        self, estimator: Any, search: Search, fits: Sequence[tuple[np.ndarray, np.ndarray]], table: Table
    ) -> HeldOut:
        """Return how well one model for each fold predicts held-out rows."""
        rows, u = self._predictors(fits, search, table)
        y, weight = double(table.y)[rows], table.row_weights()[rows]
        every = np.arange(table.n_rows)
        number = np.repeat(np.arange(len(self.splits)), [every[test].size for _, test in self.splits])
        prediction = search.everywhere.prediction
        expected = estimator._expected(u[:, 0], getattr(prediction, "loss", estimator._loss))
        known = None if table.offset is None else double(table.offset)[rows]
        scores = prediction.held_out_scores(y, u[:, 0], weight, number, known)
        if not any(np.any(coef) for coef, _ in fits):  # the line would be that of one constant for each fold
            scores |= dict.fromkeys(scores.keys() & {"calibration_intercept", "calibration_slope"}, np.nan)
        calibration = prediction.calibration(y, u[:, 0], weight)
        return HeldOut(scores, calibration, Rows(y, expected, weight, held_out=True))

    def _predictors(
        self, fits: Sequence[tuple[np.ndarray, np.ndarray]], search: Search, table: Table
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are held out, fold by fold, and the linear predictors of some fits there.

        `fits` has for each fold the coefficients of its columns for some fits, and the intercepts; the predictors have
        a column for each fit, and an entry for each component of that.
        """
        found = [
            fold.predict(table.take(test), *fit)
            for fold, (_, test), fit in zip(search.folds, self.splits, fits, strict=True)
        ]
        return np.concatenate([np.arange(table.n_rows)[test] for _, test in self.splits]), np.concatenate(found)
