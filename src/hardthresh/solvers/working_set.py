"""The working set: search the Gram matrix of the most promising columns, read the data only to find more of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import gather, mask_of, move, namespace, to_numpy, top_k
from hardthresh.core.constraint import Constraint, Projection, Selection
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.objective import Evaluation, Objective, provides
from hardthresh.core.registry import register
from hardthresh.core.solver import Solver, State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.typing import Array

from .exchange import rank_exchanges
from .local_model import LocalModel, Pool, is_quadratic, without
from .local_search import descend, grow, out_and_back, swings
from .start import starting_point
from .tableau import Tableau

FIRST_MARK, STRIDE, FURTHEST = 4, 2.5, 3
"""The greedy walk reads the data at 4, 10, 25, 63, ... columns, and goes out to three times the last of them."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search.

    Attributes
    ----------
    share : float
        A column joins the working set if adding it would gain this share of what the least useful chosen one brings.
    swings : tuple of float
        How many columns a swing adds and drops again, as shares of k.
    exchanges : int
        For how many chosen columns the exchange with every column of the data is looked at in the end.
    """

    share: float
    swings: tuple[float, ...] = ()
    exchanges: int = 0


EFFORTS = {
    "fast": Effort(share=0.5),
    "balanced": Effort(share=0.35, swings=(0.25,)),
    "thorough": Effort(share=0.2, swings=(0.25, 0.5, 1.0), exchanges=16),
}


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
    """

    bend: Array
    pool: Pool = field(default_factory=Pool)
    members: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    walked: int | None = 0
    bar: float = 0.0


