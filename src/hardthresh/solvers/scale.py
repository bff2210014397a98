"""The settings of a probabilistic run that carry a unit, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation, Objective
from hardthresh.core.schema import stored
from hardthresh.core.stationarity import norm

from .estimate import within_domain

_TRIALS = 60
_FAR = 1e-3  # a minimum nearer than this share of the trial is looked at again, from nearby
_NO_LENGTH = (
    "no length of a step shows, as the objective does not bend upwards along its steepest descent from the start, or "
    "leaves the range of numbers; give alpha, delta0, delta_max and eta2, or rescale the data"
)


@stored("state/probabilistic_scale")
@dataclass(frozen=True, slots=True)
class Scale:
    """The settings that carry a unit: of w, and of w over the gradient's."""

    alpha: float
    delta0: float
    delta_max: float
    eta2: float


PUBLISHED = Scale(alpha=1.0, delta0=1.0, delta_max=10.0, eta2=1e-4)


def automatic(objective: Objective, constraint: Constraint, at: Evaluation) -> Scale:
    """Return the scale that the function itself shows at a point (`cauchy_step`); as published where it is infinite."""
    if not isfinite(at.value):
        return PUBLISHED
    length, step = cauchy_step(objective, constraint, at)
    if not (step > 0.0 and 0.0 < step * length < inf):
        raise InvalidInputError(_NO_LENGTH)
    return Scale(alpha=100.0 * step, delta0=step * length, delta_max=1000.0 * step * length, eta2=1e-4 / step)


def cauchy_step(objective: Objective, constraint: Constraint, at: Evaluation) -> tuple[float, float]:
    r"""Return the norm of the leading part d of the gradient, and the step along -d to where a secant sees a minimum.

    .. math:: s = \|d\|^2 \Bigm/ \frac{d^\top (\nabla f(w) - \nabla f(w - t d))}{t}

    The trial t shrinks while f is not finite there, and grows where f does not bend upwards. It begins at Polyak's step
    if f has a lower bound, else at the length of the point (1 for zero): a constant added to f and to its bound changes
    nothing.

    Raises
    ------
    InvalidInputError
        If f bends upwards nowhere along the way.

    Notes
    -----
    Cost: two data passes for each trial, usually one.
    """
    leading = constraint.hard_threshold(at.gradient)
    xp = namespace(leading)
    squared = float(xp.sum(leading * leading))
    if squared == 0.0:
        return 1.0, 1.0
    trial, farthest = _first_trial(objective, at, squared), inf
    for _ in range(_TRIALS):
        if not 0.0 < trial < inf:
            break
        there = within_domain(lambda t=trial: objective.evaluate(at.point - t * leading))  # type: ignore[misc]
        bend = nan if there is None else float(xp.sum(leading * (at.gradient - there.gradient))) / trial
        if not isfinite(bend):
            trial, farthest = 0.25 * trial, trial
        elif bend > 0.0:
            step = squared / bend
            if step >= _FAR * trial:
                return sqrt(squared), step
            trial = step
        else:
            trial *= 4.0
            if trial >= farthest:
                break
    raise InvalidInputError(_NO_LENGTH)


def _first_trial(objective: Objective, at: Evaluation, squared: float) -> float:
    polyak = (at.value - objective.lower_bound) / squared
    return polyak if 0.0 < polyak < inf else (norm(at.point) or 1.0) / sqrt(squared)
