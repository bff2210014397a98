"""Accelerated iterative hard thresholding: support expansion, a restricted gradient step, momentum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan, sqrt
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import Evaluation, Objective, SmoothObjective, value_rounding
from hardthresh.core.registry import register
from hardthresh.core.result import Status
from hardthresh.core.schema import Fields, stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.step import StepRule
from hardthresh.core.stopping import Run, Stationarity, Stop, StopRule
from hardthresh.core.support import Support, upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.steps.fixed import Fixed
from hardthresh.steps.line_search import Descent, ExactLineSearch, majorised_step

from .momentum import ConstantMomentum, ExactMomentum, Momentum, as_momentum
from .start import starting_point
from .steepest import verdict
from .subspace import refine

VARIANTS = ("safeguarded", "paper")
DEBIAS = (None, "final", "every")


@stored("state/accelerated", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratedState(State):
    """A `State` with the point that momentum led to.

    Attributes
    ----------
    ahead : Evaluation or None
        The objective at :math:`u_i`; None where there is no momentum, so that it is the state's own point.
    ahead_support : Support
        The support of :math:`u_i`, if it is another point.
    memory : Any
        What the momentum remembers.
    momentum : float
        The :math:`\\tau` that led from the state's point to :math:`u_i`; nan at the start.
    moved : float
        :math:`\\|x_i - x_{i-1}\\| / \\|x_i\\|`; inf at the start.
    """

    ahead: Evaluation | None = None
    ahead_support: Support | None = None
    memory: object
    momentum: float = nan
    moved: float = inf

    def transition(self) -> dict[str, float]:
        return {"step": self.step, "momentum": self.momentum}


@stored("stop/small_move")
@dataclass(frozen=True, slots=True)
class SmallMove(StopRule):
    """Stop when an iteration moves the point by at most ``tol`` times its norm (line 8 of Algorithm 1)."""

    tol: float

    def check(self, run: Run) -> Stop | None:
        assert isinstance(run.state, AcceleratedState)
        rounding = 4.0 * float(namespace(run.state.w).finfo(run.state.w.dtype).eps)
        if run.state.moved > max(self.tol, rounding):
            return None
        return Stop(Status.SMALL_DECREASE, f"the last iteration moved the point by {run.state.moved:.3g} of its norm")


def _examples() -> list[AcceleratedIHT]:
    """Return solvers for the conformance tests."""
    return [
        AcceleratedIHT(),
        AcceleratedIHT(momentum="nesterov", debias="final"),
        AcceleratedIHT(variant="paper", debias="every"),
    ]


def _step_as_rule(fields: Fields) -> Fields:
    """Return the settings in version 2: in version 1 a step was a number or one of two words."""
    step = fields["step"]
    words = {"support": ExactLineSearch(), "line_search": ExactLineSearch("direction")}
    return fields | {"step": words[step] if isinstance(step, str) else Fixed(step)}


@register("solver", "accelerated", _examples, upgrades=[_step_as_rule])
@dataclass(frozen=True, slots=True)
class AcceleratedIHT(Solver):
    r"""Iterative hard thresholding with momentum, safeguarded or as published.

    .. math:: T_i &= \mathrm{supp}\bigl(P_C(\nabla_{U_i^c} f(u_i))\bigr) \cup U_i, \qquad U_i = \mathrm{supp}(u_i) \\
              x_{i+1} &= P_C\bigl(u_i - \mu_i \nabla_{T_i} f(u_i)\bigr) \\
              u_{i+1} &= x_{i+1} + \tau_i (x_{i+1} - x_i)

    The state's point is :math:`x_i`, which is always in the set; :math:`u_i` need not be.

    Parameters
    ----------
    variant : {"safeguarded", "paper"}
        "paper" is Algorithm 1 to the letter: nothing keeps it from cycling or diverging. "safeguarded" halves the step
        until it satisfies the quadratic majorisation, discards a move from :math:`u_i` that brings f above
        :math:`f(x_i)` and goes on from :math:`x_i` instead, without momentum. It settles where no step decreases f.
    momentum : float, {"exact", "nesterov"} or Momentum, optional
        :math:`\tau`: constant; the minimiser along the last move within [0, 1]; or Nesterov's sequence with restarts.
        Default: "exact" when safeguarded, but 1/2 where f ignores entries of the point (matrix completion), on which
        the other two blow up what is not observed; 1/4 for the paper's variant, as in its Section 6.
    step : StepRule
        :math:`\mu`: `Fixed`, multiplying the gradient of the mean loss; `ExactLineSearch`, for
        :math:`\|g_S\|^2 / (g_S, H g_S)` with the gradient g at :math:`u_i` restricted to S = U_i, or, with
        ``within="direction"``, to S = T_i (Appendix B.2); `Polyak` or `SparsePolyak`. When safeguarded it is the first
        step tried.
    debias : {None, "final", "every"}
        Whether to minimise f on the support of the point, once the run has ended (line 9) or in every iteration.
    restricted : bool
        Whether to follow the gradient on :math:`T_i` (for `Rank` the tangent space), or all of it. For `Sparsity` it
        makes a difference to ``ExactLineSearch(within="direction")`` only.

    Raises
    ------
    InvalidInputError
        For words that are not listed, or numbers that are not finite, or a step that is not positive.

    Notes
    -----
    Cost: one data pass per iteration where f is quadratic, because its gradient at :math:`u_i` follows from those at
    the points; two otherwise. Besides, 2s/d of a pass for each of the step, the momentum and every step tried.

    Guarantee: "paper" with :math:`\mu = 2/(\alpha + \beta)`, where f has restricted constants alpha and beta over
    :math:`T_i`, converges linearly for least squares if :math:`|\tau|` is in the range that
    `hardthresh.diagnostics.momentum_range` returns (Theorem 1). That condition is sufficient only, and allows no
    momentum at all unless beta < 1.62 alpha, while in practice tau from -0.9 to about 0.9 converges.
    "safeguarded" is monotone; that its momentum helps is measured, not proven (heuristic): with the exact momentum it
    takes 13 iterations where IHT with step 1/L takes 160, and 44 where that takes 830 (k overshot).

    References
    ----------
    Khanna and Kyrillidis, *IHT dies hard: provable accelerated iterative hard thresholding*, Algorithm 1 and Appendix
    B.2; restarts: O'Donoghue and Candes (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import AcceleratedIHT, minimize
    >>> from hardthresh.steps import Fixed
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> f = LinearModel(X, X[:, 3] - 2.0 * X[:, 7])
    >>> minimize(f, Sparsity(2), AcceleratedIHT()).support
    Coordinates([3, 7])
    >>> published = AcceleratedIHT(variant="paper", momentum=1.8, step=Fixed(0.2))
    >>> minimize(f, Sparsity(2), published, max_iter=200).status.name
    'DIVERGED'
    """

    variant: str = "safeguarded"
    momentum: float | str | Momentum | None = None
    step: StepRule = field(default_factory=ExactLineSearch)
    debias: str | None = None
    restricted: bool = True

    state_type: ClassVar[type[State]] = AcceleratedState

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InvalidInputError(f"variant must be 'safeguarded' or 'paper', got {self.variant!r}")
        if self.debias not in DEBIAS:
            raise InvalidInputError(f"debias must be None, 'final' or 'every', got {self.debias!r}")
        if not isinstance(self.step, StepRule):
            raise InvalidInputError(f"step must be a rule, such as Fixed(0.1); got {format_value(self.step)}")
        if type(self.step).length is StepRule.length:
            raise InvalidInputError(
                f"{type(self.step).__name__} finds its step by moving, and has no length to tell beforehand; "
                "AcceleratedIHT takes Fixed, ExactLineSearch, Polyak or SparsePolyak"
            )
        if not isinstance(self.restricted, bool):
            raise InvalidInputError(f"restricted must be True or False, got {self.restricted!r}")
        if self.momentum is not None:
            as_momentum(self.momentum)

    @property
    def requires(self) -> type:
        curved = self.step.requires is SmoothObjective or self.debias is not None
        automatic = self.momentum is None and self.variant == "safeguarded"
        exact = automatic or (self.momentum is not None and as_momentum(self.momentum).requires is SmoothObjective)
        return SmoothObjective if curved or exact else Objective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        Solver.check(self, objective, constraint)
        self.step.check(objective)

    def stopping(self, tol: float) -> StopRule:
        return SmallMove(tol) & Stationarity(sqrt(tol))

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> AcceleratedState:
        at, projection = starting_point(objective, constraint, w0)
        return AcceleratedState(at=at, support=projection.support, seed=seed, memory=self._rule(objective).start())

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> AcceleratedState:
        assert isinstance(state, AcceleratedState)
        if self.variant == "paper":
            return self._arrive(objective, constraint, state, self._move(objective, constraint, state))
        return self._advance_safely(objective, constraint, state)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        if self.debias != "final":
            return state
        here = Projection(state.w, state.support)
        solved = refine(objective, constraint, here, state.at.prediction, cg_iterations=0, rounds=25)
        at = objective.evaluate(solved.projection.point, solved.prediction)
        return replace(state, at=at, support=solved.projection.support)

    def _move(self, objective: Objective, constraint: Constraint, state: AcceleratedState) -> Descent:
        """Return lines 4 to 6 of Algorithm 1, for better or worse."""
        u, support = state.at, state.support
        if state.ahead is not None and state.ahead_support is not None:
            u, support = state.ahead, state.ahead_support
        direction, step = self._direction_and_step(objective, constraint, u, support)
        projection = constraint.project(u.point + step * direction)
        return Descent(projection, step, nan, objective.predict(projection.point))

    def _advance_safely(
        self, objective: Objective, constraint: Constraint, state: AcceleratedState
    ) -> AcceleratedState:
        """Return the state after a move that does not increase f: with momentum, or else without."""
        if state.ahead is not None and state.ahead_support is not None:
            moved = self._descend(objective, constraint, state.ahead, state.ahead_support, most=inf)
            if moved is not None and moved.value <= state.value:
                return self._arrive(objective, constraint, state, moved)
            state = replace(state, ahead=None, memory=self._rule(objective).start())
        moved = self._descend(objective, constraint, state.at, state.support, most=state.value)
        if moved is None:
            nowhere = "no step along the gradient that was tried decreases the objective"
            still = replace(state, iteration=state.iteration + 1, step=0.0, momentum=0.0, moved=0.0)
            return verdict(objective, constraint, still, nowhere, 0.0, 4.0 * value_rounding(objective, state.at))
        return self._arrive(objective, constraint, state, moved)

    def _descend(
        self, objective: Objective, constraint: Constraint, at: Evaluation, support: Support, most: float
    ) -> Descent | None:
        """Return the first of the halved steps from `at` that the majorisation allows; None where f is not finite."""
        if not isfinite(at.value):
            return None
        direction, step = self._direction_and_step(objective, constraint, at, support)
        return majorised_step(objective, constraint, at, direction, step, most=most)

    def _direction_and_step(
        self, objective: Objective, constraint: Constraint, u: Evaluation, support: Support
    ) -> tuple[Array, float]:
        """Return minus the gradient on the expanded support (line 4), and the step to go along it."""
        direction, inside = -u.gradient, support.restrict(-u.gradient)
        if self.restricted:
            newcomers = constraint.project(direction - inside).support
            direction = (newcomers | support).restrict(direction)
        rounding = 0.0 if self.variant == "paper" else sqrt(float(namespace(inside).finfo(inside.dtype).eps))
        along = inside if norm(inside) > rounding * norm(direction) else direction
        return direction, self.step.length(objective, constraint, u, direction, along)

    def _arrive(
        self, objective: Objective, constraint: Constraint, state: AcceleratedState, moved: Descent
    ) -> AcceleratedState:
        """Return the state at a new point, and the point that momentum leads to from there (line 7)."""
        projection, prediction = moved.projection, moved.prediction
        if self.debias == "every":
            solved = refine(objective, constraint, projection, prediction, cg_iterations=0, rounds=25, slide=False)
            projection, prediction = solved.projection, solved.prediction
        new = objective.evaluate(projection.point, prediction)
        u = state.at if state.ahead is None else state.ahead
        tau, memory = self._rule(objective).weigh(objective, u, state.at, new, state.memory)
        return replace(
            state,
            at=new,
            support=projection.support,
            iteration=state.iteration + 1,
            step=moved.step,
            ahead=_extrapolate(objective, state.at, new, tau) if tau else None,
            ahead_support=projection.support | state.support if tau else None,
            memory=memory,
            momentum=tau,
            moved=_relative_move(state.w, new.point),
        )

    def _rule(self, objective: Objective) -> Momentum:
        """Return the momentum, on an objective that decides where the user does not."""
        if self.momentum is not None:
            return as_momentum(self.momentum)
        if self.variant == "paper":
            return ConstantMomentum(0.25)
        return ConstantMomentum(0.5) if objective.traits.partial else ExactMomentum()


def _relative_move(old: Array, new: Array) -> float:
    length, size = norm(new - old), norm(new)
    return length / size if size > 0.0 else length


def _extrapolate(objective: Objective, previous: Evaluation, new: Evaluation, tau: float) -> Evaluation:
    """Return f at new + tau (new - previous), without a data pass where f is quadratic and predictions are affine."""
    point = new.point + tau * (new.point - previous.point)
    if not objective.traits.quadratic or new.prediction is None or previous.prediction is None:
        return objective.evaluate(point)
    prediction = new.prediction + tau * (new.prediction - previous.prediction)
    gradient = new.gradient + tau * (new.gradient - previous.gradient)
    return Evaluation(point, objective.value(point, prediction), gradient, prediction)
