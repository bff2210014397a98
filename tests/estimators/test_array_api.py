"""Arrays of other libraries, with scikit-learn's ``array_api_dispatch``: everything follows X.

scikit-learn's own checks of the same (see `test_scikit_learn`) run under the same condition.
"""

import os
from importlib import import_module

import numpy as np
import pytest
import sklearn
from array_api_compat import array_namespace
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

import hardthresh
from hardthresh import (
    SparseCoxRegression,
    SparseHuberRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparseNegativeBinomialRegression,
    SparseOrdinalRegression,
    SparseQuantileRegression,
)
from hardthresh.arrays import to_numpy
from hardthresh.core import InvalidInputError

pytestmark = pytest.mark.skipif(
    os.environ.get("SCIPY_ARRAY_API") != "1", reason="SciPy reads SCIPY_ARRAY_API=1 when it is imported"
)


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    with sklearn.config_context(array_api_dispatch=True):
        yield import_module(request.param)


def library_of(x):
    return array_namespace(x).__name__.rpartition(".")[2]


@pytest.mark.parametrize("together", [True, False])
def test_the_answer_is_that_of_numpy_in_the_library_of_X(case, xp, together):
    """Targets, weights and offsets may stay NumPy's, which labels must."""
    X, y = case.data()
    weight, offset = np.linspace(0, 2, y.size), np.linspace(-1, 1, y.size)
    per_row = [xp.asarray(a) if together else a for a in (weight, offset)]
    target = xp.asarray(y) if together and not case.loss.classifies else y
    settings = {"always_include": [2], "positive": True}
    here = case.make(**settings).fit(X, y, sample_weight=weight, offset=offset)
    there = case.make(**settings).fit(xp.asarray(X), target, sample_weight=per_row[0], offset=per_row[1])
    names = ("coef_", "support_", "scale_", "coefs_path_", "scores_", "candidates_", "selection_frequency_")
    for name in names:
        if hasattr(here, name):
            assert library_of(getattr(there, name)) == library_of(xp.asarray(X)), name
            assert_allclose(to_numpy(getattr(there, name)), getattr(here, name), rtol=1e-6, atol=1e-9, err_msg=name)
    intercepts = [
        c if isinstance(c, float) else float(np.reshape(to_numpy(c), ())) for c in (there.intercept_, here.intercept_)
    ]
    assert_allclose(*intercepts, rtol=1e-6)
    scores = case.scores(there)(xp.asarray(X), offset=per_row[1])
    assert_allclose(to_numpy(scores), case.scores(here)(X, offset=offset), rtol=1e-6)
    if case.loss.classifies:
        assert_array_equal(there.predict(xp.asarray(X), offset=per_row[1]), here.predict(X, offset=offset))
    assert there.certificate().best_swap == here.certificate().best_swap
    assert_array_equal(there.get_support(), here.get_support())


def test_a_number_chosen_by_the_criterion_is_that_of_numpy(plain, xp):
    X, y = plain.data(noise=0.5)
    target = y if plain.loss.classifies else xp.asarray(y)
    here, there = plain.cls(alpha=0.1).fit(X, y), plain.cls(alpha=0.1).fit(xp.asarray(X), target)
    assert here.best_n_nonzero_coefs_ == there.best_n_nonzero_coefs_ > 0
    for name in ("coef_", "candidates_", "criterion_path_"):
        assert library_of(getattr(there, name)) == library_of(xp.asarray(X)), name
        assert_allclose(to_numpy(getattr(there, name)), getattr(here, name), rtol=1e-6, atol=1e-9, err_msg=name)


def test_labels_that_are_numbers_follow_X(classifier, xp):
    X, y = classifier.data()
    model = classifier.make().fit(xp.asarray(X), xp.asarray((y == "well").astype(int) + 5))
    prediction = model.predict(xp.asarray(X))
    assert library_of(prediction) == library_of(xp.asarray(X))
    assert_array_equal(to_numpy(prediction), classifier.make().fit(X, (y == "well").astype(int) + 5).predict(X))


def test_float32_stays_float32(case, xp):
    X, y = case.data()
    X = xp.asarray(X, dtype=xp.float32)
    model = case.make().fit(X, y)
    assert model.coef_.dtype == xp.float32
    assert not case.transforms or model.transform(X).dtype == xp.float32
    scores = case.scores(model)
    assert scores(X).dtype == xp.float32
    assert scores(xp.astype(X, xp.float64) if hasattr(xp, "astype") else X.double()).dtype == xp.float64


