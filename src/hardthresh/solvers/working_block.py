"""What the runs of the working-set solver know: their states, what they share, and what they have found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from hardthresh.core.constraint import Constraint, Projection, Selection
from hardthresh.core.objective import Evaluation
from hardthresh.core.solver import State
from hardthresh.core.typing import Array

from .effort import FIRST_MARK, FURTHEST, next_mark
from .local_model import LocalModel, Pool, is_quadratic
from .tableau import Tableau

_SETTLED = "the point is minimal on its support, and nothing that was tried within the working set improves it"


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

    def model(self, objective: Any, selection: Selection, pool: Pool, tol: float) -> LocalModel:
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
    """A better point, not evaluated yet, and what its state will remember of the way there."""

    projection: Projection
    prediction: Array | None
    pool: Pool
    members: np.ndarray
    bar: float
    precision: float
    walked: int | None = None
    done: bool = False


def first_better(
    objective: Any,
    constraint: Constraint,
    budget: int,
    state: WorkingState,
    model: LocalModel,
    tries: Sequence[Tableau],
) -> Found | None:
    """Return the first of some tableaus' minimisers where f is noticeably lower: the model itself if f is quadratic."""
    if is_quadratic(objective):
        lower = next((tableau for tableau in tries if tableau.decrease > model.negligible), None)
        if lower is None:
            return None
        projection = constraint.project(model.point(lower, state.w))
        return Found(projection, None, model.pool, model.members, model.bar(lower, budget), model.negligible)
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
