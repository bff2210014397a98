"""The theorems of Sparse Polyak: their formulas by hand, and runs that satisfy all of their assumptions."""

from dataclasses import astuple
from math import ceil, exp, inf, log, sqrt

import numpy as np
import pytest
import scipy.sparse as sp

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import InvalidInputError
from hardthresh.diagnostics import sparse_polyak_guarantee, statistical_constants
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import AdaptiveSparsePolyak, SparsePolyak
from levels import at_most, slow_beyond


def test_theorem_1_by_hand():
    """With L = 3, mu = 2.1, tau = 0.01, k = 10 the bars are 3.3 and 1.8, so that kappa = 11/6."""
    found = sparse_polyak_guarantee(3.0, 2.1, 0.3, k=10, k_star=2, tolerance=0.01, distance=50.0, smallest=1.2)
    assert found.condition == pytest.approx(11 / 6)
    assert found.needed_k == ceil((240 * 11 / 6) ** 2 * 2) == 387200
    assert found.rate == pytest.approx(1 - 6 / 880)
    assert found.least_step == pytest.approx(1 / 132)
    assert found.radius == pytest.approx(1.0)  # 6 0.3 / 1.8
    assert found.final_radius == pytest.approx(sqrt(886 / 880))
    assert found.needed_smallest == pytest.approx(7 / 6)
    assert found.support_found
    steps = int(found.iterations)
    assert found.rate**steps * 50**2 <= 1.0 < found.rate ** (steps - 1) * 50**2
    assert found.failures == ("k = 10 is below the needed 387,200",)
    assert found.value_gap is found.epochs is found.gradients is None


def test_theorem_2_by_hand():
    """kappa = 3/2 and c = 160: 1 / (160 kappa) = 1/240. The radius is 6 0.1 / 2 = 0.3."""
    found = sparse_polyak_guarantee(
        3.0, 2.0, 0.1, k=1_036_800, k_star=2, theorem="learned target", distance=10.0, gap=100.0
    )
    assert found.applies  # (480 3/2)^2 2 = 1,036,800
    assert found.final_radius == pytest.approx(sqrt(241 / 240) * 0.3)
    assert found.value_gap == pytest.approx(241 / 240 * 5 * 0.09)
    # T = ceil(log(100 / (241/240 0.09)) / log(240/239)) = ceil(7.00896... / 0.00417537...)
    assert found.iterations == ceil(log(100 / (241 / 240 * 0.09)) / log(240 / 239)) == 1679
    assert found.epochs == ceil(1 + 8.78817)  # log2(200 / 0.451875)
    assert found.gradients == found.epochs * found.iterations
    assert not sparse_polyak_guarantee(3.0, 2.0, 0.1, k=1_036_799, k_star=2, theorem="learned target").applies


def test_corollary_5_by_hand():
    """The norm of the coefficients is 2: R = 4, R_0 = 17. With kappa = 2 the far rate is 1 - 1/(160 17 4)."""
    found = sparse_polyak_guarantee(2.0, 1.0, 0.05, k=5, k_star=1, theorem="generalised linear model", distance=2.0)
    assert found.rate == pytest.approx(1 - 1 / 10880)
    assert found.needed_k == (480 * 17 * 4) ** 2
    assert found.final_radius == pytest.approx(0.3 * sqrt(1 + 1 / 10880))
    far, near = log(4) / -np.log1p(-1 / 10880), log(0.09) / np.log1p(-1 / 320)
    assert found.iterations == ceil(far) + ceil(near)
    assert found.least_step is None
    short = sparse_polyak_guarantee(2.0, 1.0, 0.05, k=5, k_star=1, theorem="generalised linear model", distance=0.5)
    assert short.iterations == ceil(log(0.09 / 0.25) / np.log1p(-1 / 320))
    assert len(found.failures) == 1
    noisy = sparse_polyak_guarantee(2.0, 1.0, 0.142, k=5, k_star=1, theorem="generalised linear model", distance=2.0)
    assert noisy.failures[1] == "the strong convexity 1 is not above 5 sqrt(2) gradient_norm = 1.004"
    with pytest.raises(InvalidInputError, match="distance is needed"):
        sparse_polyak_guarantee(2.0, 1.0, 0.05, k=5, k_star=1, theorem="generalised linear model")


