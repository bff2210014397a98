"""The score of a regression: the share of deviance that it removes, as scikit-learn's regressors compute it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance, r2_score

from hardthresh import SparseGammaRegression, SparseHuberRegression, SparseLinearRegression, SparsePoissonRegression
from hardthresh.core.errors import InvalidInputError

POWERS = {SparseLinearRegression: 0, SparsePoissonRegression: 1, SparseGammaRegression: 2}
TWINS = [(SparsePoissonRegression, PoissonRegressor), (SparseGammaRegression, GammaRegressor)]


def fitted(cls, **settings):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = cls()._loss.example_target(0.5 * X[:, 1] - 0.4 * X[:, 3] + 1, rng, 0.5)
    return cls(n_nonzero_coefs=2, **settings).fit(X, y), X, y, rng.integers(0, 3, 80).astype(float)


@pytest.mark.parametrize("cls", POWERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_is_the_share_of_deviance_removed(cls, weighted):
    model, X, y, weight = fitted(cls)
    weight = weight if weighted else None
    theirs = d2_tweedie_score(y, model.predict(X), sample_weight=weight, power=POWERS[cls])
    assert 0.1 < theirs < 0.99
    assert_allclose(model.score(X, y, weight), theirs, rtol=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), TWINS)
def test_the_score_is_that_of_the_regressor_of_scikit_learn(ours, theirs):
    model, X, y, weight = fitted(ours)
    twin = theirs(alpha=0.0).fit(X, y)
    twin.coef_, twin.intercept_ = model.coef_, model.intercept_
    assert_allclose(model.score(X, y, weight), twin.score(X, y, weight), rtol=1e-10)


def test_the_null_model_of_a_score_has_the_offset_too():
    """The best rate for exposures e is sum y / sum e."""
    _, X, y, weight = fitted(SparsePoissonRegression)
    exposure = np.random.default_rng(1).uniform(0.2, 5.0, 80)
    y = np.round(y * exposure)
    model = SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y, weight, np.log(exposure))
    mean = model.predict(X, np.log(exposure))
    null = exposure * (weight @ y) / (weight @ exposure)
    lost, all_of_it = (mean_poisson_deviance(y, u, sample_weight=weight) for u in (mean, null))
    assert_allclose(model.score(X, y, weight, np.log(exposure)), 1 - lost / all_of_it, rtol=1e-10)


def test_least_squares_and_hubers_loss_have_one_score_where_their_coefficients_are_equal():
    """With a delta above all residuals Huber's loss is that of least squares."""
    model, X, y, weight = fitted(SparseLinearRegression)
    offset = np.random.default_rng(2).normal(2.0, 3.0, 80)
    for known in (None, offset):
        model.fit(X, y, weight, known)
        robust = SparseHuberRegression(n_nonzero_coefs=2, delta=1e3).fit(X, y, weight, known)
        assert_allclose(robust.coef_, model.coef_, rtol=1e-9)
        assert_allclose(robust.score(X, y, weight, known), model.score(X, y, weight, known), rtol=1e-9)
    residuals = y - model.predict(X, offset)
    centred = y - offset - np.average(y - offset, weights=weight)
    assert_allclose(robust.score(X, y, weight, offset), 1 - weight @ residuals**2 / (weight @ centred**2), rtol=1e-9)


def test_the_score_of_hubers_regression_is_r2_with_outliers_too():
    model, X, y, weight = fitted(SparseHuberRegression)
    y[::7] += 20.0
    offset = np.random.default_rng(2).normal(2.0, 3.0, 80)
    model.fit(X, y, weight)
    assert_allclose(model.score(X, y, weight), r2_score(y, model.predict(X), sample_weight=weight), rtol=1e-12)
    model.fit(X, y + offset, weight, offset)
    expected = r2_score(y, model.predict(X, offset) - offset, sample_weight=weight)
    assert_allclose(model.score(X, y + offset, weight, offset), expected, rtol=1e-9)


def test_the_score_of_least_squares_is_still_r2():
    model, X, y, weight = fitted(SparseLinearRegression)
    assert model.score(X, y, weight) == r2_score(y, model.predict(X), sample_weight=weight)


@pytest.mark.parametrize(("cls", "wrong"), [(SparsePoissonRegression, -1.0), (SparseGammaRegression, 0.0)])
def test_targets_outside_the_domain_are_refused_as_by_fit(cls, wrong):
    model, X, y, weight = fitted(cls)
    y[5], weight[5] = wrong, 1.0
    for method in (model.fit, model.score):
        with pytest.raises(
            InvalidInputError, match=rf"loss needs targets that are finite numbers .*; y\[5\] is {wrong}"
        ):
            method(X, y)
    weight[5] = 0.0
    assert np.isfinite(model.score(X, y, weight))


def test_equal_targets_have_no_deviance_to_remove():
    model, X, _, _ = fitted(SparsePoissonRegression)
    assert model.score(X, np.zeros(80)) == 0.0
    model.coef_, model.intercept_ = 0 * model.coef_, 0.0
    assert model.score(X, np.ones(80)) == 1.0


def test_the_score_of_predictions_that_overflow_is_finite():
    model, X, y, _ = fitted(SparsePoissonRegression)
    model.intercept_ = 1e3
    assert -np.inf < model.score(X, y) < -1e10
