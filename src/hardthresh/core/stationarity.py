"""Is a point a candidate? First-order conditions of  minimise f(w) subject to w in C, from the contracts alone.

* *Basic feasibility*: on every support that the point may use, the gradient vanishes.
* *L-stationarity*: w is a projection of w - gradient / L. Every global minimiser is L-stationary for each L above the
  (restricted) smoothness constant of f, so the smallest such L, compared with an estimate of the smoothness, says how
  strong a candidate the point is (Beck and Eldar 2013, Theorem 2.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import TYPE_CHECKING

from .constraint import Constraint
from .objective import Evaluation, Objective, provides
from .typing import Array, Support, library

if TYPE_CHECKING:
    from .solver import Trace


def norm(v: Array) -> float:
    """Return the Euclidean (Frobenius) norm of an array."""
    xp = library(v)
    return float(xp.sqrt(xp.sum(v * v)))


def _eps(v: Array) -> float:
    return float(library(v).finfo(v.dtype).eps)


def leading_norm(constraint: Constraint, v: Array) -> float:
    """Return the norm of the part of `v` that is largest on any one support."""
    return norm(constraint.leading(v))


def feasibility_residual(constraint: Constraint, at: Evaluation, support: Support) -> float:
    """Return how far a point is from basic feasibility, in units of the gradient.

    If the support uses the whole budget this is the norm of the gradient on it (where no bound holds); otherwise
    ||P(w - t g) - w|| / t for a tiny t, which also sees the directions that could still join.
    """
    if constraint.is_full(support):
        return norm(constraint.restrict(at.gradient, constraint.face(at.point, at.gradient, support)))
    length = norm(at.gradient)
    if length == 0.0:
        return 0.0
    t = sqrt(_eps(at.point)) * norm(at.point) / length or 1.0
    return norm(constraint.project(at.point - t * at.gradient).point - at.point) / t


def smallest_lipschitz(constraint: Constraint, at: Evaluation, support: Support) -> float:
    """Return the smallest L for which a basic feasible point is L-stationary; inf if there is none.

    The gradient on the support where no bound holds, zero at a basic feasible point, is left out, so the answer depends
    only on the comparison between what is in and what is out. Found by bisection on P(w - g/L) = w. Cost: no data pass,
    about 70 projections.
    """
    outside = at.gradient - constraint.restrict(at.gradient, constraint.face(at.point, at.gradient, support))
    length, size = norm(outside), norm(at.point)
    if length == 0.0:
        return 0.0

    def stationary(lipschitz: float) -> bool:
        there = at.point - outside / lipschitz
        nearest, slack = constraint.project(there).point, max(1e-9 * length / lipschitz, 64 * _eps(at.point) * size)
        if constraint.exact:
            return norm(nearest - at.point) <= slack
        return length / lipschitz <= norm(there - nearest) + slack  # an approximation may return a point less near

    high = length / (size or length)
    if not constraint.is_full(support):
        return 0.0 if stationary(high) else inf
    for _ in range(60):
        if stationary(high):
            break
        high *= 4.0
    else:
        return inf
    low = high
    for _ in range(30):
        low /= 4.0
        if not stationary(low):
            break
    else:
        return 0.0  # nothing outside may ever come in
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stationary(middle) else (middle, high)
        if high - low <= 1e-12 * high:
            break
    return high


def restricted_smoothness(
    objective: Objective, constraint: Constraint, at: Evaluation, iterations: int = 10, *, factor: float = 2
) -> float:
    """Return an estimate, from below, of the largest curvature of f at a point over directions of twice the budget.

    Power iteration with the Hessian: the first half finds where the curvature is, the second half stays within the
    budget (`factor` times the constraint's). Cost: about two data passes per iteration.
    """
    curvature = objective.curvature  # type: ignore[attr-defined]
    xp = library(at.point)
    relaxed = constraint.relax(factor)
    direction = at.gradient if norm(at.gradient) > 0.0 else xp.ones_like(at.point)
    largest = 0.0
    for iteration in range(iterations):
        restricted = 2 * iteration >= iterations - 1
        if restricted:
            direction = relaxed.leading(direction)
        length = norm(direction)
        if length == 0.0:
            break
        direction = direction / length
        image = curvature(at, direction)
        if restricted:
            largest = max(largest, float(xp.sum(direction * image)))
        direction = image
    return largest


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known about an answer from first-order conditions.

    Attributes
    ----------
    basic_feasibility : float
        The residual of basic feasibility, in units of the gradient; 0 at a basic feasible point.
    smallest_L : float
        The smallest L for which the point is L-stationary, in units of the curvature; inf if there is none.
    smoothness : float
        An estimate, from below, of the restricted smoothness of f near the point; nan if f gives no curvature.
    gradient_scale : float
        The leading part of the gradient at the null model, with which to compare `basic_feasibility`.
    """

    basic_feasibility: float
    smallest_L: float
    smoothness: float
    gradient_scale: float

    def is_stationary(self, L: float | None = None, tol: float = 1e-5) -> bool:
        """Return whether the point is L-stationary, with its residual up to `tol` times the null model's gradient.

        Parameters
        ----------
        L : float, optional
            Default: the smoothness estimate. Every global minimiser passes with any L above the restricted smoothness
            constant; a point that passes with a much smaller L is a strong candidate, but none of this proves it best.
        tol : float
            Relative tolerance of the residual.
        """
        bound = self.smoothness if L is None else L
        return self.basic_feasibility <= tol * self.gradient_scale and self.smallest_L <= bound


def certify(
    objective: Objective, constraint: Constraint, at: Evaluation, support: Support, trace: Trace | None = None
) -> Certificate:
    """Return what first-order conditions say about a point; see `Certificate`.

    The scale of the gradient is that of the run whose trace is given, else that at zero (one data pass).
    """
    if trace is None:
        scale = leading_norm(constraint, objective.evaluate(objective.zeros()).gradient)
    else:
        scale = trace.null_gradient
    return Certificate(
        basic_feasibility=feasibility_residual(constraint, at, support),
        smallest_L=smallest_lipschitz(constraint, at, support),
        smoothness=restricted_smoothness(objective, constraint, at) if provides(objective, "curvature") else nan,
        gradient_scale=scale,
    )
