"""The momenta of Section 5 and footnote 1, which the paper does not run: each as a rule or as a solver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.step import StepRule
from hardthresh.core.stopping import StopRule
from hardthresh.core.typing import Array
from hardthresh.solvers import Momentum
from hardthresh.solvers.accelerated import AcceleratedState, SmallMove
from hardthresh.solvers.start import starting_point
from hardthresh.steps import ExactLineSearch


def minimiser_along(objective: SmoothObjective, at: Evaluation, direction: Array) -> float:
    """Return the multiple of a direction, of either sign, that minimises f from a point; 0 where f is flat."""
    curvature = objective.curvature_along(at, direction)
    return -float(at.gradient @ direction) / curvature if curvature > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class FreeMomentum(Momentum):
    """The tau that minimises f along the last move, of either sign and any size.

    ALPS (Kyrillidis and Cevher 2011, *Recipes on hard thresholding methods*) is Algorithm 1 with this momentum and the
    line search along the gradient on T_i. `ExactMomentum` restricts it to [0, 1].
    """

    requires = SmoothObjective

    def weigh(
        self,
        objective: Objective,
        constraint: Constraint,
        ahead: Evaluation,
        previous: Evaluation,
        new: Evaluation,
        memory: Any,
    ) -> tuple[float, Any]:
        assert isinstance(objective, SmoothObjective)
        return minimiser_along(objective, new, new.point - previous.point), None


@dataclass(frozen=True, slots=True)
class SkippedMomentum(Momentum):
    """A constant tau, used only where it does not increase f (Blumensath 2012; Appendix D of the paper)."""

    tau: float

    def weigh(
        self,
        objective: Objective,
        constraint: Constraint,
        ahead: Evaluation,
        previous: Evaluation,
        new: Evaluation,
        memory: Any,
    ) -> tuple[float, Any]:
        there = objective.value(new.point + self.tau * (new.point - previous.point))
        return (self.tau if there <= new.value else 0.0), None


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPointState(AcceleratedState):
    """A state with the previous point."""

    previous: Array


class _FromTheLastTwoPoints(Solver):
    """Base of solvers whose next point depends on the last two."""

    state_type: ClassVar[type[State]] = TwoPointState

    def stopping(self, tol: float) -> StopRule:
        return SmallMove(tol)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> TwoPointState:
        at, projection = starting_point(objective, constraint, w0)
        return TwoPointState(at=at, support=projection.support, seed=seed, memory=None, previous=at.point)


def _direction_and_step(
    rule: StepRule, objective: Objective, constraint: Constraint, state: State
) -> tuple[Array, float]:
    """Return minus the gradient at the point, and the step along it."""
    direction = -state.at.gradient
    inside = state.support.restrict(direction)
    along, supports = (inside, 1) if norm(inside) else (direction, 0)
    return direction, rule.length(objective, constraint, state.at, direction, along, supports)


@dataclass(frozen=True, slots=True)
class HeavyBall(_FromTheLastTwoPoints):
    r"""Polyak's momentum: :math:`x_{i+1} = P_C(x_i - \mu \nabla f(x_i) + \tau (x_i - x_{i-1}))` (footnote 1)."""

    momentum: float
    step: StepRule = field(default_factory=ExactLineSearch)

    @property
    def requires(self) -> type:
        return self.step.requires

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> TwoPointState:
        assert isinstance(state, TwoPointState)
        direction, step = _direction_and_step(self.step, objective, constraint, state)
        carried = self.momentum * (state.w - state.previous)
        projection = constraint.project(state.w + step * direction + carried, state.support)
        at = objective.evaluate(projection.point)
        return replace(
            state,
            at=at,
            support=projection.support,
            iteration=state.iteration + 1,
            step=step,
            momentum=self.momentum,
            moved=norm(at.point - state.w) / norm(at.point),
            previous=state.w,
        )


@dataclass(frozen=True, slots=True)
class DoubleOverrelaxation(_FromTheLastTwoPoints):
    r"""The acceleration of Blumensath (2012), after Qiu and Dogandzic (2012).

    .. math:: \hat x &= P_C(x_i - \mu \nabla f(x_i)), \\
              z &= \hat x + a_1 (\hat x - x_i), \quad \bar x = P_C(z + a_2 (z - x_{i-1})),

    where :math:`a_1, a_2` minimise f. The next point is :math:`\bar x` if its f is below that of :math:`\hat x`, else
    :math:`\hat x`: then the momentum is skipped.
    """

    step: StepRule = field(default_factory=ExactLineSearch)

    @property
    def requires(self) -> type:
        return SmoothObjective

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> TwoPointState:
        assert isinstance(state, TwoPointState)
        assert isinstance(objective, SmoothObjective)
        direction, step = _direction_and_step(self.step, objective, constraint, state)
        plain = constraint.project(state.w + step * direction, state.support)
        once = objective.evaluate(plain.point)
        at, support, accepted = once, plain.support, 0.0
        first = once.point - state.w
        z = objective.evaluate(once.point + minimiser_along(objective, once, first) * first)
        second = z.point - state.previous
        relaxed = constraint.project(z.point + minimiser_along(objective, z, second) * second, plain.support)
        twice = objective.evaluate(relaxed.point)
        if twice.value < once.value:
            at, support, accepted = twice, relaxed.support, 1.0
        return replace(
            state,
            at=at,
            support=support,
            iteration=state.iteration + 1,
            step=step,
            momentum=accepted,
            moved=norm(at.point - state.w) / norm(at.point),
            previous=state.w,
        )


def heavy_ball_rate(eigenvalues: Any, step: float, momentum: float) -> float:
    r"""Return the linear rate of `HeavyBall` on a support that no longer changes.

    .. math:: \max_\lambda \max \{ |r| : r^2 - (1 - \mu\lambda + \tau) r + \tau = 0 \}

    over the eigenvalues of the Hessian on the support; the twin of `hardthresh.diagnostics.local_rate`.
    """
    return max(float(np.abs(np.roots([1.0, step * value - 1.0 - momentum, momentum])).max()) for value in eigenvalues)
