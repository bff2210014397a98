"""How far to go on in the direction of the last move: the momentum of accelerated solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.schema import stored
from hardthresh.core.typing import is_real


class Momentum(ABC):
    r"""A rule for :math:`\tau` in :math:`u_{i+1} = x_{i+1} + \tau (x_{i+1} - x_i)`; the state keeps its memory."""

    requires: type = Objective
    """The contract of the objectives that the rule works on."""

    def start(self) -> Any:
        """Return the memory before the first move, and after a restart."""
        return None

    @abstractmethod
    def weigh(
        self, objective: Objective, ahead: Evaluation, previous: Evaluation, new: Evaluation, memory: Any
    ) -> tuple[float, Any]:
        """Return tau and the new memory, after the move from u = `ahead` that led from x = `previous` to `new`."""


@stored("momentum/constant")
@dataclass(frozen=True, slots=True)
class ConstantMomentum(Momentum):
    r"""The same :math:`\tau` at every iteration (the paper's 1/4 in Section 6, 1/2 in Appendix B.2).

    Parameters
    ----------
    tau : float
        Finite; 0 is plain IHT. No range is enforced: see `hardthresh.diagnostics.momentum_range` for what theory
        allows and why practice allows far more.
    """

    tau: float

    def __post_init__(self) -> None:
        if not isfinite(self.tau):
            raise InvalidInputError(f"the momentum must be a finite number, got {self.tau!r}")

    def weigh(
        self, objective: Objective, ahead: Evaluation, previous: Evaluation, new: Evaluation, memory: Any
    ) -> tuple[float, Any]:
        return self.tau, None


@stored("momentum/exact")
@dataclass(frozen=True, slots=True)
class ExactMomentum(Momentum):
    r"""The minimiser of the quadratic model along the last move, :math:`\tau \in [0, 1]`.

    Cost: 2s/d of a data pass. For losses that are not quadratic the model is that at the new point.
    """

    requires = SmoothObjective

    def weigh(
        self, objective: Objective, ahead: Evaluation, previous: Evaluation, new: Evaluation, memory: Any
    ) -> tuple[float, Any]:
        moved = new.point - previous.point
        slope = -float(namespace(moved).sum(new.gradient * moved))
        if slope <= 0.0:
            return 0.0, None
        assert isinstance(objective, SmoothObjective)
        bend = objective.curvature_along(new, moved)
        return (min(1.0, slope / bend) if bend > 0.0 else 1.0), None


@stored("momentum/nesterov")
@dataclass(frozen=True, slots=True)
class NesterovMomentum(Momentum):
    r"""Nesterov's sequence :math:`\tau_i = (t_i - 1)/t_{i+1}`, begun again when it does harm.

    With :math:`t_1 = 1, \; t_{i+1} = (1 + \sqrt{1 + 4 t_i^2})/2`. It begins again when the value rises, or when the
    move goes up the gradient.

    Parameters
    ----------
    restart : {"value", "gradient"}
        What tells that momentum does harm.

    References
    ----------
    O'Donoghue and Candes (2015), *Adaptive restart for accelerated gradient schemes*.
    """

    restart: str = "value"

    def __post_init__(self) -> None:
        if self.restart not in ("value", "gradient"):
            raise InvalidInputError(f"restart must be 'value' or 'gradient', got {self.restart!r}")

    def start(self) -> float:
        return 1.0

    def weigh(
        self, objective: Objective, ahead: Evaluation, previous: Evaluation, new: Evaluation, memory: Any
    ) -> tuple[float, Any]:
        last = self.start() if self._harms(ahead, previous, new) else memory
        t = 0.5 * (1.0 + sqrt(1.0 + 4.0 * last * last))
        return (last - 1.0) / t, t

    def _harms(self, ahead: Evaluation, previous: Evaluation, new: Evaluation) -> bool:
        if self.restart == "value":
            return new.value > previous.value
        moved = new.point - previous.point
        return bool(namespace(moved).sum(ahead.gradient * moved) > 0.0)


def as_momentum(momentum: float | str | Momentum) -> Momentum:
    """Return the rule that a user's word stands for: a number, "exact", "nesterov", or a rule."""
    if isinstance(momentum, Momentum):
        return momentum
    if isinstance(momentum, str):
        named: dict[str, type[Momentum]] = {"exact": ExactMomentum, "nesterov": NesterovMomentum}
        if momentum not in named:
            raise InvalidInputError(f"momentum must be a number, 'exact' or 'nesterov', got {momentum!r}")
        return named[momentum]()
    if not is_real(momentum):
        raise InvalidInputError(f"momentum must be a number, 'exact' or 'nesterov', got {momentum!r}")
    return ConstantMomentum(float(momentum))
