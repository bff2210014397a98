"""Lemmas 1 and 2 and Theorem 1 of accelerated hard thresholding, against matrices, hand and runs."""

from math import inf, sqrt

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.diagnostics import accelerated_guarantee, restricted_constants
from hardthresh.objectives import LinearModel
from hardthresh.solvers import AcceleratedIHT, ConstantMomentum
from hardthresh.steps import Fixed

MOMENTA = [-1.3, -1.0, -0.6, 0.0, 0.1, 0.5]


def recursion(found, iterations, start=1.0, noise=0.0):
    """The bound of Lemma 1, one product with A at a time."""
    y, distances = np.array([start, start]), [start]
    for _ in range(iterations):
        y = np.array(found.matrix) @ y + [noise, 0.0]
        distances.append(y[0])
    return np.array(distances)


def test_by_hand():
    """alpha = 3/4 and beta = 5/4: the step is 1, kappa = 5/3, xi = 2 (2/3) / (8/3) = 1/2. With tau = 1/4 ..."""
    found = accelerated_guarantee(0.75, 1.25, 0.25, distance=8.0, precision=1e-3, noise=0.5, beta_noise=1.0)
    assert found.step == 1.0
    assert found.contraction == 0.5
    assert found.matrix == ((0.625, 0.125), (1.0, 0.0))
    # ... lambda^2 - 5/8 lambda - 1/8 = 0: lambda = (5 +- sqrt(57)) / 16
    assert found.eigenvalues == pytest.approx(((5 + sqrt(57)) / 16, (5 - sqrt(57)) / 16))
    assert found.noise_per_step == 1.0  # 4 1 / 2 0.5
    assert found.noise_floor == 4.0  # 1 / (1 - 5/8 - 1/8)
    # log(2 (1 + 3/4) 8 / (1e-3 5/8)) / log(1 / 0.784365) = 10.7103 / 0.242881 = 44.097
    assert found.iterations == 45
    assert not found.in_published_range  # (1 - 1.618 sqrt(1/2)) < 0


@pytest.mark.parametrize("momentum", MOMENTA)
@pytest.mark.parametrize("ratio", [1.0, 0.99, 0.9, 0.5, 0.3])
def test_lemma_2_has_the_eigenvalues_of_the_matrix(momentum, ratio):
    found = accelerated_guarantee(ratio, 1.0, momentum)
    computed = sorted(np.linalg.eigvals(np.array(found.matrix)).real, reverse=True)
    assert found.eigenvalues == pytest.approx(computed, abs=1e-12)
    assert found.applies == (computed[0] < 1.0)
    # momentum never helps the bound, where it shrinks
    assert found.eigenvalues[0] >= found.contraction * (1 - 1e-12) or not found.applies


