"""Splicing: exchanges of several units at once by gradients and values of f, for functions of any kind."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np

from hardthresh.arrays import move, namespace
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import CapabilityError, NotFiniteError
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .pursuit import HardThresholdingPursuit, PursuitState
from .quasi_newton import descend_by_gradients
from .start import starting_point
from .steepest import verdict
from .unit_model import UnitModel, flat
from .units import Units

_CANDIDATES = 64
"""How many units may take the place of a chosen one in the quadratic model."""
_REFITTED = 3
"""How many of the sets that the model proposes are refitted: those where f is lowest at the minimisers of the model."""
_ENTERING = 3
"""How many units with the largest gradients are looked at in the place of a single one."""
_ROUGHLY = 1e-2
"""Share of the rise of f without a unit up to which the others are refitted before another takes its place."""
_EXCHANGED = 10
"""How many units pursuit considers for an exchange."""
_HOPE = 10.0
"""A unit is taken to lead to at most so many times the decrease of the one with the larger gradient before it."""
_NEARLY, _MINIMAL = 0.1, 1e-3
"""Shares of a negligible decrease of f up to which a refit is the minimum: while the search goes on, and in the end."""


@stored("state/splicing")
@dataclass(frozen=True, slots=True, kw_only=True)
class SplicingState(PursuitState):
    """A `PursuitState` that knows whether f may be convex: whether no curvature on the first support is negative."""

    convex: bool = True


class _Trial(NamedTuple):
    """Units to try, and where their refit starts."""

    units: np.ndarray
    start: Array


class _Fit(NamedTuple):
    """A refit, and whether it found a minimum."""

    at: Evaluation
    minimal: bool


@register("solver", "splicing", lambda: [Splicing()])
@dataclass(frozen=True, slots=True)
class Splicing(Solver):
    r"""Exchanges of several units at once, refitted by gradients alone: the default for functions of any kind.

    A unit is a coordinate, a group or a row, whatever the set chooses. One iteration tries other sets of units, and
    goes to the first whose minimiser is lower; if there is none, the run has settled.

    1. For m = k/2, k/4, ..., 1, the m units that raise f least when they are set to zero leave, and the m others with
       the largest gradients :math:`\|g_G\|` enter. Where fewer than k are chosen, others enter and none leaves, for
       m = what is free, half of it, ..., 1.
    2. On the quadratic model of f over the chosen units and the 64 others with the largest gradients, a local search,
       and the best exchange for each unit that may enter, propose other sets; three where f is lowest are refitted.
    3. Where the Hessian on the chosen units is not positive definite, each unit is left out in turn, and those with the
       largest gradients without it are tried in its place.

    Refits are made by a quasi-Newton method, which needs no curvature and passes kinks; hopeless ones are given up
    early. Where the curvature at the start is negative in some direction of the chosen units, f is not convex, and the
    run depends on its path: then steps of `HardThresholdingPursuit` go first, and splices only where these have ended.

    Parameters
    ----------
    tol : float
        Decrease of f, > 0, that counts as progress, relative to the larger of :math:`|f|` and the decrease of f since
        the null model.

    Raises
    ------
    CapabilityError
        By `check`, for a set without units, or of units that overlap: then `HardThresholdingPursuit` is the solver.

    Notes
    -----
    Cost of an iteration: a value for each chosen unit, about log2(k) refits of some 10 to 30 gradients each, and a
    gradient for each coordinate of k + 64 units: no Hessian of all coordinates is needed. The work besides grows with
    the cube of that number. Guarantee: monotone; global optimality is not claimed (heuristic). Where the gradient stays
    steep and nothing lowers f, as at a kink, the run ends as ``STALLED``.

    References
    ----------
    Zhu, Wen, Zhu, Zhang and Wang (2020), A polynomial algorithm for best-subset selection problem, *PNAS* 117,
    33117-33123, where supports are spliced as in step 1. The rest is ours.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import Function
    >>> from hardthresh.solvers import Splicing, minimize
    >>> t = np.array([3.0, 0.1, -2.0, 0.2])
    >>> f = Function(lambda w: np.sum(np.cosh(w - t)), 4, lambda w: np.sinh(w - t))
    >>> minimize(f, Sparsity(2), Splicing()).w.round(6)
    array([ 3.,  0., -2.,  0.])
    """

    tol: float = 1e-8

    state_type: ClassVar[type[State]] = SplicingState

    def __post_init__(self) -> None:
        checked_number("tol", self.tol, above=0.0)

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def check(self, objective: Objective, constraint: Constraint) -> None:
        Solver.check(self, objective, constraint)
        if Units.of(constraint, tuple(objective.shape)) is None:
            raise CapabilityError(
                f"Splicing exchanges coordinates, rows or groups that do not overlap; {constraint} has none. Use "
                "HardThresholdingPursuit"
            )

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> SplicingState:
        at, projection = starting_point(objective, constraint, objective.null_point() if w0 is None else w0)
        if w0 is None and at.value < np.inf:  # what is always allowed is fitted
            at, _ = _refit(objective, constraint, at, projection.support, 0.0)
        return SplicingState(at=at, support=projection.support, seed=seed)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> SplicingState:
        state = cast(SplicingState, state)
        units = cast(Units, Units.of(constraint, tuple(objective.shape)))
        if state.iteration == 0 and _is_concave_somewhere(objective, units, state.at):
            state = replace(state, convex=False)
        if not state.convex:
            pursuit = HardThresholdingPursuit(exchanges=_EXCHANGED, tol=self.tol)
            pursued = cast(SplicingState, pursuit.advance(objective, constraint, state))
            if not (pursued.settled or pursued.stalled):
                return pursued
        scale = max(abs(state.value), abs(state.trace.null_value - state.value))
        negligible = max(self.tol * scale, value_rounding(objective, state.at))
        moved = replace(state, iteration=state.iteration + 1, step=0.0)
        if not state.minimal:
            fit = _refit(objective, constraint, state.at, state.support, _NEARLY * negligible)
            return replace(moved, at=fit.at, minimal=fit.minimal)
        splices = _Splices(objective, constraint, units, state.at, negligible)
        for fit, support in splices.lower():
            return replace(moved, at=fit.at, support=support, minimal=fit.minimal and state.convex)
        fit = _refit(objective, constraint, state.at, state.support, _MINIMAL * negligible)
        return verdict(
            objective,
            constraint,
            replace(moved, at=fit.at),
            "the point is minimal on its support, and no exchange that was tried improves it",
            self.tol,
            negligible,
        )


class _Splices:
    """The exchanges at one point.

    Parameters
    ----------
    objective, constraint, units, at :
        f, the set with its units, and f at a point that is about minimal on its support.
    negligible : float
        The decrease of f that counts as none.
    """

    def __init__(
        self, objective: Objective, constraint: Constraint, units: Units, at: Evaluation, negligible: float
    ) -> None:
        self._objective, self._constraint, self._units = objective, constraint, units
        self._at, self._below, self._tol = at, at.value - negligible, _NEARLY * negligible
        self._negligible = negligible
        self._chosen = units.chosen(flat(at.point))
        self._room = units.budget - self._chosen.size
        self._others = units.best_others(flat(at.gradient), self._chosen)
        self._tried = {tuple(self._chosen.tolist())}

    def lower(self) -> Iterator[tuple[_Fit, Support]]:
        """Yield lower points, with their supports."""
        yield from self._by_gradients()
        yield from self._by_model()

    def _by_gradients(self) -> Iterator[tuple[_Fit, Support]]:
        """Yield lower points where units with large gradients take the place of those that f needs least."""
        leaving = self._leaving()
        many = min(self._room if self._room else (self._units.budget + 1) // 2, self._others.size)
        while many:
            kept = leaving[max(0, many - self._room) :]
            yield from self._lower(np.concatenate([kept, self._others[:many]]), self._at.point)
            many //= 2

    def _by_model(self) -> Iterator[tuple[_Fit, Support]]:
        """Yield lower points of sets that the quadratic model proposes, or by single exchanges where it misleads."""
        if self._room or self._others.size == 0:
            return
        for count in (max(1, _CANDIDATES * self._units.count // self._units.owner.size), _CANDIDATES):
            model = UnitModel(self._objective, self._at, self._units, self._chosen, self._others[:count])
            proposed = self._proposed(model) if model.semidefinite else []
            for units, start in proposed:
                yield from self._lower(units, start)
            if not proposed or count >= min(_CANDIDATES, self._others.size):
                break
        if not model.definite:
            for g in self._leaving():
                yield from self._replacing(g)

    def _proposed(self, model: UnitModel) -> list[_Trial]:
        """Return the sets that the model proposes, where f is lowest at its minimisers."""
        trials = []
        for units, point in model.proposals(self._negligible):
            start = self._constraint.project_onto(point, support := self._support(units), support).point
            trials.append((self._value(start), _Trial(units, start)))
        return [trial for value, trial in sorted(trials, key=lambda trial: trial[0])[:_REFITTED] if value < np.inf]

    def _replacing(self, unit: int) -> Iterator[tuple[_Fit, Support]]:
        """Yield lower points with another unit in the place of one, in the order of their gradients without that one.

        Once another unit leads to less than a tenth of the decrease that it takes, the next ones are not tried.
        """
        rest, rise = np.setdiff1d(self._chosen, [unit]), self._value_without(unit) - self._at.value
        there = self._fit(self._at.point, self._support(rest), np.inf, _ROUGHLY * rise if rise < np.inf else 0.0)
        if there is None:
            return
        slope = flat(there.at.gradient)
        for entered in self._units.best_others(slope, self._chosen)[:_ENTERING]:
            before = there.at.value
            found = yield from self._lower(np.append(rest, entered), there.at.point)
            if found is not None and before - found.at.value < (before - self._below) / _HOPE:
                break

    def _lower(self, units: np.ndarray, start: Array) -> Generator[tuple[_Fit, Support], None, _Fit | None]:
        """Yield the refit of some units if it is lower, and return it; None if f is infinite or it was made before."""
        key = tuple(np.sort(units).tolist())
        if key in self._tried:
            return None
        self._tried.add(key)
        support = self._support(units)
        found = self._fit(start, support, self._below)
        if found is not None and found.at.value < self._below:
            yield found, support
        return found

    def _fit(self, start: Array, support: Support, below: float, tol: float = 0.0) -> _Fit | None:
        """Return a low point of a support, from the part of a point on it; None if f is infinite there."""
        try:
            point = self._constraint.project_onto(support.restrict(start), support, support).point
            at = self._objective.evaluate(point)
        except NotFiniteError:
            return None
        if not at.value < np.inf:
            return None
        return _refit(self._objective, self._constraint, at, support, max(tol, self._tol), below)

    def _leaving(self) -> np.ndarray:
        """Return the chosen units, first the one without which f rises least."""
        leaving: np.ndarray = self._chosen[np.argsort([self._value_without(g) for g in self._chosen], kind="stable")]
        return leaving

    def _support(self, units: np.ndarray) -> Support:
        return self._units.support(self._constraint, units, self._at.point)

    def _value_without(self, unit: int) -> float:
        """Return f where a unit is set to zero."""
        like, xp = self._at.point, namespace(self._at.point)
        kept = xp.reshape(move((self._units.owner != unit).astype(float), like), tuple(like.shape))
        return self._value(like * xp.astype(kept, like.dtype))

    def _value(self, point: Array) -> float:
        """Return f; infinity if it is NaN."""
        try:
            return self._objective.value(point)
        except NotFiniteError:
            return np.inf


def _is_concave_somewhere(objective: Objective, units: Units, at: Evaluation) -> bool:
    """Return whether the curvature on the chosen units is negative in some direction, beyond errors of differences."""
    chosen = units.chosen(flat(at.point))
    if chosen.size == 0 or not isinstance(objective, SmoothObjective):
        return False
    return not UnitModel(objective, at, units, chosen, chosen[:0]).semidefinite


def _refit(
    objective: Objective,
    constraint: Constraint,
    at: Evaluation,
    support: Support,
    tol: float,
    below: float = np.inf,
) -> _Fit:
    """Return the minimiser on a support, from a point on it."""
    tol = max(tol, value_rounding(objective, at))
    found = descend_by_gradients(objective, constraint, at, support, tol, below)
    return _Fit(at, True) if found is None else _Fit(found.at, not found.grown)
