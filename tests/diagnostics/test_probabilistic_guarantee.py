"""The convergence theory of probabilistic hard thresholding, by hand, by search, and along runs."""

from dataclasses import replace
from itertools import islice, pairwise
from math import sqrt

import numpy as np
import pytest
from scipy.stats import binomtest

import hardthresh as ht
from hardthresh.constraints import EdgeSparsity, Rank, Sparsity
from hardthresh.core import InvalidInputError, iterate
from hardthresh.datasets import make_sparse_regression
from hardthresh.diagnostics import model_accuracy, probabilistic_guarantee
from hardthresh.objectives import GraphicalModel, LinearModel, MatrixRegression
from hardthresh.solvers import IHT, FixedBatch, FullBatch, ProbabilisticIHT
from levels import at_most

SETTINGS = {"k": 4, "alpha": 1.0, "kappa_f": 1.0, "kappa_g": 2.0, "epsilon_f": 0.0, "smoothness": 3.0}
DRAWN = make_sparse_regression(300, 60, 4, snr=5.0, seed=0)
MODEL = LinearModel(DRAWN.X, DRAWN.y)


def test_by_hand():
    """sqrt(k) = 2 and alpha kappa_f delta_max = 6: a = 1/(12 + 4), c = (1 - 8/16)/2 = 1/4."""
    found = probabilistic_guarantee(
        **{**SETTINGS, "epsilon_f": 0.01}, eta1=0.1, eta2=3.0, delta_max=6.0, gap=2.8, delta0=3.0
    )
    assert (found.a, found.c) == (1 / 16, 0.25)
    assert found.needed_alpha == pytest.approx(1 / 3)
    assert found.needed_eta2 == 3.0
    assert found.zeta == 16.0  # 1/a, above 2 + max(3, 6.02 / 0.9)
    assert found.lipschitz_factor == 1 + 9 / 32
    assert found.nu_odds == pytest.approx(4 * 40 / 3)  # of 4/(16/4) = 1, 4/0.3 and 1
    assert found.published_acceptance == pytest.approx(0.9 / 6.02)
    assert found.acceptance == pytest.approx(1 / 3)  # the least of 1, 1/3 and 0.9 / 1.02
    assert found.decrease == pytest.approx(0.28)
    assert found.squared_levels == pytest.approx(16 / 3 * 10 + 4 * 9 / 3)
    assert len(found.failures) == 1


@pytest.mark.parametrize("gamma", [1.5, 2.0])
@pytest.mark.parametrize(("eta1", "eta2"), [(0.5, 3.0), (0.5, 40.0), (1e-4, 3.0)])
@pytest.mark.parametrize("smoothness", [0.1, 100.0])
def test_the_failure_rate_is_the_largest_that_satisfies_both_conditions(gamma, eta1, eta2, smoothness):
    """By substituting rates into (34) and (37) as printed."""
    found = probabilistic_guarantee(**{**SETTINGS, "smoothness": smoothness}, eta1=eta1, eta2=eta2, gamma=gamma)
    nu = found.nu_odds / (1 + found.nu_odds)

    def satisfied(rate):
        theta = beta = 1 - rate
        missing = (1 - theta) * (1 - beta)
        first = (theta * beta - 0.5) / missing >= found.lipschitz_factor / found.c
        room = (1 - nu) * (gamma**4 - 1) + 2 * gamma**2 * found.lipschitz_factor * found.zeta * nu
        return first and missing <= (gamma**2 - 1) * (1 - nu) / room

    assert 0.0 < found.failure_rate < 0.5
    assert satisfied(found.failure_rate * (1 - 1e-4))
    assert not satisfied(found.failure_rate * (1 + 1e-4))


