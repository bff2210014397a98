"""Fits for a range of budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import Objective
from hardthresh.core.result import Result, Status
from hardthresh.core.solver import Solver
from hardthresh.solvers import WorkingSet, choose_solver, minimize


def path(
    objective: Objective,
    constraint: Callable[[int], Constraint],
    budgets: Iterable[int],
    solver: Solver | None = None,
    *,
    warm_start: bool = False,
    tol: float = 1e-8,
    **options: Any,
) -> Iterator[Result]:
    """Yield the result for each budget in turn.

    Parameters
    ----------
    objective : Objective
        f.
    constraint : callable
        The constraint of a budget, for example ``Sparsity``.
    budgets : iterable of int
        In the order to yield them; increasing for a useful warm start.
    solver : Solver, optional
        Default: chosen for each budget as by `minimize`, but ``WorkingSet(effort="fast")`` in the place of
        ``WorkingSet()``, because most results of a path only have to be compared with their neighbours. Call `minimize`
        for the budget that you choose.
    warm_start : bool
        Whether each fit starts from the last one's answer, so that an answer depends on the budgets before it, and all
        budgets after a perfect fit get that fit. Without it, a solver that shares no work between budgets returns the
        answers of each budget alone. `WorkingSet` searches all budgets together, so that an answer may be better or
        worse than alone.
    tol : float
        As for `minimize`.
    **options
        ``stop``, ``max_iter``, ``progress`` and ``seed``, as for `minimize`.

    Raises
    ------
    InvalidInputError
        For budgets that are one number, and as by `minimize`.

    Notes
    -----
    Without `warm_start` the budgets of `WorkingSet`, the default solver of linear models, run side by side: they share
    the Gram matrix, the forward path, and each product with the data, so that fifty budgets cost a few times what one
    does. Their results come when the last of them is done, and their passes and seconds are those of all. With the
    default effort "fast" f is about 2 % above the lowest known value on average (see the guide to speed), and fifty
    budgets take a fifth to a third of the time that they take with "balanced".

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(3), np.array([3.0, 1.0, 2.0]))
    >>> [list(result.support) for result in path(f, Sparsity, [1, 2])]
    [[0], [0, 2]]
    """
    if not isinstance(budgets, Iterable):
        raise InvalidInputError(f"budgets must be several numbers, such as range(1, 11); got {format_value(budgets)}")
    sets = [constraint(budget) for budget in budgets]
    solvers = [solver] * len(sets) if solver else _ranking([choose_solver(objective, one, tol=tol) for one in sets])
    fitted = _warm_started if warm_start else _independent
    for result in fitted(objective, sets, solvers, tol=tol, **options):
        if result.status is Status.INTERRUPTED:  # the best iterate of one budget does not answer for the others
            raise KeyboardInterrupt
        yield result


def _ranking(solvers: list[Solver]) -> list[Solver]:
    """Return solvers with as much effort as is needed to rank budgets."""
    ranking = {one: replace(one, effort="fast") if isinstance(one, WorkingSet) else one for one in set(solvers)}
    return [ranking[one] for one in solvers]


def _independent(
    objective: Objective, sets: list[Constraint], solvers: list[Solver], **options: Any
) -> Iterator[Result]:
    for solver, group in groupby(zip(sets, solvers, strict=True), key=lambda pair: pair[1]):
        some = [one for one, _ in group]
        if isinstance(solver, WorkingSet):
            yield from solver.path(objective, some, **options)
        else:
            yield from (minimize(objective, one, solver, **options) for one in some)


def _warm_started(
    objective: Objective, sets: list[Constraint], solvers: list[Solver], **options: Any
) -> Iterator[Result]:
    result: Result | None = None
    for one, solver in zip(sets, solvers, strict=True):
        if result is None or result.status not in (Status.LOWER_BOUND, Status.NO_MINIMISER):
            result = minimize(objective, one, solver, None if result is None else result.w, **options)
        yield result
