"""Fits over blocks are judged as those in memory: by scores in few readings, and against no feature."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from hardthresh import (
    SparseGammaRegression,
    SparseHuberRegression,
    SparseLinearRegression,
    SparseLinearSVC,
    SparseLogisticRegression,
    SparsePoissonRegression,
    SparseTweedieRegression,
)
from hardthresh.core import InvalidInputError
from hardthresh.core.errors import NothingFoundWarning
from hardthresh.designs import Serial, from_arrays
from levels import at_most

CLASSIFIERS = [SparseLogisticRegression, SparseLinearSVC]
REGRESSORS = [
    SparseLinearRegression,
    SparsePoissonRegression,
    SparseGammaRegression,
    SparseTweedieRegression,
    partial(SparseHuberRegression, delta=1.0),
]


def data(model, n=1000, d=280, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    u = 0.4 * X[:, [3, 40, 90]] @ [1.0, -1.5, 1.0]
    if model in CLASSIFIERS:
        return X, np.where(u + 0.3 * rng.logistic(size=n) > 0, "well", "ill")
    if model is SparsePoissonRegression:
        return X, rng.poisson(np.exp(u)).astype(float)
    if model in (SparseGammaRegression, SparseTweedieRegression):
        return X, np.exp(u) * rng.gamma(2.0, 0.5, n)
    return X, u + 0.5 * rng.standard_normal(n)


class Counted(Serial):
    """An engine that counts its readings."""

    readings = 0

    def sweep(self, *args, **kwargs):
        Counted.readings += 1
        return super().sweep(*args, **kwargs)


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_the_accuracy_takes_one_reading_with_offsets_and_labels_that_the_fit_did_not_see(model):
    X, y = data(model)
    fitted = model(n_nonzero_coefs=3).fit(X, y)
    labels = y.astype(object)
    labels[::3] = "unheard of"
    offset = np.linspace(-2.0, 2.0, y.size)
    for own in (None, offset):
        Counted.readings = 0
        found = fitted.score(Counted(from_arrays(X, labels, offset=own, rows=256)))
        assert found == pytest.approx(fitted.score(X, labels, offset=own))
        assert Counted.readings == 1


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS])
def test_scores_without_targets_are_refused(model):
    X, y = data(model)
    fitted = model(n_nonzero_coefs=3).fit(X, y)
    with pytest.raises(InvalidInputError, match="the blocks have no targets"):
        fitted.score(from_arrays(X))


def test_scores_of_several_outputs_without_targets_are_refused():
    X, y = data(SparseLinearRegression)
    fitted = SparseLinearRegression(n_nonzero_coefs=3).fit(X, np.column_stack([y, -y]))
    with pytest.raises(InvalidInputError, match="the blocks have no targets"):
        fitted.score(from_arrays(X))


def test_scores_of_rows_without_weight_are_refused():
    X, y = data(SparseLinearRegression)
    fitted = SparseLinearRegression(n_nonzero_coefs=3).fit(X, y)
    with pytest.raises(InvalidInputError, match="all rows have weight 0"):
        fitted.score(from_arrays(X, y, sample_weight=np.zeros(y.size)))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("d", [30, 280])
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS])
def test_no_feature_is_chosen_where_the_ridge_keeps_all_out(model, d):
    """The same model and the same warning as in memory, where a model without features is as good."""
    X, y = data(model, n=2500)  # more rows than a pilot looks at
    X = X[:, np.arange(d) if d == 280 else np.r_[0:27, 3, 40, 90]]
    for given in ((X, y), (from_arrays(X, y, rows=256),)):
        with pytest.warns(NothingFoundWarning, match="so large that no feature lowers the objective"):
            fitted = model(n_nonzero_coefs=3, alpha=1e9).fit(*given)
        assert fitted.support_.size == 0
