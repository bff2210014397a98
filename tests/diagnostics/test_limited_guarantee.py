"""Theorems 4.1 and 4.4 on limited attributes: by hand, step by step, and in exact simulations of huge batches."""

from dataclasses import replace
from itertools import islice
from math import ceil, inf, log, log2, pi

import numpy as np
import pytest
from scipy.linalg import hadamard

from hardthresh.arrays import top_k
from hardthresh.core import InvalidInputError
from hardthresh.diagnostics import limited_guarantee, limited_plan
from levels import slow_beyond

# independent attributes of +-1: E x x' = I, so that L = mu = 2 on any of them, and no attribute exceeds 1
SIGNS = {"smoothness": 2.0, "strong_convexity": 2.0, "noise": 0.5}


def test_proposition_a_1_by_hand():
    """eta L = 1/4: q = 3/8, and with s = 30, s* = 10 alpha = 1/2 1/2 2 3/8 1/8 = 3/128."""
    found = limited_guarantee(
        **SIGNS, d=100, n_observed=50, k=30, k_star=10, step=0.125, batch=1000, updates=2, excess=4.0, bound=2.0
    )
    logarithm = log(4 * 100 * 2 / 0.05)
    assert found.largest_step == 0.25
    assert found.needed_k == 1025 * 10  # 64 / (1/8 2)^2 + 1
    assert found.rate == pytest.approx(125 / 128)
    assert found.noise_per_update == pytest.approx(16 * 0.25 * 4 * 30 * 2.75 / 8 * logarithm / 1000)
    assert found.needed_batch == pytest.approx(16 * 30 * 40**2 * 16 / 64 * 2.75 / (10 * 0.375) * logarithm)
    assert found.floor == pytest.approx(found.noise_per_update * 128 / 3)
    assert found.examples == 5 * 1000 * 2
    assert found.failures[0] == "k = 30 is below the needed 10,250"
    assert "batch = 1,000 is below" in found.failures[1]


def test_lemma_a_4_bounds_what_hard_thresholding_adds():
    """It is attained where all entries that count are equal, and the sparse vector is the nearest."""
    rng = np.random.default_rng(0)
    for size, s, s_star in [(12, 6, 2), (9, 8, 8), (30, 10, 1)]:
        for z in [np.ones(size), *rng.standard_normal((50, size))]:
            kept, target = top_k(np.abs(z), s), top_k(np.abs(z), s_star)
            added, distance = np.sum(np.delete(z, kept) ** 2), np.sum(np.delete(z, target) ** 2)
            assert added <= (size - s) / (size - s_star) * distance * (1 + 1e-12)
    assert added > 0.0


def lemma_a_5(S, w, truth):
    """Return the two sides for L(w) = (w - w*)' S (w - w*), strongly convex with twice the least eigenvalue of S."""
    away, mu = w - truth, 2.0 * np.linalg.eigvalsh(S)[0]
    gradient = (2.0 * S @ away)[(w != 0) | (truth != 0)]
    return away @ S @ away, gradient @ gradient / mu - 0.25 * mu * away @ away


