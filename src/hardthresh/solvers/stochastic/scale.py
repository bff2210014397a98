"""The settings of the probabilistic solver that have a unit, as published or found by a secant at the start."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation, Objective, value_rounding
from hardthresh.core.schema import stored
from hardthresh.core.stationarity import norm

from .estimates import if_finite

_MOST_TRIALS = 60  # arbitrary: multiplied by 4 or 1/4 so often, a trial crosses 36 decades
_NEARBY = 1e-3  # arbitrary; below this fraction of the trial, the curvature is measured again at the minimum itself
_NO_SCALE = (
    "no step length can be found, because the objective has no positive curvature along its steepest descent from the "
    "start, or leaves the range of numbers; give alpha, delta0, delta_max and eta2, or rescale the data"
)


@stored("state/probabilistic_scale")
@dataclass(frozen=True, slots=True)
class Scale:
    """The settings that have the unit of w, or that of w over that of the gradient."""

    alpha: float
    delta0: float
    delta_max: float
    eta2: float


PUBLISHED = Scale(alpha=1.0, delta0=1.0, delta_max=10.0, eta2=1e-4)
"""Section 5 of the paper; alpha, which it does not give, is that of the authors' code."""


def automatic_scale(objective: Objective, constraint: Constraint, at: Evaluation) -> Scale:
    """Return settings that scale with f and w, from `cauchy_step` at a point; the published ones where f is infinite.

    The step is only a unit: measured, alpha from 10 / L on and delta0 over seven decades make no difference, while
    0.1 / L or a small delta_max keep the first support.
    """
    if not isfinite(at.value):
        return PUBLISHED
    length, step = cauchy_step(objective, constraint, at)
    if not (step > 0.0 and 0.0 < step * length < inf):
        raise InvalidInputError(_NO_SCALE)
    return Scale(alpha=100.0 * step, delta0=step * length, delta_max=1000.0 * step * length, eta2=1e-4 / step)


def cauchy_step(objective: Objective, constraint: Constraint, at: Evaluation) -> tuple[float, float]:
    r"""Return the norm of the hard-thresholded gradient d, and the step along -d to the minimum by a secant.

    .. math:: s = \|d\|^2 \Bigm/ \frac{d^\top (\nabla f(w) - \nabla f(w - t d))}{t}

    The trial t shrinks while f is not finite there, and grows while the curvature is not positive. The first one is
    Polyak's step if f has a lower bound, else the length of the point (1 for zero), so that a constant added to f and
    to its bound changes nothing. A gradient along which a move as long as the point changes f by no more than rounding
    counts as zero, and the answer is 1 and 1.

    Raises
    ------
    InvalidInputError
        If no trial has positive curvature.

    Notes
    -----
    Cost: two data passes for each trial, usually one.
    """
    direction = constraint.hard_threshold(at.gradient)
    xp = namespace(direction)
    squared = float(xp.sum(direction * direction))
    size = norm(at.point)
    if squared == 0.0 or 0.0 < sqrt(squared) * size <= value_rounding(objective, at):
        return 1.0, 1.0
    trial, farthest = _first_trial(objective, at, squared), inf
    for _ in range(_MOST_TRIALS):
        if not 0.0 < trial < inf:
            break
        there = if_finite(lambda t=trial: objective.evaluate(at.point - t * direction))  # type: ignore[misc]
        curvature = nan if there is None else float(xp.sum(direction * (at.gradient - there.gradient))) / trial
        if not isfinite(curvature):
            trial, farthest = 0.25 * trial, trial
        elif curvature > 0.0:
            step = squared / curvature
            if step >= _NEARBY * trial:
                return sqrt(squared), step
            trial = step
        else:
            trial *= 4.0
            if trial >= farthest:
                break
    raise InvalidInputError(_NO_SCALE)


def _first_trial(objective: Objective, at: Evaluation, squared: float) -> float:
    polyak = (at.value - objective.lower_bound) / squared
    return polyak if 0.0 < polyak < inf else (norm(at.point) or 1.0) / sqrt(squared)
