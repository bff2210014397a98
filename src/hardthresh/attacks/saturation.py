"""A greedy search: pixels are added a few at a time, each moved to an end of the range in every image."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import BlockBudget, Constraint, CoordinateBudget
from hardthresh.core.errors import CapabilityError, format_value
from hardthresh.core.objective import Objective
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.typing import Array
from hardthresh.solvers import BatchRule, FixedBatch
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.stochastic.batches import check_batch_rule
from hardthresh.solvers.stochastic.estimates import (
    SampledState,
    count,
    estimate,
    first_size_rows,
    fully_evaluated,
    on_batch,
)

from .model import check_target
from .problem import Attack

_BATCH = 500  # images; measured: with 2,000, searches on MNIST mislead up to three hundredths more or less of them
_CANDIDATES = 5  # arbitrary; with 1 the gain to first order, which misjudges convolutions, decides
_ROUNDS = 100  # arbitrary: a budget of up to 100 pixels is used one by one
_FULL = "the budget is used up"
_NOTHING = "no full move of another pixel lowers the hinge to first order"


@stored("solver/greedy_saturation")
@dataclass(frozen=True, slots=True)
class GreedySaturation(Solver):
    r"""Greedy search for the objective `Attack`: add pixels one by one, each set to an end of the range in every image.

    .. math:: G_j = \max_{v \in \{a, b\}} \frac1m \sum_i \frac{\partial \bar h_i}{\partial x_{ij}'} (x_{ij}' - v),
              \qquad \bar h_i = \max\bigl(h(Z(x_i'), y_i), -\kappa\bigr)

    :math:`G_j` is the decrease, to first order, of the mean hinge on m images if entry j of every perturbed image moves
    to an end v of the range [a, b]. In each iteration, these moves are tried for the single pixels with the largest
    sums of positive :math:`G_j`, and the pixel with the lowest mean hinge is added.

    Parameters
    ----------
    target : int, optional
        Choose pixels by the hinge towards this class instead of that of the objective. The strongest perturbation
        without a target often moves most images to one class.
    batch : BatchRule
        The number of images to draw in an iteration. Default: `FixedBatch(500)`. Only the first size of other rules is
        used.
    candidates : int
        The number of pixels tried in an iteration, >= 1; with 1 the first-order gain decides.
    rounds : int
        The largest number of iterations, >= 1: each adds ``ceil(k / rounds)`` pixels.

    Raises
    ------
    CapabilityError
        By `check`, for another objective, or a constraint other than `Sparsity` and `GroupSparsity`.
    InvalidInputError
        By `check`, for a target that is not a class of the model.

    Notes
    -----
    Without a target, the first pixels increase the distance by more than they decrease the hinge. Gradient steps on f
    from zero therefore find no small perturbation, although several pixels together do mislead the model, and this
    search ignores the distance. Cost: ``4 + candidates`` calls of the model on a batch per iteration. Guarantee:
    heuristic; a pixel that was added is not changed again.

    Examples
    --------
    >>> import torch
    >>> from hardthresh.attacks import Attack, GreedySaturation
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.solvers import minimize
    >>> f = Attack(lambda x: x[:, :2] * torch.tensor([1.0, 3.0]), torch.full((5, 4), 0.5), target=1)
    >>> minimize(f, Sparsity(1), GreedySaturation()).w
    tensor([0., 1., 0., 0.])
    """

    target: int | None = None
    batch: BatchRule = field(default_factory=lambda: FixedBatch(_BATCH))
    candidates: int = _CANDIDATES
    rounds: int = _ROUNDS

    state_type: ClassVar[type[State]] = SampledState

    def __post_init__(self) -> None:
        if self.target is not None:
            object.__setattr__(self, "target", checked_integer("target", self.target, 0))
        check_batch_rule(self.batch)
        checked_integer("candidates", self.candidates, 1)
        checked_integer("rounds", self.rounds, 1)

    def check(self, objective: Objective, constraint: Constraint) -> None:
        if not isinstance(objective, Attack) or not isinstance(constraint, Sparsity | GroupSparsity):
            raise CapabilityError(
                "GreedySaturation works on an Attack over Sparsity(k) or GroupSparsity, got "
                f"{type(objective).__name__} over {format_value(constraint)}"
            )
        check_target(self.target, objective.n_classes)

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> SampledState:
        at, projection = starting_point(objective, constraint, w0)
        rows = first_size_rows(self.batch, objective, seed, 0)
        at = at if rows is None else estimate(objective, rows, at.point)
        # never exact, also on all images: f itself may grow, which the loop takes for a failure
        return SampledState(at=at, support=projection.support, seed=seed, exact=False)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> SampledState:
        assert isinstance(objective, Attack)
        assert isinstance(constraint, Sparsity | GroupSparsity)
        assert isinstance(state, SampledState)
        structure = constraint.structure(tuple(objective.shape))
        assert isinstance(structure, CoordinateBudget | BlockBudget)
        used, budget = structure.selected(state.support), min(structure.budget, structure.candidates)
        if used >= budget:
            return replace(state, iteration=state.iteration + 1, settled=_FULL)
        rows = first_size_rows(self.batch, objective, state.seed, state.iteration)
        sampled = on_batch(objective, rows)
        assert isinstance(sampled, Attack)
        trials = self._trials(sampled, constraint, state.w, used)
        if self.candidates > 1:
            trials.sort(key=lambda trial: sampled.mean_hinge(trial, self.target))
        xp, w = namespace(state.w), state.w
        for trial in trials[: ceil(budget / self.rounds)]:
            w = xp.where(w == 0, trial, w)
        projection = constraint.project(w)
        iteration, size = state.iteration + 1, structure.selected(projection.support)
        if size == used:
            return replace(state, iteration=iteration, settled=_NOTHING)
        rows = first_size_rows(self.batch, objective, state.seed, iteration)
        return replace(
            state,
            at=estimate(objective, rows, projection.point),
            support=projection.support,
            iteration=iteration,
            step=1.0,
            settled=_FULL if size >= budget else "",
            samples=state.samples + 2 * count(rows, objective.traits.n_rows),
        )

    def _trials(self, sampled: Attack, constraint: Sparsity | GroupSparsity, w: Array, used: int) -> list[Array]:
        """Return the points with one pixel more, those with the largest gains first."""
        xp, (gains, moves) = namespace(w), sampled.full_moves(w, self.target)
        scores = xp.sqrt(gains)
        scores = xp.where(w == 0, scores, 1.0 + float(norm(scores)))  # chosen entries before all others
        wider, found = replace(constraint, k=used + 1), []
        for _ in range(min(max(self.candidates, ceil(constraint.k / self.rounds)), scores.shape[0])):
            joined = wider.project(scores).point != 0
            found.append(xp.where((w == 0) & joined, moves, w))
            scores = xp.where((w == 0) & joined, xp.zeros_like(scores), scores)
        return found

    def recall(self, objective: Objective, state: State) -> float:
        rows = first_size_rows(self.batch, objective, state.seed, state.iteration)
        return on_batch(objective, rows).value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        assert isinstance(state, SampledState)
        return fully_evaluated(objective, state)
