"""Dual averaging with rounds of exploration: Algorithms 2 and 3 of Ito et al. (2017), as far as they can be inferred.

Only the abstract of that paper was at hand. Murata and Suzuki (2018) say that these algorithms need no more observed
attributes than the support has, and that their sample complexity is O((d / s')^16 + d σ^2 / ε^2), under linear
independence of the attributes (Algorithm 2) or compatibility (Algorithm 3). That is what dual averaging attains if it
explores in √T of T rounds, which is the most that a regret of √T allows: there all s' attributes are drawn uniformly,
and in the other rounds only the s largest coefficients are observed. The l1 norm makes Algorithm 3 of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from hardthresh.arrays import top_k
from hardthresh.core.typing import Array
from hardthresh.limited import CostModel, RegularizedDualAveraging
from hardthresh.limited.algorithms.dual_averaging import DualAveragingState
from hardthresh.limited.contract import hard_threshold

_EXPLORES, _SUBSET = 3, 4  # the purposes of random numbers


@dataclass(frozen=True)
class ExploringDualAveraging(RegularizedDualAveraging):
    """Dual averaging that explores in round t with probability 1 / √t, and else observes the s largest coefficients.

    Products that are observed are divided by the probability of observing them, so that the gradient is unbiased at w_t
    ("dense") or at H_s(w_t) ("truncated"). Exploring rounds may leave out the support, so that the learner has no
    predictor before the end.
    """

    def estimate(self, cost_model: CostModel, state: DualAveragingState, indices: Array, x: Array, y: float) -> Array:
        """Return g_t at the observed `indices`."""
        d, width = cost_model.n_features, cost_model.n_observed
        explores = 1.0 / sqrt(state.seen + 1)
        single = width / d
        pair = single * (width - 1) / (d - 1)
        kept = np.isin(indices, state.chosen)
        alone = explores * single + (1.0 - explores) * kept
        together = explores * pair + (1.0 - explores) * np.outer(kept, kept)
        np.fill_diagonal(together, alone)
        w = state.dense if self.gradient == "dense" else hard_threshold(state.dense, self.n_nonzero_coefs)
        gradient: Array = 2.0 * x * ((x * w[indices] / together).sum(axis=1) - y / alone)
        return gradient

    def finalize(self, cost_model: CostModel, state: DualAveragingState) -> DualAveragingState:
        """Return the state with the s largest coefficients."""
        return replace(state, w=hard_threshold(state.dense, self.n_nonzero_coefs))

    def _about_to_see(self, cost_model: CostModel, state: DualAveragingState) -> DualAveragingState:
        """Return the state with S_t, and what is observed of the next example."""
        chosen = np.sort(top_k(np.abs(state.dense), self.n_nonzero_coefs))
        explores = np.random.default_rng((self.seed, state.seen, _EXPLORES)).random() < 1.0 / sqrt(state.seen + 1)
        draw = np.random.default_rng((self.seed, state.seen, _SUBSET))
        subset = np.sort(draw.choice(cost_model.n_features, cost_model.n_observed, replace=False))
        return replace(state, chosen=chosen, observed=subset if explores else chosen)