def test_the_proof_of_theorem_3_has_a_gap_for_all_settings():
    """The condition of Lemma 3 and that of Lemma 2, which its proof applies, exclude each other."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        k = int(rng.integers(1, 100))
        alpha, kappa_f, delta_max, eta2 = 10.0 ** rng.uniform(-4, 4, 4)
        found = probabilistic_guarantee(
            **{**SETTINGS, "k": k, "alpha": alpha, "kappa_f": kappa_f}, delta_max=delta_max, eta2=eta2
        )
        assert not found.applies
        assert (found.c > 0) == (alpha > found.needed_alpha) or alpha == pytest.approx(found.needed_alpha)
        assert len(found.failures) == 1 + (alpha <= found.needed_alpha) + (eta2 < found.needed_eta2)
        if alpha > found.needed_alpha:
            # Lemma 2 is about delta <= |x - xhat| / (2 alpha kappa_f delta_max), and |x - xhat| <= 2 delta
            assert 2.0 / (2.0 * alpha * kappa_f * delta_max) < 1.0
        else:
            assert found.failure_rate == 0.0


def test_harder_problems_are_promised_less():
    base = probabilistic_guarantee(**SETTINGS, eta2=3.0, gap=1.0, delta0=1.0)
    for harder in ({"smoothness": 30.0}, {"kappa_g": 200.0}, {"k": 9}):
        assert probabilistic_guarantee(**{**SETTINGS, **harder}, eta2=3.0).failure_rate < base.failure_rate
    for harder in ({"gap": 2.0}, {"delta0": 2.0}):
        assert (
            probabilistic_guarantee(**SETTINGS, eta2=3.0, **{"gap": 1.0, "delta0": 1.0, **harder}).squared_levels
            > base.squared_levels
        )
    noisy = probabilistic_guarantee(**{**SETTINGS, "epsilon_f": 1.0}, eta2=3.0, gap=1.0, delta0=1.0)
    assert noisy.decrease < 0.0
    assert noisy.squared_levels == np.inf
    assert "epsilon_f" in noisy.failures[-1]


def run(solver, seed=0, max_iter=60):
    states = []
    ht.minimize(MODEL, Sparsity(4), solver, max_iter=max_iter, tol=0.0, seed=seed, callback=states.append)
    return states


@pytest.mark.parametrize("eta", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("variant", ["stable", "paper"])
def test_lemma_5_and_the_sum_of_squares_hold_along_exact_runs(eta, variant):
    """With all examples in every batch the values are accurate with epsilon_f = 0."""
    solver = ProbabilisticIHT(
        variant=variant, batch=FullBatch(), eta1=eta, eta2=eta, alpha=1.0, delta0=4.0, delta_max=10.0
    )
    states = run(solver, max_iter=200)
    f = np.array([state.value for state in states])
    levels = np.array([state.delta for state in states])
    accepted = np.array([state.accepted for state in states[1:]])
    bound = probabilistic_guarantee(
        **{**SETTINGS, "epsilon_f": 0.0}, eta1=eta, eta2=eta, gap=float(f[0] - f.min()), delta0=4.0
    )
    assert accepted.any()
    assert not accepted.all()
    # the last accepted steps change f by rounding
    assert (f[1:] <= f[:-1] - bound.decrease * levels[:-1] ** 2 * accepted + 1e-15 * f[0]).all()
    assert np.sum(levels[: len(accepted)] ** 2) <= bound.squared_levels


def test_a_small_level_is_accepted_with_the_restricted_clip():
    """Lemma 4 in the form that holds: kappa_f = L / 2, L the largest eigenvalue on a support; and not as printed."""
    L = np.linalg.eigvalsh(DRAWN.X.T @ DRAWN.X / 300)[-1]
    applied = 0
    for delta0 in (1e-3, 1e-2, 0.1, 1.0):
        solver = ProbabilisticIHT(
            variant="paper", clip="restricted", batch=FullBatch(), eta1=0.3, eta2=0.3, alpha=10.0, delta0=delta0
        )
        bound = probabilistic_guarantee(**{**SETTINGS, "alpha": 10.0, "kappa_f": 0.5 * L}, eta1=0.3, eta2=0.3)
        for before, after in pairwise(run(solver)):
            inside = np.linalg.norm(after.index_set.restrict(before.at.gradient))
            kept = set(np.flatnonzero(before.w)) <= set(after.index_set.indices)
            if kept and before.delta <= bound.acceptance * inside and inside > 1e-6:
                applied += 1
                assert after.accepted
    assert applied > 10
    # the floor of the published clip: the level falls for ever without being accepted
    rejected = run(ProbabilisticIHT(variant="paper", batch=FullBatch(), eta1=0.3, eta2=0.3, alpha=10.0), max_iter=300)[
        -1
    ]
    inside = np.linalg.norm(rejected.index_set.restrict(rejected.at.gradient))
    assert not rejected.accepted
    assert (
        rejected.delta
        < probabilistic_guarantee(
            **{**SETTINGS, "alpha": 10.0, "kappa_f": 0.5 * L}, eta1=0.3, eta2=0.3
        ).published_acceptance
        * inside
    )


def test_exact_batches_are_accurate():
    """The gradient and the values are those of f; what is left is the curvature, 2 L delta^2 at most."""
    solver = ProbabilisticIHT(batch=FullBatch())
    found = model_accuracy(MODEL, Sparsity(4), solver, run(solver), kappa_g=1e-9, kappa_f=1e3, epsilon_f=1e3)
    assert found.accurate_models == found.accurate_values == found.largest_theta == 1.0
    np.testing.assert_array_equal(found.gradient_errors, 0.0)
    L = np.linalg.eigvalsh(DRAWN.X.T @ DRAWN.X / 300)[-1]
    assert (found.model_errors <= 2 * L).all()
    assert found.model_errors.max() > 0.1
    np.testing.assert_array_equal(found.value_errors, 0.0)


@pytest.mark.parametrize("clip", ["stable", "full", "restricted"])
@pytest.mark.parametrize("method", ["auto", "subspace", "randomized"])
def test_values_on_all_examples_have_no_error_for_any_projection(method, clip):
    """An approximate projection begins at the support of the point, so only the solver's own trial is the right one."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 8, 8))
    objective = MatrixRegression(A, np.einsum("nij,ij->n", A, rng.standard_normal((8, 8))))
    solver, constraint = ProbabilisticIHT(batch=FullBatch(), clip=clip), Rank(1, method=method)
    states = list(islice(iterate(objective, constraint, solver, seed=2), 40))
    found = model_accuracy(objective, constraint, solver, states, kappa_g=1.0, kappa_f=1e9, epsilon_f=1e-12)
    assert any(not state.accepted for state in states)
    assert found.value_errors.max() < 1e-14


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("ratio", ["paper", "full", "model"])
def test_errors_are_measured_where_the_square_of_the_clipping_level_underflows(ratio):
    """Without noise the run reaches the minimum and rejects from then on, until the level is the smallest float."""
    X = np.random.default_rng(0).standard_normal((300, 20))
    objective = LinearModel(X, X[:, 3] - 2.0 * X[:, 7])
    solver = ProbabilisticIHT(batch=FixedBatch(50), ratio=ratio)
    states = list(islice(iterate(objective, Sparsity(2), solver), 1500))
    assert states[-1].delta ** 2 == 0.0
    found = model_accuracy(objective, Sparsity(2), solver, states, kappa_g=1.0, kappa_f=1.0, epsilon_f=1.0)
    for errors in (found.gradient_errors, found.model_errors, found.value_errors):
        assert errors.shape == (1499,)
        assert (errors >= 0.0).all()


