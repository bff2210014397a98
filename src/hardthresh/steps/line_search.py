"""Line searches: the exact step along the support, and backtracking on a quadratic majorisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_number, checked_word
from hardthresh.core.choosing import ahead, choose, choose_array, ratio_if
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.few import curvature_along_few, predict_few
from hardthresh.core.lazy import at_hand, inner
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.stationarity import norm
from hardthresh.core.step import Move, StepRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

ARMIJO = 1e-4
"""A decrease of f is sufficient if it is this share of what the gradient predicts (Nocedal and Wright 2006, (3.4))."""
TRIES = 60
"""The most tries of a search. Halving a step so often divides it by 2^60 = 1e18, beyond the precision of float64."""
_TOGETHER = 3
"""Tries of `Backtracking` that a device makes at once: one to three are needed, as the first is twice the last step."""
_SHORTER = 0.99
"""1 - c of `ExactLineSearch`, with the c = 0.01 of Blumensath and Davies (2010)."""


def minimising_step(
    objective: SmoothObjective, constraint: Constraint, at: Evaluation, direction: Array, supports: int = 0
) -> float:
    r"""Return the step along p, a restriction of the negative gradient, that minimises the quadratic model of f.

    That is :math:`\|p\|^2 / (p, H p)`, by the unit vector along p, so that no square leaves the range; 0 if p is zero
    or f has no finite curvature along it, or so little that the squared length of the move would leave the range.
    Cost: s/d of a pass of a linear model, else one. `supports` is as in `predict_few`.
    """
    length = norm(direction)
    if at_hand(length) and not 0.0 < length < inf:
        return 0.0
    curvature = curvature_along_few(objective, constraint, at, direction / length, supports)
    finite = (length > 0.0) & (length < inf) & (curvature > 0.0) & (curvature < inf)
    step = ratio_if(finite, 1.0, curvature)
    longest = sqrt(float(namespace(direction).finfo(direction.dtype).max))
    return choose(step * length < longest, step, 0.0)


def polyak_step(at: Evaluation, direction: Array) -> float:
    """Return |f| / |p|^2, which has the units of a step; 1 where that says nothing."""
    length = norm(direction)
    step = ratio_if(length > 0.0, ratio_if(length > 0.0, abs(at.value), length), length)
    return choose((step > 0.0) & (step < inf), step, 1.0)


def exact_step(
    objective: SmoothObjective, constraint: Constraint, at: Evaluation, support: Support, direction: Array
) -> float:
    """Return the step that minimises the quadratic model of f along the direction, restricted to the point's support.

    While the support has room left (at zero, say), or where the direction on it is rounding next to the whole (at a
    minimiser on the support), the restriction is to the leading part of the direction, so that the step always has
    the scale of the problem. 0 and the cost as in `minimising_step`.
    """
    restricted = support.restrict(direction)
    rounding = sqrt(float(namespace(direction).finfo(direction.dtype).eps))
    leads = not constraint.is_full(support) or norm(restricted) <= rounding * norm(direction)
    if not at_hand(leads) or leads:
        restricted = choose_array(leads, constraint.hard_threshold(direction, support), restricted)
    return minimising_step(objective, constraint, at, restricted, supports=1)


def standstill(constraint: Constraint, at: Evaluation, direction: Array, memory: Any, support: Support) -> Move:
    """Return the move that stays where it is; the last one if there is no direction to follow."""
    settled = "the gradient is zero" if norm(direction) == 0.0 else ""
    return Move(constraint.project(at.point, support), 0.0, at, memory, settled)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A point that a solver has tried, not yet evaluated in full.

    Attributes
    ----------
    projection : Projection
        The point and its support.
    step : float
        The length of the step that led there; nan if it was not one step.
    value : float
        f there.
    prediction : array or None
        The prediction there, so that it need not be computed again.
    minimal : bool
        Whether the point minimises f on its support, up to the tolerance of the search.
    abandoned : bool
        Whether the search ended early, because f was not expected to become as low as required (heuristic).
    """

    projection: Projection
    step: float
    value: float
    prediction: Array | None
    minimal: bool = False
    abandoned: bool = False


