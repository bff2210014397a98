"""A runner of a solver on one problem, which starts, advances and finishes states and counts data passes."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import TypeVar

from .checking import checked_integer, without_overflow_warnings
from .choosing import choose
from .constraint import Constraint, require_constraint, require_symmetry
from .errors import InvalidInputError, NotFiniteError, format_value
from .meter import Meter
from .objective import Objective, require
from .solver import Solver, require_solver
from .state import State, Trace
from .stationarity import leading_norm, norm
from .typing import Array, library
from .verdicts import is_finite

S = TypeVar("S", bound=State)

_FIRST = 100.0
"""Times the first point that is not zero: the size that points are compared with if the null model is zero. Arbitrary:
a first step may be much shorter than the answer."""

_SAME = 1e-6
"""The relative difference up to which the point and the value of a state count as those of the problem; or the root of
the unit of rounding, if that is larger. Arbitrary: on another machine sums differ by far less."""


class Runner:
    """A solver at work on one problem.

    Parameters
    ----------
    objective, constraint, solver :
        The problem, checked before anything is evaluated.
    meter : Meter, optional
        Runs that share their work share it.

    Attributes
    ----------
    metered : Objective
        The objective, adding its data passes to the meter.
    """

    def __init__(
        self, objective: Objective, constraint: Constraint, solver: Solver, meter: Meter | None = None
    ) -> None:
        require_solver(solver)
        require(objective, Objective, by="an objective's contract")
        require_constraint(constraint)
        constraint.check(tuple(objective.shape))
        require_symmetry(objective, constraint)
        solver.check(objective, constraint)
        self.objective, self.constraint, self.solver = objective, constraint, solver
        self.meter = Meter() if meter is None else meter
        self.metered = objective.metered(self.meter)

    @without_overflow_warnings
    def first(self, w0: Array | None, seed: int, state: State | None) -> State:
        """Return the state of iteration 0, or the state of an earlier run, checked, to continue."""
        checked_integer("seed", seed, 0)
        if state is not None:
            if w0 is not None:
                raise InvalidInputError("give either w0, to start a run, or state, to go on with one; got both")
            return self._resumed(state)
        start = None if w0 is None else self.solver.start(self.metered, self.constraint, w0, seed)
        try:
            null = self.solver.start(self.metered, self.constraint, None, seed)
        except NotFiniteError:
            if start is None:
                raise
            null = start
        return self.begun(null if start is None else start, null)

    def begun(self, start: S, null: State) -> S:
        """Return a start state with the scales of the problem, measured where the solver starts without w0.

        Where f is not finite there they are those of the start itself.
        """
        finite, size = is_finite(null), norm(null.w)
        if not finite and null is not start:
            null, finite, size = start, is_finite(start), norm(start.w)
        trace = Trace(
            self.meter.passes,
            null_value=null.value,
            null_gradient=leading_norm(self.constraint, null.at.gradient) if finite else nan,
            size=size or (0.0 if null is start else _FIRST * norm(start.w)),
        )
        return replace(start, trace=trace)

    @without_overflow_warnings
    def advance(self, state: State) -> State:
        """Return the next state."""
        return self.moved(state, self.solver.advance(self.metered, self.constraint, state))

    def moved(self, old: State, new: S) -> S:
        """Return a new state of the solver with the trace of the loop."""
        trace = Trace(
            passes=self.meter.passes,
            stable_for=choose(old.support == new.support, old.trace.stable_for + 1, 0),
            null_value=old.trace.null_value,
            null_gradient=old.trace.null_gradient,
            previous_value=old.value if old.exact else nan,
            size=old.trace.size or _FIRST * norm(new.w),
        )
        return replace(new, trace=trace)

    @without_overflow_warnings
    def finish(self, last: State) -> State:
        """Return the final state, as the solver makes it of the last one."""
        finished = self.solver.finish(self.metered, self.constraint, last)
        if finished is last:
            return last
        return replace(finished, trace=replace(last.trace, passes=self.meter.passes))

    def _resumed(self, state: State) -> State:
        """Return the state to continue from; raise `InvalidInputError` if it is of another problem or solver."""
        objective, solver = self.objective, self.solver
        if not isinstance(state, State):
            raise InvalidInputError(f"state must be the .state of an earlier result, got {format_value(state)}")
        if not isinstance(state, solver.state_type):
            raise InvalidInputError(
                f"{type(solver).__name__} goes on with a {solver.state_type.__name__}, got a {type(state).__name__}: "
                "resume with the solver that made the state"
            )
        if tuple(state.w.shape) != tuple(objective.shape):
            raise InvalidInputError(
                f"the state has shape {tuple(state.w.shape)}, the objective {tuple(objective.shape)}"
            )
        own = self.constraint.project(state.w).support.plain()
        # a file of an older version does not tell groups from coordinates
        if type(own) is not type(state.support.plain()):
            state = replace(state, support=own)
        rounding = max(_SAME, float(library(state.w).finfo(state.w.dtype).eps) ** 0.5)
        if norm(self.constraint.project_onto(state.w, state.support).point - state.w) > rounding * norm(state.w):
            raise InvalidInputError(
                "the state's point is outside the constraint; to start from its projection give w0=state.w"
            )
        now = solver.recall(objective, state)
        if abs(now - state.value) > rounding * max(abs(now), abs(state.value)):
            what, made = ("f", "") if state.exact else ("f on its batch", ", or with other batches")
            raise InvalidInputError(
                f"the state says {what} = {state.value:.6g} where this objective has {now:.6g}: it was made with "
                f"another objective{made}; to start from its point give w0=state.w"
            )
        self.meter.passes += state.passes
        return state