@pytest.mark.parametrize(
    ("error", "delta", "ratio"), [(0.5, 0.5, 2.0), (1e-20, 1e-200, np.inf), (0.0, 1e-300, 0.0), (3e-310, 1e-155, 3.0)]
)
def test_an_error_over_the_square_of_a_tiny_level(error, delta, ratio):
    from hardthresh.diagnostics.probabilistic import _over_square

    assert _over_square(error, delta) == pytest.approx(ratio)


def test_a_decrease_that_no_ratio_records_is_computed_again():
    """The trial drops a coordinate along a zero gradient: the predicted decrease is 0 and the ratio minus infinity."""
    X = np.sqrt(4.0) * np.eye(4)
    objective = LinearModel(X, X @ np.array([1.0, 2.0, 3.0, 4.0]))
    solver = ProbabilisticIHT(variant="paper", batch=FullBatch())
    (start, *_) = islice(iterate(objective, Sparsity(2), solver), 1)
    at = objective.evaluate(np.array([1.0, 2.0, 3.0, 4.0]))
    before = replace(start, at=at)
    after = solver.advance(objective, Sparsity(2), before)
    assert after.ratio == -np.inf
    found = model_accuracy(objective, Sparsity(2), solver, [before, after], kappa_g=1.0, kappa_f=1.0, epsilon_f=1e-12)
    assert (found.value_errors.tolist(), found.accurate_values) == ([0.0], 1.0)


def test_a_trial_outside_of_the_domain_is_measured():
    """The step is so long that an entry of the diagonal is negative, where f is infinite."""
    objective = GraphicalModel(np.random.default_rng(0).standard_normal((40, 4)))
    solver = ProbabilisticIHT(variant="paper", batch=FullBatch(), alpha=1e3, delta0=1e3, delta_max=1e3, eta2=1e-4)
    states = list(islice(iterate(objective, EdgeSparsity(8), solver, 3.0 * objective.null_point()), 3))
    assert states[1].ratio == -np.inf
    found = model_accuracy(objective, EdgeSparsity(8), solver, states, kappa_g=1.0, kappa_f=1.0, epsilon_f=1.0)
    assert found.model_errors[0] == np.inf
    assert found.value_errors[0] == 0.0


