"""What a fitted linear model, and each model of its path, predicts for rows: what charts and reports draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.arrays import double, move, to_numpy
from hardthresh.core.typing import Array

from ..base import numpy_dtype
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
    u : array, shape (n,) or (n, q)
        Linear predictors, offsets included.
    weight : array, shape (n,)
        Positive weights.
    held_out : bool
        Whether each prediction is by a model that was fitted without the row.
    """

    y: np.ndarray
    u: np.ndarray
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
    u : array, shape (n_candidates, m) or (n_candidates, m, q)
        The linear predictors of the model of each candidate.
    """

    number: np.ndarray
    y: np.ndarray
    u: np.ndarray


def rows_of_fit(problem: Problem, coef: np.ndarray, intercept: np.ndarray) -> Rows:
    """Return the rows of a problem with the predictions of a model.

    Parameters
    ----------
    problem : Problem
        The problem of the rows.
    coef, intercept : ndarray
        The coefficients on the scale of the data, as `Problem.point` takes them, and the intercept.
    """
    objective = problem.objective
    u = objective.predict(_point(problem, coef, intercept))
    weight = double(objective.weights) * objective.targets.n_examples
    return Rows(double(objective.y), double(u), weight, held_out=False)


def rows_of_path(problem: Problem, rows: Rows, coefs: Any, intercepts: Any) -> PathRows:
    """Return some rows, from the smallest to the largest prediction, with the predictions of each model of a path.

    Parameters
    ----------
    problem : Problem
        The problem of the rows.
    rows : Rows
        The same rows, with the predictions of the final model.
    coefs, intercepts : array
        The coefficients and the intercept of each candidate, first axis of length n_candidates.
    """
    first = rows.u if rows.u.ndim == 1 else rows.u[:, 0]
    order = np.argsort(first, kind="stable")
    number = order[np.unique(np.linspace(0, len(order) - 1, min(_SHOWN, len(order))).astype(int))]
    objective = problem.objective
    some = objective.design.rows(move(number, problem.mean))
    offset = 0.0 if objective.offset is None else double(objective.offset)[number]
    u = [
        double(some.predict(_point(problem, coef, intercept))) + offset
        for coef, intercept in zip(to_numpy(coefs), to_numpy(intercepts), strict=True)
    ]
    return PathRows(number, rows.y[number], np.stack(u))


def _point(problem: Problem, coef: np.ndarray, intercept: np.ndarray) -> Array:
    """Return the point of coefficients that may be of another precision than the problem."""
    dtype = numpy_dtype(problem.mean)
    return problem.point(move(coef.astype(dtype), problem.mean), move(np.asarray(intercept, dtype=dtype), problem.mean))
