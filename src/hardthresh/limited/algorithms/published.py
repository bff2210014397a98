"""Learning from s' attributes of each example: Algorithms 1, 2 and 3 of Murata and Suzuki, as published.

T. Murata and T. Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method for stochastic
sparse linear regression with limited attribute observation*, NeurIPS. Their loss is (a - y)^2 without a half, so that
gradients carry a factor 2, and L = 2 lambda_max(E x x^T).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import top_k
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array, is_integer, is_real
from hardthresh.limited.contract import ObservationState, Request, places, portion, require_plain, starting_point
from hardthresh.limited.cost_model import Market
from hardthresh.limited.learner import BuyingSolver

from .schedules import Schedule, scheduled


@stored("state/exploration")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplorationState(ObservationState):
    """The state within an update of `Exploration`.

    Attributes
    ----------
    gradient : array, shape (d,)
        g_t on the blocks that are complete.
    block, taken : int
        The block under way, and how many of its examples were seen.
    partial : array
        The sum of their gradients on the block.
    """

    gradient: Array
    partial: Array = field(default_factory=lambda: np.zeros(0))
    block: int = 0
    taken: int = 0


@stored("state/exploitation")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExploitationState(ObservationState):
    """The state within an update of `Exploitation`.

    Attributes
    ----------
    chosen : int array
        S_0, the support of the start.
    partial : array
        The sum of the gradients of the examples of this update on it.
    taken : int
        How many these are.
    """

    chosen: Array
    partial: Array
    taken: int = 0


def _summed_gradients(w: Array, indices: Array, x: Array, y: Array, block: Array) -> Array:
    """Return the sum over examples of l'(theta_S^T x_S) x_J for l = (a - y)^2."""
    support = np.flatnonzero(w)
    residual = x[:, places(indices, support)] @ w[support] - y
    summed: Array = 2 * (residual @ x[:, places(indices, block)])
    return summed


