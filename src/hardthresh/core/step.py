"""Step rules: from an evaluated point and a direction to the next projected point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from .constraint import Constraint, Projection
from .objective import Evaluation, Objective, require
from .support import Support
from .typing import Array


@dataclass(frozen=True, slots=True)
class Move:
    """One step: the new point, the length of the step, and the memory of the rule.

    Attributes
    ----------
    projection : Projection
        The projection of point + step * direction.
    step : float
        The step length, >= 0 and finite.
    evaluation : Evaluation or None
        The objective at the new point, if the rule already has it.
    memory : Any
        The small, picklable state of the rule for the next move.
    settled : str
        Why no further move can make progress, which ends the run; otherwise empty.
    """

    projection: Projection
    step: float
    evaluation: Evaluation | None
    memory: Any
    settled: str = ""


class StepRule(ABC):
    """A rule for the step length. Rules are frozen dataclasses; their memory is part of `Move`."""

    @property
    def requires(self) -> type:
        """The contract of the objectives that the rule works on: `Objective` or `SmoothObjective`."""
        return Objective

    def check(self, objective: Objective) -> None:
        """Raise `CapabilityError`, before a run starts, for an objective that the rule cannot work on."""
        require(objective, self.requires, by=type(self).__name__)

    def start(self) -> Any:
        """Return the memory before the first move."""
        return None

    def length(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        inside: Array,
        supports: int,
    ) -> float:
        """Return the first step to try, for `AcceleratedIHT`; for rules without memory only.

        `inside` is the part of the direction on the support of the point, or all of it where that is negligible, and
        is on the union of so many `supports` of the set, or anywhere for 0. A rule that finds no step returns 0.
        """
        raise NotImplementedError(f"{type(self).__name__} finds its step by moving")

    @abstractmethod
    def move(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        direction: Array,
        memory: Any,
        support: Support,
    ) -> Move:
        """Return the move from an evaluated point along a descent direction (usually minus the gradient).

        `support` is that of the point, from which iterative projections start.
        """
