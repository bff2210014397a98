"""Minimising f on one support, by a few Newton-CG steps or to the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, nan, prod
from typing import Any

from array_api_compat import device

from hardthresh.arrays import (
    all_finite,
    conjugate_gradients,
    double,
    gather,
    is_regular,
    mask_of,
    namespace,
    scatter,
    solve_semidefinite,
    where_true,
)
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.objective import Evaluation, LinearObjective, Objective, value_rounding
from hardthresh.core.stationarity import norm
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel
from hardthresh.steps.line_search import ARMIJO, Candidate

from .steepest import search_along

DIRECT = 256
"""Largest subspace whose Newton system is factorised instead of iterated on."""
FULL_SOLVE = 25
"""Limit of the Newton steps that minimise f on a support: 1,187 of 1,207 such solves took at most 7, the others 24 or
25."""
_PAYS = 0.01
"""Share of f that each further step along the gradient has to gain. Arbitrary: 18 classifiers with offsets of up to 500
have the same answers with 0 to 0.1, and with a limit of 1 to 16 such steps."""
_DELAYED = 2
"""In exact arithmetic conjugate gradients end after as many products as there are free variables, and after up to twice
as many with rounding; more made answers worse where the Hessian was ill-conditioned (60 small matrix completions)."""
_LEFT_OUT = 1e-6
"""Share of the gradient that a Newton step may leave out: a direct solve leaves 1e-16 times the condition number."""
DAMPING = 1e-3
"""Share of the bound of the second derivatives that is added to a singular Hessian, as where few residuals are within
the delta of Huber's loss. Of 300 fits of Huber's and the pinball loss with few curved rows, 27 end more than 0.1 % of
the null value above the minimum; with 1e-2 it is 34, with 1e-4 38, and with the bound alone 244."""
_GRADIENT_STEPS = 4
"""Number of steps along the gradient that one call makes where there is no curvature."""


class Subspace(ABC):
    """An objective on the subspace of one support, whose points may be shorter than those of the whole space.

    `free` is the part of the support that can move, where no bound holds (`Constraint.free_part`).
    """

    has_hessian: bool
    """Whether the objective on the points of the subspace gives its Hessian as a matrix."""

    @abstractmethod
    def lower(self, w: Array) -> Array:
        """Return the subspace's coordinates of a full point or gradient."""

    @abstractmethod
    def lift(self, v: Array) -> Array:
        """Return the full point with these coordinates."""

    @abstractmethod
    def keep(self, v: Array, free: Support) -> Array:
        """Return `v` with the coordinates outside a smaller support set to zero."""

    @abstractmethod
    def coordinates(self, free: Support) -> Array | None:
        """Return the flat indices of the free coordinates; None if the free part is not one of coordinates."""

    @abstractmethod
    def support(self, reached: Projection) -> Support:
        """Return the support to move on from a point that was reached."""

    @property
    @abstractmethod
    def objective(self) -> Any:
        """The objective on the points of the subspace, with `evaluate` and `curvature`."""


class _Columns(Subspace):
    """A support of coordinates of a linear objective, which becomes an objective of these columns only."""

    has_hessian = True

    def __init__(self, objective: LinearObjective, constraint: Constraint, support: Support, indices: Array) -> None:
        self._constraint, self._support, self._indices = constraint, support, indices
        self._size = objective.shape[0]
        self._objective = objective.columns(indices)

    def lower(self, w: Array) -> Array:
        return gather(w, self._indices)

    def lift(self, v: Array) -> Array:
        return scatter(v, self._indices, self._size)

    def keep(self, v: Array, free: Support) -> Array:
        kept = free.indices
        if kept is None or kept.shape[0] == v.shape[0]:
            return v
        return namespace(v).where(self.lower(mask_of(kept, self._size)), v, 0 * v)

    def coordinates(self, free: Support) -> Array | None:
        return where_true(self.lower(mask_of(free.indices, self._size)))

    def support(self, reached: Projection) -> Support:
        return self._support  # a coordinate that has become zero may come back

    @property
    def objective(self) -> Any:
        return self._objective


