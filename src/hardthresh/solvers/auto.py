"""The public entry points: `minimize` and `iterate`, which choose a solver when none is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hardthresh.core import iterate as core_iterate
from hardthresh.core import minimize as core_minimize
from hardthresh.core.constraint import Constraint, CoordinateBudget, RowBudget, coordinate_budget, require_constraint
from hardthresh.core.objective import LinearObjective, Objective, RowObjective, SmoothObjective
from hardthresh.core.result import Result
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import StopRule
from hardthresh.core.typing import Array

from .conjugate import ConjugateIHT
from .guessed import guessed_state
from .iht import IHT
from .pursuit import HardThresholdingPursuit
from .splicing import Splicing
from .units import Units
from .working_set import WorkingSet

MOST_COLUMNS = 4096
"""Pursuit is the default if 4k + 256 columns, four times as many as are chosen, are more than this number. The Gram
matrix of the working set may then have 10k + 1000 columns, which take 0.9 GB."""


MOST_SPLICED = 1024
"""Splicing is the default up to so many coordinates that may be chosen: the Hessian of these, of which an iteration
makes two, then takes a gradient for each and a second for the rest. Arbitrary."""


def choose_solver(objective: Objective, constraint: Constraint, *, tol: float = 1e-8) -> Solver:
    """Return the default solver of a problem.

    The default is `Splicing` for a `Function` that is not quadratic, with at most k coordinates, groups or rows, which
    have at most 1024 coordinates together; `WorkingSet` for objectives whose Hessian is available by columns (linear
    models) with at most k coordinates, and for models of several outputs with at most k rows, if its Gram matrix is
    small; `ConjugateIHT` for matrix completion (objectives that ignore some coordinates, and supports that are not sets
    of coordinates), where it takes about half the time of pursuit. Otherwise it is `HardThresholdingPursuit`, or `IHT`
    with backtracking if the objective has no curvature.

    Parameters
    ----------
    objective, constraint : Objective, Constraint
        The problem.
    tol : float
        Relative tolerance; 0 stands for the solver's own default.
    """
    require_constraint(constraint)
    if not isinstance(objective, SmoothObjective):
        return IHT()
    solver: WorkingSet | ConjugateIHT | Splicing | HardThresholdingPursuit
    if objective.traits.arbitrary and _suits_splicing(objective, constraint):
        solver = Splicing()
    elif _suits_working_set(objective, constraint):
        solver = WorkingSet()
    elif objective.traits.partial and _is_curved(objective, constraint):
        solver = ConjugateIHT()
    else:
        solver = HardThresholdingPursuit(exchanges=10)
    return replace(solver, tol=tol) if tol > 0 and tol != solver.tol else solver


def _is_curved(objective: Objective, constraint: Constraint) -> bool:
    """Return whether supports are not sets of coordinates, as those of matrices of low rank."""
    constraint.check(tuple(objective.shape))
    return constraint.project(objective.zeros()).support.indices is None


def _suits_splicing(objective: Objective, constraint: Constraint) -> bool:
    """Return whether the set chooses units that do not overlap, with few coordinates in all."""
    units = Units.of(constraint, tuple(objective.shape))
    return units is not None and units.most_coordinates <= MOST_SPLICED


def _suits_working_set(objective: Objective, constraint: Constraint) -> bool:
    """Return whether the working set can run, with a small Gram matrix."""
    shape = tuple(objective.shape)
    selection: CoordinateBudget | RowBudget | None = coordinate_budget(constraint, shape)
    if isinstance(objective, RowObjective):
        structure = constraint.structure(shape)
        selection = structure if isinstance(structure, RowBudget) else None
    elif not isinstance(objective, LinearObjective):
        return False
    if selection is None:
        return False
    return min(objective.shape[0], 4 * (selection.budget + len(selection.free)) + 256) <= MOST_COLUMNS


def iterate(
    objective: Objective,
    constraint: Constraint,
    solver: Solver | None = None,
    w0: Array | None = None,
    *,
    seed: int = 0,
    state: State | None = None,
) -> Iterator[State]:
    """Yield the start state, then one state per iteration, without end; see `hardthresh.core.iterate`.

    Parameters
    ----------
    objective, constraint :
        Minimise the objective over the constraint.
    solver : Solver, optional
        Default: chosen by `choose_solver`.
    w0, seed, state :
        As in `hardthresh.core.iterate`.

    Examples
    --------
    >>> import hardthresh as ht
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> f = LinearModel(np.eye(3), np.array([3.0, 0.0, 1.0]))
    >>> for state in ht.iterate(f, Sparsity(1)):
    ...     if state.iteration == 1:
    ...         break
    >>> state.w
    array([3., 0., 0.])
    """
    return core_iterate(
        objective, constraint, solver or choose_solver(objective, constraint), w0, seed=seed, state=state
    )


def minimize(
    objective: Objective,
    constraint: Constraint,
    solver: Solver | None = None,
    w0: Array | None = None,
    *,
    stop: StopRule | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    callback: Callable[[State], None] | None = None,
    progress: bool = False,
    seed: int = 0,
    state: State | None = None,
) -> Result:
    """Minimise an objective over a constraint set; see `hardthresh.core.minimize`.

    Parameters
    ----------
    objective, constraint :
        Minimise the objective over the constraint.
    solver : Solver, optional
        Default: chosen by `choose_solver`; it needs no step size, no smoothness constant and no target.
    w0, stop, max_iter, tol, callback, progress, seed, state :
        As in `hardthresh.core.minimize`.

    Returns
    -------
    Result
        See `hardthresh.core.Result`.

    Examples
    --------
    >>> import hardthresh as ht
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 500))
    >>> y = X[:, [3, 50, 400]] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(100)
    >>> ht.minimize(LinearModel(X, y), Sparsity(3)).support
    Coordinates([3, 50, 400])
    """
    solver = solver or choose_solver(objective, constraint, tol=tol)
    if w0 is None and state is None:
        state = guessed_state(objective, constraint, solver, seed)
    return core_minimize(
        objective,
        constraint,
        solver,
        w0,
        stop=stop,
        max_iter=max_iter,
        tol=tol,
        callback=callback,
        progress=progress,
        seed=seed,
        state=state,
    )
