"""Splicing: exchanges of several units at once by gradients and values of f, for general functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, cast

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.typing import Array

from .natural_scale import flat
from .pursuit import HardThresholdingPursuit, PursuitState
from .splices import NEARLY, Refits, Splices
from .start import starting_point
from .steepest import verdict
from .units import Units

_EXCHANGED = 10
"""How many units pursuit considers for an exchange."""
_MINIMAL = 1e-3
"""Share of a negligible decrease of f up to which the last refit is the minimum. Arbitrary."""


@stored("state/splicing", upgrades=[lambda fields: fields | {"curvature": None}])
@dataclass(frozen=True, slots=True, kw_only=True)
class SplicingState(PursuitState):
    """A `PursuitState` of splicing.

    Attributes
    ----------
    convex : bool
        Whether no curvature on the first support was negative.
    curvature : array or None
        The second derivatives along single coordinates, NaN where they are not known, 0 where there is none.
    """

    convex: bool = True
    curvature: Array | None = None


@register("solver", "splicing", lambda: [Splicing()])
@dataclass(frozen=True, slots=True)
class Splicing(Solver):
    r"""Splicing: exchanges of several units at once, refitted with gradients only; the default for general functions.

    A unit is a coordinate, a group or a row, depending on the set. One iteration tries other sets of units, and moves
    to the first whose minimum is lower; if there is none, the run has converged.

    1. For m = k/2, k/4, ..., 1, replace the m units that raise f least when they are set to zero by the m others with
       the largest gradients :math:`\|g_G\|`. If only k' < k units are chosen, add m units without a removal, for m = k
       - k', half of it, ..., 1.
    2. On the quadratic model of f over the chosen units and the 64 others with the largest gradients, a local search,
       and the best exchange for each unit that may enter, propose other sets; three where f is lowest are refitted.
    3. If that model is unreliable, because the Hessian on the chosen units is not positive definite or does not predict
       the increase of f without each of them, each unit is left out in turn and replaced by the units with the largest
       gradients without it. If there are at most 64 single exchanges, all are tried.
    4. If all gradients vanish although fewer than k units are chosen, as at a saddle point, a unit along which f is
       concave is added.

    Refits use a quasi-Newton method, which can pass kinks, with coordinates scaled to second derivatives of about 1;
    unpromising refits are stopped early. If the curvature at a given `w0` is negative in some direction of its units, f
    is not convex and the result depends on the path. The run then starts with steps of `HardThresholdingPursuit`, and
    splices only after these have converged.

    Parameters
    ----------
    tol : float
        Decrease of f, > 0, that counts as progress, relative to the larger of :math:`|f|` and the decrease of f since
        the null model.

    Raises
    ------
    CapabilityError
        By `check`, for a set without units, or with overlapping units; use `HardThresholdingPursuit` for these.

    Notes
    -----
    Cost of an iteration: a value for each chosen unit, about log2(k) refits of some 10 to 30 gradients each, one or a
    few gradients for each coordinate that is refitted for the first time, and one for each of k + 64 units: no Hessian
    of all coordinates is needed. The remaining work grows with the cube of that number. Guarantee: monotone; the result
    need not be a global minimum (heuristic). If the gradient is large and no step lowers f, as at a kink, the run ends
    with the status ``STALLED``. Units are added by their gradients, so bring columns of very different scales to one
    scale if there are more than 64 other units.

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
            refits = Refits(objective, constraint, np.full(prod(objective.shape), np.nan), abs(at.value))
            at = refits.minimise(at, projection.support, 0.0).at
        return SplicingState(at=at, support=projection.support, seed=seed)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> SplicingState:
        state = cast(SplicingState, state)
        units = cast(Units, Units.of(constraint, tuple(objective.shape)))
        scale = max(abs(state.value), abs(state.trace.null_value - state.value))
        known = np.full(prod(objective.shape), np.nan) if state.curvature is None else to_numpy(state.curvature)
        refits = Refits(objective, constraint, known, abs(state.trace.null_value - state.value) or scale)
        if state.iteration == 0 and _is_concave_somewhere(objective, refits, units, state.at):
            state = replace(state, convex=False)
        if not state.convex:
            pursuit = HardThresholdingPursuit(exchanges=_EXCHANGED, tol=self.tol)
            pursued = cast(SplicingState, pursuit.advance(objective, constraint, state))
            if not (pursued.settled or pursued.stalled):
                return pursued
        negligible = max(self.tol * scale, value_rounding(objective, state.at))
        moved = replace(state, iteration=state.iteration + 1, step=0.0)
        if not state.minimal:
            fit = refits.minimise(state.at, state.support, NEARLY * negligible)
            return replace(moved, at=fit.at, minimal=fit.minimal, curvature=refits.curvatures.known)
        splices = Splices(objective, constraint, units, state.at, negligible, refits)
        for fit in splices.lower():
            minimal = fit.minimal and state.convex
            support = constraint.project(fit.at.point).support  # without units that a bound keeps at zero
            return replace(moved, at=fit.at, support=support, minimal=minimal, curvature=refits.curvatures.known)
        fit = refits.minimise(state.at, state.support, _MINIMAL * negligible)
        return verdict(
            objective,
            constraint,
            replace(moved, at=fit.at, curvature=refits.curvatures.known),
            "the point is minimal on its support, and no exchange that was tried improves it",
            self.tol,
            negligible,
        )


def _is_concave_somewhere(objective: Objective, refits: Refits, units: Units, at: Evaluation) -> bool:
    """Return whether the curvature on the chosen units is negative in some direction, beyond errors of differences."""
    chosen = units.chosen(flat(at.point))
    if units.coordinates(chosen).size == 0 or not isinstance(objective, SmoothObjective):
        return False
    return not refits.model(units, at, chosen, chosen[:0]).semidefinite