def test_lemma_a_5_bounds_the_excess_by_the_gradient():
    assert lemma_a_5(np.eye(3), np.array([2.0, 0.0, 0.0]), np.zeros(3)) == (4.0, 6.0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        A = rng.standard_normal((15, 8))
        w, truth = (rng.standard_normal(8) * (rng.random(8) < 0.4) for _ in range(2))
        excess, bound = lemma_a_5(A.T @ A, w, truth)
        assert excess <= bound


def test_the_bound_is_that_of_one_update_after_another():
    asked = {**SIGNS, "d": 100, "n_observed": 50, "k": 30, "k_star": 10, "step": 0.1, "batch": 77, "excess": 4.0}
    for updates in (1, 2, 10, 500):
        found = limited_guarantee(**asked, updates=updates)
        excess = 4.0
        for _ in range(updates):
            excess = found.rate * excess + found.noise_per_update
        assert found.excess == pytest.approx(excess)
    assert found.excess == pytest.approx(found.floor, rel=1e-3)


def test_limits():
    asked = {**SIGNS, "d": 100, "n_observed": 50, "k": 30, "step": 0.1, "batch": 10, "updates": 5, "excess": 4.0}
    silent = limited_guarantee(**{**asked, "noise": 0.0}, k_star=10)
    assert silent.floor == silent.noise_per_update == 0.0
    assert silent.excess == pytest.approx(4.0 * silent.rate**5)
    vacuous = limited_guarantee(**asked, k_star=30)
    assert (vacuous.rate, vacuous.floor) == (1.0, inf)
    assert vacuous.excess == pytest.approx(4.0 + 5 * vacuous.noise_per_update)
    long = limited_guarantee(**{**asked, "step": 0.25}, k_star=10)
    assert long.needed_k == inf
    assert long.failures[0] == "step = 0.25 is not below 0.25"


@pytest.mark.parametrize("step", [0.25, 1.0, 5.0, 1e3])
def test_a_step_far_too_long_has_the_rate_1(step):
    """Far beyond the largest step the formula of alpha exceeds 1."""
    asked = {**SIGNS, "d": 100, "n_observed": 50, "k": 30, "k_star": 10, "batch": 10, "updates": 5, "excess": 4.0}
    found = limited_guarantee(**asked, step=step)
    assert not found.applies
    assert 0.0 < found.rate <= 1.0
    if step >= 5.0:
        assert (found.rate, found.floor) == (1.0, inf)
        assert found.excess == pytest.approx(4.0 + 5 * found.noise_per_update)
        plan = limited_plan(**SIGNS, d=100, n_observed=50, k_star=10, k=30, step=step, target=0.1, excess=4.0)
        assert plan.updates == plan.batch == plan.exploration_examples == plan.examples == inf
        assert plan.failures[-1] == "the rate is 1, so the bound is vacuous"


@pytest.mark.parametrize("target", [0.01, 49.0, 51.0, 1e6])
def test_a_plan_without_progress_is_made_for_every_target(target):
    plan = limited_plan(**SIGNS, d=500, n_observed=50, k_star=25, k=25, target=target, excess=25.0)
    assert plan.updates == plan.batch == plan.exploration_examples == plan.examples == inf


@pytest.mark.parametrize(
    ("harder", "worse"),
    [
        ({"noise": 1.0}, ["floor", "excess"]),
        ({"bound": 2.0}, ["floor", "needed_batch", "excess"]),
        ({"strong_convexity": 1.0}, ["rate", "needed_k", "floor", "excess"]),
        ({"k_star": 12}, ["rate", "needed_k"]),
        ({"d": 200}, ["examples", "needed_batch"]),
        ({"confidence": 0.99}, ["needed_batch", "floor"]),
        ({"excess": 8.0}, ["excess"]),
    ],
)
def test_harder_problems_are_promised_less(harder, worse):
    asked = {**SIGNS, "d": 100, "n_observed": 50, "k": 30, "k_star": 10, "step": 0.1, "batch": 10_000}
    asked |= {"updates": 50, "excess": 4.0}
    more, less = limited_guarantee(**{**asked, **harder}), limited_guarantee(**asked)
    for name in worse:
        assert getattr(more, name) > getattr(less, name)


def gradient(rng, X, theta, truth, noise, batch, block):
    """The gradient on a block from a batch of rows of X, as exact as if all were drawn: only their counts matter."""
    counts = rng.multinomial(batch, np.full(len(X), 1 / len(X)))
    errors = noise * np.sqrt(counts) * rng.standard_normal(len(X))  # the sum of the noise of each row
    return 2.0 * X[:, block].T @ (counts * (X @ (theta - truth)) - errors) / batch


def explore(rng, X, theta, truth, noise, step, batch, width, k):
    """Return the point after one update of Algorithm 1."""
    blocks = [slice(start, start + width) for start in range(0, X.shape[1], width)]
    moved = theta - step * np.concatenate([gradient(rng, X, theta, truth, noise, batch, block) for block in blocks])
    theta, kept = np.zeros_like(moved), top_k(np.abs(moved), k)
    theta[kept] = moved[kept]
    return theta


def exploit(rng, X, theta, truth, noise, step, batch):
    """Return the point after one update of Algorithm 2."""
    support, theta = np.flatnonzero(theta), theta.copy()
    theta[support] -= step * gradient(rng, X, theta, truth, noise, batch, support)
    return theta


@slow_beyond(1)
@pytest.mark.parametrize("noise", [0.0, 0.5, 30.0])
def test_theorem_4_1_holds_where_all_its_assumptions_do(noise):
    """The rows of a Hadamard matrix, drawn uniformly: E x x' = I exactly, entries +-1. Batches of more than 10^9."""
    X = hadamard(512).astype(float)[:, 1:]
    truth = np.zeros(511)
    truth[100] = 1.0
    k, step = 401, 0.2  # 64 / (0.2 2)^2 + 1 = 401 is needed
    asked = {**SIGNS, "noise": noise, "d": 511, "n_observed": 480, "k": k, "k_star": 1, "step": step}
    rng = np.random.default_rng(0)
    start = np.zeros(511)
    start[:k] = rng.standard_normal(k)
    excess = float(np.sum((start - truth) ** 2))
    asked |= {"updates": 30, "excess": excess, "confidence": 0.9}
    batch = ceil(limited_guarantee(**asked, batch=1).needed_batch)
    bound = limited_guarantee(**asked, batch=batch)
    assert bound.applies
    assert bound.examples == 7 * batch * 30
    held = 0
    for _ in range(4):
        theta, errors = start, [excess]
        for _ in range(30):
            theta = explore(rng, X, theta, truth, noise, step, batch, 79, k)
            errors.append(float(np.sum((theta - truth) ** 2)))
        errors = np.array(errors)
        held += (errors[1:] <= bound.rate * errors[:-1] + bound.noise_per_update).all()
        assert errors[-1] <= bound.excess
        if noise == 0.0:
            # an exact gradient of curvature 2 shrinks the error by 0.6^2 and what leaves the support with it
            assert 0.3 < (errors[10] / errors[0]) ** 0.1 < 0.4
    assert held == 4


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.5, 30.0])
def test_theorem_4_4_holds_where_all_its_assumptions_do(noise):
    """The first rounds of a hybrid with the batches of its plan, from a support without the attribute that counts."""
    X = hadamard(512).astype(float)[:, 1:]
    truth = np.zeros(511)
    truth[500] = 2.0
    theta = np.zeros(511)
    theta[:401] = 0.1
    excess = float(np.sum((theta - truth) ** 2))
    asked = {**SIGNS, "noise": noise, "d": 511, "n_observed": 480, "k_star": 1, "excess": excess}
    plan = limited_plan(**asked, target=0.05, step=0.2)
    assert plan.applies
    assert plan.k == 401
    alpha = 0.25 * 2 * 0.2 * 0.6  # of the exploitations, 1/4 mu eta (1 - eta L); that of the explorations is larger
    rng = np.random.default_rng(1)
    batches = zip(plan.explore_batches, plan.exploit_batches, strict=True)
    for k, (large, small) in enumerate(islice(batches, 8), start=1):
        for _ in range(plan.explore_steps):
            theta = explore(rng, X, theta, truth, noise, 0.2, large, 79, 401)
        for _ in range(int(plan.exploit_steps)):
            theta = exploit(rng, X, theta, truth, noise, 0.2, small)
        error = float(np.sum((theta - truth) ** 2))
        assert error <= 2 * (1 - alpha) ** k * excess


