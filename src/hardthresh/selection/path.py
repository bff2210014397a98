"""Fits for a range of budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Objective
from hardthresh.core.result import Result, Status
from hardthresh.core.solver import Solver
from hardthresh.solvers import minimize


def path(
    objective: Objective,
    constraint: Callable[[int], Constraint],
    budgets: Iterable[int],
    solver: Solver | None = None,
    *,
    warm_start: bool = False,
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
        In the order to fit them; increasing for a useful warm start.
    solver : Solver, optional
        Default: chosen as by `minimize`.
    warm_start : bool
        Whether each fit starts from the last one's answer. That saves passes, but the answer for a budget then
        depends on the budgets before it, and after a perfect fit all larger budgets get that fit; without it, it is
        the answer for that budget alone.
    **options
        For `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(3), np.array([3.0, 1.0, 2.0]))
    >>> [result.support.tolist() for result in path(f, Sparsity, [1, 2])]
    [[0], [0, 2]]
    """
    last: Result | None = None
    for budget in budgets:
        if last is None or last.status not in (Status.LOWER_BOUND, Status.NO_MINIMISER):
            w0 = None if last is None else last.w
            result = minimize(objective, constraint(budget), solver, w0, **options)
        if result.status is Status.INTERRUPTED:  # the best iterate of one budget is no answer to the others
            raise KeyboardInterrupt
        last = result if warm_start else None
        yield result
