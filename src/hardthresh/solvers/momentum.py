"""Momentum rules: how far an accelerated solver extrapolates along its last move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Any

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_number
from hardthresh.core.choosing import choose, ratio_if
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.few import curvature_along_few
from hardthresh.core.lazy import at_hand, inner
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.schema import stored


class Momentum(ABC):
    r"""A rule for :math:`\tau` in :math:`u_{i+1} = x_{i+1} + \tau (x_{i+1} - x_i)`.

    Rules are frozen dataclasses; their memory is part of the state of the solver.
    """

    requires: type = Objective
    """The contract of the objectives that the rule works on: `Objective` or `SmoothObjective`."""

    def start(self) -> Any:
        """Return the memory before the first move, and after a restart."""
        return None

    @abstractmethod
    def weigh(
        self,
        objective: Objective,
        constraint: Constraint,
        ahead: Evaluation,
        previous: Evaluation,
        new: Evaluation,
        memory: Any,
    ) -> tuple[float, Any]:
        """Return tau and the new memory after a step from u = `ahead` to x = `new`; `previous` is the last x."""


@stored("momentum/constant")
@dataclass(frozen=True, slots=True)
class ConstantMomentum(Momentum):
    r"""A constant :math:`\tau`: 1/4 in Section 6 of Khanna and Kyrillidis (2018), 1/2 in their Appendix B.2.

    Parameters
    ----------
    tau : float
        Finite; 0 is plain iterative hard thresholding. No range is enforced, because the method converges far beyond
        the range of the theory, `hardthresh.diagnostics.momentum_range`.

    Raises
    ------
    InvalidInputError
        If it is not a finite number.
    """

    tau: float

    def __post_init__(self) -> None:
        checked_number("the momentum", self.tau)

    def weigh(
        self,
        objective: Objective,
        constraint: Constraint,
        ahead: Evaluation,
        previous: Evaluation,
        new: Evaluation,
        memory: Any,
    ) -> tuple[float, Any]:
        return self.tau, None


@stored("momentum/exact")
@dataclass(frozen=True, slots=True)
class ExactMomentum(Momentum):
    r"""The :math:`\tau` in [0, 1] that minimises the quadratic model of f at the new point along the last move.

    For quadratic objectives the model is f itself. Cost: 2s/d of a data pass.
    """

    requires = SmoothObjective

    def weigh(
        self,
        objective: Objective,
        constraint: Constraint,
        ahead: Evaluation,
        previous: Evaluation,
        new: Evaluation,
        memory: Any,
    ) -> tuple[float, Any]:
        assert isinstance(objective, SmoothObjective)
        moved = new.point - previous.point
        descent = -inner(new.gradient, moved)
        if at_hand(descent) and descent <= 0.0:
            return 0.0, None
        curvature = curvature_along_few(objective, constraint, new, moved, supports=2)
        longest = ratio_if(curvature > descent, descent, curvature, 1.0)
        return choose(descent <= 0.0, 0.0, longest), None


@stored("momentum/nesterov")
@dataclass(frozen=True, slots=True)
class NesterovMomentum(Momentum):
    r"""Nesterov's sequence :math:`\tau_i = (t_i - 1)/t_{i+1}` with adaptive restarts.

    The sequence is :math:`t_1 = 1, \; t_{i+1} = (1 + \sqrt{1 + 4 t_i^2})/2`.

    Parameters
    ----------
    restart : {"value", "gradient"}
        When to restart: if f rises, or if the last move points along the gradient at u.

    Raises
    ------
    InvalidInputError
        For another value.

    References
    ----------
    O'Donoghue and Candes (2015), *Adaptive restart for accelerated gradient schemes*.
    """

    restart: str = "value"

    def __post_init__(self) -> None:
        if self.restart not in ("value", "gradient"):
            raise InvalidInputError(f"restart must be 'value' or 'gradient', got {format_value(self.restart)}")

    def start(self) -> float:
        return 1.0

    def weigh(
        self,
        objective: Objective,
        constraint: Constraint,
        ahead: Evaluation,
        previous: Evaluation,
        new: Evaluation,
        memory: Any,
    ) -> tuple[float, Any]:
        last = self.start() if self._does_harm(ahead, previous, new) else memory
        t = 0.5 * (1.0 + sqrt(1.0 + 4.0 * last * last))
        return (last - 1.0) / t, t

    def _does_harm(self, ahead: Evaluation, previous: Evaluation, new: Evaluation) -> bool:
        if self.restart == "value":
            return new.value > previous.value
        moved = new.point - previous.point
        return bool(namespace(moved).sum(ahead.gradient * moved) > 0.0)
