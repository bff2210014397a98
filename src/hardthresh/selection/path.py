"""Fits for a range of values of k (budgets)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.objective import Objective
from hardthresh.core.result import Result, Status
from hardthresh.core.solver import Solver
from hardthresh.objectives import LinearModel
from hardthresh.solvers import WorkingSet, choose_solver, minimize
from hardthresh.solvers.guessed import guessed_path


def path(
    objective: Objective,
    constraint: Callable[[int], Constraint],
    budgets: Iterable[int],
    solver: Solver | None = None,
    *,
    alphas: Iterable[float] | None = None,
    warm_start: bool = False,
    tol: float = 1e-8,
    **options: Any,
) -> Iterator[Result]:
    """Yield the result for each budget (k) in turn; with several ridges, all budgets for one ridge after another.

    Parameters
    ----------
    objective : Objective
        f.
    constraint : callable
        Returns the constraint of a budget, for example ``Sparsity``.
    budgets : iterable of int
        The values of k, in the order in which results are yielded; increasing for a useful warm start.
    solver : Solver, optional
        Default: chosen for each budget as in `minimize`, with ``WorkingSet(effort="fast")`` instead of
        ``WorkingSet()``, because most results of a path only have to be compared with their neighbours. Call `minimize`
        with the budget that you finally choose.
    alphas : iterable of float, optional
        Ridges >= 0 on the coordinates that are not free; they replace that of f, which has to be a `LinearModel`. Each
        ridge has its own path, and each result contains the objective with its ridge, so ``min(path(...), key=ebic)``
        chooses the budget and the ridge together.
    warm_start : bool
        Whether each fit starts from the previous solution. Solutions then depend on the previous budgets, and all
        budgets after a perfect fit return this fit. Without a warm start, a solver that shares no work between budgets
        returns the same solutions as for each budget alone. `WorkingSet` searches all budgets together, so a solution
        may be better or worse than for the budget alone.
    tol : float
        As for `minimize`.
    **options
        ``stop``, ``max_iter``, ``progress`` and ``seed``, as for `minimize`.

    Raises
    ------
    InvalidInputError
        For budgets or ridges that are a single number, and as raised by `minimize`.
    CapabilityError
        For `alphas` with an objective that is not a `LinearModel`.

    Notes
    -----
    Without `warm_start`, the budgets of `WorkingSet`, the default solver of linear models, run together: they share the
    Gram matrix, the forward path, and each product with the data, so fifty budgets cost a few times as much as one. The
    first result is yielded when all are done, and the passes and seconds of each are those of all. With the default
    effort "fast" f is about 2 % above the lowest known value on average (see the guide to speed), and fifty budgets
    take a fifth to a third of the time that they take with "balanced".

    See Also
    --------
    Path : The results as a sequence, with criteria and a table.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(3), np.array([3.0, 1.0, 2.0]))
    >>> [list(result.support) for result in path(f, Sparsity, [1, 2])]
    [[0], [0, 2]]
    >>> from hardthresh.selection import ebic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 20))
    >>> f = LinearModel(X, X @ np.r_[1.0, 1.0, np.zeros(18)] + rng.standard_normal(60))
    >>> best = min(path(f, Sparsity, range(1, 6), alphas=[0.0, 0.1, 1.0]), key=ebic)
    >>> best.support, float(best.objective.l2[0])
    (Coordinates([0, 1]), 0.1)
    """
    if not isinstance(budgets, Iterable):
        raise InvalidInputError(f"budgets must be several numbers, such as range(1, 11); got {format_value(budgets)}")
    sets = [constraint(budget) for budget in budgets]
    fitted = _warm_started if warm_start else _independent
    for ridged in [objective] if alphas is None else _with_ridges(objective, sets, alphas):
        solvers = [solver] * len(sets) if solver else _ranking([choose_solver(ridged, one, tol=tol) for one in sets])
        for result in fitted(ridged, sets, solvers, tol=tol, **options):
            if result.status is Status.INTERRUPTED:  # the best iterate of one budget does not answer for the others
                raise KeyboardInterrupt
            yield result


def _with_ridges(objective: Objective, sets: list[Constraint], alphas: Any) -> list[Objective]:
    """Return a linear model with each of some ridges on the coordinates that no set leaves free."""
    if not isinstance(alphas, Iterable):
        raise InvalidInputError(f"alphas must be several numbers, such as [0.0, 0.1]; got {format_value(alphas)}")
    if not isinstance(objective, LinearModel):
        raise CapabilityError(f"alphas needs a LinearModel, whose ridge can be set; got {type(objective).__name__}")
    counted = np.ones(objective.shape)
    for one in sets[:1]:  # the sets of a path differ in their budgets alone
        counted[to_numpy(one.project(objective.zeros()).support.indices)] = 0.0
    ridges = [checked_number("alphas", alpha, least=0.0) for alpha in alphas]
    return [objective.with_ridge(ridge * counted) for ridge in ridges]


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
            states = guessed_path(objective, some, solver, options.get("seed", 0))
            yield from solver.path(objective, some, states=states, **options)
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