def test_a_plan_by_hand():
    """L = mu = 2, step 1/8, s* = 1, so s = 1025: alpha = 1/2 1024/1026 2 3/8 1/8 = 3/64 1024/1026."""
    plan = limited_plan(**SIGNS, d=4000, n_observed=2025, k_star=1, target=0.02, excess=5.0, smallest=1.0)
    alpha = 3 / 64 * 1024 / 1026
    assert (plan.step, plan.k) == (0.125, 1025)
    assert plan.updates == ceil(log(0.002) / np.log1p(-alpha)) == 130
    assert plan.rounds == ceil(log(0.002) / np.log1p(-alpha)) - plan.exploit_steps
    assert plan.exploit_steps == ceil(log(1000 / 4000) / np.log1p(-alpha)) == 29
    assert plan.support_round == ceil(log(2 / 20) / np.log1p(-alpha)) == 49
    assert len(plan.explore_batches) == len(plan.exploit_batches) == plan.rounds == 101
    # here the batches that the noise asks for are smaller than those of the smoothness
    logarithm = log(4 * 4000 * 130 / 0.05)
    assert plan.batch == ceil(16 * 1025 * 1026**2 / 64 * 2.75 / 0.375 * logarithm)
    assert plan.exploration_examples == 4 * plan.batch * 130
    for k in (1, 101):
        chance = 3 * 0.05 / (pi * k) ** 2
        assert plan.explore_batches[k - 1] == pytest.approx(
            16 * 1025 * 1026**2 / 64 * 2.75 / 0.375 * log(12 * 4000 / chance)
        )
        logarithm = log(4 * 1025 * 29 / chance)
        error = 8 * 1025 * 1026
        cases = [
            16 * error * 1.75 / (0.75 * 4),
            2 * error * 29 * 28 / (64 * 0.75),
            4 * error * 29 * (1 - alpha) / (8 * 2 * alpha),
        ]
        assert plan.exploit_batches[k - 1] == pytest.approx(max(cases) * logarithm)
    total = 3 * 4 * sum(plan.explore_batches) + 29 * sum(plan.exploit_batches)
    assert plan.examples == total


