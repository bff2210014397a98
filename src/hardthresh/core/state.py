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
    """The part of the past of a run that stopping rules need.

    The loop writes it, so that rules need no memory and a resumed run stops where the uninterrupted one would.

    Attributes
    ----------
    passes : float
        Data passes so far.
    stable_for : int
        The number of iterations for which the support has not changed.
    null_value, null_gradient : float
        The objective, and the norm of its hard-thresholded gradient, at the default start of the solver: the scales of
        tolerances, which are the same for cold and warm starts.
    previous_value : float
        The objective at the previous state; nan if only an estimate is known.
    size : float
        The norm of the default start of the solver; if that is zero, a hundred times the norm of the first non-zero
        point of the run.
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
    """The state of a solver, frozen and picklable, so that a run can be stopped, stored and resumed.

    Attributes
    ----------
    at : Evaluation
        The objective at the point of this iteration.
    support : Support
        The support of the point, as returned by the constraint.
    iteration : int
        0 for the start state.
    step : float
        The length of the last step; nan at the start.
    seed : int
        The seed of all random numbers, ``core.randomness.generator(seed, iteration, purpose)``.
    exact : bool
        Whether `at` is the objective; False for an estimate from some of its examples.
    settled : str
        Why the solver has converged by its own criteria; otherwise empty.
    stalled : str
        Why the solver cannot continue although the gradient is not small; otherwise empty.
    trace : Trace
        The record of the loop about the run so far; solvers do not change it.
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
        """Return the text of this state for the progress line."""
        return f"f = {self.value:.6g}"

    def record(self) -> dict[str, float]:
        """Return the entries of this state in the history: f, or an estimate of a stochastic solver."""
        return {"value": self.value}

    def transition(self) -> dict[str, float]:
        """Return the entries of the transition from the previous state to this one in the history."""
        return {"step": self.step}
