"""Minimising on one support: a few Newton-CG steps, or to the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

from array_api_compat import device

from hardthresh.arrays import (
    all_finite,
    conjugate_gradients,
    gather,
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

from .steepest import search_along

DIRECT = 256  # largest subspace whose Newton system is factorised instead of iterated on
_PAYS = 0.01  # share of f that each further step along the gradient has to gain
_DELAYED = 2
"""Conjugate gradients end after as many products as a face has dimensions in exact arithmetic, and after up to twice as
many with rounding; more made answers worse where the Hessian was ill-conditioned (60 small matrix completions)."""
_LEFT_OUT = 1e-6
"""Share of the gradient that a Newton step may leave out: a direct solve leaves 1e-16 times the condition number."""
_SLIDES = 4  # steps without curvature, before the gradient on all of the space is looked at again


class Subspace(ABC):
    """An objective seen from the subspace of one support; its points may be shorter, and `lift` brings them back."""

    @abstractmethod
    def lower(self, w: Array) -> Array:
        """Return the subspace's coordinates of a full point or gradient."""

    @abstractmethod
    def lift(self, v: Array) -> Array:
        """Return the full point with these coordinates."""

    @abstractmethod
    def keep(self, v: Array, face: Support) -> Array:
        """Return `v` with the coordinates outside a smaller support set to zero."""

    @abstractmethod
    def coordinates(self, face: Support) -> Array | None:
        """Return flat coordinates whose unit vectors, kept to the face, span it; None if a face has none."""

    @abstractmethod
    def support(self, reached: Projection) -> Support:
        """Return the support to move on from a point that was reached."""

    @property
    @abstractmethod
    def objective(self) -> Any:
        """The objective on the subspace's own points; it evaluates and has curvature."""


class _Columns(Subspace):
    """A support of coordinates, and an objective that can leave the other columns out: a small problem of its own."""

    def __init__(self, objective: LinearObjective, constraint: Constraint, support: Support, indices: Array) -> None:
        self._constraint, self._support, self._indices = constraint, support, indices
        self._size = objective.shape[0]
        self._objective = objective.columns(indices)

    def lower(self, w: Array) -> Array:
        return gather(w, self._indices)

    def lift(self, v: Array) -> Array:
        return scatter(v, self._indices, self._size)

    def keep(self, v: Array, face: Support) -> Array:
        kept = face.indices
        if kept is None or kept.shape[0] == v.shape[0]:
            return v
        return namespace(v).where(self.lower(mask_of(kept, self._size)), v, 0 * v)

    def coordinates(self, face: Support) -> Array | None:
        return where_true(self.lower(mask_of(face.indices, self._size)))

    def support(self, reached: Projection) -> Support:
        return self._support  # a coordinate that has become zero may come back

    @property
    def objective(self) -> Any:
        return self._objective


class _Restricted(Subspace):
    """Any support of any constraint: full-size points, and directions restricted to the tangent space of each."""

    def __init__(self, objective: Objective, constraint: Constraint) -> None:
        self._objective, self._constraint = objective, constraint

    def lower(self, w: Array) -> Array:
        return w

    def lift(self, v: Array) -> Array:
        return v

    def keep(self, v: Array, face: Support) -> Array:
        return face.restrict(v)

    def coordinates(self, face: Support) -> Array | None:
        indices = face.indices
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


