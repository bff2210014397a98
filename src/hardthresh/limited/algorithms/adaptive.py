"""The default algorithm, which needs no tuning: explore candidates, fit by least squares, and repair the support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import ClassVar, Literal

import numpy as np

from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError, plural, warn
from hardthresh.core.registry import register
from hardthresh.core.schema import renames, stored
from hardthresh.core.typing import Array
from hardthresh.limited.contract import Algorithm, AlgorithmState, Query, batch_size, checked_sparsity, positions
from hardthresh.limited.cost_model import CostModel

from .moments import Covariances, Moments
from .support_choice import PER_VARIABLE, choose, intercept, least_squares, required_decrease

TOO_FEW_ADVICE = "allow more attributes per example, or use SparseLinearRegression where the table is complete"
"""What to do if there are too few examples, where the attributes are those of a table."""

# The first seven were tuned by hand on draws of the problem of Murata and Suzuki (2018), other draws than those of
# papers/limited_attributes. Values are called equal if they find the same supports, with squared errors within a third,
# in 12 draws of each of six problems with 4 of 60 attributes: weak and strong effects, correlated attributes, two
# classes, prices, and only 700 examples.
FIRST_BATCH = 150  # examples per block in the first exploration; 40 to 600 are equal, but delay the first model
PER_COEFFICIENT = 4  # or this number of examples for each coefficient, if that is more; 1 to 64 are equal
SHARE = 0.1  # all blocks together use at most this share of the stream; 0.05 to 0.2 are equal, 0.025 doubles an error
GROWTH = 1.5  # factor of the batch from round to round; 1.1 to 3 are equal
EXPLOIT = 0.25  # examples of an exploitation, as a share of the exploration before it; 0.06 to 1 are equal
PER_REPAIR = 10  # or this number for each observed attribute; 5 is equal. On 700 examples 2 has ten times the error,
# and 20 and 40 miss one and eight of 12 supports
PATIENCE = 1.25  # factor of the number of examples from one repair to the next; 1.05 to 2.5 are equal
SMALLEST = 1e-150  # squares of smaller numbers lose digits in float64, or are 0
_PERFECT = 1e-14  # a residual below this share of the target's variance is rounding; 1e-15 to 1e-10 are equal
_ALL_LEFT = 2**62  # examples, more than any stream has: an exploitation without an end


@stored("state/adaptive")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptiveState(AlgorithmState):
    """The state of `AdaptiveHybrid`.

    Attributes
    ----------
    phase : {"explore", "exploit"}
        The phase of the round.
    round : int
        The number of the round, from 1.
    chosen : int array
        The present support, increasing; `w` is 0 before the first least-squares fit.
    parts : int array, shape (d,)
        The block of each attribute in this exploration; -1 for attributes that are observed on every example, and for
        those that are too expensive.
    observed : int array
        The attributes that an exploitation observes: the panels of `chosen`, and those of the best candidates.
    block : int
        The number of the present block of the exploration.
    taken : int
        The number of examples so far of the present block, or of the exploitation.
    quota : int
        The number of examples of each block, or of the exploitation.
    next_repair : int
        The count of `together` at which the support is compared with others again.
    scales : Covariances
        The moments of each attribute, over all explorations.
    scores : Covariances
        The moments of each attribute and the residual, over the explorations since the support last changed.
    part : Covariances
        The moments of each attribute of the present block and the residual.
    together : Moments
        The joint moments of `observed` and the target, over the exploitations that observed these attributes.
    own : Moments
        The joint moments of `chosen` and the target, over all examples since the exploitation that proposed `chosen`.
    fitted : bool
        Whether a support has been chosen by least squares.
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

    def accumulated(self) -> tuple[Array, ...]:
        covariances = (self.scales, self.scores, self.part)
        squares = (part for moments in covariances for part in (moments.square, moments.product))
        return self.own.comoment, self.together.comoment, *squares

    @property
    def n_blocks(self) -> int:
        """The number of blocks of the exploration."""
        return int(self.parts.max()) + 1


