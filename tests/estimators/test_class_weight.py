"""Weights of classes: the same as weights of their rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.linear.class_weights import class_weights

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 8))
Y = np.where(X[:, 1] - X[:, 5] + RNG.logistic(size=120) > 1.2, "ill", "well")
OWN = RNG.uniform(0.5, 2.0, 120)
OWN[3] = 0.0


def factors(class_weight, weight):
    """The weights of the rows, by hand: "balanced" counts rows by their weights."""
    if class_weight == "balanced":
        class_weight = {label: weight.sum() / (2 * weight[label == Y].sum()) for label in ("ill", "well")}
    return weight * np.array([class_weight.get(label, 1.0) for label in Y])


@pytest.mark.slow
@pytest.mark.parametrize("own", [None, OWN], ids=["alone", "weighted"])
@pytest.mark.parametrize("class_weight", ["balanced", {"ill": 3.0, "well": 0.5}, {"ill": 7}], ids=str)
@pytest.mark.parametrize(
    "settings",
    [{"n_nonzero_coefs": 3}, {}, {"n_nonzero_coefs": [1, 2, 4], "alphas": [0.01, 0.1], "cv": 3}],
    ids=["fixed", "auto", "cv"],
)
def test_it_is_a_factor_of_the_weights_of_rows(settings, class_weight, own):
    cls = ht.SparseLogisticRegressionCV if "cv" in settings else ht.SparseLogisticRegression
    model = cls(class_weight=class_weight, **settings).fit(X, Y, sample_weight=own)
    by_rows = cls(**settings).fit(X, Y, sample_weight=factors(class_weight, np.ones(120) if own is None else own))
    np.testing.assert_allclose(model.coef_, by_rows.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, by_rows.intercept_, rtol=1e-9)
    if "cv" in settings:
        np.testing.assert_allclose(model.grid_scores_, by_rows.grid_scores_, rtol=1e-9)
        assert model.held_out_scores_ == pytest.approx(by_rows.held_out_scores_)
        assert model.null_p_value_ == by_rows.null_p_value_ or np.isnan(model.null_p_value_)
    assert not np.allclose(model.intercept_, cls(**settings).fit(X, Y, sample_weight=own).intercept_)


@pytest.mark.slow
@pytest.mark.parametrize("class_weight", ["balanced", {"a": 3.0}], ids=str)
@pytest.mark.parametrize("settings", [{}, {"cv": 3, "alphas": [0.01, 0.1]}], ids=["fixed", "cv"])
def test_three_classes(settings, class_weight):
    cls = ht.SparseLogisticRegressionCV if settings else ht.SparseLogisticRegression
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + [1.0, 0.0, 0.0] + RNG.gumbel(size=(120, 3)), axis=1)]
    counts = {label: np.sum(y == label) for label in "abc"}
    weights = {"balanced": {label: 120 / (3 * counts[label]) for label in "abc"}}.get(str(class_weight), class_weight)
    n_nonzero_coefs = [1, 3] if settings else 3
    model = cls(n_nonzero_coefs=n_nonzero_coefs, class_weight=class_weight, **settings).fit(X, y)
    rows = np.array([weights.get(label, 1.0) for label in y])
    by_rows = cls(n_nonzero_coefs=n_nonzero_coefs, **settings).fit(X, y, sample_weight=rows)
    np.testing.assert_allclose(model.coef_, by_rows.coef_, rtol=1e-7, atol=1e-12)
    plain = cls(n_nonzero_coefs=n_nonzero_coefs, **settings).fit(X, y)
    assert not np.allclose(model.intercept_, plain.intercept_)


def test_it_is_that_of_scikit_learn():
    """With all features, and the ridge of the standardised coefficients as 1 / (C sum of weights)."""
    model = ht.SparseLogisticRegression(
        n_nonzero_coefs=8, class_weight="balanced", alpha=0.05, standardize=False, tol=1e-12
    ).fit(X, Y)
    other = LogisticRegression(class_weight="balanced", C=1 / (0.05 * 120), tol=1e-12, max_iter=10_000).fit(X, Y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5)


def test_a_scorer_sees_the_weights_of_rows_alone():
    """As in scikit-learn: the fit knows of the classes' weights, the scorer does not."""
    seen = []

    def scorer(model, X, y, sample_weight=None):
        seen.append(sample_weight)
        return float(np.average(model.predict(X) == y, weights=sample_weight))

    settings = {"n_nonzero_coefs": [2], "alphas": 0.01, "cv": 3, "scoring": scorer, "class_weight": "balanced"}
    ht.SparseLogisticRegressionCV(**settings).fit(X, Y)
    assert seen
    assert all(weight is None for weight in seen)
    seen.clear()
    weighted = np.where(np.arange(120) % 2, 1.0, 3.0)
    ht.SparseLogisticRegressionCV(**settings).fit(X, Y, sample_weight=weighted)
    assert set(np.concatenate(seen)) == {1.0, 3.0}


def test_the_certificate_of_given_data_has_the_weights():
    model = ht.SparseLogisticRegression(n_nonzero_coefs=3, class_weight={"ill": 5}).fit(X, Y)
    assert model.certificate(X, Y).fitted
    assert not model.set_params(class_weight=None).certificate(X, Y).fitted


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["a", "b", "c"], [-1.0, 2.5]], ids=str)
def test_weights_of_any_labels(labels):
    y = np.array(labels)[RNG.integers(len(labels), size=50)]
    classes, counts = np.unique(y, return_counts=True)
    for given in ("balanced", {classes[0]: 2.0}):
        found = class_weights(given, classes, counts.astype(float))
        np.testing.assert_allclose(found, compute_class_weight(given, classes=classes, y=y))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("even", "class_weight must be None, \"balanced\" or a dict from class to weight, got 'even'"),
        ([1, 2], "class_weight must be None"),
        ({"ill": -1}, "the class_weight of 'ill' must be a finite number > 0, got -1; to fit without a class, leave"),
        ({"ill": 0, "well": 1}, "the class_weight of 'ill' must be a finite number > 0, got 0"),
        ({"ill": "2"}, "the class_weight of 'ill' must be a finite number > 0, got '2'"),
        ({"sick": 2}, "class_weight names the class 'sick', which y does not have; it has 'ill', 'well'"),
    ],
)
@pytest.mark.parametrize("model", [ht.SparseLogisticRegression, ht.SparseLogisticRegressionCV])
def test_bad_weights_are_refused(model, given, message):
    with pytest.raises(InvalidInputError, match=message):
        model(class_weight=given).fit(X, Y)


@pytest.mark.parametrize("model", [ht.SparseLogisticRegression, ht.SparseLogisticRegressionCV])
def test_a_misspelt_parameter_is_named_with_the_estimator(model):
    with pytest.raises(TypeError, match=rf"^{model.__name__}.__init__\(\) got an unexpected .* 'weigths'"):
        model(weigths="balanced")
