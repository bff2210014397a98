"""Minimising f on one support, by a few Newton-CG steps or to the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from math import inf, nan

import numpy as np

from hardthresh.arrays import all_finite, move
from hardthresh.core.choosing import begun, to_the_end
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.lazy import at_hand, inner
from hardthresh.core.objective import Evaluation, Objective, value_rounding
from hardthresh.core.stationarity import norm
from hardthresh.core.support import Support
from hardthresh.core.typing import Array, is_numpy
from hardthresh.steps.line_search import ARMIJO, Candidate

from .newton import LEFT_OUT, is_direct, newton_direction, newton_system
from .steepest import search_along
from .subspace import Subspace, subspace

FULL_SOLVE = 25
"""Limit of the Newton steps that minimise f on a support: 1,187 of 1,207 such solves took at most 7, the others 24 or
25."""
_PAYS = 0.01
"""Share of f that each further step along the gradient has to gain. Arbitrary: 18 classifiers with offsets of up to 500
have the same answers with 0 to 0.1, and with a limit of 1 to 16 such steps."""
_GRADIENT_STEPS = 4
"""Number of steps along the gradient that one call makes where there is no curvature."""


def refining(
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
) -> Generator[None, None, Candidate]:
    r"""Return a point of the same support with a lower value, by Newton steps that stay inside the constraint.

    Each round solves :math:`H p = -g` on the part of the support where no bound holds, by CG, and searches along the
    projected path w + t p, t = 1, 1/2, ... Where the curvature along the gradient is zero, negative or not a number,
    the search is along the gradient, by the values of f alone. This is a generator, which yields where the host is to
    examine a number; `refine` runs it to its end, and `in_step` several at once.

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
    expected: _Expected | None = None
    for number in range(rounds):
        known = expected if expected is not None and found is expected.found else None
        if number:
            at = _evaluate(space, found) if known is None else known.at
        support, free, slope = _free_slope(space, constraint, found, at)
        steepness, rounding = norm(slope), value_rounding(space.objective, at) if known is None else known.rounding
        if at_hand(steepness) and steepness == 0.0:
            return replace(found, minimal=True)
        system = None if known is None else known.system
        before = predicted
        direction, flat, predicted = newton_direction(space, at, slope, free, cg_iterations, system)
        project = partial(_project, space, constraint, support, start)
        tries = begun(_halvings(space, project, at, slope, direction), direction)
        ahead = number + 1 < rounds and not is_numpy(slope) and is_direct(space, slope, cg_iterations)
        if ahead and max(tol, rounding) < predicted < inf:  # the system has brought these numbers over
            tries, expected = _expect(space, constraint, tries)
        yield
        if steepness == 0.0:
            return replace(found, minimal=True)
        curved = not along_gradient or 0.0 < predicted < inf
        better, last, enough = None, False, 0.0
        if curved:
            trusted = 0.5 * before <= value - at.value <= 2.0 * before and 4.0 * predicted < before
            if trusted and at.value - 4.0 * predicted > below:
                return replace(found, abandoned=True)
            value = at.value
            enough = max(tol, rounding)
            last = predicted <= enough
            allowed = min(rounding, first - at.value) if last else 0.0  # there the gradient knows better than f
            better = yield from _search(at, islice(tries, 1 if last else 30), allowed)
        left_out = last and gradient_steps <= _GRADIENT_STEPS and norm(flat) > LEFT_OUT * steepness
        stuck = better is None and not last  # no curvature, or a loss that looks saturated: steps are far too long
        rest = move(flat, slope) if last and is_numpy(flat) else slope
        beyond = _along_gradient(space, project, at, rest) if along_gradient and (left_out or stuck) else None
        if beyond is not None and (stuck or at.value - beyond.value > enough):
            predicted, value, gradient_steps = 0.0, inf, gradient_steps + 1
            pays = left_out or (curved and at.value - beyond.value > _PAYS * abs(at.value))
            if gradient_steps > _GRADIENT_STEPS and not pays:
                return beyond
            found = beyond
            continue
        found = found if better is None else better
        if last or better is None:
            return replace(found, minimal=True)
    return found


refine = to_the_end(refining)


def polish(objective: Objective, constraint: Constraint, found: Candidate) -> Candidate:
    """Return what one more Newton step leads to if the gradient is smaller there and f the same up to rounding.

    Near a minimum f says where it is to half of the digits only, and the gradient to all of them. `refine`, which never
    raises f, may end before.
    """
    space = subspace(objective, constraint, found.projection.support)
    at = _evaluate(space, found)
    support, free, slope = _free_slope(space, constraint, found, at)
    direction, _, _ = newton_direction(space, at, slope, free, 0)
    if not all_finite(direction):
        return found
    projection = _project(space, constraint, support, None, at.point + direction)
    after = space.objective.evaluate(space.lower(projection.point))
    same = abs(after.value - at.value) <= value_rounding(space.objective, at)
    if not (same and norm(space.keep(after.gradient, free)) < norm(slope)):
        return found
    return replace(found, projection=projection, value=after.value, prediction=after.prediction)


@dataclass(frozen=True, slots=True)
class _Expected:
    """The first try of a round on a device, evaluated, and the `newton_system` of the round that follows it."""

    found: Candidate
    at: Evaluation
    rounding: float
    system: tuple[np.ndarray, ...]


def _expect(
    space: Subspace, constraint: Constraint, tries: Iterator[tuple[Candidate, float]]
) -> tuple[Iterator[tuple[Candidate, float]], _Expected]:
    """Return tries, and what the next round needs if the first one is accepted, as it mostly is.

    It comes over with the numbers that say whether it is: one wait for each round instead of two.
    """
    first = next(tries)
    at = _evaluate(space, first[0])
    _, free, slope = _free_slope(space, constraint, first[0], at)
    rounding = value_rounding(space.objective, at)  # which comes over with the system
    return chain([first], tries), _Expected(first[0], at, rounding, newton_system(space, at, slope, free))


def _evaluate(space: Subspace, found: Candidate) -> Evaluation:
    """Return the objective of the subspace at a candidate."""
    at: Evaluation = space.objective.evaluate(space.lower(found.projection.point), found.prediction)
    return at


def _free_slope(
    space: Subspace, constraint: Constraint, found: Candidate, at: Evaluation
) -> tuple[Support, Support, Array]:
    """Return the support to move on from a candidate, its free part, and the gradient there."""
    support = space.support(found.projection)
    free = constraint.free_part(space.lift(at.point), space.lift(at.gradient), support)
    return support, free, space.keep(at.gradient, free)


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


def _halvings(
    space: Subspace, project: Callable[[Array], Projection], at: Evaluation, slope: Array, direction: Array
) -> Iterator[tuple[Candidate, float]]:
    """Yield the projected points at + t direction, t = 1, 1/2, ..., each with the value of a sufficient decrease."""
    for halved in count():
        projection = project(at.point + 0.5**halved * direction)
        point = space.lower(projection.point)
        prediction = space.objective.predict(point)
        value = space.objective.value(point, prediction)
        enough = at.value + ARMIJO * inner(slope, point - at.point)
        yield Candidate(projection, nan, value, prediction), enough


def _search(
    at: Evaluation, tries: Iterable[tuple[Candidate, float]], allowed: float
) -> Generator[None, None, Candidate | None]:
    """Return the first of some tries with a sufficient decrease; `allowed` above it is rounding."""
    for tried, enough in tries:
        if not at_hand(tried.value):
            yield
        if tried.value <= enough + allowed and (tried.value < at.value or allowed > 0.0):
            return tried
    return None