@dataclass(frozen=True, slots=True)
class Refined:
    """A better point with the support of a projection (or part of it), not yet evaluated in full.

    Attributes
    ----------
    projection : Projection
        The point and its support.
    value : float
        f there.
    prediction : array or None
        What saves computing the prediction again.
    minimal : bool
        Whether it is a minimiser on its support, up to the tolerance asked for.
    hopeless : bool
        Whether the search was given up, because the minimum is foreseen not to be as low as was asked for (heuristic).
    """

    projection: Projection
    value: float
    prediction: Array | None
    minimal: bool
    hopeless: bool = False


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
    slide: bool = True,
) -> Refined:
    r"""Return a point of the same support with a lower value, by Newton steps that stay inside the constraint.

    Each round solves :math:`H p = -g` on the part of the support where no bound holds, by CG, and searches along the
    projected path w + t p, t = 1, 1/2, ... Where the curvature along the gradient is zero, negative or no number,
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
        Done when the decrease that the quadratic model promises falls to this, in units of f, or to rounding.
    below : float
        Give up when four times the decrease that a step promises would not lead below this value, and the step before
        it brought what it had promised, up to a factor of two, and promised more than four times as much: then the
        quadratic model is trusted (heuristic).

    slide : bool
        Whether to search along the gradient where there is no curvature.

    Notes
    -----
    Cost: 2s/d of a data pass per product with H, and as much per round besides. Monotone.
    """
    space = subspace(objective, constraint, projection.support)
    point = space.lower(projection.point)
    if prediction is None:
        prediction = space.objective.predict(point)
    found = Refined(projection, space.objective.value(point, prediction), prediction, minimal=False)
    promised, value, slides = 0.0, inf, 0
    for _ in range(rounds):
        at = space.objective.evaluate(space.lower(found.projection.point), found.prediction)
        support = space.support(found.projection)
        face = constraint.free_part(space.lift(at.point), space.lift(at.gradient), support)
        slope = space.keep(at.gradient, face)
        if norm(slope) == 0.0:
            return replace(found, minimal=True)
        direction, flat = _newton(space, at, slope, face, cg_iterations)
        xp = namespace(slope)
        before, promised = promised, -0.5 * float(xp.sum(slope * direction))
        if slide and not 0.0 < promised < inf:
            promised, value, slides = 0.0, inf, slides + 1
            better = _slide(space, constraint, support, at, slope)
            if better is None or slides > _SLIDES:
                return better or replace(found, minimal=True)
            found = better
            continue
        trusted = 0.5 * before <= value - at.value <= 2.0 * before and 4.0 * promised < before
        if trusted and at.value - 4.0 * promised > below:
            return replace(found, hopeless=True)
        value = at.value
        enough = max(tol, value_rounding(space.objective, at))
        last = promised <= enough
        better = _search(space, constraint, support, at, slope, direction, tries=1 if last else 30)
        if last and slide and slides <= _SLIDES and norm(flat) > _LEFT_OUT * norm(slope):
            beyond = _slide(space, constraint, support, at, flat)
            if beyond is not None and at.value - beyond.value > enough:
                promised, value, slides, found = 0.0, inf, slides + 1, beyond
                continue
        if better is None and slide and not last:  # as where a loss is saturated, so that steps are far too long
            promised, value, slides = 0.0, inf, slides + 1
            better = _slide(space, constraint, support, at, slope)
            if better is not None and slides > _SLIDES and at.value - better.value <= _PAYS * abs(at.value):
                return better
            if better is not None:
                found = better
                continue
        found = found if better is None else better
        if last or better is None:
            return replace(found, minimal=True)
    return found


def _slide(space: Subspace, constraint: Constraint, support: Support, at: Evaluation, slope: Array) -> Refined | None:
    """Return a point lower along the gradient, found without curvature; None where only rounding is to be gained."""
    if 0.0 < norm(slope) * norm(at.point) <= 64.0 * value_rounding(space.objective, at):
        return None
    found = search_along(
        space.objective, at, -slope, lambda v: constraint.project_onto(space.lift(v), support), lower=space.lower
    )
    return None if found is None else Refined(found.projection, found.value, found.prediction, minimal=False)


def _newton(space: Subspace, at: Evaluation, slope: Array, face: Support, cg_iterations: int) -> tuple[Array, Array]:
    """Return an approximate Newton direction p on the face, where `slope` is the gradient g, and the residual H p + g.

    The residual is not small where H is singular. It is known if the objective has a Hessian, and else given as zero.
    """
    small = space.objective
    if cg_iterations == 0 and isinstance(small, LinearObjective) and slope.ndim == 1 and slope.shape[0] <= DIRECT:
        hessian = small.hessian(at)
        active = space.keep(namespace(slope).ones_like(slope), face)
        hessian = hessian * active[:, None] * active[None, :]
        direction = -active * solve_semidefinite(hessian, slope)
        return direction, active * slope + hessian @ direction

    products, unknown = 0, namespace(slope).zeros_like(slope)

    def apply(v: Array) -> Array:
        nonlocal products
        products += 1
        return space.keep(small.curvature(at, v), face)

    if cg_iterations:
        return -conjugate_gradients(apply, slope, cg_iterations), unknown
    coordinates = space.coordinates(face)
    if coordinates is None or coordinates.shape[0] >= 2 * DIRECT:
        limit = _most_products(face)
        return -conjugate_gradients(apply, slope, limit, 1e-10), unknown
    solution = conjugate_gradients(apply, slope, coordinates.shape[0] + 1, 1e-10)
    if products <= coordinates.shape[0]:  # enough in exact arithmetic
        return -solution, unknown
    return -_solve(apply, lambda v: space.keep(v, face), slope, coordinates, solution), unknown


def _most_products(face: Support) -> int:
    """Return a limit of conjugate gradients on a face, by its dimension if that is known."""
    try:
        return min(4 * DIRECT, _DELAYED * face.degrees_of_freedom)
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
    constraint: Constraint,
    support: Support,
    at: Evaluation,
    slope: Array,
    direction: Array,
    tries: int,
) -> Refined | None:
    """Return the first of the projected points at + t direction, t = 1, 1/2, ..., with a sufficient decrease."""
    xp = namespace(direction)
    t = 1.0
    for _ in range(tries):
        projection = constraint.project_onto(space.lift(at.point + t * direction), support)
        point = space.lower(projection.point)
        prediction = space.objective.predict(point)
        value = space.objective.value(point, prediction)
        if value < at.value and value <= at.value + 1e-4 * float(xp.sum(slope * (point - at.point))):
            return Refined(projection, value, prediction, minimal=False)
        t *= 0.5
    return None
