"""Guarantees of learning from limited attributes, and plans for a given excess risk."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, expm1, inf, log, log1p, pi
from typing import ClassVar

import numpy as np

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import InvalidInputError

from .guarantee import (
    Guarantee,
    checked_constants,
    meaning,
    refuses_overflow,
    steps_until,
    with_attributes_section,
)

_EXPLORATIONS = 3  # per round of a hybrid, in Theorem 4.4
_ROUNDS = 1_000_000  # most rounds of a plan, whose batches are listed one by one


@with_attributes_section
@dataclass(frozen=True, slots=True)
class LimitedGuarantee(Guarantee):
    """Theorem 4.1 of *Sample efficient IHT* for an `Exploration`; ``print`` it to read it."""

    largest_step: float = field(metadata=meaning("the step has to be below this"))
    needed_k: float = field(metadata=meaning("least budget"))
    needed_batch: float = field(metadata=meaning("least number of examples per block and update"))
    rate: float = field(metadata=meaning("factor of the excess risk per update"))
    noise_per_update: float = field(metadata=meaning("increase of the excess risk by noise, per update"))
    floor: float = field(metadata=meaning("excess risk at which the bound ends"))
    excess: float = field(metadata=meaning("bound of the excess risk after all updates"))
    examples: int = field(metadata=meaning("examples of all updates"))
    probability: float = field(metadata=meaning("probability that the bound holds"))
    failures: tuple[str, ...]

    title: ClassVar[str] = "Exploration with limited attributes, Theorem 4.1"
    assumptions: ClassVar[str] = (
        "bounded attributes, the constants of the population, and a linear truth with independent sub-Gaussian noise"
    )


@refuses_overflow
def limited_guarantee(
    smoothness: float,
    strong_convexity: float,
    *,
    d: int,
    n_observed: int,
    k: int,
    k_star: int,
    step: float,
    batch: int,
    updates: int,
    excess: float,
    noise: float,
    bound: float = 1.0,
    confidence: float = 0.95,
) -> LimitedGuarantee:
    r"""Return the guarantee of an exploration, with the constants of the proof of Theorem 4.1.

    .. math:: \mathcal{L}(\theta_T) - \mathcal{L}(\theta_*) \le (1 - \alpha)^T
              \bigl( \mathcal{L}(\theta_0) - \mathcal{L}(\theta_*) \bigr)
              + \frac{c}{B} \, \frac{1 - (1 - \alpha)^T}{\alpha}

    .. math:: q = \frac{1}{4} + \frac{\eta L_s}{2}, \quad \alpha = \frac{s - s_*}{2 (s + s_*)} \mu_s q \eta, \quad
              c = 16 \sigma^2 R_\infty^2 s \bigl( \tfrac{5}{2} + \eta L_s \bigr) \eta \log \frac{4 d T}{\delta}

    with probability :math:`1 - \delta`, for :math:`\eta < 1 / (2 L_s)`,

    .. math:: s \ge \max \Bigl( \frac{1/2 + \eta L_s}{1/4 - \eta L_s / 2} - 1, \;
              \frac{64}{\eta^2 \mu_s^2} + 1 \Bigr) s_*, \qquad
              B \ge \frac{16 s (s + s_*)^2 R_\infty^4 \eta^2 (5/2 + \eta L_s)}{s_* \, q} \log \frac{4 d T}{\delta} .

    Parameters
    ----------
    smoothness, strong_convexity : float
        :math:`L_s` and :math:`\mu_s` of the loss :math:`(a - y)^2` **without a half**: twice the extreme eigenvalues of
        :math:`E \, x x^\top` on 2k attributes. Those of the distribution are unknown.
    d, n_observed : int
        The number of attributes, and s', how many of them an example may be asked for, k < n_observed <= d.
    k, k_star : int
        s, the budget, and :math:`s_*`, the number of non-zeros of the truth, 1 <= k_star <= k.
    step : float
        :math:`\eta > 0`, as that of `Exploration`.
    batch, updates : int
        B, examples per block and update, and T, both at least 1.
    excess : float
        The excess risk at the start, :math:`\mathcal{L}(\theta_0) - \mathcal{L}(\theta_*) > 0`, in squared units of y.
    noise : float
        :math:`\sigma \ge 0`, the sub-Gaussian parameter of the noise in y, its standard deviation if it is normal.
    bound : float
        :math:`R_\infty > 0`, a bound on the modulus of all attributes. Normal attributes have no bound.
    confidence : float
        :math:`1 - \delta`, above 0 and below 1.

    Returns
    -------
    LimitedGuarantee
        The constants of the theorem; vacuous, with a rate of 1, if k = k_star or the step is so long that
        :math:`\alpha` would be 1 or more.

    Raises
    ------
    InvalidInputError
        For numbers out of these ranges, or so large or small that a result overflows.

    See Also
    --------
    limited_plan : The converse: the steps and examples for a given excess risk.

    Notes
    -----
    Needs bounded attributes, drawn independently, of a distribution with :math:`\mu_s > 0`, and :math:`y =
    \theta_*^\top x + \xi` with noise of mean 0 that does not depend on x. The 16 of c and B is 4 in print; but
    :math:`(2a + 2b)^2 \le 8 a^2 + 8 b^2`, and Hoeffding's inequality brings another factor of 2. For :math:`\eta = 1/(4
    L_s)`, s is over a thousand times :math:`\kappa_s^2 s_*`, so the theorem explains the rate but is of no use for the
    choice of settings. Cost: none.

    References
    ----------
    Murata and Suzuki (2018), *Sample efficient stochastic gradient iterative hard thresholding method*, Theorem 4.1 and
    Proposition A.1.

    Examples
    --------
    >>> found = limited_guarantee(
    ...     2.0, 2.0, d=500, k=25, k_star=25, n_observed=50, step=0.3, batch=200, updates=20, excess=25.0, noise=1.0
    ... )
    >>> found.applies, found.failures[0]
    (False, 'step = 0.3 is not below 0.25')
    """
    setting = _Setting(smoothness, strong_convexity, d, n_observed, k, k_star, step, noise, bound)
    T, B = checked_integer("updates", updates, 1), checked_integer("batch", batch, 1)
    start = checked_number("excess", excess, above=0.0)
    chance = checked_number("confidence", confidence, above=0.0, below=1.0)
    logarithm = log(4.0 * d * T / (1.0 - chance))
    alpha, added = setting.decay, setting.noise * logarithm / B
    kept = -expm1(T * log1p(-alpha))  # 1 - (1 - alpha)^T
    failures = setting.failures()
    needed_batch = setting.batch * logarithm
    if needed_batch > B:
        failures.append(f"batch = {B:,} is below the needed {needed_batch:.4g}")
    return LimitedGuarantee(
        largest_step=1.0 / (2.0 * setting.L),
        needed_k=setting.needed_k,
        needed_batch=needed_batch,
        rate=1.0 - alpha,
        noise_per_update=added,
        floor=added / alpha if alpha > 0.0 else inf,
        excess=(1.0 - kept) * start + (added * kept / alpha if alpha > 0.0 else T * added),
        examples=setting.blocks * B * T,
        probability=chance,
        failures=tuple(failures),
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    """The constants of Proposition A.1, named as in `limited_guarantee`, and without the logarithm that some have."""

    L: float
    mu: float
    d: int
    n_observed: int
    k: int
    k_star: int
    step: float
    sigma: float
    R: float

    def __post_init__(self) -> None:
        checked_constants(self.L, self.mu)
        checked_integer("d", self.d, 2)
        checked_integer("n_observed", self.n_observed, 2, self.d, "d")
        checked_integer("k", self.k, 1, self.n_observed - 1, "n_observed - 1")
        checked_integer("k_star", self.k_star, 1, self.k, "k")
        checked_number("step", self.step, above=0.0)
        checked_number("noise", self.sigma, least=0.0)
        checked_number("bound", self.R, above=0.0)

    @property
    def blocks(self) -> int:
        return ceil(self.d / (self.n_observed - self.k))

    @property
    def q(self) -> float:
        return 0.25 + 0.5 * self.step * self.L

    @property
    def decay(self) -> float:
        """Alpha; 0 where the formula gives 1 or more, as for steps far too long, and says nothing."""
        s, least = self.k, self.k_star
        alpha = 0.5 * (s - least) / (s + least) * self.mu * self.q * self.step
        return alpha if alpha < 1.0 else 0.0

    @property
    def needed_k(self) -> float:
        return _needed_k(self.L, self.mu, self.step, self.k_star)

    @property
    def noise(self) -> float:
        """c without its logarithm."""
        return 16.0 * (self.sigma * self.R) ** 2 * self.k * (2.5 + self.step * self.L) * self.step

    @property
    def batch(self) -> float:
        """The least batch without its logarithm."""
        s, least = self.k, self.k_star
        square = (s + least) ** 2 * self.R**4 * self.step**2
        return 16.0 * s * square * (2.5 + self.step * self.L) / (least * self.q)

    def failures(self) -> list[str]:
        found: list[str] = []
        if self.step * self.L >= 0.5:
            found.append(f"step = {self.step:.4g} is not below {0.5 / self.L:.4g}")
        if self.k < self.needed_k:
            found.append(f"k = {self.k:,} is below the needed {self.needed_k:,}")
        return found


def _needed_k(L: float, mu: float, step: float, k_star: int) -> float:
    left = 0.25 - 0.5 * step * L
    if left <= 0.0:
        return inf
    return ceil(max((0.5 + step * L) / left - 1.0, 64.0 / (step * mu) ** 2 + 1.0) * k_star)


@with_attributes_section
@dataclass(frozen=True, slots=True)
class LimitedPlan(Guarantee):
    """Plan for a wanted excess risk, by Theorems 4.1, 4.3 and 4.4; ``print`` it, or print it `beside` a run."""

    step: float = field(metadata=meaning("of every update, 1 / (4 L) unless given"))
    k: int = field(metadata=meaning("budget"))
    updates: float = field(metadata=meaning("exploration alone: its updates"))
    batch: float = field(metadata=meaning("exploration alone: examples per block and update"))
    exploration_examples: float = field(metadata=meaning("exploration alone: examples in all"))
    rounds: float = field(metadata=meaning("hybrid: rounds of exploring and exploiting"))
    explore_steps: float = field(metadata=meaning("hybrid: explorations per round"))
    exploit_steps: float = field(metadata=meaning("hybrid: exploitations per round"))
    explore_batches: tuple[int, ...] = field(metadata=meaning("hybrid: examples per block and exploration, by round"))
    exploit_batches: tuple[int, ...] = field(metadata=meaning("hybrid: examples per exploitation, by round"))
    examples: float = field(metadata=meaning("hybrid: examples in all"))
    support_round: float | None = field(metadata=meaning("hybrid: after this round the support is found"))
    failures: tuple[str, ...]

    title: ClassVar[str] = "Plan for an excess risk with limited attributes, Theorems 4.1 and 4.4"
    assumptions: ClassVar[str] = LimitedGuarantee.assumptions


@refuses_overflow
def limited_plan(
    smoothness: float,
    strong_convexity: float,
    *,
    d: int,
    k_star: int,
    n_observed: int,
    excess: float,
    noise: float,
    bound: float = 1.0,
    target: float,
    confidence: float = 0.95,
    smallest: float | None = None,
    k: int | None = None,
    step: float | None = None,
) -> LimitedPlan:
    r"""Return steps, batches, rounds and examples that are proved to reach a given excess risk.

    .. math:: (1 - \alpha)^T (\mathcal{L}(\theta_0) - \mathcal{L}(\theta_*)) \le \frac{\varepsilon}{2}, \qquad
              \frac{c}{B \alpha} \le \frac{\varepsilon}{2}

    for `Exploration` (Theorem 4.1, see `limited_guarantee`), and for `Hybrid` (Theorem 4.4) K rounds of 3 explorations
    and :math:`\tilde T` exploitations, the least with

    .. math:: 2 (1 - \alpha)^K (\mathcal{L}(\theta_0) - \mathcal{L}(\theta_*)) \le \varepsilon, \qquad
              (1 - \alpha)^{\tilde T} \le \frac{\kappa_s^2 (s' - s)}{d} .

    Parameters
    ----------
    smoothness, strong_convexity, d, k_star, n_observed, excess, noise, bound :
        As in `limited_guarantee`.
    target : float
        :math:`\varepsilon > 0`, the desired excess risk.
    confidence : float
        :math:`1 - \delta`, above 0 and below 1; for a hybrid that relies on the support being found, :math:`1 - 2
        \delta`.
    smallest : float, optional
        :math:`r_{\min} > 0`, the smallest modulus of a coefficient. With it a hybrid may need fewer rounds.
    k : int, optional
        s. Default: the least of the theorem.
    step : float, optional
        :math:`\eta > 0`. Default: :math:`1 / (4 L_s)`.

    Returns
    -------
    LimitedPlan
        The plan, with infinitely many examples if the rate is 1 (for k = k_star, or a step that is far too long).

    Raises
    ------
    InvalidInputError
        For numbers out of their ranges, or so large or small that a result overflows, and if no k is given and the
        theorem's is not below `n_observed`.

    See Also
    --------
    hardthresh.limited.AdaptiveHybrid : Finds its own batches and needs no step.

    Notes
    -----
    The batches use the constants of the proofs with corrections: the factor of `limited_guarantee`; in the first case
    of Theorem 4.3 a factor T of the batch (the sum over T updates has to be small, not each term), and :math:`1/\alpha`
    in the second case. :math:`\alpha` is the smaller of the proofs' rates, where the paper rounds to :math:`1 / (32
    \kappa_s)`; for the :math:`\Theta(\kappa_s^2)` in :math:`\tilde T` stands :math:`\kappa_s^2`. The number of examples
    is sufficient, but many orders of magnitude larger than necessary; compare the plan with a run by `beside`. Cost: a
    few operations per round.

    References
    ----------
    Murata and Suzuki (2018), Theorems 4.1, 4.3 and 4.4 and their proofs.

    Examples
    --------
    >>> plan = limited_plan(2.0, 2.0, d=5000, k_star=1, n_observed=2000, target=0.01, excess=1.0, noise=1.0)
    >>> plan.k, plan.updates, f"{plan.exploration_examples:.1e}"
    (1025, 111, '2.3e+13')
    >>> print(plan.beside(step=0.2, k=1, examples=90_000).splitlines()[1])
                            theory                     run
    """
    L, mu = checked_constants(smoothness, strong_convexity)
    eta = checked_number("step", 0.25 / L if step is None else step, above=0.0)
    start, wanted = checked_number("excess", excess, above=0.0), checked_number("target", target, above=0.0)
    risk = 1.0 - checked_number("confidence", confidence, above=0.0, below=1.0)
    least = None if smallest is None else checked_number("smallest", smallest, above=0.0)
    if k is None:
        needed = _needed_k(L, mu, eta, checked_integer("k_star", k_star, 1))
        if needed >= checked_integer("n_observed", n_observed, 2):
            raise InvalidInputError(
                f"the theorem needs k = {needed:,} at least, which must be below n_observed = {n_observed:,}; give k "
                "to plan with another budget, outside of the theorem"
            )
        k = int(needed)
    setting = _Setting(L, mu, d, n_observed, k, k_star, eta, noise, bound)
    exploitation = 0.25 * mu * eta * (1.0 - eta * L)
    alpha = min(setting.decay, exploitation)
    failures = setting.failures()
    updates = steps_until(0.5 * wanted / start, setting.decay) if setting.decay > 0.0 else inf
    batch = inf
    if updates < inf:
        updates = max(updates, 1)
        logarithm = log(4.0 * d * updates / risk)
        batch = ceil(max(setting.batch, 2.0 * setting.noise / (setting.decay * wanted)) * logarithm)
    rounds = max(1, steps_until(0.5 * wanted / start, alpha))
    exploit_steps, found = inf, None
    explore_batches, exploit_batches, examples = (), (), inf
    if alpha > 0.0:
        share = (L / mu) ** 2 * (n_observed - k) / d
        exploit_steps = max(1, steps_until(share, alpha))
        if least is not None:
            found = steps_until(least * least * mu / (4.0 * start), alpha)
            rounds = min(rounds, max(found + 1, rounds - exploit_steps))
    if alpha <= 0.0:
        failures.append("the rate is 1, so the bound is vacuous")
    elif rounds > _ROUNDS:
        failures.append(f"a hybrid needs {rounds:.4g} rounds, more than the {_ROUNDS:,} that are listed")
    else:
        explore, exploit = _batches(setting, alpha, int(rounds), int(exploit_steps), start, risk)
        explore_batches, exploit_batches = tuple(map(ceil, explore)), tuple(map(ceil, exploit))
        examples = _EXPLORATIONS * setting.blocks * sum(explore_batches) + int(exploit_steps) * sum(exploit_batches)
    return LimitedPlan(
        step=eta,
        k=k,
        updates=updates,
        batch=batch,
        exploration_examples=setting.blocks * batch * updates,
        rounds=rounds,
        explore_steps=_EXPLORATIONS,
        exploit_steps=exploit_steps,
        explore_batches=explore_batches,
        exploit_batches=exploit_batches,
        examples=examples,
        support_round=found,
        failures=tuple(failures),
    )


def _batches(
    setting: _Setting, alpha: float, rounds: int, exploit_steps: int, start: float, risk: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the batches of the explorations and exploitations of Theorem 4.4, round by round."""
    L, mu, eta, s, T = setting.L, setting.mu, setting.step, setting.k, exploit_steps
    rounds_so_far = np.arange(1, rounds + 1)
    chance = 3.0 * risk / (pi * rounds_so_far) ** 2
    room = 0.5 * alpha * start * (1.0 - alpha) ** rounds_so_far  # what noise may add to the error in a part of a round
    logarithm = np.log(4.0 * setting.d * _EXPLORATIONS / chance)
    explore = setting.noise * _EXPLORATIONS / (room * (1.0 - alpha) ** (_EXPLORATIONS - 2))
    explore = np.maximum(explore, setting.batch) * logarithm
    # what the error of the gradient on the support adds: by the distance, and by the noise
    by_distance, by_noise = 8.0 * s * (s + setting.k_star) * setting.R**4, 8.0 * s * (setting.sigma * setting.R) ** 2
    least = max(
        16.0 * by_distance * (2.0 - eta * L) / ((1.0 - eta * L) * mu**2),  # the support is right
        2.0 * by_distance * eta**2 * T * (T - 1) / (1.0 - eta * L),  # any support: the moves
        4.0 * by_distance * eta * T * (1.0 - alpha) / (mu * alpha),  # any support: the start
    )
    exploit = by_noise * eta * T * max((2.0 - eta * L) / (1.0 - alpha) ** T, 1.0) / room
    exploit = np.maximum(exploit, least) * np.log(4.0 * s * T / chance)
    return explore, exploit
