"""What a probabilistic run knows between two iterations, and when that says that nothing is left to do."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Any

from hardthresh.core.result import Status
from hardthresh.core.schema import stored
from hardthresh.core.stopping import Run, Stop, StopRule
from hardthresh.core.support import Support, upgrade_supports
from hardthresh.core.typing import Array

from .estimate import SampledState
from .scale import Scale

_FUTILE = 10  # trials, over which the clipping level falls to a thousandth for gamma = 2


@stored("state/probabilistic", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilisticState(SampledState):
    """A `SampledState`, and what its last iteration, the trial, found.

    Attributes
    ----------
    scale : Scale
        The settings with a unit, as given or as found at the start.
    delta : float
        The clipping level :math:`\\delta_k`.
    size : int
        The size of the coming batches.
    accepted : bool
        Whether the iteration that led here was accepted.
    ratio : float
        Its estimated decrease over the promised one, :math:`\\rho`; nan at the start.
    index_set : Support or None
        Its :math:`I_k`; None at the start.
    batch_size : int
        On how many examples it estimated the gradient.
    trial_exact : bool
        Whether its gradient and both its values were on all examples.
    gradient_share : float
        The norm of its gradient on the index set over that of the whole.
    relative_change : float
        The change of f by its trial over abs(f).
    futile : int
        For how many iterations in a row, of those on all examples, the published test rejected the trial and could,
        to first order, accept no smaller one.
    noise : array or None
        What the noise of the coming gradient looks like (`estimate.noisy_estimate`); None where it is not measured.
    ballots : Any
        What the vote remembers.
    """

    scale: Scale
    delta: float
    size: int
    accepted: bool = True
    ratio: float = nan
    index_set: Support | None = None
    batch_size: int = 0
    trial_exact: bool = False
    gradient_share: float = inf
    relative_change: float = inf
    futile: int = 0
    noise: Array | None = None
    ballots: Any = None

    def record(self) -> dict[str, float]:
        return {**SampledState.record(self), "delta": self.delta}

    def transition(self) -> dict[str, float]:
        return {
            "step": self.step,
            "accepted": float(self.accepted),
            "ratio": self.ratio,
            "batch_size": float(self.batch_size),
        }


@stored("stop/nothing_left")
@dataclass(frozen=True, slots=True)
class NothingLeft(StopRule):
    """Stop when a trial on all examples found no step left: neither gradient on the index set, nor trust, nor decrease.

    Precisely: :math:`\\|g_I\\| \\le tol \\|g\\|`, or :math:`\\delta < 10^{-12} \\delta_0`, or f changes by less than
    :math:`10^{-12} |f|`. Clipped by the full norm, the last two are the floor, and no convergence, if the trial was
    rejected and the test cannot, to first order, accept any smaller one; ten such trials in a row end a run too.
    """

    tol: float

    def check(self, run: Run) -> Stop | None:
        state = run.state
        assert isinstance(state, ProbabilisticState)
        if not state.trial_exact:
            return None
        share, change = state.gradient_share, state.relative_change
        if share <= self.tol:
            return Stop(Status.STATIONARY, f"the gradient on the index set fell to {share:.3g} of the whole")
        idle, fallen = change < 1e-12, state.delta < 1e-12 * state.scale.delta0
        if state.futile >= _FUTILE or (state.futile > 0 and (idle or fallen)):
            return Stop(Status.FLOOR, f"the gradient on the index set is {share:.3g} of the whole")
        if idle:
            return Stop(Status.SMALL_DECREASE, f"the last trial changed the objective by {change:.3g} of it")
        if fallen:
            return Stop(Status.SMALL_DECREASE, f"the clipping level fell to {state.delta:.3g}")
        return None
