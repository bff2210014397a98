"""The record of a run: its history, the stopping rules and the result."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from time import perf_counter

from .checking import checked_integer, checked_number, with_warnings_of_caller
from .errors import InvalidInputError, format_value
from .lazy import at_hand
from .result import History, Result, Status
from .runner import Runner
from .solver import Solver, require_solver
from .state import State
from .stopping import LowerBound, MaxIter, Run, Settled, Stop, StopRule, Unbounded
from .verdicts import Diverged, NoMinimiser, NotFinite, is_finite

_REVIEWED = (Status.MAX_ITER, Status.BUDGET)
"""Ends, besides convergence, at which the last state is examined once more."""

_PERFECT = 1e-15
"""The gap to the lower bound, relative to the null model, of a perfect fit: a few units of rounding of float64."""

_ALWAYS, _PERFECT_FIT = Unbounded() | Settled(), LowerBound(_PERFECT)


def stopping_rule(solver: Solver, stop: StopRule | None, max_iter: int, tol: float) -> StopRule:
    """Return the rule that ends a run, for the arguments of `minimize`."""
    require_solver(solver)
    checked_integer("max_iter", max_iter, 0)
    checked_number("tol", tol, least=0.0, finite=False)
    if stop is not None and not isinstance(stop, StopRule):
        raise InvalidInputError(f"stop must be a StopRule such as Passes(100) | Seconds(60), got {format_value(stop)}")
    if stop is not None:
        return stop | _ALWAYS | MaxIter(max_iter)
    if tol > 0:
        return _ALWAYS | _PERFECT_FIT | solver.stopping(tol) | MaxIter(max_iter)
    return _ALWAYS | MaxIter(max_iter)


class Record:
    """The record of one run: its history, and its result once it has ended.

    Parameters
    ----------
    runner : Runner
        Whose run it is.
    start : State
        The first state.
    began : float
        When, by `perf_counter`.

    Attributes
    ----------
    ended : Stop or None
        Why the run has ended.
    """

    def __init__(self, runner: Runner, start: State, began: float) -> None:
        self._runner, self._start, self._began = runner, start, began
        of = runner.objective
        self._counts_readings = of.traits.reading_is_dear or not isnan(getattr(of, "readings", nan))
        # columns that are there, if empty, also of a run that is interrupted before its first step
        self._history = History(dict.fromkeys((*start.transition(), *start.record(), "passes", "seconds"), ()))
        self._best: State | None = None
        self._last = start
        self._answer: State | None = None
        self._run = self._seen(start)
        self._finite: bool | None = None  # whether f is finite at the last state, once that was recorded
        self.ended: Stop | None = None

    def add(self, state: State) -> None:
        """Record a state, and how the run got there."""
        last, self._last = self._last, state
        self._run = self._seen(state)
        if self._finite is None or state.at is not last.at:
            finite = is_finite(state)
            if not at_hand(finite) and state.exact:
                _ = self._run.rounding  # which the rules ask for: it comes over with all other numbers
            self._finite = bool(finite)
        if state is not last:
            self._history.record(state.transition())
        self._history.record({**state.record(), "passes": state.passes, "seconds": perf_counter() - self._began})
        if self._counts_readings:
            self._history.record({"readings": getattr(self._runner.objective, "readings", nan)})
        comparable = state.exact and self._best is not None and self._best.exact  # estimates are of different things
        if self._finite and not (comparable and state.value >= self._best.value):  # type: ignore[union-attr]
            self._best = state

    def judge(self, rule: StopRule, callback: Callable[[State], None] | None = None) -> None:
        """Find out whether the run ends at the last state; if so, have the solver finish it and examine it again."""
        run = self._run
        not_finite = None if self._finite else NotFinite().check(run)
        self.ended = not_finite or self._called_back(callback) or rule.check(run)
        if self.ended is None:
            return
        reviewed = self.ended.status.converged or self.ended.status in _REVIEWED
        if reviewed:
            self.ended = Diverged().check(run) or self.ended
        if self.ended.status is not Status.DIVERGED:
            self._answer = self._runner.finish(self._last)
            if reviewed:
                self.ended = NoMinimiser().check(self._seen(self._answer)) or self.ended

    def end(self, status: Status, why: str) -> None:
        """End the run where it is, unless it has ended."""
        self.ended = self.ended or Stop(status, f"{why} {self._last.iteration}")

    def result(self) -> Result:
        """Return the outcome of a run that has ended."""
        assert self.ended is not None
        last, status = self._last, self.ended.status
        at_best = status in (Status.INTERRUPTED, Status.DIVERGED)
        answer = (self._best if at_best else self._answer) or last
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
            objective=self._runner.objective,
            constraint=self._runner.constraint,
        )

    def _seen(self, state: State) -> Run:
        return Run(self._runner.objective, self._runner.constraint, state, perf_counter() - self._began, self._start)

    def _called_back(self, callback: Callable[[State], None] | None) -> Stop | None:
        try:
            if callback is not None:
                with with_warnings_of_caller():
                    callback(self._last)
        except StopIteration:
            return Stop(Status.CALLBACK, f"the callback raised StopIteration at iteration {self._last.iteration}")
        return None
