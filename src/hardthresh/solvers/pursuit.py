"""Hard thresholding pursuit: the parameter-free, monotone default for any objective and constraint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.objective import Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.support import upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import Descent, exact_step, majorised_step, minimising_step, polyak_step

from .block_search import search_blocks
from .exchange import leave_and_join, rank_exchanges, try_exchanges
from .start import starting_point
from .steepest import is_steep, search_feasible, verdict
from .subspace import Refined, refine


@stored("state/pursuit", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class PursuitState(State):
    """A `State` that knows whether its point minimises f on its support."""

    minimal: bool = False


@register("solver", "pursuit", lambda: [HardThresholdingPursuit(), HardThresholdingPursuit(exchanges=4)])
@dataclass(frozen=True, slots=True)
class HardThresholdingPursuit(Solver):
    r"""Gradient step, projection, then a few Newton-CG steps on the new support; it stops when nothing improves.

    One iteration:

    1. step: the exact one-dimensional step along the gradient restricted to the support, shrunk until the projected
       point satisfies the quadratic majorisation;
    2. if the support changes and f falls: `cg_iterations` Newton-CG steps on the new support;
    3. otherwise: minimise f on the support to the end;
    4. at such a minimiser: escape, by the supports that larger and larger steps lead to, then by exchanging one of the
       coordinates that are missed least for the one that gains most, or where whole groups are chosen, by a local
       search over these, or where the set says what may leave together, by letting what is missed least leave for what
       promises most; the first whose refined value is lower is taken, and when none is, the solver has settled.

    Parameters
    ----------
    cg_iterations : int
        Products with the Hessian on a new support, >= 1.
    escapes : int
        How many times the step is doubled in search of a better support, >= 0.
    exchanges : int
        How many coordinates, or parts of the support, are considered for an exchange, >= 0, where the constraint and
        the objective know these; where they know whole groups, whether these are searched.
    tol : float
        Relative decrease of f, > 0, that counts as progress.

    Notes
    -----
    Needs no step size, no smoothness constant and no target. Cost: one data pass per iteration, plus about s/d of
    one for each product with the Hessian on a support of s of d columns, plus ``1 + exchanges`` passes each time
    nothing else improves. Without positive curvature along the gradient the step is found from the values of f;
    where the gradient stays steep and still nothing lowers f, as at a kink, the run ends as ``STALLED``.
    Guarantee: monotone, and it settles at a basic feasible point (up to `tol`) that no
    projected gradient step of the lengths tried improves; global optimality is not claimed (heuristic).

    References
    ----------
    Foucart (2011), *Hard thresholding pursuit*, for the step and the solve on the support. The rest is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import HardThresholdingPursuit, minimize
    >>> f = LinearModel(np.eye(4), np.array([3.0, 0.1, -2.0, 0.2]))
    >>> minimize(f, Sparsity(2), HardThresholdingPursuit()).w
    array([ 3.,  0., -2.,  0.])
    """

    cg_iterations: int = 3
    escapes: int = 6
    exchanges: int = 0
    tol: float = 1e-8

    state_type: ClassVar[type[State]] = PursuitState

    def __post_init__(self) -> None:
        if not (self.cg_iterations >= 1 and self.escapes >= 0 and self.exchanges >= 0 and self.tol > 0):
            raise InvalidInputError(f"need cg_iterations >= 1, escapes >= 0, exchanges >= 0 and tol > 0; got {self}")

    @property
    def requires(self) -> type:
        return SmoothObjective

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> PursuitState:
        at, projection = starting_point(objective, constraint, w0)
        return PursuitState(at=at, support=projection.support, seed=seed)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> PursuitState:
        assert isinstance(state, PursuitState)
        assert isinstance(objective, SmoothObjective)
        at, support = state.at, state.support
        last = state.step if state.step > 0.0 else polyak_step(at, at.gradient)
        if state.minimal:  # the gradient on the support is below the tolerance: a step along it would be arbitrary
            step = minimising_step(objective, at, constraint.hard_threshold(-at.gradient)) or last
        else:
            step = exact_step(objective, constraint, at, support, -at.gradient) or last
        descent = majorised_step(objective, constraint, at, -at.gradient, step)
        if descent is not None and descent.projection.support != support:
            moved = refine(
                objective, constraint, descent.projection, descent.prediction, cg_iterations=self.cg_iterations
            )
            if self._improves(objective, state, moved):
                return self._arrive(objective, state, moved, descent.step)
        if not state.minimal:
            here = Projection(at.point, support)
            negligible = 1e-3 * self._negligible(objective, state)
            solved = refine(objective, constraint, here, at.prediction, cg_iterations=0, rounds=25, tol=negligible)
            if state.value - solved.value <= max(negligible, value_rounding(objective, at)):
                solved = replace(solved, minimal=True)
            return self._arrive(objective, state, solved, step)
        if is_steep(constraint, state, self.tol):
            lower = search_feasible(objective, constraint, state)
            if lower is not None and self._improves(objective, state, lower):
                return self._arrive(
                    objective,
                    state,
                    Refined(lower.projection, lower.value, lower.prediction, minimal=False),
                    lower.step,
                )
        for tried, length in self._escapes(objective, constraint, state, step):
            if self._improves(objective, state, tried):
                return self._arrive(objective, state, tried, length)
        return verdict(
            objective,
            constraint,
            replace(state, iteration=state.iteration + 1, step=0.0),
            "the point is minimal on its support, and no longer step or exchange that was tried improves it",
            self.tol,
            self._negligible(objective, state),
        )

    def _escapes(
        self, objective: Objective, constraint: Constraint, state: PursuitState, step: float
    ) -> Iterator[tuple[Refined, float]]:
        """Yield refined points on other supports, with the steps that led to them."""
        for projection, length in self._longer_steps(constraint, state, step):
            yield refine(objective, constraint, projection, cg_iterations=self.cg_iterations, rounds=2), length
        if self.exchanges > 0 and constraint.is_full(state.support):
            ranked = rank_exchanges(
                objective, constraint, state.at, state.support, removals=self.exchanges, count=self.exchanges
            )
            swaps = try_exchanges(objective, constraint, state.at, state.support, ranked, cg_iterations=0, rounds=3)
            for _, tried in swaps:
                yield tried, step
        if self.exchanges > 0:
            blocks = search_blocks(objective, constraint, state.at, self._negligible(objective, state))
            if blocks is not None:
                yield refine(objective, constraint, blocks, cg_iterations=0, rounds=3), step
            for tried in leave_and_join(objective, constraint, state.at, state.support, self.exchanges):
                yield tried, step

    def _longer_steps(
        self, constraint: Constraint, state: PursuitState, step: float
    ) -> Iterator[tuple[Projection, float]]:
        """Yield projections that longer steps lead to, each with another support, the smallest exchange first."""
        last = state.support
        shortest, longest = 0.0, step
        for _ in range(self.escapes):
            longest *= 2.0
            if constraint.project(state.w - longest * state.at.gradient).support != last:
                break
            shortest = longest
        lengths = [longest * 2.0**i for i in range(self.escapes)]
        for _ in range(4):
            middle = 0.5 * (shortest + longest)
            if constraint.project(state.w - middle * state.at.gradient).support == last:
                shortest = middle
            else:
                longest = middle
                lengths.insert(0, middle)
        for length in lengths:
            projection = constraint.project(state.w - length * state.at.gradient)
            if projection.support != last:
                last = projection.support
                yield projection, length

    def _negligible(self, objective: Objective, state: PursuitState) -> float:
        """Return the decrease of f that does not count as progress."""
        scale = max(abs(state.value), abs(state.trace.null_value - state.value))
        return max(self.tol * scale, value_rounding(objective, state.at))

    def _improves(self, objective: Objective, state: PursuitState, found: Refined | Descent) -> bool:
        return found.value < state.value - self._negligible(objective, state)

    def _arrive(self, objective: Objective, state: PursuitState, found: Refined, step: float) -> PursuitState:
        """Return the state at a refined point: one data pass for its gradient."""
        at = objective.evaluate(found.projection.point, found.prediction)
        return replace(
            state,
            at=at,
            support=found.projection.support,
            iteration=state.iteration + 1,
            step=step,
            minimal=found.minimal,
        )