def test_without_noise_it_converges_to_the_target_itself():
    found = sparse_polyak_guarantee(1.0, 1.0, 0.0, k=57_600, k_star=1, distance=1.0, smallest=1e-300)
    assert found.applies
    assert (found.radius, found.final_radius, found.iterations, found.support_found) == (0.0, 0.0, inf, True)
    assert found.rate == 1 - 1 / 80
    learned = sparse_polyak_guarantee(1.0, 1.0, 0.0, k=9, k_star=1, theorem="learned target", distance=1.0, gap=1.0)
    assert (learned.value_gap, learned.epochs) == (0.0, inf)
    at_the_target = sparse_polyak_guarantee(
        1.0, 1.0, 0.1, k=9, k_star=1, theorem="learned target", distance=0.0, gap=0.0
    )
    assert (at_the_target.iterations, at_the_target.epochs, at_the_target.gradients) == (0, 1, 0)


def test_a_tolerance_that_eats_the_convexity_is_vacuous():
    found = sparse_polyak_guarantee(3.0, 0.9, 0.1, k=10, k_star=1, tolerance=0.04, distance=1.0)
    assert found.rate == 1.0
    assert (found.radius, found.needed_k, found.needed_smallest) == (inf, inf, inf)
    assert "vacuous" in found.failures[0]


@pytest.mark.parametrize("theorem", ["known target", "learned target", "generalised linear model"])
def test_harder_problems_are_promised_less(theorem):
    def promised(L=2.0, mu=1.0, size=0.01, tau=0.0, start=3.0):
        found = sparse_polyak_guarantee(
            L, mu, size, k=20, k_star=4, tolerance=tau, theorem=theorem, distance=start, gap=5.0
        )
        return np.array([found.needed_k, found.rate, found.radius, found.iterations])

    for harder in ({"L": 3.0}, {"mu": 0.5}, {"tau": 0.01}, {"size": 0.02}, {"start": 4.0}):
        more, less = promised(**harder), promised()
        if "size" in harder:
            more, less = more[:3], less[:3]  # a larger radius is reached sooner
        assert (more >= less).all()
        assert (more > less).any()


@slow_beyond(1)
@at_most(2)
@pytest.mark.parametrize(("kappa", "noise"), [(1.0, 0.0), (1.0, 0.02), (1.1, 0.02), (1.1, 0.0)])
def test_theorem_1_holds_along_a_run_that_satisfies_it(kappa, noise):
    """Orthogonal columns of lengths sqrt(mu) to sqrt(L): on every support the constants are exactly mu and L.

    The budget is the needed one, 57,600 kappa^2, and the true vector has one non-zero.
    """
    k, d = ceil(57_600 * kappa**2), 100_000
    rng = np.random.default_rng(0)
    curvature = np.linspace(1.0, kappa, d)
    truth = np.zeros(d)
    truth[7] = 3.0
    # sum of squares over d rows: f = sum curvature (w - centre)^2 / 2
    centre = truth + noise * rng.standard_normal(d)
    roots = np.sqrt(curvature)
    f = LinearModel(sp.diags_array(np.sqrt(d) * roots).tocsr(), np.sqrt(d) * roots * centre)
    at = f.evaluate(truth)
    size = float(np.linalg.norm(Sparsity(k).hard_threshold(at.gradient)))
    start = rng.standard_normal(d) * (rng.random(d) < 0.5 * k / d)  # far from the truth, and feasible
    bound = sparse_polyak_guarantee(
        kappa, 1.0, size, k=k, k_star=1, distance=float(np.linalg.norm(start - truth)), smallest=3.0
    )
    assert bound.applies
    states = []
    run = ht.minimize(
        f, Sparsity(k), IHT(step=SparsePolyak(target=at.value)), start, max_iter=40, tol=0.0, callback=states.append
    )
    squares = np.array([np.sum((state.w - truth) ** 2) for state in states])
    outside = squares >= bound.radius**2
    assert outside[:4].all()
    moves = outside[:-1]
    assert (squares[1:][moves] <= bound.rate * squares[:-1][moves]).all()
    assert (run.history["step"][: moves.sum()] >= bound.least_step).all()
    if noise:
        first = int(np.argmin(outside))
        assert 0 < first <= bound.iterations
        assert (squares[first:] <= bound.final_radius**2).all()
        assert bound.support_found == (bound.needed_smallest <= 3.0)
    elif kappa == 1.0:
        # f = e^2/2, g = e, step = 1/10: the squared distance falls by 0.81, where 1 - 1/80 is promised
        np.testing.assert_allclose(squares[1:20] / squares[:19], 0.81, rtol=1e-6)


