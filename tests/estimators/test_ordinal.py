"""Sparse regression of ordered classes: labels, probabilities, and what it has in common with logistic regression."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_score

import hardthresh as ht
from hardthresh import SparseOrdinalRegression, SparseOrdinalRegressionCV
from hardthresh.core import InvalidInputError

NAMES = ("low", "mid", "high")


def drawn(seed=0, n=200, d=10):
    """Return columns of unequal scales and three classes; columns 2 and 7 matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3.0, d) + np.linspace(-2.0, 2.0, d)
    u = 2 * (X - X.mean(axis=0)) @ np.eye(d)[2] - (X - X.mean(axis=0))[:, 7]
    return X, np.searchsorted([-1.0, 1.5], u + rng.logistic(size=n))


def test_probabilities_are_those_of_the_thresholds_and_of_the_objective():
    X, y = drawn()
    model = SparseOrdinalRegression(n_nonzero_coefs=2, alpha=0.0).fit(X, y)
    assert model.support_.tolist() == [2, 7]
    assert (np.diff(model.thresholds_) > 0).all()
    below = 1 / (1 + np.exp(X @ model.coef_ - model.thresholds_[:, None]))
    p = model.predict_proba(X)
    np.testing.assert_allclose(p, np.diff(np.vstack([0 * below[:1], below, 1 + 0 * below[:1]]), axis=0).T, atol=1e-12)
    np.testing.assert_allclose(model.objective_, log_loss(y, p), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    assert model.score(X, y) > 0.6
    assert f"accuracy {100 * model.score(X, y):.0f} %" in str(model.summary())


def test_probabilities_keep_their_digits_far_out():
    X, y = drawn()
    model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    far = X[:2] + np.array([[200.0], [-200.0]]) * model.coef_
    p = model.predict_proba(far)
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    shown = model._expected(np.array([[-40.0, -41.0]]), None)  # of rows in summaries and reports
    np.testing.assert_allclose(shown[0, 2], np.exp(-41.0), rtol=1e-12)


def test_the_order_of_labels():
    X, y = drawn()
    expected = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    text = np.array(NAMES)[y]
    ordered = pd.Series(pd.Categorical(text, categories=[*NAMES, "never"], ordered=True))
    model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, ordered)
    assert model.classes_.tolist() == [*NAMES]
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.predict(X).tolist() == np.array(NAMES)[expected.predict(X)].tolist()
    with pytest.warns(UserWarning, match="high, low, mid, which are taken in this order"):
        SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, text)
    turned = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, 10 - y)
    np.testing.assert_allclose(turned.coef_, -expected.coef_, rtol=1e-5, atol=1e-9)


def test_a_weight_is_a_repetition_and_an_offset_a_known_part():
    X, y = drawn()
    s = np.random.default_rng(1).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), s)
    one, other = SparseOrdinalRegression().fit(X, y, sample_weight=s), SparseOrdinalRegression().fit(X[rows], y[rows])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.criterion_path_, other.criterion_path_, rtol=1e-8)  # refits end within tol
    whole = SparseOrdinalRegression(n_nonzero_coefs=2, alpha=0.0).fit(X, y)
    rest = np.delete(X, 7, axis=1)
    o = whole.coef_[7] * X[:, 7]
    known = SparseOrdinalRegression(n_nonzero_coefs=1, alpha=0.0).fit(rest, y, offset=o)
    np.testing.assert_allclose(known.coef_[2], whole.coef_[2], rtol=1e-5)
    np.testing.assert_allclose(known.thresholds_, whole.thresholds_, rtol=1e-5)
    np.testing.assert_allclose(known.predict_proba(rest, offset=o), whole.predict_proba(X), rtol=1e-4)


def test_targets_that_are_refused():
    X, y = drawn()
    with pytest.raises(InvalidInputError, match=r"one class only, \[1\]"):
        SparseOrdinalRegression().fit(X, np.ones(200, dtype=int))
    with pytest.raises(ValueError, match="continuous"):
        SparseOrdinalRegression().fit(X, X[:, 0])
    model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"y has the classes \[3\], the model's are \[0, 1, 2\]"):
        model.certificate(X, y + 1)


@pytest.mark.parametrize("kind", ["sparse", "float32", "warm", "columns far from zero"])
def test_what_other_linear_models_take(kind):
    X, y = drawn()
    plain = model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    if kind == "sparse":
        model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(sp.csr_array(X), y)
    elif kind == "float32":
        model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X.astype(np.float32), y)
        assert model.coef_.dtype == model.thresholds_.dtype == np.float32
    elif kind == "warm":
        model = SparseOrdinalRegression(n_nonzero_coefs=2, warm_start=True).fit(X, y).fit(X, y)
    else:
        model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X + 1e4, y)
        np.testing.assert_allclose(model.predict_proba(X + 1e4), plain.predict_proba(X), rtol=1e-4)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3)


def test_it_works_with_scikit_learn_and_in_files(tmp_path):
    X, y = drawn()
    assert cross_val_score(SparseOrdinalRegression(n_nonzero_coefs=2), X, y, scoring="neg_log_loss").mean() > -0.8
    model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    ht.save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(ht.load(tmp_path / "model.json").predict_proba(X), model.predict_proba(X))
    assert "which raises the objective" in str(model.certificate())


def test_cross_validation_scores_held_out_rows_by_their_log_loss():
    X, y = drawn()
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    chooser = SparseOrdinalRegressionCV(n_nonzero_coefs=[2], alphas=0.01, cv=folds, averaging="none")
    chooser.fit(X, y)
    for fold, (train, test) in enumerate(folds):
        model = SparseOrdinalRegression(n_nonzero_coefs=2, alpha=0.01).fit(X[train], y[train])
        expected = -log_loss(y[test], model.predict_proba(X[test]))
        np.testing.assert_allclose(chooser.scores_[0, fold], expected, rtol=1e-5)


def test_the_cross_validated_model_finds_the_columns_that_matter():
    X, y = drawn()
    chooser = SparseOrdinalRegressionCV(n_nonzero_coefs=range(5), cv=3).fit(X, y)
    assert chooser.found_
    assert {2, 7} <= set(chooser.support_.tolist())
    assert chooser.calibration_.shape == (2, 10, 3)
    assert chooser.held_out_scores_["accuracy"] > 0.6
    np.testing.assert_allclose(chooser.predict_proba(X).sum(axis=1), 1.0)
    assert (np.diff(chooser.thresholds_) > 0).all()
    shuffled = np.random.default_rng(0).permutation(y)
    assert not SparseOrdinalRegressionCV(n_nonzero_coefs=range(3), cv=3).fit(X, shuffled).found_


def test_an_enum_of_polars_has_an_order():
    pl = pytest.importorskip("polars")
    X, y = drawn()
    expected = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, y)
    enum = pl.Series([NAMES[label] for label in y], dtype=pl.Enum([*NAMES, "never"]))
    model = SparseOrdinalRegression(n_nonzero_coefs=2).fit(X, enum)
    assert model.classes_.tolist() == [*NAMES]
    np.testing.assert_array_equal(model.coef_, expected.coef_)
