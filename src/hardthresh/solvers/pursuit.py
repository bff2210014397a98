"""Hard thresholding pursuit: the parameter-free, monotone default for any objective and constraint."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, cast

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.choosing import ahead, choose, in_step, larger
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.lazy import at_hand
from hardthresh.core.objective import Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.support import Support, upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import Candidate, exact_step, majorised_step, minimising_step, polyak_step

from .block_search import search_blocks
from .exchange import rank_exchanges, swap_units, try_exchanges
from .refinement import FULL_SOLVE, refine, refining
from .start import starting_point
from .steepest import is_steep, search_feasible, verdict


@stored("state/pursuit", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class PursuitState(State):
    """A `State` that knows whether its point minimises f on its support."""

    minimal: bool = False


@register("solver", "pursuit", lambda: [HardThresholdingPursuit(), HardThresholdingPursuit(exchanges=4)])
@dataclass(frozen=True, slots=True)
class HardThresholdingPursuit(Solver):
    r"""Hard thresholding pursuit: a gradient step, a projection, and a few Newton-CG steps on the new support.

    One iteration:

    1. step: the exact one-dimensional step along the gradient restricted to the support, shrunk until the projected
       point satisfies the quadratic majorisation;
    2. if the support changes and f falls: `cg_iterations` Newton-CG steps on the new support;
    3. otherwise: minimise f on the support to the end;
    4. at such a minimiser: try other supports, that of a longer step and those of exchanges: of one of the least useful
       coordinates for the best other one; of whole groups, by a local search; or, for other structured supports, of the
       least useful unit for the one with the highest score. Take the first whose refined value is lower; if none is,
       the run has converged.

    Parameters
    ----------
    cg_iterations : int
        The number of products with the Hessian on a new support, >= 1.
    escapes : int
        How many times the step is doubled in search of a better support, >= 0.
    exchanges : int
        How many coordinates, or units of a structured support, are considered for an exchange, >= 0. For sets of whole
        groups: whether these are searched.
    tol : float
        Relative decrease of f, > 0, that counts as progress.

    Notes
    -----
    The solver needs no step size, no smoothness constant and no target. Cost: one data pass per iteration, plus about
    s/d of one for each product with the Hessian on a support of s of d columns, plus ``1 + exchanges`` passes each time
    nothing else improves. Without positive curvature along the gradient the step is found from the values of f; if the
    gradient is large and no step lowers f, as at a kink, the run ends with the status ``STALLED``. Guarantee: monotone,
    and it converges to a basic feasible point (up to `tol`), a minimum on its support that no projected gradient step
    of the lengths tried improves. It need not be a global minimum (heuristic).

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
        for name, least in {"cg_iterations": 1, "escapes": 0, "exchanges": 0}.items():
            checked_integer(name, getattr(self, name), least)
        checked_number("tol", self.tol, above=0.0)

    @property
    def requires(self) -> type:
        return SmoothObjective

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> PursuitState:
        at, projection = starting_point(objective, constraint, w0)
        return PursuitState(at=at, support=projection.support, seed=seed)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> PursuitState:
        objective, state = cast(SmoothObjective, objective), cast(PursuitState, state)
        at, support = state.at, state.support
        usual = state.step if state.step > 0.0 else polyak_step(at, at.gradient)
        if state.minimal:  # the gradient on the support is below the tolerance: a step along it would be arbitrary
            leading = constraint.hard_threshold(-at.gradient, support)
            exact = minimising_step(objective, constraint, at, leading, supports=1)
        else:
            exact = exact_step(objective, constraint, at, support, -at.gradient)
        step = choose(exact != 0.0, exact, usual)
        rounding = value_rounding(objective, at)
        negligible = self._negligible(state, rounding)
        stepped = majorised_step(objective, constraint, at, -at.gradient, step, support=support, rounding=rounding)
        if stepped is not None and stepped.projection.support != support:
            refined = refine(
                objective,
                constraint,
                stepped.projection,
                stepped.prediction,
                cg_iterations=self.cg_iterations,
                start=support,
            )
            if refined.value < state.value - negligible:
                return self._move(objective, state, replace(refined, step=stepped.step))
        if not state.minimal:
            here = Projection(at.point, support)
            negligible = 1e-3 * negligible
            solved = refine(
                objective,
                constraint,
                here,
                at.prediction,
                cg_iterations=0,
                rounds=FULL_SOLVE,
                tol=negligible,
                start=support,
            )
            minimal = solved.minimal or state.value - solved.value <= max(negligible, rounding)
            return self._move(objective, state, replace(solved, step=step, minimal=minimal))
        steep = is_steep(constraint, state, self.tol)
        if steep:
            lower = search_feasible(objective, constraint, state)
            if lower is not None and lower.value < state.value - negligible:
                return self._move(objective, state, lower)
        for candidate in self._escapes(objective, constraint, state, step, negligible):
            if candidate.value < state.value - negligible:
                return self._move(objective, state, candidate)
        last = replace(state, iteration=state.iteration + 1, step=0.0)
        why = "the point is minimal on its support, and no longer step or exchange that was tried improves it"
        if not steep:
            return replace(last, settled=why)
        return verdict(objective, constraint, last, why, self.tol, negligible)

    def _escapes(
        self, objective: Objective, constraint: Constraint, state: PursuitState, step: float, negligible: float
    ) -> Iterator[Candidate]:
        """Yield refined points on other supports."""
        at, support = state.at, state.support
        runs = (
            self._refining(objective, constraint, projection, support, length)
            for projection, length in self._longer_steps(constraint, state, step)
        )
        yield from in_step(runs, state.w)
        if self.exchanges > 0 and constraint.is_full(state.support):
            ranked = rank_exchanges(objective, constraint, at, support, removals=self.exchanges, count=self.exchanges)
            swaps = try_exchanges(objective, constraint, at, support, ranked, cg_iterations=0, rounds=3)
            for _, swapped in swaps:
                yield replace(swapped, step=step)
        if self.exchanges > 0:
            blocks = search_blocks(objective, constraint, state.at, state.support, negligible)
            if blocks is not None:
                yield replace(refine(objective, constraint, blocks, cg_iterations=0, rounds=3), step=step)
            for swapped in swap_units(objective, constraint, state.at, state.support, self.exchanges):
                yield replace(swapped, step=step)

    def _refining(
        self, objective: Objective, constraint: Constraint, there: Projection, support: Support, length: float
    ) -> Generator[None, None, Candidate]:
        """Return what two rounds of refinement lead to, from the projection of a step of a length; see `refining`."""
        rounds = refining(objective, constraint, there, cg_iterations=self.cg_iterations, rounds=2, start=support)
        return replace((yield from rounds), step=length)

    def _longer_steps(
        self, constraint: Constraint, state: PursuitState, step: float
    ) -> Iterator[tuple[Projection, float]]:
        """Yield projections of longer steps, each with another support, the smallest change of the support first."""

        def stepped(length: float) -> Projection:
            return constraint.project(state.w - length * state.at.gradient, state.support)

        shortest, longest = bracket(((x, stepped(x).support == state.support) for x in self._doubled(2.0 * step)), step)
        lengths = self._doubled(longest)
        middles = []
        for _ in range(4):
            middle = 0.5 * (shortest + longest)
            there = stepped(middle)
            same = there.support == state.support
            shortest, longest = _halved(same, shortest, middle, longest)
            middles.append((middle, there, same))
        between = ((length, there) for length, there, same in reversed(middles) if not same)
        steps = chain(between, ((length, stepped(length)) for length in lengths))
        for projection, length, same in ahead(_compared(steps, state.support), state.w, len(middles) + len(lengths)):
            if not same:
                yield projection, length

    def _doubled(self, length: float) -> list[float]:
        """Return a length and its doubles, as many as there are escapes."""
        return [length * 2.0**i for i in range(self.escapes)]

    def _negligible(self, state: PursuitState, rounding: float) -> float:
        """Return the decrease of f that does not count as progress, at least rounding."""
        scale = larger(abs(state.value), abs(state.trace.null_value - state.value))
        return larger(self.tol * scale, rounding)

    def _move(self, objective: Objective, state: PursuitState, candidate: Candidate) -> PursuitState:
        """Return the state at a candidate: one data pass for its gradient."""
        projection = candidate.projection
        return replace(
            state,
            at=objective.evaluate(projection.point, candidate.prediction),
            support=projection.support,
            iteration=state.iteration + 1,
            step=candidate.step,
            minimal=candidate.minimal,
        )


def bracket(steps: Iterable[tuple[float, bool]], shortest: float) -> tuple[float, float]:
    """Return the last length of a step before the first that changes the support, and that; both the last if none does.

    The lengths increase, each with whether the support is the same. If there are none, these are zero and `shortest`.
    """
    lengths, kept = [0.0], []
    for length, same in steps:
        lengths.append(length)
        kept.append(same)
        if at_hand(same) and not same:
            break
    below, above = lengths[-1], lengths[-1] if kept else shortest
    for i, same in reversed([*enumerate(kept)]):
        below, above = choose(same, below, lengths[i]), choose(same, above, lengths[i + 1])
    return below, above


def _compared(steps: Iterable[tuple[float, Projection]], support: Support) -> Iterator[tuple[Projection, float, bool]]:
    """Yield the projections of steps, each with whether its support is that of the step before."""
    for length, projection in steps:
        yield projection, length, projection.support == support
        support = projection.support


def _halved(in_upper: bool, shortest: float, middle: float, longest: float) -> tuple[float, float]:
    """Return the upper or the lower half of an interval."""
    lower = choose(in_upper, middle, shortest)
    return lower, choose(in_upper, longest, middle)
