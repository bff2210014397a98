"""Rules that end a run that has failed, or correct the reason that another rule gave at its end."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from .beyond import large_entries, value_beyond
from .errors import NotFiniteError
from .lazy import scalar
from .objective import RecedingObjective, value_rounding
from .result import Status
from .schema import stored
from .state import State
from .stationarity import norm
from .stopping import Run, Stop, StopRule
from .typing import Array, library

_FAR = 1e6
"""Times the answer: where f is asked whether it falls indefinitely. Arbitrary: its gap to the bound must fall as
much."""

_STAYS = 1e-3
"""Share of a move within bounds up to which it counts as none. Arbitrary: the move is 100 units of the prediction long,
and f at the end of a longer one, within the bounds, shows whether it falls."""


def is_finite(state: State) -> bool:
    """Return whether the objective and its gradient are finite numbers; lazy on a device."""
    gradient, value = state.at.gradient, state.at.value
    xp = library(gradient)
    finite: bool = (abs(value) < inf) & scalar(xp.all(xp.isfinite(gradient)))
    return finite


@stored("stop/not_finite")
@dataclass(frozen=True, slots=True)
class NotFinite(StopRule):
    """Stop where the objective or its gradient is infinite or NaN."""

    def check(self, run: Run) -> Stop | None:
        state = run.state
        if is_finite(state):
            return None
        what = "objective" if not isfinite(state.value) else "gradient"
        where = f"at iteration {state.iteration}" if state.iteration else "where the run starts"
        return Stop(Status.DIVERGED, f"the {what} is not finite {where}: f = {state.value}")


@stored("stop/diverged")
@dataclass(frozen=True, slots=True)
class Diverged(StopRule):
    """Report a run that has ended above its start and the null model by more than rounding."""

    def check(self, run: Run) -> Stop | None:
        last, start = run.state, run.start
        if start is None or not (last.exact and start.exact):
            return None
        highest = max(start.value, last.trace.null_value)
        if not last.value > highest or last.value <= highest + value_rounding(run.objective, last.at):
            return None
        return Stop(Status.DIVERGED, f"f = {last.value:.3g} at iteration {last.iteration} is above where it began")


@stored("stop/no_minimiser")
@dataclass(frozen=True, slots=True)
class NoMinimiser(StopRule):
    """Stop if f decreases indefinitely as the point grows, as with separable classes.

    An objective with the method `recession` returns a direction; for others only the direction of the point itself is
    tried, along which a slow solver never goes far. A general function without a known bound is unbounded by this rule
    if f is lower with the large entries of the point multiplied by 1000, and decreases along them at 2, 4, 10 and 10^6
    times these entries.
    """

    def check(self, run: Run) -> Stop | None:
        objective, answer, bound = run.objective, run.state, run.objective.lower_bound
        indices = answer.support.indices
        if objective.traits.arbitrary and bound == -inf:
            return self._beyond(run)
        if indices is not None and isinstance(objective, RecedingObjective):
            move = objective.recession(answer.at, indices)
            return None if move is None else self._along(run, move)
        if objective.attains_bound() or bound == -inf or norm(answer.w) == 0.0:
            return None
        far = objective.value(_FAR * answer.w)
        if not far - bound <= 1e-6 * (answer.trace.null_value - bound):
            return None
        return Stop(
            Status.NO_MINIMISER,
            f"the objective is {answer.value:.3g} after {answer.iteration} iterations, {far:.3g} at {_FAR:.0e} times "
            "the point",
        )

    def _beyond(self, run: Run) -> Stop | None:
        """Return the verdict that f decreases as the large entries of the point grow."""
        answer, far = run.state, value_beyond(run.objective, run.state.w, 1000.0)
        if not far < answer.value - value_rounding(run.objective, answer.at):
            return None
        large, xp = large_entries(answer.w), library(answer.w)
        with np.errstate(all="ignore"):
            for factor in (2.0, 4.0, 10.0, _FAR):
                try:
                    there = run.objective.evaluate(answer.w + (factor - 1.0) * large)
                except NotFiniteError:
                    return None
                slope = float(xp.sum(there.gradient * large))
                if not (slope < 0.0 or (slope == 0.0 and factor >= 10.0)):  # it may underflow
                    return None
        return Stop(
            Status.NO_MINIMISER,
            f"the objective is {answer.value:.6g} after {answer.iteration} iterations, and falls, to {far:.6g} at 1000 "
            "times the point",
        )

    def _along(self, run: Run, move: Array) -> Stop | None:
        """Return the verdict that f decreases indefinitely along a direction, if the set contains it."""
        answer = run.state
        far = run.constraint.project_onto(answer.w + move, answer.support).point
        if not norm(far - answer.w) > _STAYS * norm(move):
            return None  # bounds end the move where it begins
        value = run.objective.value(far)
        if not value <= answer.value + 1e-9 * abs(answer.trace.null_value - answer.value):  # rounding of the move
            return None
        xp = library(move)
        here, far = (xp.reshape(point, (-1,)) for point in (answer.w, far))
        largest = int(xp.argmax(xp.abs(xp.reshape(move, (-1,)))))
        return Stop(
            Status.NO_MINIMISER,
            f"the objective is {answer.value:.6g} after {answer.iteration} iterations, and no higher where coordinate "
            f"{largest} is {float(far[largest]):.3g} instead of {float(here[largest]):.3g}",
        )
