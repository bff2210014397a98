"""Weights of models in their average, and the features it keeps, against formulas and slow solvers."""

from math import exp

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from hardthresh.losses import Logistic, Multinomial, MultiTask, Squared, pointwise_losses
from hardthresh.selection import exponential_weights, stacking_weights
from hardthresh.selection.averaging import PRIOR, TEMPERATURE, Expendable, kept_by_variance

# exponential weights


def by_formula(deviance, sizes, n, dispersion):
    """The weights, model by model; one without features counts once, and tiny ones are left out."""
    least = min(min(row) for row in deviance)
    found = {}
    for row, size in enumerate(sizes):
        for column, value in enumerate(deviance[row]):
            if size > 0 or column == 0:
                found[row, column] = exp(-n * (value - least) / (TEMPERATURE * dispersion) - PRIOR * size)
    found = {place: weight for place, weight in found.items() if weight >= 1e-3 * max(found.values())}
    weights = np.zeros(np.shape(deviance))
    for place, weight in found.items():
        weights[place] = weight / sum(found.values())
    return weights


@pytest.mark.parametrize("sizes", [[0, 1, 2, 5], [1, 2, 3, 9], [0, 40, 80, 120]])
@pytest.mark.parametrize("seed", range(5))
def test_weights_by_the_formula(seed, sizes):
    rng = np.random.default_rng(seed)
    deviance, n, dispersion = rng.uniform(1.0, 1.3, (4, 3)), rng.integers(20, 200), rng.uniform(0.5, 2.0)
    weights = exponential_weights(deviance, np.array(sizes), n, dispersion)
    assert_allclose(weights, by_formula(deviance.tolist(), sizes, n, dispersion), rtol=1e-12)
    assert_allclose(weights.sum(), 1.0)


def test_the_constants_are_those_of_the_documentation():
    weights = exponential_weights(np.array([[1.5], [1.0]]), np.array([1, 2]), 8.0, 0.5)
    assert_allclose(weights[0] / weights[1], exp(-8.0 * 0.5 / (4 * 0.5) + 0.03))


def test_a_lower_loss_and_fewer_features_weigh_more():
    weights = exponential_weights(np.array([[1.0, 1.01], [1.0, 1.02]]), np.array([1, 2]), 100, 1.0)
    assert weights[0, 0] > weights[1, 0] > weights[1, 1]
    assert weights[0, 0] > weights[0, 1] > weights[1, 1]


def test_only_differences_over_the_dispersion_count():
    deviance, sizes = np.random.default_rng(0).uniform(1, 1.2, (3, 2)), np.array([0, 1, 2])
    weights = exponential_weights(deviance, sizes, 50, 1.0)
    assert_allclose(exponential_weights(deviance + 7.0, sizes, 50, 1.0), weights, rtol=1e-9)
    assert_allclose(exponential_weights(1e200 * deviance, sizes, 50, 1e200), weights, rtol=1e-9)
    assert_allclose(exponential_weights(3 * deviance, sizes, 50, 3.0), weights, rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("worse", "dispersion"), [(1e300, 1e-300), (1e300, 1.0), (1.0, 1e-308)])
def test_losses_that_differ_by_more_than_an_exponential_can_say(worse, dispersion):
    weights = exponential_weights(np.array([[worse, worse], [worse, 0.0]]), np.array([0, 3]), 1e6, dispersion)
    assert_array_equal(weights, [[0.0, 0.0], [0.0, 1.0]])


def test_the_arguments_stay_as_they_are():
    deviance, sizes = np.array([[2.0, 2.0], [1.0, 1.5]]), np.array([0, 1])
    exponential_weights(deviance, sizes, 10, 1.0)
    assert_array_equal(deviance, [[2.0, 2.0], [1.0, 1.5]])


# stacking


def problem(loss, seed, n=80, models=5):
    """Held-out predictions of some models of some quality, and of none."""
    rng = np.random.default_rng(seed)
    truth = 0.7 * rng.standard_normal(n)
    y = loss.example_target(truth, rng, 0.5)
    predictions = truth[:, None] * rng.uniform(-0.3, 0.9, models) + 0.4 * rng.standard_normal((n, models))
    return y, np.full(n, 0.1), predictions, rng.integers(1, 4, n).astype(float)


def slow(loss, y, null, predictions, weight):
    """The weights by a general solver with bounds, from a start of its own."""
    moves = predictions - null[:, None]

    def value(theta):
        return weight @ loss.value(y, null + moves @ theta)

    def gradient(theta):
        return moves.T @ (weight * loss.gradient(y, null + moves @ theta))

    start, bounds = np.full(moves.shape[1], 0.1), [(0.0, None)] * moves.shape[1]
    found = minimize(value, start, jac=gradient, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15})
    return found.x, found.fun