@register(
    "algorithm",
    "adaptive",
    lambda: [AdaptiveHybrid(n_nonzero_coefs=3)],
    upgrades=[renames(n_nonzero="n_nonzero_coefs")],
)
@dataclass(frozen=True)
class AdaptiveHybrid(Algorithm[AdaptiveState]):
    """Exploration and least squares in turn, without settings to tune: the default algorithm, a heuristic.

    Each round has two phases. In the *exploration*, the residual of the present model is correlated with every
    attribute, block by block as in `Exploration`; the correlations of several rounds are combined until the support
    changes. In the *exploitation*, the present support is observed together with candidates: the attributes with the
    largest correlations that the rest of the budget buys. Least squares on all of these, backward elimination to
    `n_nonzero_coefs` attributes, and exchanges of single attributes propose a new support. It replaces the present one
    if

    .. math:: (n - q - 2) \\log(RSS_{old} / RSS_{new}) > m (\\log n + 2 \\log p)

    where p attributes were observed together on n examples, the present support has q of them, and m is the number of
    attributes that are exchanged. This is the criterion of the extended BIC, which accounts for the choice of the best
    among many exchanges.

    The coefficients are least squares on the support, over all examples since the beginning of the exploitation that
    proposed it, those of explorations included, because explorations observe the support too. If the remaining examples
    are too few for another round, they are used for exploitation; if the budget buys all attributes, every example is.

    Parameters
    ----------
    n_nonzero_coefs : int >= 0
        s, the largest number of non-zero coefficients; with equal prices s < s', or s <= s' if s' = d.
    prediction_budget : float > 0, optional
        L, the largest cost of the attributes of a prediction. The default, which is also the largest possible value, is
        `CostModel.prediction_limit`: the budget minus the highest price of a panel that costs at most half of the
        budget, so that such a panel can be observed together with the attributes of the model. Panels that cost more
        than min(L, budget - L) are never bought, unless the budget buys all attributes.

    Raises
    ------
    InvalidInputError
        For settings out of range. When learning starts, also for a starting point w0, or if the budget is too small to
        observe further attributes together with those of the model.

    Warns
    -----
    UserWarning
        When learning starts, if panels are too expensive to be bought.

    Notes
    -----
    Cost: one pass over the examples; O(s'^2) operations per example of an exploitation, O(s^2 + s') per example of an
    exploration, and O(d) for each batch of 32 or more examples; O(d + s'^2) memory. The support is invariant,
    and the coefficients are equivariant, under shifts and scalings of attributes and target. Guarantee: no example
    costs more than the budget. The choice of the support is a heuristic, which was tested on correlated, rescaled and
    noisy attributes, for which the published algorithms diverge (``papers/limited_attributes``).

    References
    ----------
    T. Murata and T. Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method for
    stochastic sparse linear regression with limited attribute observation*, NeurIPS; J. Chen and Z. Chen (2008),
    *Extended Bayesian information criteria for model selection with large model spaces*, Biometrika 95(3).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource, learn
    >>> X = np.random.default_rng(0).standard_normal((8000, 40)) * 50 + 10
    >>> source = ArraySource(X, X[:, 1] - X[:, 7] + 3, n_observed=6)
    >>> result = learn(AdaptiveHybrid(n_nonzero_coefs=2), source)
    >>> result.support, result.w[[1, 7]].round(6), round(result.intercept, 6)
    (array([1, 7]), array([ 1., -1.]), 3.0)
    """

    n_nonzero_coefs: int
    prediction_budget: float | None = None

    state_type: ClassVar[type[AdaptiveState]] = AdaptiveState

    def __post_init__(self) -> None:
        checked_sparsity(self.n_nonzero_coefs)
        if self.prediction_budget is not None:
            checked_number("prediction_budget", self.prediction_budget, above=0.0)

    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> AdaptiveState:
        """Return the null model before the first exploration, or exploitation if the budget buys everything."""
        if cost_model.uniform:
            checked_sparsity(self.n_nonzero_coefs, cost_model.count_for(cost_model.prediction_limit))
        if w0 is not None:
            raise InvalidInputError("AdaptiveHybrid always starts from the null model; leave w0 out")
        limit = self._limit(cost_model)
        if not cost_model.within_budget(limit, cost_model.prediction_limit):
            raise InvalidInputError(
                f"prediction_budget is {limit:g}; it must be <= {cost_model.prediction_limit:g}, so that the dearest "
                "attribute can be explored beside the chosen ones"
            )
        cheapest = float(np.min(cost_model.price))
        if not cost_model.within_budget(cheapest, limit):
            raise InvalidInputError(
                f"the predictor may cost {limit:g}, so that the dearest attribute can be explored beside it; as the "
                f"cheapest costs {cheapest:g}, it would always be empty: raise the budget"
            )
        d, none = cost_model.n_features, np.empty(0, dtype=np.intp)
        state = self.state_type(
            w=np.zeros(d),
            length=length,
            chosen=none,
            parts=none,
            observed=none,
            scales=Covariances.none(d),
            scores=Covariances.none(d),
            part=Covariances.none(0),
            together=Moments.none(1),
            own=Moments.none(1),
        )
        dearest = cost_model.panel_limit(limit)
        usable = np.flatnonzero(cost_model.within_budget(cost_model.price[cost_model.panel], dearest))
        if usable.size < d:
            warn(
                f"{d - usable.size} of {d} attributes are in panels for more than {dearest:g}, which cannot be "
                "explored beside a predictor that has them; they are not bought. A budget of twice that would do",
            )
        if cost_model.within_budget(cost_model.cost(usable)):
            return self._exploit(state, usable, None)
        return self._explore(cost_model, state)

    def query(self, cost_model: CostModel, state: AdaptiveState) -> Query | None:
        """Return a query of the support and the present block, or of the support and the candidates."""
        indices = state.observed
        if state.phase == "explore":
            indices = np.union1d(cost_model.whole_panels(state.chosen), np.flatnonzero(state.parts == state.block))
        return Query(indices, batch_size(cost_model, state.quota - state.taken))

    def absorb(self, cost_model: CostModel, state: AdaptiveState, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Update the moments; at the end of a block or a round, or when a repair is due, choose the support again."""
        own = state.own.absorb(np.column_stack([x[:, positions(indices, state.chosen)], y]))
        now = replace(state, own=own, seen=state.seen + len(y), taken=state.taken + len(y))
        if not state.seen:
            now = self._refitted(now)  # sets the intercept to the mean of the first targets
        if now.phase == "explore":
            return self._absorb_block(cost_model, now, indices, x, y)
        now = replace(now, together=now.together.absorb(np.column_stack([x, y])))
        if not now.finite:
            return now
        ended = now.taken >= now.quota
        if now.together.count >= now.next_repair or (ended and now.fitted):
            now = self._repaired(cost_model, now)
        return self._explore(cost_model, replace(now, round=now.round + 1)) if ended else now

    def finalize(self, cost_model: CostModel, state: AdaptiveState) -> AdaptiveState:
        """Return the state with least squares on the support, which is repaired if an exploitation is incomplete."""
        if state.together.count > 1 and (state.phase == "exploit" or not state.fitted):
            return self._repaired(cost_model, state)
        if not state.fitted and state.own.count < state.seen:
            return state  # its intercept is the mean of all targets; `own` has only the latest ones
        return self._refitted(state)

    def without_length(self, cost_model: CostModel, state: AdaptiveState) -> AdaptiveState:
        """Return the state without its length; an exploration follows an exploitation of all remaining examples."""
        now = replace(state, length=None)
        if now.phase == "explore" or now.quota < _ALL_LEFT or not now.parts.size:
            return now
        return self._explore(cost_model, self._repaired(cost_model, now) if now.together.count > 1 else now)

    def failure_reason(self, state: AdaptiveState) -> str:
        """Return a reason if no support was chosen by least squares, or if squares underflow; otherwise empty."""
        if state.fitted:
            return _underflow(state)
        are = "is" if state.seen == 1 else "are"
        return (
            f"{plural(state.seen, 'example')} {are} too few to explore all attributes and to see the best of them "
            f"together; {TOO_FEW_ADVICE}"
        )

    def _absorb_block(
        self, cost_model: CostModel, state: AdaptiveState, indices: Array, x: Array, y: Array
    ) -> AdaptiveState:
        """Add answers to the covariances of a block and the residual; after the last block choose candidates."""
        block = np.flatnonzero(state.parts == state.block)
        residual = y - self.response(state.intercept + x[:, positions(indices, state.support)] @ state.w[state.support])
        part = state.part.merge(np.arange(block.size), Covariances.of(x[:, positions(indices, block)], residual))
        if state.taken < state.quota:
            return replace(state, part=part)
        now = replace(
            state,
            scores=state.scores.merge(block, part),
            scales=state.scales.merge(block, part),
            block=state.block + 1,
            taken=0,
        )
        if not now.finite:
            return now
        if now.block < now.n_blocks:
            return replace(now, part=Covariances.none(int(np.count_nonzero(now.parts == now.block))))
        return self._choose_candidates(cost_model, now)

    def _explore(self, cost_model: CostModel, state: AdaptiveState) -> AdaptiveState:
        """Return the state at the beginning of an exploration, or an exploitation if too few examples are left."""
        parts = cost_model.partition(state.chosen, cost_model.panel_limit(self._limit(cost_model)))
        n_blocks = int(parts.max()) + 1
        first = max(PER_COEFFICIENT * self.n_nonzero_coefs, FIRST_BATCH)
        if state.length is not None:
            first = max(2, min(first, int(SHARE * state.length / n_blocks)))
        quota = int(first * GROWTH ** (state.round - 1))
        if state.fitted and state.left < quota * n_blocks:
            return self._exploit(state, state.observed, None)
        part = Covariances.none(int(np.count_nonzero(parts == 0)))
        return replace(state, phase="explore", parts=parts, quota=quota, block=0, taken=0, part=part)

    def _choose_candidates(self, cost_model: CostModel, state: AdaptiveState) -> AdaptiveState:
        """Return the state at the beginning of an exploitation, with the best candidates of the exploration."""
        deviation = state.scales.deviation()
        covariance = np.abs(state.scores.covariance())
        score = np.divide(covariance, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        state = self._refitted(state)
        if not state.fitted:
            chosen = self._first_support(cost_model, score)
            state = self._with_support(state, chosen, Moments.none(chosen.size + 1))
        observed = self._candidates(cost_model, state, score)
        quota = max(PER_REPAIR * observed.size, int(EXPLOIT * state.quota * state.n_blocks))
        return self._exploit(state, observed, quota)

    def _first_support(self, cost_model: CostModel, score: Array) -> Array:
        """Return the support after the first exploration, chosen by the correlations with the residual."""
        return cost_model.choose(score, self.n_nonzero_coefs, self._limit(cost_model))

    def _candidates(self, cost_model: CostModel, state: AdaptiveState, score: Array) -> Array:
        """Return the attributes of an exploitation: the support, and those most correlated with the residual."""
        return cost_model.extend(state.chosen, score)

    def _exploit(self, state: AdaptiveState, observed: Array, quota: int | None) -> AdaptiveState:
        """Return the state at the beginning of an exploitation of `quota` examples; None means all that are left."""
        if not np.array_equal(observed, state.observed):
            state = replace(
                state,
                observed=observed,
                together=Moments.none(observed.size + 1),
                next_repair=PER_VARIABLE * observed.size + 2,
            )
        return replace(state, phase="exploit", quota=_ALL_LEFT if quota is None else quota, taken=0)

    def _repaired(self, cost_model: CostModel, state: AdaptiveState) -> AdaptiveState:
        """Return the state with the best support among the observed attributes, if the criterion prefers it."""
        support = self._best_support(cost_model, state)
        state = replace(state, next_repair=int(PATIENCE * state.together.count) + 1)
        if not (state.fitted and np.array_equal(support, state.chosen)):
            state = self._with_support(state, support, _moments_of(state, support))
        return self._refitted(replace(state, fitted=True))

    def _best_support(self, cost_model: CostModel, state: AdaptiveState) -> Array:
        """Return the best support among the observed attributes if the criterion prefers it, else the present one."""
        proposal = choose(state.together, state.observed, cost_model, self.n_nonzero_coefs, self._limit(cost_model))
        support = state.observed[proposal.chosen]
        better = not state.fitted or self._is_better(state, support, proposal.residual)
        return support if better else state.chosen

    def _is_better(self, state: AdaptiveState, support: Array, residual: float) -> bool:
        """Return whether another support lowers log RSS by more than the criterion requires."""
        exchanged = max(np.setdiff1d(support, state.chosen).size, np.setdiff1d(state.chosen, support).size)
        if not exchanged:
            return False
        present = least_squares(state.together, positions(state.observed, state.chosen)).residual
        decrease = log(max(present, _PERFECT) / max(residual, _PERFECT))
        required = required_decrease(state.together.count, state.observed.size, state.chosen.size)
        return decrease > exchanged * required

    def _with_support(self, state: AdaptiveState, support: Array, own: Moments) -> AdaptiveState:
        """Return the state with another support and its moments, and with empty scores."""
        return replace(state, chosen=support, own=own, scores=Covariances.none(state.w.size))

    def _refitted(self, state: AdaptiveState) -> AdaptiveState:
        """Return the state with the least-squares coefficients of the support."""
        if not state.fitted:
            return replace(state, intercept=float(state.own.mean[-1]))
        fit = least_squares(state.own)
        w = np.zeros(state.w.size)
        w[state.chosen[fit.chosen]] = fit.coef
        return replace(state, w=w, intercept=intercept(state.own, fit), updates=state.updates + 1)

    def _limit(self, cost_model: CostModel) -> float:
        return cost_model.prediction_limit if self.prediction_budget is None else self.prediction_budget


def _underflow(state: AdaptiveState) -> str:
    """Return a message about an attribute or target so small that its squares underflow; empty if there is none."""
    scales, own = state.scales, state.own
    square = np.append(scales.square / np.maximum(scales.count, 1), own.comoment[-1, -1] / max(own.count, 1))
    small = np.hypot(np.append(scales.mean, own.mean[-1]), np.sqrt(square))
    lost = np.flatnonzero((small > 0) & (small < SMALLEST))
    if not lost.size:
        return ""
    what = "the target" if lost[-1] == state.w.size else f"attribute {lost[0]} (counted from 0)"
    return f"{what} is so small, about {small[lost[-1]]:.1g}, that its squares underflow: rescale it"


def _moments_of(state: AdaptiveState, support: Array) -> Moments:
    """Return the moments of a support, over the examples on which all of it is known to have been observed."""
    if np.all(np.isin(support, state.chosen)):
        return state.own.of(np.append(positions(state.chosen, support), -1))
    return state.together.of(np.append(positions(state.observed, support), -1))
