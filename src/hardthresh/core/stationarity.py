"""First-order conditions of  minimise f(w) subject to w in C, from the contracts alone.

* *Basic feasibility* (*Probabilistic IHT*, Definition 1): on every support that the point may use, the gradient
  vanishes. On the point's own support if that is full, so everywhere if there is room.
* *L-stationarity* (Definition 2): w is a projection of w - gradient / L. Every global minimiser is L-stationary for
  each L above the (restricted) smoothness constant of f, so the smallest such L, compared with an estimate of the
  smoothness, says how strong a candidate the point is (Beck and Eldar 2013, Theorem 2.2).

That a point is L-stationary for *some* L says nothing beyond basic feasibility: with k non-zeros every basic feasible
point is, for ``L = max |g_off| / min |w_S|``, and with fewer the gradient is zero and every L will do. Theorem 4 of the
paper proves no more than that of its limits. Hence the number is reported, and not only that there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan, prod, sqrt

import numpy as np
from array_api_compat import is_torch_array

from .checking import checked_number
from .choosing import corrected, larger
from .constraint import Constraint, coordinate_budget
from .lazy import scalar
from .objective import UNITS, Evaluation, LinearObjective, Objective, SmoothObjective
from .schema import stored
from .state import Trace
from .support import Support
from .typing import Array, library

_ROUNDING = 4 * UNITS
"""Units of rounding in a point or a norm that was computed in a few steps: four times those of one sum."""

_SLACK = 1e-9
"""The distance between a point and its projection, as a share of the step, that counts as zero. Arbitrary: well above
the rounding of a projection."""
_GROWTHS, _SHRINKINGS = 60, 30
"""Most factors of 4 by which the bracket of the smallest L grows or shrinks: to 1e36 or 1e-18 times the ratio of the
norms of the gradient and the point. Arbitrary: beyond, no L or every L counts as right."""
_BISECTIONS, _NARROW = 60, 1e-12
"""The most bisections of that bracket, and its relative width in the end. Arbitrary: from a ratio of 4 it takes 42."""

FEASIBLE = 1e-5
"""Up to what share of the gradient at the null model a residual counts as zero; on a well-conditioned support what is
left to gain is then the square of that, 1e-10 of what the null model can gain."""


def norm(v: Array) -> float:
    """Return the Euclidean (Frobenius) norm of an array, also where squares of its entries overflow."""
    xp = library(v)
    if xp is not np and is_torch_array(v):  # one operation of the device instead of three
        return corrected(scalar(xp.linalg.vector_norm(v)), lambda: _norm_of_large(v))
    with np.errstate(over="ignore"):
        total = np.add.reduce(v * v, axis=None) if xp is np else xp.sum(v * v)  # what np.sum calls in the end
        size: float = scalar(xp.sqrt(total))
    if type(size) is float and size < inf:  # the way of almost every call
        return size
    return corrected(size, lambda: _norm_of_large(v))


def _norm_of_large(v: Array) -> float:
    """Return the norm of an array whose squares overflow, in units of its largest entry."""
    xp = library(v)
    largest = float(xp.max(xp.abs(v)))
    if not largest < inf:
        return largest
    unit = v / largest
    return largest * float(xp.sqrt(xp.sum(unit * unit)))


def _eps(v: Array) -> float:
    return float(library(v).finfo(v.dtype).eps)


def leading_norm(constraint: Constraint, v: Array) -> float:
    """Return the norm of the hard-thresholded `v`: the largest that it has on any support."""
    return norm(constraint.hard_threshold(v))


def remaining_gradient(constraint: Constraint, at: Evaluation, support: Support) -> Array:
    """Return the part of the gradient that is zero at a basic feasible point.

    If the support uses the whole budget this is the gradient on it (where no bound holds); otherwise it is the gradient
    on the support of P(w - t g) for a tiny t, which also has the leading one of the directions that could still join.
    Where supports are not sets of coordinates, or projections are approximate, it is (w - P(w - t g)) / t instead.
    """
    if constraint.is_full(support):
        return constraint.free_part(at.point, at.gradient, support).restrict(at.gradient)
    length = norm(at.gradient)
    if not 0.0 < length < inf:
        return at.gradient
    t = sqrt(_eps(at.point)) * norm(at.point) / length or 1.0
    there = constraint.project(at.point - t * at.gradient, support)
    if not constraint.exact or there.support.indices is None:
        return (at.point - there.point) / t
    return constraint.free_part(at.point, at.gradient, support | there.support).restrict(at.gradient)


def feasibility_residual(constraint: Constraint, at: Evaluation, support: Support) -> float:
    """Return the residual of basic feasibility, the norm of `remaining_gradient`, in units of the gradient.

    It is 0 if and only if the point is basic feasible. Cost: no data pass, at most one projection.

    Parameters
    ----------
    constraint : Constraint
        The set.
    at : Evaluation
        The objective at the point.
    support : Support
        Where the point may be non-zero.

    Returns
    -------
    float
    """
    return norm(remaining_gradient(constraint, at, support))


def gradient_scale(at: Evaluation, null_gradient: float) -> float:
    """Return the scale of residuals of basic feasibility: the norm of the hard-thresholded gradient at the null model.

    Where the null model is the answer that is rounding, and the root mean square of the gradient, what is left out
    included, takes its place.
    """
    return larger(null_gradient, norm(at.gradient) / sqrt(prod(at.gradient.shape)))


def is_negligible(residual: float, scale: float, tol: float) -> bool:
    """Return whether a residual is at most `tol` of its scale; False if either overflows or is NaN."""
    return (residual <= tol * scale) & (tol * scale < inf)


def smallest_lipschitz(constraint: Constraint, at: Evaluation, support: Support, *, tol: float = inf) -> float:
    r"""Return the smallest L for which a basic feasible point is L-stationary; inf if there is none.

    For vectors with at most k non-zeros and no bounds it is (Lemma 1 of *Probabilistic IHT*)

    .. math:: L = \max_{j \notin S} |g_j| \, / \, \min_{i \in S} |w_i|, \qquad |S| = k,

    With fewer than k non-zeros it is 0 if the gradient outside the support is zero, otherwise inf. For other sets it is
    found by bisection on P(w - g / L) = w.

    Parameters
    ----------
    constraint : Constraint
        The set.
    at : Evaluation
        f at a point of the set.
    support : Support
        Of the point, as the constraint says it.
    tol : float
        The residual of basic feasibility, >= 0, in units of the gradient, above which the result is inf. By default
        there is no such limit, because no run makes the gradient vanish exactly: the remaining gradient on the support
        is ignored, and the result depends only on the comparison of coordinates inside and outside the support. 0.0
        gives the exact definition.

    Returns
    -------
    float
        L >= 0, in units of the curvature.

    Notes
    -----
    Cost: no data pass; by the formula O(d), by bisection about 70 projections (to a relative 1e-12). Theorem 4 of the
    paper adds nothing to basic feasibility at full support: every basic feasible point with k non-zeros is L-stationary
    for the L above, and with fewer basic feasibility demands a zero gradient. Only the comparison of L with the
    smoothness of f is informative.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic IHT*, Definition 2 and Lemma 1; Beck and
    Eldar (2013), Lemma 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Coordinates, Sparsity
    >>> from hardthresh.core import Evaluation, smallest_lipschitz
    >>> at = Evaluation(np.array([0.0, 2.0]), 1.0, np.array([-4.0, 0.0]))
    >>> smallest_lipschitz(Sparsity(1), at, Coordinates(np.array([1])))
    2.0
    >>> smallest_lipschitz(Sparsity(2), at, Coordinates(np.array([1])))
    inf
    """
    if tol < inf and feasibility_residual(constraint, at, support) > tol:
        return inf
    outside = _outside(constraint, at, support)
    if norm(outside) <= _ROUNDING * _eps(outside) * norm(at.gradient):
        return 0.0
    budget = coordinate_budget(constraint, tuple(at.point.shape))
    if budget is None or budget.bounds is not None:
        return _smallest_by_bisection(constraint, at.point, outside, full=constraint.is_full(support))
    if budget.budget == 0:
        return 0.0  # nothing outside may ever come in
    counted = budget.counted(support)
    if counted.shape[0] < budget.budget:
        return inf
    xp = library(at.point)
    smallest = float(xp.min(xp.abs(xp.take(at.point, counted, axis=0))))
    return float(xp.max(xp.abs(outside))) / smallest if smallest > 0.0 else inf


def _smallest_by_bisection(constraint: Constraint, point: Array, outside: Array, *, full: bool) -> float:
    """Return the smallest L for which a point is a projection of itself less the gradient outside / L."""
    length, size = norm(outside), norm(point)

    def stationary(lipschitz: float) -> bool:
        there = point - outside / lipschitz
        nearest = constraint.project(there).point
        slack = max(_SLACK * length / lipschitz, _ROUNDING * _eps(point) * size)
        if constraint.exact:
            return norm(nearest - point) <= slack
        return length / lipschitz <= norm(there - nearest) + slack  # an approximation may return a point less near

    high = length / (size or length)
    if not full:
        return 0.0 if stationary(high) else inf
    for _ in range(_GROWTHS):
        if stationary(high):
            break
        high *= 4.0
    else:
        return inf
    low = high
    for _ in range(_SHRINKINGS):
        low /= 4.0
        if not stationary(low):
            break
    else:
        return 0.0  # nothing outside may ever come in
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stationary(middle) else (middle, high)
        if high - low <= _NARROW * high:
            break
    return high


def reference_is_stationary(constraint: Constraint, at: Evaluation, L: float, tol: float = 0.0) -> bool:
    """Return whether a point is L-stationary, directly by the definition, for tests only.

    The point must be *a* projection of w - g / L: in the set, and no farther from there than the nearest point that
    `project` returns, which among ties may be another. Up to rounding, and to a gradient of norm `tol` that a run left
    on the support; for an `exact` constraint and a finite L > 0.
    """
    there = at.point - at.gradient / L
    rounding = _ROUNDING * _eps(there) * (norm(there) + norm(at.point))
    in_the_set = norm(constraint.project(at.point).point - at.point) <= rounding
    nearest = norm(there - constraint.project(there).point)
    return in_the_set and norm(there - at.point) <= nearest + tol / L + rounding


def restricted_smoothness(
    objective: SmoothObjective, constraint: Constraint, at: Evaluation, iterations: int = 10, *, factor: float = 2
) -> float:
    """Return an estimate, from below, of the largest curvature of f at a point over directions of twice the budget.

    Power iteration with the Hessian: the first half finds where the curvature is, the second half stays within the
    budget (`factor` times the constraint's). Cost: about two data passes per iteration.
    """
    xp = library(at.point)
    relaxed = constraint.relax(factor)
    direction = at.gradient if norm(at.gradient) > 0.0 else xp.ones_like(at.point)
    largest = 0.0
    for iteration in range(iterations):
        restricted = 2 * iteration >= iterations - 1
        if restricted:
            direction = relaxed.hard_threshold(direction)
        length = norm(direction)
        if length == 0.0:
            break
        direction = direction / length
        image = objective.curvature(at, direction)
        if restricted:
            largest = max(largest, float(xp.sum(direction * image)))
        direction = image
    return largest


@stored("certificate/stationarity")
@dataclass(frozen=True, slots=True)
class Certificate:
    """The first-order conditions of a point and their residuals.

    Attributes
    ----------
    basic_feasibility : float
        The residual of basic feasibility, in units of the gradient; 0 at a basic feasible point.
    smallest_L : float
        The smallest L for which the point is L-stationary, in units of the curvature; inf if there is none. The
        remaining gradient on the support is not part of it; see `basic_feasibility`.
    smoothness : float
        An estimate from below of the restricted smoothness of f near the point; nan if f has no method `curvature`.
    gradient_scale : float
        The scale for `basic_feasibility`: the norm of the hard-thresholded gradient at the null model. If the null
        model is a minimum, it is the root mean square of the gradient at the point; if both are rounding errors, the
        size of the rounding divided by `FEASIBLE`.

    Notes
    -----
    Both conditions are necessary for a minimum, and neither is sufficient. Theorem 4 of *Probabilistic IHT* adds
    nothing to basic feasibility at full support: every basic feasible point with k non-zeros is L-stationary for ``L =
    max |g_off| / min |w_S|``. With fewer than k non-zeros basic feasibility demands a zero gradient, and `smallest_L`
    is 0 there and inf otherwise. The comparison of `smallest_L` with `smoothness` is informative: for a global
    minimiser, `smallest_L` is at most the restricted smoothness constant.
    """

    basic_feasibility: float
    smallest_L: float
    smoothness: float
    gradient_scale: float

    def is_stationary(self, L: float | None = None, tol: float = FEASIBLE) -> bool:
        """Return whether the point is L-stationary, with a residual of at most `tol` times `gradient_scale`.

        Parameters
        ----------
        L : float, optional
            A number > 0; inf tests whether any L exists. Default: the smoothness estimate. Every global minimiser
            passes for any L above the restricted smoothness constant. A point that passes for a much smaller L is a
            strong candidate for a global minimum, but this is not a proof.
        tol : float
            Relative tolerance of the residual.

        Raises
        ------
        InvalidInputError
            For an L that is not a number > 0, or a `tol` that is not a number >= 0.
        """
        if L is not None:
            checked_number("L", L, above=0.0, finite=False)
        checked_number("tol", tol, least=0.0, finite=False)
        bound = (1.0 + 1e-5) * (self.smoothness if L is None else L)  # ties are exact up to rounding
        known = isfinite(self.basic_feasibility)
        feasible = known and (tol == inf or is_negligible(self.basic_feasibility, self.gradient_scale, tol))
        return feasible and self.smallest_L < inf and self.smallest_L <= bound


def certify_point(
    objective: Objective, constraint: Constraint, at: Evaluation, support: Support, trace: Trace | None = None
) -> Certificate:
    """Return the first-order certificate of a point; see `Certificate`.

    The scale of the gradient is that of the run whose trace is given, otherwise that at zero (one data pass). A point
    with fewer non-zeros than allowed is L-stationary for L = 0 if its residual is below 1e-5 times that scale.

    Parameters
    ----------
    objective : Objective
        The objective.
    constraint : Constraint
        The constraint.
    at : Evaluation
        The objective at the point.
    support : Support
        Where the point may be non-zero.
    trace : Trace, optional
        The trace of the run that found the point.

    Returns
    -------
    Certificate
    """
    if trace is None:
        null_gradient = leading_norm(constraint, objective.evaluate(objective.zeros()).gradient)
    else:
        null_gradient = trace.null_gradient
    if not isfinite(norm(at.gradient)):
        return Certificate(inf, inf, nan, gradient_scale(at, null_gradient))  # nothing is known
    smoothness, rounding = nan, 0.0
    if isinstance(objective, SmoothObjective):
        if objective.traits.reading_is_dear and isinstance(objective, LinearObjective):
            smoothness = _smoothness_on(objective, at, support)
        else:
            smoothness = restricted_smoothness(objective, constraint, at)
        rounding = _gradient_rounding(objective, at, smoothness)
    residual = feasibility_residual(constraint, at, support)
    scale = max(gradient_scale(at, null_gradient), rounding / FEASIBLE)
    outside = _outside(constraint, at, support)
    if norm(outside) <= rounding or (not constraint.is_full(support) and is_negligible(residual, scale, FEASIBLE)):
        return Certificate(residual, 0.0, smoothness, scale)
    smallest = smallest_lipschitz(constraint, at, support)
    if isinstance(objective, SmoothObjective) and 0.0 < smallest < inf:
        smoothness = max(smoothness, _curvature_of_exchange(objective, constraint, at, outside, smallest))
    return Certificate(residual, smallest, smoothness, scale)


def _smoothness_on(objective: LinearObjective, at: Evaluation, support: Support) -> float:
    """Return the largest curvature over directions of the support, a bound from below that reads no other columns."""
    if support.indices is None or not support.indices.shape[0]:
        return 0.0
    hessian = objective.columns(support.indices).hessian(at)
    return float(np.linalg.eigvalsh(np.asarray(hessian, dtype=np.float64))[-1])


def _outside(constraint: Constraint, at: Evaluation, support: Support) -> Array:
    """Return the part of the gradient that the support cannot follow."""
    return at.gradient - constraint.free_part(at.point, at.gradient, support).restrict(at.gradient)


def _gradient_rounding(objective: Objective, at: Evaluation, smoothness: float) -> float:
    """Return the size of the rounding of a gradient.

    The gradient of an L-smooth f at zero is at most sqrt(2 L (f(0) - inf f)), and the terms that cancel in a gradient
    that vanishes are as large; each is rounded, hence some tens of eps.
    """
    value, bound = objective.value(objective.null_point()), objective.lower_bound
    level = value - bound if bound > -inf else abs(value)
    return _ROUNDING * _eps(at.gradient) * sqrt(2.0 * max(smoothness * level, 0.0)) if level < inf else 0.0


def _curvature_of_exchange(
    objective: SmoothObjective, constraint: Constraint, at: Evaluation, outside: Array, lipschitz: float
) -> float:
    """Return the curvature towards the point that is nearer to w - g / L than w is, for an L just too small.

    At a global minimiser of a quadratic this is at least that L, so that no such point fails the comparison of the two
    because the smoothness is only estimated from below.
    """
    direction = constraint.project(at.point - outside / ((1.0 - 1e-6) * lipschitz)).point - at.point
    length = norm(direction)
    return objective.curvature_along(at, direction / length) if length > 0.0 else 0.0
