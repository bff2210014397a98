"""Stochastic iterative hard thresholding: a gradient step on a batch, and the projection."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.objective import Evaluation, MeanObjective, Objective
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.solvers.start import starting_point

from .batches import BatchRule, FixedBatch, FullBatch, check_batch_rule
from .estimates import SampledState, count, estimate, first_size_rows, full_value, fully_evaluated, if_finite, on_batch
from .stream import Averaged

_MOST_TRIALS = 60  # arbitrary: halved so often, a step is below the rounding of any point


@stored("state/stochastic", upgrades=[upgrade_supports, lambda fields: fields | {"gradients": None}])
@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticState(SampledState):
    """A `SampledState` with the average of the gradients of the batches so far.

    Attributes
    ----------
    gradients : Averaged or None
        The average, that of the coming iteration's batch included; None without averaging.
    """

    gradients: Averaged | None = None


def _examples() -> list[StochasticIHT]:
    """Return solvers for the conformance tests."""
    return [
        StochasticIHT(step=0.1, batch=FullBatch()),
        StochasticIHT(step=0.1),
        StochasticIHT(step=0.1, average=0.5),
    ]


@register(
    "solver",
    "stochastic",
    _examples,
    upgrades=[lambda fields: fields | {"average": 0.0}],
)
@dataclass(frozen=True, slots=True)
class StochasticIHT(Solver):
    r"""Iterative hard thresholding on batches, :math:`w_{t+1} = P_C(w_t - \gamma \nabla f_{B_t}(w_t))`.

    Parameters
    ----------
    step : float
        :math:`\gamma > 0`, which multiplies the gradient of the mean loss.
    batch : BatchRule
        How many examples to draw; `FixedBatch(50)` by default. Rules that depend on the clipping level or the noise of
        a run stay at their first size.
    full_value_every : int, optional
        The number of iterations between computations of f on all examples for the history, each of which costs a data
        pass.
    average : float
        :math:`\beta`, in [0, 1): the gradient is replaced by an exponential average over all batches so far, in which
        the weight of earlier batches is multiplied by :math:`\beta` with each new one; 0 uses the gradient of the batch
        alone.

    Raises
    ------
    InvalidInputError
        For a step that is not a finite number > 0, and an `average` outside [0, 1).

    Notes
    -----
    The solver exists for comparison with `ProbabilisticIHT`, for `partial_fit` of the estimators, and for their `fit`
    to tables in blocks, where each block is a batch. Cost: b/n of a data pass per iteration. Guarantee: with a step
    below 1/L and rows drawn uniformly, and no average, linear convergence in expectation down to the noise of the batch
    gradient at the truth (Nguyen, Needell and Woolf 2017); it does not converge beyond this noise, and its runs end at
    the limit of iterations.

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
    average: float = 0.0

    state_type: ClassVar[type[State]] = StochasticState

    def __post_init__(self) -> None:
        checked_number("average", self.average, least=0.0, below=1.0)
        checked_number("the step", self.step, above=0.0)
        if self.full_value_every is not None:
            checked_integer("full_value_every", self.full_value_every, 1)
        check_batch_rule(self.batch)

    @property
    def requires(self) -> type:
        return Objective if isinstance(self.batch, FullBatch) else MeanObjective

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> StochasticState:
        at, projection = starting_point(objective, constraint, w0)
        rows = first_size_rows(self.batch, objective, seed, 0)
        exact = rows is None
        at = at if exact else estimate(objective, rows, at.point)
        known = full_value(objective, at, exact, 0, self.full_value_every)
        gradients = Averaged(at.gradient, 1.0) if self.average else None
        return StochasticState(
            at=at, support=projection.support, seed=seed, exact=exact, full_value=known, gradients=gradients
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> StochasticState:
        assert isinstance(state, StochasticState)
        gradients = state.gradients
        gradient = state.at.gradient if gradients is None else gradients.mean
        projection = constraint.project(state.w - self.step * gradient, state.support)
        iteration = state.iteration + 1
        rows = first_size_rows(self.batch, objective, state.seed, iteration)
        at = estimate(objective, rows, projection.point)
        return replace(
            state,
            at=at,
            gradients=None if gradients is None else gradients.and_then(at.gradient, self.average),
            support=projection.support,
            iteration=iteration,
            step=self.step,
            samples=state.samples + count(rows, objective.traits.n_rows),
            exact=rows is None,
            full_value=full_value(objective, at, rows is None, iteration, self.full_value_every),
        )

    def absorb(
        self,
        objective: Objective,
        constraint: Constraint,
        at: Evaluation,
        gradients: Averaged | None,
        weight: float,
    ) -> tuple[Projection, Averaged]:
        """Return the step from a point with a batch that is an objective of its own, and the average of the gradients.

        The step is halved as long as the batch is predicted worse afterwards than before and than by zero, so that no
        point leaves the range of numbers.

        Parameters
        ----------
        objective : Objective
            The mean loss of the batch.
        constraint : Constraint
            The set of points.
        at : Evaluation
            The objective at the point.
        gradients : Averaged or None
            The average of the gradients of earlier batches; None for the first one.
        weight : float
            The weight of the batch, such as its number of rows: short batches have less of a say in the average.

        Notes
        -----
        Cost: s/d of a data pass of the batch for each trial, with s of d entries of the point non-zero.
        """
        new = at.gradient
        gradients = Averaged(new, weight) if gradients is None else gradients.and_then(new, self.average, weight)
        worst, step = max(at.value, objective.value(objective.null_point())), self.step
        for _ in range(_MOST_TRIALS):
            projection = constraint.project(at.point - step * gradients.mean)
            value = if_finite(lambda point=projection.point: objective.value(point))  # type: ignore[misc]
            if value is not None and value <= worst:
                return projection, gradients
            step *= 0.5
        return constraint.project(at.point), gradients

    def recall(self, objective: Objective, state: State) -> float:
        rows = None if state.exact else first_size_rows(self.batch, objective, state.seed, state.iteration)
        return on_batch(objective, rows).value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        assert isinstance(state, StochasticState)
        return fully_evaluated(objective, state)
