"""Features whose coefficients are rounding errors, which remain after a perfect fit with too many features."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import double, move, namespace, to_numpy
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.result import Result
from hardthresh.losses import Loss
from hardthresh.objectives import LinearModel

from .nuisance import moved
from .problem import Problem

_ROUNDING = 64
"""Units in the last place of rounding, for some hundred operations. Arbitrary."""


def without_rounding(problem: Problem, result: Result) -> Result:
    """Return a result without the features whose coefficients are rounding.

    These are features with coefficients within the rounding of the largest one that change no prediction by more than
    the rounding of predictions and targets. Where the loss only compares predictions with each other, as that of
    censored times, coefficients and predictions within the rounding of 1 are zero.

    Parameters
    ----------
    problem : Problem
        A problem of single columns; of others the result is returned.
    result : Result
        Its result.

    Notes
    -----
    Cost: none where all coefficients are above rounding, else a prediction for each that is not.
    """
    objective, budget = problem.objective, coordinate_budget(problem.constraint, tuple(problem.objective.shape))
    if budget is None or not isinstance(objective, LinearModel) or not result.converged:
        return result
    w, pointwise = result.w, isinstance(objective.loss, Loss)
    rounding = _ROUNDING * float(namespace(w).finfo(w.dtype).eps)
    sizes = np.abs(double(w))
    sizes[list(budget.free)] = 0.0
    largest, unit = float(np.max(sizes, initial=0.0)), 0.0 if pointwise else 1.0
    tiny = np.flatnonzero((sizes > 0.0) & (sizes <= rounding * max(largest, unit)))
    if not tiny.size:
        return result
    point, u = to_numpy(w).copy(), double(objective.predict(w))
    compared = np.append(u, double(objective.y)) if pointwise else u
    size = max(float(np.max(np.abs(compared))), unit)
    for j in tiny:
        kept = point[j]
        point[j] = 0
        if np.max(np.abs(double(objective.predict(move(point, w))) - u)) > rounding * size:
            point[j] = kept
    return moved(problem, result, objective.evaluate(move(point, w)))
