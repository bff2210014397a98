"""A step by the values of f alone: where the curvature is zero, negative or no number, or has led nowhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from typing import TypeVar

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.state import State
from hardthresh.core.stationarity import feasibility_residual, gradient_scale, is_negligible, norm, remaining_gradient
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import Descent, polyak_step

_GROW, _GROWTHS, _SHRINKS = 4.0, 15, 60
_SMALL = 1e-3  # of the gradient at the null model

S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class _Path:
    """The points that steps along a direction lead to."""

    objective: Objective
    at: Evaluation
    direction: Array
    reach: Callable[[Array], Projection]
    lower: Callable[[Array], Array]

    def descend(self, step: float) -> Descent | None:
        """Return where a step leads, if f falls there by a share of what the gradient promises."""
        try:
            projection = self.reach(self.at.point + step * self.direction)
            point = self.lower(projection.point)
            prediction = self.objective.predict(point)
            value = self.objective.value(point, prediction)
        except NotFiniteError:
            return None
        promise = -float(namespace(point).sum(self.at.gradient * (point - self.at.point)))
        if value < self.at.value and value <= self.at.value - 1e-4 * promise and isfinite(value):
            return Descent(projection, step, value, prediction)
        return None

    def nearer(self, step: float) -> Descent | None:
        """Return where the first of a step's quarters leads that lowers f, or its own quarter if that is lower."""
        shortest = float(namespace(self.direction).finfo(self.direction.dtype).eps) * norm(self.at.point)
        for _ in range(_SHRINKS):
            step /= _GROW
            if step * norm(self.direction) < shortest:
                break
            found = self.descend(step)
            if found is not None:
                return _better(found, self.descend(step / _GROW))
        return None


def search_along(
    objective: Objective,
    at: Evaluation,
    direction: Array,
    reach: Callable[[Array], Projection],
    lower: Callable[[Array], Array] = lambda w: w,
) -> Descent | None:
    r"""Return a step along a direction that lowers f, found from values alone.

    The first one tried is :math:`|f| / \|p\|^2`. While f falls by a share of what the gradient promises the step is
    multiplied by four, at most to 10^9 times the first, as long as that lowers f further; else it is divided by four.

    Parameters
    ----------
    objective, at, direction :
        Where to start, and the direction, of descent.
    reach : callable
        From a point to its projection.
    lower : callable
        From a projected point to the objective's own.

    Returns
    -------
    Descent or None
        None if no step that was tried lowers f, or the direction is zero or not finite.

    Notes
    -----
    Cost: one value for each step tried. Monotone.
    """
    if not 0.0 < norm(direction) < inf:
        return None
    path = _Path(objective, at, direction, reach, lower)
    step = polyak_step(at, direction)
    found = path.descend(step)
    if found is None:
        return path.nearer(step)
    for _ in range(_GROWTHS):
        farther = path.descend(_GROW * found.step)
        if farther is None or farther.value >= found.value:
            break
        found = farther
    return found


def _better(one: Descent, other: Descent | None) -> Descent:
    return one if other is None or one.value <= other.value else other


def search_feasible(objective: Objective, constraint: Constraint, state: State) -> Descent | None:
    """Return a lower point along the part of the gradient that is zero at a basic feasible point (`search_along`)."""
    direction = -remaining_gradient(constraint, state.at, state.support)
    return search_along(objective, state.at, direction, constraint.project)


def is_steep(constraint: Constraint, state: State, tol: float = 0.0) -> bool:
    """Return whether a point is far from basic feasible: then no solver has converged.

    That is, the residual is above a thousandth of the gradient at the null model, or more where `tol`, a relative
    decrease of f, or rounding are coarser. Where projections are approximate that is not known.
    """
    if not constraint.exact:
        return False
    eps = float(namespace(state.w).finfo(state.w.dtype).eps)
    share = max(_SMALL, 16.0 * sqrt(eps), 10.0 * sqrt(tol))
    scale = gradient_scale(state.at, state.trace.null_gradient)
    return not is_negligible(feasibility_residual(constraint, state.at, state.support), scale, share)


def verdict(objective: Objective, constraint: Constraint, state: S, why: str, tol: float, negligible: float) -> S:
    """Return the state of a solver that sees nothing left to improve: settled, or stalled where f is steep.

    It is steep and settled all the same where the curvature explains that no more than `negligible` is to be gained.
    """
    if is_steep(constraint, state, tol) and not _explained(objective, constraint, state, negligible):
        return replace(state, stalled=why)
    return replace(state, settled=why)


def _explained(objective: Objective, constraint: Constraint, state: State, negligible: float) -> bool:
    slope = remaining_gradient(constraint, state.at, state.support)
    length = norm(slope)
    if not (0.0 < length < inf and isinstance(objective, SmoothObjective)):
        return False
    bend = objective.curvature_along(state.at, slope / length)
    return 0.0 < bend < inf and 0.5 * length * length / bend <= negligible
