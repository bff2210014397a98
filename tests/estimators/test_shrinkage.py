"""A ridge that is so large that no feature is chosen is named as the reason."""

import re
import warnings

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.core.errors import NothingFoundWarning
from hardthresh.designs import from_arrays


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 6))
    return X, 3 * X[:, 1] + rng.standard_normal(80)


SETTINGS = {
    "squared": (ht.SparseLinearRegression, {}, lambda y: y),
    "several outputs": (ht.SparseLinearRegression, {}, lambda y: np.column_stack([y, -y])),
    "groups": (ht.SparseLinearRegression, {"groups": list("aabbcc"), "n_nonzero_groups": 1}, lambda y: y),
    "positive": (ht.SparseLinearRegression, {"positive": True}, lambda y: y),
    "logistic": (ht.SparseLogisticRegression, {}, lambda y: y > 0),
    "ordered classes": (ht.SparseOrdinalRegression, {}, lambda y: np.digitize(y, [-1.0, 1.0])),
    "counts": (ht.SparsePoissonRegression, {}, lambda y: np.floor(np.abs(y))),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_an_alpha_that_hides_all_features_is_named_with_one_that_does_not(name):
    estimator, settings, target = SETTINGS[name]
    X, y = rows()
    settings = settings if "groups" in settings else {"n_nonzero_coefs": 2} | settings
    with pytest.warns(NothingFoundWarning, match=r"alpha=1e\+12 is so large that no feature") as caught:
        model = estimator(alpha=1e12, **settings).fit(X, target(y))
    assert model.support_.size == 0
    [limit] = re.findall(r"alpha <= (\S+) lets", str(caught[0].message))
    assert estimator(alpha=float(limit), **settings).fit(X, target(y)).support_.size > 0


def limit_of_one_column(X, y, tol):
    """Return the ridge where the gain of the best column of unit scale is `tol` of half the variance of y."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    r = y - y.mean()
    return np.max(0.5 * (Z.T @ r / len(y)) ** 2) / (tol * 0.5 * np.mean(r**2)) - 1.0


def test_the_warning_begins_where_the_gain_is_negligible():
    X, y = rows()
    limit = limit_of_one_column(X, y, 1e-4)
    assert ht.SparseLinearRegression(n_nonzero_coefs=1, alpha=limit / 1.01, tol=1e-4).fit(X, y).support_.size == 1
    with pytest.warns(
        NothingFoundWarning, match=f"alpha <= {10.0 ** np.floor(np.log10(limit)):.0e}".replace("+", r"\+")
    ):
        ht.SparseLinearRegression(n_nonzero_coefs=1, alpha=limit * 1.01, tol=1e-4).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "column"),
    [({"n_nonzero_coefs": 0}, 1.0), ({"n_nonzero_coefs": 1, "positive": True}, -1.0), ({"n_nonzero_coefs": 1}, 0.0)],
    ids=["k = 0", "bounds", "no effect"],
)
def test_models_that_are_empty_for_another_reason_say_nothing_of_alpha(settings, column):
    y = np.tile([-1.0, 1.0], 20)
    X = column * y[:, None] + np.repeat([-1.0, 1.0], 20)[:, None] * (column == 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingFoundWarning)
        assert ht.SparseLinearRegression(alpha=1e12, **settings).fit(X, y).support_.size == 0


def test_a_criterion_that_chooses_nothing_in_noise_does_not_blame_alpha():
    X = rows()[0]
    with pytest.warns(NothingFoundWarning) as caught:
        ht.SparseLinearRegression(alpha=1.0).fit(X, np.random.default_rng(5).standard_normal(80))
    assert ["alpha" in str(one.message) for one in caught] == [False]


CANDIDATES = {
    "by default": (ht.SparseLinearRegressionCV, {"alphas": 1e12}, lambda y: y),
    "two ridges": (ht.SparseLinearRegressionCV, {"alphas": [1e11, 1e12]}, lambda y: y),
    "an average": (ht.SparseLinearRegressionCV, {"alphas": 1e12, "n_nonzero_coefs": [1, 2]}, lambda y: y),
    "a criterion": (ht.SparseLinearRegressionCV, {"alphas": 1e12, "criterion": "ebic"}, lambda y: y),
    "several outputs": (ht.SparseLinearRegressionCV, {"alphas": 1e12}, lambda y: np.column_stack([y, -y])),
    "classes": (ht.SparseLogisticRegressionCV, {"alphas": 1e12}, lambda y: y > 0),
}


@pytest.mark.parametrize("storage", [np.asarray, "blocks"], ids=["rows", "blocks"])
@pytest.mark.parametrize("name", CANDIDATES)
def test_alphas_that_hide_all_features_are_named_by_cross_validated_models_too(name, storage):
    estimator, settings, target = CANDIDATES[name]
    X, y = rows()
    given = (from_arrays(X, target(y), rows=40),) if storage == "blocks" else (X, target(y))
    with pytest.warns(NothingFoundWarning) as caught:
        estimator(**settings).fit(*given)
    named = [str(one.message) for one in caught if "alphas=1e+1" in str(one.message)]
    assert len(named) == 1
    assert f"{estimator.__name__}: " in named[0]
    limits = re.findall(r"alphas <= (\S+) lets", named[0])
    assert len(limits) == (name != "an average")  # which has features, in its models that are not the best
    for limit in limits:
        assert estimator(**settings | {"alphas": float(limit) / 1e6}).fit(*given).support_.size > 0


def test_cross_validated_models_without_features_for_another_reason_say_nothing_of_alphas():
    X, y = rows()
    noise = np.random.default_rng(5).standard_normal(80)
    for settings, target in (({}, noise), ({"n_nonzero_coefs": [0], "alphas": 1e12}, y)):
        with pytest.warns(NothingFoundWarning) as caught:
            model = ht.SparseLinearRegressionCV(**settings).fit(X, target)
        assert model.support_.size == 0
        assert ["alphas" in str(one.message) for one in caught] == [False]


def test_one_of_the_alphas_that_hides_all_features_is_not_named_where_another_is_chosen():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingFoundWarning)
        assert ht.SparseLinearRegressionCV(alphas=[0.0, 1e12]).fit(*rows()).support_.tolist() == [1]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"n_nonzero_coefs": 2, "alpha": 0.2}, {"n_nonzero_coefs": [2], "alphas": 0.2}])
def test_the_gain_is_that_of_the_loss_whose_parameter_was_estimated(settings):
    """Its objective without features is not that of the loss with which the search began."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 50))
    y = rng.poisson(np.exp(1 + X[:, 4] - X[:, 30] / 2) * rng.gamma(2.0, 0.5, 300))
    kind = ht.SparseNegativeBinomialRegressionCV if "alphas" in settings else ht.SparseNegativeBinomialRegression
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingFoundWarning)
        assert kind(**settings).fit(X, y).support_.tolist() == [4, 30]


@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")
def test_the_certificate_of_an_empty_model_does_not_contradict_itself():
    certificate = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=1e12).fit(*rows()).certificate()
    assert not certificate.is_stationary()
    lines = str(certificate).splitlines()
    assert lines[0] == "Coefficients of the chosen features fully fitted: yes."
    assert lines[1].startswith(
        "First-order test: not passed, because fewer features are chosen than the model may have"
    )