@pytest.mark.slow
def test_theorem_2_holds_along_a_run_that_satisfies_it():
    """As above with kappa = 1, where the budget is 480^2 = 230,400; a bound of 30 too low is learned away."""
    k, d = 230_400, 300_000
    rng = np.random.default_rng(1)
    truth = np.zeros(d)
    truth[7] = 3.0
    f = LinearModel(np.sqrt(d) * sp.eye_array(d, format="csr"), np.sqrt(d) * (truth + 9e-4 * rng.standard_normal(d)))
    # the minimiser over vectors of one non-zero is the centre on it
    best = np.zeros(d)
    best[7] = f.evaluate(truth).point[7] - f.evaluate(truth).gradient[7]
    at = f.evaluate(best)
    size = float(np.linalg.norm(Sparsity(k).hard_threshold(at.gradient)))
    bound = sparse_polyak_guarantee(
        1.0, 1.0, size, k=k, k_star=1, theorem="learned target", distance=float(np.linalg.norm(best)), gap=30.0
    )
    assert bound.applies
    rule = AdaptiveSparsePolyak(lower_bound=at.value - 30.0, epoch_length=int(bound.iterations))
    states = []
    assert 3 * bound.iterations <= bound.gradients < 400
    ht.minimize(f, Sparsity(k), IHT(step=rule), max_iter=int(bound.gradients), tol=0.0, callback=states.append)
    lowest = min(states, key=lambda state: state.value)
    assert lowest.value - at.value <= bound.value_gap
    assert np.linalg.norm(lowest.w - best) <= bound.final_radius


@pytest.mark.parametrize(
    ("model", "squared", "constants", "missing"),
    [
        # n = 1000, d = 100, k = 10, C = 1.5, sigma = 0.5, zeta = 2, c = 0.7, |w*| = 0.25, eigenvalues 0.4 and 3
        ("least squares", 8 * 2.25 * 0.25 * 10 * log(100) / 1000, (6.0, 0.2, 0.7 * 2 * log(100) / 1000), 2 / 100),
        (
            "logistic",
            2 * 2.25 * 10 * log(100) / 1000,
            (1 - 30 * 1.4 * exp(-1) * log(100) / 1000, 0.2 * exp(-1), 1.4 * exp(-1) * log(100) / 1000),
            2 / 100,
        ),
        ("low rank", 200 * 0.25 * 2 * 10 * 100 / 1000, (6.0, 0.2, 0.7 * 2 * 100 / 1000), 0.0),
        ("generalised linear model", 0.49 * 10 * log(100) / 1000, (3.0, 0.4, 0.7 * log(100) / 1000), 0.7 / 100),
    ],
)
def test_the_corollaries_by_hand(model, squared, constants, missing):
    found = statistical_constants(
        model,
        **{"n": 1000, "d": 100, "k": 10, "eigenvalues": (0.4, 3.0), "noise": 0.5, "column_norm": 1.5},
        **{"variance": 2.0, "signal": 0.25, "constant": 0.7},
    )
    assert astuple(found)[:3] == pytest.approx(constants)
    assert found.gradient_norm**2 == pytest.approx(squared)
    assert found.probability == pytest.approx(1 - missing)
    assert found.applies == (30 * found.tolerance < found.strong_convexity)


