"""The Dantzig selector with moments estimated from s' random attributes of each example (after Kale et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
from scipy.optimize import linprog

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import HardThreshError, InvalidInputError
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
    require_uniform_prices,
)
from hardthresh.limited.cost_model import CostModel

_HELD = 256  # examples that one product adds to the moments, because each product writes d^2 numbers; arbitrary


@stored("state/dantzig")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DantzigState(AlgorithmState):
    """The state of `DantzigSelector`: sums over examples, and the latest examples, which are not in the sums yet.

    Attributes
    ----------
    products : array, shape (d, d)
        The sums of x_j x_k over the examples on which both were observed.
    correlations : array, shape (d,)
        The sums of x_j y over the examples on which x_j was observed.
    squares : float
        The sum of y^2.
    observed : int array, shape (s',)
        The attributes to observe of the next example.
    held : int array, shape (m, s')
        The observed attributes of the m examples that are not in the sums yet.
    values : array, shape (m, s' + 1)
        The values of these attributes, and the target in the last column.
    failure : str
        Why the linear program was not solved; an empty string if it was solved, or not tried.
    """

    products: Array
    correlations: Array
    squares: float = 0.0
    observed: Array
    held: Array
    values: Array
    failure: str = ""

    def accumulated(self) -> tuple[Array, ...]:
        return self.products.diagonal(), self.correlations, np.asarray(self.squares)


@register(
    "algorithm",
    "dantzig",
    lambda: [DantzigSelector(n_nonzero_coefs=3)],
    upgrades=[renames(n_nonzero="n_nonzero_coefs")],
)
@dataclass(frozen=True)
class DantzigSelector(Algorithm[DantzigState]):
    r"""The Dantzig selector, with second moments estimated from s' random attributes of each example.

    .. math:: \hat w = \arg\min \|w\|_1 \quad \text{subject to} \quad \|\hat b - \hat Σ w\|_\infty \le λ,
              \qquad λ = c \sqrt{\frac{d \log d}{s' n}} \sqrt{\overline{y^2}}

    The estimates of E x y and E x x^T from n examples, b and Σ with hats, are unbiased: the sums of the observed
    products, divided by n and by the probability of observing them, which is s'/d for b and for the diagonal of Σ, and
    s'(s' - 1)/(d(d - 1)) for pairs. The solution is truncated to its s coefficients of largest modulus. The linear
    program is solved once, at the end; before, the coefficients are 0. They remain 0 if it has no solution, because λ
    is too small for the noise of the moments; `failure_reason` then says so.

    Parameters
    ----------
    n_nonzero_coefs : int >= 0
        s <= s'.
    c : float > 0
        The constant c of λ.
    seed : int >= 0
        The seed of the random choice of attributes.

    Raises
    ------
    CapabilityError
        When learning starts, for attributes with different prices or in panels.
    InvalidInputError
        For settings out of range. When learning starts, also for s' < 2 (unless d = 1) and for a starting point w0.

    Notes
    -----
    Cost: one pass over the examples; O(d^2) memory for the second moments; O(d^2) operations per example; and a dense
    linear program with d equations, solved by HiGHS, which takes seconds for d = 500 and time proportional to d^3.
    There is no intercept, so attributes and target should have mean 0. Guarantee: none for this class (heuristic). Kale
    et al. (2017) prove a bound under the restricted isometry property for an online algorithm, which solves such a
    program repeatedly: O~(d s*^2/s' (sigma + d/s')^2 / eps) examples for an excess risk of eps. This class solves it
    only after the last example.

    References
    ----------
    E. Candes and T. Tao (2007), *The Dantzig selector*, Annals of Statistics 35(6); S. Kale, Z. Karnin, T. Liang and
    D. Pal (2017), *Adaptive feature selection: computationally efficient online sparse linear regression under RIP*,
    ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource, learn
    >>> X = np.random.default_rng(0).standard_normal((4000, 12))
    >>> source = ArraySource(X, X[:, 1] - X[:, 7], n_observed=6)
    >>> result = learn(DantzigSelector(n_nonzero_coefs=2), source)
    >>> result.support, result.w[[1, 7]].round(1), result.meter.max_per_example
    (array([1, 7]), array([ 0.9, -1. ]), 6)
    """

    n_nonzero_coefs: int
    c: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        checked_sparsity(self.n_nonzero_coefs)
        checked_number("c", self.c, above=0.0)
        checked_integer("seed", self.seed, least=0)

    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> DantzigState:
        """Return the state before the first example."""
        if w0 is not None:
            raise InvalidInputError("the Dantzig selector has no starting point; leave w0 out")
        require_uniform_prices(cost_model, self)
        d, width = cost_model.n_features, cost_model.n_observed
        if width < min(2, d):
            raise InvalidInputError("products of two attributes are needed, so n_observed must be at least 2")
        checked_sparsity(self.n_nonzero_coefs, width)
        return DantzigState(
            w=np.zeros(d),
            length=length,
            products=np.zeros((d, d)),
            correlations=np.zeros(d),
            observed=self._subset(d, width, 0),
            held=np.zeros((0, width), dtype=np.intp),
            values=np.zeros((0, width + 1)),
        )

    def query(self, cost_model: CostModel, state: DantzigState) -> Query | None:
        """Return a query of a random subset of the attributes, for one example."""
        return Query(state.observed, 1)

    def absorb(self, cost_model: CostModel, state: DantzigState, indices: Array, x: Array, y: Array) -> DantzigState:
        """Store the example; after every 256 examples add the stored ones to the moments."""
        now = replace(
            state,
            held=np.vstack([state.held, indices]),
            values=np.vstack([state.values, np.column_stack([x, y])]),
            observed=self._subset(cost_model.n_features, indices.size, state.seen + 1),
            seen=state.seen + 1,
        )
        return _summed(now) if len(now.held) >= _HELD else now

    def finalize(self, cost_model: CostModel, state: DantzigState) -> DantzigState:
        """Return the state with the s coefficients of largest modulus of the solution."""
        if state.seen == 0:
            return state
        state = _summed(state)
        second, first = moments(cost_model, state)
        try:
            solution = selector(second, first, self.penalty(cost_model, state))
        except HardThreshError as error:
            return replace(state, failure=str(error))
        return replace(state, w=hard_threshold(solution, self.n_nonzero_coefs), updates=state.updates + 1)

    def failure_reason(self, state: DantzigState) -> str:
        """Return why there is no solution: there were no examples, or the program has none; otherwise empty."""
        return state.failure if state.seen else "there were no examples"

    def penalty(self, cost_model: CostModel, state: DantzigState) -> float:
        """Return λ, the largest admissible difference of correlations, after all examples of a state."""
        d, n = cost_model.n_features, state.seen
        squares = state.squares + float(np.sum(state.values[:, -1] ** 2))
        return self.c * sqrt(d * log(d) / (cost_model.n_observed * n)) * sqrt(squares / n)

    def _subset(self, d: int, width: int, example: int) -> Array:
        drawn = generator(self.seed, example, Purpose.EXPLORED_ATTRIBUTES).choice(d, width, replace=False)
        return np.sort(drawn)


def moments(cost_model: CostModel, state: DantzigState) -> tuple[Array, Array]:
    """Return unbiased estimates of E x x^T, shape (d, d), and E x y, shape (d,)."""
    state = _summed(state)
    d, width, n = cost_model.n_features, cost_model.n_observed, max(1, state.seen)
    single = width / d
    pair = single * (width - 1) / (d - 1) if d > 1 else 1.0
    second = state.products / (n * pair)
    np.fill_diagonal(second, np.diagonal(state.products) / (n * single))
    return second, state.correlations / (n * single)


def selector(second: Array, first: Array, penalty: float) -> Array:
    """Return the w of smallest l1 norm for which |first - second w| <= penalty in every entry.

    Raises
    ------
    HardThreshError
        If there is no solution, none was found, or the moments are not finite.
    """
    if not (np.all(np.isfinite(second)) and np.all(np.isfinite(first))):
        raise HardThreshError("the moments overflow: rescale the attributes or the target")
    d = first.size
    system = np.hstack([second, -second, -np.eye(d)])  # w = u - v, and second w - r = first
    bounds = [(0.0, None)] * (2 * d) + [(-penalty, penalty)] * d
    cost = np.concatenate([np.ones(2 * d), np.zeros(d)])
    found = linprog(cost, A_eq=system, b_eq=first, bounds=bounds, method="highs")
    if found.x is None:
        raise HardThreshError(f"the linear program of the Dantzig selector has no solution: {found.message}; raise c")
    solution: Array = found.x[:d] - found.x[d : 2 * d]
    return solution


def _summed(state: DantzigState) -> DantzigState:
    """Return the state after adding the stored examples to the moments."""
    if not len(state.held):
        return state
    rows = np.zeros((len(state.held), state.w.size))
    np.put_along_axis(rows, state.held, state.values[:, :-1], axis=1)
    y = state.values[:, -1]
    return replace(
        state,
        products=state.products + rows.T @ rows,
        correlations=state.correlations + y @ rows,
        squares=state.squares + float(y @ y),
        held=state.held[:0],
        values=state.values[:0],
    )