@pytest.mark.parametrize("loss", [cls() for cls in pointwise_losses().values()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_stacking_has_the_least_loss_of_all_combinations(loss, seed):
    y, null, predictions, weight = problem(loss, seed)
    theta = stacking_weights(loss, y, null, predictions, weight)
    expected, least = slow(loss, y, null, predictions, weight)
    moves = predictions - null[:, None]
    assert np.all(theta >= 0)
    assert_allclose(weight @ loss.value(y, null + moves @ theta), least, rtol=1e-8)
    assert_allclose(theta, expected, atol=1e-3)
    slope = moves.T @ (weight * loss.gradient(y, null + moves @ theta))
    size = np.abs(moves).T @ (weight * np.abs(loss.gradient(y, null)))
    assert np.all(slope >= -1e-5 * size), "a larger weight would be better"
    assert np.all(np.abs(slope[theta > 0]) <= 1e-5 * size[theta > 0])


@pytest.mark.parametrize("loss", [Multinomial(3), MultiTask()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_stacking_of_several_predictions(loss, seed):
    rng = np.random.default_rng(seed)
    truth = 1.5 * rng.standard_normal((80, 3))
    y, null = loss.example_target(truth, rng, 1.0), np.full((80, 3), [0.1, 0.0, -0.1])
    predictions = truth[:, None] * rng.uniform(-0.3, 0.9, (4, 1)) + 0.4 * rng.standard_normal((80, 4, 3))
    weight = rng.integers(1, 4, 80).astype(float)
    theta = stacking_weights(loss, y, null, predictions, weight)

    def value(theta):
        return weight @ loss.value(y, null + np.einsum("nmq,m->nq", predictions - null[:, None], theta))

    found = minimize(value, np.full(4, 0.1), bounds=[(0.0, None)] * 4, method="L-BFGS-B", options={"ftol": 1e-15})
    assert np.all(theta >= 0)
    assert_allclose(value(theta), found.fun, rtol=1e-8)
    assert_allclose(theta, found.x, atol=1e-3)


def test_a_weight_is_a_repetition():
    for loss in (Squared(), Logistic()):
        y, null, predictions, weight = problem(loss, 0)
        times = weight.astype(int)
        rows = np.repeat(y, times), np.repeat(null, times), np.repeat(predictions, times, axis=0)
        repeated = stacking_weights(loss, *rows, np.ones(times.sum()))
        assert_allclose(stacking_weights(loss, y, null, predictions, weight), repeated, rtol=1e-6, atol=1e-9)


def test_models_that_are_worse_than_none_have_no_weight():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(60)
    for loss in (Squared(), Logistic()):
        y = loss.example_target(truth, rng, 0.1)
        assert_array_equal(stacking_weights(loss, y, np.zeros(60), np.stack([-truth, -2 * truth], 1), np.ones(60)), 0.0)


def test_a_model_that_predicts_perfectly_has_all_the_weight():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(60)
    predictions = np.stack([rng.standard_normal(60), y, np.zeros(60)], axis=1)
    assert_allclose(stacking_weights(Squared(), y, np.zeros(60), predictions, np.ones(60)), [0, 1, 0], atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_perfectly_separated_classes_have_finite_weights():
    rng = np.random.default_rng(0)
    u = np.where(rng.random(40) > 0.5, 5.0, -5.0)
    theta = stacking_weights(Logistic(), (u > 0).astype(float), np.zeros(40), u[:, None], np.ones(40))
    assert np.isfinite(theta).all()
    assert theta[0] > 1.0


# thinning


def needed(covariance, noise):
    """The contributions to keep, by a loop over the variances of what would be lost."""
    order = sorted(range(len(covariance)), key=lambda j: -covariance[j, j])
    total = sum(covariance[i, j] for i in order for j in order)
    kept = 0
    for count in range(len(order)):
        lost = sum(covariance[i, j] for i in order[count:] for j in order[count:])
        if lost > 0.01 * min(noise, total):
            kept = count + 1
    return order[:kept]


@pytest.mark.parametrize("noise", [0.05, 5.0, np.inf])
@pytest.mark.parametrize("seed", range(10))
def test_the_contributions_that_predictions_need_by_a_naive_loop(seed, noise):
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((30, 9)) * rng.exponential(size=9) ** 4 + rng.uniform(0, 0.5) * rng.standard_normal(9)
    covariance = np.cov(parts.T)
    assert_array_equal(kept_by_variance(covariance, Expendable(noise, 100)), needed(covariance, noise))


def test_large_contributions_that_cancel_stay_together():
    rng = np.random.default_rng(0)
    shared = 1000 * rng.standard_normal(200)
    parts = np.stack([shared + rng.standard_normal(200), 0.01 * rng.standard_normal(200), -shared], axis=1)
    assert kept_by_variance(np.cov(parts.T), Expendable(np.inf, 100)).tolist() in ([0, 2], [2, 0])


def test_nothing_is_kept_of_nothing_and_all_of_what_no_noise_hides():
    assert kept_by_variance(np.zeros((0, 0)), Expendable(1.0, 100)).size == 0
    assert kept_by_variance(np.zeros((3, 3)), Expendable(1.0, 100)).size == 0
    assert kept_by_variance(np.diag([98.0, 2.0, 0.0]), Expendable(np.inf, 100)).tolist() == [0, 1]
    assert kept_by_variance(np.diag([0.5, 99.5, 0.0]), Expendable(np.inf, 100)).tolist() == [1]
    assert kept_by_variance(np.diag([0.5, 99.5, 0.0]), Expendable(10.0, 100)).tolist() == [1, 0]
    assert kept_by_variance(np.diag([0.5, 99.5, 0.0]), Expendable(0.0, 100)).tolist() == [1, 0]


def test_of_many_rows_no_more_is_dropped_than_a_standard_error():
    """A contribution of .3 % of the noise is less than one standard error of 20,000 rows, and more of a million."""
    covariance = np.diag([1.5, 0.003])
    assert kept_by_variance(covariance, Expendable(1.0, 20_000)).tolist() == [0]
    assert kept_by_variance(covariance, Expendable(1.0, 200_000)).tolist() == [0]
    assert kept_by_variance(covariance, Expendable(1.0, 1_000_000)).tolist() == [0, 1]
