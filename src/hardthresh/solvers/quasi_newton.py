"""Minimising f on one support by gradients alone, where second derivatives are of no use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.objective import Evaluation, Objective
from hardthresh.core.stationarity import norm
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import ARMIJO

_MEMORY = 50
"""Number of steps that the inverse Hessian is made of. On 20 problems of least absolute deviations, 100 rows of 6
columns, the largest excess over the minimum is 5e-4 with 5, 3e-4 with 10, 4e-6 with 20, and 1.5e-6 with 50 or 200."""
_WOLFE = 0.9
"""A step is long enough if the slope along it has fallen to this share (Nocedal and Wright 2006, section 3.1)."""
_TRIES = 30
"""Limit of the values in a line search: a bisection then has narrowed the step down to 1e-9 of itself."""
_STILL = 3
"""Number of steps in a row with a negligible decrease after which the minimum counts as found."""

_SURE, _HOPE = 5, 20.0
"""A search is abandoned after 5 steps at the earliest, where 20 more like the last are not enough. Arbitrary: on the
half of skscope's gallery that is for development the values are the same with 3 and 10 steps, and with 10 and 100."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step s and the change y of the gradient along it, with 1/(y, s)."""

    s: Array
    y: Array
    rho: float


def descend_by_gradients(
    objective: Objective,
    constraint: Constraint,
    at: Evaluation,
    support: Support,
    tol: float,
    below: float = inf,
    iterations: int = 300,
) -> tuple[Evaluation, Projection] | None:
    r"""Return a lower point of the same support, by the limited-memory BFGS method; None if none is found.

    The steps satisfy the weak Wolfe conditions, found by bisection, with which the method also works where f has kinks.

    Parameters
    ----------
    objective, constraint, at, support :
        f, the set, f at the start, and the support to stay on.
    tol : float
        The decrease of a step that counts as none.
    below : float
        Abandon the search where 20 steps like the last one would not lead below this value (heuristic).
    iterations : int
        Limit of the steps.

    Notes
    -----
    Cost: two data passes for each point tried, and 100 products of vectors. Monotone.

    References
    ----------
    Nocedal and Wright (2006), *Numerical Optimization*, Algorithm 7.4; Lewis and Overton (2013), Nonsmooth optimization
    via quasi-Newton methods, *Mathematical Programming* 141, 135-163, for the line search and the kinks.
    """
    start, still = at, 0
    steps: list[_Step] = []
    projection = Projection(at.point, support)
    for _ in range(iterations):
        free = constraint.free_part(at.point, at.gradient, support)
        slope = free.restrict(at.gradient)
        if not norm(slope) > 0.0:
            break
        found = None
        for known in [steps, []] if steps else [[]]:  # a direction that is none of descent begins anew
            direction = -free.restrict(_times_inverse(known, slope))
            length = 1.0 if known else min(1.0, 1.0 / norm(slope))
            found = _line_search(objective, _onto(constraint, support), at, direction, length)
            if found is not None:
                break
            steps = []
        if found is None:
            break
        after, projection = found
        xp = namespace(slope)
        s, y = after.point - at.point, support.restrict(after.gradient - at.gradient)
        product = float(xp.sum(s * y))
        if product > 1e-12 * norm(s) * norm(y):  # else the inverse would not be positive definite
            steps = [*steps, _Step(s, y, 1.0 / product)][-_MEMORY:]
        decrease, at = at.value - after.value, after
        still = still + 1 if decrease <= tol else 0
        if still == _STILL or (len(steps) >= _SURE and at.value - _HOPE * decrease > below):
            break
    return (at, projection) if at.value < start.value else None


def _onto(constraint: Constraint, support: Support) -> Callable[[Array], Projection]:
    return lambda w: constraint.project_onto(w, support, support)


def _times_inverse(steps: list[_Step], v: Array) -> Array:
    """Return the inverse Hessian times a vector, by the recursion of two loops."""
    xp = namespace(v)
    shares = []
    for step in reversed(steps):
        share = step.rho * float(xp.sum(step.s * v))
        v = v - share * step.y
        shares.append(share)
    if steps:
        last = steps[-1]
        v = v / (last.rho * float(xp.sum(last.y * last.y)))
    for step, share in zip(steps, reversed(shares), strict=True):
        v = v + (share - step.rho * float(xp.sum(step.y * v))) * step.s
    return v


def _line_search(
    objective: Objective, reach: Callable[[Array], Projection], at: Evaluation, direction: Array, length: float
) -> tuple[Evaluation, Projection] | None:
    """Return a point along a direction that satisfies the weak Wolfe conditions, or at least the first of the two."""
    xp = namespace(direction)
    slope = float(xp.sum(at.gradient * direction))
    if not (slope < 0.0 and isfinite(slope)):
        return None
    shortest, longest, found = 0.0, inf, None
    for _ in range(_TRIES):
        projection = reach(at.point + length * direction)
        try:
            after = objective.evaluate(projection.point)
        except NotFiniteError:
            after = None
        if after is None or not after.value <= at.value + ARMIJO * length * slope or not after.value < at.value:
            longest = length
        else:
            found = after, projection
            if float(xp.sum(after.gradient * direction)) >= _WOLFE * slope:
                return found
            shortest = length
        length = 0.5 * (shortest + longest) if longest < inf else 2.0 * shortest
    return found
