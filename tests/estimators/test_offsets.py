"""Offsets of models with a log link, of any size: an offset of 40 multiplies the mean by 2e17."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hardthresh as ht
from levels import in_turn

MODELS = {"poisson": ht.SparsePoissonRegression, "gamma": ht.SparseGammaRegression}


def table(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 4))
    mean = np.exp(0.5 * X[:, 0] + 1.0)
    return X, rng.poisson(mean) if loss == "poisson" else rng.gamma(2.0, 0.5 * mean), rng


@in_turn("loss,constant", list(MODELS), [-300.0, -40.0, 40.0, 300.0])
def test_a_constant_offset_is_part_of_the_intercept(loss, constant):
    X, y, _ = table(loss)
    plain = MODELS[loss](n_nonzero_coefs=2).fit(X, y)
    moved = MODELS[loss](n_nonzero_coefs=2).fit(X, y, offset=np.full(150, constant))
    assert_array_equal(moved.support_, plain.support_)
    assert_allclose(moved.coef_, plain.coef_, rtol=1e-5)
    assert_allclose(moved.intercept_, plain.intercept_ - constant, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("loss", MODELS)
@pytest.mark.parametrize("deviation", [5.0, 15.0, 20.0])
@pytest.mark.filterwarnings("ignore:offset goes from")  # further than logarithms do
def test_the_mean_is_fitted_whatever_the_offset(loss, deviation):
    """With an intercept, the gradient along it is zero at the minimum. Exposures are often given as offsets."""
    X, y, rng = table(loss)
    offset = deviation * rng.standard_normal(150)
    model = MODELS[loss](n_nonzero_coefs=4, alpha=0.0).fit(X, y, offset=offset)
    mean = model.predict(X, offset=offset)
    assert model.converged_
    if loss == "poisson":
        assert_allclose(mean.sum(), y.sum(), rtol=1e-3)
    else:
        assert_allclose((y / mean).mean(), 1.0, rtol=1e-3)
