"""Conjugate gradient iterative hard thresholding, along the tangent space of matrices or the support of vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.objective import Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.schema import renames, stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.stopping import Settled, StopRule
from hardthresh.core.support import Support, upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import ARMIJO, Candidate, exact_step, majorised_step, minimising_step

from .start import starting_point
from .steepest import is_steep, search_along, search_feasible, verdict

# An iteration is slow if it leaves more than this fraction of the distance of f to its lower bound. In completions
# of 80 x 60, well-conditioned matrices take the same iterations from 0.7 to 0.99; on others they vary without order.
_SLOW = 0.7


@stored("state/conjugate_iht", upgrades=[upgrade_supports, renames(slope="restricted_gradient")])
@dataclass(frozen=True, slots=True, kw_only=True)
class ConjugateState(State):
    """A `State` with what the next direction may be conjugate to; both are None after a restart.

    Attributes
    ----------
    direction : array or None
        The last direction.
    restricted_gradient : array or None
        The restricted gradient at the last point.
    """

    direction: Array | None = None
    restricted_gradient: Array | None = None


@register("solver", "conjugate_iht", lambda: [ConjugateIHT()])
@dataclass(frozen=True, slots=True)
class ConjugateIHT(Solver):
    r"""Conjugate gradient iterative hard thresholding, with exact steps and a monotone safeguard.

    .. math:: p_t = -P_S(g_t) + \beta_t P_S(p_{t-1}), \qquad
              \beta_t = \max\Bigl(0, \frac{(P_S g_t, \; P_S g_t - P_S g_{t-1})}{\|g_{t-1}\|^2}\Bigr), \qquad
              w_{t+1} = P_C(w_t + \alpha_t p_t), \quad \alpha_t = \frac{-(g_t, p_t)}{(p_t, H p_t)}

    where :math:`P_S` is the constraint's restriction to the support: the tangent space for `Rank`. One iteration:

    1. restrict the gradient, and make the direction conjugate to the last one, unless this is a restart;
    2. take the exact step along it, and project. Where supports are sets of coordinates, the entries outside of the
       support take a gradient step of the same length, so that the support can change; then :math:`\beta = 0` next;
    3. if f does not decrease enough, try the step without the entries outside, then without :math:`p_{t-1}`, then
       shorter steps until the quadratic majorisation holds;
    4. if this step cannot decrease f, take a step along the whole gradient, which may change the bases or coordinates;
       if that does not decrease f either, the run ends.

    For matrices every few iterations, if f decreases slowly, 2. is a step along the whole gradient: it is restricted to
    the tangent space at the point that the restricted step leads to, which holds part of what was normal before.

    Parameters
    ----------
    tol : float
        The smallest decrease that counts as progress, > 0, relative to the distance of f from its lower bound (or, if
        none is known, from its value at the null model).
    every : int
        Number of iterations, >= 1, between steps along the whole gradient.

    Notes
    -----
    This is the default solver for matrix completion. On factored points an iteration costs two products of the sparse
    gradient with thin matrices and the decomposition of a matrix of 2r columns, never one of the full size. Cost: two
    data passes per iteration, and the cost of ``curvature_along``; up to one more pass for each rejected step. The
    steps along the whole gradient shorten the plateaus of matrices with small singular values (a photograph of rank 60,
    35 % observed: 80 iterations instead of 310 to 60 dB). Without positive curvature along the gradient the step is
    found from the values of f. If the gradient is steep and still no step decreases f, as at a kink, the run ends as
    ``STALLED``. Guarantee: monotone. Without the safeguard, linear convergence to the truth from a good start: for
    vectors and matrices under restricted isometries (Blanchard, Tanner and Wei 2015), for completion with about
    :math:`n \gtrsim r^2 (p + q) \log^2(p + q)` entries drawn at random (Wei, Cai, Chan and Leung 2020). With it, and
    with the weights of Polak and Ribiere in place of theirs, it is a heuristic.

    References
    ----------
    Blanchard, Tanner and Wei (2015), *CGIHT: conjugate gradient iterative hard thresholding for compressed sensing and
    matrix completion*; Wei, Cai, Chan and Leung (2020), *Guarantees of Riemannian optimization for low rank matrix
    completion*.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Rank
    >>> from hardthresh.objectives import MatrixCompletion
    >>> from hardthresh.solvers import ConjugateIHT, minimize
    >>> A = np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 2.0])
    >>> A[1, 1] = np.nan
    >>> print(minimize(MatrixCompletion.from_matrix(A), Rank(1), ConjugateIHT()).w[1, 1].round(3))
    -2.0
    """

    tol: float = 1e-8
    every: int = 6

    state_type: ClassVar[type[State]] = ConjugateState

    def __post_init__(self) -> None:
        checked_number("tol", self.tol, above=0.0)
        checked_integer("every", self.every, 1)

    @property
    def requires(self) -> type:
        return SmoothObjective

    def stopping(self, tol: float) -> StopRule:
        return Settled()

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> ConjugateState:
        at, projection = starting_point(objective, constraint, w0)
        return ConjugateState(at=at, support=projection.support, seed=seed)

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> ConjugateState:
        assert isinstance(state, ConjugateState)
        assert isinstance(objective, SmoothObjective)
        at, iteration = state.at, state.iteration + 1
        gradient = constraint.free_part(at.point, at.gradient, state.support).restrict(at.gradient)
        found = self._whole_step(objective, constraint, state, gradient) if self._is_slow(objective, state) else None
        direction = None
        if found is None:
            found, direction = self._conjugate_step(objective, constraint, state, gradient)
        if found is None:
            found = self._outward_step(objective, constraint, state)
        if found is None and is_steep(constraint, state, self.tol):
            found = self._if_progress(objective, state, search_feasible(objective, constraint, state))
        if found is None:
            still = replace(state, iteration=iteration, step=0.0, direction=None, restricted_gradient=None)
            why = "no step along the restricted gradient or the whole of it improves the point"
            return verdict(objective, constraint, still, why, self.tol, self._negligible(objective, state))
        support = found.projection.support
        restart = direction is None or not (_is_curved(support) or support == state.support)
        return replace(
            state,
            at=objective.evaluate(found.projection.point, found.prediction),
            support=support,
            iteration=iteration,
            step=found.step,
            direction=None if restart else direction,
            restricted_gradient=None if restart else gradient,
        )

    def _is_slow(self, objective: Objective, state: ConjugateState) -> bool:
        """Return whether a step along the whole gradient is due, and f decreases slowly."""
        now, before = state.value, state.trace.previous_value
        if objective.lower_bound == -inf:
            slow = before - now < (1.0 - _SLOW) * abs(state.trace.null_value - now)
        else:
            slow = now - objective.lower_bound > _SLOW * (before - objective.lower_bound)
        return slow and state.iteration > 0 and state.iteration % self.every == 0

    def _whole_step(
        self, objective: SmoothObjective, constraint: Constraint, state: ConjugateState, gradient: Array
    ) -> Candidate | None:
        """Return a step along the whole gradient, restricted to the bases that a step along `gradient` leads to.

        Part of what is normal to the set at the point is tangent to it there, and the matrix to decompose stays thin.
        """
        if not _is_curved(state.support):
            return None  # supports of coordinates can change in every step
        at, xp = state.at, namespace(gradient)
        step = minimising_step(objective, constraint, at, gradient)
        if step == 0.0:
            return None
        ahead = constraint.project(at.point - step * gradient, state.support)
        projection = constraint.project(ahead.support.restrict(at.point - step * at.gradient), state.support)
        return self._if_decreased(objective, state, projection, step, float(xp.sum(gradient * gradient)))

    def _conjugate_step(
        self, objective: SmoothObjective, constraint: Constraint, state: ConjugateState, gradient: Array
    ) -> tuple[Candidate | None, Array | None]:
        """Return the first step that decreases f enough, and its direction if the next may be conjugate to it."""
        at, xp = state.at, namespace(gradient)
        squared = float(xp.sum(gradient * gradient))
        if not squared > 0.0:
            return None, None
        outside = None if _is_curved(state.support) else at.gradient - gradient
        step = 0.0
        for direction in self._directions(state, gradient, squared):
            descent = -float(xp.sum(gradient * direction))
            curvature = objective.curvature_along(at, direction)
            if not (descent > 0.0 and curvature > 0.0):
                continue
            step = descent / curvature
            if 0.5 * step * descent <= self._negligible(objective, state):
                return None, None
            for tried in [direction] if outside is None else [direction - outside, direction]:
                projection = constraint.project(at.point + step * tried, state.support)
                found = self._if_decreased(objective, state, projection, step, descent)
                if found is not None:
                    return found, direction
        if step == 0.0:  # no direction has positive curvature, and so no exact step
            found = search_along(objective, at, -gradient, partial(constraint.project, start=state.support))
        else:
            whole = -gradient if outside is None else -at.gradient
            found = majorised_step(objective, constraint, at, whole, step, support=state.support)
        return self._if_progress(objective, state, found), None

    def _directions(self, state: ConjugateState, gradient: Array, squared: float) -> list[Array]:
        """Return the conjugate direction, if there is one, and minus the restricted gradient."""
        if state.direction is None or state.restricted_gradient is None:
            return [-gradient]
        xp = namespace(gradient)
        carried = state.support.restrict(state.restricted_gradient)
        before = float(xp.sum(state.restricted_gradient * state.restricted_gradient))
        beta = (squared - float(xp.sum(gradient * carried))) / before if before > 0.0 else 0.0
        if not beta > 0.0:
            return [-gradient]
        return [beta * state.support.restrict(state.direction) - gradient, -gradient]

    def _outward_step(
        self, objective: SmoothObjective, constraint: Constraint, state: ConjugateState
    ) -> Candidate | None:
        """Return a step along the whole gradient that decreases f."""
        at = state.at
        direction = -at.gradient
        if _is_curved(state.support) and norm(at.point) == 0.0:
            direction = constraint.hard_threshold(direction, state.support)  # its multiples project the whole gradient
        step = exact_step(objective, constraint, at, state.support, direction)
        if step > 0.0:
            found = majorised_step(objective, constraint, at, direction, step, support=state.support)
        else:
            found = search_along(objective, at, direction, partial(constraint.project, start=state.support))
        return self._if_progress(objective, state, found)

    def _if_decreased(
        self, objective: Objective, state: ConjugateState, projection: Projection, step: float, descent: float
    ) -> Candidate | None:
        """Return the step to a projection if f decreases by a fraction of `step` times `descent`, the predicted one."""
        prediction = objective.predict(projection.point)
        value = objective.value(projection.point, prediction)
        if value < state.value and value <= state.value - ARMIJO * step * descent:
            return Candidate(projection, step, value, prediction)
        return None

    def _if_progress(self, objective: Objective, state: ConjugateState, found: Candidate | None) -> Candidate | None:
        """Return a step that was found if f decreases by more than is negligible."""
        return None if found is None or state.value - found.value <= self._negligible(objective, state) else found

    def _negligible(self, objective: Objective, state: ConjugateState) -> float:
        """Return the decrease of f that does not count as progress."""
        bound = objective.lower_bound
        distance = abs(state.trace.null_value - state.value) if bound == -inf else state.value - bound
        return max(self.tol * distance, value_rounding(objective, state.at))


def _is_curved(support: Support) -> bool:
    """Return whether the set is curved at a point, such as matrices of a rank, because its support has no indices."""
    return support.indices is None