@register("observation", "exploration", lambda: [Exploration(step=0.25, batches=20, n_nonzero=3)])
@dataclass(frozen=True)
class Exploration(BuyingSolver):
    """Stochastic IHT with gradients put together of blocks of attributes, each seen on other examples (Algorithm 1).

    .. math:: g_t|_{J_i} = \\frac{1}{B_t} \\sum_b 2 (θ_{t-1}^T x_i^{(b)} - y_i^{(b)}) x_i^{(b)}|_{J_i},
              \\qquad θ_t = H_s(θ_{t-1} - η g_t)

    for the d' = ceil(d / (s' - s)) blocks J_i of s' - s consecutive attributes: unbiased, as the support of θ is
    observed on every example.

    Parameters
    ----------
    step : float > 0
        η, which multiplies the gradient of (a - y)^2. It must stay below 1/(2 L_s), and in practice well below, since
        the noise of the gradient acts like curvature: 0.3 needs batches of about 4 s for standardised attributes.
    batches : int or callable
        B_t, examples per block, a number or a function of t = 1, 2, ..., such as `Geometric`.
    n_nonzero : int >= 1
        s < s'.
    max_updates : int, optional
        T; None goes on until the source has too few examples for an update.

    Raises
    ------
    CapabilityError
        On attributes with different prices or in panels: use `AdaptiveHybrid`.

    Notes
    -----
    An update costs d' B_t examples and at most s' attributes of each; O(s') operations per example and
    O(d) memory. With s = O(kappa^2 s*), η = Theta(1/L_s) and large enough batches the excess risk falls linearly
    with high probability (Theorem 4.1); O~(d s*^2/s' + d s* sigma^2/(s' eps)) examples suffice (Corollary 4.2).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource
    >>> X = np.random.default_rng(0).standard_normal((4000, 12))
    >>> source = ArraySource(X, X[:, 1] - X[:, 7], n_observed=6)
    >>> result = Exploration(step=0.25, batches=40, n_nonzero=2, max_updates=12).run(source)
    >>> result.support, result.meter.examples, result.meter.max_per_example
    (array([1, 7]), 1440, 6)
    """

    takes_steps: ClassVar[bool] = True

    step: float
    batches: Schedule
    n_nonzero: int
    max_updates: int | None = None

    def __post_init__(self) -> None:
        _check_step(self.step, self.max_updates)
        _check_n_nonzero(self.n_nonzero)

    def start(self, market: Market, w0: Array | None = None, length: int | None = None) -> ExplorationState:
        """Return H_s(w0)."""
        require_plain(market, self)
        if self.n_nonzero >= market.n_observed:
            raise InvalidInputError(
                f"n_nonzero must be below the {market.n_observed} attributes that may be observed, got "
                f"{self.n_nonzero}: what is left explores"
            )
        w = self._threshold(starting_point(market, w0))
        return ExplorationState(w=w, gradient=np.zeros_like(w), length=length)

    def request(self, market: Market, state: ObservationState) -> Request | None:
        """Ask for a block and the support, if there are examples enough for the update."""
        assert isinstance(state, ExplorationState)
        batch = self._batch(state)
        left = (self.blocks(market) - state.block) * batch - state.taken
        if self.through(state) or state.left < left:
            return None
        indices = np.union1d(self._block(market, state.block), state.support)
        return Request(indices, portion(market, batch - state.taken))

    def absorb(self, market: Market, state: ObservationState, indices: Array, x: Array, y: Array) -> ExplorationState:
        """Add to the gradient; step when it is whole."""
        assert isinstance(state, ExplorationState)
        block = self._block(market, state.block)
        partial = _summed_gradients(state.w, indices, x, y, block) + (state.partial if state.taken else 0.0)
        now = replace(state, partial=partial, taken=state.taken + len(y), seen=state.seen + len(y))
        if now.taken < self._batch(now):
            return now
        gradient = now.gradient.copy()
        gradient[block] = partial / now.taken
        if now.block + 1 < self.blocks(market):
            return replace(now, gradient=gradient, block=now.block + 1, taken=0)
        w = self._threshold(now.w - self.step * gradient)
        return replace(now, w=w, updates=now.updates + 1, gradient=np.zeros_like(w), block=0, taken=0)

    def through(self, state: ObservationState) -> bool:
        """Return whether there were `max_updates`."""
        return state.updates == self.max_updates

    def blocks(self, market: Market) -> int:
        """Return d', how many parts the gradient is put together of."""
        return ceil(market.n_features / self._width(market))

    def _batch(self, state: ExplorationState) -> int:
        return scheduled(self.batches, state.updates + 1, "batches")

    def _threshold(self, z: Array) -> Array:
        if not np.all(np.isfinite(z)):
            return z  # it diverged; there are no largest entries
        w = np.zeros_like(z)
        largest = top_k(np.abs(z), self.n_nonzero)
        w[largest] = z[largest]
        return w

    def _width(self, market: Market) -> int:
        return market.n_observed - self.n_nonzero

    def _block(self, market: Market, number: int) -> Array:
        width = self._width(market)
        return np.arange(number * width, min((number + 1) * width, market.n_features))