@pytest.mark.parametrize("momentum", MOMENTA)
@pytest.mark.parametrize("ratio", [0.99, 0.9, 0.5])
def test_lemma_3_has_the_powers_of_the_matrix(momentum, ratio):
    """A^i = (l1^i - l2^i) / (l1 - l2) A - l1 l2 (l1^(i-1) - l2^(i-1)) / (l1 - l2) I."""
    found = accelerated_guarantee(ratio, 1.0, momentum)
    A, (first, second) = np.array(found.matrix), found.eigenvalues
    for i in (1, 2, 3, 7, 20):
        power = (first**i - second**i) * A - first * second * (first ** (i - 1) - second ** (i - 1)) * np.eye(2)
        np.testing.assert_allclose(power / (first - second), np.linalg.matrix_power(A, i), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("momentum", MOMENTA)
@pytest.mark.parametrize("precision", [2.0, 1.0, 0.3, 1e-3, 1e-9])
def test_theorem_1_follows_from_the_recursion(momentum, precision):
    found = accelerated_guarantee(0.8, 1.0, momentum, precision=precision)
    distances = recursion(found, 400)
    np.testing.assert_allclose(found.distances(400), distances)
    assert found.recursion_iterations == np.argmax(distances <= precision)
    assert found.recursion_iterations <= found.iterations
    if momentum == -1.0:
        assert found.iterations == inf  # the published gap of the eigenvalues is nought
    else:
        # both count to the same accuracy but for the constant 2 (1 + c) / (lambda_1 - |lambda_2|)
        assert found.iterations - found.recursion_iterations <= 60


def test_the_range_that_is_published_lies_within_that_of_the_matrix():
    for ratio in (0.7, 0.8, 0.95, 0.999):
        for momentum in np.linspace(-2.0, 2.0, 81):
            found = accelerated_guarantee(ratio, 1.0, momentum)
            assert found.applies or not found.in_published_range
    assert accelerated_guarantee(0.95, 1.0, 0.5).in_published_range
    # xi = 0.2 / 1.9: the range ends at 0.905; with 1 - alpha / beta = 0.1 it would at 0.954
    assert accelerated_guarantee(0.9, 1.0, 0.9).in_published_range
    assert not accelerated_guarantee(0.9, 1.0, -0.93).in_published_range
    assert accelerated_guarantee(0.95, 1.0, 3.0).in_published_range == (1 / (1.618034 * sqrt(0.1 / 1.95)) > 4.0)


def test_equal_constants_forget_everything_in_one_iteration():
    found = accelerated_guarantee(2.0, 2.0, 0.7, noise=1.0)
    assert (found.contraction, found.eigenvalues, found.iterations, found.recursion_iterations) == (0, (0, 0), 1, 1)
    assert found.noise_floor == found.noise_per_step == sqrt(2)
    np.testing.assert_array_equal(found.distances(3), [1.0, sqrt(2), sqrt(2), sqrt(2)])
    assert found.in_published_range


@pytest.mark.parametrize("momentum", [-0.5, 0.0, 0.25])
@pytest.mark.parametrize("ratio", [1 / 3 - 1e-9, 0.2, 1e-6])
def test_a_condition_number_of_3_is_vacuous(ratio, momentum):
    found = accelerated_guarantee(ratio, 1.0, momentum, noise=0.1)
    assert "vacuous" in found.failures[0]
    assert found.iterations == found.recursion_iterations == found.noise_floor == inf


def test_harder_problems_are_promised_less():
    base = {"alpha": 0.8, "beta": 1.0, "momentum": 0.1, "distance": 1.0, "precision": 1e-6, "noise": 0.1}
    for harder in ({"alpha": 0.7}, {"beta": 1.1}, {"momentum": 0.2}, {"distance": 9.0}, {"precision": 1e-7}):
        more, less = accelerated_guarantee(**{**base, **harder}), accelerated_guarantee(**base)
        assert more.iterations > less.iterations
        assert more.recursion_iterations > less.recursion_iterations
        assert more.noise_floor > less.noise_floor or not harder.keys() & {"alpha", "momentum"}
    assert accelerated_guarantee(**{**base, "noise": 0.2}).noise_floor == pytest.approx(
        2 * accelerated_guarantee(**base).noise_floor
    )


def test_units_do_not_matter():
    one = accelerated_guarantee(0.8, 1.0, 0.1, distance=3.0, precision=1e-3)
    other = accelerated_guarantee(80.0, 100.0, 0.1, distance=3e4, precision=10.0)
    assert other.step == pytest.approx(one.step / 100)
    assert other.eigenvalues == pytest.approx(one.eigenvalues)
    assert other.iterations == one.iterations


@pytest.mark.parametrize("momentum", [-0.9, -0.3, 0.0, 0.2])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_lemma_1_holds_along_runs_that_satisfy_it(momentum, noise, seed):
    """11 columns, k = 2: the constants of all supports of 4k = 8 columns are known, and no difference is larger."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 11))
    truth = np.zeros(11)
    truth[rng.choice(11, 2, replace=False)] = [1.0, -0.2]
    errors = noise * rng.standard_normal(400)
    f = LinearModel(X, X @ truth + errors)
    exact = restricted_constants(f, 8)
    bound = accelerated_guarantee(
        exact.strong_convexity,
        exact.smoothness,
        momentum,
        distance=float(np.linalg.norm(truth)),
        noise=float(np.sqrt(np.mean(errors**2))),
        beta_noise=restricted_constants(f, 4).smoothness,
    )
    assert bound.applies
    states = []
    solver = AcceleratedIHT(variant="paper", momentum=ConstantMomentum(momentum), step=Fixed(bound.step))
    ht.minimize(f, Sparsity(2), solver, max_iter=40, tol=0.0, callback=states.append)
    d = np.array([np.linalg.norm(state.w - truth) for state in states])
    before = np.append(d[0], d[:-2])  # of the iteration before the last
    (now, last), _ = bound.matrix
    assert len(d) > 10
    assert (d[1:] <= now * d[:-1] + last * before + bound.noise_per_step + 1e-15).all()
    assert (d <= bound.distances(len(d) - 1) + 1e-15).all()


def test_lemma_1_is_nearly_attained_where_the_wrong_column_is_kept():
    """The worst of many single steps with tau = 0 is 0.81 of the bound: the golden ratio in the place of its 2.

    (Shen and Li, A tight bound of hard thresholding, 2018.) The truth is (1, 0), and k = 1.
    """
    hessian, truth = np.array([[1.0, 0.4], [0.4, 1.0]]), np.array([1.0, 0.0])
    bound = accelerated_guarantee(0.6, 1.4, 0.0)
    angles, radii = np.meshgrid(np.linspace(0.0, 2 * np.pi, 361), np.linspace(0.05, 6.0, 240))
    error = radii.ravel() * np.array([np.cos(angles.ravel()), np.sin(angles.ravel())])
    reached = truth[:, None] + error - bound.step * hessian @ error
    kept = np.where(np.abs(reached) == np.abs(reached).max(axis=0), reached, 0.0)
    worst = np.max(np.linalg.norm(kept - truth[:, None], axis=0) / radii.ravel())
    assert 0.8 * bound.contraction <= worst <= 0.25 * (1 + sqrt(5)) * bound.contraction * (1 + 1e-12)
