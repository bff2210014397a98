"""Fit, predict and ask a model, as users do."""
# pyright: strict, reportMissingTypeStubs=false

from typing import Any, assert_type

import numpy as np

import hardthresh as ht
from hardthresh.core import History
from hardthresh.datasets import make_sparse_regression

DATA = make_sparse_regression(60, 8, 2, seed=0)
LABELS = np.where(DATA.y > 0, "high", "low")


def fits_return_the_model() -> None:
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    assert_type(model.fit(DATA.X, DATA.y), ht.SparseLinearRegression)
    assert_type(ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(DATA.X, LABELS), ht.SparseLogisticRegression)
    assert_type(ht.LowRankRegression(rank=1).fit(DATA.X, DATA.X), ht.LowRankRegression)
    assert_type(ht.LowRankImputer(rank=1).fit(DATA.X), ht.LowRankImputer)
    assert_type(ht.SparseGaussianGraphicalModel(n_edges=2).fit(DATA.X), ht.SparseGaussianGraphicalModel)
    assert_type(ht.StabilitySelection(model, random_state=0).fit(DATA.X, DATA.y), ht.StabilitySelection)
    assert_type(model.partial_fit(DATA.X, DATA.y), ht.SparseLinearRegression)


def the_fit_that_is_compared_returns_the_model_too() -> None:
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs=[1, 2], cv=3, random_state=0).fit(DATA.X, DATA.y)
    assert_type(model, ht.SparseLinearRegressionCV)
    assert_type(model.best_n_nonzero_coefs_, int)
    assert_type(model.alpha_, float)
    assert_type(model.found_, bool)
    assert_type(model.one_standard_error_, int)


def a_fitted_model_has_its_attributes() -> None:
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(DATA.X, DATA.y)
    assert_type(model.coef_, Any)  # an array of the library of the data
    assert_type(model.intercept_, Any)
    assert_type(model.support_, Any)
    assert_type(model.n_iter_, int)
    assert_type(model.n_features_in_, int)
    assert_type(model.converged_, bool)
    assert_type(model.stop_reason_, str)
    assert_type(model.objective_, float)
    assert_type(model.history_, History)


def a_fitted_model_predicts_and_explains() -> None:
    model = ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(DATA.X, LABELS)
    assert_type(model.predict(DATA.X), Any)
    assert_type(model.predict_proba(DATA.X), Any)
    assert_type(model.score(DATA.X, LABELS), float)
    print(model.certificate(), model.summary(), model.inference(), sep="\n")


def a_fitted_model_is_stored(path: str = "model.json") -> None:
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(DATA.X, DATA.y)
    assert_type(ht.save(model, path), None)
    again: ht.SparseLinearRegression = ht.load(path)
    assert_type(again.predict(DATA.X), Any)
