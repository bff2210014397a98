"""Predictions of a fitted linear model, and of each model of its path, for charts and reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardthresh.arrays import double

from .problem import Problem

_SHOWN = 6
"""Number of rows whose predictions are shown for each model of a path: they fit on a screen. Arbitrary."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows with their targets and predictions.

    Attributes
    ----------
    y : array, shape (n,) or (n, q)
        Targets as the loss takes them, such as 0 and 1 for two classes.
    predicted : array, shape (n,) or (n, q)
        What `SparseLinearModel._expected` makes of the linear predictors: expected targets; the probability of the
        second class, or of each of several; or a decision, or a log relative hazard.
    weight : array, shape (n,)
        Positive weights.
    held_out : bool
        Whether each prediction is by a model that was fitted without the row.
    """

    y: np.ndarray
    predicted: np.ndarray
    weight: np.ndarray
    held_out: bool


@dataclass(frozen=True, slots=True, eq=False)
class PathRows:
    """A few rows with the predictions of each model of a path.

    Attributes
    ----------
    number : array of int, shape (m,)
        Which rows they are, among those of positive weight.
    y : array, shape (m,) or (m, q)
        Their targets as the loss takes them.
    predicted : array, shape (n_candidates, m) or (n_candidates, m, q)
        What the model of each candidate predicts, as in `Rows`.
    """

    number: np.ndarray
    y: np.ndarray
    predicted: np.ndarray


def rows_of_fit(problem: Problem, predicted: np.ndarray) -> Rows:
    """Return the rows of a problem with the predictions of a model."""
    objective = problem.objective
    weight = double(objective.weights) * objective.targets.n_examples
    return Rows(double(objective.y), predicted, weight, held_out=False)


def rows_of_path(rows: Rows, predicted: list[np.ndarray]) -> PathRows:
    """Return some rows, from the smallest to the largest prediction, with the predictions of each model of a path.

    Parameters
    ----------
    rows : Rows
        All rows, with the predictions of the final model.
    predicted : list of array
        The predictions of all rows by the model of each candidate.
    """
    first = rows.predicted if rows.predicted.ndim == 1 else rows.predicted[:, 0]
    order = np.argsort(first, kind="stable")
    number = order[np.unique(np.linspace(0, len(order) - 1, min(_SHOWN, len(order))).astype(int))]
    return PathRows(number, rows.y[number], np.stack([some[number] for some in predicted]))
