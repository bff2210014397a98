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
        k, counted from 1.
    planned_updates : int
        The number of updates of the present part, including those already made; 0 at the end.
    inner : ExplorationState or ExploitationState
        The state of the present part, whose `updates` are those already made.
    whole : bool
        Whether there were enough examples for every part so far, so that none was shortened or left out.
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
    """Rounds k = 1, 2, ... of `Exploration` followed by `Exploitation` (Algorithm 3).

    Each round makes T^-_k updates of `Exploration`, which choose a support, and then T_k updates of `Exploitation` on
    this support. Each part starts from the coefficients of the one before.

    Parameters
    ----------
    step : float > 0
        η of both parts, which multiplies the gradient of (a - y)^2.
    explore_batches, exploit_batches : int or callable
        B^-_k, the number of examples of each block of an exploration in round k, and B_k, that of each update of an
        exploitation, >= 1: an integer, or a function of k = 1, 2, ..., such as `Geometric`.
    explore_steps, exploit_steps : int or callable
        T^-_k and T_k, the numbers of updates in round k, >= 1.
    n_nonzero_coefs : int >= 0
        s < s'; a keyword argument.
    max_rounds : int >= 1, optional
        K. With None, rounds continue until the source has too few examples for another update.

    Raises
    ------
    CapabilityError
        When learning starts, for attributes with different prices or in panels: use `AdaptiveHybrid`.
    InvalidInputError
        For settings out of range.

    Notes
    -----
    Cost: that of the two parts; one pass over the examples. If too few examples are left for all updates of an
    exploration, and a support has been found, they are used for exploitation. If an exploration finds no support, the
    next round begins. Guarantee: with T^-_k = 3 and growing batches,
    O~(d s*^2/s' + min(s*/r_min^2, d s*/s') sigma^2/eps) examples are enough for an excess risk of eps with high
    probability, where r_min is the smallest modulus of a true coefficient (Theorem 4.4, Corollary 4.5). The
    coefficients diverge if the step is too long, in particular for correlated or unscaled attributes; `AdaptiveHybrid`
    needs no step.

    References
    ----------
    T. Murata and T. Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method for
    stochastic sparse linear regression with limited attribute observation*, NeurIPS.

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
        """Return the state at the beginning of the first exploration."""
        inner = self._exploration(1).start(cost_model, w0)
        return self._explore(cost_model, HybridState(w=inner.w, length=length, round=1, planned_updates=0, inner=inner))

    def query(self, cost_model: CostModel, state: HybridState) -> Query | None:
        """Return the query of the present part; None at the end."""
        if state.inner.updates >= state.planned_updates:
            return None
        return self._part(state).query(cost_model, state.inner)

    def absorb(self, cost_model: CostModel, state: HybridState, indices: Array, x: Array, y: Array) -> HybridState:
        """Absorb the answers as the present part does; after its last update, start the next part."""
        inner = self._part(state).absorb(cost_model, state.inner, indices, x, y)
        updates = state.updates + inner.updates - state.inner.updates
        now = replace(state, w=inner.w, updates=updates, seen=state.seen + len(y), inner=inner)
        if inner.updates < now.planned_updates or not inner.finite:
            return now
        return self._following(cost_model, now)

    def finished(self, state: HybridState) -> bool:
        """Return whether `max_rounds` rounds are complete, with all their updates."""
        return state.round == self.max_rounds and not state.planned_updates and state.whole

    def without_length(self, cost_model: CostModel, state: HybridState) -> HybridState:
        """Return the state without its length; a part that was shortened is extended to all of its updates."""
        now = replace(state, length=None)
        if now.whole:
            return now
        explores = isinstance(now.inner, ExplorationState)
        settings, name = (self.explore_steps, "explore_steps") if explores else (self.exploit_steps, "exploit_steps")
        now = replace(now, planned_updates=scheduled(settings, now.round, name), whole=True)
        return self._following(cost_model, now) if now.inner.updates >= now.planned_updates else now

    def _following(self, cost_model: CostModel, state: HybridState) -> HybridState:
        """Return the state at the beginning of the next part.

        If an exploration finds no support, the next part is the exploration of the next round.
        """
        if isinstance(state.inner, ExplorationState) and np.any(state.inner.w):
            return self._exploit(cost_model, state, scheduled(self.exploit_steps, state.round, "exploit_steps"))
        if state.round == self.max_rounds:
            return replace(state, planned_updates=0)
        return self._explore(cost_model, replace(state, round=state.round + 1))

    def _explore(self, cost_model: CostModel, state: HybridState) -> HybridState:
        """Return the state at the beginning of an exploration, or an exploitation if too few examples are left."""
        updates = scheduled(self.explore_steps, state.round, "explore_steps")
        algorithm = self._exploration(state.round)
        batch = scheduled(self.explore_batches, state.round, "explore_batches")
        examples_per_update = algorithm.blocks(cost_model) * batch
        if state.left < updates * examples_per_update and np.any(state.w):
            return self._exploit(cost_model, state, inf)
        return self._begin(cost_model, state, algorithm, updates, examples_per_update)

    def _exploit(self, cost_model: CostModel, state: HybridState, updates: float) -> HybridState:
        """Return the state at the beginning of an exploitation with `updates` updates, or as many as possible."""
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
        """Return the state at the beginning of a part with `updates` updates, or as many as the examples allow.

        If there are fewer than `updates`, `whole` becomes False; always if `updates` is infinite.
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
