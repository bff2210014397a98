"""Probabilistic iterative hard thresholding: clipped steps on batches, kept where a second batch confirms them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf, isfinite, nan
from sys import float_info
from typing import Any, ClassVar, NamedTuple

from hardthresh.arrays import namespace
from hardthresh.constraints import Coordinates
from hardthresh.core.checking import checked_word
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
from hardthresh.core.solver import Solver
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.stopping import StopRule
from hardthresh.core.typing import Array

from .batches import BatchRule, Full, NormTest, Progress, Replay, check_rule
from .confirmation import CLIPS, RATIOS, Trial
from .estimate import batch, check_every, estimate, finished, full_value, noisy_estimate, within_domain
from .probabilistic_state import NothingLeft, ProbabilisticState
from .scale import PUBLISHED, Scale, automatic
from .start import starting_point
from .subspace import DIRECT, refine
from .voting import Vote

_REFIT = 20, 5  # products with the Hessian in a Newton step of the refit, and such steps, where none can be factorised
_LEAST = float_info.min  # what the clipping level never falls below, so that it is no divisor of zero


class _Values(NamedTuple):
    """Line 6: estimates of f at the point and at the trial, and what they rest on."""

    before: float
    after: float
    rounding: float
    examples: int
    exact: bool
    prediction: Array | None


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
    alpha : float, optional
        Step :math:`\alpha`; 100 s / 1, where s is the step that minimises f along the leading part d of the first
        gradient, by a secant.
    eta1, eta2 : float, float or None
        Thresholds of the test: :math:`\eta_1` in (0, 1), 1e-4; :math:`\eta_2 > 0`, 1e-4 / s / 1e-4.
    delta0, delta_max : float, optional
        First and largest clipping level :math:`\delta`; :math:`s \|d\|`, :math:`1000 s \|d\|` / 1, 10. A default first
        level above the largest, or a first level above a default largest, is cut to that.
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
        and never converges; or one new batch for each, which a `Replay` does not store.
    vote : Vote, optional
        Which index set is used, after a vote over iterations; default the newest. Only for sets that allow any k
        coordinates, as `Sparsity` does.
    refit : bool, optional
        Whether to minimise f on the support at the end, on all examples. True / False.
    full_value_every : int, optional
        In which iterations to compute f on all examples for the history, at the cost of a data pass. Default: where the
        batch is all of them.

    Raises
    ------
    InvalidInputError
        For a gamma of at most 1, numbers that are not positive, words that are not listed, delta0 > delta_max; at the
        start of a run, if one of the settings with a unit is to be found and f bends upwards nowhere on the way.
    CapabilityError
        Before a run, if the objective has no ``rows`` but the rule draws batches, or if there is a vote on a set that
        is no choice of single coordinates.

    Notes
    -----
    Cost: b examples for a gradient and 2 b for the values in each iteration, in data passes up to 3 b / n; on all
    examples one pass if the trial is accepted and s/d of one if not. ``history["samples"]`` counts the iterations. In
    the passes only are the start, one evaluation of f and another for the secant, and the refit: 2s/d of a pass for
    each of at most 25 Newton steps where the Hessian on the support is factorised, else at most 5 steps of 20 products
    with it. A decrease of less than 4 units of rounding of the two values confirms nothing. Guarantee: Theorem 4 of the
    paper says that limit points are basic feasible almost surely if batches grow fast enough; several of its steps do
    not hold as printed (the documentation lists them), and with the clip "full" to first order no small step is
    accepted any more once :math:`\|g_I\| < \eta_1 \|g\|`: after ten such rejections in a row the run ends with
    ``Status.FLOOR``. On a fixed batch no method of this kind converges. "stable" has no floor (measured; heuristic).

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
        checked_word("clip", self._clip_name, CLIPS)
        checked_word("ratio", self.ratio, RATIOS)
        checked_word("value_batch", self.value_batch, ("independent", "same", "separate"))
        for name in ("alpha", "eta1", "eta2", "delta0", "delta_max"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and isfinite(value)):
                raise InvalidInputError(f"{name} must be positive and finite, got {value!r}")
        if not self.eta1 < 1:
            raise InvalidInputError(f"eta1 must be below 1, got {self.eta1!r}")
        if self.delta0 is not None and self.delta_max is not None and self.delta0 > self.delta_max:
            raise InvalidInputError(f"delta0 must be at most delta_max, got {self.delta0!r} and {self.delta_max!r}")
        check_every(self.full_value_every)
        if self.batch is not None:
            check_rule(self.batch)
        if self.value_batch == "separate" and isinstance(self.batch, Replay):
            raise InvalidInputError('a replay stores one batch for both values, so value_batch cannot be "separate"')
        if not (self.gamma > 1 and isfinite(self.gamma)):
            raise InvalidInputError(
                f"gamma must be above 1, got {self.gamma!r}: it multiplies the clipping level after success"
            )

    @property
    def requires(self) -> type:
        return Objective if self.batch is None or isinstance(self.batch, Full) else MeanObjective

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
        rule, n = self._rule(objective), objective.traits.n_rows
        size, scale = rule.first(n), self._scale(objective, constraint, at)
        rows, noise = rule.gradient_rows(n, size, seed, 0), None
        if rows is not None:
            at, noise = self._sample(objective, rule, rows, at.point, seed, 0)
        return ProbabilisticState(
            at=at,
            support=projection.support,
            seed=seed,
            exact=rows is None,
            full_value=full_value(objective, at, rows is None, 0, self.full_value_every),
            scale=scale,
            delta=scale.delta0,
            size=size,
            noise=noise,
        )

    def advance(self, objective: Objective, constraint: Constraint, state: State) -> ProbabilisticState:
        assert isinstance(state, ProbabilisticState)
        rule, n, scale = self._rule(objective), objective.traits.n_rows, state.scale
        trial, ballots = self._trial(constraint, state)
        seen = self._values(objective, rule, state, trial.projection.point)
        decrease = seen.before - seen.after
        accepted, ratio = RATIOS[self.ratio].confirms(
            trial, state.delta, decrease, seen.rounding, self.eta1, scale.eta2
        )
        delta = min(self.gamma * state.delta, scale.delta_max) if accepted else max(state.delta / self.gamma, _LEAST)
        rows = rule.gradient_rows(n, state.size, state.seed, state.iteration)
        drawn = n if rows is None else rows.shape[0]
        size = rule.following(
            Progress(state.size, n, scale.delta0 / delta, _relative_noise(constraint, state.noise, trial))
        )
        arrived = trial.projection if accepted else Projection(state.w, state.support)
        at, noise, exact = self._look(objective, rule, state, arrived, seen.prediction if accepted else None, size)
        trial_exact = state.exact and seen.exact
        futile = (
            trial_exact
            and not accepted
            and not CLIPS[self._clip_name].inside
            and RATIOS[self.ratio].hopeless(trial, self.eta1)
        )
        return replace(
            state,
            at=at,
            support=arrived.support,
            iteration=state.iteration + 1,
            step=trial.step,
            exact=exact,
            samples=state.samples + drawn + 2 * seen.examples,
            full_value=full_value(objective, at, exact, state.iteration + 1, self.full_value_every),
            delta=delta,
            size=size,
            accepted=accepted,
            ratio=ratio,
            index_set=trial.index_set,
            batch_size=drawn,
            trial_exact=trial_exact,
            gradient_share=trial.inside / trial.whole if trial.whole > 0.0 else 0.0,
            relative_change=0.0 if abs(decrease) <= seen.rounding else abs(decrease) / (abs(seen.before) or 1.0),
            futile=state.futile + 1 if futile else 0,
            noise=noise,
            ballots=ballots,
        )

    def recall(self, objective: Objective, state: State) -> float:
        assert isinstance(state, ProbabilisticState)
        n, rule = objective.traits.n_rows, self._rule(objective)
        rows = None if state.exact else rule.gradient_rows(n, state.size, state.seed, state.iteration)
        return batch(objective, rows).value(state.w)

    def finish(self, objective: Objective, constraint: Constraint, state: State) -> State:
        assert isinstance(state, ProbabilisticState)
        wanted = self.variant == "stable" if self.refit is None else self.refit
        if not (wanted and isinstance(objective, SmoothObjective)):
            return finished(objective, state)
        here = Projection(state.w, state.support)
        factorised = isinstance(objective, LinearObjective)
        direct = factorised and state.support.degrees_of_freedom <= DIRECT
        cg_iterations, rounds = (0, 25) if direct else _REFIT
        solved = refine(objective, constraint, here, cg_iterations=cg_iterations, rounds=rounds)
        at = objective.evaluate(solved.projection.point, solved.prediction)
        return replace(state, at=at, support=solved.projection.support, exact=True, full_value=at.value)

    def _trial(self, constraint: Constraint, state: ProbabilisticState) -> tuple[Trial, Any]:
        """Return lines 4 and 5: the index set, the step and the trial point."""
        x, g = state.w, state.at.gradient
        alpha, delta, whole = state.scale.alpha, state.delta, norm(g)
        step = min(alpha, delta / whole) if whole > 0.0 else alpha
        moved = x - step * g
        reached, ballots = constraint.project(moved), state.ballots
        chosen = reached.support
        if self.vote is not None:
            elected, ballots = self.vote.cast(chosen.indices, moved, ballots)
            chosen = Coordinates(elected)
            reached = constraint.project(chosen.restrict(moved))
        inside, clip = norm(chosen.restrict(g)), CLIPS[self._clip_name]
        dropped = clip.when_kept and norm(x - chosen.restrict(x)) > 1e-12 * norm(x)
        if clip.inside and not dropped:
            step = min(alpha, delta / inside) if inside > 0.0 else alpha
            reached = constraint.project(chosen.restrict(x - step * g))
        promise = -float(namespace(g).sum(g * (reached.point - x)))
        return Trial(reached, chosen, step, whole, inside, promise), ballots

    def _values(self, objective: Objective, rule: BatchRule, state: ProbabilisticState, trial: Array) -> _Values:
        """Return line 6: f at the point and at the trial, and the trial's prediction if that is on all examples."""
        n = objective.traits.n_rows
        draw = rule.gradient_rows if self.value_batch == "same" else rule.value_rows
        rows = draw(n, state.size, state.seed, state.iteration)
        if rows is None:
            before, rounding = self._value_here(objective, state, known=state.exact)
            prediction = within_domain(lambda: objective.predict(trial))
            return _Values(before, _value(objective, trial, prediction), rounding, n, True, prediction)
        here = there = batch(objective, rows)
        if self.value_batch == "separate":
            there = batch(objective, rule.second_value_rows(n, state.size, state.seed, state.iteration))
        before, rounding = self._value_here(here, state, known=False)
        return _Values(before, _value(there, trial), rounding, rows.shape[0], False, None)

    @staticmethod
    def _value_here(objective: Objective, state: ProbabilisticState, *, known: bool) -> tuple[float, float]:
        """Return f at the point, infinite outside of its domain, and how much of that may be rounding."""
        if known:
            return state.value, value_rounding(objective, state.at)
        prediction = within_domain(lambda: objective.predict(state.w))
        value = _value(objective, state.w, prediction)
        if value == inf:
            return inf, 0.0
        return value, value_rounding(objective, Evaluation(state.w, value, state.at.gradient, prediction))

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
        coming = state.iteration + 1
        rows = rule.gradient_rows(objective.traits.n_rows, size, state.seed, coming)
        if rows is not None:
            return *self._sample(objective, rule, rows, arrived.point, state.seed, coming), False
        if state.exact and arrived.point is state.w:
            return state.at, None, True
        return objective.evaluate(arrived.point, prediction), None, True

    @staticmethod
    def _sample(
        objective: Objective, rule: BatchRule, rows: Array, point: Array, seed: int, iteration: int
    ) -> tuple[Evaluation, Array | None]:
        """Return f and its gradient on a batch, and their noise where the rule asks for it."""
        if rule.measures_noise:
            return noisy_estimate(objective, rows, point, seed, iteration)
        return estimate(objective, rows, point), None

    def _scale(self, objective: Objective, constraint: Constraint, at: Evaluation) -> Scale:
        """Return the settings with a unit: as given, as published, or by the secant along the leading gradient."""
        given = {field.name: getattr(self, field.name) for field in fields(Scale)}
        known = {name: value for name, value in given.items() if value is not None}
        if len(known) == len(given) or self.variant == "paper":
            scale = replace(PUBLISHED, **known)
        else:
            scale = replace(automatic(objective, constraint, at), **known)
        return replace(scale, delta0=min(scale.delta0, scale.delta_max))

    def _rule(self, objective: Objective) -> BatchRule:
        if self.batch is not None:
            return self.batch
        return NormTest() if isinstance(objective, MeanObjective) else Full()

    def _at_floor(self, trial: Trial) -> bool:
        return not CLIPS[self._clip_name].inside and RATIOS[self.ratio].hopeless(trial, self.eta1)

    @property
    def _clip_name(self) -> str:
        if self.clip is not None:
            return self.clip
        return "full" if self.variant == "paper" else "stable"


def _value(objective: Objective, point: Array, prediction: Array | None = None) -> float:
    """Return f; infinity where it is not a number."""
    value = within_domain(lambda: objective.value(point, prediction))
    return inf if value is None else value


def _relative_noise(constraint: Constraint, noise: Array | None, trial: Trial) -> float:
    """Return the variance of the gradient on the index set over its squared norm; nan if it was not measured."""
    if noise is None:
        return nan
    share = norm(trial.index_set.restrict(noise)) / trial.inside if trial.inside > 0.0 else inf
    return share * share
