"""Every registered loss keeps the contract of `hardthresh.losses.Loss`."""

from functools import partial

import numpy as np
import pytest
import scipy.special
from cases import OTHER_LIBRARIES, back, convert, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar
from sklearn.metrics import get_scorer, mean_pinball_loss, mean_tweedie_deviance

from hardthresh import losses
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.losses import Logistic
from levels import draws, slow_beyond

POINTWISE = examples("loss", where=lambda loss: isinstance(loss, losses.Loss))
every = pytest.mark.parametrize("loss", POINTWISE)
convex = pytest.mark.parametrize("loss", [loss for loss in POINTWISE if loss.values[0].convex])
"""The flag itself is checked by a test of its own."""

CANDIDATES = np.array([-3.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 7.0])
PREDICTIONS = np.array([-6.3, -2.1, -0.93, -0.17, 0.13, 0.71, 1.86, 5.7])
EXTREMES = np.array([-1e4, -800.0, -40.0, 40.0, 800.0, 1e4])


def targets(loss, dtype=np.float64):
    """Those of some candidates that are in the loss's domain."""
    return CANDIDATES[loss.in_domain(CANDIDATES)].astype(dtype)


def grid(loss, predictions=PREDICTIONS, dtype=np.float64):
    """Every target with every prediction."""
    y, u = np.meshgrid(targets(loss), predictions)
    return y.ravel().astype(dtype), u.ravel().astype(dtype)


@every
def test_some_targets_are_in_the_domain(loss):
    assert targets(loss).size >= 2
    assert loss.domain.strip()


@every
def test_gradient_is_the_derivative_of_the_value(loss):
    y, u = grid(loss)
    h = 1e-5
    slope = (loss.value(y, u + h) - loss.value(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, u), slope, rtol=1e-6, atol=1e-9)


@every
def test_curvature_is_the_derivative_of_the_gradient(loss):
    y, u = grid(loss)
    h = 1e-5
    slope = (loss.gradient(y, u + h) - loss.gradient(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, u), slope, rtol=1e-6, atol=1e-9)


@every
def test_that_holds_for_extreme_predictions_too(loss):
    """Also where an exponential goes on as a polynomial, because it would overflow."""
    y, u = grid(loss, EXTREMES)
    h = 1e-3
    slope = (loss.value(y, u + h) - loss.value(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, u), slope, rtol=1e-5, atol=1e-8)
    slope = (loss.gradient(y, u + h) - loss.gradient(y, u - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, u), slope, rtol=1e-5, atol=1e-8)


def test_a_log_loss_that_is_nearly_zero_keeps_its_digits():
    u = np.array([20.0, 40.0, 300.0, 700.0])
    for y, sign in ((1.0, 1.0), (0.0, -1.0)):
        np.testing.assert_allclose(Logistic().value(np.full_like(u, y), sign * u), np.exp(-u), rtol=1e-8)


@every
def test_value_and_gradient_are_those_of_the_two_methods(loss):
    """To the last bit: a solver may ask for them together or one by one."""
    for dtype in (np.float32, np.float64):
        y, u = grid(loss, np.concatenate([PREDICTIONS, EXTREMES]), dtype)
        value, gradient = loss.value_and_gradient(y, u)
        np.testing.assert_array_equal(value, loss.value(y, u))
        np.testing.assert_array_equal(gradient, loss.gradient(y, u))
        assert value.dtype == gradient.dtype == dtype


@pytest.mark.parametrize(
    "loss", examples("loss", where=lambda loss: isinstance(loss, losses.Loss) and getattr(loss, "quantile", 0.5) == 0.5)
)
def test_the_mean_is_where_the_gradient_vanishes(loss):
    u = PREDICTIONS
    np.testing.assert_allclose(loss.gradient(loss.mean(u), u), 0.0, atol=1e-12 * np.max(np.abs(loss.mean(u))))


