"""The one loop of the library: `iterate` makes states, `minimize` runs them until a rule says stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from time import perf_counter
from typing import Any

from .checking import checked_integer, with_warnings_of_caller, without_overflow_warnings
from .constraint import Constraint, require_constraint, require_symmetry
from .errors import InvalidInputError, NotFiniteError, format_value
from .meter import Meter
from .objective import LinearObjective, Objective, require, value_rounding
from .progress import progress_line
from .result import History, Result, Status
from .solver import Solver, State, Trace, require_solver
from .stationarity import leading_norm, norm
from .stopping import LowerBound, MaxIter, Run, Settled, Stop, StopRule, Unbounded
from .threads import serial_blas
from .typing import Array, is_real, library

_LIMITS = (Status.MAX_ITER, Status.BUDGET)
_FAR = 1e6  # times a point is where f is asked whether it falls for ever


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
        Go on from a state of an earlier run of the same solver instead of starting: yields it first.

    Yields
    ------
    State

    Raises
    ------
    CapabilityError
        If the objective lacks what the solver needs.
    InvalidInputError
        If the constraint does not fit the objective's shape, `w0` or `state` does not, the state is another
        solver's, or both are given; if the seed is no integer >= 0.

    Notes
    -----
    Scales are measured where the solver starts without `w0`, so a warm start costs one or two data passes more.
    States are immutable: a list of them is a correct record of the run.
    """
    with serial_blas():
        runs = _Runs(objective, [constraint], solver, w0, seed, state)
    while True:
        yield runs.states[0]
        with serial_blas():
            runs.advance([0])


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
    """
    rule = _stopping(solver, stop, max_iter, tol)
    began = perf_counter()
    with progress_line(progress, type(solver).__name__, max_iter) as report:
        runs = _Runs(objective, [constraint], solver, w0, seed, state)
        return _run(runs, rule, callback, began, lambda states: report(f"f = {states[0].value:.6g}"))[0]


@serial_blas()
def minimize_together(
    objective: Objective,
    constraints: Sequence[Constraint],
    solver: Solver,
    *,
    stop: StopRule | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
    progress: bool = False,
    seed: int = 0,
) -> list[Result]:
    """Minimise an objective over each of several sets, where the solver shares what the runs have in common.

    Parameters
    ----------
    objective :
        As in `minimize`.
    constraints : sequence of Constraint
        The sets; the answer for each is the one that `minimize` gives for it alone, up to rounding.
    solver, stop, max_iter, tol, progress, seed :
        As in `minimize`.

    Returns
    -------
    list of Result
        In the order of the constraints. Passes and seconds count from the common start until the run ended, the other
        runs' share included.

    Raises
    ------
    CapabilityError, InvalidInputError
        As in `iterate`.
    """
    rule = _stopping(solver, stop, max_iter, tol)
    if not constraints:
        return []
    began = perf_counter()
    with progress_line(progress, type(solver).__name__, max_iter) as report:
        runs = _Runs(objective, constraints, solver, None, seed, None)
        return _run(runs, rule, None, began, lambda states: report(f"{len(states)} runs"))


def _stopping(solver: Solver, stop: StopRule | None, max_iter: int, tol: float) -> StopRule:
    """Return the rule that ends a run."""
    require_solver(solver)
    checked_integer("max_iter", max_iter, 0)
    if not (is_real(tol) and tol >= 0):
        raise InvalidInputError(f"tol must be a number >= 0, got {format_value(tol)}")
    if stop is not None and not isinstance(stop, StopRule):
        raise InvalidInputError(f"stop must be a StopRule such as Passes(100) | Seconds(60), got {format_value(stop)}")
    always = Unbounded() | Settled()
    if stop is not None:
        return stop | always | MaxIter(max_iter)
    if tol > 0:
        return always | LowerBound(1e-15) | solver.stopping(tol) | MaxIter(max_iter)
    return always | MaxIter(max_iter)


class _Runs:
    """Runs of one solver on one objective over different sets, and the meter of their data passes."""

    @without_overflow_warnings
    def __init__(
        self,
        objective: Objective,
        constraints: Sequence[Constraint],
        solver: Solver,
        w0: Array | None,
        seed: int,
        state: State | None,
    ) -> None:
        require_solver(solver)
        checked_integer("seed", seed, 0)
        require(objective, Objective, by="an objective's contract")
        for constraint in constraints:
            require_constraint(constraint)
            constraint.check(tuple(objective.shape))
            require_symmetry(objective, constraint)
            solver.check(objective, constraint)
        if state is not None and w0 is not None:
            raise InvalidInputError("give either w0, to start a run, or state, to go on with one; got both")
        if state is not None and not isinstance(state, State):
            raise InvalidInputError(f"state must be the .state of an earlier result, got {format_value(state)}")
        self.objective, self.constraints, self.solver = objective, constraints, solver
        self._meter = Meter(0.0 if state is None else state.passes)
        self._metered: Any = objective.metered(self._meter)
        if state is not None:
            _check_state(objective, constraints[0], solver, state)
            self.states = [state]
            return
        starts = [] if w0 is None else [solver.start(self._metered, c, w0, seed) for c in constraints]
        nulls = self._null_states(seed, starts)
        self.states = []
        for constraint, null, start in zip(constraints, nulls, starts or nulls, strict=True):
            scale = leading_norm(constraint, null.at.gradient) if _is_finite(null) else nan
            size = norm(null.w) or 100.0 * norm(start.w)
            trace = Trace(self._meter.passes, null_value=null.value, null_gradient=scale, size=size)
            self.states.append(replace(start, trace=trace))

    def _null_states(self, seed: int, starts: Sequence[State]) -> Sequence[State]:
        """Return where the solver starts without w0, for the scales; where f is not finite there, the start itself."""
        try:
            nulls = self.solver.start_together(self._metered, self.constraints, seed)
        except NotFiniteError:
            if not starts:
                raise
            return starts
        return [null if _is_finite(null) else start for null, start in zip(nulls, starts or nulls, strict=True)]

    @without_overflow_warnings
    def advance(self, which: Sequence[int]) -> None:
        """Replace the states of some runs by the next ones."""
        before = [self.states[run] for run in which]
        constraints = [self.constraints[run] for run in which]
        near = [constraint.near(state.support) for constraint, state in zip(constraints, before, strict=True)]
        after = self.solver.advance_together(self._metered, near, before)
        for run, constraint, old, new in zip(which, constraints, before, after, strict=True):
            trace = replace(
                old.trace,
                passes=self._meter.passes,
                stable_for=old.trace.stable_for + 1 if constraint.same(old.support, new.support) else 0,
                previous_value=old.value if old.exact else nan,
                size=old.trace.size or 100.0 * norm(new.w),
            )
            self.states[run] = replace(new, trace=trace)

    @without_overflow_warnings
    def finish(self, run: int) -> State:
        """Return the state that the solver makes of a run's last one for an answer."""
        last = self.states[run]
        finished = self.solver.finish(self._metered, self.constraints[run], last)
        if finished is last:
            return last
        return replace(finished, trace=replace(last.trace, passes=self._meter.passes))


