"""Minimising f on one support, by a few Newton-CG steps or to the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, nan

from hardthresh.arrays import all_finite, namespace
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.objective import Evaluation, Objective, value_rounding
from hardthresh.core.stationarity import norm
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import ARMIJO, Candidate

from .newton import LEFT_OUT, newton_direction
from .steepest import search_along
from .subspace import Subspace, subspace

FULL_SOLVE = 25
"""Limit of the Newton steps that minimise f on a support: 1,187 of 1,207 such solves took at most 7, the others 24 or
25."""
_PAYS = 0.01
"""Share of f that each further step along the gradient has to gain. Arbitrary: 18 classifiers with offsets of up to 500
have the same answers with 0 to 0.1, and with a limit of 1 to 16 such steps."""
_GRADIENT_STEPS = 4
"""Number of steps along the gradient that one call makes where there is no curvature."""


def refine(
    objective: Objective,
    constraint: Constraint,
    projection: Projection,
    prediction: Array | None = None,
    *,
    cg_iterations: int,
    rounds: int = 1,
    tol: float = 0.0,
    below: float = inf,
    along_gradient: bool = True,
    start: Support | None = None,
) -> Candidate:
    r"""Return a point of the same support with a lower value, by Newton steps that stay inside the constraint.

    Each round solves :math:`H p = -g` on the part of the support where no bound holds, by CG, and searches along the
    projected path w + t p, t = 1, 1/2, ... Where the curvature along the gradient is zero, negative or not a number,
    the search is along the gradient, by the values of f alone.

    Parameters
    ----------
    projection : Projection
        Where to start.
    prediction : array, optional
        The objective's prediction there, if the caller has it.
    cg_iterations : int
        Products with H per round; 0 asks for a full solve. On a small support that is direct: with the objective's own
        Hessian if it offers one, else where CG has not ended after one product for each free entry.
    rounds : int
        Limit of Newton steps.
    tol : float
        Stop when the predicted decrease of f is at most this, or rounding.
    below : float
        Abandon the search if four times the predicted decrease would not lead below this value, as long as the last
        prediction was right up to a factor of two and more than four times as large (heuristic).
    along_gradient : bool
        Whether to search along the gradient where there is no curvature.
    start : Support, optional
        Where projections start, see `Constraint.project`.

    Notes
    -----
    Cost: 2s/d of a data pass per product with H, and as much per round besides. Monotone. The last step may raise f by
    rounding, but not above the start.
    """
    space = subspace(objective, constraint, projection.support)
    at = space.objective.evaluate(space.lower(projection.point), prediction)
    found, first = Candidate(projection, nan, at.value, at.prediction), at.value
    predicted, value, gradient_steps = 0.0, inf, 0
    for number in range(rounds):
        if number:
            at = _evaluate(space, found)
        support, free, slope = _free_slope(space, constraint, found, at)
        if norm(slope) == 0.0:
            return replace(found, minimal=True)
        direction, flat = newton_direction(space, at, slope, free, cg_iterations)
        project = partial(_project, space, constraint, support, start)
        before, predicted = predicted, -0.5 * float(namespace(slope).sum(slope * direction))
        curved = not along_gradient or 0.0 < predicted < inf
        better, last, enough = None, False, 0.0
        if curved:
            trusted = 0.5 * before <= value - at.value <= 2.0 * before and 4.0 * predicted < before
            if trusted and at.value - 4.0 * predicted > below:
                return replace(found, abandoned=True)
            value = at.value
            rounding = value_rounding(space.objective, at)
            enough = max(tol, rounding)
            last = predicted <= enough
            allowed = min(rounding, first - at.value) if last else 0.0  # there the gradient knows better than f
            better = _search(space, project, at, slope, direction, 1 if last else 30, allowed)
        left_out = last and gradient_steps <= _GRADIENT_STEPS and norm(flat) > LEFT_OUT * norm(slope)
        stuck = better is None and not last  # no curvature, or a loss that looks saturated: steps are far too long
        rest = flat if last else slope
        beyond = _along_gradient(space, project, at, rest) if along_gradient and (left_out or stuck) else None
        if beyond is not None and (stuck or at.value - beyond.value > enough):
            predicted, value, gradient_steps = 0.0, inf, gradient_steps + 1
            pays = left_out or (curved and at.value - beyond.value > _PAYS * abs(at.value))
            if gradient_steps > _GRADIENT_STEPS and not pays:
                return beyond
            found = beyond
            continue
        found = found if better is None else better
        if last or better is None:
            return replace(found, minimal=True)
    return found


def polish(objective: Objective, constraint: Constraint, found: Candidate) -> Candidate:
    """Return what one more Newton step leads to if the gradient is smaller there and f the same up to rounding.

    Near a minimum f says where it is to half of the digits only, and the gradient to all of them. `refine`, which never
    raises f, may end before.
    """
    space = subspace(objective, constraint, found.projection.support)
    at = _evaluate(space, found)
    support, free, slope = _free_slope(space, constraint, found, at)
    direction = newton_direction(space, at, slope, free, 0)[0]
    if not all_finite(direction):
        return found
    projection = _project(space, constraint, support, None, at.point + direction)
    after = space.objective.evaluate(space.lower(projection.point))
    same = abs(after.value - at.value) <= value_rounding(space.objective, at)
    if not (same and norm(space.keep(after.gradient, free)) < norm(slope)):
        return found
    return replace(found, projection=projection, value=after.value, prediction=after.prediction)


def _evaluate(space: Subspace, found: Candidate) -> Evaluation:
    """Return the objective of the subspace at a candidate."""
    at: Evaluation = space.objective.evaluate(space.lower(found.projection.point), found.prediction)
    return at


def _free_slope(
    space: Subspace, constraint: Constraint, found: Candidate, at: Evaluation
) -> tuple[Support, Support, Array]:
    """Return the support to move on from a candidate, its free part, and the gradient there."""
    support = space.support(found.projection)
    free = constraint.free_part(space.lift(at.point), space.lift(at.gradient), support)
    return support, free, space.keep(at.gradient, free)


def _project(space: Subspace, constraint: Constraint, support: Support, start: Support | None, v: Array) -> Projection:
    """Return the projection of a point of the subspace onto the set, on the support or part of it."""
    return constraint.project_onto(space.lift(v), support, start)


def _along_gradient(
    space: Subspace, project: Callable[[Array], Projection], at: Evaluation, slope: Array
) -> Candidate | None:
    """Return a point along the gradient where f is lower, by values of f alone; None if only rounding is to gain."""
    if 0.0 < norm(slope) * norm(at.point) <= 64.0 * value_rounding(space.objective, at):
        return None
    found = search_along(space.objective, at, -slope, project, lower=space.lower)
    return None if found is None else replace(found, step=nan)


def _search(
    space: Subspace,
    project: Callable[[Array], Projection],
    at: Evaluation,
    slope: Array,
    direction: Array,
    tries: int,
    allowed: float,
) -> Candidate | None:
    """Return the first of the projected points at + t direction, t = 1, 1/2, ..., with a sufficient decrease.

    The value may exceed that by `allowed`, which is rounding.
    """
    xp = namespace(direction)
    t = 1.0
    for _ in range(tries):
        projection = project(at.point + t * direction)
        point = space.lower(projection.point)
        prediction = space.objective.predict(point)
        value = space.objective.value(point, prediction)
        most = at.value + ARMIJO * float(xp.sum(slope * (point - at.point))) + allowed
        if value <= most and (value < at.value or allowed > 0.0):
            return Candidate(projection, nan, value, prediction)
        t *= 0.5
    return None
