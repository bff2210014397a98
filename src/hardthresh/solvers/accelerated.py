"""Accelerated iterative hard thresholding: gradient steps on an expanded support, with momentum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan, sqrt
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_word
from hardthresh.core.choosing import choose_array, ratio_if
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.few import predict_few
from hardthresh.core.lazy import at_hand
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
from hardthresh.core.typing import Array, is_real
from hardthresh.steps.fixed import Fixed
from hardthresh.steps.line_search import Candidate, ExactLineSearch, majorised_step

from .momentum import ConstantMomentum, ExactMomentum, Momentum, NesterovMomentum
from .refinement import FULL_SOLVE, refine
from .start import starting_point
from .steepest import verdict


@stored("state/accelerated", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratedState(State):
    """A `State` with the extrapolated point.

    Attributes
    ----------
    ahead : Evaluation or None
        The objective at :math:`u_i`; None if that is the state's own point, without momentum.
    ahead_support : Support or None
        The support of :math:`u_i`; None without momentum.
    memory : Any
        What the momentum rule remembers.
    momentum : float
        The :math:`\\tau` that gave :math:`u_i`; nan at the start.
    moved : float
        :math:`\\|x_i - x_{i-1}\\| / \\|x_i\\|`; inf at the start.
    """

    ahead: Evaluation | None = None
    ahead_support: Support | None = None
    memory: object
    momentum: float = nan
    moved: float = inf

    @property
    def extrapolated(self) -> tuple[Evaluation, Support]:
        """:math:`u_i` and its support, which are those of the state's point without momentum."""
        if self.ahead is None or self.ahead_support is None:
            return self.at, self.support
        return self.ahead, self.ahead_support

    def transition(self) -> dict[str, float]:
        return {"step": self.step, "momentum": self.momentum}


@stored("stop/small_move")
@dataclass(frozen=True, slots=True)
class SmallMove(StopRule):
    """Stop when an iteration moves the point by at most ``tol`` times its norm (line 8 of Algorithm 1)."""

    tol: float

    def check(self, run: Run) -> Stop | None:
        assert isinstance(run.state, AcceleratedState)
        rounding = 4.0 * float(namespace(run.state.w).finfo(run.state.w.dtype).eps)  # 4 is arbitrary: the last digits
        if run.state.moved > max(self.tol, rounding):
            return None
        return Stop(Status.SMALL_DECREASE, f"the last iteration moved the point by {run.state.moved:.3g} of its norm")


def _examples() -> list[AcceleratedIHT]:
    """Return solvers for the conformance tests."""
    return [
        AcceleratedIHT(),
        AcceleratedIHT(momentum=NesterovMomentum(), debias="final"),
        AcceleratedIHT(variant="paper", debias="every"),
    ]


def _step_as_rule(fields: Fields) -> Fields:
    """Return the settings in version 2: in version 1 a step was a number or one of two words."""
    step = fields["step"]
    words = {"support": ExactLineSearch(), "line_search": ExactLineSearch("direction")}
    return fields | {"step": words[step] if isinstance(step, str) else Fixed(step)}


def _momentum_as_rule(fields: Fields) -> Fields:
    """Return the settings in version 3: in version 2 a momentum could be a number or one of two words."""
    momentum = fields["momentum"]
    if isinstance(momentum, str):
        momentum = {"exact": ExactMomentum(), "nesterov": NesterovMomentum()}[momentum]
    elif is_real(momentum):
        momentum = ConstantMomentum(float(momentum))
    return fields | {"momentum": momentum}