@register("observation", "exploitation", lambda: [Exploitation(step=0.1, batches=50)])
@dataclass(frozen=True)
class Exploitation(BuyingSolver):
    """Stochastic gradient steps on the support of the start (Algorithm 2): θ_t = θ_{t-1} - η g_t there.

    Parameters
    ----------
    step : float > 0
        η, which multiplies the gradient of (a - y)^2.
    batches : int or callable
        B_t, examples per update, a number or a function of t = 1, 2, ...
    max_updates : int, optional
        T; None goes on until the source has too few examples for an update.

    Raises
    ------
    InvalidInputError
        For a w0 without non-zeros, or with more than may be observed.

    Notes
    -----
    An update costs B_t examples, the support of w0 of each, and O(s) operations per example. If supp(w0) contains
    the truth the excess risk falls linearly with high probability; else it grows by at most a factor 1/(1 - alpha)
    (Theorem 4.3).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource
    >>> X = np.random.default_rng(0).standard_normal((2000, 4))
    >>> source = ArraySource(X, X[:, 1] - X[:, 3], n_observed=2)
    >>> Exploitation(step=0.1, batches=50).run(source, w0=[0.0, 0.1, 0.0, 0.1]).w.round(2)
    array([ 0.,  1.,  0., -1.])
    """

    takes_steps: ClassVar[bool] = True

    step: float
    batches: Schedule
    max_updates: int | None = None

    def __post_init__(self) -> None:
        _check_step(self.step, self.max_updates)

    def start(self, market: Market, w0: Array | None = None, length: int | None = None) -> ExploitationState:
        """Return w0, whose support stays."""
        w = starting_point(market, w0)
        chosen = np.flatnonzero(w)
        if not chosen.size:
            raise InvalidInputError(
                "Exploitation works on the support of w0, which is empty; use Exploration or Hybrid"
            )
        if not market.affords(market.cost(chosen)):
            raise InvalidInputError(
                f"the support of w0 costs {market.cost(chosen):g} per example; the budget is {market.budget:g}"
            )
        return ExploitationState(w=w, chosen=chosen, partial=np.zeros(chosen.size), length=length)

    def request(self, market: Market, state: ObservationState) -> Request | None:
        """Ask for the support, if there are examples enough for the update."""
        assert isinstance(state, ExploitationState)
        left = self._batch(state) - state.taken
        if self.through(state) or state.left < left:
            return None
        return Request(state.chosen, portion(market, left))

    def absorb(self, market: Market, state: ObservationState, indices: Array, x: Array, y: Array) -> ExploitationState:
        """Add to the gradient; step when the batch is whole."""
        assert isinstance(state, ExploitationState)
        partial = state.partial + _summed_gradients(state.w, indices, x, y, state.chosen)
        now = replace(state, partial=partial, taken=state.taken + len(y), seen=state.seen + len(y))
        if now.taken < self._batch(now):
            return now
        w = now.w.copy()
        w[now.chosen] -= self.step * partial / now.taken
        return replace(now, w=w, updates=now.updates + 1, partial=np.zeros(now.chosen.size), taken=0)

    def through(self, state: ObservationState) -> bool:
        """Return whether there were `max_updates`."""
        return state.updates == self.max_updates

    def _batch(self, state: ExploitationState) -> int:
        return scheduled(self.batches, state.updates + 1, "batches")


@stored("state/hybrid")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HybridState(ObservationState):
    """The state of `Hybrid`.

    Attributes
    ----------
    round : int
        k, from 1.
    steps : int
        How many updates the part under way makes, none when all is done.
    inner : ExplorationState or ExploitationState
        Where it is.
    whole : bool
        Whether no part was cut short, or left out, for want of examples.
    """

    round: int
    steps: int
    inner: ExplorationState | ExploitationState
    whole: bool = True


