"""Parameters of a loss that are estimated together with the coefficients, by alternating searches and updates."""

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
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.losses import Loss
from hardthresh.solvers.refinement import FULL_SOLVE, polish, refine

from .problem import Problem
from .targets import RowTargets

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

    setting: ClassVar[str]
    """The parameter of estimators that sets it instead of an estimate."""

    @abstractmethod
    def start(self, problem: Problem) -> Loss:
        """Return the loss of the first search."""

    @abstractmethod
    def finish(self, problem: Problem, result: Result) -> Fit:
        """Return the fit on the support of a result, with the parameter that belongs to it."""

    def vanishes(self, problem: Problem) -> bool:
        """Return whether the parameter of a problem is at an end of its range, where searches take very long."""
        return False

    def of_targets(self, targets: RowTargets, k: int, intercept: bool) -> Loss | None:
        """Return the loss of a first search for k features, for some targets less the offset; None if any will do."""
        return None

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

        Where the parameter does not settle within the limit of rounds, the result says that it has not converged.
        """
        problem, at, settled = self.settled(problem, result.w)
        if not settled and result.converged:
            result = replace(result, status=Status.MAX_ITER, message=_UNSETTLED)
        return Fit(problem, moved(problem, result, at), self.merit(problem.objective, at))

    def settled(self, problem: Problem, w: Array) -> tuple[Problem, Evaluation, bool]:
        """Return a problem with the parameter that belongs to the support of a point, the fit, and whether it settled.

        Refits and updates alternate, and the secant method on the logarithm of the parameter speeds them up.
        """
        place, before = log(self.parameter(pointwise(problem))), None
        for _ in range(_ROUNDS):
            problem = problem.with_loss(self.loss(exp(place)))
            at = refitted(problem, w)
            w, gap = at.point, log(self.update(problem.objective, at)) - place
            step = gap
            if before is not None and gap not in (0.0, before[1]):
                secant = gap * (place - before[0]) / (before[1] - gap)
                if 0.0 < secant / gap < 100.0:  # it continues in the direction of the update
                    step = secant
            if abs(step) <= _SETTLED:
                return problem, at, True
            before, place = (place, gap), place + step
        return problem, at, False


@dataclass(frozen=True, slots=True)
class FirstFit:
    """A fit among the columns of a table in blocks that are known, with the parameter that belongs to its support.

    Attributes
    ----------
    problem : Problem
        The problem, with the loss.
    at : Evaluation
        The fit.
    merit : float
        What fits with different parameters are compared by; smaller is better.
    key : tuple of int
        The support.
    """

    problem: Problem
    at: Evaluation
    merit: float
    key: tuple[int, ...]


def first_fit(nuisance: Nuisance, problem: Problem, search: Callable[[Problem, Any], Any], w0: Any) -> FirstFit | None:
    """Return the best fit among known columns, by the alternation of `settle`: no reading.

    None where no columns are known, and where the parameter vanishes.

    Parameters
    ----------
    nuisance, problem, w0 :
        As for `settle`.
    search : callable
        Returns the answer of a problem among the known columns, from a starting point.
    """
    best: FirstFit | None = None
    seen: set[tuple[int, ...]] = set()
    for _ in range(nuisance.rounds if isinstance(nuisance, ScalarNuisance) else 0):
        w = search(problem, w0)
        if w is None:
            break
        key = _key(problem.constraint.project(w).support)
        if key in seen:
            break
        seen.add(key)
        assert isinstance(nuisance, ScalarNuisance)
        problem, at, _ = nuisance.settled(problem, w)
        if nuisance.vanishes(problem):
            return None
        merit, w0 = nuisance.merit(problem.objective, at), at.point
        if best is None or merit < best.merit:
            best = FirstFit(problem, at, merit, key)
    return best


def settle(
    nuisance: Nuisance, problem: Problem, solve: Solve, w0: Any, first: FirstFit | None = None
) -> tuple[Problem, Result]:
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
    first : FirstFit, optional
        A fit whose loss the problem has and whose point is `w0`: if the first search returns its support, it is the
        last one.

    Notes
    -----
    Heuristic. Where supports alternate, the one of the best merit is kept. Over blocks no features are searched with a
    parameter that vanishes.
    """
    best: Fit | None = None
    seen: set[tuple[int, ...]] = set()
    for _ in range(nuisance.rounds):
        result = solve(problem, w0)
        key = _key(result.support)
        if result.status is Status.NO_MINIMISER:
            return problem, result
        if key in seen:
            break
        if first is not None and not seen:
            seen.add(first.key)
            best = Fit(first.problem, moved(first.problem, result, first.at), first.merit)
            if key == first.key:
                best = nuisance.finish(problem, result)
                break
        seen.add(key)
        fit = nuisance.finish(problem, result)
        if best is None or fit.merit < best.merit:
            best = fit
        problem, w0 = fit.problem, fit.result.w
        if not problem.in_memory and nuisance.vanishes(problem):
            break
    assert best is not None
    return best.problem, best.result


def _key(support: Support) -> tuple[int, ...]:
    """Return the coordinates of a support."""
    return tuple(to_numpy(support.indices).tolist())


def refitted(problem: Problem, w: Array) -> Evaluation:
    """Return the minimiser of the objective on the support of a point."""
    objective, constraint = problem.objective, problem.constraint
    fit = refine(objective, constraint, constraint.project(w), cg_iterations=0, rounds=FULL_SOLVE)
    fit = polish(objective, constraint, fit)
    return problem.evaluated_on(fit.projection.support, fit.projection.point, fit.prediction)


def moved(problem: Problem, result: Result, at: Evaluation) -> Result:
    """Return a result at another point of a problem with another loss, and the objective without features of that."""
    support = problem.constraint.project(at.point).support
    null_value = float(problem.objective.value(problem.objective.null_point()))
    state = replace(result.state, at=at, support=support, trace=replace(result.state.trace, null_value=null_value))
    return replace(result, w=at.point, support=support, value=at.value, state=state, objective=problem.objective)


def rows_of(objective: Any, at: Evaluation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets, predictions and weights, which sum to 1, in double precision."""
    u = objective.predict(at.point) if at.prediction is None else at.prediction
    return double(objective.y), double(u), double(objective.weights)


def pointwise(problem: Problem) -> Loss:
    """Return the loss of a problem, which is one of single predictions."""
    loss = problem.objective.loss
    assert isinstance(loss, Loss)
    return loss