def test_a_warm_start_may_change_the_library(plain, xp):
    X, y = plain.data(noise=2.0)
    model = plain.make(k=5, warm_start=True).fit(X, y)
    cold = model.history_["value"][0]
    model.fit(xp.asarray(X), y)
    assert model.history_["value"][0] < cold
    assert library_of(model.coef_) == library_of(xp.asarray(X))


def test_selected_columns_come_back(selector, xp):
    X, y = selector.data()
    model = selector.make().fit(xp.asarray(X), y)
    chosen = model.transform(xp.asarray(X))
    assert_array_equal(to_numpy(chosen), X[:, to_numpy(model.support_)])
    back = to_numpy(model.inverse_transform(chosen))
    assert_array_equal(back, np.where(model.get_support(), X, 0.0))
    with pytest.raises(ValueError, match=r"is needed"):
        model.inverse_transform(xp.asarray(X))


def test_data_of_another_library_than_in_fit_are_refused(case, xp):
    X, y = case.data()
    model = case.make().fit(xp.asarray(X), y)
    with pytest.raises(ValueError, match="must use the same namespace"):
        model.predict(X)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_bad_numbers_are_refused(case, xp, value):
    X, y = case.data()
    X[3, 2] = value
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        case.make().fit(xp.asarray(X), y)


def test_without_dispatch_other_libraries_are_read_as_numpy(case):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y = case.data()
    model = case.make().fit(torch.asarray(X), y)
    assert isinstance(model.coef_, np.ndarray)
    assert_allclose(model.coef_, case.make().fit(X, y).coef_)


@pytest.mark.parametrize("cls", [SparseLinearRegression, SparseLogisticRegression, SparseLogisticRegressionCV])
def test_several_outputs_and_classes_follow_X(cls, xp):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    U = X[:, [1, 3, 1]] * [2.0, 2.0, -2.0] + rng.gumbel(size=(80, 3))
    y = U if cls is SparseLinearRegression else np.argmax(U, axis=1)
    here, there = cls(n_nonzero_coefs=2).fit(X, y), cls(n_nonzero_coefs=2).fit(xp.asarray(X), xp.asarray(y))
    for name in ("coef_", "intercept_", "support_", "coefs_path_"):
        if hasattr(here, name):
            assert library_of(getattr(there, name)) == library_of(xp.asarray(X)), name
            assert_allclose(to_numpy(getattr(there, name)), getattr(here, name), atol=1e-7, err_msg=name)
    predicted = there.predict(xp.asarray(X))
    assert library_of(predicted) == library_of(xp.asarray(X))
    assert_allclose(to_numpy(predicted), here.predict(X), atol=1e-7)
    assert there.certificate().swap_optimal


def survival_times(u, rng):
    return np.column_stack([np.ceil(4 * rng.exponential(np.exp(-u))), rng.random(u.size) < 0.7]).astype(float)


OWN = {
    SparseHuberRegression: lambda u, rng: u + rng.standard_t(2, u.size) / 2,
    SparseQuantileRegression: lambda u, rng: u + rng.standard_normal(u.size) / 2,
    SparseNegativeBinomialRegression: lambda u, rng: rng.poisson(np.exp(1 + u / 2) * rng.gamma(2.0, 0.5, u.size)),
    SparseCoxRegression: survival_times,
    SparseOrdinalRegression: lambda u, rng: np.searchsorted([-1.0, 1.0], 2 * u + rng.logistic(size=u.size)),
}
"""Models whose loss has a parameter to estimate, or is of no single prediction, and targets for them."""


FITS = [
    *((cls, cls, {"n_nonzero_coefs": 2}) for cls in OWN),
    *((cls, cls, {}) for cls in OWN),
    *((cls, getattr(hardthresh, f"{cls.__name__}CV"), {"n_nonzero_coefs": range(1, 4), "cv": 3}) for cls in OWN),
]


