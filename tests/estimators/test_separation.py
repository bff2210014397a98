"""Whether the chosen features separate the classes of the training rows is said, whatever the ridge."""

import numpy as np
import pytest
from scipy.optimize import linprog

import hardthresh as ht
from levels import at_most


def separable(X, y, weight=None, positive=False):
    """Whether a linear programme finds coefficients and an intercept with every row of positive weight on its side."""
    kept = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    sides = np.where(y, 1.0, -1.0)[kept, None] * np.column_stack([X, np.ones(len(X))])[kept]
    bounds = [(0 if positive else None, None)] * X.shape[1] + [(None, None)]
    return linprog(np.zeros(sides.shape[1]), A_ub=-sides, b_ub=-np.ones(len(sides)), bounds=bounds).status == 0


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("alpha", [0.0, None, 0.2, 10.0])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # there is no minimiser with alpha = 0
def test_it_agrees_with_linear_programming(alpha, positive):
    found = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 8)) * rng.lognormal(size=8) + rng.uniform(-3, 3, 8)
        y = X @ rng.standard_normal(8) + 2 * rng.standard_normal(30) > 0
        if not 0 < y.sum() < 30:
            continue
        weight = rng.integers(0, 3, 30) if seed % 2 else None
        if weight is not None and not 0 < y[weight > 0].sum() < (weight > 0).sum():
            continue
        settings = {"always_include": [0]} if seed % 3 else {}
        model = ht.SparseLogisticRegression(n_nonzero_coefs=3, alpha=alpha, positive=positive, **settings)
        model.fit(X, y, sample_weight=weight)
        found.append(model.separated_)
        assert model.separated_ == separable(X[:, model.support_], y, weight, positive), seed
    assert 3 <= sum(found) <= len(found) - 3, "the tables of this test are of both kinds"


@pytest.mark.parametrize("kind", [ht.SparseLogisticRegression, ht.SparseLogisticRegressionCV])
def test_a_ridge_that_lets_the_model_err_does_not_hide_it(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = X[:, 2] > 1.0  # few of one class: a large ridge answers with the other
    chooses = kind is ht.SparseLogisticRegressionCV
    settings = {"n_nonzero_coefs": [1], "alphas": 1.0} if chooses else {"n_nonzero_coefs": 1, "alpha": 1.0}
    model = kind(**settings).fit(X, y)
    assert model.support_.tolist() == [2]
    assert np.any(model.predict(X) != y)
    assert model.separated_ is True


def test_an_offset_does_not_separate():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.random(40) > 0.5
    known = np.where(y, 50.0, -50.0)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1).fit(X, y, offset=known)
    assert np.all(model.predict(X, offset=known) == y)
    assert model.separated_ is False


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1]])
def test_without_features_or_an_intercept(groups):
    X = np.random.default_rng(0).standard_normal((30, 4))
    budget = {"n_nonzero_coefs": 0} if groups is None else {"groups": groups, "n_nonzero_groups": 0}
    assert ht.SparseLogisticRegression(**budget).fit(X, X[:, 0] > 0).separated_ is False
    budget = {"n_nonzero_coefs": 1} if groups is None else {"groups": groups, "n_nonzero_groups": 1}
    model = ht.SparseLogisticRegression(**budget, fit_intercept=False)
    assert model.fit(X, X[:, 0] > 0).separated_ is True
    assert model.fit(X, X[:, 0] > 0.5).separated_ is False
    assert ht.SparseLogisticRegression(**budget).fit(X, X[:, 0] > 0.5).separated_ is True


def test_it_is_saved_with_the_model(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 4))
    model = ht.SparseLogisticRegression(n_nonzero_coefs=1).fit(X, X[:, 0] > 0)
    ht.save(model, tmp_path / "model.json")
    assert ht.load(tmp_path / "model.json").separated_ is True
