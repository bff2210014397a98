"""States of runs on classes over blocks: the best solutions among stored columns, checked on all columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hardthresh.arrays import scatter, to_numpy
from hardthresh.constraints import RowSparsity
from hardthresh.core import minimize
from hardthresh.core.constraint import Constraint, RowBudget
from hardthresh.core.objective import Objective
from hardthresh.core.result import Result
from hardthresh.core.solver import Solver
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import leading_norm, norm
from hardthresh.core.typing import Array
from hardthresh.objectives import BlockedClasses

from .working_set.effort import EFFORTS
from .working_set.model import Gram, union
from .working_set.row_refits import refit_rows
from .working_set.rows import RowSearch
from .working_set.solver import WorkingSet
from .working_set.state import WorkingState

_FAR = 0.3
"""Share of what a fit gains over the null model by which f at a start may be above that of the fit. Arbitrary: of 54
fits to tables of 300 to 30,000 rows 52 have a share of at most .25, and two .48 and .84, with 3 rows of one class."""
_ROUNDS = 2
"""How often the columns are searched, as for columns with one coefficient; see `guessed`."""


def guessed_row_states(
    objective: Objective, constraints: Sequence[Constraint], solver: Solver, seed: int, start: Array | None = None
) -> list[WorkingState] | None:
    """Return the states of runs at the best answers among the columns that a pilot has named.

    The whole algorithm runs on these columns, which are kept, so that no reading is needed. Its answers are evaluated
    on all columns, one reading for 32 of them. Columns with high scores there join by another reading, and the search
    is repeated.

    Parameters
    ----------
    objective : Objective
        The model; any but `BlockedClasses` has no such states.
    constraints : sequence of Constraint
        The sets, which differ in their budgets; sets of groups have no such states.
    solver : Solver
        Anything but `WorkingSet` has no such states.
    seed : int
        That of the runs.
    start : array, shape (d, q), optional
        A point of the first set that is also tried; default: the pilot's answer.
    """
    if not isinstance(objective, BlockedClasses) or not isinstance(solver, WorkingSet):
        return None
    sets = [cast(RowSparsity, each) for each in constraints]
    if sets[0].groups is not None:
        return None
    if start is None and objective.guessed:
        start = objective.guessed[-1].point
    free = np.asarray(sets[0].free, dtype=np.int64)
    columns = union(objective.members, free)
    first = None if start is None else sets[0].project(start.astype(objective.units.dtype))
    if first is not None:
        rows = to_numpy(objective.rows_of(first.support))
        columns = union(columns, rows)
    null = _fitted(objective, free)
    if first is not None:
        w0 = _improved(objective, first.point, null, rows)
    states: list[WorkingState] = []
    for _ in range(_ROUNDS):
        few, places = objective.columns(columns), tuple(columns.searchsorted(free).tolist())
        parts = [RowSparsity(each.k, free=places) for each in sets]
        found = solver.path(few, parts, tol=solver.tol, seed=seed)
        if first is not None and len(parts) == 1:
            near = minimize(few, parts[0], solver, w0[columns], seed=seed, tol=solver.tol)
            found = [min(near, found[0], key=lambda one: one.value)]
        states = _states(objective, sets, found, columns, null, seed)
        more = columns
        for state, constraint in zip(states, sets, strict=True):
            more = union(more, _joining(objective, constraint, state, solver))
        if more.size == columns.size:
            break
        columns = more
    return states


def _improved(objective: BlockedClasses, point: np.ndarray, null: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a point of some rows, or the minimiser on these where f is far lower: some classes may be separated there.

    Refits from where losses are saturated take very many evaluations: 38,000 in a fit of three rows of one class to
    two columns too many, without a ridge.
    """
    few, fitted = objective.columns(rows), _fitted(objective, rows)
    value, highest, least = (few.value(w[rows]) for w in (point, null, fitted))
    return fitted if value - least > _FAR * (highest - least) else point


def _fitted(objective: BlockedClasses, rows: np.ndarray) -> np.ndarray:
    """Return the minimiser on some rows, by steps from 0: few rows of a table may separate what all of them do not."""
    few = objective.columns(rows)
    fitted = refit_rows(few, few.zeros(), 0.0).point if rows.size else few.zeros()
    return np.asarray(scatter(fitted, rows, objective.shape[0]))


def _states(
    objective: BlockedClasses,
    sets: Sequence[RowSparsity],
    found: Sequence[Result],
    columns: np.ndarray,
    null: np.ndarray,
    seed: int,
) -> list[WorkingState]:
    """Return the states of runs at answers among some columns, evaluated on all of them."""
    points = [np.asarray(scatter(result.w, columns, objective.shape[0])) for result in found]
    at_null, *everywhere = objective.evaluate_many([null, *points])
    curvature = objective.column_products().hessian_diag(at_null)
    states = []
    for at, result, constraint in zip(everywhere, found, sets, strict=True):
        last = cast(WorkingState, result.state)
        trace = Trace(
            passes=objective.passes,
            null_value=at_null.value,
            null_gradient=leading_norm(constraint, at_null.gradient),
            size=norm(at_null.point) or 100.0 * norm(at.point),
        )
        states.append(
            WorkingState(
                at=at,
                support=constraint.project(at.point).support,
                seed=seed,
                curvature=curvature,
                working_set=columns,
                checkpoint=None,
                reference_score=last.reference_score,
                negligible=last.negligible,
                trace=trace,
            )
        )
    return states


def _joining(objective: BlockedClasses, constraint: RowSparsity, state: WorkingState, solver: WorkingSet) -> np.ndarray:
    """Return the columns of a state and those with high scores there, if it needs them."""
    structure = cast(RowBudget, constraint.structure(tuple(objective.shape)))
    products: Any = objective.column_products()
    search = RowSearch(EFFORTS[solver.effort], solver.tol, objective, constraint, structure, state, Gram(), products)
    block = next(iter(search.blocks()), None)
    if block is None or not structure.budget or not search.needs_search(block):
        return state.working_set
    return search.screened(block)