@pytest.mark.parametrize(
    ("model", "radius"),
    [
        ("least squares", lambda n, d, k, mu: 288 * 0.25 * k * log(d) / (n * mu**2)),
        ("logistic", lambda n, d, k, mu: 72 * k * log(d) / (n * mu**2)),
        ("low rank", lambda n, d, k, mu: 7200 * 0.25 * k * d / (n * mu**2)),
        ("generalised linear model", lambda n, d, k, mu: 36 * k * log(d) / (n * mu**2)),
    ],
)
def test_the_radii_are_those_of_the_corollaries(model, radius):
    n, d, k = 10**6, 200, 5
    found = statistical_constants(model, n=n, d=d, k=k, eigenvalues=(0.5, 2.0), noise=0.5)
    bound = sparse_polyak_guarantee(
        found.smoothness, found.strong_convexity, found.gradient_norm, k=k, k_star=1, tolerance=found.tolerance
    )
    mu = found.strong_convexity - 3 * found.tolerance * k
    assert bound.radius**2 == pytest.approx(radius(n, d, k, mu))
    if model == "logistic":
        assert bound.condition == pytest.approx(1 / mu)


@pytest.mark.parametrize("model", ["least squares", "logistic", "low rank", "generalised linear model"])
@pytest.mark.parametrize("n", [1, 10, 20, 40, 60, 80, 100, 120, 150, 200, 500, 10_000, 10**7])
@pytest.mark.parametrize("eigenvalues", [(0.1, 0.9), (0.5, 2.0), (3.0, 3.0)])
def test_the_constants_of_every_model_can_be_handed_on(model, n, eigenvalues):
    """Of few examples nothing follows, and both records say so."""
    found = statistical_constants(model, n=n, d=1000, k=5, eigenvalues=eigenvalues, constant=0.5)
    assert 0.0 < found.strong_convexity <= found.smoothness
    bound = sparse_polyak_guarantee(
        found.smoothness, found.strong_convexity, found.gradient_norm, k=5, k_star=1, tolerance=found.tolerance
    )
    assert (bound.rate < 1.0) == found.applies
    if model == "logistic" and eigenvalues[1] < 1.0 and found.applies:
        assert found.smoothness + 15 * found.tolerance == pytest.approx(1.0)


def test_a_signal_so_large_that_no_convexity_is_left_is_refused():
    with pytest.raises(InvalidInputError, match=r"signal = 500\.0 leaves no strong convexity"):
        statistical_constants("logistic", n=100, d=10, k=2, eigenvalues=(0.5, 1.0), signal=500.0)


def test_the_bound_of_the_gradient_holds_in_simulations():
    """Corollary 4 claims a probability of 1 - 2/d = 0.96; its bound is three times the mean, so it always holds."""
    n, d, k = 400, 50, 5
    rng = np.random.default_rng(0)
    largest = []
    for _ in range(200):
        X = rng.standard_normal((n, d))
        X *= np.sqrt(n) / np.linalg.norm(X, axis=0)
        gradient = X.T @ (0.3 * rng.standard_normal(n)) / n
        largest.append(np.linalg.norm(Sparsity(k).hard_threshold(gradient)))
    bound = statistical_constants("least squares", n=n, d=d, k=k, eigenvalues=(1.0, 1.0), noise=0.3).gradient_norm
    assert np.mean(np.array(largest) <= bound) >= 1 - 2 / d
    assert np.mean(largest) > bound / 3  # and it is not far off
