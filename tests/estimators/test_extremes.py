"""Entries near the ends of what floating-point numbers can have: refused, or fitted, and never a NumPy warning."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import hardthresh as ht
from hardthresh.core import HardThreshError
from hardthresh.estimators import SparseLogisticRegression
from levels import at_most, in_turn, inherited

FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: np.clip(X, -1e38, 1e38).astype(np.float32),
}
TARGETS = [1.0, 1e-160, 1e60, 1e150, 1e200]


def scales(kind, d, rng):
    """What the columns are multiplied by."""
    return {
        "large": np.full(d, 1e150),
        "huge": np.full(d, 1e300),
        "tiny": np.full(d, 1e-160),
        "of float32": np.full(d, 1e37),
        "one large column": np.where(np.arange(d) == 1, 1e153, 1.0),
        "one huge column": np.where(np.arange(d) == 1, 1e160, 1.0),
        "mixed": 10.0 ** rng.uniform(-150, 150, d),
        "mixed, modest": 10.0 ** rng.uniform(-30, 30, d),
    }[kind]


KINDS = ["large", "huge", "tiny", "of float32", "one large column", "one huge column", "mixed", "mixed, modest"]


@at_most(5)
@inherited
@in_turn("kind,form,standardize", list(KINDS), list(FORMS), [True, False])
def test_extreme_entries_are_refused_or_fitted_without_a_warning_of_numpy(case, form, kind, standardize):
    rng = np.random.default_rng(0)
    X, y = case.data(n=40, d=6)
    X = FORMS[form](np.clip(X * scales(kind, 6, rng), -1e308, 1e308))
    for size in [1.0] if case.loss.classifies else TARGETS:
        model = case.make(k=2, standardize=standardize)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            try:
                model.fit(X, y * size if size != 1.0 else y)
                model.certificate()
            except HardThreshError:
                continue
            assert np.isfinite(model.coef_).all() or not model.converged_


@pytest.mark.parametrize("seed", [58, 70, 86, 89])
def test_saturated_examples_are_fitted_to_the_end(seed):
    """Offsets of a hundred saturate the logistic loss: the Hessian is singular where the gradient is large."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    X, y, offset = rng.standard_normal((n, 3)), rng.integers(0, 2, n), 100 * rng.standard_normal(n)
    model = SparseLogisticRegression(n_nonzero_coefs=1, always_include=[0, 1]).fit(X, y, offset=offset)
    assert model.converged_
    assert model.certificate().fitted


CHOOSERS = [
    (ht.SparseLinearRegressionCV, lambda u: u),
    (ht.SparsePoissonRegressionCV, lambda u: np.round(np.exp(0.5 * u))),
    (ht.SparseLogisticRegressionCV, lambda u: u > 0),
    (ht.SparseLinearSVCCV, lambda u: u > 0),
]


def single_precision(factor, storage):
    """Rows in single precision, these with one of three true columns times a factor, and a linear predictor."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12)) * (rng.random((150, 12)) < 0.7)
    u = X[:, 3] - X[:, 8] + 0.7 * X[:, 5] + 0.3 * rng.standard_normal(150)
    plain = X.astype(np.float32)
    scaled = plain.copy()
    scaled[:, 3] *= np.float32(factor)
    return storage(plain), storage(scaled), u


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("storage", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("factor", [2.0**64, 2.0**100, 2.0**-64, 2.0**-100])
def test_folds_of_single_precision_keep_the_range_of_squares(factor, storage):
    """Squares of such a column leave single precision, in the moments of folds, in products and in averages."""
    plain, scaled, u = single_precision(factor, storage)
    for make, target in CHOOSERS:
        here, there = (make(n_nonzero_coefs=[1, 2, 3, 4], cv=3).fit(X, target(u)) for X in (plain, scaled))
        assert 3 in here.support_
        np.testing.assert_array_equal(there.support_, here.support_)
        np.testing.assert_allclose(np.ravel(there.coef_)[3] * factor, np.ravel(here.coef_)[3], rtol=2e-4)
        np.testing.assert_allclose(there.score(scaled, target(u)), here.score(plain, target(u)), rtol=1e-4)


@pytest.mark.parametrize("factor", [2.0**64, 2.0**-83])
def test_sparse_columns_of_single_precision_keep_the_range_of_squares(factor):
    plain, scaled, u = single_precision(factor, sp.csc_array)
    here, there = (ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, u) for X in (plain, scaled))
    np.testing.assert_array_equal(there.support_, [3, 5, 8])
    np.testing.assert_allclose(there.coef_[3] * factor, here.coef_[3], rtol=1e-5)
    selector = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=3), n_pairs=4, random_state=0)
    assert selector.fit(scaled, u).inclusion_frequencies_[3] == 1.0


@pytest.mark.parametrize("model", [ht.SparseHuberRegression(), SparseLogisticRegression(), ht.SparseGammaRegression()])
@pytest.mark.parametrize("with_offset", [False, True])
def test_a_model_without_features_and_intercept_is_fitted(model, with_offset):
    """Nothing is left to fit: a Hessian of no columns was reduced, and a design of none was made."""
    rng = np.random.default_rng(0)
    X, y, offset = rng.standard_normal((30, 3)), np.arange(30) % 2 + 1.0, rng.standard_normal(30)
    model = model.set_params(n_nonzero_coefs=0, fit_intercept=False).fit(X, y, offset=offset if with_offset else None)
    assert not model.coef_.any()
    assert model.converged_
