"""Exploration: Algorithm 1 of Murata and Suzuki, as published.

T. Murata and T. Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method for stochastic
sparse linear regression with limited attribute observation*, NeurIPS. Their loss is (a - y)^2 without the factor 1/2,
so gradients have a factor 2, and L = 2 lambda_max(E x x^T).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, ClassVar

import numpy as np

from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.schema import renames, stored
from hardthresh.core.typing import Array, is_integer
from hardthresh.limited.contract import (
    Algorithm,
    AlgorithmState,
    Query,
    State,
    batch_size,
    checked_sparsity,
    hard_threshold,
    positions,
    require_uniform_prices,
    starting_point,
)
from hardthresh.limited.cost_model import CostModel

from .schedules import Schedule, scheduled


@stored("state/exploration")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplorationState(AlgorithmState):
    """The state of `Exploration`, possibly within an update.

    Attributes
    ----------
    gradient : array, shape (d,)
        g_t on the complete blocks, and 0 elsewhere.
    block, taken : int
        The number of the present block, and the number of its examples so far.
    partial : array
        The sum of the gradients of these examples, restricted to the block.
    """

    gradient: Array
    partial: Array = field(default_factory=lambda: np.zeros(0))
    block: int = 0
    taken: int = 0


class GradientSteps(Algorithm[State]):
    """Base class of the published algorithms that take gradient steps: a step, batches and a number of updates."""

    takes_steps: ClassVar[bool] = True

    step: float
    batches: Schedule
    max_updates: int | None

    def __post_init__(self) -> None:
        check_step(self.step, self.max_updates)

    def finished(self, state: State) -> bool:
        """Return whether `max_updates` updates have been made."""
        return state.updates == self.max_updates

    def batch(self, state: State) -> int:
        """Return B_t, the number of examples of the present update (for `Exploration`, of each of its blocks)."""
        return scheduled(self.batches, state.updates + 1, "batches")


@register(
    "algorithm",
    "exploration",
    lambda: [Exploration(step=0.25, batches=20, n_nonzero_coefs=3)],
    upgrades=[renames(n_nonzero="n_nonzero_coefs")],
)
@dataclass(frozen=True)
class Exploration(GradientSteps[ExplorationState]):
    """Stochastic iterative hard thresholding, with the gradient computed in blocks of attributes (Algorithm 1).

    .. math:: g_t|_{J_i} = \\frac{1}{B_t} \\sum_b 2 (θ_{t-1}^T x_i^{(b)} - y_i^{(b)}) x_i^{(b)}|_{J_i},
              \\qquad θ_t = H_s(θ_{t-1} - η g_t)

    for the d' = ceil(d / (s' - s)) blocks J_i of s' - s consecutive attributes. H_s keeps the s entries of largest
    modulus. Each block uses B_t examples of its own, in which it is observed together with the support of θ_{t-1}.
    Since the whole support is observed, g_t is unbiased.

    Parameters
    ----------
    step : float > 0
        η, which multiplies the gradient of (a - y)^2. The theory requires η < 1/(2 L_s). In practice it must be much
        smaller, because the noise of the gradient has the same effect as curvature: for standardised attributes 0.3
        needs batches of about 4 s examples.
    batches : int or callable
        B_t, the number of examples of each block, >= 1: an integer, or a function of t = 1, 2, ..., such as
        `Geometric`.
    n_nonzero_coefs : int >= 0
        s < s'.
    max_updates : int >= 1, optional
        T. With None, updates continue until the source has too few examples for another one.

    Raises
    ------
    CapabilityError
        When learning starts, for attributes with different prices or in panels: use `AdaptiveHybrid`.
    InvalidInputError
        For settings out of range.

    Notes
    -----
    Cost: an update uses d' B_t examples and at most s' attributes of each; O(s') operations per example, O(d) memory.
    One pass over the examples. Guarantee: with s = O(kappa^2 s*), η = Theta(1/L_s) and sufficiently large batches, the
    excess risk converges linearly with high probability (Theorem 4.1), and O~(d s*^2/s' + d s* sigma^2/(s' eps))
    examples are enough for an excess risk of eps (Corollary 4.2). The coefficients diverge if the step is too long.

    References
    ----------
    T. Murata and T. Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method for
    stochastic sparse linear regression with limited attribute observation*, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource, learn
    >>> X = np.random.default_rng(0).standard_normal((4000, 12))
    >>> source = ArraySource(X, X[:, 1] - X[:, 7], n_observed=6)
    >>> result = learn(Exploration(step=0.25, batches=40, n_nonzero_coefs=2, max_updates=12), source)
    >>> result.support, result.meter.examples, result.meter.max_per_example
    (array([1, 7]), 1440, 6)
    """

    step: float
    batches: Schedule
    n_nonzero_coefs: int
    max_updates: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_sparsity(self.n_nonzero_coefs)

    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> ExplorationState:
        """Return the state at H_s(w0)."""
        require_uniform_prices(cost_model, self)
        checked_sparsity(self.n_nonzero_coefs, cost_model.n_observed - 1)
        w = hard_threshold(starting_point(cost_model, w0), self.n_nonzero_coefs)
        return ExplorationState(w=w, gradient=np.zeros_like(w), length=length)

    def query(self, cost_model: CostModel, state: ExplorationState) -> Query | None:
        """Return a query of the present block and the support; None if there are too few examples for the update."""
        batch = self.batch(state)
        needed = (self.blocks(cost_model) - state.block) * batch - state.taken
        if self.finished(state) or state.left < needed:
            return None
        indices = np.union1d(self._block(cost_model, state.block), state.support)
        return Query(indices, batch_size(cost_model, batch - state.taken))

    def absorb(
        self, cost_model: CostModel, state: ExplorationState, indices: Array, x: Array, y: Array
    ) -> ExplorationState:
        """Add the answers to the gradient; take the step when all blocks are complete."""
        block = self._block(cost_model, state.block)
        partial = summed_gradients(state.w, indices, x, y, block) + (state.partial if state.taken else 0.0)
        now = replace(state, partial=partial, taken=state.taken + len(y), seen=state.seen + len(y))
        if now.taken < self.batch(now):
            return now
        gradient = now.gradient.copy()
        gradient[block] = partial / now.taken
        if now.block + 1 < self.blocks(cost_model):
            return replace(now, gradient=gradient, block=now.block + 1, taken=0)
        w = hard_threshold(now.w - self.step * gradient, self.n_nonzero_coefs)
        return replace(now, w=w, updates=now.updates + 1, gradient=np.zeros_like(w), block=0, taken=0)

    def blocks(self, cost_model: CostModel) -> int:
        """Return d', the number of blocks of the gradient."""
        return ceil(cost_model.n_features / self._width(cost_model))

    def _width(self, cost_model: CostModel) -> int:
        return cost_model.n_observed - self.n_nonzero_coefs

    def _block(self, cost_model: CostModel, number: int) -> Array:
        width = self._width(cost_model)
        return np.arange(number * width, min((number + 1) * width, cost_model.n_features))


def summed_gradients(w: Array, indices: Array, x: Array, y: Array, block: Array) -> Array:
    """Return the sum over examples of l'(w_S^T x_S) x_J, for l(a) = (a - y)^2, the support S of w and a block J."""
    support = np.flatnonzero(w)
    residual = x[:, positions(indices, support)] @ w[support] - y
    summed: Array = 2 * (residual @ x[:, positions(indices, block)])
    return summed


def check_step(step: Any, rounds: Any) -> None:
    """Raise InvalidInputError unless a step is positive, and a number of updates or rounds is None or >= 1."""
    checked_number("step", step, above=0.0)
    if not (rounds is None or (is_integer(rounds) and rounds >= 1)):
        raise InvalidInputError(f"the number of updates or rounds must be None or an integer >= 1, got {rounds!r}")
