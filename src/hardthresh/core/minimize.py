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
    """Yield the start state (``state.iteration == 0``), then one state per iteration, for ever.

    Parameters
    ----------
    objective, constraint, solver :
        Minimise the objective over the constraint with the solver.
    w0 : array of the objective's shape, optional
        Start at its projection; default zero.
    seed : int
        Seed of everything random, >= 0; a state brings its own.
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
        If the constraint does not fit the objective's shape, `w0` or `state` does not, the state is another
        solver's, or both are given; if the seed is not an integer >= 0.

    Notes
    -----
    Scales are measured where the solver starts without `w0`, so a warm start costs one or two data passes more.
    States are immutable: a list of them is a correct record of the run.
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
        When to stop, besides `max_iter` and a solver that has settled. Default: a perfect fit, or the solver's own rule
        with `tol`.
    max_iter : int
        Limit of iterations, counted from iteration 0 also when a run is resumed.
    tol : float
        Relative tolerance, >= 0, of the solver's own rule; 0 switches that rule off. Not used when `stop` is given.
    callback : callable, optional
        ``callback(state)`` after every state, the start included. What it returns is ignored: raise StopIteration in it
        to stop the run.
    progress : bool
        Show a progress line (needs rich or tqdm).

    Returns
    -------
    Result
        With the last iterate, or what the solver's `finish` makes of it; with the best one if the run was interrupted
        from the keyboard or diverged. The history of a resumed run begins at the state that it resumed from, and
        seconds count from there.

    Raises
    ------
    CapabilityError, InvalidInputError
        As in `iterate`.
    DataLostError
        If the data cannot be read any more, such as those of a cluster that is gone; its `state` is the last one.
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
