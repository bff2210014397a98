"""Probabilistic iterative hard thresholding: clipped steps on batches, kept where a second batch confirms them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf, isfinite, nan, sqrt
from typing import Any, ClassVar, NamedTuple

from hardthresh.arrays import namespace
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.errors import CapabilityError, InvalidInputError, NotFiniteError
from hardthresh.core.objective import Evaluation, Objective, provides
from hardthresh.core.registry import register
from hardthresh.core.result import Status
from hardthresh.core.solver import Solver, State
from hardthresh.core.stationarity import norm
from hardthresh.core.stopping import Run, Stop, StopRule
from hardthresh.core.typing import Array, Support

from .batches import BatchRule, Full, NormTest, Progress, check_rule
from .estimate import batch, check_every, estimate, examples, finished, full_value, noisy_estimate
from .start import starting_point
from .subspace import refine
from .voting import Vote


@dataclass(frozen=True, slots=True)
class Scale:
    """The settings that carry a unit."""

    alpha: float
    delta0: float
    delta_max: float
    eta2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilisticState(State):
    """A `State` whose evaluation is an estimate: f and its gradient on the batch of the coming iteration.

    Attributes
    ----------
    scale : Scale
        The settings with a unit, as given or as found at the start.
    delta : float
        The clipping level :math:`\\delta_k`.
    size : int
        The size of the coming batches.
    accepted : bool
        Whether the iteration that led here was accepted.
    ratio : float
        Its estimated decrease over the promised one, :math:`\\rho`; nan at the start.
    index_set : Support or None
        Its :math:`I_k`; None at the start.
    batch_size : int
        On how many examples it estimated the gradient.
    samples : int
        Examples looked at so far: b for each gradient, and 2 b for each pair of function values.
    full_value : float
        f at the point, where it is known; nan elsewhere.
    spread : array or None
        The estimated variance of each entry of the gradient; None where it is not measured.
    inside : float
        The norm of its gradient on the index set over that of the whole.
    change : float
        The estimated change of f by its trial over |f|.
    at_floor : bool
        Whether the published test cannot accept a step any more.
    ballots : Any
        What the vote remembers.
    """

    scale: Scale
    delta: float
    size: int
    accepted: bool = True
    ratio: float = nan
    index_set: Support | None = None
    batch_size: int = 0
    samples: int = 0
    full_value: float = nan
    spread: Array | None = None
    inside: float = inf
    change: float = inf
    at_floor: bool = False
    ballots: Any = None

    def record(self) -> dict[str, float]:
        return {
            "value": self.full_value,
            "value_estimate": self.value,
            "delta": self.delta,
            "samples": float(self.samples),
        }

    def transition(self) -> dict[str, float]:
        return {
            "step": self.step,
            "accepted": float(self.accepted),
            "ratio": self.ratio,
            "batch_size": float(self.batch_size),
        }


@dataclass(frozen=True, slots=True)
class NothingLeft(StopRule):
    """Stop when, on all examples, no step is left: neither gradient on the index set, nor trust, nor decrease.

    Precisely: :math:`\\|g_I\\| \\le tol \\|g\\|`, or :math:`\\delta < 10^{-12} \\delta_0`, or f changes by less than
    :math:`10^{-12} |f|`; and, clipped by the full norm, when the test cannot accept any step.
    """

    tol: float

    def check(self, run: Run) -> Stop | None:
        state = run.state
        assert isinstance(state, ProbabilisticState)
        if not state.exact or state.iteration == 0:
            return None
        if state.inside <= self.tol:
            return Stop(Status.STATIONARY, f"the gradient on the index set fell to {state.inside:.3g} of the whole")
        if state.at_floor:
            return Stop(Status.FLOOR, f"the gradient on the index set is {state.inside:.3g} of the whole")
        if state.change < 1e-12:
            return Stop(Status.SMALL_DECREASE, f"the last trial changed the objective by {state.change:.3g} of it")
        if state.delta < 1e-12 * state.scale.delta0:
            return Stop(Status.SMALL_DECREASE, f"the clipping level fell to {state.delta:.3g}")
        return None


class _Trial(NamedTuple):
    """A trial point, where it came from, and how the gradient divides."""

    projection: Projection
    index_set: Support
    step: float
    whole: float
    inside: float
    promise: float


@register(
    "solver", "probabilistic", lambda: [ProbabilisticIHT(), ProbabilisticIHT(variant="paper", alpha=1.0, batch=Full())]
)
@dataclass(frozen=True, slots=True)
class ProbabilisticIHT(Solver):
    r"""Iterative hard thresholding on batches, with steps that a second, independent batch has to confirm.

    .. math:: I_k &= \text{the K largest of } |x_k - t_k g_k|, \qquad
                 t_k = \min\Bigl(\alpha, \frac{\delta_k}{\|g_k\|}\Bigr) \\
              \hat x_k &= P_{I_k}(x_k - t_k g_k), \qquad
                 \rho_k = \frac{f_k^0 - f_k^s}{\|[g_k]_{I_k}\| \, \delta_k}

    with :math:`g_k` from one batch and :math:`f_k^0 \approx f(x_k), f_k^s \approx f(\hat x_k)` from another. The trial
    is accepted if :math:`\rho_k \ge \eta_1` and :math:`\|[g_k]_{I_k}\| \ge \eta_2 \delta_k`; then
    :math:`\delta_{k+1} = \min(\gamma \delta_k, \delta_{\max})`, else :math:`\delta_{k+1} = \delta_k / \gamma`.

    Parameters
    ----------
    variant : {"stable", "paper"}
        Chooses the defaults of the settings that are None, here given as stable / paper.
    alpha, delta0, delta_max : float, optional
        Step :math:`\alpha`, first and largest clipping level :math:`\delta`; 100 s, :math:`s \|d\|`,
        :math:`1000 s \|d\|` / 1, 1, 10, where d is the leading part of the first gradient and s the step that minimises
        f along it, by one secant.
    eta1, eta2 : float, float or None
        Thresholds of the test: :math:`\eta_1` in (0, 1), 1e-4; :math:`\eta_2 > 0`, 1e-4 / s / 1e-4.
    gamma : float
        Factor of the clipping level, > 1. The listing of the paper says (0, 1), its text and experiments 2.
    clip : {"stable", "restricted", "full"}, optional
        By which norm the step on :math:`I_k` is clipped: the whole gradient's ("full", as published), that of its part
        on :math:`I_k` ("restricted"), or that wherever no entry of :math:`x_k` is dropped ("stable"). Stable / full.
    ratio : {"paper", "full", "model"}
        The denominator of :math:`\rho`: as above; with :math:`\|g_k\|` in both tests, strictly (the authors' code); or
        the decrease of the linear model.
    batch : BatchRule, optional
        How many examples, from `hardthresh.solvers.batches`. Default: `NormTest`; `Full` for an objective without
        ``rows``.
    value_batch : {"independent", "same", "separate"}
        On which examples the two values are: one new batch for both; the gradient's, which accepts nearly everything
        and never converges; or one new batch for each.
    vote : Vote, optional
        Which index set is used, after a vote over iterations; default the newest. For sets of coordinates only.
    refit : bool, optional
        Whether to minimise f on the support at the end, on all examples. True / False.
    full_value_every : int, optional
        In which iterations to compute f on all examples for the history, at the cost of a data pass. Default: where the
        batch is all of them.

    Raises
    ------
    InvalidInputError
        For a gamma of at most 1, numbers that are not positive, words that are not listed.
    CapabilityError
        Before a run, if the objective has no ``rows`` but the rule draws batches.

    Notes
    -----
    Cost: b examples for a gradient and 2 b for the values in each iteration, in data passes up to 3 b / n; on all
    examples one pass if the trial is accepted and s/d of one if not. Guarantee: Theorem 4 of the paper says that limit
    points are basic feasible almost surely if batches grow fast enough; several of its steps do not hold as printed
    (the documentation lists them), and with the clip "full" no step is accepted any more once
    :math:`\|g_I\| < \eta_1 \|g\|`: that floor is reported as ``Status.FLOOR``. On a fixed batch no method of this kind
    converges. "stable" has no floor (measured; heuristic).

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic iterative hard thresholding for sparse
    learning*, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import ProbabilisticIHT, minimize
    >>> X = np.random.default_rng(0).standard_normal((2000, 100))
    >>> f = LinearModel(X, X[:, 3] - 2.0 * X[:, 7] + 0.1 * X[:, 8] ** 3)
    >>> minimize(f, Sparsity(2), ProbabilisticIHT(), seed=0).support
    array([3, 7])
    """

    variant: str = "stable"
    alpha: float | None = None
    eta1: float = 1e-4
    eta2: float | None = None
    delta0: float | None = None
    delta_max: float | None = None
    gamma: float = 2.0
    clip: str | None = None
    ratio: str = "paper"
    batch: BatchRule | None = None
    value_batch: str = "independent"
    vote: Vote | None = None
    refit: bool | None = None
    full_value_every: int | None = None

    state_type: ClassVar[type[State]] = ProbabilisticState

    def __post_init__(self) -> None:
        _check_word("variant", self.variant, ("stable", "paper"))
        _check_word("clip", self.clip, (None, "stable", "restricted", "full"))
        _check_word("ratio", self.ratio, ("paper", "full", "model"))
        _check_word("value_batch", self.value_batch, ("independent", "same", "separate"))
        for name in ("alpha", "eta1", "eta2", "delta0", "delta_max"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and isfinite(value)):
                raise InvalidInputError(f"{name} must be positive and finite, got {value!r}")
        if not self.eta1 < 1:
            raise InvalidInputError(f"eta1 must be below 1, got {self.eta1!r}")
        check_every(self.full_value_every)
        if self.batch is not None:
            check_rule(self.batch)
        if not (self.gamma > 1 and isfinite(self.gamma)):
            raise InvalidInputError(
                f"gamma must be above 1, got {self.gamma!r}: it multiplies the clipping level after success"
            )

    @property
    def requires(self) -> tuple[str, ...]:
        return () if self.batch is None or isinstance(self.batch, Full) else ("rows",)

    def stopping(self, tol: float) -> StopRule:
        return NothingLeft(tol)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> ProbabilisticState:
        at, projection = starting_point(objective, constraint, w0)
        rule, n = self._rule(objective), examples(objective)
        size = rule.first(n)
        scale = self._scale(objective, constraint, at)
        rows = rule.gradient_rows(n, size, seed, 0)
        spread = None
        if rows is not None:
            at, spread = self._sample(objective, rule, rows, at.point)
        return ProbabilisticState(
            at=at,
            support=projection.support,
            seed=seed,
            scale=scale,
            delta=min(scale.delta0, scale.delta_max),
            size=size,
            exact=rows is None,
            full_value=full_value(objective, at, rows is None, 0, self.full_value_every),
            spread=spread,
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> ProbabilisticState:
        assert isinstance(state, ProbabilisticState)
        rule, n = self._rule(objective), examples(objective)
        trial, ballots = self._trial(constraint, state)
        rows = rule.gradient_rows(n, state.size, state.seed, state.iteration)
        before, after, prediction = self._values(objective, rule, state, trial.projection.point)
        accepted, ratio = self._confirms(state, trial, before - after)
        delta = min(self.gamma * state.delta, state.scale.delta_max) if accepted else state.delta / self.gamma
        drawn = n if rows is None else rows.shape[0]
        noise = _noise(constraint, state, trial)
        size = rule.following(Progress(state.size, n, state.scale.delta0 / delta, noise))
        arrived = trial.projection if accepted else Projection(state.w, state.support)
        at, spread, exact = self._look(objective, rule, state, arrived, prediction if accepted else None, size)
        return replace(
            state,
            at=at,
            support=arrived.support,
            iteration=state.iteration + 1,
            step=trial.step,
            delta=delta,
            size=size,
            accepted=accepted,
            ratio=ratio,
            index_set=trial.index_set,
            batch_size=drawn,
            samples=state.samples + 3 * drawn,
            exact=exact,
            full_value=full_value(objective, at, exact, state.iteration + 1, self.full_value_every),
            spread=spread,
            inside=trial.inside / trial.whole if trial.whole > 0.0 else 0.0,
            change=abs(before - after) / abs(before) if before != 0.0 else abs(after),
            at_floor=self._clip == "full" and trial.inside < self._floor() * trial.whole,
            ballots=ballots,
        )

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        assert isinstance(state, ProbabilisticState)
        here = Projection(state.w, state.support)
        wanted = self.variant == "stable" if self.refit is None else self.refit
        if wanted and provides(objective, "curvature"):
            solved = refine(objective, constraint, here, cg_iterations=0, rounds=25)
            at = objective.evaluate(solved.projection.point, solved.prediction)
            return replace(state, at=at, support=solved.projection.support, exact=True, full_value=at.value)
        return finished(objective, state)

    def _trial(self, constraint: Constraint, state: ProbabilisticState) -> tuple[_Trial, Any]:
        """Return lines 4 and 5: the index set, the step and the trial point."""
        x, g = state.w, state.at.gradient
        alpha, delta, whole = state.scale.alpha, state.delta, norm(g)
        step = min(alpha, delta / whole) if whole > 0.0 else alpha
        moved = x - step * g
        reached, ballots = constraint.project(moved), state.ballots
        chosen = reached.support
        if self.vote is not None:
            chosen, ballots = self._poll(constraint, chosen, state)
            reached = constraint.project(constraint.restrict(moved, chosen))
        inside = norm(constraint.restrict(g, chosen))
        dropped = self._clip == "stable" and norm(x - constraint.restrict(x, chosen)) > 1e-12 * norm(x)
        if self._clip != "full" and not dropped:
            step = min(alpha, delta / inside) if inside > 0.0 else alpha
            reached = constraint.project(constraint.restrict(x - step * g, chosen))
        promise = -float(namespace(g).sum(g * (reached.point - x)))
        return _Trial(reached, chosen, step, whole, inside, promise), ballots

    def _poll(self, constraint: Constraint, chosen: Support, state: ProbabilisticState) -> tuple[Support, Any]:
        assert self.vote is not None
        if constraint.indices(chosen) is not chosen:
            raise CapabilityError(
                f"a vote is about single coordinates, which {type(constraint).__name__} does not choose"
            )
        return self.vote.cast(chosen, state.w.shape[0], state.ballots)

    def _values(
        self, objective: Objective, rule: BatchRule, state: ProbabilisticState, trial: Array
    ) -> tuple[float, float, Array | None]:
        """Return line 6: f at the point and at the trial, and the trial's prediction if that is on all examples."""
        n = examples(objective)
        draw = rule.gradient_rows if self.value_batch == "same" else rule.value_rows
        rows = draw(n, state.size, state.seed, state.iteration)
        if rows is None:
            before = state.value if state.exact else objective.value(state.w)
            prediction = objective.predict(trial)
            return before, objective.value(trial, prediction), prediction
        here = there = batch(objective, rows)
        if self.value_batch == "separate":
            there = batch(objective, rule.value_rows(n, state.size, state.seed + 1, state.iteration))
        return here.value(state.w), there.value(trial), None

    def _confirms(self, state: ProbabilisticState, trial: _Trial, decrease: float) -> tuple[bool, float]:
        """Return line 7: whether the trial is accepted, and the ratio."""
        scale, size = state.scale, trial.whole if self.ratio == "full" else trial.inside
        promised = trial.promise if self.ratio == "model" else size * state.delta
        ratio = decrease / promised if promised > 0.0 and isfinite(decrease) else -inf
        if self.ratio == "full":
            return ratio > self.eta1 and size > scale.eta2 * state.delta, ratio
        return ratio >= self.eta1 and size >= scale.eta2 * state.delta, ratio

    def _look(
        self,
        objective: Objective,
        rule: BatchRule,
        state: ProbabilisticState,
        arrived: Projection,
        prediction: Array | None,
        size: int,
    ) -> tuple[Evaluation, Array | None, bool]:
        """Return line 3 of the next iteration: f and its gradient on a new batch, their noise, and if it was all."""
        rows = rule.gradient_rows(examples(objective), size, state.seed, state.iteration + 1)
        if rows is not None:
            return *self._sample(objective, rule, rows, arrived.point), False
        if state.exact and arrived.point is state.w:
            return state.at, None, True
        return objective.evaluate(arrived.point, prediction), None, True

    @staticmethod
    def _sample(objective: Objective, rule: BatchRule, rows: Array, point: Array) -> tuple[Evaluation, Array | None]:
        """Return f and its gradient on a batch, and the variance of its entries where the rule asks for it."""
        if rule.measures_noise:
            return noisy_estimate(objective, rows, point)
        return estimate(objective, rows, point), None

    def _scale(self, objective: Objective, constraint: Constraint, at: Evaluation) -> Scale:
        """Return the settings with a unit: as given, as published, or by the secant along the leading gradient."""
        if self.variant == "paper":
            defaults = Scale(alpha=1.0, delta0=1.0, delta_max=10.0, eta2=1e-4)
        else:
            length, step = _cauchy_step(objective, constraint, at)
            defaults = Scale(100.0 * step, step * length, 1000.0 * step * length, 1e-4 / step)
        given = {field.name: getattr(self, field.name) for field in fields(Scale)}
        return replace(defaults, **{name: value for name, value in given.items() if value is not None})

    def _rule(self, objective: Objective) -> BatchRule:
        if self.batch is not None:
            return self.batch
        return NormTest() if provides(objective, "rows") else Full()

    @property
    def _clip(self) -> str:
        return self.clip or ("full" if self.variant == "paper" else "stable")

    def _floor(self) -> float:
        """Return the share of the gradient on the index set below which the test accepts no small step."""
        return {"paper": self.eta1, "full": sqrt(self.eta1), "model": 0.0}[self.ratio]


def _noise(constraint: Constraint, state: ProbabilisticState, trial: _Trial) -> float:
    """Return the variance of the gradient on the index set over its squared norm; nan if it was not measured."""
    if state.spread is None or trial.inside == 0.0:
        return nan if state.spread is None else inf
    chosen = constraint.indices(trial.index_set)
    total = float(
        namespace(state.spread).sum(
            state.spread if chosen is None else constraint.restrict(state.spread, trial.index_set)
        )
    )
    return total / (trial.whole if chosen is None else trial.inside) ** 2


def _cauchy_step(objective: Objective, constraint: Constraint, at: Evaluation) -> tuple[float, float]:
    """Return the norm of the leading part d of the gradient, and the step along -d to where a secant sees a minimum."""
    leading = constraint.leading(at.gradient)
    xp = namespace(leading)
    squared = float(xp.sum(leading * leading))
    if squared == 0.0:
        return 1.0, 1.0
    trial = abs(at.value) / squared or 1.0  # Polyak's step follows every scale, of f and of w
    for _ in range(60):
        try:
            there = objective.evaluate(at.point - trial * leading).gradient
        except NotFiniteError:  # too far for f
            trial *= 0.25
            continue
        bend = float(xp.sum(leading * (at.gradient - there))) / trial
        if 0.0 < bend < inf:
            return sqrt(squared), squared / bend
        trial *= 0.25
    return sqrt(squared), trial


def _check_word(name: str, word: str | None, known: tuple[str | None, ...]) -> None:
    if word not in known:
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, known))}; got {word!r}")