@register("solver", "working_set", lambda: [WorkingSet(effort=effort) for effort in EFFORTS])
@dataclass(frozen=True, slots=True)
class WorkingSet(Solver):
    r"""Local search on the Gram matrix of promising columns: the default for linear models with at most k features.

    Adding, dropping and exchanging columns costs a rank-one update on a tableau of the working set, against a data pass
    in other methods. The data are read to find the columns that belong into the working set:

    1. walk: from the null model add, greedily, the column that lowers the quadratic model of f most; at 4, 10, 25, ...
       columns compute the gradient, and let the columns in that promise most,
       :math:`g_j^2 / 2H_{jj} \ge \text{share} \times` what the best column inside still promises;
    2. arrive at k from both sides, on the way out and back from up to three times as many columns; from each, exchange
       one column for another as long as that helps, and take the better;
    3. compute the gradient; let in whatever promises a share of what the least useful chosen column brings; exchange;
       if that changes nothing, swing: add k/4 columns and drop as many, and the other way round. Repeat.

    For a loss that is not quadratic the Gram matrix is the Hessian at the present point, and an answer of the search is
    refitted by Newton steps and accepted only if f itself falls.

    Parameters
    ----------
    effort : {"fast", "balanced", "thorough"}
        "fast" makes no swings; "thorough" swings further, lets more columns in, and ends by looking at the exchange of
        the 16 least useful features for every other column of the data.
    tol : float
        Relative decrease of f, > 0, that counts as progress.

    Raises
    ------
    CapabilityError
        By `check`, for a constraint that is not "at most k coordinates, each unbounded or of one sign": then
        `HardThresholdingPursuit` is the solver.

    Notes
    -----
    Needs no step size and no smoothness constant. Cost: three passes and one for each of 4, 10, 25, ... below k, then
    one for each round; memory for the Gram matrix of about 4k + 300 columns. What it does up to 4, 10, 25, ...
    columns does not depend on k. Guarantee: monotone; when it has settled, the point is minimal on its support, and
    for a quadratic no exchange within the working set improves it. Global optimality is not claimed (heuristic).

    References
    ----------
    The moves are those of forward selection, backward elimination and exchange (Efroymson 1960; Miller, *Subset
    Selection in Regression*, 2002), the tableau the sweep operator's (Goodnight 1979). Their combination is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import WorkingSet, minimize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 500))
    >>> y = X[:, [3, 50, 400]] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(100)
    >>> minimize(LinearModel(X, y), Sparsity(3), WorkingSet()).support
    array([  3,  50, 400])
    """

    effort: str = "balanced"
    tol: float = 1e-8

    state_type: ClassVar[type[State]] = WorkingState

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise InvalidInputError(f"effort must be one of {', '.join(EFFORTS)}; got {self.effort!r}")
        if not self.tol > 0:
            raise InvalidInputError(f"tol must be > 0, got {self.tol!r}")

    @property
    def requires(self) -> tuple[str, ...]:
        return ("curvature", "curvature_diagonal", "columns", "cross_hessian")

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def check(self, objective: Objective, constraint: Constraint) -> None:
        Solver.check(self, objective, constraint)
        _selection(objective, constraint)

    def start(self, objective: Any, constraint: Constraint, w0: Array | None, seed: int) -> WorkingState:
        at, projection = starting_point(objective, constraint, w0)
        return WorkingState(
            at=at,
            support=projection.support,
            seed=seed,
            bend=objective.curvature_diagonal(at),
            walked=0 if w0 is None else None,
        )

    def advance(self, objective: Any, constraint: Constraint, state: State) -> WorkingState:
        assert isinstance(state, WorkingState)
        return self.advance_together(objective, [constraint], [state])[0]

    def advance_together(
        self, objective: Any, constraints: Sequence[Constraint], states: Sequence[WorkingState]
    ) -> list[WorkingState]:
        """Advance several runs on one objective at the price of little more than one.

        Runs with different budgets share the Gram matrix, one product with the data for all their gradients, and, while
        they are at the same state of the walk, the walk.
        """
        selections = [_selection(objective, constraint) for constraint in constraints]
        runs_at: dict[int, list[int]] = {}
        for run, state in enumerate(states):
            runs_at.setdefault(id(state.at), []).append(run)
        leaders = [states[runs[0]] for runs in runs_at.values()]
        members = [self._working_set(objective, selections[0], state) for state in leaders]
        pool = _shared_pool(objective, leaders, members)
        found: dict[int, _Found] = {}
        for state, columns, runs in zip(leaders, members, runs_at.values(), strict=True):
            model = LocalModel.around(objective, selections[0], state, pool, columns, self.tol)
            budgets = {run: selections[run].budget for run in runs}
            if state.walked is None:
                (run,) = runs
                better = self._improve(objective, constraints[run], budgets[run], state, model)
                found |= {} if better is None else {run: better}
            else:
                found |= self._walk(objective, constraints, budgets, state, model)
        evaluations = _evaluate(objective, found.values())
        return [
            _arrive(state, found[run], evaluations[id(found[run])]) if run in found else _settle(state)
            for run, state in enumerate(states)
        ]

    def _working_set(self, objective: Any, selection: Selection, state: WorkingState) -> np.ndarray:
        """Return the working set with the columns outside that promise enough."""
        at = state.at
        xp = namespace(at.gradient)
        support = to_numpy(state.support)
        inside = np.sort(np.concatenate([state.members, without(support, state.members)]))
        bend = state.bend * _bend_since_start(objective, state)
        eligible = (bend > 0) & ~mask_of(move(inside, at.point), at.point.shape[0])
        if selection.signs is not None:
            wanted = move(selection.signs, at.point)
            eligible = eligible & ((wanted == 0) | ((at.gradient < 0) == (wanted > 0)))
        gain = at.gradient**2 / (2 * xp.where(bend > 0, bend, xp.ones_like(bend)))
        gain = xp.where(eligible & (gain > EFFORTS[self.effort].share * state.bar), gain, xp.zeros_like(gain))
        size = state.support.shape[0]
        most = max(32, size) if state.walked is None else max(64, 2 * size)
        promising = to_numpy(top_k(gain, min(most, int(xp.count_nonzero(gain)))))
        return np.sort(np.concatenate([inside, promising]))

    def _walk(
        self,
        objective: Any,
        constraints: Sequence[Constraint],
        budgets: dict[int, int],
        state: WorkingState,
        model: LocalModel,
    ) -> dict[int, _Found]:
        """Return how runs that are at the same state of the walk go on: those that have a better point to go to."""
        assert state.walked is not None
        mark = _next_mark(state.walked)
        free = model.tableau.free
        found: dict[int, _Found] = {}
        arriving = [run for run, k in budgets.items() if 0 < k <= mark]
        if arriving:
            sizes = {free + budgets[run] for run in arriving}
            furthest = free + FURTHEST * max(state.walked, FIRST_MARK - 1)
            ways = out_and_back(model.tableau, sizes, furthest, model.least, model.negligible)
            for run in arriving:
                tries = sorted(ways[free + budgets[run]], key=lambda way: -way.decrease)
                better = _first_better(objective, constraints[run], state, model, tries)
                found |= {} if better is None else {run: better}
        going_on = [run for run, k in budgets.items() if k > mark]
        if going_on:
            walker = model.tableau.copy()
            grow(walker, free + mark, model.least)
            widest = max(going_on, key=lambda run: budgets[run])
            better = _first_better(objective, constraints[widest], state, model, [walker])
            if better is not None:
                better = replace(better, walked=mark, bar=walker.best_addition()[1])
                found |= dict.fromkeys(going_on, better)
        return found

    def _improve(
        self, objective: Any, constraint: Constraint, budget: int, state: WorkingState, model: LocalModel
    ) -> _Found | None:
        """Return a better point for a run that has arrived at its budget, or None."""
        effort, size = EFFORTS[self.effort], model.tableau.free + budget
        filled = model.tableau.copy()
        grow(filled, size, model.least)
        best = descended = descend(filled, size, model.least, model.negligible)
        for share in effort.swings:
            for swung in swings(best, size, max(1, round(share * budget)), model.least, model.negligible):
                if swung.decrease > best.decrease + model.negligible:
                    best = swung
        better = _first_better(objective, constraint, state, model, [best, descended, filled, model.tableau])
        if better is not None or effort.exchanges == 0 or not constraint.is_full(state.support):
            return better
        ranked = rank_exchanges(
            objective, constraint, state.at, state.support, removals=effort.exchanges, count=4 * effort.exchanges
        )
        added = np.unique(np.array([exchange.added for exchange in ranked], dtype=np.int64))
        members = np.sort(np.concatenate([model.members, without(added, model.members)]))
        pool = model.pool.including(objective, state.at, members) if is_quadratic(objective) else model.pool
        wider = LocalModel.around(objective, _selection(objective, constraint), state, pool, members, self.tol)
        best = descend(wider.tableau, size, wider.least, wider.negligible)
        return _first_better(objective, constraint, state, wider, [best])