class _Restricted(Subspace):
    """Any support of any constraint: points of full size, and directions restricted to the tangent space."""

    def __init__(self, objective: Objective, constraint: Constraint) -> None:
        self._objective, self._constraint = objective, constraint
        self.has_hessian = isinstance(objective, LinearObjective)

    def lower(self, w: Array) -> Array:
        return w

    def lift(self, v: Array) -> Array:
        return v

    def keep(self, v: Array, free: Support) -> Array:
        return free.restrict(v)

    def coordinates(self, free: Support) -> Array | None:
        indices = free.indices
        if indices is None or not self._constraint.symmetric:
            return indices
        size = self._objective.shape[0]
        return indices[indices // size <= indices % size]  # each pair once

    def support(self, reached: Projection) -> Support:
        return reached.support

    @property
    def objective(self) -> Any:
        return self._objective


def subspace(objective: Objective, constraint: Constraint, support: Support) -> Subspace:
    """Return the subspace of a support, in the cheapest form that the objective and the constraint allow."""
    indices = support.indices
    if indices is not None and isinstance(objective, LinearObjective):
        return _Columns(objective, constraint, support, indices)
    return _Restricted(objective, constraint)


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
            at = space.objective.evaluate(space.lower(found.projection.point), found.prediction)
        support = space.support(found.projection)
        free = constraint.free_part(space.lift(at.point), space.lift(at.gradient), support)
        slope = space.keep(at.gradient, free)
        if norm(slope) == 0.0:
            return replace(found, minimal=True)
        direction, flat = _newton(space, at, slope, free, cg_iterations)
        project = partial(_project, space, constraint, support, start)
        xp = namespace(slope)
        before, predicted = predicted, -0.5 * float(xp.sum(slope * direction))
        if along_gradient and not 0.0 < predicted < inf:
            predicted, value, gradient_steps = 0.0, inf, gradient_steps + 1
            better = _along_gradient(space, project, at, slope)
            if better is None or gradient_steps > _GRADIENT_STEPS:
                return better or replace(found, minimal=True)
            found = better
            continue
        trusted = 0.5 * before <= value - at.value <= 2.0 * before and 4.0 * predicted < before
        if trusted and at.value - 4.0 * predicted > below:
            return replace(found, abandoned=True)
        value = at.value
        rounding = value_rounding(space.objective, at)
        enough = max(tol, rounding)
        last = predicted <= enough
        allowed = min(rounding, first - at.value) if last else 0.0  # there the gradient knows better than f
        better = _search(space, project, at, slope, direction, 1 if last else 30, allowed)
        if last and along_gradient and gradient_steps <= _GRADIENT_STEPS and norm(flat) > _LEFT_OUT * norm(slope):
            beyond = _along_gradient(space, project, at, flat)
            if beyond is not None and at.value - beyond.value > enough:
                predicted, value, gradient_steps, found = 0.0, inf, gradient_steps + 1, beyond
                continue
        if better is None and along_gradient and not last:  # as if a loss is saturated: steps are far too long
            predicted, value, gradient_steps = 0.0, inf, gradient_steps + 1
            better = _along_gradient(space, project, at, slope)
            if (
                better is not None
                and gradient_steps > _GRADIENT_STEPS
                and at.value - better.value <= _PAYS * abs(at.value)
            ):
                return better
            if better is not None:
                found = better
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
    at = space.objective.evaluate(space.lower(found.projection.point), found.prediction)
    support = space.support(found.projection)
    free = constraint.free_part(space.lift(at.point), space.lift(at.gradient), support)
    slope = space.keep(at.gradient, free)
    direction = _newton(space, at, slope, free, 0)[0]
    if not all_finite(direction):
        return found
    projection = _project(space, constraint, support, None, at.point + direction)
    after = space.objective.evaluate(space.lower(projection.point))
    same = abs(after.value - at.value) <= value_rounding(space.objective, at)
    if not (same and norm(space.keep(after.gradient, free)) < norm(slope)):
        return found
    return replace(found, projection=projection, value=after.value, prediction=after.prediction)


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


def _newton(space: Subspace, at: Evaluation, slope: Array, free: Support, cg_iterations: int) -> tuple[Array, Array]:
    """Return an approximate Newton direction p on the free part, for the gradient g = `slope`, and the rest H p + g.

    The rest is not small where H is singular. It is known if the objective has a Hessian, and else given as zero.
    """
    small = space.objective
    if cg_iterations == 0 and slope.ndim == 1 and slope.shape[0] <= DIRECT and space.has_hessian:
        hessian = _hessian(small, at)
        active = space.keep(namespace(slope).ones_like(slope), free)
        hessian = hessian * active[:, None] * active[None, :]
        direction = -active * solve_semidefinite(hessian, slope)
        return direction, active * slope + hessian @ direction

    products, unknown = 0, namespace(slope).zeros_like(slope)

    def apply(v: Array) -> Array:
        nonlocal products
        products += 1
        return space.keep(small.curvature(at, v), free)

    if cg_iterations:
        return -conjugate_gradients(apply, slope, cg_iterations), unknown
    coordinates = space.coordinates(free)
    if coordinates is None or coordinates.shape[0] >= 2 * DIRECT:
        limit = _most_products(free)
        return -conjugate_gradients(apply, slope, limit, 1e-10), unknown
    solution = conjugate_gradients(apply, slope, coordinates.shape[0] + 1, 1e-10)
    if products <= coordinates.shape[0]:  # enough in exact arithmetic
        return -solution, unknown
    return -_solve(apply, lambda v: space.keep(v, free), slope, coordinates, solution), unknown


def _hessian(objective: Any, at: Evaluation) -> Array:
    """Return the Hessian of few columns, with a share of its bound if it is singular and there is one."""
    hessian = objective.hessian(at)
    bounded = isinstance(objective, LinearModel) and not objective.traits.quadratic and objective.curvature_bound < inf
    if not bounded or is_regular(double(hessian)):
        return hessian
    return hessian + DAMPING * objective.bounding_quadratic().hessian(at)


def _most_products(free: Support) -> int:
    """Return a limit of the iterations of conjugate gradients, by the dimension of the free part if that is known."""
    try:
        return min(4 * DIRECT, _DELAYED * free.degrees_of_freedom)
    except NotImplementedError:
        return 4 * DIRECT


def _solve(
    apply: Callable[[Array], Array], keep: Callable[[Array], Array], slope: Array, coordinates: Array, known: Array
) -> Array:
    """Return the solution of H x = slope, from one product with H for each coordinate; the known one if one overflows.

    Conjugate gradients would have ended by then in exact arithmetic: H is ill-conditioned.
    """
    xp, count = namespace(slope), coordinates.shape[0]

    def lift(v: Array) -> Array:
        return keep(xp.reshape(scatter(v, coordinates, prod(slope.shape)), slope.shape))

    def entries(v: Array) -> Array:
        return gather(xp.reshape(v, (-1,)), coordinates)

    unit = xp.eye(count, dtype=slope.dtype, device=device(slope))
    H = xp.stack([entries(apply(lift(unit[i, :]))) for i in range(count)])
    if not all_finite(H):
        return known
    return lift(solve_semidefinite(0.5 * (H + H.T), entries(slope)))


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