def majorised_step(
    objective: Objective,
    constraint: Constraint,
    at: Evaluation,
    direction: Array,
    step: float,
    shrink: float = 0.5,
    *,
    support: Support | None = None,
    most: float | None = None,
    together: int = 1,
    rounding: float | None = None,
) -> Candidate | None:
    r"""Return the first step, shrinking from `step`, that satisfies the quadratic majorisation.

    .. math:: f(w^+) \le f(w) + (g, w^+ - w) + \frac{\|w^+ - w\|^2}{2\gamma}

    That is a sufficient decrease: the right-hand side is never above f(w) for an exact projection of a point of the
    set. Where the projection is approximate, or momentum has carried the point out of the set, it may be; `most`, the
    largest value accepted, is f(w) by default. For a quadratic and the exact step both sides of the majorisation are
    equal, so it is asked for up to rounding (`value_rounding`). None when `TRIES` shrinkings were not enough or nothing
    moves; or, without `most`, when the right-hand side of a step that fails is below f(w) by no more than rounding, as
    it would be for shorter steps. Cost: s/d of a data pass per try; a device makes so many tries `together`.
    `rounding` is `value_rounding` there, if it is known.
    """
    rounding = value_rounding(objective, at) if rounding is None else rounding
    inside = most is None or most <= at.value
    most = at.value if most is None else most

    def tried(step: float) -> tuple[bool, Candidate, float]:
        """Return whether a step leads nowhere, where it leads to, and the right-hand side of the majorisation."""
        projection = constraint.project(at.point + step * direction, support)
        moved = projection.point - at.point
        squared = inner(moved, moved)
        nowhere = (squared == 0.0) | (step == 0.0)  # approximate projections move by rounding even without a step
        if at_hand(nowhere) and nowhere:
            return True, Candidate(projection, step, at.value, None), at.value
        prediction = predict_few(objective, constraint, projection.point)
        value = objective.value(projection.point, prediction)
        model = at.value + inner(at.gradient, moved) + squared / (2.0 * step)
        return nowhere, Candidate(projection, step, value, prediction), model

    for nowhere, candidate, model in ahead(map(tried, _shrinking(step, shrink)), direction, together):
        if nowhere:
            return None
        if candidate.value <= min(most, model + rounding):
            return candidate
        if inside and abs(at.value - model) <= rounding:
            return None
    return None


def _shrinking(step: float, shrink: float) -> Iterator[float]:
    """Yield the steps of a search."""
    for _ in range(TRIES):
        yield step
        step *= shrink


@register("step", "exact_line_search", upgrades=[lambda fields: fields | {"within": "support"}])
@dataclass(frozen=True, slots=True)
class ExactLineSearch(StepRule):
    r"""The exact step along the restricted gradient, :math:`\gamma = \|g_S\|^2 / (g_S, H g_S)` on the support S.

    When the support changes, the step is divided by 2 (1 - c), c = 0.01, until
    :math:`\gamma \le (1 - c) \|\Delta\|^2 / (\Delta, H \Delta)` for the move :math:`\Delta`.

    Parameters
    ----------
    within : {"support", "direction"}
        The part of the direction along which the step minimises f: the part on the support, or the whole direction. For
        `AcceleratedIHT` these are the support of :math:`u_i` and :math:`T_i`.

    Raises
    ------
    InvalidInputError
        For another value.

    Notes
    -----
    IHT (iterative hard thresholding) with this rule is normalised IHT. Cost: 2s/d of a data pass for each step tried
    for a linear model, otherwise one pass. Guarantee: for least squares it is monotone and converges to an L-stationary
    point (Blumensath and Davies 2010, Theorem 4). For other losses the rule uses the Hessian at the present point, and
    is a heuristic.

    References
    ----------
    Blumensath and Davies (2010), *Normalized iterative hard thresholding*, Algorithm 1.
    """

    within: str = "support"

    def __post_init__(self) -> None:
        checked_word("within", self.within, ("support", "direction"))

    @property
    def requires(self) -> type:
        return SmoothObjective

    def length(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        inside: Array,
        supports: int,
    ) -> float:
        assert isinstance(objective, SmoothObjective)
        along = inside if self.within == "support" else direction
        step = minimising_step(objective, constraint, at, along, supports)
        if at_hand(step) and step != 0.0:
            return step
        return choose(step != 0.0, step, polyak_step(at, along))

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Any,
        support: Support,
    ) -> Move:
        assert isinstance(objective, SmoothObjective)
        here = constraint.project(at.point, support).support
        if self.within == "support":
            step = exact_step(objective, constraint, at, here, direction)
        else:
            step = minimising_step(objective, constraint, at, direction)
        for _ in range(TRIES):
            projection = constraint.project(at.point + step * direction, support)
            moved = projection.point - at.point
            squared = float(inner(moved, moved))
            if squared == 0.0:
                settled = "the exact step along the gradient does not move the point"
                return Move(projection, step, at, memory, settled if step > 0.0 or norm(direction) == 0.0 else "")
            if here == projection.support:
                return Move(projection, step, None, memory)
            if step * objective.curvature_along(at, moved) <= _SHORTER * squared:
                return Move(projection, step, None, memory)
            step /= 2 * _SHORTER
        return standstill(constraint, at, direction, memory, support)


