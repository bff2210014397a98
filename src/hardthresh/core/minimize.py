"""The one loop of the library: `iterate` makes states, `minimize` runs them until a rule says stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from .constraint import Constraint
from .errors import DataLostError, NotFiniteError
from .objective import Objective
from .progress import progress_line
from .record import Record, stopping_rule
from .result import Result, Status
from .runner import Runner
from .solver import Solver
from .state import State
from .stopping import StopRule
from .threads import serial_blas
from .typing import Array


def iterate(
    objective: Objective,
    constraint: Constraint,
    solver: Solver,
    w0: Array | None = None,
    *,
    seed: int = 0,
    state: State | None = None,
) -> Iterator[State]:
    """Yield the start state (``state.iteration == 0``), then one state per iteration, without end.

    Parameters
    ----------
    objective, constraint, solver :
        Minimise the objective over the constraint with the solver.
    w0 : array of the objective's shape, optional
        The run starts at its projection. Default: the null model of the objective, usually zero.
    seed : int
        Seed of all random numbers, >= 0; a state contains its own.
    state : State, optional
        A state of an earlier run of the same solver, to continue that run; it is yielded first.

    Yields
    ------
    State

    Raises
    ------
    CapabilityError
        If the objective lacks what the solver needs.
    InvalidInputError
        If the constraint, `w0` or `state` does not match the shape of the objective; if the state is that of another
        solver; if both `w0` and `state` are given; if the seed is not an integer >= 0.

    Notes
    -----
    Scales of tolerances are computed at the default start, so a warm start costs one or two more data passes. States
    are immutable: a list of them is a correct record of the run.
    """
    with serial_blas():
        runner = Runner(objective, constraint, solver)
        state = runner.first(w0, seed, state)
    while True:
        yield state
        with serial_blas():
            state = runner.advance(state)


@serial_blas()
def minimize(
    objective: Objective,
    constraint: Constraint,
    solver: Solver,
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
    """Minimise an objective over a constraint set.

    Parameters
    ----------
    objective, constraint, solver, w0, seed, state :
        As in `iterate`.
    stop : StopRule, optional
        The stopping rule, in addition to `max_iter` and the convergence criteria of the solver. Default: a perfect fit,
        or the rule of the solver with `tol`.
    max_iter : int
        Largest number of iterations, counted from iteration 0, also for a resumed run.
    tol : float
        Relative tolerance, >= 0, of the rule of the solver; 0 disables this rule. Not used if `stop` is given.
    callback : callable, optional
        ``callback(state)`` is called after every state, including the start. Its return value is ignored; raise
        StopIteration in it to stop the run.
    progress : bool
        Whether to show a progress line (needs rich or tqdm).

    Returns
    -------
    Result
        The result with the last iterate, after `finish` of the solver; with the best iterate if the run was interrupted
        from the keyboard or diverged. The history and the seconds of a resumed run start at the state from which it was
        resumed.

    Raises
    ------
    CapabilityError, InvalidInputError
        As in `iterate`.
    DataLostError
        If the data can no longer be read, for example because a cluster was lost; its `state` is the last one.
    """
    rule = stopping_rule(solver, stop, max_iter, tol)
    began = perf_counter()
    with progress_line(progress, type(solver).__name__, max_iter) as report:
        runner = Runner(objective, constraint, solver)
        state = runner.first(w0, seed, state)
        record = Record(runner, state, began)
        try:
            record.add(state)
            while True:
                record.judge(rule, callback)
                if record.ended is not None:
                    break
                state = runner.advance(state)
                record.add(state)
                report(state.progress())
        except DataLostError as error:
            error.state = state
            raise
        except NotFiniteError as error:
            record.end(Status.DIVERGED, f"{error}, after iteration")
        except KeyboardInterrupt:
            record.end(Status.INTERRUPTED, "interrupted at iteration")
    return record.result()