@register("observation", "hybrid", lambda: [Hybrid(0.2, 20, 60, n_nonzero=3)])
@dataclass(frozen=True)
class Hybrid(BuyingSolver):
    """Rounds k = 1, 2, ... of `Exploration`, and of `Exploitation` of what it found (Algorithm 3).

    Parameters
    ----------
    step : float > 0
        η of both, which multiplies the gradient of (a - y)^2.
    explore_batches, exploit_batches : int or callable
        B^-_k and B_k, examples per block and per update in round k: a number or a function of k, such as `Geometric`.
    explore_steps, exploit_steps : int or callable
        T^-_k and T_k, updates in round k.
    n_nonzero : int >= 1
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
    exploited. With T^-_k = 3 and growing batches O~(d s*^2/s' + min(s*/r_min^2, d s*/s') sigma^2/eps) examples suffice
    with high probability, r_min the least coefficient of the truth (Theorem 4.4, Corollary 4.5). With a step that is
    too long it diverges, on correlated or unscaled attributes soon; `AdaptiveHybrid` needs no step.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource
    >>> X = np.random.default_rng(0).standard_normal((8000, 12))
    >>> from hardthresh.limited.algorithms.schedules import Geometric
    >>> source = ArraySource(X, X[:, 1] - X[:, 7], n_observed=6)
    >>> result = Hybrid(0.2, Geometric(40, 2), Geometric(200, 2), n_nonzero=2).run(source)
    >>> result.w[[1, 7]].round(3)
    array([ 1., -1.])
    """

    takes_steps: ClassVar[bool] = True

    step: float
    explore_batches: Schedule
    exploit_batches: Schedule
    explore_steps: Schedule = 3
    exploit_steps: Schedule = 5
    n_nonzero: int = field(kw_only=True)
    max_rounds: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_step(self.step, self.max_rounds)
        _check_n_nonzero(self.n_nonzero)

    def start(self, market: Market, w0: Array | None = None, length: int | None = None) -> HybridState:
        """Return the start of the first exploration."""
        inner = self._exploration(1).start(market, w0)
        return self._explore(market, HybridState(w=inner.w, length=length, round=1, steps=0, inner=inner))

    def request(self, market: Market, state: ObservationState) -> Request | None:
        """Ask as the part that is under way."""
        assert isinstance(state, HybridState)
        return self._part(state).request(market, state.inner) if state.inner.updates < state.steps else None

    def absorb(self, market: Market, state: ObservationState, indices: Array, x: Array, y: Array) -> HybridState:
        """Learn as the part that is under way; when it is through, start the next one."""
        assert isinstance(state, HybridState)
        inner = self._part(state).absorb(market, state.inner, indices, x, y)
        updates = state.updates + inner.updates - state.inner.updates
        now = replace(state, w=inner.w, updates=updates, seen=state.seen + len(y), inner=inner)
        if inner.updates < now.steps or not np.all(np.isfinite(inner.w)):
            return now
        return self._following(market, now)

    def through(self, state: ObservationState) -> bool:
        """Return whether there were `max_rounds`, with all their updates."""
        assert isinstance(state, HybridState)
        return state.round == self.max_rounds and not state.steps and state.whole

    def endless(self, market: Market, state: ObservationState) -> HybridState:
        """Return the state without its length: a part that was cut short for want of examples is made whole."""
        assert isinstance(state, HybridState)
        now = replace(state, length=None)
        if now.whole:
            return now
        explores = isinstance(now.inner, ExplorationState)
        settings, name = (self.explore_steps, "explore_steps") if explores else (self.exploit_steps, "exploit_steps")
        now = replace(now, steps=scheduled(settings, now.round, name), whole=True)
        return self._following(market, now) if now.inner.updates >= now.steps else now

    def _following(self, market: Market, state: HybridState) -> HybridState:
        """Return the start of the part after one that is through."""
        if isinstance(state.inner, ExplorationState) and np.any(state.inner.w):
            return self._exploit(market, state, scheduled(self.exploit_steps, state.round, "exploit_steps"))
        if state.round == self.max_rounds:
            return replace(state, steps=0)
        return self._explore(market, replace(state, round=state.round + 1))

    def _explore(self, market: Market, state: HybridState) -> HybridState:
        """Return the start of an exploration; if what is left is too little for it, it is exploited, all of it."""
        steps = scheduled(self.explore_steps, state.round, "explore_steps")
        solver = self._exploration(state.round)
        update = solver.blocks(market) * scheduled(self.explore_batches, state.round, "explore_batches")
        if state.left < steps * update and np.any(state.w):
            return self._exploit(market, state, inf)
        return self._begin(market, state, solver, steps, update)

    def _exploit(self, market: Market, state: HybridState, steps: float) -> HybridState:
        """Return the start of an exploitation of so many updates, or as many as there are examples for."""
        update = scheduled(self.exploit_batches, state.round, "exploit_batches")
        return self._begin(market, state, self._exploitation(state.round), steps, update)

    def _begin(
        self, market: Market, state: HybridState, solver: Exploration | Exploitation, steps: float, update: int
    ) -> HybridState:
        """Return the start of a part of at most so many updates, each of `update` examples."""
        made = steps if state.length is None else min(steps, state.left // update)
        return replace(state, steps=int(made), whole=state.whole and made == steps, inner=solver.start(market, state.w))

    def _part(self, state: HybridState) -> Exploration | Exploitation:
        explores = isinstance(state.inner, ExplorationState)
        return self._exploration(state.round) if explores else self._exploitation(state.round)

    def _exploration(self, k: int) -> Exploration:
        return Exploration(self.step, scheduled(self.explore_batches, k, "explore_batches"), self.n_nonzero)

    def _exploitation(self, k: int) -> Exploitation:
        return Exploitation(self.step, scheduled(self.exploit_batches, k, "exploit_batches"))


def _check_step(step: Any, rounds: Any) -> None:
    if not (is_real(step) and 0 < step < np.inf):
        raise InvalidInputError(f"step must be a finite number > 0, got {step!r}")
    if not (rounds is None or (is_integer(rounds) and rounds >= 1)):
        raise InvalidInputError(f"the number of updates or rounds must be None or an integer >= 1, got {rounds!r}")


def _check_n_nonzero(n_nonzero: Any) -> None:
    if not (is_integer(n_nonzero) and n_nonzero >= 1):
        raise InvalidInputError(f"n_nonzero must be an integer >= 1, got {n_nonzero!r}")
