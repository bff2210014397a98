"""Hybrid: Algorithm 3 of Murata and Suzuki (2018), as published; `exploration` cites the paper."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from hardthresh.core.registry import register
from hardthresh.core.schema import renames, stored
from hardthresh.core.typing import Array
from hardthresh.limited.contract import Algorithm, AlgorithmState, Query, checked_sparsity
from hardthresh.limited.cost_model import CostModel

from .exploitation import Exploitation, ExploitationState
from .exploration import Exploration, ExplorationState, check_step
from .schedules import Schedule, scheduled


@stored("state/hybrid", upgrades=[renames(steps="planned_updates")])
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HybridState(AlgorithmState):
    """The state of `Hybrid`.

    Attributes
    ----------
    round : int
        k, from 1.
    planned_updates : int
        The number of updates that the part under way consists of, those made included; 0 at the end.
    inner : ExplorationState or ExploitationState
        The state of that part, which counts the updates made.
    whole : bool
        Whether there were enough examples for every part so far: none was shortened or left out.
    """

    round: int
    planned_updates: int
    inner: ExplorationState | ExploitationState
    whole: bool = True


@register(
    "algorithm",
    "hybrid",
    lambda: [Hybrid(0.2, 20, 60, n_nonzero_coefs=3)],
    upgrades=[renames(n_nonzero="n_nonzero_coefs")],
)
@dataclass(frozen=True)
class Hybrid(Algorithm[HybridState]):
    """Rounds k = 1, 2, ... of `Exploration`, and of `Exploitation` of what it found (Algorithm 3).

    Parameters
    ----------
    step : float > 0
        η of both, which multiplies the gradient of (a - y)^2.
    explore_batches, exploit_batches : int or callable
        B^-_k and B_k, examples per block and per update in round k: a number or a function of k, such as `Geometric`.
    explore_steps, exploit_steps : int or callable
        T^-_k and T_k, updates in round k.
    n_nonzero_coefs : int >= 0
        s < s', by keyword.
    max_rounds : int, optional
        K; None goes on until the source has too few examples for an update.

    Raises
    ------
    CapabilityError
        On attributes with different prices or in panels: use `AdaptiveHybrid`.

    Notes
    -----
    Costs as its two parts; an exploration that the rest of the source is too small for is left out, and the rest
    exploited. After an exploration that finds nothing there is nothing to exploit, and the next round begins. With
    T^-_k = 3 and growing batches O~(d s*^2/s' + min(s*/r_min^2, d s*/s') sigma^2/eps) examples suffice with high
    probability, r_min the least coefficient of the truth (Theorem 4.4, Corollary 4.5). With a step that is too long it
    diverges, on correlated or unscaled attributes soon; `AdaptiveHybrid` needs no step.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource, learn
    >>> X = np.random.default_rng(0).standard_normal((8000, 12))
    >>> from hardthresh.limited import Geometric
    >>> source = ArraySource(X, X[:, 1] - X[:, 7], n_observed=6)
    >>> result = learn(Hybrid(0.2, Geometric(40, 2), Geometric(200, 2), n_nonzero_coefs=2), source)
    >>> result.w[[1, 7]].round(3)
    array([ 1., -1.])
    """

    takes_steps: ClassVar[bool] = True

    step: float
    explore_batches: Schedule
    exploit_batches: Schedule
    explore_steps: Schedule = 3
    exploit_steps: Schedule = 5
    n_nonzero_coefs: int = field(kw_only=True)
    max_rounds: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_step(self.step, self.max_rounds)
        checked_sparsity(self.n_nonzero_coefs)

    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> HybridState:
        """Return the start of the first exploration."""
        inner = self._exploration(1).start(cost_model, w0)
        return self._explore(cost_model, HybridState(w=inner.w, length=length, round=1, planned_updates=0, inner=inner))

    def query(self, cost_model: CostModel, state: HybridState) -> Query | None:
        """Ask as the part under way."""
        if state.inner.updates >= state.planned_updates:
            return None
        return self._part(state).query(cost_model, state.inner)

    def absorb(self, cost_model: CostModel, state: HybridState, indices: Array, x: Array, y: Array) -> HybridState:
        """Learn as the part under way; after its last update, start the next one."""
        inner = self._part(state).absorb(cost_model, state.inner, indices, x, y)
        updates = state.updates + inner.updates - state.inner.updates
        now = replace(state, w=inner.w, updates=updates, seen=state.seen + len(y), inner=inner)
        if inner.updates < now.planned_updates or not inner.finite:
            return now
        return self._following(cost_model, now)

    def finished(self, state: HybridState) -> bool:
        """Return whether `max_rounds` are complete, with all their updates."""
        return state.round == self.max_rounds and not state.planned_updates and state.whole

    def without_length(self, cost_model: CostModel, state: HybridState) -> HybridState:
        """Return the state without its length: a part that was shortened gets all of its updates."""
        now = replace(state, length=None)
        if now.whole:
            return now
        explores = isinstance(now.inner, ExplorationState)
        settings, name = (self.explore_steps, "explore_steps") if explores else (self.exploit_steps, "exploit_steps")
        now = replace(now, planned_updates=scheduled(settings, now.round, name), whole=True)
        return self._following(cost_model, now) if now.inner.updates >= now.planned_updates else now

    def _following(self, cost_model: CostModel, state: HybridState) -> HybridState:
        """Return the start of the part after the one that has ended.

        An exploration that finds nothing is followed by that of the next round: there is no support to exploit.
        """
        if isinstance(state.inner, ExplorationState) and np.any(state.inner.w):
            return self._exploit(cost_model, state, scheduled(self.exploit_steps, state.round, "exploit_steps"))
        if state.round == self.max_rounds:
            return replace(state, planned_updates=0)
        return self._explore(cost_model, replace(state, round=state.round + 1))

    def _explore(self, cost_model: CostModel, state: HybridState) -> HybridState:
        """Return the start of an exploration, or of an exploitation if too few examples are left for it."""
        updates = scheduled(self.explore_steps, state.round, "explore_steps")
        algorithm = self._exploration(state.round)
        batch = scheduled(self.explore_batches, state.round, "explore_batches")
        examples_per_update = algorithm.blocks(cost_model) * batch
        if state.left < updates * examples_per_update and np.any(state.w):
            return self._exploit(cost_model, state, inf)
        return self._begin(cost_model, state, algorithm, updates, examples_per_update)

    def _exploit(self, cost_model: CostModel, state: HybridState, updates: float) -> HybridState:
        """Return the start of an exploitation with this many updates, or as many as there are examples for."""
        examples_per_update = scheduled(self.exploit_batches, state.round, "exploit_batches")
        return self._begin(cost_model, state, self._exploitation(state.round), updates, examples_per_update)

    def _begin(
        self,
        cost_model: CostModel,
        state: HybridState,
        algorithm: Exploration | Exploitation,
        updates: float,
        examples_per_update: int,
    ) -> HybridState:
        """Return the start of a part with `updates` updates, or as many as the examples that are left suffice for.

        With fewer than `updates` the state is no longer `whole`; that is always so if all that is left is exploited
        (infinity).
        """
        planned = updates if state.length is None else min(updates, state.left // examples_per_update)
        whole = state.whole and planned == updates
        return replace(state, planned_updates=int(planned), whole=whole, inner=algorithm.start(cost_model, state.w))

    def _part(self, state: HybridState) -> Algorithm[Any]:
        explores = isinstance(state.inner, ExplorationState)
        return self._exploration(state.round) if explores else self._exploitation(state.round)

    def _exploration(self, k: int) -> Exploration:
        return Exploration(self.step, scheduled(self.explore_batches, k, "explore_batches"), self.n_nonzero_coefs)

    def _exploitation(self, k: int) -> Exploitation:
        return Exploitation(self.step, scheduled(self.exploit_batches, k, "exploit_batches"))
