"""The contract of solvers: the start of an algorithm, and the step from one state to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from .constraint import Constraint
from .errors import InvalidInputError, format_value
from .objective import Objective, require
from .state import State
from .stopping import StopRule, default_stopping
from .typing import Array


class Solver(ABC):
    """An algorithm as a frozen dataclass of settings, without run-time state."""

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
        """Return f at the point of a state, or its estimate on the batch of the state.

        A run continues from a state only if the state has this value.
        """
        return objective.value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        """Return the final state of a run that ended at `state`; by default `state` itself."""
        return state

    def stopping(self, tol: float) -> StopRule:
        """Return the rule that ends a run of this solver, for a relative tolerance > 0."""
        return default_stopping(tol)


def require_solver(solver: object) -> None:
    """Raise `InvalidInputError`, before a run starts, if an object is not a `Solver`."""
    if not isinstance(solver, Solver):
        raise InvalidInputError(f"the solver must be an instance, such as IHT(); got {format_value(solver)}")
