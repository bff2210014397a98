"""The point at which a run starts."""

from __future__ import annotations

from math import inf
from typing import Any

from hardthresh.arrays import all_finite, as_floating
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.stationarity import norm
from hardthresh.steps.line_search import Candidate

from .refinement import FULL_SOLVE, refine
from .subspace import is_of_columns


def starting_point(objective: Objective, constraint: Constraint, w0: Any) -> tuple[Evaluation, Projection]:
    """Return the projection of `w0`, evaluated; without it the null model.

    The null model is zero except for free coordinates (an intercept), which are fitted, so that its value does not
    change when a constant is added to the targets. Cost: one data pass, and a second one if something that is not a
    coordinate is fitted.

    Raises
    ------
    InvalidInputError
        If `w0` is not numeric or finite, or has another shape than the objective's points.
    """
    zeros = objective.null_point()
    if w0 is not None:
        w = as_floating(w0, zeros, "w0")
        if tuple(w.shape) != tuple(objective.shape):
            raise InvalidInputError(f"w0 has shape {tuple(w.shape)}, the objective needs {tuple(objective.shape)}")
        if not all_finite(w):
            raise InvalidInputError("w0 contains NaN or infinity; start from finite numbers")
        projection = constraint.project(w)
        return objective.evaluate(projection.point), projection
    projection = constraint.project(zeros)
    chosen = projection.support.indices
    if chosen is not None and chosen.shape[0] > 0 and is_of_columns(objective):
        fit = _fit(objective, constraint, projection)
        return objective.evaluate(fit.projection.point, fit.prediction), fit.projection
    at = objective.evaluate(projection.point)
    if chosen is not None and chosen.shape[0] == 0:
        return at, projection
    if isinstance(objective, SmoothObjective) and norm(projection.support.restrict(at.gradient)) > 0.0:
        fit = refine(objective, constraint, projection, at.prediction, cg_iterations=0, rounds=FULL_SOLVE)
        projection, at = fit.projection, objective.evaluate(fit.projection.point, fit.prediction)
    return at, projection


def _fit(objective: Any, constraint: Constraint, projection: Projection) -> Candidate:
    """Return the minimiser on the coordinates of a support.

    If the exponential of a large offset dominates f, each Newton step changes the prediction by only 1, so that the
    steps continue as long as they halve f, unless f falls indefinitely.
    """
    fit = refine(objective, constraint, projection, cg_iterations=0, rounds=FULL_SOLVE)
    value = inf
    while not fit.minimal and fit.value < 0.5 * value:
        at = objective.evaluate(fit.projection.point, fit.prediction)
        if objective.recession(at, fit.projection.support.indices) is not None:
            break
        value = fit.value
        fit = refine(objective, constraint, fit.projection, fit.prediction, cg_iterations=0, rounds=FULL_SOLVE)
    return fit
