"""The states of runs of the working set, and the points that improve on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, isnan

import numpy as np

from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import NotFiniteError
from hardthresh.core.few import predict_few
from hardthresh.core.objective import Evaluation, LinearObjective, Objective
from hardthresh.core.schema import renames, stored
from hardthresh.core.state import State
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array, is_numpy
from hardthresh.solvers.refinement import FULL_SOLVE, refine

from .model import REFIT_TOL, Gram, LocalModel, OnHost, tolerances
from .search import Fit

_FIRST_CHECKPOINT, STRIDE = 4, 2.5
"""The forward path has checkpoints at 4, 10, 25, 63, ... columns. A run leaves it at the last checkpoint below its
budget. These are tuned (see the guide to speed). On 160 linear models with correlated columns, not used for tuning, f
is 2 % higher for a stride of 3, 3 % for 4, and equal for 2. It is 1 % higher or lower for a first checkpoint of 2 or
8.
"""

_TRUSTED = 0.1
"""A quadratic model is trusted at a point where f exceeds it by less than this share of f. Of 2,445 fits to nearly
constant columns in single precision 8 were noticeably worse than one with fewer columns, and 75 with no such limit."""

CONVERGED = "the point is minimal on its support, and nothing that was tried within the working set improves it"
PATH_ENDED = "the run ended on the forward path, below its budget: adding columns lowers f by no more than tol"


def next_checkpoint(size: int) -> int:
    """Return the next checkpoint of a forward path that has some columns: 4, 10, 25, 63, ... columns."""
    return max(_FIRST_CHECKPOINT, ceil(STRIDE * size))


def path_cap(size: int) -> int:
    """Return how many columns may join the working set at a checkpoint of the forward path.

    Tuned like the checkpoints: f is 8 % higher with half as many columns, and 1 % lower with twice as many.
    """
    return max(64, 2 * size)


def recheck_threshold(objective: Objective, state: WorkingState, ratio: float, tol: float) -> float | None:
    """Return the score of a column outside that calls for another search at the budget; None if there must be one."""
    if ratio == 0.0 or not objective.traits.quadratic or state.working_set.size == 0:
        return None
    rounding, negligible = tolerances(state, tol)
    if negligible < 0.5 * state.negligible:  # too coarse a search: f at a bad w0 was far above the null model's
        return None
    return max(ratio * state.reference_score, rounding)


@stored(
    "state/working_set",
    upgrades=[
        upgrade_supports,
        renames(
            bend="curvature",
            pool="gram",
            members="working_set",
            walked="checkpoint",
            bar="reference_score",
            precision="negligible",
        ),
    ],
)
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingState(State):
    """A `State` with its working set.

    Attributes
    ----------
    curvature : array, shape (d,)
        The diagonal of the Hessian where the run started.
    gram : Gram
        The Hessian of the columns that the working set has had so far, for a quadratic only.
    working_set : array of int
        The columns that are searched, by increasing index.
    checkpoint : int or None
        How many columns the forward path has added so far; None once the run has left it, and for runs from a w0.
    reference_score : float
        The score with which those of columns outside the working set are compared: on the forward path that of the
        best column inside, else the score that the least useful chosen column would have if it were not chosen;
        infinite after a search by refits, which computes it anew.
    negligible : float
        The decrease of f that did not count as progress when the working set was last searched.
    """

    curvature: Array
    gram: Gram = field(default_factory=Gram)
    working_set: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    checkpoint: int | None = 0
    reference_score: float = 0.0
    negligible: float = inf

    def ended(self, reason: str) -> WorkingState:
        """Return the state of a run that ends here."""
        return replace(self, iteration=self.iteration + 1, step=0.0, settled=reason)

    def improved(self, better: Improvement, at: Evaluation) -> WorkingState:
        """Return the state at a better point, evaluated."""
        return replace(
            self,
            at=at,
            support=better.projection.support,
            iteration=self.iteration + 1,
            step=1.0,
            settled=CONVERGED if better.is_last else "",
            gram=better.gram,
            working_set=better.working_set,
            checkpoint=better.checkpoint,
            reference_score=better.reference_score,
            negligible=better.negligible,
        )


@dataclass(slots=True)
class RunGroup:
    """Runs at one state, which share its working set.

    Runs on the forward path share a group if they hold the same evaluation of f: those whose budgets are larger than
    the next checkpoint, and those that finish before it. A run that has left the path is a group of its own.

    Attributes
    ----------
    state : WorkingState
        The state.
    here : OnHost
        What the host works with of the state.
    budgets : dict of int to int
        The budget of each run.
    working_set : array of int
        Their working set, which grows during an iteration.
    whole : bool
        Whether the working set has all columns, so that none is screened and the path has no checkpoints.
    by_refits : bool
        Whether the runs are searches by refits of f itself, not by its quadratic model.
    prefetched : dict of float to array of int
        The working set before each prefetch, by the budget of the prefetch as a share of the next checkpoint.
    model : LocalModel or None
        The quadratic model around the state, once it has been needed.
    last : int or None
        The largest budget, if the forward path goes there without a stop, as where readings are expensive.
    """

    state: WorkingState
    here: OnHost
    budgets: dict[int, int]
    working_set: np.ndarray
    whole: bool = False
    by_refits: bool = False
    prefetched: dict[float, np.ndarray] = field(default_factory=dict)
    model: LocalModel | None = None
    last: int | None = None

    @property
    def next_checkpoint(self) -> int | None:
        """The next checkpoint of the forward path; None for a run that has left it."""
        if self.state.checkpoint is None or self.last is not None:
            return self.last
        return next_checkpoint(self.state.checkpoint)

    @property
    def marks(self) -> list[int]:
        """The numbers of columns at which a path without a stop is examined: checkpoints, and the largest budget."""
        marks = [self.state.checkpoint or 0]
        while self.last is not None and marks[-1] < self.last:
            marks.append(min(next_checkpoint(marks[-1]), self.last))
        return marks[1:]

    @property
    def continuing(self) -> list[int]:
        """The runs whose budgets are larger than the next checkpoint."""
        checkpoint = self.next_checkpoint
        return [] if checkpoint is None or self.whole else [run for run, k in self.budgets.items() if k > checkpoint]

    @property
    def finishing(self) -> dict[int, list[int]]:
        """The runs that reach their budgets before the next checkpoint, by their budgets."""
        runs: dict[int, list[int]] = {}
        checkpoint = self.next_checkpoint
        for run, k in self.budgets.items():
            if checkpoint is not None and k > 0 and (self.whole or k <= checkpoint):
                runs.setdefault(k, []).append(run)
        return runs


@dataclass(frozen=True, slots=True)
class Improvement:
    """A better point, not evaluated yet, with what its state will know (see `WorkingState`).

    For a quadratic it has the fit of the point, and the model that the fit belongs to; `at` is f there if that has been
    evaluated.
    """

    projection: Projection
    prediction: Array | None
    gram: Gram
    working_set: np.ndarray
    reference_score: float
    negligible: float
    checkpoint: int | None = None
    is_last: bool = False
    fit: Fit | None = None
    model: LocalModel | None = None
    at: Evaluation | None = None


def first_improvement(
    objective: LinearObjective,
    constraint: Constraint,
    budget: int,
    state: WorkingState,
    model: LocalModel,
    fits: Sequence[Fit],
) -> Improvement | None:
    """Return the first of some fits where f is lower by more than a negligible amount.

    If f is quadratic the fit says how much lower f is; else the coefficients are refitted by Newton steps on f.
    """
    gram, columns, negligible = model.gram, model.columns, model.negligible
    if objective.traits.quadratic:
        lower = next((fit for fit in fits if fit.decrease > negligible), None)
        if lower is None:
            return None
        projection = constraint.project(model.point(lower, state.w))
        score = model.lowest_chosen_score(lower, budget)
        # NumPy finds the columns of the point by checking it, and where a reading is expensive they are read only once
        prediction = None if is_numpy(state.w) else predict_few(objective, constraint, projection.point)
        return Improvement(projection, prediction, gram, columns, score, negligible, fit=lower, model=model)
    here = model.tableau
    tried = {frozenset(here.chosen)} if here.decrease <= negligible else set()
    for fit in fits:
        support = frozenset(fit.chosen.tolist())
        if support in tried:
            continue
        tried.add(support)
        try:
            fitted = model.refit(objective, constraint, state, fit)
        except NotFiniteError:
            if objective.traits.arbitrary:  # such as a quotient at zero, where a model without curvature ends
                continue
            raise
        if fitted.value < state.value - negligible:
            score = model.lowest_chosen_score(fit, budget)
            return Improvement(fitted.projection, fitted.prediction, gram, columns, score, negligible)
    return None


def refit_without_curvature(
    objective: LinearObjective, constraint: Constraint, state: WorkingState, model: LocalModel
) -> Improvement | None:
    """Return a lower point on the support where some chosen columns have no curvature, so that no model has them.

    That happens where a loss is saturated, as the logistic loss is where offsets are large.
    """
    if objective.traits.quadratic or model.tableau.size == state.support.indices.shape[0]:
        return None
    return refined_on_support(objective, constraint, state, model.gram, model.columns, model.negligible)


def refined_on_support(
    objective: LinearObjective,
    constraint: Constraint,
    state: WorkingState,
    gram: Gram,
    columns: np.ndarray,
    negligible: float,
) -> Improvement | None:
    """Return the point that full Newton steps from the state lead to, if f is lower there."""
    here, tol = Projection(state.at.point, state.support), REFIT_TOL * negligible
    fitted = refine(objective, constraint, here, state.at.prediction, cg_iterations=0, rounds=FULL_SOLVE, tol=tol)
    if not fitted.value < state.value - negligible:
        return None
    return Improvement(fitted.projection, fitted.prediction, gram, columns, 0.0, negligible)


def with_fewer_columns(
    objective: LinearObjective, constraint: Constraint, state: WorkingState, better: Improvement, at: Evaluation
) -> tuple[Improvement, Evaluation]:
    """Return an improvement, or one with fewer columns if f is lower there, evaluated.

    The coefficients of nearly dependent columns may be so large that f at the rounded point is far above its quadratic
    model. Then smaller budgets are searched, one after the other, until f agrees with the model and the model says that
    fewer columns are worse. In double precision that is hardly ever needed.
    """
    fit, model = better.fit, better.model
    if fit is None or model is None:
        return better, at
    value = inf if isnan(at.value) else at.value
    best, lowest = better, value
    while (size := fit.size - fit.n_free) > 0:
        modelled = state.value - fit.decrease
        trusted = value - modelled < max(model.negligible, _TRUSTED * value)
        if trusted and modelled + fit.lowest_cost >= lowest - model.negligible:
            break
        fit = model.best(size - 1)
        projection = constraint.project(model.point(fit, state.w))
        value = float(objective.value(projection.point))
        if value < lowest:
            best, lowest = replace(better, projection=projection, reference_score=0.0), value
    return (better, at) if best is better else (best, objective.evaluate(best.projection.point))