@every
@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_example_targets_scatter_around_the_mean(loss, noise):
    rng = np.random.default_rng(0)
    for u in (-1.3, 0.4, 1.1):
        y = loss.example_target(np.full(20_000, u), rng, noise)
        assert y.shape == (20_000,)
        loss.check_targets(y)
        if noise == 1.0 or not loss.classifies:  # less noisy classes are more certain
            error = y.std() / np.sqrt(y.size)
            assert abs(y.mean() - loss.mean(np.array([u]))[0]) <= 5 * error
        elif u > 0:
            assert y.mean() >= loss.mean(np.array([u]))[0]


METRICS = {
    "neg_mean_tweedie_deviance": lambda loss: partial(mean_tweedie_deviance, power=loss.power),
    "neg_mean_pinball_loss": lambda loss: partial(mean_pinball_loss, alpha=loss.quantile),
    "neg_mean_squared_hinge_loss": lambda loss: (
        lambda y, u, sample_weight: np.average(np.where(y * u < 1, 1 - y * u, 0) ** 2 / 2, weights=sample_weight)
    ),
    "neg_mean_huber_loss": lambda loss: (
        lambda y, u, sample_weight: np.average(scipy.special.huber(loss.delta, y - u), weights=sample_weight)
    ),
    "neg_mean_negative_binomial_deviance": lambda loss: (
        lambda y, mean, sample_weight: (
            -2 * np.average(log_ratio_of_negative_binomials(y, mean, loss.theta), weights=sample_weight)
        )
    ),
}
"""The metrics of default scores that are not a registered scorer of scikit-learn, by name."""


def log_ratio_of_negative_binomials(y, mean, theta):
    """Return how much less likely targets are than with their own value as the mean."""
    with np.errstate(divide="ignore"):
        saturated = np.where(y > 0, stats.nbinom.logpmf(y, theta, theta / (theta + y)), 0.0)
    return stats.nbinom.logpmf(y, theta, theta / (theta + mean)) - saturated


@every
def test_the_score_is_that_of_its_name(loss):
    """Estimators score held-out rows by the loss: the same numbers as by the scorer that they name."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-2, 2, 50)
    y, weight = loss.example_target(u, rng), rng.uniform(0.5, 2.0, 50)
    if loss.score_name in METRICS:
        sign, metric = -1, METRICS[loss.score_name](loss)
    else:
        scorer = get_scorer(loss.score_name)
        sign, metric = scorer._sign, scorer._score_func
    if loss.score_name == "neg_mean_pinball_loss":  # the score is the loss itself, not the smoothed one
        loss = losses.Quantile(loss.quantile, 0.0)
    prediction = u if loss.score_name == "neg_mean_squared_hinge_loss" else loss.mean(u)
    theirs = sign * metric(y, prediction, sample_weight=weight)
    np.testing.assert_allclose(-loss.score_scale * np.average(loss.value(y, u), weights=weight), theirs, rtol=1e-12)


@every
@pytest.mark.parametrize("target", [0.2, 0.7])
def test_the_link_is_the_inverse_of_the_mean(loss, target):
    np.testing.assert_allclose(loss.mean(np.array([loss.link(target)])), target, rtol=1e-14)


@slow_beyond(5)
@every
def test_d2_compares_with_the_best_constant(loss):
    rng = np.random.default_rng(0)
    u = rng.uniform(-2, 2, 50)
    y, weight = loss.example_target(u, rng), rng.uniform(0.5, 2.0, 50)
    constants = np.linspace(-3, 3, 2001)
    best = min(np.average(loss.value(y, np.full(50, constant)), weights=weight) for constant in constants)
    expected = 1 - np.average(loss.value(y, u), weights=weight) / best
    np.testing.assert_allclose(loss.d2_score(y, u, weight), expected, atol=1e-5)


@pytest.mark.parametrize(
    "loss", examples("loss", where=lambda loss: isinstance(loss, losses.Loss) and loss.has_likelihood)
)
def test_the_more_likely_of_two_fits_has_the_smaller_loss(loss):
    rng = np.random.default_rng(0)
    u = rng.uniform(-2, 2, 30)
    y, weights = loss.example_target(u, rng), rng.uniform(0.5, 2.0, 30)
    smaller, larger = (loss.minus_twice_log_likelihood(y, v, weights, 30.0) for v in (u, -u))
    assert smaller < larger
    np.testing.assert_allclose(loss.minus_twice_log_likelihood(y, u, 3 * weights, 60.0), 2 * smaller, rtol=1e-12)


LIKELIHOODS = {
    "Squared": lambda y, mean, size: stats.norm.logpdf(y, mean, np.sqrt(size)),
    "Logistic": lambda y, mean, size: stats.bernoulli.logpmf(y, mean),
    "Poisson": lambda y, mean, size: stats.poisson.logpmf(y, mean),
    "Gamma": lambda y, mean, size: stats.gamma.logpdf(y, 1 / size, scale=size * mean),
    "NegativeBinomial": lambda y, mean, size: stats.nbinom.logpmf(y, 1.0, 1 / (1 + mean)),
    "Quantile": lambda y, mean, size: stats.laplace.logpdf(y, mean, 2 * size),
}
"""SciPy's likelihood of targets with a given mean and dispersion, by loss."""


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("noise", [0.05, 1.0, 3.0])
def test_the_likelihood_is_that_of_scipy_at_its_best_dispersion(name, noise):
    """Differences between two fits, since a constant of the data is left out."""
    loss = getattr(losses, name)()
    rng = np.random.default_rng(1)
    u = rng.uniform(-1, 1, 200)
    y = loss.example_target(u, rng, noise if name in ("Squared", "Gamma", "Quantile") else 1.0)

    def theirs(v):
        def misfit(log_size):
            return -2 * np.sum(LIKELIHOODS[name](y, loss.mean(v), np.exp(log_size)))

        return minimize_scalar(misfit, bounds=(-12, 6), method="bounded", options={"xatol": 1e-9}).fun

    def ours(v):
        return loss.minus_twice_log_likelihood(y, v, np.ones(200), 200.0)

    np.testing.assert_allclose(ours(u) - ours(0.3 * u), theirs(u) - theirs(0.3 * u), rtol=1e-6, atol=1e-6)


