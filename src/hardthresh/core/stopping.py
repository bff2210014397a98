"""Stopping rules, combined with ``|`` and ``&``; the rule that stops a run gives the reason.

Rules have no memory, so they can be shared, compared and stored.

Examples
--------
>>> from hardthresh.core import MaxIter, RelativeDecrease, SupportStable
>>> RelativeDecrease(1e-6) & SupportStable(5) | MaxIter(200)
RelativeDecrease(tol=1e-06) & SupportStable(iterations=5) | MaxIter(limit=200)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import inf, isnan, sqrt

from .beyond import value_beyond
from .checking import checked_integer, checked_number
from .constraint import Constraint
from .errors import CapabilityError
from .objective import LinearObjective, Objective, value_rounding
from .progress import format_duration
from .result import Status
from .schema import stored
from .state import State
from .stationarity import feasibility_residual, gradient_scale, is_negligible, norm
from .typing import library


@dataclass(frozen=True)
class Run:
    """A run so far, as stopping rules see it; `start` is its first state, where that is known."""

    objective: Objective
    constraint: Constraint
    state: State
    seconds: float
    start: State | None = None

    @cached_property
    def rounding(self) -> float:
        """How much of the value of the state may be rounding, found once for all rules; see `value_rounding`."""
        return value_rounding(self.objective, self.state.at)


@dataclass(frozen=True, slots=True)
class Stop:
    """The reason why a run ended.

    Attributes
    ----------
    status : Status
        The status.
    message : str
        A sentence about this run.
    """

    status: Status
    message: str


class StopRule(ABC):
    """A condition on the progress of a run. User-defined rules return ``Status.RULE``."""

    @abstractmethod
    def check(self, run: Run) -> Stop | None:
        """Return the reason to stop now, or None to continue."""

    def __or__(self, other: StopRule) -> StopRule:
        return _Either(self, other)

    def __and__(self, other: StopRule) -> StopRule:
        return _Both(self, other)


@stored("stop/any")
@dataclass(frozen=True, slots=True, repr=False)
class _Either(StopRule):
    """Stop when one of two rules fires."""

    first: StopRule
    second: StopRule

    def check(self, run: Run) -> Stop | None:
        return self.first.check(run) or self.second.check(run)

    def __repr__(self) -> str:
        return f"{self.first!r} | {self.second!r}"


@stored("stop/all")
@dataclass(frozen=True, slots=True, repr=False)
class _Both(StopRule):
    """Stop when two rules fire together."""

    first: StopRule
    second: StopRule

    def check(self, run: Run) -> Stop | None:
        one = self.first.check(run)
        other = self.second.check(run) if one else None
        if one is None or other is None:
            return None
        status = one.status if one.status.converged else other.status
        return Stop(status, f"{one.message}, and {other.message}")

    def __repr__(self) -> str:
        sides = (f"({side!r})" if isinstance(side, _Either) else f"{side!r}" for side in (self.first, self.second))
        return " & ".join(sides)


def _check_positive(rule: StopRule, name: str, value: float) -> None:
    checked_number(f"{type(rule).__name__}: {name}", value, above=0.0, finite=False)


@stored("stop/max_iter")
@dataclass(frozen=True, slots=True)
class MaxIter(StopRule):
    """Stop after a number of iterations, counted from the start state, also for a resumed run.

    Parameters
    ----------
    limit : int
        The number of iterations, >= 0.
    """

    limit: int

    def __post_init__(self) -> None:
        checked_integer("MaxIter: limit", self.limit, 0)

    def check(self, run: Run) -> Stop | None:
        if run.state.iteration < self.limit:
            return None
        return Stop(Status.MAX_ITER, f"reached {self.limit} iterations")


@stored("stop/passes")
@dataclass(frozen=True, slots=True)
class Passes(StopRule):
    """Stop after a number of data passes.

    Parameters
    ----------
    limit : float
        How many, > 0.
    """

    limit: float

    def __post_init__(self) -> None:
        _check_positive(self, "limit", self.limit)

    def check(self, run: Run) -> Stop | None:
        if isnan(run.state.passes):
            raise CapabilityError(
                f"Passes needs an objective that counts them; {type(run.objective).__name__} does not (see "
                "BaseObjective.metered)"
            )
        if run.state.passes < self.limit:
            return None
        return Stop(Status.BUDGET, f"spent {run.state.passes:g} of {self.limit:g} data passes")


@stored("stop/seconds")
@dataclass(frozen=True, slots=True)
class Seconds(StopRule):
    """Stop after a number of seconds of wall time.

    Parameters
    ----------
    limit : float
        How many, > 0.
    """

    limit: float

    def __post_init__(self) -> None:
        _check_positive(self, "limit", self.limit)

    def check(self, run: Run) -> Stop | None:
        if run.seconds < self.limit:
            return None
        return Stop(Status.BUDGET, f"ran {format_duration(run.seconds)} of {format_duration(self.limit)}")


@stored("stop/relative_decrease")
@dataclass(frozen=True, slots=True)
class RelativeDecrease(StopRule):
    """Stop when one iteration changes f by less than ``tol`` times its distance to the null value.

    The scale is ``max(|f|, |f_null - f|)``, with f_null at the default start of the solver, so the rule is invariant to
    the scale of the objective. A change within rounding counts as no change. Estimates of f do not stop a run.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0.
    """

    tol: float

    def __post_init__(self) -> None:
        _check_positive(self, "tol", self.tol)

    def check(self, run: Run) -> Stop | None:
        trace, now = run.state.trace, run.state.value
        if not run.state.exact:
            return None
        change, scale = abs(trace.previous_value - now), max(abs(now), abs(trace.null_value - now))
        if not change <= max(self.tol * scale, run.rounding):
            return None
        return Stop(Status.SMALL_DECREASE, f"the last iteration changed the objective by {change:.3g}")


@stored("stop/support_stable")
@dataclass(frozen=True, slots=True)
class SupportStable(StopRule):
    """Stop when the support has not changed for a number of iterations.

    Parameters
    ----------
    iterations : int
        The number of iterations, >= 1.
    """

    iterations: int = 5

    def __post_init__(self) -> None:
        checked_integer("SupportStable: iterations", self.iterations, 1)

    def check(self, run: Run) -> Stop | None:
        if run.state.trace.stable_for < self.iterations:
            return None
        return Stop(Status.SUPPORT_STABLE, f"the support did not change for {run.state.trace.stable_for} iterations")


@stored("stop/stationarity")
@dataclass(frozen=True, slots=True)
class Stationarity(StopRule):
    """Stop at a basic feasible point, where the gradient along feasible directions is small.

    The gradient is compared with the hard-thresholded gradient at the default start of the solver, so the rule is
    invariant to the scale of the objective; if that start is the solution, with the gradient outside the support. Cost:
    no data pass.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0.
    """

    tol: float = 1e-6

    def __post_init__(self) -> None:
        _check_positive(self, "tol", self.tol)

    def check(self, run: Run) -> Stop | None:
        state = run.state
        if not state.exact:
            return None
        residual = feasibility_residual(run.constraint, state.at, state.support)
        if not is_negligible(residual, gradient_scale(state.at, state.trace.null_gradient), self.tol):
            return None
        return Stop(Status.STATIONARY, f"the residual of basic feasibility fell to {residual:.3g}")


@stored("stop/lower_bound")
@dataclass(frozen=True, slots=True)
class LowerBound(StopRule):
    """Stop at a perfect fit: f within ``tol`` of its lower bound, relative to the null model, or within rounding.

    If no finite point attains the bound (``attains_bound`` of the objective), the tolerance is 1e-6, and the run counts
    as not converged.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0.
    """

    tol: float = 1e-12

    def __post_init__(self) -> None:
        _check_positive(self, "tol", self.tol)

    def check(self, run: Run) -> Stop | None:
        objective, bound = run.objective, run.objective.lower_bound
        if not run.state.exact:
            return None
        if bound == -inf:
            return None
        gap, scale = run.state.value - bound, run.state.trace.null_value - bound
        if gap > max(self.tol, 1e-6) * scale and gap > run.rounding:
            return None
        attained = objective.attains_bound() or not _recedes(run)
        if attained and gap > max(self.tol * scale, run.rounding):
            return None
        status = Status.LOWER_BOUND if attained else Status.NO_MINIMISER
        return Stop(status, f"the objective {run.state.value:.3g} is at its lower bound {bound:.3g}")


def _recedes(run: Run) -> bool:
    """Return whether f has no minimiser on the support of a point; True if the objective cannot tell."""
    indices = run.state.support.indices
    if indices is None or not isinstance(run.objective, LinearObjective):
        return True
    return run.objective.recession(run.state.at, indices) is not None


@stored("stop/converged")
@dataclass(frozen=True, slots=True)
class Settled(StopRule):
    """Stop when the solver reports that it has converged or stalled."""

    def check(self, run: Run) -> Stop | None:
        if run.state.stalled:
            return Stop(Status.STALLED, run.state.stalled)
        if run.state.settled:
            return Stop(Status.SETTLED, run.state.settled)
        return None


@stored("stop/unbounded")
@dataclass(frozen=True, slots=True)
class Unbounded(StopRule):
    r"""Stop if a function without a known lower bound decreases without end as the point grows.

    The rule stops if three conditions hold: the norm of the point is `growth` times that at the default start of the
    solver (if that is zero, a hundred times `growth` times that after the first step); f decreases along the point,
    :math:`-(\nabla f(w), w)` being above a thousandth of the whole decrease so far; and f is lower if the entries that
    have grown are multiplied by 10 and by 1000.

    Parameters
    ----------
    growth : float
        > 1.

    Notes
    -----
    Guarantee: heuristic. A minimiser that is much larger than the start looks the same. Cost: no data pass, except for
    two values once the point has grown.
    """

    growth: float = 1e6

    def __post_init__(self) -> None:
        checked_number("Unbounded: growth", self.growth, above=1.0, finite=False)

    def check(self, run: Run) -> Stop | None:
        state, trace = run.state, run.state.trace
        if run.objective.lower_bound > -inf or not state.exact or trace.size == 0.0:
            return None
        size = norm(state.w)
        if not size > self.growth * trace.size:
            return None
        fall = -float(library(state.w).sum(state.at.gradient * state.w))
        if not fall > 1e-3 * abs(trace.null_value - state.value):
            return None
        if not all(value_beyond(run.objective, state.w, factor) < state.value for factor in (10.0, 1000.0)):
            return None
        return Stop(
            Status.NO_MINIMISER,
            f"the point has grown to a norm of {size:.1g}, and the objective, now {state.value:.6g}, falls as it grows",
        )


def default_stopping(tol: float) -> StopRule:
    """Return the stopping rule of solvers without a rule of their own.

    Parameters
    ----------
    tol : float
        Relative tolerance > 0 of the objective; the tolerance of the gradient is its square root.

    Returns
    -------
    StopRule
        The rule that f no longer changes, the support has not changed for 3 iterations, and the point is basic
        feasible.
    """
    return RelativeDecrease(tol) & SupportStable(3) & Stationarity(sqrt(tol))