@pytest.mark.parametrize(("smallest", "rounds"), [(None, 130), (0.1, 130), (0.23, 111), (1.0, 101), (3.0, 101)])
def test_the_rounds_of_a_plan_depend_on_when_the_support_is_found(smallest, rounds):
    """Of the 130 rounds it saves T = 29, but it is not done before the support is found."""
    asked = {**SIGNS, "d": 4000, "n_observed": 2025, "k_star": 1, "target": 0.02, "excess": 5.0}
    plan = limited_plan(**asked, smallest=smallest)
    assert plan.rounds == rounds
    if smallest == 0.23:
        assert plan.support_round == ceil(log(0.1 * 0.23**2) / np.log1p(-3 / 64 * 1024 / 1026)) == 110


def test_a_plan_whose_exploitation_is_slow_and_long():
    """With eta = 0.2 exploitation is the slower part, alpha = 1/4 2 0.2 (1 - 0.4); T is long, and its moves add up."""
    plan = limited_plan(**SIGNS, d=10**6, n_observed=501, k_star=1, target=0.02, excess=5.0, step=0.2)
    assert plan.k == 401
    assert plan.rounds == ceil(log(0.002) / log(0.94)) == 101
    T = plan.exploit_steps
    assert T == ceil(log(1e-4) / log(0.94)) == 149
    error = 8 * 401 * 402
    moves = 2 * error * 0.04 * 149 * 148 / 0.6
    assert moves > max(16 * error * 1.6 / (0.6 * 4), 4 * error * 0.2 * 149 * 0.94 / (2 * 0.06))
    assert plan.exploit_batches[0] == pytest.approx(moves * log(4 * 401 * 149 / (3 * 0.05 / pi**2)))


def test_batches_that_noise_asks_for():
    """So much noise that it alone matters: batches grow like 1 / (1 - alpha)^k, but for their logarithms."""
    plan = limited_plan(**{**SIGNS, "noise": 1e4}, d=4000, n_observed=2025, k_star=1, target=0.02, excess=5.0)
    alpha, rounds = 3 / 64 * 1024 / 1026, np.arange(1, int(plan.rounds) + 1)
    chance = 3 * 0.05 / (pi * rounds) ** 2
    room = 0.5 * alpha * 5.0 * (1 - alpha) ** rounds
    noise = 16 * 1e8 * 1025 * 2.75 / 8 * np.log(12 * 4000 / chance)
    np.testing.assert_allclose(plan.explore_batches, 3 * noise / (room / (1 - alpha) ** 2 * (1 - alpha) ** 3))
    T = plan.exploit_steps
    noise = 8 * 1e8 * 1025 / 8 * 1.75 * np.log(4 * 1025 * T / chance)
    np.testing.assert_allclose(plan.exploit_batches, noise * T / (room * (1 - alpha) ** T))
    assert plan.batch == pytest.approx(
        2 * 16 * 1e8 * 1025 * 2.75 / 8 * log(4 * 4000 * plan.updates / 0.05) / (alpha * 0.02)
    )