@register("step", "backtracking")
@dataclass(frozen=True, slots=True)
class Backtracking(StepRule):
    r"""Backtracking: the first step of a decreasing sequence that satisfies a quadratic majorisation.

    :math:`f(w^+) \le f(w) + (\nabla f(w), w^+ - w) + \|w^+ - w\|^2 / (2\gamma)`; the first step tried is `grow` times
    the last accepted step, and a step that fails is multiplied by `shrink`.

    Parameters
    ----------
    first : float, optional
        The first step to try in a run, > 0. Default: the minimiser of the parabola through f(w), its slope and one more
        value along the hard-thresholded gradient.
    grow, shrink : float
        grow >= 1 and 0 < shrink < 1.

    Notes
    -----
    The rule needs neither a smoothness constant nor a target. Guarantee: monotone, because the majorisation implies a
    decrease; if f has the restricted smoothness constant L, every step below 1/L is accepted. Cost: s/d of a data pass
    for each step tried, for s non-zeros of d.

    Examples
    --------
    >>> Backtracking().shrink
    0.5
    """

    first: float | None = None
    grow: float = 2.0
    shrink: float = 0.5

    def __post_init__(self) -> None:
        if self.first is not None:
            checked_number("the first step", self.first, above=0.0)
        checked_number("grow", self.grow, least=1.0)
        checked_number("shrink", self.shrink, above=0.0, below=1.0)

    def start(self) -> float | None:
        return self.first

    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Any,
        support: Support,
    ) -> Move:
        step = self._guess(objective, constraint, at, direction, support) if memory is None else self.grow * memory
        found = majorised_step(
            objective, constraint, at, direction, step, self.shrink, support=support, together=_TOGETHER
        )
        if found is None:
            return standstill(constraint, at, direction, memory, support)
        evaluation = objective.evaluate(found.projection.point, found.prediction)
        return Move(found.projection, found.step, evaluation, found.step)

    def _guess(
        self, objective: Objective, constraint: Constraint, at: Evaluation, direction: Array, support: Support | None
    ) -> float:
        """Return the minimiser of the parabola through f(w), its slope and one value along the leading direction."""
        leading = constraint.hard_threshold(direction, support)
        squared: float = inner(leading, leading)
        if squared == 0.0:
            return 1.0
        trial = abs(at.value) / squared or 1.0  # Polyak's step: follows every scale, of f and of w
        for _ in range(TRIES):
            rise = objective.value(at.point + trial * leading) - at.value + trial * squared
            if 0.0 < rise < float("inf"):
                return squared * trial * trial / (2.0 * rise)
            trial *= 4.0 if rise <= 0.0 else 0.25
        return trial