@pytest.mark.parametrize("ratio", ["paper", "full", "model"])
@pytest.mark.parametrize("clip", ["stable", "full", "restricted"])
def test_errors_are_those_of_the_batches(ratio, clip):
    """The slow way: draw the batches of the run again."""
    rule = FixedBatch(30)
    solver = ProbabilisticIHT(batch=rule, ratio=ratio, clip=clip)
    states = list(islice(iterate(MODEL, Sparsity(4), solver, seed=5), 25))
    found = model_accuracy(MODEL, Sparsity(4), solver, states, kappa_g=1.0, kappa_f=1.0, epsilon_f=1.0)
    assert found.gradient_errors.shape == (24,)
    compared = 0
    for t, (before, after) in enumerate(pairwise(states)):
        rows = rule.gradient_rows(300, before.next_size, 5, t)
        g = MODEL.rows(rows).evaluate(before.w).gradient
        inside = after.index_set.indices
        exact = MODEL.evaluate(before.w)
        assert found.gradient_errors[t] == pytest.approx(np.linalg.norm((exact.gradient - g)[inside]) / before.delta)
        if not after.accepted:
            continue
        compared += 1
        values = MODEL.rows(rule.value_rows(300, before.next_size, 5, t))
        seen = values.value(before.w) - values.value(after.w)
        true = exact.value - MODEL.value(after.w)
        assert found.value_errors[t] == pytest.approx(abs(seen - true) / (2 * before.delta**2), rel=1e-6, abs=1e-9)
        linear = exact.value + g @ (after.w - before.w)
        assert found.model_errors[t] == pytest.approx(abs(MODEL.value(after.w) - linear) / before.delta**2, rel=1e-6)
    assert compared > 3
    models = (found.gradient_errors <= 1) & (found.model_errors <= 1)
    assert found.accurate_models == models.mean()
    assert found.accurate_values == (found.value_errors <= 1).mean()


def test_larger_batches_are_more_accurate():
    """The errors of the first iteration, at the same point and level, fall with the root of the size."""

    def errors(size):
        solver = ProbabilisticIHT(batch=FixedBatch(size), variant="paper")
        asked = {"kappa_g": 1.0, "kappa_f": 1.0, "epsilon_f": 1.0}
        found = [
            model_accuracy(MODEL, Sparsity(4), solver, run(solver, seed, max_iter=1), **asked) for seed in range(40)
        ]
        return np.mean([[one.gradient_errors[0], one.value_errors[0]] for one in found], axis=0)

    ratios = errors(5) / errors(45)  # 3, if the trials were the same
    assert (ratios > 1.5).all()
    assert (ratios < 6).all()


@pytest.mark.parametrize(("accurate", "total"), [(0, 5), (3, 10), (9, 10), (59, 60)])
def test_the_upper_limit_is_the_exact_one_of_the_binomial(accurate, total):
    from hardthresh.diagnostics.probabilistic import _upper_limit

    limit = _upper_limit(accurate, total)
    exact = binomtest(accurate, total, alternative="less").proportion_ci(0.95, method="exact").high
    assert limit == pytest.approx(exact)
    assert binomtest(accurate, total, limit * (1 + 1e-6), alternative="less").pvalue < 0.05
    assert _upper_limit(total, total) == 1.0


def test_lemma_5_holds_for_accurate_values_on_batches():
    """An accepted step whose values were accurate decreases f by (eta1 eta2 - 2 epsilon_f) delta^2."""
    solver = ProbabilisticIHT(batch=FixedBatch(150), variant="paper", eta1=0.5, eta2=0.5)
    bound = probabilistic_guarantee(**{**SETTINGS, "epsilon_f": 0.1}, eta1=0.5, eta2=0.5)
    assert bound.decrease == pytest.approx(0.05)
    accurate = inaccurate = 0
    for seed in range(12):
        states = run(solver, seed, max_iter=25)
        found = model_accuracy(MODEL, Sparsity(4), solver, states, kappa_g=1.0, kappa_f=1.0, epsilon_f=0.1)
        for (before, after), error in zip(pairwise(states), found.value_errors, strict=True):
            if not after.accepted:
                continue
            accurate, inaccurate = accurate + (error <= 0.1), inaccurate + (error > 0.1)
            least = bound.decrease * before.delta**2 if error <= 0.1 else -np.inf
            assert MODEL.value(before.w) - MODEL.value(after.w) >= least
    assert accurate > 20
    assert inaccurate > 20


def test_states_of_other_solvers_are_refused():
    solver = ProbabilisticIHT()
    asked = {"kappa_g": 1.0, "kappa_f": 1.0, "epsilon_f": 1.0}
    others = list(islice(iterate(MODEL, Sparsity(4), IHT()), 3))
    for states, match in ((others, "two successive states"), (run(solver)[:1], "got 1"), ([], "got 0")):
        with pytest.raises(InvalidInputError, match=match):
            model_accuracy(MODEL, Sparsity(4), solver, states, **asked)
    with pytest.raises(InvalidInputError, match="epsilon_f must be a finite number > 0"):
        model_accuracy(MODEL, Sparsity(4), solver, run(solver), **{**asked, "epsilon_f": 0.0})


def test_square_roots_are_those_of_the_budget():
    assert probabilistic_guarantee(**{**SETTINGS, "k": 5000}).needed_alpha == pytest.approx(sqrt(5000) / 10)