def test_a_gamma_fit_that_is_nearly_perfect_has_a_finite_likelihood_without_cancellation():
    """-2 log L = n (log(4 pi m) + 1) in the limit of a small mean loss m: that of normal relative errors."""
    y, loss = np.ones(10), losses.Gamma()
    for gap in (0.04, 1e-3, 1e-6, 1e-15):
        u = np.full(10, gap)
        mean = loss.weighted_mean(y, u, y)
        expected = 10 * (np.log(4 * np.pi * mean) + 1)
        np.testing.assert_allclose(loss.minus_twice_log_likelihood(y, u, y, 10.0), expected, rtol=mean + 1e-9)


@every
def test_only_targets_that_count_are_looked_at(loss):
    y = np.append(targets(loss), np.nan)
    loss.check_domain(y, counted=np.isfinite(y))
    with pytest.raises(InvalidInputError, match=rf"y\[{y.size - 1}\] is nan"):
        loss.check_domain(y, counted=np.ones(y.size, dtype=bool))


def test_a_loss_that_is_no_likelihood_says_so():
    for loss in (losses.Huber(), losses.SquaredHinge()):
        assert not loss.has_likelihood
        with pytest.raises(CapabilityError, match=rf"the {type(loss).__name__} loss has no likelihood.* cross-valid"):
            loss.minus_twice_log_likelihood(np.ones(10), np.zeros(10), np.ones(10), 10.0)


@every
def test_targets_in_the_domain_are_accepted(loss):
    loss.check_targets(targets(loss))


@every
def test_a_target_outside_the_domain_is_named(loss):
    outside = [y for y in (*CANDIDATES, np.nan, np.inf, -np.inf) if not loss.in_domain(np.array([y]))[0]]
    assert {repr(float(y)) for y in outside} >= {"nan", "inf", "-inf"}
    good = targets(loss)
    for bad in outside:
        with pytest.raises(InvalidInputError) as error:
            loss.check_targets(np.array([good[0], bad, good[1]]))
        message = str(error.value)
        assert type(loss).__name__ in message
        assert loss.domain in message
        assert f"y[1] is {float(bad)}" in message


