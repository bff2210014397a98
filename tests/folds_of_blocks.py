"""Cross-validation over blocks beside that in memory with the same folds: for the tests of both."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from hardthresh.designs import from_arrays


def pairs(fold):
    """Folds of all rows, those of weight 0 among them, which a splitter does not see."""
    return list(PredefinedSplit(fold).split())


def both(model, X, y, fold, weight=None, offset=None, rows=512):
    """The model of blocks with a fold column, and that in memory with the same folds."""
    blocks = from_arrays(X, y, weight, offset, fold=fold, rows=rows)
    blocked = clone(model).fit(blocks)
    return blocked, clone(model).set_params(cv=pairs(fold)).fit(X, y, weight, offset)


def assert_same(blocked, plain, tol=1e-8):
    """Assert that two models agree in all that folds decide."""
    assert blocked.best_n_nonzero_coefs_ == plain.best_n_nonzero_coefs_
    assert blocked.found_ == plain.found_
    assert blocked.averaging_ == plain.averaging_
    assert blocked.alpha_ == pytest.approx(plain.alpha_, rel=tol)
    np.testing.assert_array_equal(blocked.candidates_, plain.candidates_)
    np.testing.assert_allclose(blocked.alphas_, plain.alphas_, rtol=tol)
    np.testing.assert_allclose(blocked.grid_scores_, plain.grid_scores_, rtol=tol)
    assert blocked.one_standard_error_ == plain.one_standard_error_
    np.testing.assert_allclose(blocked.coef_, plain.coef_, atol=100 * tol, rtol=0)
    np.testing.assert_allclose(blocked.intercept_, plain.intercept_, rtol=100 * tol)
    np.testing.assert_array_equal(blocked.support_, plain.support_)
    np.testing.assert_array_equal(blocked.selection_frequency_, plain.selection_frequency_)
    assert [model.n_nonzero for model in blocked.models_] == [model.n_nonzero for model in plain.models_]
    for name, value in blocked.held_out_scores_.items():
        if not (name.startswith("calibration") and plain.offset_used_):  # not known there
            assert value == pytest.approx(plain.held_out_scores_[name], rel=tol, abs=1e-7), name


def bits(model):
    """The bits of what a comparison has chosen."""
    return [part.tobytes() for part in (model.coef_, model.grid_scores_, model.selection_frequency_)]
