"""Minimising f on one support by gradients alone, where second derivatives are of no use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import inf, isfinite, prod, sqrt

from array_api_compat import device

from hardthresh.arrays import gather, namespace, scatter
from hardthresh.core.constraint import BlockBudget, Constraint, CoordinateBudget
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
_FEW = 3
"""Number of steps after which their model is believed. Arbitrary."""
_OPTIMISM = 10.0
"""f is expected to fall by no more than so many times what the model of the steps says. Arbitrary."""

_GROWTH = 1e4
"""Growth of the point in one descent beyond which f may have no minimum. Arbitrary: the descent is only interrupted, so
that the stopping rule `Unbounded` can see the point."""


class End(Enum):
    """Why a descent ended.

    At the minimum as far as its steps can tell; as hopeless; as the point had grown, or the limit of steps was reached.
    """

    MINIMUM = "minimum"
    ABANDONED = "abandoned"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, eq=False, slots=True)
class Descent:
    """The lowest point of a descent: f there, and why the descent ended."""

    at: Evaluation
    end: End = End.MINIMUM


@dataclass(frozen=True, eq=False)
class _Steps:
    r"""The last steps, the changes of the gradient along them, and the inverse Hessian that these make.

    Attributes
    ----------
    s, y : array, shape (r, m)
        Each step and its change, both divided by the root of their product, so that they multiply to 1.
    """

    s: Array
    y: Array

    def added(self, step: Array, change: Array, product: float) -> _Steps:
        """Return the last steps with one more."""
        xp, root = namespace(step), sqrt(product)
        forgotten = max(0, self.s.shape[0] + 1 - _MEMORY)
        pairs = ((self.s, step), (self.y, change))
        s, y = (xp.concat([old[forgotten:, :], xp.expand_dims(new / root, axis=0)]) for old, new in pairs)
        return _Steps(s, y)

    @cached_property
    def _scale(self) -> float:
        """The inverse Hessian before any step: the curvature along the last one."""
        return 1.0 / float(namespace(self.y).sum(self.y[-1, :] ** 2))

    def times(self, v: Array) -> Array:
        """Return the inverse Hessian times a vector, by its compact form (Nocedal and Wright 2006, (7.24))."""
        s, y, scale, xp = self.s, self.y, self._scale, namespace(v)
        upper = xp.triu(s @ y.T)  # its diagonal is 1
        along = xp.linalg.solve(upper, (s @ v)[:, None])
        back = xp.linalg.solve(upper.T, along + scale * (y @ (y.T @ along) - (y @ v)[:, None]))
        return scale * v + s.T @ back[:, 0] - scale * (y.T @ along[:, 0])


def descend_by_gradients(
    objective: Objective,
    constraint: Constraint,
    at: Evaluation,
    support: Support,
    tol: float,
    below: float = inf,
    iterations: int = 300,
    units: Array | None = None,
) -> Descent:
    r"""Return a lower point of the same support, by the limited-memory BFGS method.

    The steps satisfy the weak Wolfe conditions, found by bisection, with which the method also works where f has kinks.

    Parameters
    ----------
    objective, constraint, at, support :
        f, the set, f at the start, and the support to stay on, which is one of coordinates.
    tol : float
        The search ends where f would fall by no more than this to the minimum of the model that the steps make, or
        falls by no more in three steps in a row.
    below : float
        Abandon the search, once it has made a few steps, where several times what the model says would not lead below
        this value (heuristic).
    iterations : int
        Limit of the steps.
    units : array, optional
        For each coordinate of the support the length in which steps are measured: those in which second derivatives are
        1 make the first step that of Newton for a diagonal Hessian.

    Returns
    -------
    Descent
        At the start, if nothing lower is found. It is interrupted where the point is 10^4 times as large as at first.

    Notes
    -----
    Cost: two data passes for each point tried, and 100 products of vectors of the length of the support. Monotone.

    References
    ----------
    Nocedal and Wright (2006), *Numerical Optimization*, section 7.2; Lewis and Overton (2013), Nonsmooth optimization
    via quasi-Newton methods, *Mathematical Programming* 141, 135-163, for the line search and the kinks.
    """
    still, made, last, largest = 0, 0, 0.0, inf
    space, reach = _Coordinates(support, at.point, units), _onto(constraint, support, tuple(at.point.shape))
    empty = _Steps(space.none, space.none)
    xp, steps = namespace(at.point), empty
    while made < iterations:
        free = constraint.free_part(at.point, at.gradient, support)
        slope = space.slope(at.gradient if free is support else free.restrict(at.gradient))
        steepness = norm(slope)
        if not steepness > 0.0:
            break
        found = None
        for known in [steps, empty] if steps is not empty else [empty]:  # one that is not of descent begins anew
            direction = space.lift(-slope if known is empty else -known.times(slope))
            direction = direction if free is support else free.restrict(direction)
            descent = -float(xp.sum(at.gradient * direction))
            if known is not empty and made >= _FEW and 0.5 * descent <= max(tol, (at.value - below) / _OPTIMISM):
                return Descent(at, End.MINIMUM if 0.5 * descent <= tol else End.ABANDONED)
            first = min(1.0, 1.0 / steepness) if units is None else 1.0
            length = 1.0 if known is not empty else max(first, last)
            largest = largest if made else _GROWTH * max(norm(space.step(at.point)), length * steepness)
            found = _line_search(objective, reach, at, direction, -descent, length)
            if found is not None:
                break
            steps = empty
        if found is None:
            break
        step, change = space.step(found.point - at.point), space.slope(found.gradient - at.gradient)
        product, moved = float(xp.sum(step * change)), norm(step)
        if product > 1e-12 * moved * norm(change):  # else the inverse would not be positive definite
            steps = steps.added(step, change, product)
        last = moved / steepness
        made, decrease, at = made + 1, at.value - found.value, found
        still = still + 1 if decrease <= tol else 0
        if still == _STILL:
            break
        if norm(space.step(at.point)) > largest:
            return Descent(at, End.INTERRUPTED)
    return Descent(at, End.MINIMUM if made < iterations else End.INTERRUPTED)


class _Coordinates:
    """The coordinates of a support, as vectors of their own in units of their own."""

    def __init__(self, support: Support, like: Array, units: Array | None) -> None:
        self._indices, self._shape = support.indices, tuple(like.shape)
        xp = namespace(like)
        kind = {"dtype": like.dtype, "device": device(like)}
        self._units = xp.ones((int(self._indices.shape[0]),), **kind) if units is None else units
        self.none = xp.zeros((0, int(self._indices.shape[0])), **kind)

    def slope(self, v: Array) -> Array:
        """Return the entries of a gradient of full size."""
        return self._units * gather(namespace(v).reshape(v, (-1,)), self._indices)

    def step(self, v: Array) -> Array:
        """Return the entries of a point, or of a step."""
        return gather(namespace(v).reshape(v, (-1,)), self._indices) / self._units

    def lift(self, v: Array) -> Array:
        """Return the step of full size with these entries."""
        return namespace(v).reshape(scatter(self._units * v, self._indices, prod(self._shape)), self._shape)


def _onto(constraint: Constraint, support: Support, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return the projection of points of a support's subspace, which changes none where there are no bounds."""
    structure = constraint.structure(shape)
    if isinstance(structure, BlockBudget) or (isinstance(structure, CoordinateBudget) and structure.bounds is None):
        return lambda w: w
    return lambda w: constraint.project_onto(w, support, support).point


def _line_search(
    objective: Objective,
    reach: Callable[[Array], Array],
    at: Evaluation,
    direction: Array,
    slope: float,
    length: float,
) -> Evaluation | None:
    """Return a point along a direction that satisfies the weak Wolfe conditions, or at least the first of the two."""
    if not (slope < 0.0 and isfinite(slope)):
        return None
    shortest, longest, found = 0.0, inf, None
    for _ in range(_TRIES):
        try:
            after = objective.evaluate(reach(at.point + length * direction))
        except NotFiniteError:
            after = None
        if after is None or not after.value <= at.value + ARMIJO * length * slope or not after.value < at.value:
            longest = length
        else:
            found = after
            if float(namespace(direction).sum(after.gradient * direction)) >= _WOLFE * slope:
                return found
            shortest = length
        length = 0.5 * (shortest + longest) if longest < inf else 2.0 * shortest
    return found