@every
def test_extreme_predictions_stay_finite(loss):
    y, u = grid(loss, EXTREMES)  # an overflow warning is an error in this suite
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert np.isfinite(result).all()
    y, u = grid(loss, EXTREMES, np.float32)
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert np.isfinite(result).all()
        assert result.dtype == np.float32


@convex
@given(a=st.floats(-30, 30), b=st.floats(-30, 30))
@draws(60)
def test_a_convex_loss_lies_below_its_chords(loss, a, b):
    y = targets(loss)
    u, v = np.full_like(y, a), np.full_like(y, b)
    chord = 0.5 * (loss.value(y, u) + loss.value(y, v))
    assert (loss.value(y, 0.5 * (u + v)) <= chord + 1e-12 * (1 + np.abs(chord))).all()


@every
def test_the_convexity_flag_is_true(loss):
    y, u = grid(loss, np.linspace(-30, 30, 301))
    assert (loss.curvature(y, u) >= 0).all() == loss.convex


@every
@given(u=st.floats(-1e4, 1e4))
@draws(60)
def test_the_bounds_hold(loss, u):
    y = targets(loss)
    u = np.full_like(y, u)
    assert (loss.value(y, u) >= loss.lower_bound).all()
    assert (loss.curvature(y, u) <= loss.curvature_bound * (1 + 1e-12)).all()


@every
def test_a_loss_falls_for_ever_where_it_says_so_and_nowhere_else(loss):
    y, far = targets(loss), 300.0
    signs = loss.recession(y)
    assert set(signs.tolist()) <= {-1.0, 0.0, 1.0}
    for direction in (-1.0, 1.0):
        u = np.full_like(y, direction * far)
        falls = (loss.gradient(y, u) * direction <= 0) & (loss.value(y, u) > 0)  # which is 0 where it is attained
        np.testing.assert_array_equal(falls, signs == direction)


@every
def test_float32_stays_float32(loss):
    y, u = grid(loss, dtype=np.float32)
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u)):
        assert result.dtype == np.float32
        assert result.shape == u.shape
    np.testing.assert_allclose(loss.value(y, u), loss.value(*grid(loss)), rtol=1e-5, atol=1e-6)


@every
def test_every_example_counts_for_itself(loss):
    y, u = grid(loss)
    for function in (loss.value, loss.gradient, loss.curvature):
        alone = np.concatenate([function(y[i : i + 1], u[i : i + 1]) for i in range(y.size)])
        np.testing.assert_allclose(function(y, u), alone, rtol=1e-14, atol=1e-300)


@every
def test_inputs_are_unchanged(loss):
    y, u = grid(loss)
    before = y.copy(), u.copy()
    for result in (loss.value(y, u), loss.gradient(y, u), loss.curvature(y, u), loss.mean(u)):
        assert not np.shares_memory(result, u)
        assert not np.shares_memory(result, y)
    np.testing.assert_array_equal((y, u), before)


@every
@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_other_array_libraries_agree(loss, library):
    for predictions in (PREDICTIONS, EXTREMES):
        y, u = grid(loss, predictions)
        theirs = convert(y, library), convert(u, library)
        for function in (loss.value, loss.gradient, loss.curvature):
            result = function(*theirs)
            assert type(result) is type(theirs[1])
            np.testing.assert_allclose(back(result), function(y, u), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(back(loss.mean(convert(PREDICTIONS, library))), loss.mean(PREDICTIONS), rtol=1e-12)
    loss.check_targets(convert(targets(loss), library))
    with pytest.raises(InvalidInputError, match="nan"):
        loss.check_targets(convert(np.array([np.nan]), library))


def test_labels_minus_one_and_one_are_refused_with_how_to_recode_them():
    with pytest.raises(InvalidInputError, match=r"y\[0\] is -1.0; recode labels -1 and 1 as \(y \+ 1\) / 2"):
        Logistic().check_targets(np.array([-1.0, 1.0]))
