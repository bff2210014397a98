"""The one loop of the library: `iterate` makes states, `minimize` runs them until a rule says stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isfinite, nan
from time import perf_counter
from typing import Any

from array_api_compat import array_namespace

from .constraint import Constraint
from .errors import InvalidInputError, NotFiniteError
from .meter import Meter
from .objective import Objective, provides, require
from .progress import progress_line
from .result import History, Result, Status
from .solver import Solver, State, Trace
from .stationarity import leading_norm, norm
from .stopping import LowerBound, MaxIter, Run, Settled, Stop, StopRule
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
        Seed of everything random; a state brings its own.
    state : State, optional
        Go on from a state of an earlier run of the same solver instead of starting: yields it first.

    Raises
    ------
    CapabilityError
        If the objective lacks what the solver needs.
    InvalidInputError
        If the constraint does not fit the objective's shape, `w0` or `state` does not, the state is another
        solver's, or both are given.

    Notes
    -----
    Scales are measured where the solver starts without `w0`, so a warm start costs one or two data passes more.
    States are immutable: a list of them is a correct record of the run.
    """
    require(objective, ("shape", "zeros", "predict", "value", "evaluate"), by="an objective's contract")
    constraint.check(tuple(objective.shape))
    solver.check(objective, constraint)
    if state is not None and w0 is not None:
        raise InvalidInputError("give either w0, to start a run, or state, to go on with one; got both")
    if state is not None:
        _check_state(objective, constraint, solver, state)
    counted = provides(objective, "metered")
    meter = Meter((0.0 if state is None else state.passes) if counted else nan)
    metered: Any = objective.metered(meter) if counted else objective  # type: ignore[attr-defined]
    if state is None:
        null = solver.start(metered, constraint, None, seed)
        state = null if w0 is None else solver.start(metered, constraint, w0, seed)
        scale = leading_norm(constraint, null.at.gradient)
        state = replace(state, trace=Trace(meter.passes, null_value=null.value, null_gradient=scale))
    while True:
        yield state
        before = state
        after = solver.advance(metered, constraint, before)
        unchanged = constraint.same(before.support, after.support)
        trace = replace(
            before.trace,
            passes=meter.passes,
            stable_for=before.trace.stable_for + 1 if unchanged else 0,
            previous_value=before.value,
        )
        state = replace(after, trace=trace)


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
        With the last iterate; with the best one if the run was interrupted from the keyboard or diverged. The
        history of a resumed run begins at the state that it resumed from, and seconds count from there.

    Raises
    ------
    CapabilityError, InvalidInputError
        As in `iterate`.
    """
    if not tol >= 0:
        raise InvalidInputError(f"tol must be >= 0, got {tol!r}")
    if stop is not None and not isinstance(stop, StopRule):
        raise InvalidInputError(f"stop must be a StopRule such as Passes(100) | Seconds(60), got {stop!r}")
    rule: StopRule = Settled() | MaxIter(max_iter)
    if stop is not None:
        rule = stop | rule
    elif tol > 0:
        rule = Settled() | LowerBound(1e-15) | solver.stopping(tol) | MaxIter(max_iter)
    began = perf_counter()
    history = History()
    states = iterate(objective, constraint, solver, w0, seed=seed, state=state)
    last = best = next(states)
    ended: Stop | None = None
    with progress_line(progress, type(solver).__name__, max_iter) as report:
        try:
            while ended is None:
                run = Run(objective, constraint, last, perf_counter() - began)
                history.record({**last.record(), "passes": last.passes, "seconds": run.seconds})
                if _is_finite(last) and not last.value >= best.value:
                    best = last
                ended = _verdict(rule, callback, run)
                if ended is None:
                    last = next(states)
                    history.record(last.transition())
                    report(f"f = {last.value:.6g}")
        except NotFiniteError as error:
            ended = Stop(Status.DIVERGED, f"{error}, after iteration {last.iteration}")
        except KeyboardInterrupt:
            ended = Stop(Status.INTERRUPTED, f"interrupted at iteration {last.iteration}")
    answer = best if ended.status in (Status.INTERRUPTED, Status.DIVERGED) else last
    return Result(
        w=answer.w,
        support=answer.support,
        value=answer.value,
        status=ended.status,
        message=f"{ended.message}: {ended.status.sentence}",
        n_iter=last.iteration,
        history=history,
        state=last,
        seconds=perf_counter() - began,
        passes=last.passes,
        objective=objective,
        constraint=constraint,
    )


def _check_state(objective: Objective, constraint: Constraint, solver: Solver, state: State) -> None:
    """Refuse to go on with a state of another solver, objective or constraint."""
    if not isinstance(state, solver.state_type):
        raise InvalidInputError(
            f"{type(solver).__name__} goes on with a {solver.state_type.__name__}, got a {type(state).__name__}: "
            "resume with the solver that made the state"
        )
    if tuple(state.w.shape) != tuple(objective.shape):
        raise InvalidInputError(f"the state has shape {tuple(state.w.shape)}, the objective {tuple(objective.shape)}")
    if norm(constraint.project(state.w).point - state.w) > 1e-6 * norm(state.w):
        raise InvalidInputError(
            "the state's point is outside the constraint; to start from its projection give w0=state.w"
        )
    if "value" in state.record():
        now = objective.value(state.w)
        if abs(now - state.value) > 1e-6 * max(abs(now), abs(state.value)):
            raise InvalidInputError(
                f"the state says f = {state.value:.6g} where this objective has {now:.6g}: it was made with another "
                "objective; to start from its point give w0=state.w"
            )


def _is_finite(state: State) -> bool:
    """Return whether the objective and its gradient are finite numbers."""
    gradient = state.at.gradient
    xp = array_namespace(gradient)
    return isfinite(state.value) and bool(xp.all(xp.isfinite(gradient)))


def _verdict(rule: StopRule, callback: Callable[[State], None] | None, run: Run) -> Stop | None:
    """Return why a run ends here: it diverged, the callback says so, or the rule; None to go on."""
    state = run.state
    if not _is_finite(state):
        where = "objective" if not isfinite(state.value) else "gradient"
        return Stop(
            Status.DIVERGED, f"the {where} is not finite at iteration {state.iteration}, where f = {state.value}"
        )
    try:
        if callback is not None:
            callback(state)
    except StopIteration:
        return Stop(Status.CALLBACK, f"the callback raised StopIteration at iteration {state.iteration}")
    return rule.check(run)
