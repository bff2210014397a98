"""The state of a run at one iteration, and what the loop remembers of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan

from .objective import Evaluation
from .schema import stored
from .support import Support, upgrade_supports
from .typing import Array


@stored("state/trace")
@dataclass(frozen=True, slots=True)
class Trace:
    """The past of a run, as far as stopping rules need it.

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


@stored("state/basic", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything a solver needs to continue; frozen and picklable, so that a run can stop, be stored and resume.

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
        All randomness comes from ``core.randomness.generator(seed, iteration, purpose)``.
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
        """The value of f at `w`."""
        return float(self.at.value)

    @property
    def passes(self) -> float:
        """Data passes since the start."""
        return float(self.trace.passes)

    def progress(self) -> str:
        """Return what the progress line of a run says about this state."""
        return f"f = {self.value:.6g}"

    def record(self) -> dict[str, float]:
        """Return what the history records about this state: f, or what a stochastic solver knows of it."""
        return {"value": self.value}

    def transition(self) -> dict[str, float]:
        """Return what the history records about the way from the previous state to this one."""
        return {"step": self.step}
