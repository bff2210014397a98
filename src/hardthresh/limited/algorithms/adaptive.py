"""Limited attributes without anything to tune: explore for candidates, exploit by least squares, repair the support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import ClassVar, Literal

import numpy as np

from hardthresh.core.errors import InvalidInputError, warn
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array, is_integer, is_real
from hardthresh.limited.contract import ObservationState, Request, places, portion
from hardthresh.limited.cost_model import Market
from hardthresh.limited.learner import BuyingSolver

from .moments import Covariances, Moments
from .support_choice import PER_VARIABLE, choose, intercept, least_squares, needed

FIRST_BATCH = 150  # examples per block in the first exploration, at least,
PER_COEFFICIENT = 4  # or so many for each coefficient,
SHARE = 0.1  # but not more of the stream than this
GROWTH = 1.5  # of the batch from round to round
EXPLOIT = 0.25  # examples of an exploitation, as a share of the exploration before it,
PER_REPAIR = 10  # or so many for each observed attribute
_PERFECT = 1e-14  # of the target's variance: less is rounding
_ENDLESS = 2**62  # examples: an exploitation of all that are left
_ENDLESS = 2**62  # examples: an exploitation of all that are left
PATIENCE = 1.25  # growth of the number of examples from one repair to the next


@stored("state/adaptive")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveState(ObservationState):
    """The state of `AdaptiveHybrid`.

    Attributes
    ----------
    phase : {"explore", "exploit"}
        What is being done in this round.
    round : int
        From 1.
    chosen : int array
        The support under consideration, increasing; `w` is 0 on it until least squares are possible.
    parts : int array, shape (d,)
        The block of each attribute in this exploration, -1 for those that are always observed.
    observed : int array
        What is observed while exploiting: the panels of `chosen`, and of the best candidates.
    block, taken : int
        The block under way, and the examples of it, or of the exploitation, that were seen.
    quota : int
        How many examples each block, or this exploitation, takes.
    next_repair : int
        After how many examples in `together` the support is looked at again.
    scales : Covariances
        Of each attribute, over all explorations.
    scores : Covariances
        Of each attribute and the residual, over the explorations since the support last changed.
    part : Covariances
        The same of the block under way.
    together : Moments
        Of `observed` and the target, over the exploitation.
    own : Moments
        Of `chosen` and the target, over all examples since the exploitation that proposed it.
    fitted : bool
        Whether the support was ever found by least squares.
    """

    phase: Literal["explore", "exploit"] = "explore"
    round: int = 1
    chosen: Array
    parts: Array
    observed: Array
    block: int = 0
    taken: int = 0
    quota: int = 0
    next_repair: int = 0
    scales: Covariances
    scores: Covariances
    part: Covariances
    together: Moments
    own: Moments
    fitted: bool = False

    @property
    def n_blocks(self) -> int:
        """How many blocks an exploration has."""
        return int(self.parts.max()) + 1


@register("observation", "adaptive", lambda: [AdaptiveHybrid(n_nonzero=3)])
@dataclass(frozen=True)
class AdaptiveHybrid(BuyingSolver):
    """Hybrid learning that chooses everything itself: the default.

    Each round *explores*: the residual of the present model is correlated with every attribute, block by block as in
    `Exploration`; the correlations add up over rounds as long as the support stays. Then it *exploits*: the support
    and, for the rest of the budget, the most correlated candidates are observed together. Least squares on all of them,
    backward elimination down to `n_nonzero`, and exchanges propose a support, which replaces the present one if

    .. math:: (n - s - 2) \\log(RSS_{old} / RSS_{new}) > m (\\log n + 2 \\log p)

    for m exchanged attributes of p observed: the extended BIC, as the best of many exchanges is looked at. The
    coefficients are always the least squares on the support, over all examples since the exploitation that proposed it,
    explorations included; noisy gradients never move them. As they learn from explorations just as well, most examples
    explore; what is too little for another round is exploited. Where the budget covers everything there is nothing to
    explore.

    Parameters
    ----------
    n_nonzero : int >= 1
        At most so many coefficients are not zero.
    prediction_budget : float, optional
        What the attributes of the predictor may cost. The default leaves room for the dearest panel that costs at most
        half of the budget to be explored; what is dearer than the predictor may be is not bought. With equal prices
        n_nonzero below s' is all there is to it.

    Raises
    ------
    InvalidInputError
        If the predictor would leave no room to explore.

    Notes
    -----
    Cost: O(s'^2) operations per example while exploiting, O(s^2 + s') while exploring, and O(d) for each portion of 32
    or more examples; O(d + s'^2) memory. Invariant to the scales and shifts of attributes and target. No guarantee: a
    heuristic, tested on correlated, rescaled and noisy attributes, where the published algorithms diverge
    (``papers/limited_attributes``). Once the support is right, a wrong exchange has to beat an information criterion,
    and the coefficients are the least squares on it.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource
    >>> X = np.random.default_rng(0).standard_normal((8000, 40)) * 50 + 10
    >>> source = ArraySource(X, X[:, 1] - X[:, 7] + 3, n_observed=6)
    >>> result = AdaptiveHybrid(n_nonzero=2).run(source)
    >>> result.support, result.w[[1, 7]].round(6), round(result.intercept, 6)
    (array([1, 7]), array([ 1., -1.]), 3.0)
    """

    n_nonzero: int
    prediction_budget: float | None = None

    state_type: ClassVar[type[AdaptiveState]] = AdaptiveState

    def __post_init__(self) -> None:
        if not (is_integer(self.n_nonzero) and self.n_nonzero >= 1):
            raise InvalidInputError(f"n_nonzero must be an integer >= 1, got {self.n_nonzero!r}")
        if self.prediction_budget is not None and not (is_real(self.prediction_budget) and self.prediction_budget > 0):
            raise InvalidInputError(f"prediction_budget must be a number > 0, got {self.prediction_budget!r}")

    def start(self, market: Market, w0: Array | None = None, length: int | None = None) -> AdaptiveState:
        """Return the null model, about to explore; or to exploit, if everything can be observed."""
        if market.plain and self.n_nonzero > market.count_for(market.room):
            raise InvalidInputError(
                f"n_nonzero must be below the {market.n_observed} attributes that may be observed of an example, so "
                f"that others can be explored beside them; got {self.n_nonzero}"
            )
        if w0 is not None:
            raise InvalidInputError("AdaptiveHybrid always starts from the null model; leave w0 out")
        if self.prediction_budget is not None and not market.affords(self.prediction_budget, market.room):
            raise InvalidInputError(
                f"prediction_budget is {self.prediction_budget:g}; it must be <= {market.room:g}, so that the dearest "
                "attribute can be explored beside the chosen ones"
            )
        d = market.n_features
        none, nothing = np.empty(0, dtype=np.intp), Covariances.none(d)
        cheapest = float(np.min(market.price))
        if not market.affords(cheapest, self._limit(market)):
            raise InvalidInputError(
                f"the predictor may cost {self._limit(market):g}, so that the dearest attribute can be explored beside "
                f"it; as the cheapest costs {cheapest:g}, it would always be empty: raise the budget"
            )
        state = self.state_type(
            w=np.zeros(d),
            length=length,
            chosen=none,
            parts=none,
            observed=none,
            scales=nothing,
            scores=nothing,
            part=Covariances.none(0),
            together=Moments.none(1),
            own=Moments.none(1),
        )
        dearest = market.dearest(self._limit(market))
        usable = np.flatnonzero(market.price[market.panel] <= dearest * (1 + 1e-9))
        if usable.size < d:
            warn(
                f"{d - usable.size} of {d} attributes are in panels for more than {dearest:g}, which cannot be "
                "explored beside a predictor that has them; they are not bought. A budget of twice that would do",
            )
        if market.affords(market.cost(usable)):
            return self._exploit(state, usable, None)
        return self._explore(market, state)

    def request(self, market: Market, state: ObservationState) -> Request | None:
        """Ask for the support and a block, or the candidates."""
        assert isinstance(state, AdaptiveState)
        indices = state.observed
        if state.phase == "explore":
            indices = np.union1d(market.bundle(state.chosen), np.flatnonzero(state.parts == state.block))
        return Request(indices, portion(market, state.quota - state.taken))

    def absorb(self, market: Market, state: ObservationState, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Update the moments; at the end of a block, a round, or when a repair is due, draw conclusions."""
        assert isinstance(state, AdaptiveState)
        own = state.own.absorb(np.column_stack([x[:, places(indices, state.chosen)], y]))
        now = replace(state, own=own, seen=state.seen + len(y), taken=state.taken + len(y))
        if not state.seen:
            now = self._refitted(now)  # the mean of the target, from the first examples on
        if now.phase == "explore":
            return self._absorb_block(market, now, indices, x, y)
        now = replace(now, together=now.together.absorb(np.column_stack([x, y])))
        over = now.taken >= now.quota
        if now.together.count >= now.next_repair or (over and now.fitted):
            now = self._repaired(market, now)
        return self._explore(market, replace(now, round=now.round + 1)) if over else now

    def conclude(self, market: Market, state: ObservationState) -> AdaptiveState:
        """Return least squares on the support, over all examples on which it was observed."""
        assert isinstance(state, AdaptiveState)
        if state.together.count > 1 and (state.phase == "exploit" or not state.fitted):
            return self._repaired(market, state)
        forgotten = not state.fitted and state.own.count < state.seen  # examples that the intercept knows
        return state if forgotten else self._refitted(state)

    def endless(self, market: Market, state: ObservationState) -> AdaptiveState:
        """Return the state without its length; what was to be exploited to the end makes way for an exploration."""
        assert isinstance(state, AdaptiveState)
        now = replace(state, length=None)
        if now.phase == "explore" or now.quota < _ENDLESS or not now.parts.size:
            return now
        return self._explore(market, self._repaired(market, now) if now.together.count > 1 else now)

    def trouble(self, state: ObservationState) -> str:
        """Return whether the support was ever chosen by least squares."""
        assert isinstance(state, AdaptiveState)
        if state.fitted:
            return ""
        return (
            f"{state.seen} examples are too few to explore all attributes and to see the best of them together; allow "
            "more attributes per example, or use SparseLinearRegression where the table is complete"
        )

    def _absorb_block(self, market: Market, state: AdaptiveState, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Add to the covariances of a block with the residual; after the last block choose candidates."""
        block = np.flatnonzero(state.parts == state.block)
        residual = y - self.response(state.intercept + x[:, places(indices, state.support)] @ state.w[state.support])
        part = state.part.merge(np.arange(block.size), Covariances.of(x[:, places(indices, block)], residual))
        if state.taken < state.quota:
            return replace(state, part=part)
        now = replace(
            state,
            scores=state.scores.merge(block, part),
            scales=state.scales.merge(block, part),
            block=state.block + 1,
            taken=0,
        )
        if now.block < now.n_blocks:
            following = np.count_nonzero(now.parts == now.block)
            return replace(now, part=Covariances.none(int(following)))
        return self._choose_candidates(market, now)

    def _explore(self, market: Market, state: AdaptiveState) -> AdaptiveState:
        """Return the start of an exploration, or of an exploitation of the rest, if it is too little for that."""
        parts = market.blocks(state.chosen, market.dearest(self._limit(market)))
        n_blocks = int(parts.max()) + 1
        first = max(PER_COEFFICIENT * self.n_nonzero, FIRST_BATCH)
        if state.length is not None:
            first = max(2, min(first, int(SHARE * state.length / n_blocks)))
        quota = int(first * GROWTH ** (state.round - 1))
        if state.fitted and state.left < quota * n_blocks:
            return self._exploit(state, state.observed, None)
        part = Covariances.none(int(np.count_nonzero(parts == 0)))
        return replace(state, phase="explore", parts=parts, quota=quota, block=0, taken=0, part=part)

    def _choose_candidates(self, market: Market, state: AdaptiveState) -> AdaptiveState:
        """Return the start of an exploitation of what correlates most with the residual, beside the support."""
        deviation = state.scales.deviation()
        covariance = np.abs(state.scores.covariance())
        score = np.divide(covariance, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        state = self._refitted(state)
        if not state.fitted:
            chosen = market.choose(score, self.n_nonzero, self._limit(market))
            state = self._with_support(state, chosen, Moments.none(chosen.size + 1))
        observed = market.extend(state.chosen, score)
        quota = max(PER_REPAIR * observed.size, int(EXPLOIT * state.quota * state.n_blocks))
        return self._exploit(state, observed, quota)

    def _exploit(self, state: AdaptiveState, observed: Array, quota: int | None) -> AdaptiveState:
        """Return the start of an exploitation of so many examples, of all that are left without a number."""
        if not np.array_equal(observed, state.observed):
            state = replace(
                state,
                observed=observed,
                together=Moments.none(observed.size + 1),
                next_repair=PER_VARIABLE * observed.size + 2,
            )
        return replace(state, phase="exploit", quota=_ENDLESS if quota is None else quota, taken=0)

    def _repaired(self, market: Market, state: AdaptiveState) -> AdaptiveState:
        """Return the state with another support, if least squares on everything that is observed say so."""
        proposal = choose(state.together, state.observed, market, self.n_nonzero, self._limit(market))
        support = state.observed[proposal.chosen]
        state = replace(state, next_repair=int(PATIENCE * state.together.count) + 1)
        if not state.fitted or self._pays(state, support, proposal.unexplained):
            state = self._with_support(state, support, _moments_of(state, support))
        return self._refitted(replace(state, fitted=True))

    def _pays(self, state: AdaptiveState, support: Array, unexplained: float) -> bool:
        """Return whether another support lowers log RSS by more than is needed for each attribute that is new in it."""
        exchanged = max(np.setdiff1d(support, state.chosen).size, np.setdiff1d(state.chosen, support).size)
        present = least_squares(state.together, places(state.observed, state.chosen)).unexplained
        fall = log(max(present, _PERFECT) / max(unexplained, _PERFECT))
        return exchanged > 0 and fall > exchanged * needed(state.together.count, state.observed.size, state.chosen.size)

    def _with_support(self, state: AdaptiveState, support: Array, own: Moments) -> AdaptiveState:
        """Return the state with a support, the moments of it, and no scores yet."""
        return replace(state, chosen=support, own=own, scores=Covariances.none(state.w.size))

    def _refitted(self, state: AdaptiveState) -> AdaptiveState:
        """Return the state with least squares on the support."""
        if not state.fitted:
            return replace(state, intercept=float(state.own.mean[-1]))
        fit = least_squares(state.own)
        w = np.zeros(state.w.size)
        w[state.chosen[fit.chosen]] = fit.coef
        return replace(state, w=w, intercept=intercept(state.own, fit), updates=state.updates + 1)

    def _limit(self, market: Market) -> float:
        return market.room if self.prediction_budget is None else self.prediction_budget


def _moments_of(state: AdaptiveState, support: Array) -> Moments:
    """Return the moments of a support over all examples on which it is known to have been observed together."""
    if np.all(np.isin(support, state.chosen)):
        return state.own.of(np.append(places(state.chosen, support), -1))
    return state.together.of(np.append(places(state.observed, support), -1))
