"""A reconstruction of regularised dual averaging from s' attributes of each example (Ito et al. 2017).

We had no access to the paper of Ito et al. The step, the proximal term and the gradient follow the comparison in Murata
and Suzuki (2018), and the dual averaging of Xiao (2010). So results of this class say nothing about the original
algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal, get_args

import numpy as np

from hardthresh.arrays import top_k
from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.randomness import Purpose, generator
from hardthresh.core.registry import register
from hardthresh.core.schema import renames, stored
from hardthresh.core.typing import Array
from hardthresh.limited.contract import (
    Algorithm,
    AlgorithmState,
    Query,
    checked_sparsity,
    hard_threshold,
    positions,
    require_uniform_prices,
)
from hardthresh.limited.cost_model import CostModel

At = Literal["truncated", "dense"]


@stored("state/dual_averaging")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DualAveragingState(AlgorithmState):
    """The state of `RegularizedDualAveraging`, between two examples.

    Attributes
    ----------
    summed : array, shape (d,)
        The sum of all gradient estimates.
    dense : array, shape (d,)
        The dual average w_t; `w` is H_s(w_t).
    chosen : int array
        S_t, the indices of the s coefficients of w_t of largest modulus.
    observed : int array
        S_t and the random U_t, the attributes to observe of the next example.
    """

    summed: Array
    dense: Array
    chosen: Array
    observed: Array


@register(
    "algorithm",
    "dual_averaging",
    lambda: [
        RegularizedDualAveraging(n_nonzero_coefs=3, gamma=12.0),
        RegularizedDualAveraging(n_nonzero_coefs=3, gamma=40.0, gradient="dense"),
    ],
    upgrades=[renames(n_nonzero="n_nonzero_coefs")],
)
@dataclass(frozen=True)
class RegularizedDualAveraging(Algorithm[DualAveragingState]):
    r"""Regularised dual averaging of unbiased gradients, one example at a time (a reconstruction of Ito et al. 2017).

    .. math:: w_{t+1} = \arg\min_w \Bigl\langle \frac1t \sum_{i \le t} g_i, w \Bigr\rangle + λ \|w\|_1
              + \frac{γ}{2 \sqrt t} \|w\|_2^2

    Two sets of attributes of example t are observed: S_t, the s coordinates of w_t of largest modulus, and U_t, s' - s
    of the others, drawn uniformly. The observed terms of the gradient are divided by the probability of observing them,
    so that g_t is unbiased. The predictor is H_s(w_t), which has the coefficients of w_t on S_t, and 0 elsewhere.

    Parameters
    ----------
    n_nonzero_coefs : int >= 0
        s < s', or s <= s' if s' = d.
    gamma : float > 0
        γ, the weight of the proximal term. The gradient is that of (a - y)^2, with the factor 2.
    l1 : float >= 0
        λ, the weight of the l1 norm.
    gradient : {"truncated", "dense"}
        The point at which g_t is the gradient. "truncated" is H_s(w_t), whose support is observed. "dense" is w_t,
        which needs products of pairs of attributes in U_t; it is probably the published choice, and much noisier.
    seed : int >= 0
        The seed of the random choice of U_t.

    Raises
    ------
    CapabilityError
        When learning starts, for attributes with different prices or in panels.
    InvalidInputError
        For settings out of range. When learning starts, also for a starting point w0; if s' - s < 1 and s' < d; and for
        "dense" if s' - s = 1 and more than one attribute is outside of S_t, so that U_t contains no pair.

    Notes
    -----
    Cost: one pass over the examples; one example and O(d) operations per update; O(d) memory. Guarantee: none
    (heuristic). Murata and Suzuki (2018) state that the original algorithm needs a number of examples proportional to
    1/ε^2 for an excess risk of ε if the attributes are linearly independent; the dense gradient is closest to it. For
    standardised, independent attributes without noise, w_t differs from the true coefficients by about the fraction
    γ / (4 sqrt(t)).

    References
    ----------
    S. Ito, D. Hatano, H. Sumita, A. Yabe, T. Fukunaga, N. Kakimura and K. Kawarabayashi (2017), *Efficient
    sublinear-regret algorithms for online sparse linear regression with limited observation*, NeurIPS; L. Xiao (2010),
    *Dual averaging methods for regularized stochastic learning and online optimization*, JMLR 11.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource, learn
    >>> X = np.random.default_rng(0).standard_normal((4000, 12))
    >>> source = ArraySource(X, X[:, 1] - X[:, 7], n_observed=6)
    >>> result = learn(RegularizedDualAveraging(n_nonzero_coefs=2, gamma=5.0), source)
    >>> result.support, result.meter.max_per_example, result.w[[1, 7]].round(1)
    (array([1, 7]), 6, array([ 1., -1.]))
    """

    n_nonzero_coefs: int
    gamma: float
    l1: float = 0.0
    gradient: At = "truncated"
    seed: int = 0

    def __post_init__(self) -> None:
        checked_sparsity(self.n_nonzero_coefs)
        checked_number("gamma", self.gamma, above=0.0)
        checked_number("l1", self.l1, least=0.0)
        checked_word("gradient", self.gradient, get_args(At))
        checked_integer("seed", self.seed, least=0)

    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> DualAveragingState:
        """Return the state at w = 0, for which S_1 is the lowest indices."""
        if w0 is not None:
            raise InvalidInputError("dual averaging starts from 0, which its proximal term pulls to; leave w0 out")
        require_uniform_prices(cost_model, self)
        checked_sparsity(self.n_nonzero_coefs, cost_model.count_for(cost_model.prediction_limit))
        spare, outside = self._drawn(cost_model)
        if self.gradient == "dense" and spare == 1 < outside:
            raise InvalidInputError(
                "gradient='dense' needs pairs of explored attributes: n_observed must be at least "
                f"{self.n_nonzero_coefs + 2}, got {cost_model.n_observed}"
            )
        zero = np.zeros(cost_model.n_features)
        none = np.empty(0, dtype=np.intp)
        state = DualAveragingState(w=zero, length=length, summed=zero, dense=zero, chosen=none, observed=none)
        return self._about_to_see(cost_model, state)

    def query(self, cost_model: CostModel, state: DualAveragingState) -> Query | None:
        """Return a query of S_t and U_t for one example."""
        return Query(state.observed, 1)

    def absorb(
        self, cost_model: CostModel, state: DualAveragingState, indices: Array, x: Array, y: Array
    ) -> DualAveragingState:
        """Add the gradient of the example, and compute the next w_t."""
        (row,), (target,) = x, y
        summed = state.summed.copy()
        summed[indices] += self.estimate(cost_model, state, indices, row, float(target))
        t = state.seen + 1
        dense = -np.sign(summed) * np.maximum(np.abs(summed) - self.l1 * t, 0.0) / (self.gamma * sqrt(t))
        now = replace(state, summed=summed, dense=dense, seen=t, updates=t)
        return self._about_to_see(cost_model, now)

    def estimate(self, cost_model: CostModel, state: DualAveragingState, indices: Array, x: Array, y: float) -> Array:
        """Return g_t from one example, at the observed `indices`; it is 0 elsewhere.

        The probabilities of observing an attribute outside of S_t, and a pair of them, are ``p = |U_t| / (d - s)`` and
        ``p_2 = p (|U_t| - 1) / (d - s - 1)``.
        """
        spare, outside = self._drawn(cost_model)
        certain = np.zeros(indices.size, dtype=bool)
        certain[positions(indices, state.chosen)] = True
        p = spare / outside if outside else 1.0
        chance = np.where(certain, 1.0, p)
        term = x * state.dense[indices]
        prediction = float(np.sum(term[certain]))
        if self.gradient == "truncated":
            return 2 * (prediction - y) * x / chance
        pair = p * (spare - 1) / (outside - 1) if outside > 1 else 1.0
        explored = float(np.sum(term[~certain]))
        seen_with = prediction + np.where(certain, explored / p, (explored - term) * p / pair + term)
        return 2 * (seen_with - y) * x / chance

    def _drawn(self, cost_model: CostModel) -> tuple[int, int]:
        """Return the size of U_t, and the number of attributes outside of S_t."""
        outside = max(0, cost_model.n_features - self.n_nonzero_coefs)
        return min(cost_model.n_observed - self.n_nonzero_coefs, outside), outside

    def _about_to_see(self, cost_model: CostModel, state: DualAveragingState) -> DualAveragingState:
        """Return the state with S_t, U_t and the predictor."""
        w = hard_threshold(state.dense, self.n_nonzero_coefs)
        if not np.all(np.isfinite(w)):
            return replace(state, w=w)
        chosen = top_k(np.abs(state.dense), self.n_nonzero_coefs)
        spare, _ = self._drawn(cost_model)
        others = np.ones(cost_model.n_features, dtype=bool)
        others[chosen] = False
        draw = generator(self.seed, state.seen, Purpose.EXPLORED_ATTRIBUTES)
        explored = draw.choice(np.flatnonzero(others), spare, replace=False)
        return replace(state, w=w, chosen=chosen, observed=np.sort(np.concatenate([chosen, explored])))