class _Record:
    """What is remembered of one run, and what it comes to."""

    def __init__(self, objective: Objective, constraint: Constraint, start: State, began: float) -> None:
        self._objective, self._constraint, self._began = objective, constraint, began
        # columns that are there, if empty, also of a run that is interrupted before its first step
        self._history = History(dict.fromkeys((*start.transition(), *start.record(), "passes", "seconds"), ()))
        self._best: State | None = None
        self._last, self._first_value, self._from_exact = start, start.value, start.exact
        self.finished: State | None = None
        self.ended: Stop | None = None

    def see(self, state: State) -> None:
        """Record a state, and how the run got there."""
        if state is not self._last:
            self._history.record(state.transition())
        self._last = state
        self._history.record({**state.record(), "passes": state.passes, "seconds": perf_counter() - self._began})
        comparable = state.exact and self._best is not None and self._best.exact  # estimates are of different things
        if _is_finite(state) and not (comparable and state.value >= self._best.value):  # type: ignore[union-attr]
            self._best = state

    def judge(self, rule: StopRule, callback: Callable[[State], None] | None) -> None:
        """Find out whether the run ends at the state seen last."""
        run = Run(self._objective, self._constraint, self._last, perf_counter() - self._began)
        self.ended = _verdict(rule, callback, run) if _is_finite(self._last) else _not_finite(self._last)
        if self.ended is not None and (self.ended.status.converged or self.ended.status in _LIMITS):
            self.ended = self._rise() or self.ended

    def end(self, status: Status, why: str) -> None:
        """End the run where it is, unless it has ended."""
        self.ended = self.ended or Stop(status, f"{why} {self._last.iteration}")

    def finish(self, runs: _Runs, run: int) -> None:
        """Have the solver finish a run that has ended, unless its last state is not its answer."""
        if self.ended is not None and self.ended.status is not Status.DIVERGED:
            self.finished = runs.finish(run)
            if self.ended.status.converged or self.ended.status in _LIMITS:
                self.ended = self._recede(self.finished) or self.ended

    def _rise(self) -> Stop | None:
        """Return that the run diverges, if it is above its start and the null model by more than rounding."""
        last, highest = self._last, max(self._first_value, self._last.trace.null_value)
        if not (last.exact and self._from_exact and last.value > highest):
            return None
        if last.value <= highest + value_rounding(self._objective, last.at):
            return None
        return Stop(Status.DIVERGED, f"f = {last.value:.3g} at iteration {last.iteration} is above where it began")

    def _recede(self, answer: State) -> Stop | None:
        """Return that there is no minimiser, if f falls for ever as the point grows.

        So it does where the chosen columns separate the classes. An objective that can tell is asked for a direction;
        of others only the direction of the point itself is tried, which a slow solver never goes far along.
        """
        objective, bound = self._objective, self._objective.lower_bound
        indices = self._constraint.indices(answer.support)
        if indices is not None and isinstance(objective, LinearObjective):
            return self._recede_along(answer, objective.recession(answer.at, indices))
        if objective.attains_bound() or bound == -inf:
            return None
        if norm(answer.w) == 0.0:
            return None
        far = objective.value(_FAR * answer.w)
        if not far - bound <= 1e-6 * (answer.trace.null_value - bound):
            return None
        return Stop(
            Status.NO_MINIMISER,
            f"the objective is {answer.value:.3g} after {answer.iteration} iterations, {far:.3g} at {_FAR:.0e} times "
            "the point",
        )

    def _recede_along(self, answer: State, move: Array | None) -> Stop | None:
        """Return that f falls for ever along a move, if the set lets the point go there."""
        if move is None:
            return None
        far = self._constraint.settle(answer.w + move, answer.support).point
        value = self._objective.value(far)
        if not value <= answer.value + 1e-9 * abs(answer.trace.null_value - answer.value):  # rounding of the move
            return None
        largest = int(library(move).argmax(library(move).abs(move)))
        return Stop(
            Status.NO_MINIMISER,
            f"the objective is {answer.value:.6g} after {answer.iteration} iterations, and no higher where coordinate "
            f"{largest} is {float(far[largest]):.3g} instead of {float(answer.w[largest]):.3g}",
        )

    def result(self) -> Result:
        """Return the outcome of a run that has ended."""
        assert self.ended is not None
        last, status = self._last, self.ended.status
        at_best = status in (Status.INTERRUPTED, Status.DIVERGED)
        answer = (self._best if at_best else self.finished) or last
        return Result(
            w=answer.w,
            support=answer.support,
            value=answer.value,
            status=status,
            message=f"{self.ended.message}: {status.sentence}",
            n_iter=last.iteration,
            history=self._history,
            state=last,
            seconds=perf_counter() - self._began,
            passes=last.passes if at_best else answer.passes,
            objective=self._objective,
            constraint=self._constraint,
        )


