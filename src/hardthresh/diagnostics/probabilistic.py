"""Guarantees of probabilistic iterative hard thresholding, and the accuracy of its batches along a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isfinite, sqrt
from sys import float_info
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import Objective, value_rounding
from hardthresh.core.state import State
from hardthresh.core.stationarity import norm
from hardthresh.core.threads import serial_blas
from hardthresh.solvers.stochastic.estimates import if_finite
from hardthresh.solvers.stochastic.probabilistic import ProbabilisticIHT, ProbabilisticState

from .guarantee import Guarantee, meaning, refuses_overflow, with_attributes_section

_LEVEL = 0.95  # of confidence, of the upper limits of the two frequencies


@with_attributes_section
@dataclass(frozen=True, slots=True)
class ProbabilisticGuarantee(Guarantee):
    """Conditions and constants of the convergence theory of *Probabilistic IHT*; ``print`` it to read it."""

    needed_alpha: float = field(metadata=meaning("the step has to be longer (Lemma 3)"))
    needed_eta2: float = field(metadata=meaning("least second threshold (Theorem 3)"))
    largest_epsilon_f: float = field(metadata=meaning("largest error of a value, over the squared clipping level"))
    a: float = field(metadata=meaning("constant of Lemma 3"))
    c: float = field(metadata=meaning("constant of Lemma 3"))
    zeta: float = field(metadata=meaning("constant of Theorem 3"))
    lipschitz_factor: float = field(metadata=meaning("constant C_L of Theorem 3"))
    nu_odds: float = field(metadata=meaning("nu / (1 - nu), the least that Theorem 3 allows"))
    failure_rate: float = field(metadata=meaning("largest frequency of inaccurate models, and of inaccurate values"))
    published_acceptance: float = field(
        metadata=meaning("clipping level over gradient that is accepted, by Lemma 4 (false)")
    )
    acceptance: float = field(metadata=meaning("the same for the restricted clip (true)"))
    decrease: float = field(metadata=meaning("of f by an accepted step, over the squared clipping level (Lemma 5)"))
    squared_levels: float | None = field(
        metadata=meaning("the most that the squared clipping levels sum to, with accurate values")
    )
    failures: tuple[str, ...]

    title: ClassVar[str] = "Probabilistic iterative hard thresholding, Lemmas 3 to 5 and Theorem 3"
    assumptions: ClassVar[str] = (
        "the probabilities given the past, the smoothness along all runs, and the accuracy on whole balls, which "
        "Definition 4 demands"
    )


@refuses_overflow
def probabilistic_guarantee(
    *,
    k: int,
    alpha: float,
    eta1: float = 1e-4,
    eta2: float = 1e-4,
    delta_max: float = 10.0,
    gamma: float = 2.0,
    kappa_f: float,
    kappa_g: float,
    epsilon_f: float,
    smoothness: float,
    gap: float | None = None,
    delta0: float | None = None,
) -> ProbabilisticGuarantee:
    r"""Return the constants of the convergence theory of *Probabilistic IHT*, and the guarantees that remain valid.

    .. math:: a &= \frac{1}{2 \alpha \kappa_f \delta_{\max} + 2 \sqrt k}, \qquad
                 c = \frac{1 - 4 a \sqrt k}{2 \alpha}, \qquad C_L = 1 + \frac{3 L}{2 \zeta}, \\
              \zeta &= \max \Bigl( \frac{1}{a}, \kappa_g + \max \Bigl( \eta_2,
                 \frac{2 \varepsilon_f + \kappa_f \delta_{\max}}{1 - \eta_1} \Bigr) \Bigr), \qquad
                 \frac{\nu}{1 - \nu} = \gamma^2 \max \Bigl( \frac{4}{\zeta c}, \frac{4}{\eta_1 \eta_2},
                 \frac{1}{\kappa_f} \Bigr)

    and the largest failure rate :math:`1 - \theta = 1 - \beta` with

    .. math:: (1 - \theta)(1 - \beta) \le
              \frac{(\gamma^2 - 1)(1 - \nu)}{(1 - \nu)(\gamma^4 - 1) + 2 \gamma^2 C_L \zeta \nu} ,

    from which the other condition, :math:`(\theta \beta - 1/2) / ((1 - \theta)(1 - \beta)) \ge C_L / c`, follows.

    Lemma 5: an accepted step with accurate values decreases f by at least
    :math:`(\eta_1 \eta_2 - 2 \varepsilon_f) \, \delta^2`.

    Parameters
    ----------
    k : int
        The budget, at least 1.
    alpha, eta1, eta2, delta_max, gamma : float
        Settings of `ProbabilisticIHT`, positive, with eta1 < 1 < gamma. A run's own are in ``result.state.scale``.
    kappa_f, kappa_g : float
        Accuracy of the model, > 0: :math:`|f(y) - f(x) - g^\top(y - x)| \le \kappa_f \delta^2` and
        :math:`\|\nabla f(y) - g\| \le \kappa_g \delta`. `model_accuracy` measures both along a run.
    epsilon_f : float
        Accuracy of the values, :math:`\ge 0`: both err by at most :math:`\varepsilon_f \delta^2`.
    smoothness : float
        L > 0, by which f and its gradient are Lipschitz near the run.
    gap, delta0 : float, optional
        :math:`f(x_0) - \min f \ge 0` and the first clipping level, for the sum of the squared levels.

    Returns
    -------
    ProbabilisticGuarantee

    Raises
    ------
    InvalidInputError
        For numbers out of these ranges, or so large or small that a result overflows.

    See Also
    --------
    model_accuracy : How often the batches of a run were accurate.

    Notes
    -----
    **Theorem 3 does not apply, for any settings**, and `failures` is never empty. Definition 4, on which it is based,
    cannot hold for small :math:`\delta`. Its conditions require :math:`\alpha \kappa_f \delta_{\max} > \sqrt k` (Lemma
    3); but :math:`\|x - \hat x\| \le 2 \delta`, so that Lemma 2, which the proof applies, is about iterations only
    where that product is at most 1. And Lemma 4 does not hold as printed for the clip "full". What holds is Lemma 5,
    and from it, for values that are always accurate,

    .. math:: \sum_t \delta_t^2 \le \frac{\gamma^4}{\gamma^2 - 1} \,
              \frac{f(x_0) - \min f}{\eta_1 \eta_2 - 2 \varepsilon_f} + \frac{\gamma^2 \delta_0^2}{\gamma^2 - 1} ,

    since rejections divide the level by :math:`\gamma` (this bound is ours); and Lemma 4 in the form
    :math:`\delta \le \min(\alpha, 1/\eta_2, (1 - \eta_1)/(2 \varepsilon_f + \kappa_f)) \, \|g_I\|` for the clip
    "restricted" where nothing is dropped. Cost: none.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), *Probabilistic iterative hard thresholding for sparse
    learning*, Section 4; errata in the documentation.

    Examples
    --------
    >>> settings = dict(k=5, kappa_f=1.0, kappa_g=1.0, epsilon_f=0.0, smoothness=2.0)
    >>> found = probabilistic_guarantee(alpha=1.0, eta2=3.0, **settings)
    >>> round(found.needed_alpha, 4), found.needed_eta2, round(found.failure_rate, 6)
    (0.2236, 3.0, 0.000506)
    >>> len(found.failures), len(probabilistic_guarantee(alpha=0.1, **settings).failures)
    (1, 3)
    """
    k = checked_integer("k", k, 1)
    eta1 = checked_number("eta1", eta1, above=0.0, below=1.0)
    gamma = checked_number("gamma", gamma, above=1.0)
    epsilon = checked_number("epsilon_f", epsilon_f, least=0.0)
    given = {"alpha": alpha, "kappa_f": kappa_f, "kappa_g": kappa_g, "smoothness": smoothness}
    alpha, kappa_f, kappa_g, L, eta2, top = (
        checked_number(name, value, above=0.0)
        for name, value in {**given, "eta2": eta2, "delta_max": delta_max}.items()
    )
    root = sqrt(k)
    a = 1.0 / (2.0 * alpha * kappa_f * top + 2.0 * root)
    c = (1.0 - 4.0 * a * root) / (2.0 * alpha)
    zeta = max(1.0 / a, kappa_g + max(eta2, (2.0 * epsilon + kappa_f * top) / (1.0 - eta1)))
    factor = 1.0 + 3.0 * L / (2.0 * zeta)
    odds = gamma**2 * max(4.0 / (zeta * c) if c > 0.0 else inf, 4.0 / (eta1 * eta2), 1.0 / kappa_f)
    decrease = eta1 * eta2 - 2.0 * epsilon
    squares = None
    if gap is not None and delta0 is not None:
        fall, first = checked_number("gap", gap, least=0.0), checked_number("delta0", delta0, above=0.0)
        falls = fall / decrease if decrease > 0.0 else inf
        squares = (gamma**4 * falls + (gamma * first) ** 2) / (gamma**2 - 1.0)
    needed_alpha, needed_eta2 = root / (kappa_f * top), 3.0 * kappa_f * alpha
    largest = min(kappa_f, 0.5 * eta1 * eta2)
    failures = ["Lemma 3 is about no iteration at all, so the proof of Theorem 3 has a gap for all settings"]
    if alpha <= needed_alpha:
        failures.append(f"alpha = {alpha:.4g} is not above {needed_alpha:.4g}")
    if eta2 < needed_eta2:
        failures.append(f"eta2 = {eta2:.4g} is below {needed_eta2:.4g}")
    if epsilon > kappa_f or 2.0 * epsilon >= eta1 * eta2:
        failures.append(f"epsilon_f = {epsilon:.4g} is not below {largest:.4g}")
    return ProbabilisticGuarantee(
        needed_alpha=needed_alpha,
        needed_eta2=needed_eta2,
        largest_epsilon_f=largest,
        a=a,
        c=c,
        zeta=zeta,
        lipschitz_factor=factor,
        nu_odds=odds,
        # (37), divided by 1 - nu; it implies (34), as zeta odds is at least 4 gamma^2 max(1, 1 / c)
        failure_rate=sqrt((gamma**2 - 1.0) / (gamma**4 - 1.0 + 2.0 * gamma**2 * factor * zeta * odds)),
        published_acceptance=min(1.0 / eta2, (1.0 - eta1) / (2.0 * epsilon + kappa_f * top)),
        acceptance=min(alpha, 1.0 / eta2, (1.0 - eta1) / (2.0 * epsilon + kappa_f)),
        decrease=decrease,
        squared_levels=squares,
        failures=tuple(failures),
    )


@with_attributes_section
@dataclass(frozen=True, slots=True, eq=False)
class ModelAccuracy(Guarantee):
    """Accuracy of the batches of a probabilistic run; ``print`` it to read it."""

    kappa_g: float = field(metadata=meaning("error of the gradient that is allowed, over the clipping level"))
    kappa_f: float = field(metadata=meaning("error of the model that is allowed, over its square"))
    epsilon_f: float = field(metadata=meaning("error of a value that is allowed, over its square"))
    gradient_errors: np.ndarray
    model_errors: np.ndarray
    value_errors: np.ndarray
    accurate_models: float = field(metadata=meaning("frequency of accurate models, an estimate of theta"))
    accurate_values: float = field(metadata=meaning("frequency of accurate values, an estimate of beta"))
    largest_theta: float = field(metadata=meaning("a larger theta is refuted, with 95 % confidence"))
    largest_beta: float = field(metadata=meaning("a larger beta is refuted, with 95 % confidence"))
    failures: tuple[str, ...] = ()

    title: ClassVar[str] = "Accuracy of the batches along a run, Definitions 3 and 4 of Probabilistic IHT"
    assumptions: ClassVar[str] = "accuracy at points where the run was not, and on other runs"


@serial_blas()
def model_accuracy(
    objective: Objective,
    constraint: Constraint,
    solver: ProbabilisticIHT,
    states: Iterable[State],
    *,
    kappa_g: float,
    kappa_f: float,
    epsilon_f: float,
) -> ModelAccuracy:
    r"""Return the frequencies of accurate batches in a run, which estimate :math:`\theta` and :math:`\beta`.

    An iteration from x, with the trial :math:`\hat x`, index set I and clipping level :math:`\delta`, has an accurate
    model if

    .. math:: \|[\nabla f(x) - g]_I\| \le \kappa_g \delta, \qquad
              |f(\hat x) - f(x) - g^\top (\hat x - x)| \le \kappa_f \delta^2

    and accurate values if :math:`|(f^0 - f^s) - (f(x) - f(\hat x))| \le 2 \varepsilon_f \delta^2`.

    Parameters
    ----------
    objective, constraint, solver :
        Of the run.
    states : iterable of State
        Its successive states, at least two: ``states.append`` as the callback of `minimize` collects them, or
        `iterate` yields them.
    kappa_g, kappa_f : float
        Accuracy of the model, > 0.
    epsilon_f : float
        Accuracy of the values, > 0; Lemma 5 needs less than ``eta1 * eta2 / 2``.

    Returns
    -------
    ModelAccuracy

    Raises
    ------
    InvalidInputError
        For states of another solver or fewer than two, or numbers that are not positive.

    Notes
    -----
    Definition 4 requires accuracy at all points near x. It is measured here at x and at the trial, where the proofs use
    it, with :math:`\kappa_f \delta^2` instead of the published :math:`\kappa_f \|y - x\| \delta^2`, which cannot be
    satisfied as :math:`\delta` decreases. The values are measured by their difference, which is all that Lemmas 4 and 5
    use, and which errs less than each where both are on one batch. Differences within the rounding of f count as 0; a
    value is infinite outside of the domain of f. If accuracy has at least the probability :math:`\theta` given the
    past, as Assumption 1 says, the number of accurate iterations is at least binomial; so the upper limits (Clopper and
    Pearson) refute what is above them. Cost per iteration: one evaluation and one value of f on all examples, and the
    projections of the trial; the two values on the batch where the run predicted no decrease.

    References
    ----------
    Bergamaschi, Cristofari, Kungurtsev and Rinaldi (2025), Definitions 3 and 4, Assumption 1; errata in the
    documentation.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import FixedBatch, ProbabilisticIHT, minimize
    >>> X = np.random.default_rng(0).standard_normal((2000, 50))
    >>> f, states = LinearModel(X, X[:, 3] - X[:, 7] + X[:, 9] ** 2), []
    >>> solver = ProbabilisticIHT(batch=FixedBatch(50))
    >>> run = minimize(f, Sparsity(2), solver, max_iter=40, callback=states.append)
    >>> found = model_accuracy(f, Sparsity(2), solver, states, kappa_g=2.0, kappa_f=2.0, epsilon_f=2.0)
    >>> found.accurate_models <= found.largest_theta, found.gradient_errors.shape
    (True, (40,))
    """
    allowed = {"kappa_g": kappa_g, "kappa_f": kappa_f, "epsilon_f": epsilon_f}
    allowed = {name: checked_number(name, value, above=0.0) for name, value in allowed.items()}
    states = list(states)
    strangers = [state for state in states if not isinstance(state, ProbabilisticState)]
    if len(states) < 2 or strangers:
        what = f"got {format_value(strangers[0])}" if strangers else f"got {len(states)}"
        raise InvalidInputError(f"at least two successive states of ProbabilisticIHT are needed, {what}")
    errors = np.array([_errors(objective, constraint, solver, *pair) for pair in pairwise(states)])
    accurate = errors <= np.array(list(allowed.values()))
    models, values = int(accurate[:, :2].all(axis=1).sum()), int(accurate[:, 2].sum())
    total = len(errors)
    return ModelAccuracy(
        allowed["kappa_g"],
        allowed["kappa_f"],
        allowed["epsilon_f"],
        gradient_errors=errors[:, 0],
        model_errors=errors[:, 1],
        value_errors=errors[:, 2],
        accurate_models=models / total,
        accurate_values=values / total,
        largest_theta=_upper_limit(models, total),
        largest_beta=_upper_limit(values, total),
    )


def _errors(
    objective: Objective, constraint: Constraint, solver: ProbabilisticIHT, before: Any, after: Any
) -> tuple[float, float, float]:
    """Return the least kappa_g, kappa_f and epsilon_f for which one iteration was accurate."""
    x, g, delta, chosen = before.w, before.at.gradient, before.delta, after.index_set
    made = solver._trial(constraint, before)  # by the solver, as an approximate projection depends on how it is called
    trial = made.projection.point
    here, value = objective.evaluate(x), if_finite(lambda: objective.value(trial))
    there = inf if value is None else value
    if isfinite(after.ratio):
        size = made.gradient_norm if solver.ratio == "full" else made.restricted_norm
        decrease = after.ratio * (made.linear_decrease if solver.ratio == "model" else size * delta)
    else:  # the predicted decrease was 0, or a value not finite
        decrease = solver._values(objective, before, trial).decrease
    true, rounding = here.value - there, value_rounding(objective, here)
    model_error = abs(there - here.value + made.linear_decrease)
    value_error = 0.0 if decrease == true else abs(decrease - true)  # both are -inf outside of the domain of f
    return (
        norm(chosen.restrict(here.gradient - g)) / delta,
        _over_square(max(model_error - rounding, 0.0), delta),
        _over_square(0.5 * max(value_error - rounding, 0.0), delta),
    )


def _over_square(error: float, delta: float) -> float:
    """Return an error over the squared clipping level, which underflows before the level does."""
    squared = delta * delta
    return error / squared if squared >= float_info.min else error / delta / delta


def _upper_limit(successes: int, total: int) -> float:
    """Return the upper limit of Clopper and Pearson for a probability."""
    return 1.0 if successes == total else float(betaincinv(successes + 1, total - successes, _LEVEL))