@dataclass(frozen=True, slots=True)
class _Found:
    """A better point, not evaluated yet, and what its state will remember of the way there."""

    projection: Projection
    prediction: Array | None
    model: LocalModel
    bar: float
    walked: int | None = None


def _first_better(
    objective: Any, constraint: Constraint, state: WorkingState, model: LocalModel, tries: list[Tableau]
) -> _Found | None:
    """Return the first of some tableaus' minimisers where f is noticeably lower: the model itself if f is quadratic."""
    for tableau in tries:
        if not model.promise(tableau) > model.negligible:
            continue
        costs = tableau.costs()
        bar = float(costs.min()) if costs.size > tableau.free else 0.0
        if is_quadratic(objective):
            return _Found(model.projection(constraint, tableau, state.at.point), None, model, bar)
        fitted = model.refit(objective, constraint, state, tableau)
        if fitted.value < state.value:
            return _Found(fitted.projection, fitted.prediction, model, bar)
    return None


def _shared_pool(objective: Any, states: Sequence[WorkingState], members: Sequence[np.ndarray]) -> Pool:
    """Return a pool that has the columns of several working sets; empty unless the objective is quadratic."""
    if not is_quadratic(objective):
        return Pool()
    largest = max(states, key=lambda state: state.pool.columns.size)
    return largest.pool.including(objective, largest.at, np.unique(np.concatenate(members)))


def _evaluate(objective: Any, found: Iterable[_Found]) -> dict[int, Evaluation]:
    """Return the objective at each distinct point, together if it can."""
    distinct = {id(one): one for one in found}
    if len(distinct) > 1 and provides(objective, "evaluate_many"):
        return dict(
            zip(distinct, objective.evaluate_many([f.projection.point for f in distinct.values()]), strict=True)
        )
    return {key: objective.evaluate(one.projection.point, one.prediction) for key, one in distinct.items()}


def _arrive(state: WorkingState, found: _Found, at: Evaluation) -> WorkingState:
    """Return the state at a better point, unless rounding has eaten the progress."""
    if not at.value < state.value:
        return _settle(state)
    return replace(
        state,
        at=at,
        support=found.projection.support,
        iteration=state.iteration + 1,
        step=1.0,
        pool=found.model.pool,
        members=found.model.members,
        walked=found.walked,
        bar=found.bar,
    )


def _settle(state: WorkingState) -> WorkingState:
    return replace(
        state,
        iteration=state.iteration + 1,
        step=0.0,
        settled="the point is minimal on its support, and no exchange or swing within the working set improves it",
    )


def _next_mark(walked: int) -> int:
    return max(FIRST_MARK, ceil(STRIDE * walked))


def _bend_since_start(objective: Any, state: WorkingState) -> float:
    """Return how the curvature has changed since the start, on average over the support."""
    if is_quadratic(objective) or state.support.shape[0] == 0:
        return 1.0
    xp = namespace(state.bend)
    now = objective.columns(state.support).curvature_diagonal(state.at)
    return float(xp.mean(now)) / float(xp.mean(gather(state.bend, state.support)))


def _selection(objective: Any, constraint: Constraint) -> Selection:
    """Return which single coordinates may be chosen."""
    shape = tuple(objective.shape)
    selection = constraint.selection(shape[0]) if len(shape) == 1 else None
    if selection is None:
        raise CapabilityError(
            f"WorkingSet chooses single coordinates, unbounded or of one sign, which is not what {constraint} does; "
            "use HardThresholdingPursuit()"
        )
    return selection