@register("solver", "accelerated", _examples, upgrades=[_step_as_rule, _momentum_as_rule])
@dataclass(frozen=True, slots=True)
class AcceleratedIHT(Solver):
    r"""Accelerated iterative hard thresholding: with momentum, safeguarded or exactly as in the paper.

    .. math:: T_i &= \mathrm{supp}\bigl(P_C(\nabla_{U_i^c} f(u_i))\bigr) \cup U_i, \qquad U_i = \mathrm{supp}(u_i) \\
              x_{i+1} &= P_C\bigl(u_i - \mu_i \nabla_{T_i} f(u_i)\bigr) \\
              u_{i+1} &= x_{i+1} + \tau_i (x_{i+1} - x_i)

    The point of the state is :math:`x_i`, which is always in the set; :math:`u_i` need not be.

    Parameters
    ----------
    variant : {"safeguarded", "paper"}
        "paper" is Algorithm 1 exactly, which may cycle or diverge. "safeguarded" halves the step until it satisfies the
        quadratic majorisation. If a step from :math:`u_i` raises f above :math:`f(x_i)`, it is replaced by a step from
        :math:`x_i` without momentum. The run ends if no step decreases f.
    momentum : Momentum, optional
        The rule for :math:`\tau`: `ConstantMomentum`, `ExactMomentum`, the minimiser along the last move within [0, 1],
        or `NesterovMomentum`. Default: `ExactMomentum` when safeguarded, but ``ConstantMomentum(0.5)`` for objectives
        that ignore entries of the point (matrix completion), because the other two inflate the entries that are not
        observed; ``ConstantMomentum(0.25)`` for the paper's variant, as in its Section 6.
    step : StepRule
        :math:`\mu`: `Fixed`, multiplying the gradient of the mean loss; `ExactLineSearch`, for
        :math:`\|g_S\|^2 / (g_S, H g_S)` with the gradient g at :math:`u_i` restricted to S = U_i, or, with
        ``within="direction"``, to S = T_i (Appendix B.2); `Polyak` or `SparsePolyak`. When safeguarded it is the first
        step tried.
    debias : {None, "final", "every"}
        Whether to minimise f on the support of the point: never, at the end of the run (line 9), or in every iteration.
    restricted : bool
        Whether to use the gradient restricted to :math:`T_i` (for `Rank`, to the tangent space) or the whole gradient.
        For `Sparsity` this affects only ``ExactLineSearch(within="direction")``.

    Raises
    ------
    InvalidInputError
        For values that are not listed, a momentum that is not a `Momentum`, or a step that is not a `StepRule` with a
        method `length`.

    Notes
    -----
    Cost: one data pass per iteration if f is quadratic, because its gradient at :math:`u_i` follows from those at the
    points; two otherwise. In addition, 2s/d of a pass for each of the step, the momentum and every step tried, for s
    non-zeros of d.

    Guarantee: "paper" with :math:`\mu = 2/(\alpha + \beta)`, where f has restricted constants alpha and beta over
    :math:`T_i`, converges linearly for least squares if :math:`|\tau|` is in the range that
    `hardthresh.diagnostics.momentum_range` returns (Theorem 1). This condition is only sufficient. It allows no
    momentum unless beta < 1.62 alpha, whereas in practice the method converges for tau from -0.9 to about 0.9.
    "safeguarded" is monotone; the benefit of its momentum is measured, not proven (heuristic): with the exact momentum
    it took 13 iterations on a problem where IHT with step 1/L took 160, and 44 instead of 830 with k above the true
    number of non-zeros.

    References
    ----------
    Khanna and Kyrillidis, *IHT dies hard: provable accelerated iterative hard thresholding*, Algorithm 1 and Appendix
    B.2; restarts: O'Donoghue and Candes (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import AcceleratedIHT, ConstantMomentum, minimize
    >>> from hardthresh.steps import Fixed
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> f = LinearModel(X, X[:, 3] - 2.0 * X[:, 7])
    >>> minimize(f, Sparsity(2), AcceleratedIHT()).support
    Coordinates([3, 7])
    >>> published = AcceleratedIHT(variant="paper", momentum=ConstantMomentum(1.8), step=Fixed(0.2))
    >>> minimize(f, Sparsity(2), published, max_iter=200).status.name
    'DIVERGED'
    """

    variant: str = "safeguarded"
    momentum: Momentum | None = None
    step: StepRule = field(default_factory=ExactLineSearch)
    debias: str | None = None
    restricted: bool = True

    state_type: ClassVar[type[State]] = AcceleratedState

    def __post_init__(self) -> None:
        checked_word("variant", self.variant, ("safeguarded", "paper"))
        if self.debias not in (None, "final", "every"):
            raise InvalidInputError(f"debias must be None, 'final' or 'every', got {format_value(self.debias)}")
        if not isinstance(self.step, StepRule):
            raise InvalidInputError(f"step must be a rule, such as Fixed(0.1); got {format_value(self.step)}")
        if type(self.step).length is StepRule.length:
            raise InvalidInputError(
                f"{type(self.step).__name__} finds its step by moving, and has no length to tell beforehand; "
                "AcceleratedIHT takes Fixed, ExactLineSearch, Polyak or SparsePolyak"
            )
        if not isinstance(self.restricted, bool):
            raise InvalidInputError(f"restricted must be True or False, got {format_value(self.restricted)}")
        if not (self.momentum is None or isinstance(self.momentum, Momentum)):
            raise InvalidInputError(
                "momentum must be a rule, such as ConstantMomentum(0.25), ExactMomentum() or NesterovMomentum(); "
                f"got {format_value(self.momentum)}"
            )

    @property
    def requires(self) -> type:
        default: type = Objective if self.variant == "paper" else SmoothObjective
        momentum = default if self.momentum is None else self.momentum.requires
        return SmoothObjective if SmoothObjective in (self.step.requires, momentum) or self.debias else Objective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        Solver.check(self, objective, constraint)
        self.step.check(objective)

    def stopping(self, tol: float) -> StopRule:
        return SmallMove(tol) & Stationarity(sqrt(tol))

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> AcceleratedState:
        at, projection = starting_point(objective, constraint, w0)
        return AcceleratedState(at=at, support=projection.support, seed=seed, memory=self._rule(objective).start())

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> AcceleratedState:
        """Run lines 4 to 7 of Algorithm 1."""
        assert isinstance(state, AcceleratedState)
        if self.variant == "paper":
            return self._next_state(objective, constraint, state, self._step(objective, constraint, state))
        return self._advance_safely(objective, constraint, state)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        if self.debias != "final":
            return state
        here = Projection(state.w, state.support)
        solved = refine(objective, constraint, here, state.at.prediction, cg_iterations=0, rounds=FULL_SOLVE)
        at = objective.evaluate(solved.projection.point, solved.prediction)
        return replace(state, at=at, support=solved.projection.support)

    def _step(self, objective: Objective, constraint: Constraint, state: AcceleratedState) -> Candidate:
        """Return the step of lines 4 to 6, whether it decreases f or not."""
        u, support = state.extrapolated
        direction, step = self._direction_and_step(objective, constraint, u, support, state.support)
        projection = constraint.project(u.point + step * direction, state.support)
        prediction = predict_few(objective, constraint, projection.point)
        return Candidate(projection, step, nan, prediction)

    def _advance_safely(
        self, objective: Objective, constraint: Constraint, state: AcceleratedState
    ) -> AcceleratedState:
        """Return the state after a step that does not increase f: from u if there is one, else from x."""
        if state.ahead is not None:
            moved = self._majorised_step(objective, constraint, state, *state.extrapolated, most=inf)
            if moved is not None and moved.value <= state.value:
                return self._next_state(objective, constraint, state, moved)
            state = replace(state, ahead=None, memory=self._rule(objective).start())
        moved = self._majorised_step(objective, constraint, state, state.at, state.support, most=state.value)
        if moved is None:
            why = "no step along the gradient that was tried decreases the objective"
            still = replace(state, iteration=state.iteration + 1, step=0.0, momentum=0.0, moved=0.0)
            return verdict(objective, constraint, still, why, 0.0, 4.0 * value_rounding(objective, state.at))
        return self._next_state(objective, constraint, state, moved)

    def _majorised_step(
        self,
        objective: Objective,
        constraint: Constraint,
        state: AcceleratedState,
        at: Evaluation,
        support: Support,
        most: float,
    ) -> Candidate | None:
        """Return the first of the halved steps from `at` that the majorisation allows; None if f is infinite there."""
        if at_hand(at.value) and not isfinite(at.value):
            return None
        direction, step = self._direction_and_step(objective, constraint, at, support, state.support)
        found = majorised_step(objective, constraint, at, direction, step, support=state.support, most=most)
        return found if isfinite(at.value) else None

    def _direction_and_step(
        self, objective: Objective, constraint: Constraint, u: Evaluation, support: Support, start: Support
    ) -> tuple[Array, float]:
        """Return minus the gradient on the expanded support (line 4), and the step along it (line 5)."""
        direction, inside = -u.gradient, support.restrict(-u.gradient)
        if self.restricted:
            added = constraint.project(direction - inside, start).support
            direction = (added | support).restrict(direction)
        # at a minimiser on the support the gradient there is rounding, to which no step should be fitted
        rounding = 0.0 if self.variant == "paper" else sqrt(float(namespace(inside).finfo(inside.dtype).eps))
        along = choose_array(norm(inside) > rounding * norm(direction), inside, direction)
        supports = 3 if self.restricted else 0  # those of the last two points, of which u is, and the one that is added
        return direction, self.step.length(objective, constraint, u, direction, along, supports)

    def _next_state(
        self, objective: Objective, constraint: Constraint, state: AcceleratedState, moved: Candidate
    ) -> AcceleratedState:
        """Return the state after a step, with the point that momentum extrapolates to (line 7)."""
        projection, prediction = moved.projection, moved.prediction
        if self.debias == "every":
            solved = refine(
                objective,
                constraint,
                projection,
                prediction,
                cg_iterations=0,
                rounds=FULL_SOLVE,
                along_gradient=False,
                start=state.support,
            )
            projection, prediction = solved.projection, solved.prediction
        new = objective.evaluate(projection.point, prediction)
        ahead = state.extrapolated[0]
        tau, memory = self._rule(objective).weigh(objective, constraint, ahead, state.at, new, state.memory)
        length, size = norm(new.point - state.w), norm(new.point)
        still = at_hand(tau) and not tau
        return replace(
            state,
            at=new,
            support=projection.support,
            iteration=state.iteration + 1,
            step=moved.step,
            ahead=None if still else _extrapolate(objective, constraint, state.at, new, tau),
            ahead_support=None if still else projection.support | state.support,
            memory=memory,
            momentum=tau,
            moved=ratio_if(size > 0.0, length, size, length),
        )

    def _rule(self, objective: Objective) -> Momentum:
        """Return the momentum rule, by default the one for the variant and the objective."""
        if self.momentum is not None:
            return self.momentum
        if self.variant == "paper":
            return ConstantMomentum(0.25)
        return ConstantMomentum(0.5) if objective.traits.partial else ExactMomentum()


def _extrapolate(
    objective: Objective, constraint: Constraint, previous: Evaluation, new: Evaluation, tau: float
) -> Evaluation:
    """Return f at new + tau (new - previous), without a data pass if f is quadratic and predictions are affine."""
    point = new.point + tau * (new.point - previous.point)
    if not objective.traits.quadratic or new.prediction is None or previous.prediction is None:
        return objective.evaluate(point, predict_few(objective, constraint, point, supports=2))
    prediction = new.prediction + tau * (new.prediction - previous.prediction)
    gradient = new.gradient + tau * (new.gradient - previous.gradient)
    return Evaluation(point, objective.value(point, prediction), gradient, prediction)
