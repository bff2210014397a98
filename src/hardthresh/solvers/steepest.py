"""Searches along a direction by the values of f alone, for points where curvature is of no use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite, sqrt
from typing import TypeVar

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.state import State
from hardthresh.core.stationarity import feasibility_residual, gradient_scale, is_negligible, norm, remaining_gradient
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import ARMIJO, Candidate, polyak_step

_FACTOR, _GROWTHS, _SHRINKS = 4.0, 15, 60
"""Steps are multiplied by 4 at most 15 times, to 10^9, or divided by 4 at most 60 times, to less than rounding."""

_STEEP = 1e-3
"""A gradient is steep above this share of that at the null model. Arbitrary: 18 classifiers with offsets of up to 500
have the same answers from 1e-4 to 1e-2."""

S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class _Line:
    """The projected points along a direction."""

    objective: Objective
    at: Evaluation
    direction: Array
    reach: Callable[[Array], Projection]
    lower: Callable[[Array], Array]

    def descend(self, step: float) -> Candidate | None:
        """Return the point that a step leads to, if it is a sufficient decrease of f."""
        try:
            projection = self.reach(self.at.point + step * self.direction)
            point = self.lower(projection.point)
            prediction = self.objective.predict(point)
            value = self.objective.value(point, prediction)
        except NotFiniteError:
            return None
        expected = -float(namespace(point).sum(self.at.gradient * (point - self.at.point)))
        if value < self.at.value and value <= self.at.value - ARMIJO * expected and isfinite(value):
            return Candidate(projection, step, value, prediction)
        return None

    def shorter(self, step: float) -> Candidate | None:
        """Return the first sufficient decrease by step/4, step/16, ..., or by a quarter of that if f is lower there."""
        shortest = float(namespace(self.direction).finfo(self.direction.dtype).eps) * norm(self.at.point)
        for _ in range(_SHRINKS):
            step /= _FACTOR
            if step * norm(self.direction) < shortest:
                break
            found = self.descend(step)
            if found is not None:
                return _better(found, self.descend(step / _FACTOR))
        return None


def search_along(
    objective: Objective,
    at: Evaluation,
    direction: Array,
    reach: Callable[[Array], Projection],
    lower: Callable[[Array], Array] = lambda w: w,
) -> Candidate | None:
    r"""Return a step along a direction that lowers f, found from values alone.

    The first step tried is :math:`|f| / \|p\|^2`. If f falls by a share of what the gradient predicts, the step is
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
    Candidate or None
        None if no step that was tried lowers f, or the direction is zero or not finite.

    Notes
    -----
    Cost: one value for each step tried. Monotone.
    """
    if not 0.0 < norm(direction) < inf:
        return None
    line = _Line(objective, at, direction, reach, lower)
    step = polyak_step(at, direction)
    found = line.descend(step)
    if found is None:
        return line.shorter(step)
    for _ in range(_GROWTHS):
        farther = line.descend(_FACTOR * found.step)
        if farther is None or farther.value >= found.value:
            break
        found = farther
    return found


def _better(one: Candidate, other: Candidate | None) -> Candidate:
    return one if other is None or one.value <= other.value else other


def search_feasible(objective: Objective, constraint: Constraint, state: State) -> Candidate | None:
    """Return a lower point along the part of the gradient that is zero at a basic feasible point (`search_along`)."""
    direction = -remaining_gradient(constraint, state.at, state.support)
    return search_along(objective, state.at, direction, partial(constraint.project, start=state.support))


def is_steep(constraint: Constraint, state: State, tol: float = 0.0) -> bool:
    """Return whether a point is far from basic feasible: then no solver has converged.

    That is, the residual is above a thousandth of the gradient at the null model, or more where `tol`, a relative
    decrease of f, or rounding are coarser. Where projections are approximate that is not known.
    """
    if not constraint.exact:
        return False
    eps = float(namespace(state.w).finfo(state.w.dtype).eps)
    share = max(_STEEP, 16.0 * sqrt(eps), 10.0 * sqrt(tol))
    scale = gradient_scale(state.at, state.trace.null_gradient)
    return not is_negligible(feasibility_residual(constraint, state.at, state.support), scale, share)


def verdict(objective: Objective, constraint: Constraint, state: S, why: str, tol: float, negligible: float) -> S:
    """Return the state at the end of a run: settled, or stalled if f is steep although no step lowers it.

    If f is steep, the run has still settled if the curvature says that f cannot fall by more than `negligible`.
    """
    if is_steep(constraint, state, tol) and not _is_flat_nearby(objective, constraint, state, negligible):
        return replace(state, stalled=why)
    return replace(state, settled=why)


def _is_flat_nearby(objective: Objective, constraint: Constraint, state: State, negligible: float) -> bool:
    """Return whether the quadratic model along the gradient falls by a negligible amount."""
    slope = remaining_gradient(constraint, state.at, state.support)
    length = norm(slope)
    if not (0.0 < length < inf and isinstance(objective, SmoothObjective)):
        return False
    curvature = objective.curvature_along(state.at, slope / length)
    return 0.0 < curvature < inf and 0.5 * length * length / curvature <= negligible