def assert_follows(there, here, xp, name):
    assert library_of(there) == library_of(xp.asarray(np.zeros(1))), name
    assert to_numpy(there).dtype == here.dtype, name
    assert_allclose(to_numpy(there), here, rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize(("family", "cls", "settings"), FITS)
def test_models_with_a_loss_of_their_own_follow_X(family, cls, settings, xp):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 7))
    y, rows = OWN[family](X[:, 1] - 0.8 * X[:, 4], rng), [np.linspace(0.0, 2.0, 90), np.linspace(-0.5, 0.5, 90)]
    here = cls(**settings).fit(X, y, *rows)
    there = cls(**settings).fit(xp.asarray(X), xp.asarray(y), *map(xp.asarray, rows))
    for name, value in vars(here).items():
        if isinstance(value, np.ndarray) and name.endswith("_") and name != "classes_":  # which may be words
            assert_follows(getattr(there, name), value, xp, name)
    for name in ("predict", "predict_proba", "predict_survival_function"):
        if hasattr(cls, name):
            expected = getattr(here, name)(X, offset=rows[1])
            assert_follows(getattr(there, name)(xp.asarray(X), offset=xp.asarray(rows[1])), expected, xp, name)
    score = there.score(xp.asarray(X), xp.asarray(y), offset=xp.asarray(rows[1]))
    assert score == pytest.approx(here.score(X, y, offset=rows[1]))
    assert str(there.summary()) == str(here.summary())
    assert there.certificate().best_swap == here.certificate().best_swap


def test_baseline_hazards_of_strata_follow_X(xp):
    rng = np.random.default_rng(0)
    X, strata = rng.standard_normal((60, 3)), np.arange(60) % 2
    y = survival_times(X[:, 1], rng)
    here = SparseCoxRegression(n_nonzero_coefs=1).fit(X, y, strata=strata)
    there = SparseCoxRegression(n_nonzero_coefs=1).fit(xp.asarray(X), xp.asarray(y), strata=xp.asarray(strata))
    for stratum in (0, 1):
        for name in ("event_times_", "baseline_cumulative_hazard_"):
            assert_follows(getattr(there, name)[stratum], getattr(here, name)[stratum], xp, name)
    found = there.predict_cumulative_hazard(xp.asarray(X), [1.0, 2.0], strata=strata)
    assert_follows(found, here.predict_cumulative_hazard(X, [1.0, 2.0], strata=strata), xp, "hazard")


def test_a_stream_of_batches(xp):
    """Gradients, moments and steps follow X; what is remembered is NumPy's, so that it can be stored."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))
    y = X[:, 2] - 2.0 * X[:, 5] + rng.standard_normal(400)
    models = [SparseLinearRegression(n_nonzero_coefs=2) for _ in range(2)]
    for start in range(0, 400, 100):
        some = slice(start, start + 100)
        for model, asarray in zip(models, (np.asarray, xp.asarray), strict=True):
            model.partial_fit(asarray(X[some]), asarray(y[some]))
    plain, other = models
    assert isinstance(other.coef_, type(xp.asarray(X)))
    assert_allclose(to_numpy(other.coef_), plain.coef_, rtol=1e-9)
    assert isinstance(other.stream_.coef, np.ndarray)


IN_NUMPY = ["Knockoffs", "LowRankImputer", "LowRankImputerCV", "LowRankRegression", "LowRankRegressionCV"]
IN_NUMPY += ["SparseGaussianGraphicalModel", "SparseGaussianGraphicalModelCV"]


def target_of(name, rng, X):
    """Targets that an estimator fits, for any of them."""
    u = X[:, 1] - X[:, 4]
    for cls, targets in OWN.items():
        if name.startswith(cls.__name__):
            return targets(u, rng)
    if name.startswith(("SparseLogistic", "SparseLinearSVC")):
        return (u > 0).astype(int)
    if name.startswith(("SparsePoisson", "SparseGamma", "SparseTweedie")):
        return rng.poisson(np.exp(u / 2)) + 1.0
    return np.column_stack([u, -u, X[:, 2]]) if name.startswith("LowRankRegression") else u + rng.normal(size=u.size)


def every_estimator():
    found = (getattr(hardthresh.estimators, name) for name in hardthresh.estimators.__all__)
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, BaseEstimator)]


@pytest.mark.parametrize("cls", every_estimator(), ids=lambda cls: cls.__name__)
def test_every_estimator_computes_in_the_library_of_X_or_says_that_it_does_not(cls, xp):
    """Point 4 of issue 21: none fails inside."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = target_of(cls.__name__, rng, X)
    searches = cls.__name__ in ("Knockoffs", "StabilitySelection")
    model = cls(SparseLinearRegression(n_nonzero_coefs=2)) if searches else cls()
    if cls.__name__ in IN_NUMPY:
        with pytest.raises(InvalidInputError, match=r"computes in NumPy alone.*X\.numpy\(\)"):
            model.fit(xp.asarray(X), xp.asarray(y))
        return
    model.fit(xp.asarray(X), xp.asarray(y))
    made = model.predict(xp.asarray(X)) if hasattr(model, "predict") else model.transform(xp.asarray(X))
    assert library_of(made) == library_of(xp.asarray(X))
