"""What the runs of the working-set solver know: their states, what they share, and what they have found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan

import numpy as np

from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.objective import Evaluation, LinearObjective
from hardthresh.core.schema import stored
from hardthresh.core.state import State
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.solvers.subspace import refine

from .effort import FIRST_MARK, FURTHEST, next_mark
from .model import LocalModel, Pool
from .tableau import Tableau

_TRUSTED = 0.1
"""A quadratic model is trusted at a point where f exceeds it by less than this share of f. Of 2,445 fits to nearly
constant columns in single precision 8 were noticeably worse than one with fewer columns, and 75 with no such limit."""

_SETTLED = "the point is minimal on its support, and nothing that was tried within the working set improves it"


@stored("state/working_set", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingState(State):
    """A `State` with its working set.

    Attributes
    ----------
    bend : array, shape (d,)
        The diagonal of the Hessian at the null model.
    pool : Pool
        The Gram matrix as far as it has been computed; of a quadratic only.
    members : array of int
        The working set of this run, by increasing index.
    walked : int or None
        How many columns the greedy walk has added so far; None once it has arrived at the budget.
    bar : float
        What a column must promise to be let in: a share of this.
    precision : float
        What counted as progress when the working set was searched last.
    """

    bend: Array
    pool: Pool = field(default_factory=Pool)
    members: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    walked: int | None = 0
    bar: float = 0.0
    precision: float = inf

    def settle(self) -> WorkingState:
        """Return the state of a run that has come to its end here."""
        return replace(self, iteration=self.iteration + 1, step=0.0, settled=_SETTLED)

    def move(self, found: Found, at: Evaluation) -> WorkingState:
        """Return the state at a better point, evaluated; the end here if rounding has eaten the progress."""
        if not at.value < self.value:
            return self.settle()
        return replace(
            self,
            at=at,
            support=found.projection.support,
            iteration=self.iteration + 1,
            step=1.0,
            settled=_SETTLED if found.done else "",
            pool=found.pool,
            members=found.members,
            walked=found.walked,
            bar=found.bar,
            precision=found.precision,
        )


@dataclass(slots=True)
class Block:
    """Runs at one state, their budgets, and the working set that they share."""

    state: WorkingState
    budgets: dict[int, int]
    members: np.ndarray
    looked: dict[float, np.ndarray] = field(default_factory=dict)
    _model: LocalModel | None = None

    def model(self, objective: LinearObjective, selection: CoordinateBudget, pool: Pool, tol: float) -> LocalModel:
        """Return the quadratic model around the state, over the working set as it is now."""
        if self._model is None or self._model.members is not self.members:
            self._model = LocalModel.around(objective, selection, self.state, pool, self.members, tol)
        return self._model

    @property
    def mark(self) -> int | None:
        """Where the walk reads the data next; None for a run that has left it."""
        return None if self.state.walked is None else next_mark(self.state.walked)

    @property
    def walking_on(self) -> list[int]:
        """The runs whose budgets lie beyond the mark."""
        return [] if self.mark is None else [run for run, k in self.budgets.items() if k > self.mark]

    def forget(self) -> None:
        """Let the quadratic model go, which takes much memory."""
        self._model = None

    @property
    def arriving(self) -> dict[int, list[int]]:
        """The runs that leave the walk here, by their budgets."""
        runs: dict[int, list[int]] = {}
        for run, k in self.budgets.items():
            if self.mark is not None and 0 < k <= self.mark:
                runs.setdefault(k, []).append(run)
        return runs

    def anchor(self, share: float) -> int:
        """The budget at which the data are read before runs arrive."""
        return int(np.ceil(share * (self.mark or 0)))

    def is_new_at(self, share: float) -> bool:
        """Whether the working set has changed since the data were read at this share."""
        return self.looked.get(share) is not self.members

    @property
    def furthest(self) -> int:
        """How many columns the way out goes to."""
        return FURTHEST * max(self.state.walked or 0, FIRST_MARK - 1)


@dataclass(frozen=True, slots=True)
class Found:
    """A better point, not evaluated yet, and what its state will remember of the way there.

    Of a quadratic it has its tableau and the model that this belongs to.
    """

    projection: Projection
    prediction: Array | None
    pool: Pool
    members: np.ndarray
    bar: float
    precision: float
    walked: int | None = None
    done: bool = False
    tableau: Tableau | None = None
    model: LocalModel | None = None


def first_better(
    objective: LinearObjective,
    constraint: Constraint,
    budget: int,
    state: WorkingState,
    model: LocalModel,
    tries: Sequence[Tableau],
) -> Found | None:
    """Return the first of some tableaus' minimisers where f is noticeably lower: the model itself if f is quadratic."""
    if objective.traits.quadratic:
        lower = next((tableau for tableau in tries if tableau.decrease > model.negligible), None)
        if lower is None:
            return None
        projection = constraint.project(model.point(lower, state.w))
        bar = model.bar(lower, budget)
        return Found(projection, None, model.pool, model.members, bar, model.negligible, tableau=lower, model=model)
    here = model.tableau
    tried = {frozenset(here.chosen)} if here.decrease <= model.negligible else set()
    for tableau in tries:
        if frozenset(tableau.chosen) in tried:
            continue
        tried.add(frozenset(tableau.chosen))
        fitted = model.refit(objective, constraint, state, tableau)
        if fitted.value < state.value - model.negligible:
            bar = model.bar(tableau, budget)
            return Found(fitted.projection, fitted.prediction, model.pool, model.members, bar, model.negligible)
    return None


def without_curvature(
    objective: LinearObjective, constraint: Constraint, state: WorkingState, model: LocalModel
) -> Found | None:
    """Return a lower point on the support where some chosen columns have no curvature, so that no model has them.

    That happens where a loss is saturated, as the logistic loss is where offsets are large.
    """
    if objective.traits.quadratic or model.tableau.size == state.support.indices.shape[0]:
        return None
    here, enough = Projection(state.at.point, state.support), 1e-3 * model.negligible
    fitted = refine(objective, constraint, here, state.at.prediction, cg_iterations=0, rounds=25, tol=enough)
    if not fitted.value < state.value - model.negligible:
        return None
    return Found(fitted.projection, fitted.prediction, model.pool, model.members, 0.0, model.negligible)


def with_fewer_columns(
    objective: LinearObjective, constraint: Constraint, state: WorkingState, found: Found, at: Evaluation
) -> tuple[Found, Evaluation]:
    """Return a found point, or one with fewer columns if f is lower there, evaluated.

    The coefficients of nearly dependent columns may be so large that f at the rounded point is far above its quadratic
    model. Then smaller budgets are searched, one after the other, until f agrees with the model and the model says that
    fewer columns are worse. In double precision that is hardly ever needed.
    """
    tableau, model = found.tableau, found.model
    if tableau is None or model is None:
        return found, at
    value = inf if isnan(at.value) else at.value
    best, lowest = found, value
    while (size := tableau.size - tableau.free) > 0:
        modelled = state.value - tableau.decrease
        trusted = value - modelled < max(model.negligible, _TRUSTED * value)
        if trusted and modelled + float(tableau.costs().min()) >= lowest - model.negligible:
            break
        tableau = model.best(size - 1, size)
        projection = constraint.project(model.point(tableau, state.w))
        value = float(objective.value(projection.point))
        if value < lowest:
            best, lowest = replace(found, projection=projection, bar=0.0), value
    return (found, at) if best is found else (best, objective.evaluate(best.projection.point))
