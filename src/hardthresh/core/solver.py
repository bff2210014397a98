"""An algorithm: how to start, and how to get from one state to the next. Running it is the loop's business."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan, sqrt
from typing import Any, ClassVar

from .constraint import Constraint
from .errors import InvalidInputError, format_value
from .objective import Evaluation, Objective, require
from .schema import stored
from .stopping import RelativeDecrease, Stationarity, StopRule, SupportStable
from .typing import Array, Support


@stored("state/trace")
@dataclass(frozen=True, slots=True)
class Trace:
    """What stopping rules need to know of a run's past.

    The loop writes it, so that rules need no memory and a resumed run stops where the uninterrupted one would.

    Attributes
    ----------
    passes : float
        Data passes so far.
    stable_for : int
        For how many iterations the support has not changed.
    null_value, null_gradient : float
        The objective, and the norm of the leading part of its gradient, where the solver starts without w0: the
        scales that "small" is measured on, the same for cold and warm starts.
    previous_value : float
        The objective at the previous state; nan if that only had an estimate of it.
    size : float
        The norm of the point where the solver starts without w0; where that is zero, a hundred times that of the run's
        first point that is not.
    """

    passes: float = 0.0
    stable_for: int = 0
    null_value: float = nan
    null_gradient: float = nan
    previous_value: float = nan
    size: float = 0.0


@stored("state/basic")
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything a solver needs to go on; frozen and picklable, so that a run can stop, be stored and resume.

    Attributes
    ----------
    at : Evaluation
        The objective at this iteration's point.
    support : Support
        The support of the point, as the constraint says it.
    iteration : int
        0 for the start state.
    step : float
        The length of the step that led here; nan at the start.
    seed : int
        All randomness comes from ``default_rng((seed, iteration, purpose))``.
    exact : bool
        Whether `at` is the objective; False for an estimate from some of its examples.
    settled : str
        Why the solver itself sees nothing left to improve; empty while it does.
    stalled : str
        Why the solver cannot go on, although the gradient says that there is something to improve; else empty.
    trace : Trace
        What the loop knows about the run so far; solvers leave it alone.
    """

    at: Evaluation
    support: Support
    iteration: int = 0
    step: float = nan
    seed: int = 0
    exact: bool = True
    settled: str = ""
    stalled: str = ""
    trace: Trace = field(default_factory=Trace)

    @property
    def w(self) -> Array:
        """The point."""
        return self.at.point

    @property
    def value(self) -> float:
        """f at `w`."""
        return self.at.value

    @property
    def passes(self) -> float:
        """Data passes since the start."""
        return self.trace.passes

    def record(self) -> dict[str, float]:
        """Return what the history records about this state: f, or what a stochastic solver knows of it."""
        return {"value": self.value}

    def transition(self) -> dict[str, float]:
        """Return what the history records about the way from the previous state to this one."""
        return {"step": self.step}


class Solver(ABC):
    """An algorithm as a frozen dataclass of settings; it holds no run-time state and mutates nothing."""

    state_type: ClassVar[type[State]] = State
    """The class of its states."""

    @property
    def requires(self) -> type:
        """The contract of the objectives that the solver works on, such as `Objective` or `SmoothObjective`."""
        return Objective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        """Raise `CapabilityError`, before a run starts, for an objective or a constraint it cannot work on."""
        require(objective, self.requires, by=type(self).__name__)

    @abstractmethod
    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> State:
        """Return the state before the first iteration, at the projection of `w0` (default: the null model)."""

    @abstractmethod
    def advance(self, objective: Objective, constraint: Constraint, state: State) -> State:
        """Return the next state."""

    def recall(self, objective: Objective, state: State) -> float:
        """Return what an objective has for the value of a state: f, or its estimate on the examples of the state's own.

        A run goes on from a state only if that is what the state says.
        """
        return objective.value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        """Return the state whose point is the answer of a run that ended at `state`; by default, that one."""
        return state

    def start_together(self, objective: Objective, constraints: Sequence[Constraint], seed: int) -> Sequence[State]:
        """Return the null model's state for each constraint; solvers override it to share work."""
        return [self.start(objective, constraint, None, seed) for constraint in constraints]

    def advance_together(
        self, objective: Objective, constraints: Sequence[Constraint], states: Sequence[Any]
    ) -> Sequence[State]:
        """Return the next state of each of several runs on one objective; solvers override it to share work."""
        return [self.advance(objective, c, state) for c, state in zip(constraints, states, strict=True)]

    def stopping(self, tol: float) -> StopRule:
        """Return when a run of this solver is good enough, for a relative tolerance > 0."""
        return RelativeDecrease(tol) & SupportStable(3) & Stationarity(sqrt(tol))


def require_solver(solver: object) -> None:
    """Refuse, before a run starts, what is no solver."""
    if not isinstance(solver, Solver):
        raise InvalidInputError(f"the solver must be an instance, such as IHT(); got {format_value(solver)}")
