"""States of runs on a table in blocks: the best solutions among stored columns, checked on all columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from hardthresh.arrays import scatter, to_numpy
from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.core.constraint import Constraint, CoordinateBudget
from hardthresh.core.objective import Evaluation, Objective
from hardthresh.core.result import Result
from hardthresh.core.solver import Solver
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import leading_norm, norm
from hardthresh.core.typing import Array
from hardthresh.objectives.blocked import MOST_POINTS, Blocked
from hardthresh.objectives.guess import Guess, some_rows

from .guessed_rows import guessed_row_states
from .pilot import LEAST_ROWS, pilot
from .working_set.effort import EFFORTS, LEAST_CAP
from .working_set.model import Gram, LocalModel, OnHost, tolerances_at_scale, union
from .working_set.runs import Runs
from .working_set.search import Fit
from .working_set.solver import WorkingSet, selection_of
from .working_set.state import CONVERGED, WorkingState

_SEARCHES = 2
"""How often the columns are searched: those that a pilot has named, and again with those that have high scores at the
answers. Of 20 paths of 0 to 30 of 600 columns that do not correlate, all numbers have the fit of the path in memory
with two searches, and half of them with one: pilots do not know the noise of all rows."""
_MOST_ITERATIONS = 100
"""Limit of the iterations of a search of known columns, of which a loss almost without curvature would take thousands.
Arbitrary: the run continues from its answer."""
_REPLACES = 1.0
"""Columns join whose score without a chosen one is higher than that one's. Of 80 fits over blocks
(``benchmarks/scale.py --task readings``, with correlations of .5 and .9) all have the support of the fit in memory,
and 78 without such columns."""


def guessed_state(
    objective: Objective, constraint: Constraint, solver: Solver, seed: int, start: Array | None = None
) -> WorkingState | None:
    """Return the state of a run at the best answer among the columns that a pilot has named.

    The whole algorithm runs on these columns, from nothing and from a point: they are known or kept, so that no reading
    is needed. The better answer is then evaluated on all columns, and with it, in the same reading, the fits without
    each of its columns. Where other columns have high scores there, these join by another reading, and the search is
    repeated. The run continues from the answer as from any other state, with the scales of the pilot's null model.

    Parameters
    ----------
    objective : Objective
        The model; one that is not over blocks has no such state.
    constraint : Constraint
        The set.
    solver : Solver
        Anything but `WorkingSet` has no such state.
    seed : int
        That of the run.
    start : array, shape (d,), optional
        The point; default: the pilot's answer.
    """
    of_rows = guessed_row_states(objective, [constraint], solver, seed, start)
    if of_rows is not None:
        return of_rows[0]
    known = _KnownColumns.of(objective, [constraint], solver, seed)
    if known is None:
        return None
    chosen = constraint.project(known.guess if start is None else np.asarray(start, dtype=known.guess.dtype))
    known.join(to_numpy(chosen.support.indices))

    def search(few: Any, parts: list[Constraint], states: Sequence[WorkingState]) -> list[Result]:
        w0 = states[0].w if states else chosen.point
        return [_best_of_two(few, parts[0], known.solver, w0[known.columns], known.null.value, seed)]

    states = known.searched(search)
    return states[0] if states else None


def answer_on_known_columns(
    objective: Objective, constraint: Constraint, solver: Solver, seed: int, start: Array | None = None
) -> np.ndarray | None:
    """Return the answer among the columns that a pilot has named, without looking at the others: no reading.

    Parameters are those of `guessed_state`, and where that has no state, or the search does not end, None is returned.
    """
    known = _KnownColumns.of(objective, [constraint], solver, seed)
    if known is None:
        return None
    chosen = constraint.project(known.guess if start is None else np.asarray(start, dtype=known.guess.dtype))
    known.join(to_numpy(chosen.support.indices))
    few, (part,) = known.model()
    found = _best_of_two(few, part, known.solver, chosen.point[known.columns], known.null.value, seed)
    answer: np.ndarray = scatter(found.w, known.columns, known.guess.shape[0])
    return answer if found.converged else None


def guessed_path(
    objective: Objective, constraints: Sequence[Constraint], solver: Solver, seed: int
) -> list[WorkingState] | None:
    """Return the states of the runs of a path at the best answers among a few columns; None where none are named.

    These are the columns that a pilot has named, on which the path needs no reading. Its answers are evaluated on all
    columns: one reading for 32 of them. The columns with high scores there join by another reading, and the path is
    searched once more, and evaluated. The runs end there: they are minimal on their supports, and nothing that was
    tried among these columns improves them. What they may lack are columns that have high scores at the last answers
    alone.

    Parameters
    ----------
    objective : Objective
        The model; one that is not over blocks has no such states.
    constraints : sequence of Constraint
        The set of each run, which differ in their budgets.
    solver : WorkingSet
        The solver.
    seed : int
        That of the runs.
    """
    known, states = None, guessed_row_states(objective, constraints, solver, seed)
    if states is None:
        known = _KnownColumns.of(objective, constraints, solver, seed)
    if known is not None:
        states = known.searched(lambda few, parts, _: known.solver.path(few, parts, tol=known.solver.tol, seed=seed))
    if states is None:
        return None
    return [replace(state, settled=CONVERGED) for state in states] or None


class _KnownColumns:
    """The columns of a model over blocks that a pilot has named, and runs on them, which need no reading.

    Parameters
    ----------
    objective, constraints, solver, seed :
        As for `guessed_path`.
    guess : array, shape (d,)
        The pilot's answer.
    columns : array of int
        What it has named.
    null : Evaluation
        Its null model.
    """

    def __init__(
        self,
        objective: Any,
        constraints: Sequence[Constraint],
        solver: WorkingSet,
        seed: int,
        guess: np.ndarray,
        columns: np.ndarray,
        null: Evaluation,
    ) -> None:
        self._objective, self._constraints, self.solver, self._seed = objective, constraints, solver, seed
        self._selections = _budgets(objective, constraints)
        self.columns, self.guess, self.null = union(columns, np.asarray(self._selections[0].free)), guess, null
        self._shorter: list[tuple[WorkingState, Evaluation]] = []

    @classmethod
    def of(
        cls, objective: Objective, constraints: Sequence[Constraint], solver: Solver, seed: int
    ) -> _KnownColumns | None:
        """Return what a pilot says: that of the first reading, or one that is made here, whose columns are read.

        None for other solvers, models that are not over blocks, those of which all is known, and where it says nothing.
        """
        if not isinstance(solver, WorkingSet) or not isinstance(objective, Blocked):
            return None
        if objective.guessed:
            null, answer = objective.guessed[0], objective.guessed[-1]
            if null.value == np.inf:  # for another loss: the model of these columns knows what is needed of it
                free = np.asarray(_budgets(objective, constraints)[0].free)
                null = _of_columns(objective, null.point, union(objective.members, free))
            return cls(objective, constraints, solver, seed, answer.point, objective.members, null)
        if objective.members.size == objective.units.mean.size:
            return None
        selection = max(_budgets(objective, constraints), key=attrgetter("budget"))
        found = _pilot(objective, selection)
        if not found.points:
            return None
        columns = union(union(objective.members, found.members), np.asarray(selection.free))
        null = _of_columns(objective, objective.zeros(), columns)
        guess = objective.units.coordinates(found.points[-1])
        return cls(objective, constraints, solver, seed, guess, columns, null)

    def join(self, columns: np.ndarray) -> bool:
        """Add columns, which are read once they are asked about; return whether there are new ones."""
        before, self.columns = self.columns, union(self.columns, columns)
        return self.columns is not before

    def model(self) -> tuple[Any, list[Constraint]]:
        """Return the model of the columns, and the set of each run."""
        first, inside = self._selections[0], self.columns
        bounds = (None, None) if first.bounds is None else first.bounds[:, inside]
        free = tuple(inside.searchsorted(first.free).tolist())
        return self._objective.columns(inside), [Sparsity(each.budget, free, *bounds) for each in self._selections]

    def searched(
        self, search: Callable[[Any, list[Constraint], list[WorkingState]], list[Result]]
    ) -> list[WorkingState]:
        """Return the states of the runs after searches, the later ones with the columns that have high scores there.

        There are none where f is too high at some of them.
        """
        states: list[WorkingState] = []
        for _ in range(_SEARCHES):
            if states and not self.join(self.screened(states)):
                break
            found = search(*self.model(), states)
            if states and all(
                np.array_equal(one.w, state.w[self.columns]) for one, state in zip(found, states, strict=True)
            ):
                break
            states = self.states(found)
            if not states:
                break
        return states

    def states(self, found: Sequence[Result]) -> list[WorkingState]:
        """Return the states of runs at their answers, evaluated on all columns; none if f is too high there.

        As many points without a part of the chosen columns as a reading of these has room for are evaluated with them.
        """
        objective, drafts, points = self._objective, [], []
        gram = Gram().including(objective, self.null, self.columns) if objective.traits.quadratic else Gram()
        parts = (MOST_POINTS - len(found)) // len(found) if EFFORTS[self.solver.effort].parts else 0
        for result, selection, constraint in zip(found, self._selections, self._constraints, strict=True):
            draft, model = self._draft(result.w, selection, constraint, gram)
            read = parts and not objective.remembers(draft.w)
            drafts.append(draft)
            points.append(model.partial_points(Fit.of(model.tableau), parts, draft.w) if read else [])
        everywhere = objective.evaluate_many([*(draft.w for draft in drafts), *chain(*points)])
        states = [replace(draft, at=at) for draft, at in zip(drafts, everywhere[: len(drafts)], strict=True)]
        rest = iter(everywhere[len(drafts) :])
        self._shorter = [(state, next(rest)) for state, some in zip(states, points, strict=True) for _ in some]
        return states if all(state.value <= self.null.value for state in states) else []

    def _draft(
        self, coef: Array, selection: CoordinateBudget, constraint: Constraint, gram: Gram
    ) -> tuple[WorkingState, LocalModel]:
        """Return the state of a run at a point that is evaluated on known columns alone, and the model around it."""
        null, objective, few = self.null, self._objective, self._objective.columns(self.columns)
        size, dtype = objective.units.size, objective.units.dtype
        coef = coef.astype(dtype)
        at, point = few.evaluate(coef), scatter(coef, self.columns, size)
        trace = Trace(
            passes=objective.passes,
            null_value=null.value,
            null_gradient=leading_norm(constraint, null.gradient),
            size=norm(null.point) or 100.0 * norm(point),
        )
        state = WorkingState(
            at=Evaluation(point, at.value, scatter(at.gradient.astype(dtype), self.columns, size)),
            support=constraint.project(point).support,
            seed=self._seed,
            curvature=objective.typical_curvature(),
            gram=gram,
            working_set=self.columns,
            checkpoint=None,
            trace=trace,
        )
        own = union(np.asarray(selection.free, dtype=np.int64), to_numpy(state.support.indices))
        model = LocalModel.around(objective, selection, state, OnHost.of(state)[0], gram, own, self.solver.tol)
        score = model.lowest_chosen_score(Fit.of(model.tableau), selection.budget)
        return replace(state, reference_score=score, negligible=model.negligible), model

    def screened(self, states: Sequence[WorkingState]) -> np.ndarray:
        """Return the columns with high scores at some states, and those that are known, if a state needs the former."""
        solver, first = self.solver, self._selections[0]
        budgets = [selection.budget for selection in self._selections]
        effort = EFFORTS[solver.effort]
        runs = Runs(effort, solver.tol, self._objective, self._constraints, first, budgets, states, states[0].gram)
        open_runs = [
            state
            for state, budget, constraint in zip(states, budgets, self._constraints, strict=True)
            if budget and runs.needs_search(state, constraint)
        ]
        columns = reduce(union, (runs.screened(state, by_refits=False)[1] for state in open_runs), self.columns)
        for state, shorter in self._shorter:
            left_out = np.flatnonzero((state.w != 0) & (shorter.point == 0))
            slope, curvature = shorter.gradient, state.curvature
            known = left_out[curvature[left_out] > 0]
            lowest = np.min(0.5 * slope[known] ** 2 / curvature[known], initial=np.inf)
            columns = union(columns, runs.screen(slope, curvature, columns, _REPLACES * lowest, LEAST_CAP))
        return columns


def _best_of_two(few: Any, part: Constraint, solver: WorkingSet, w0: Array, null: float, seed: int) -> Result:
    """Return the answer from a point, or that from nothing if it is clearly lower, or as low and has fewer coordinates.

    Else it is the first one, which may be a point that was evaluated before.
    """
    settings: Any = {"seed": seed, "tol": solver.tol, "max_iter": _MOST_ITERATIONS}
    near, far = (minimize(few, part, solver, start, **settings) for start in (w0, None))
    eps = float(np.finfo(near.w.dtype).eps)
    negligible = tolerances_at_scale(eps, solver.tol, max(abs(near.value), abs(null - near.value)))[1]
    as_low = far.value <= near.value + negligible and np.count_nonzero(far.w) < np.count_nonzero(near.w)
    return far if as_low or far.value < near.value - negligible else near


def _of_columns(objective: Any, w: np.ndarray, columns: np.ndarray) -> Evaluation:
    """Return the evaluation of a point of known columns, with a gradient of zero along all others: no reading."""
    at = objective.columns(columns).evaluate(w[columns])
    return Evaluation(w, at.value, scatter(at.gradient, columns, objective.units.size))


def _budgets(objective: Objective, constraints: Sequence[Constraint]) -> list[CoordinateBudget]:
    """Return the selections that sets are."""
    selections = [selection_of(objective, constraint) for constraint in constraints]
    return [each for each in selections if isinstance(each, CoordinateBudget)]


def _pilot(objective: Blocked, selection: CoordinateBudget) -> Guess:
    """Return a pilot of a model whose first reading had none."""
    units = objective.units
    bounds = (None, None) if selection.bounds is None else selection.bounds
    scale = units.inverse_scale
    return pilot(
        some_rows(objective.engine, LEAST_ROWS * (selection.budget + 1)),
        objective.loss,
        lambda k, _: Sparsity(k, selection.free, *bounds),
        max(selection.budget, 1),
        ridge=objective.l2,
        intercept=units.intercept,
        scale=bool(np.any((scale != 0.0) & (scale != 1.0))),
        centre=bool(units.mean.any()),
    )
