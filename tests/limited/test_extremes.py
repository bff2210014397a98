"""Numbers near the ends of float64: finite coefficients and a reason, or the truth, and never a warning of NumPy."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hardthresh as ht
from hardthresh.core import InvalidInputError, Status
from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    CostModel,
    DantzigSelector,
    Exploitation,
    Exploration,
    Hybrid,
    Learner,
    LogisticHybrid,
    RegularizedDualAveraging,
    learn,
)
from levels import at_most, in_turn

D = 10
ALGORITHMS = {
    "adaptive": AdaptiveHybrid(2),
    "logistic": LogisticHybrid(2),
    "exploration": Exploration(0.1, 10, 2),
    "exploitation": Exploitation(0.1, 10),
    "hybrid": Hybrid(0.1, 10, 20, n_nonzero_coefs=2),
    "dual averaging": RegularizedDualAveraging(2, 5.0),
    "dense dual averaging": RegularizedDualAveraging(2, 20.0, gradient="dense"),
    "Dantzig": DantzigSelector(2),
}
SIZES = [1e-300, 1e-200, 1e20, 1e100, 3e153, 1e155, 2e300, 9e307]


def table(n=150):
    X = np.clip(np.random.default_rng(0).standard_normal((n, D)), -1.5, 1.5)
    return X, X[:, 1] - X[:, 2] / 4


@pytest.fixture(autouse=True)
def no_warning_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.slow
@at_most(2)
@in_turn("name,what", list(ALGORITHMS), ["X", "y", "one of X", "one of y"])
def test_coefficients_are_finite_whatever_the_size_of_the_numbers(name, what):
    w0 = np.eye(D)[1] if name == "exploitation" else None
    for size in SIZES:
        X, y = table()
        y = (y > 0).astype(float) if name == "logistic" else y
        if what == "X":
            X = X * size
        elif what == "one of X":
            X[77] *= size
        elif name != "logistic":
            y[slice(None) if what == "y" else 77] *= size
        run = learn(ALGORITHMS[name], ArraySource(X, y, n_observed=5, shuffle=False), w0)
        assert np.all(np.isfinite(run.w))
        assert np.isfinite(run.intercept)
        if run.status is Status.DIVERGED:
            assert "rescale" in run.message
            assert "rescale" in run.failure_reason


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e154, 2e300, 9e307])
def test_a_regression_says_that_targets_have_to_be_rescaled(size):
    X, y = table(2000)
    with pytest.warns(ConvergenceWarning, match="rescale"):
        model = ht.LimitedAttributeRegression(n_nonzero_coefs=2).fit(X, size * y)
    assert np.all(np.isfinite(model.coef_))
    assert np.isfinite(model.intercept_)
    assert not model.converged_
    assert "rescale" in model.stop_reason_


def test_answers_after_an_overflow_are_not_paid():
    X, y = table(2000)
    run = learn(AdaptiveHybrid(2), ArraySource(X, 2e300 * y, n_observed=5))
    assert run.status is Status.DIVERGED
    assert run.meter.examples == 32
    assert "smaller step" not in run.message  # there are no steps


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("size", [1e-140, 1e-30, 1e30, 1e140])
def test_what_can_be_squared_is_learned_at_any_scale(size):
    X, y = table(2000)
    models = [
        ht.LimitedAttributeRegression(n_nonzero_coefs=2).fit(*numbers)
        for numbers in ((X, y), (X, size * y), (size * X, y))
    ]
    for model, unit in zip(models, (1.0, size, 1 / size), strict=True):
        assert model.converged_
        assert model.support_.tolist() == [1, 2]
        np.testing.assert_allclose(model.coef_[[1, 2]] / unit, [1.0, -0.25], rtol=1e-6)


def test_an_answer_too_large_to_be_squared_changes_nothing():
    learner = Learner.of(AdaptiveHybrid(1), CostModel.of(3, 2))
    with pytest.raises(InvalidInputError, match=r"attribute 1 of example 0 is 1e\+200; numbers above 1e\+150 in size"):
        learner.tell(0, [0.0, 1e200], 1.0)
    with pytest.raises(InvalidInputError, match=r"the target of example 0 is -2e\+300; .* rescale them"):
        learner.tell(0, [0.0, 1.0], -2e300)
    assert learner.meter.examples == 0
    learner.tell(0, [0.0, 1e150], -1e150)
    assert learner.meter.examples == 1


def test_coefficients_that_overflow_at_the_very_end_are_those_of_before():
    """The moments are finite, but not the ratio of the scales of target and attributes."""
    X, y = table()
    run = learn(AdaptiveHybrid(2), ArraySource(1e-153 * X, 1e153 * np.clip(50 * y, -1, 1), n_observed=D))
    assert np.all(np.isfinite(run.w))
    assert np.isfinite(run.intercept)


@pytest.mark.parametrize("price", [1e-300, 1e300, 5e307])
def test_prices_of_any_size(price):
    X, y = table(1000)
    costs = price * np.linspace(0.5, 1.0, D)
    model = ht.LimitedAttributeRegression(n_nonzero_coefs=2, costs=costs, budget=3 * price).fit(X, y)
    assert model.support_.tolist() == [1, 2]
    assert model.budget_.max_per_example < D


def test_predictions_that_overflow_are_infinite():
    X, y = table()
    model = ht.LimitedAttributeRegression(n_nonzero_coefs=2).fit(X, 1e100 * y)
    assert model.predict(np.where(np.arange(D) == 1, 1e300, 0.0)[None]).tolist() == [np.inf]


@pytest.mark.slow
def test_a_target_around_zero_is_not_called_smaller_than_it_is():
    """Its mean is far smaller than its entries, whose squares do not underflow."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5))
    y = X[:, 0] - X[:, 0].mean() + 1e-3
    model = ht.LimitedAttributeRegression(2, 5).fit(X, 1e-149 * y)
    assert model.converged_, model.stop_reason_
    np.testing.assert_allclose(model.coef_[0], 1e-149, rtol=1e-6)
    with pytest.warns(ConvergenceWarning, match="the target is so small, about 1e-155, that its squares underflow"):
        ht.LimitedAttributeRegression(2, 5).fit(X, 1e-155 * (y + 1))
