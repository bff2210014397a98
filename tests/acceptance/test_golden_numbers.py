"""Checks 1, 2 and 11: stored numbers of slow and simple programs.

They agree with statsmodels and scikit-learn to 2e-9; `golden` describes them.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit

import golden
import hardthresh as ht
from acceptance.fits import COLUMNS, MODELS, drawn, fitted, theta

every = pytest.mark.parametrize("name", MODELS)


@every
@pytest.mark.parametrize("kind", ["full", "ridge", "weighted"])
def test_check_01_all_columns(name, kind):
    expected = golden.MODELS[name][kind]
    weights = golden.weights(name) if kind == "weighted" else None
    model, theirs = fitted(name, alpha=expected["alpha"], weights=weights), np.array(expected["theta"])
    if name == "multinomial":  # of the same predictions, those of classes that add up to 0
        by_class = theirs.reshape(COLUMNS + 1, 3)
        theirs = (by_class - by_class.mean(axis=1, keepdims=True)).ravel()
    assert_allclose(model.objective_, expected["value"], rtol=1e-8)
    assert_allclose(theta(model), theirs, rtol=0, atol=1e-6)


@every
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_check_02_the_best_of_all_supports(name, k):
    model, expected = fitted(name, k), golden.MODELS[name]["best"][str(k)]
    assert_allclose(model.objective_, expected["value"], rtol=1e-8)
    assert_array_equal(model.support_, expected["support"])


def test_check_11_the_most_likely_dispersion():
    """statsmodels has the shape 2.316712 and minus twice the log-likelihood 822.745913."""
    X, y, _ = drawn("negative_binomial")
    model = ht.SparseNegativeBinomialRegression(n_nonzero_coefs=COLUMNS).fit(X, y)
    mean, shape = model.predict(X), 1 / model.dispersion_
    assert_allclose(shape, 2.316712, atol=1e-5)
    assert_allclose(-2 * np.sum(stats.nbinom.logpmf(y, shape, shape / (shape + mean))), 822.745913, atol=1e-5)


def test_check_11_counts_that_vary_as_those_of_poisson():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = rng.binomial(10, 0.3 * expit(X[:, 1]) + 0.1).astype(float)  # which vary less
    with pytest.warns(UserWarning, match="vary no more than Poisson counts"):
        model = ht.SparseNegativeBinomialRegression(n_nonzero_coefs=3).fit(X, y)
    assert_allclose(model.coef_, ht.SparsePoissonRegression(n_nonzero_coefs=3).fit(X, y).coef_, atol=1e-4)
