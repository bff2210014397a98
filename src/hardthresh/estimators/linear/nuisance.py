"""Parameters of a loss that a fit sets besides the coefficients: search, set the parameter, search again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import double, to_numpy
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result, Status
from hardthresh.core.typing import Array
from hardthresh.losses import Loss
from hardthresh.losses.location import weighted_quantile
from hardthresh.solvers.refinement import FULL_SOLVE, polish, refine

from .problem import Problem

_ROUNDS = 60
"""Limit of refits on one support; 4 to 10 suffice by the secant method, and 69 to 89 by alternation where shapes of
negative binomials are poorly determined."""
_SETTLED = 1e-10
"""A parameter is settled that is by no more than this share from where updates lead: far below its standard error, far
above rounding."""
_UNSETTLED = (
    f"the parameter of the loss, which is estimated with the coefficients, still changed after {_ROUNDS} rounds; "
    "choose fewer features, or set the parameter"
)
_TO_SD = 1.4826
"""A median absolute deviation times this is the standard deviation of normal numbers."""

Solve = Callable[[Problem, Any], Result]
"""Searches the coefficients of a problem from a starting point, or from none."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fit with the parameter of its loss.

    Attributes
    ----------
    problem : Problem
        The problem, with the loss.
    result : Result
        The coefficients.
    merit : float
        What fits with different parameters are compared by; smaller is better.
    """

    problem: Problem
    result: Result
    merit: float


class Nuisance(ABC):
    """A parameter of a loss that a fit sets besides the coefficients: an estimate, or what only the search needs."""

    rounds: ClassVar[int] = 1
    """Limit of the searches."""

    has_likelihood: ClassVar[bool] = True
    """Whether fits with different parameters can be compared by a criterion."""

    @abstractmethod
    def start(self, problem: Problem) -> Loss:
        """Return the loss of the first search."""

    @abstractmethod
    def finish(self, problem: Problem, result: Result) -> Fit:
        """Return the fit on the support of a result, with the parameter that belongs to it."""

    def of_fold(self, pilot: Problem, solve: Solve) -> Any:
        """Return the loss of all models of a fold: that of a pilot model, which has few features."""
        return settle(self, pilot.with_loss(self.start(pilot)), solve, None)[0].objective.loss


class ScalarNuisance(Nuisance):
    """A positive parameter with an update for given predictions, whose fixed point is the estimate."""

    @abstractmethod
    def parameter(self, loss: Loss) -> float:
        """Return the parameter of a loss."""

    @abstractmethod
    def loss(self, parameter: float) -> Loss:
        """Return the loss with a parameter."""

    @abstractmethod
    def update(self, objective: Any, at: Evaluation) -> float:
        """Return the best parameter for the predictions at a point."""

    @abstractmethod
    def merit(self, objective: Any, at: Evaluation) -> float:
        """Return what fits with different parameters are compared by, at a point; smaller is better."""

    def finish(self, problem: Problem, result: Result) -> Fit:
        """Return the fit on the support of a result, with the parameter that belongs to it.

        Refits and updates alternate, and the secant method on the logarithm of the parameter speeds them up. Where the
        parameter does not settle within the limit of rounds, the result says that it has not converged.
        """
        place, before, w = log(self.parameter(pointwise(problem))), None, result.w
        for _ in range(_ROUNDS):
            problem = problem.with_loss(self.loss(exp(place)))
            at = refitted(problem, w)
            w, gap = at.point, log(self.update(problem.objective, at)) - place
            step = gap
            if before is not None and gap not in (0.0, before[1]):
                secant = gap * (place - before[0]) / (before[1] - gap)
                if 0.0 < secant / gap < 100.0:  # it goes on in the direction of the update
                    step = secant
            if abs(step) <= _SETTLED:
                break
            before, place = (place, gap), place + step
        else:
            if result.converged:
                result = replace(result, status=Status.MAX_ITER, message=_UNSETTLED)
        return Fit(problem, moved(problem, result, at), self.merit(problem.objective, at))


def settle(nuisance: Nuisance, problem: Problem, solve: Solve, w0: Any) -> tuple[Problem, Result]:
    """Return the best fit of a problem whose loss has a parameter to estimate, and the problem with its loss.

    Each search is for the parameter that belongs to the support of the one before, and starts from there. They end when
    a support comes back, or at the limit of rounds.

    Parameters
    ----------
    nuisance : Nuisance
        The parameter.
    problem : Problem
        The problem, with the loss of the first search.
    solve : callable
        Searches the coefficients of a problem from a starting point.
    w0 : array, optional
        Where the first search starts.

    Notes
    -----
    Heuristic. Where supports alternate, the one of the best merit is kept.
    """
    best: Fit | None = None
    seen = set()
    for _ in range(nuisance.rounds):
        result = solve(problem, w0)
        key = tuple(to_numpy(result.support.indices).tolist())
        if result.status is Status.NO_MINIMISER:
            return problem, result
        if key in seen:
            break
        seen.add(key)
        fit = nuisance.finish(problem, result)
        if best is None or fit.merit < best.merit:
            best = fit
        problem, w0 = fit.problem, fit.result.w
    assert best is not None
    return best.problem, best.result


def refitted(problem: Problem, w: Array) -> Evaluation:
    """Return the minimiser of the objective on the support of a point."""
    objective, constraint = problem.objective, problem.constraint
    fit = refine(objective, constraint, constraint.project(w), cg_iterations=0, rounds=FULL_SOLVE)
    fit = polish(objective, constraint, fit)
    return objective.evaluate(fit.projection.point, fit.prediction)


def moved(problem: Problem, result: Result, at: Evaluation) -> Result:
    """Return a result at another point of a problem with another loss."""
    support = problem.constraint.project(at.point).support
    state = replace(result.state, at=at, support=support)
    return replace(result, w=at.point, support=support, value=at.value, state=state, objective=problem.objective)


def rows_of(objective: Any, at: Evaluation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets, predictions and weights, which sum to 1, in double precision."""
    u = objective.predict(at.point) if at.prediction is None else at.prediction
    return double(objective.y), double(u), double(objective.weights)


def spread(problem: Problem) -> float:
    """Return a scale of the targets less the offset that outliers hardly change.

    It is that of their median absolute deviation, from zero if there is no intercept; or where more than half of them
    are equal, their standard deviation, and 1 if all are.
    """
    objective: Any = problem.objective
    y, weights = double(objective.y), double(objective.weights)
    r = y if objective.offset is None else y - double(objective.offset)
    centre = weighted_quantile(r, weights, 0.5) if problem.intercept else 0.0
    scale = _TO_SD * weighted_quantile(np.abs(r - centre), weights, 0.5)
    size = float(np.max(np.abs(r), initial=0.0)) or 1.0
    if not scale > 1e-12 * size:
        z = r / size
        scale = size * float(np.sqrt(weights @ (z - weights @ z) ** 2))
    return scale if scale > 1e-12 * size else size


def pointwise(problem: Problem) -> Loss:
    """Return the loss of a problem, which is one of single predictions."""
    loss = problem.objective.loss
    assert isinstance(loss, Loss)
    return loss