def _run(
    runs: _Runs,
    rule: StopRule,
    callback: Callable[[State], None] | None,
    began: float,
    report: Callable[[list[State]], None],
) -> list[Result]:
    """Advance runs until a rule ends each of them."""
    starts = zip(runs.constraints, runs.states, strict=True)
    records = [_Record(runs.objective, constraint, start, began) for constraint, start in starts]
    going = list(range(len(records)))
    try:
        while True:
            for run in going:
                records[run].see(runs.states[run])
            for run in going:
                records[run].judge(rule, callback)
                records[run].finish(runs, run)
            going = [run for run in going if records[run].ended is None]
            if not going:
                break
            runs.advance(going)
            report([runs.states[run] for run in going])
    except NotFiniteError as error:
        for run in going:
            records[run].end(Status.DIVERGED, f"{error}, after iteration")
    except KeyboardInterrupt:
        for run in going:
            records[run].end(Status.INTERRUPTED, "interrupted at iteration")
    return [record.result() for record in records]


def _check_state(objective: Objective, constraint: Constraint, solver: Solver, state: State) -> None:
    """Refuse to go on with a state of another solver, objective or constraint."""
    if not isinstance(state, solver.state_type):
        raise InvalidInputError(
            f"{type(solver).__name__} goes on with a {solver.state_type.__name__}, got a {type(state).__name__}: "
            "resume with the solver that made the state"
        )
    if tuple(state.w.shape) != tuple(objective.shape):
        raise InvalidInputError(f"the state has shape {tuple(state.w.shape)}, the objective {tuple(objective.shape)}")
    rounding = max(1e-6, float(library(state.w).finfo(state.w.dtype).eps) ** 0.5)
    if norm(constraint.settle(state.w, state.support).point - state.w) > rounding * norm(state.w):
        raise InvalidInputError(
            "the state's point is outside the constraint; to start from its projection give w0=state.w"
        )
    now = solver.recall(objective, state)
    if abs(now - state.value) > rounding * max(abs(now), abs(state.value)):
        what, made = ("f", "") if state.exact else ("f on its batch", ", or with other batches")
        raise InvalidInputError(
            f"the state says {what} = {state.value:.6g} where this objective has {now:.6g}: it was made with another "
            f"objective{made}; to start from its point give w0=state.w"
        )


def _is_finite(state: State) -> bool:
    """Return whether the objective and its gradient are finite numbers."""
    gradient = state.at.gradient
    xp = library(gradient)
    return isfinite(state.value) and bool(xp.all(xp.isfinite(gradient)))


def _not_finite(state: State) -> Stop:
    what = "objective" if not isfinite(state.value) else "gradient"
    where = f"at iteration {state.iteration}" if state.iteration else "where the run starts"
    return Stop(Status.DIVERGED, f"the {what} is not finite {where}: f = {state.value}")


def _verdict(rule: StopRule, callback: Callable[[State], None] | None, run: Run) -> Stop | None:
    """Return why a run ends here: the callback says so, or the rule; None to go on."""
    try:
        if callback is not None:
            with with_warnings_of_caller():
                callback(run.state)
    except StopIteration:
        return Stop(Status.CALLBACK, f"the callback raised StopIteration at iteration {run.state.iteration}")
    return rule.check(run)
