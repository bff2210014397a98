"""The largest and smallest curvature of an objective along the directions that a constraint allows, and their ratio."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from hardthresh.arrays import all_finite, as_floating, namespace, scatter, to_numpy, where_true
from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation, LinearObjective, Objective, SmoothObjective, require
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.stationarity import norm, restricted_smoothness
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array

# The limits of the work are arbitrary: they bound the cost, and a search that is cut short still returns a valid bound.
_DIRECT = 256  # largest support on which all eigenvalues are computed
_PAIRED = 2048  # largest number of coordinates for which all pairs are compared
_ROUNDS = 30  # products with the Hessian of one search at its last level
_HALVINGS = 6  # longer steps of such a search, up to 2^5 times the plain one
_GAIN = 1e-6  # the least relative gain for which a search continues
_DOUBLINGS = 12  # of the budget, from at least 1/4096 of it


@dataclass(frozen=True, slots=True)
class RestrictedCondition:
    """Estimates of the restricted constants of an objective at a point; ``print`` it to read it.

    Attributes
    ----------
    smoothness : float
        The largest curvature that was found along an allowed direction. The restricted smoothness is at least this.
    strong_convexity : float
        The smallest curvature that was found along an allowed direction. The restricted strong convexity is at most
        this; 0 where it is rounding, negative only where f is not convex.
    trials : int
        The number of random starts of the search.
    """

    smoothness: float
    strong_convexity: float
    trials: int

    @property
    def condition(self) -> float:
        """The ratio of the two, a lower bound of the restricted condition number; inf if f has a flat direction."""
        return self.smoothness / self.strong_convexity if self.strong_convexity > 0.0 else inf

    def __str__(self) -> str:
        return (
            f"restricted smoothness at least {self.smoothness:.4g}, strong convexity at most "
            f"{self.strong_convexity:.4g}, condition number at least {self.condition:.4g} "
            f"({self.trials} random starts); a large condition number is proved, a small one proves nothing"
        )


@serial_blas()
def restricted_condition(
    objective: Objective,
    constraint: Constraint,
    w: Any = None,
    *,
    factor: float = 2,
    trials: int = 20,
    seed: int = 0,
) -> RestrictedCondition:
    r"""Estimate the restricted smoothness, strong convexity and condition number of an objective at a point.

    .. math:: L = \max_{v \in C_r} \frac{v^\top H v}{v^\top v}, \qquad
              \mu = \min_{v \in C_r} \frac{v^\top H v}{v^\top v}, \qquad \kappa = L / \mu,

    where :math:`H = \nabla^2 f(w)` and :math:`C_r` is the set of directions that the constraint allows if its size is
    multiplied by r, such as the vectors with at most r k non-zeros.

    Parameters
    ----------
    objective : objective with ``curvature``
        f. With ``columns`` and ``hessian`` the eigenvalues on a support are computed directly.
    constraint : Constraint
        C. Its bounds do not apply to directions.
    w : array of the objective's shape, optional
        The point. Default: the null model, which is zero for most objectives; the Hessian of least squares is the same
        everywhere.
    factor : float
        r >= 1. With 2, differences of two points of C are allowed.
    trials : int
        Number of random starts, at least 1.
    seed : int
        Seed of the random starts.

    Returns
    -------
    RestrictedCondition

    Raises
    ------
    CapabilityError
        If the objective has no method `curvature`.
    InvalidInputError
        For a factor or trials below 1, a negative seed, a point of another shape or with NaN or infinity, or a
        constraint that leaves no direction.

    See Also
    --------
    hardthresh.steps.restricted_smoothness_ar1 : The bound on L by which *Sparse Polyak* sets its fixed step.
    hardthresh.core.Certificate : Compares the smallest L of a point with the restricted smoothness.

    Notes
    -----
    **These are one-sided estimates.** Every number is the curvature along a direction that was found, so L is never
    overestimated, :math:`\mu` never underestimated, and the condition number is at least the one returned. Exact values
    are as hard to compute as best subset selection: a large estimate proves a large condition number, a small estimate
    proves nothing. On small AR(1) problems, where all supports can be tried, L is exact, and :math:`\mu` is exact or,
    for nearly collinear columns, up to twice too large; without ``columns`` up to eight times. The theory also needs
    constants that hold at every w.

    The search is a truncated power method, on H for L and on L - H for :math:`\mu`: multiply the direction,
    hard-threshold it to the budget, and repeat while the curvature improves, with longer steps if the plain one does
    not. It starts from the gradient; from random directions, every other one with a small budget that is doubled until
    it reaches r k, so that the support grows by the entries of most curvature; and, up to 2048 coordinates, from the
    pairs of columns with the most and the least curvature. On a support of at most 256 coordinates the direction is
    replaced by the best one there, an eigenvector of the Hessian.

    Cost: about 20 data passes per trial for both constants together (60 without ``columns``), the Hessian once for the
    pairs, and several eigenvalue problems of r k rows per pass.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak*, Assumptions 1 and 2; the truncated power method: Yuan and Zhang (2013),
    *Truncated power method for sparse eigenvalue problems*.

    Examples
    --------
    The first two columns are nearly the same, so some direction with two non-zeros is nearly flat:

    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> X[:, 1] = X[:, 0] + 0.01 * X[:, 1]
    >>> found = restricted_condition(LinearModel(X, X[:, 2]), Sparsity(3))
    >>> found.condition > 1e4
    True
    """
    require(objective, SmoothObjective, by="restricted_condition")
    assert isinstance(objective, SmoothObjective)
    constraint.check(objective.shape)
    checked_number("factor", factor, least=1.0)
    trials, seed = checked_integer("trials", trials, 1), checked_integer("seed", seed, 0)
    at = objective.evaluate(objective.null_point() if w is None else _point(objective, w))
    schedule = _schedule(constraint, factor)
    smooth = _search_all(objective, schedule, at, trials, seed, shift=None)
    if smooth is None:
        raise InvalidInputError(f"{constraint} leaves no direction; give it a budget of at least 1")
    largest = max(smooth, restricted_smoothness(objective, constraint, at, factor=factor))
    # the direction of least curvature of H has the most of L - H, which is positive on the allowed directions
    smallest = _search_all(objective, schedule, at, trials, seed, shift=largest)
    assert smallest is not None  # the same starts as above
    rounding = float(namespace(at.point).finfo(at.point.dtype).eps) * _size(at.point) * largest
    return RestrictedCondition(largest, 0.0 if abs(smallest) <= rounding else smallest, trials)


def _point(objective: Objective, w: Any) -> Array:
    point = as_floating(w, objective.zeros(), "w")
    if tuple(point.shape) != tuple(objective.shape):
        raise InvalidInputError(f"w has shape {tuple(point.shape)}; {tuple(objective.shape)} is needed")
    if not all_finite(point):
        raise InvalidInputError("w contains NaN or infinity")
    return point


def _size(v: Array) -> int:
    return int(np.prod(v.shape))


def _schedule(constraint: Constraint, factor: float) -> list[Constraint]:
    """Return sets with budgets that double up to that of the relaxed constraint, the last one."""
    schedule: list[Constraint] = []
    for halvings in range(_DOUBLINGS, -1, -1):
        level = constraint.relax(factor / 2**halvings)
        if not schedule or level != schedule[-1]:
            schedule.append(level)
    return schedule


def _search_all(
    objective: SmoothObjective, schedule: list[Constraint], at: Evaluation, trials: int, seed: int, shift: float | None
) -> float | None:
    """Return the largest curvature over all starts, with a `shift` the smallest; None if no direction is allowed."""
    sign = 1.0 if shift is None else -1.0
    starts = _starts(objective, schedule, at, trials, seed, shift)
    found = [value for start, used in starts if (value := _search(objective, used, at, start, shift)) is not None]
    return sign * max(sign * value for value in found) if found else None


def _starts(
    objective: SmoothObjective, schedule: list[Constraint], at: Evaluation, trials: int, seed: int, shift: float | None
) -> Iterator[tuple[Array, list[Constraint]]]:
    """Yield the gradient, pairs of columns, and random directions, each with the levels to search it on."""
    yield at.gradient, schedule[-1:]
    if _in_coordinates(objective, schedule[-1], at) and _size(at.point) <= _PAIRED:
        for pair in _pairs(objective, at, count=5, shift=shift):
            yield pair, schedule
    rng = generator(seed, 0, Purpose.DIRECTIONS)
    for trial in range(trials):
        start = as_floating(rng.standard_normal(at.point.shape), at.point)
        yield start, schedule if trial % 2 else schedule[-1:]


def _pairs(objective: SmoothObjective, at: Evaluation, count: int, shift: float | None) -> Iterator[Array]:
    """Yield the `count` best directions among those on each coordinate and its best partner."""
    assert isinstance(objective, LinearObjective)
    hessian = to_numpy(objective.hessian(at))
    d = hessian.shape[0]
    diagonal = np.diagonal(hessian)
    middle, half = 0.5 * (diagonal[:, None] + diagonal), 0.5 * (diagonal[:, None] - diagonal)
    radius = np.hypot(half, hessian)
    extreme = radius + middle if shift is None else radius - middle  # the extreme eigenvalue of each 2 x 2 block
    np.fill_diagonal(extreme, -inf)
    partners = np.argmax(extreme, axis=1)
    best = np.argsort(-extreme[np.arange(d), partners], kind="stable")
    pairs = list(dict.fromkeys(tuple(sorted((int(i), int(partners[i])))) for i in best if partners[i] != i))
    for pair in pairs[:count]:
        _, vectors = np.linalg.eigh(hessian[np.ix_(pair, pair)])
        direction = np.zeros(d)
        direction[list(pair)] = vectors[:, -1 if shift is None else 0]
        yield as_floating(direction, at.point)


def _in_coordinates(objective: SmoothObjective, constraint: Constraint, at: Evaluation) -> bool:
    """Return whether supports are sets of coordinates, and the objective gives its Hessian on them."""
    able = isinstance(objective, LinearObjective)
    return able and constraint.project(at.point).support.indices is not None


def _search(
    objective: SmoothObjective, schedule: list[Constraint], at: Evaluation, direction: Array, shift: float | None
) -> float | None:
    """Return the curvature that a search from a direction ends with; None if no direction is left."""
    sign = 1.0 if shift is None else -1.0
    exact = _in_coordinates(objective, schedule[-1], at)
    value: float | None = None
    for level in schedule[:-1]:  # one step of the power method each
        found = _measure(objective, at, level.hard_threshold(direction), sign, exact)
        if found is None:
            return value  # the last step was zero: all directions have the same curvature
        unit, value = found
        weight, slope = _ascent(objective, at, unit, value, shift)
        direction = weight * unit + slope
    found = _measure(objective, at, schedule[-1].hard_threshold(direction), sign, exact)
    if found is None:
        return value
    unit, value = found
    for _ in range(_ROUNDS):
        weight, slope = _ascent(objective, at, unit, value, shift)
        for halvings in range(_HALVINGS):  # the shortest step is that of the power method
            direction = schedule[-1].hard_threshold(weight / 2**halvings * unit + slope)
            found = _measure(objective, at, direction, sign, exact)
            if found is not None and sign * (found[1] - value) > _GAIN * abs(value):
                unit, value = found
                break
        else:
            return value
    return value


def _ascent(
    objective: SmoothObjective, at: Evaluation, unit: Array, value: float, shift: float | None
) -> tuple[float, Array]:
    """Return the weight of a unit direction in a step of the power method on H, or shift - H, and what it adds."""
    slope = (objective.curvature(at, unit) - value * unit) * (1.0 if shift is None else -1.0)
    return value if shift is None else shift - value, slope


def _measure(
    objective: SmoothObjective, at: Evaluation, direction: Array, sign: float, exact: bool
) -> tuple[Array, float] | None:
    """Return the unit vector along a direction, or the best one on its support if that is small, and its curvature."""
    length = norm(direction)
    if length == 0.0:
        return None
    support = where_true(direction != 0) if exact else None
    if support is None or support.shape[0] > _DIRECT:
        unit = direction / length
        return unit, objective.curvature_along(at, unit)
    assert isinstance(objective, LinearObjective)
    values, vectors = namespace(direction).linalg.eigh(objective.columns(support).hessian(at))
    place = -1 if sign > 0 else 0
    return scatter(vectors[:, place], support, direction.shape[0]), float(values[place])
