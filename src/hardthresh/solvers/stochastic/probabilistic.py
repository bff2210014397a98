"""Probabilistic iterative hard thresholding: clipped steps on batches, accepted if independent batches confirm them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf, isfinite, nan
from sys import float_info
from typing import Any, ClassVar, NamedTuple

from hardthresh.arrays import namespace
from hardthresh.constraints import Coordinates
from hardthresh.core.checking import checked_integer, checked_number, checked_word
from hardthresh.core.constraint import Constraint, Projection, coordinate_budget
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.objective import (
    Evaluation,
    LinearObjective,
    MeanObjective,
    Objective,
    SmoothObjective,
    value_rounding,
)
from hardthresh.core.registry import register
from hardthresh.core.result import Status
from hardthresh.core.schema import renames, stored
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.stopping import Run, Stop, StopRule
from hardthresh.core.support import Support, upgrade_supports
from hardthresh.core.typing import Array
from hardthresh.solvers.newton import DIRECT
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.solvers.start import starting_point

from .batches import BatchProgress, BatchRule, FullBatch, NormTest, Replay, check_batch_rule
from .estimates import (
    SampledState,
    count,
    estimate,
    estimate_with_noise,
    full_value,
    fully_evaluated,
    if_finite,
    on_batch,
)
from .scale import PUBLISHED, Scale, automatic_scale
from .voting import Vote

_CG_ITERATIONS, _CG_ROUNDS = 20, 5  # arbitrary: at most 100 products with the Hessian in a refit by conjugate gradients
_LEAST_DELTA = float_info.min  # so that delta0 / delta and f / delta are never divided by zero
_AT_FLOOR = 10  # trials, in which gamma = 2 lets the clipping level fall to a thousandth
_NEGLIGIBLE = 1e-12  # of f or delta0; arbitrary, and 4,500 units of rounding of float64


class _Trial(NamedTuple):
    """Lines 4 and 5: the trial point, with its index set and step, and what line 7 compares its decrease with."""

    projection: Projection
    index_set: Support
    step: float
    gradient_norm: float
    restricted_norm: float  # of the gradient on the index set
    linear_decrease: float  # of f, by the gradient
    ballots: Any

    @property
    def gradient_share(self) -> float:
        return self.restricted_norm / self.gradient_norm if self.gradient_norm > 0.0 else 0.0


class _Values(NamedTuple):
    """Line 6: f at the point and at the trial, the rounding of the first, and the examples that both rest on."""

    before: float
    after: float
    rounding: float
    n_examples: int
    exact: bool
    prediction: Array | None  # at the trial, on all examples

    @property
    def decrease(self) -> float:
        return self.before - self.after

    @property
    def relative_change(self) -> float:
        change = abs(self.decrease)
        return 0.0 if change <= self.rounding else change / (abs(self.before) or 1.0)


@stored("state/probabilistic", upgrades=[upgrade_supports, renames(size="next_size", futile="rejected_at_floor")])
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilisticState(SampledState):
    """A `SampledState` with the clipping level, the size of the next batch, and the outcome of the last trial.

    Attributes
    ----------
    scale : Scale
        The settings that have a unit, as given or as found at the start.
    delta : float
        The clipping level :math:`\\delta_k`.
    next_size : int
        The size of the batches of the coming iteration.
    accepted : bool
        Whether the last trial was accepted.
    ratio : float
        Its estimated decrease over the predicted one, :math:`\\rho`; nan at the start.
    index_set : Support or None
        Its :math:`I_k`; None at the start.
    batch_size : int
        The number of examples of its gradient.
    trial_exact : bool
        Whether its gradient and both its values were computed on all examples.
    gradient_share : float
        The norm of its gradient on the index set over that of the whole gradient.
    relative_change : float
        The change of f by the trial over abs(f).
    rejected_at_floor : int
        How many trials on all examples in a row the published test rejected although, to first order, it could accept
        no smaller step either.
    noise : array or None
        A sample of the noise of the coming gradient (`estimates.estimate_with_noise`); None if it is not measured.
    ballots : Any
        What the vote remembers.
    """

    scale: Scale
    delta: float
    next_size: int
    accepted: bool = True
    ratio: float = nan
    index_set: Support | None = None
    batch_size: int = 0
    trial_exact: bool = False
    gradient_share: float = inf
    relative_change: float = inf
    rejected_at_floor: int = 0
    noise: Array | None = None
    ballots: Any = None

    def record(self) -> dict[str, float]:
        return {**SampledState.record(self), "delta": self.delta}

    def transition(self) -> dict[str, float]:
        return {
            "step": self.step,
            "accepted": float(self.accepted),
            "ratio": self.ratio,
            "batch_size": float(self.batch_size),
        }


@stored("stop/nothing_left")
@dataclass(frozen=True, slots=True)
class NothingLeft(StopRule):
    """Stop if a trial on all examples has a negligible restricted gradient, clipping level or change of f.

    That is, if :math:`\\|g_I\\| \\le tol \\|g\\|`, or :math:`\\delta < 10^{-12} \\delta_0`, or f changes by less than
    :math:`10^{-12} |f|`. If steps are clipped by the full norm, the last two are the floor of the published test, and
    no convergence, where that rejected the trial and can, to first order, accept no smaller one; ten such trials in a
    row end a run too.
    """

    tol: float

    def check(self, run: Run) -> Stop | None:
        state = run.state
        assert isinstance(state, ProbabilisticState)
        if not state.trial_exact:
            return None
        share, change = state.gradient_share, state.relative_change
        if share <= self.tol:
            return Stop(Status.STATIONARY, f"the gradient on the index set fell to {share:.3g} of the whole")
        unchanged, clipped = change < _NEGLIGIBLE, state.delta < _NEGLIGIBLE * state.scale.delta0
        floor = state.rejected_at_floor
        if floor >= _AT_FLOOR or (floor > 0 and (unchanged or clipped)):
            return Stop(Status.FLOOR, f"the gradient on the index set is {share:.3g} of the whole")
        if unchanged:
            return Stop(Status.SMALL_DECREASE, f"the last trial changed the objective by {change:.3g} of it")
        if clipped:
            return Stop(Status.SMALL_DECREASE, f"the clipping level fell to {state.delta:.3g}")
        return None


@register(
    "solver",
    "probabilistic",
    lambda: [ProbabilisticIHT(), ProbabilisticIHT(variant="paper", alpha=1.0, batch=FullBatch())],
)
@dataclass(frozen=True, slots=True)
class ProbabilisticIHT(Solver):
    r"""Iterative hard thresholding on batches, keeping the steps that an independent batch confirms.

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
        The defaults of the settings that are None, which are given below as stable / paper.
    alpha : float, optional
        Longest step :math:`\alpha`; 100 s / 1, where s is the step that minimises f along d, the hard-thresholded first
        gradient, by a secant.
    eta1, eta2 : float, float or None
        Thresholds of the test: :math:`\eta_1` in (0, 1), 1e-4; :math:`\eta_2 > 0`, 1e-4 / s / 1e-4.
    delta0, delta_max : float, optional
        First and largest clipping level :math:`\delta`; :math:`s \|d\|`, :math:`1000 s \|d\|` / 1, 10. If only one of
        them is given, the first is at most the largest.
    gamma : float
        Factor of the clipping level, > 1. The listing of the paper requires (0, 1), but its text and experiments use 2.
    clip : {"stable", "restricted", "full"}, optional
        The norm that clips the step on :math:`I_k`: that of the whole gradient ("full", as published), that of its part
        on :math:`I_k` ("restricted"), or the latter if :math:`I_k` holds all non-zeros of :math:`x_k`, else the former
        ("stable"). Stable / full.
    ratio : {"paper", "full", "model"}
        The denominator of :math:`\rho`: as above; with :math:`\|g_k\|` in both tests, strictly (the authors' code); or
        the decrease of the linear model.
    batch : BatchRule, optional
        How many examples to draw. Default: `NormTest`; `FullBatch` for an objective without ``rows``.
    value_batch : {"independent", "same", "separate"}
        The examples of the two values: one new batch for both; that of the gradient, on which the step has been
        fitted, so that too many steps are accepted, and batches that grow as :math:`\delta` falls stay small; or one
        new batch for each, which a `Replay` does not store.
    vote : Vote, optional
        A rule that combines the index sets of all iterations, instead of the newest index set. Only for constraints
        that allow any k coordinates, such as `Sparsity`.
    refit : bool, optional
        Whether to minimise f on the support at the end, on all examples. True / False.
    full_value_every : int, optional
        The number of iterations between computations of f on all examples for the history, each of which costs a data
        pass. Default: f is computed only if the batch contains all examples.

    Raises
    ------
    InvalidInputError
        For a gamma of at most 1, numbers that are not positive, values that are not listed, delta0 > delta_max; at the
        start of a run, if alpha, eta2, delta0 or delta_max is not given and f has no positive curvature along d.
    CapabilityError
        Before a run, if the objective has no ``rows`` but the rule draws batches, or for a vote with a constraint
        that does not choose single coordinates.

    Notes
    -----
    Cost: b examples for a gradient and 2 b for the values in each iteration, in data passes up to 3 b / n; on all
    examples one pass if the trial is accepted and s/d of one if not. ``history["samples"]`` counts the examples of the
    iterations. The passes also count the start, which evaluates f once and again for the secant, and the refit: 2s/d of
    a pass for each of at most 25 Newton steps if the Hessian on the support is factorised, else for each of at most 5
    times 20 products with it. A decrease of f within its rounding (`value_rounding`) is rejected.

    Guarantee: Theorem 4 of the paper says that limit points are basic feasible almost surely if batches grow fast
    enough. Several steps of its proof do not hold as printed (the documentation lists them). With ``clip="full"`` no
    small step can be accepted, to first order, once :math:`\|g_I\| < \eta_1 \|g\|`: after ten such rejections in a row
    the run ends with ``Status.FLOOR``. The variant "stable" has no such floor (measured; heuristic). No variant
    converges on batches of a fixed size.

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
    Coordinates([3, 7])
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
        checked_word("variant", self.variant, ("stable", "paper"))
        checked_word("clip", self._clip, ("stable", "restricted", "full"))
        checked_word("ratio", self.ratio, ("paper", "full", "model"))
        checked_word("value_batch", self.value_batch, ("independent", "same", "separate"))
        for name in ("alpha", "eta1", "eta2", "delta0", "delta_max"):
            if getattr(self, name) is not None:
                checked_number(name, getattr(self, name), above=0.0, below=1.0 if name == "eta1" else inf)
        if self.delta0 is not None and self.delta_max is not None and self.delta0 > self.delta_max:
            raise InvalidInputError(f"delta0 must be at most delta_max, got {self.delta0!r} and {self.delta_max!r}")
        if self.full_value_every is not None:
            checked_integer("full_value_every", self.full_value_every, 1)
        if self.batch is not None:
            check_batch_rule(self.batch)
        if self.value_batch == "separate" and isinstance(self.batch, Replay):
            raise InvalidInputError('a replay stores one batch for both values, so value_batch cannot be "separate"')
        checked_number("gamma", self.gamma, above=1.0)

    @property
    def requires(self) -> type:
        return Objective if self.batch is None or isinstance(self.batch, FullBatch) else MeanObjective

    def check(self, objective: Objective, constraint: Constraint) -> None:
        Solver.check(self, objective, constraint)
        if self.vote is not None and coordinate_budget(constraint, tuple(objective.shape)) is None:
            raise CapabilityError(
                f"a vote is about single coordinates that may be chosen freely, and {type(constraint).__name__} allows "
                "no such choice; leave out vote"
            )

    def stopping(self, tol: float) -> StopRule:
        return NothingLeft(tol)

    def start(self, objective: Objective, constraint: Constraint, w0: Array | None, seed: int) -> ProbabilisticState:
        at, projection = starting_point(objective, constraint, w0)
        scale = self._scale(objective, constraint, at)
        size = self._rule(objective).first_size(objective.traits.n_rows)
        at, noise, exact = self._gradient(objective, size, seed, 0, at.point, known=at)
        return ProbabilisticState(
            at=at,
            support=projection.support,
            seed=seed,
            exact=exact,
            full_value=full_value(objective, at, exact, 0, self.full_value_every),
            scale=scale,
            delta=scale.delta0,
            next_size=size,
            noise=noise,
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> ProbabilisticState:
        """Run lines 4 to 10 of Algorithm 1, on the gradient that the state holds, and line 3 of the next iteration."""
        assert isinstance(state, ProbabilisticState)
        rule, n, scale, iteration = self._rule(objective), objective.traits.n_rows, state.scale, state.iteration + 1
        trial = self._trial(constraint, state)
        values = self._values(objective, state, trial.projection.point)
        accepted, ratio = self._test(trial, values, state)
        if accepted:
            reached, delta = trial.projection, min(self.gamma * state.delta, scale.delta_max)
            known, prediction = None, values.prediction
        else:
            reached, delta = Projection(state.w, state.support), max(state.delta / self.gamma, _LEAST_DELTA)
            known, prediction = state.at if state.exact else None, None
        progress = BatchProgress(state.next_size, n, scale.delta0 / delta, _relative_noise(state.noise, trial))
        size = rule.next_size(progress)
        at, noise, exact = self._gradient(objective, size, state.seed, iteration, reached.point, known, prediction)
        drawn = count(rule.gradient_rows(n, state.next_size, state.seed, state.iteration), n)
        trial_exact = state.exact and values.exact
        at_floor = trial_exact and not accepted and self._at_floor(trial)
        return replace(
            state,
            at=at,
            support=reached.support,
            iteration=iteration,
            step=trial.step,
            exact=exact,
            samples=state.samples + drawn + 2 * values.n_examples,
            full_value=full_value(objective, at, exact, iteration, self.full_value_every),
            delta=delta,
            next_size=size,
            accepted=accepted,
            ratio=ratio,
            index_set=trial.index_set,
            batch_size=drawn,
            trial_exact=trial_exact,
            gradient_share=trial.gradient_share,
            relative_change=values.relative_change,
            rejected_at_floor=state.rejected_at_floor + 1 if at_floor else 0,
            noise=noise,
            ballots=trial.ballots,
        )

    def recall(self, objective: Objective, state: State) -> float:
        assert isinstance(state, ProbabilisticState)
        n, rule = objective.traits.n_rows, self._rule(objective)
        rows = None if state.exact else rule.gradient_rows(n, state.next_size, state.seed, state.iteration)
        return on_batch(objective, rows).value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        assert isinstance(state, ProbabilisticState)
        refit = self.variant == "stable" if self.refit is None else self.refit
        if not (refit and isinstance(objective, SmoothObjective)):
            return fully_evaluated(objective, state)
        here = Projection(state.w, state.support)
        direct = isinstance(objective, LinearObjective) and state.support.degrees_of_freedom <= DIRECT
        cg_iterations, rounds = (0, FULL_SOLVE) if direct else (_CG_ITERATIONS, _CG_ROUNDS)
        solved = refine(objective, constraint, here, cg_iterations=cg_iterations, rounds=rounds)
        at = objective.evaluate(solved.projection.point, solved.prediction)
        return replace(state, at=at, support=solved.projection.support, exact=True, full_value=at.value)

    def _gradient(
        self,
        objective: Objective,
        size: int,
        seed: int,
        iteration: int,
        point: Array,
        known: Evaluation | None = None,
        prediction: Array | None = None,
    ) -> tuple[Evaluation, Array | None, bool]:
        """Return line 3: f and its gradient on a batch, a sample of the noise, and whether the batch is all examples.

        `known` and `prediction` are the evaluation and the prediction on all examples, if there are any already.
        """
        rule = self._rule(objective)
        rows = rule.gradient_rows(objective.traits.n_rows, size, seed, iteration)
        if rows is None:
            return objective.evaluate(point, prediction) if known is None else known, None, True
        if rule.measures_noise:
            return *estimate_with_noise(objective, rows, point, seed, iteration), False
        return estimate(objective, rows, point), None, False

    def _trial(self, constraint: Constraint, state: ProbabilisticState) -> _Trial:
        """Return lines 4 and 5: the index set, by a step that is clipped by the whole gradient, and the trial on it."""
        x, g, delta, alpha = state.w, state.at.gradient, state.delta, state.scale.alpha
        gradient_norm = norm(g)
        step = min(alpha, delta / gradient_norm) if gradient_norm > 0.0 else alpha
        moved = x - step * g
        projection, ballots = constraint.project(moved, state.support), state.ballots
        index_set = projection.support
        if self.vote is not None:
            elected, ballots = self.vote.cast(index_set.indices, moved, ballots)
            index_set = Coordinates(elected)
            projection = constraint.project(index_set.restrict(moved), state.support)
        restricted_norm = norm(index_set.restrict(g))
        if self._clip == "restricted" or (self._clip == "stable" and not _drops(index_set, x)):
            step = min(alpha, delta / restricted_norm) if restricted_norm > 0.0 else alpha
            projection = constraint.project(index_set.restrict(x - step * g), state.support)
        linear_decrease = -float(namespace(g).sum(g * (projection.point - x)))
        return _Trial(projection, index_set, step, gradient_norm, restricted_norm, linear_decrease, ballots)

    def _values(self, objective: Objective, state: ProbabilisticState, trial: Array) -> _Values:
        """Return line 6: f at the point and at the trial, on the batch or the batches that `value_batch` asks for."""
        rule, n = self._rule(objective), objective.traits.n_rows
        draw = rule.gradient_rows if self.value_batch == "same" else rule.value_rows
        rows = draw(n, state.next_size, state.seed, state.iteration)
        if rows is None:
            if state.exact:
                before, rounding = state.value, value_rounding(objective, state.at)
            else:
                before, rounding = _value_and_rounding(objective, state)
            prediction = if_finite(lambda: objective.predict(trial))
            return _Values(before, _value(objective, trial, prediction), rounding, n, True, prediction)
        here = there = on_batch(objective, rows)
        if self.value_batch == "separate":
            there = on_batch(objective, rule.second_value_rows(n, state.next_size, state.seed, state.iteration))
        before, rounding = _value_and_rounding(here, state)
        return _Values(before, _value(there, trial), rounding, rows.shape[0], False, None)

    def _test(self, trial: _Trial, values: _Values, state: ProbabilisticState) -> tuple[bool, float]:
        r"""Return line 7: whether the trial is accepted, and :math:`\rho`. A decrease within rounding is rejected."""
        authors = self.ratio == "full"
        size = trial.gradient_norm if authors else trial.restricted_norm
        predicted = trial.linear_decrease if self.ratio == "model" else size * state.delta
        ratio = values.decrease / predicted if predicted > 0.0 and isfinite(values.decrease) else -inf
        least = state.scale.eta2 * state.delta
        passed = ratio > self.eta1 and size > least if authors else ratio >= self.eta1 and size >= least
        return passed and values.decrease > values.rounding, ratio

    def _at_floor(self, trial: _Trial) -> bool:
        r"""Return whether line 7 can, to first order, accept no smaller step.

        Clipped by the whole gradient, a short step decreases f by :math:`\|g_I\|^2 \delta / \|g\|`.
        """
        if self._clip != "full" or self.ratio == "model":
            return False
        least = self.eta1**0.5 if self.ratio == "full" else self.eta1
        return bool(trial.restricted_norm < least * trial.gradient_norm)

    def _scale(self, objective: Objective, constraint: Constraint, at: Evaluation) -> Scale:
        """Return the settings that have a unit: as given, else as published or by a secant from the start."""
        settings = {field.name: getattr(self, field.name) for field in fields(Scale)}
        given = {name: value for name, value in settings.items() if value is not None}
        published = self.variant == "paper" or given.keys() == settings.keys()
        scale = replace(PUBLISHED if published else automatic_scale(objective, constraint, at), **given)
        return replace(scale, delta0=min(scale.delta0, scale.delta_max))

    def _rule(self, objective: Objective) -> BatchRule:
        if self.batch is not None:
            return self.batch
        return NormTest() if isinstance(objective, MeanObjective) else FullBatch()

    @property
    def _clip(self) -> str:
        if self.clip is not None:
            return self.clip
        return "full" if self.variant == "paper" else "stable"


def _drops(index_set: Support, x: Array) -> bool:
    """Return whether the index set leaves out an entry of x; 1e-12 stands for rounding, which coordinates have none."""
    return norm(x - index_set.restrict(x)) > 1e-12 * norm(x)


def _value(objective: Objective, point: Array, prediction: Array | None = None) -> float:
    """Return f; infinity outside of its domain."""
    value = if_finite(lambda: objective.value(point, prediction))
    return inf if value is None else value


def _value_and_rounding(objective: Objective, state: ProbabilisticState) -> tuple[float, float]:
    """Return f at the point of a state, infinite outside of its domain, and the rounding of that value."""
    prediction = if_finite(lambda: objective.predict(state.w))
    value = _value(objective, state.w, prediction)
    if value == inf:
        return inf, 0.0
    return value, value_rounding(objective, Evaluation(state.w, value, state.at.gradient, prediction))


def _relative_noise(noise: Array | None, trial: _Trial) -> float:
    """Return the variance of the gradient on the index set over its squared norm; nan if it was not measured."""
    if noise is None:
        return nan
    share = norm(trial.index_set.restrict(noise)) / trial.restricted_norm if trial.restricted_norm > 0.0 else inf
    return share * share
