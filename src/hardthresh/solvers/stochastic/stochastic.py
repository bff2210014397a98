"""Stochastic iterative hard thresholding: a gradient step on a batch, and the projection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import MeanObjective, Objective
from hardthresh.core.registry import register
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.typing import Array
from hardthresh.solvers.start import starting_point

from .batches import BatchRule, FixedBatch, FullBatch, check_batch_rule
from .estimates import SampledState, count, estimate, first_size_rows, full_value, fully_evaluated, on_batch


@register("solver", "stochastic", lambda: [StochasticIHT(step=0.1, batch=FullBatch()), StochasticIHT(step=0.1)])
@dataclass(frozen=True, slots=True)
class StochasticIHT(Solver):
    r"""Iterative hard thresholding on batches, :math:`w_{t+1} = P_C(w_t - \gamma \nabla f_{B_t}(w_t))`.

    Parameters
    ----------
    step : float
        :math:`\gamma > 0`; it multiplies the gradient of the mean loss.
    batch : BatchRule
        How many examples to draw; `FixedBatch(50)` by default. Rules that depend on the clipping level or the noise of
        a run stay at their first size.
    full_value_every : int, optional
        After how many iterations each to compute f on all examples for the history, at the cost of a data pass.

    Raises
    ------
    InvalidInputError
        For a step that is not a finite number > 0.

    Notes
    -----
    Included for comparison with `ProbabilisticIHT`. Cost: b/n of a data pass per iteration. Guarantee: with a step
    below 1/L and rows drawn uniformly, linear convergence in expectation down to the noise of the batch gradient at the
    truth (Nguyen, Needell and Woolf 2017); it does not converge beyond that, and its runs end at their limit of
    iterations.

    References
    ----------
    Nguyen, Needell and Woolf (2017), *Linear convergence of stochastic iterative greedy algorithms with sparse
    constraints*, Algorithm StoIHT.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import StochasticIHT, minimize
    >>> X = np.random.default_rng(0).standard_normal((2000, 100))
    >>> f = LinearModel(X, X[:, 3] - 2.0 * X[:, 7])
    >>> minimize(f, Sparsity(2), StochasticIHT(step=0.5), max_iter=50, tol=0.0).support
    Coordinates([3, 7])
    """

    step: float
    batch: BatchRule = field(default_factory=lambda: FixedBatch(50))
    full_value_every: int | None = None

    state_type: ClassVar[type[State]] = SampledState

    def __post_init__(self) -> None:
        checked_number("the step", self.step, above=0.0)
        if self.full_value_every is not None:
            checked_integer("full_value_every", self.full_value_every, 1)
        check_batch_rule(self.batch)

    @property
    def requires(self) -> type:
        return Objective if isinstance(self.batch, FullBatch) else MeanObjective

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> SampledState:
        at, projection = starting_point(objective, constraint, w0)
        rows = first_size_rows(self.batch, objective, seed, 0)
        exact = rows is None
        at = at if exact else estimate(objective, rows, at.point)
        known = full_value(objective, at, exact, 0, self.full_value_every)
        return SampledState(at=at, support=projection.support, seed=seed, exact=exact, full_value=known)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> SampledState:
        assert isinstance(state, SampledState)
        projection = constraint.project(state.w - self.step * state.at.gradient, state.support)
        iteration = state.iteration + 1
        rows = first_size_rows(self.batch, objective, state.seed, iteration)
        at = estimate(objective, rows, projection.point)
        return replace(
            state,
            at=at,
            support=projection.support,
            iteration=iteration,
            step=self.step,
            samples=state.samples + count(rows, objective.traits.n_rows),
            exact=rows is None,
            full_value=full_value(objective, at, rows is None, iteration, self.full_value_every),
        )

    def recall(self, objective: Objective, state: State) -> float:
        rows = None if state.exact else first_size_rows(self.batch, objective, state.seed, state.iteration)
        return on_batch(objective, rows).value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        assert isinstance(state, SampledState)
        return fully_evaluated(objective, state)