@pytest.mark.parametrize("noise", [0.0, 0.5, 1e4])
@pytest.mark.parametrize("target", [1e-3, 0.1, 4.9, 20.0])
def test_a_plan_reaches_its_target_by_the_guarantee(noise, target):
    asked = {**SIGNS, "noise": noise, "d": 4000, "n_observed": 2025, "k_star": 1, "excess": 5.0}
    plan = limited_plan(**asked, target=target)
    assert plan.applies
    found = limited_guarantee(**asked, k=plan.k, step=plan.step, batch=int(plan.batch), updates=int(plan.updates))
    assert found.applies
    assert found.excess <= target * (1 + 1e-12)
    assert found.examples == plan.exploration_examples
    if 0.01 < target < 5.0:
        shorter = limited_guarantee(**asked, k=plan.k, step=plan.step, batch=10**18, updates=int(plan.updates) - 1)
        assert shorter.excess > 0.5 * target


def test_a_round_of_a_plan_gains_what_theorem_4_4_says():
    """The recursion of its proof: e_k <= (1 - a)^2 e_{k-1} + a (1 - a)^k e_0, so e_k <= (1 - a)^k e_0."""
    plan = limited_plan(**SIGNS, d=4000, n_observed=2025, k_star=1, target=0.02, excess=5.0)
    alpha, error = 3 / 64 * 1024 / 1026, 5.0
    for k in range(1, int(plan.rounds) + 1):
        error = (1 - alpha) ** 2 * error + alpha * (1 - alpha) ** k * 5.0
        assert error <= 2 * (1 - alpha) ** k * 5.0
    assert error <= 0.02


def test_harder_targets_take_more():
    asked = {**SIGNS, "d": 4000, "n_observed": 2025, "k_star": 1, "target": 0.02, "excess": 5.0, "noise": 1e4}
    base = limited_plan(**asked)
    for harder in ({"target": 0.01}, {"noise": 2e4}, {"excess": 10.0}, {"confidence": 0.99}, {"n_observed": 1525}):
        more = limited_plan(**{**asked, **harder})
        assert more.exploration_examples > base.exploration_examples
        assert more.examples > base.examples
    assert limited_plan(**asked, smallest=1.0).examples < base.examples
    # more accurate by half costs twice the examples where noise rules, but for logarithms
    ratio = limited_plan(**{**asked, "target": 0.01}).exploration_examples / base.exploration_examples
    assert 2.0 < ratio < 2.4
    assert base.updates == ceil(log2(0.002) / log2(1 - 3 / 64 * 1024 / 1026))


def test_plans_outside_of_the_theorem_say_so():
    asked = {**SIGNS, "d": 500, "n_observed": 50, "target": 0.01, "excess": 25.0}
    with pytest.raises(InvalidInputError, match=r"needs k = 25,625 at least, .* n_observed = 50; give k"):
        limited_plan(**asked, k_star=25)
    plan = limited_plan(**asked, k_star=25, k=25, smallest=1.0)
    assert plan.failures == ("k = 25 is below the needed 25,625", "the rate is 1, so the bound is vacuous")
    assert plan.examples == plan.exploration_examples == inf
    smaller = limited_plan(**asked, k_star=20, k=25)
    assert smaller.examples < inf
    assert not smaller.applies
    hopeless = limited_plan(**{**asked, "strong_convexity": 1e-9}, k_star=20, k=25)
    assert "rounds, more than the 1,000,000" in hopeless.failures[-1]
    assert "run" in replace(plan, failures=()).beside(step=0.3)
