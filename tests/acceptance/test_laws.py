"""Checks 5 to 9: what each model has to keep, on its golden data.

The last part of check 5, weights under Efron's ties, is in `test_peers`.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import golden
from acceptance.fits import COLUMNS, MODELS, ROWS, drawn, estimator, theta
from levels import at_most

TIGHT = {"tol": 1e-12}
every = pytest.mark.parametrize("name", MODELS)


# check 5: weights


@pytest.mark.parametrize("name", [name for name in MODELS if name != "cox_efron"])
def test_check_05_a_weight_is_a_repetition(name):
    X, y, offset = drawn(name)
    weight = golden.weights(name).astype(int)
    rows = np.repeat(np.arange(ROWS), weight)
    one = estimator(name, 3, **TIGHT).fit(X, y, sample_weight=weight, offset=offset)
    other = estimator(name, 3, **TIGHT).fit(X[rows], y[rows], offset=None if offset is None else offset[rows])
    assert_array_equal(one.support_, other.support_)
    assert_allclose(one.objective_, other.objective_, rtol=1e-10)
    assert_allclose(theta(one), theta(other), rtol=0, atol=1e-8)


@at_most(4)
@every
def test_check_05_rows_without_weight_change_nothing(name):
    """Nor do they change which number of features a criterion chooses, where the model has a likelihood."""
    X, y, offset = drawn(name)
    weight = np.ones(ROWS)
    weight[::7] = 0.0
    rows, known = weight > 0, None if offset is None else offset[weight > 0]
    strange = np.where(rows[:, None], X, 1e3)
    k = 3 if name in ("huber", "squared_hinge") else "auto"
    one = estimator(name, k).fit(strange, y, sample_weight=weight, offset=offset)
    other = estimator(name, k).fit(X[rows], y[rows], offset=known)
    assert_array_equal(one.support_, other.support_)
    assert_allclose(theta(one), theta(other), rtol=0, atol=1e-8)
    if k == "auto":
        assert_allclose(one.criterion_path_, other.criterion_path_, rtol=1e-10)


def test_check_05_a_rate_weighted_by_its_exposure_is_a_count_with_an_offset():
    X, y, offset = drawn("poisson")
    exposure = np.exp(offset)
    counts = estimator("poisson", 3, **TIGHT).fit(X, y, offset=offset)
    rates = estimator("poisson", 3, **TIGHT).fit(X, y / exposure, sample_weight=exposure)
    assert_allclose(theta(rates), theta(counts), rtol=0, atol=1e-8)


# check 7: models that are others. Check 6, of classes, is in tests/estimators/test_several_outputs.py


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_check_07_two_ordered_classes_are_logistic_regression(alpha):
    X, y, _ = drawn("logistic")
    one, other = (estimator(name, 3, alpha, **TIGHT).fit(X, y) for name in ("ordinal", "logistic"))
    assert_allclose(one.coef_, other.coef_[0], rtol=0, atol=1e-8)
    assert_allclose(one.thresholds_, -other.intercept_, rtol=0, atol=1e-8)
    assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-8)


def test_check_07_without_ties_breslow_is_efron():
    X, y, _ = drawn("cox_breslow")
    assert np.unique(y[:, 0]).size == ROWS
    one, other = (estimator(f"cox_{ties}", 3).fit(X, y) for ties in ("breslow", "efron"))
    assert_allclose(one.objective_, other.objective_, rtol=1e-12)
    assert_allclose(one.coef_, other.coef_, rtol=1e-12)
    assert_allclose(one.baseline_cumulative_hazard_, other.baseline_cumulative_hazard_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:200 rows have times that are not positive")
@pytest.mark.parametrize("times", [np.exp, np.cbrt, lambda t: t - 100.0, lambda t: 1000.0 * t])
@pytest.mark.parametrize("name", ["cox_breslow", "cox_efron"])
def test_check_07_only_the_order_of_times_counts(name, times):
    X, y, _ = drawn(name)
    model = estimator(name, 3).fit(X, y)
    other = estimator(name, 3).fit(X, np.column_stack([times(y[:, 0]), y[:, 1]]))
    assert_array_equal(other.coef_, model.coef_)
    assert other.objective_ == model.objective_
    assert_array_equal(other.baseline_cumulative_hazard_, model.baseline_cumulative_hazard_)


@pytest.mark.parametrize("name", ["cox_breslow", "cox_efron"])
def test_check_07_one_stratum_is_none(name):
    X, y, _ = drawn(name)
    one, none = estimator(name, 3).fit(X, y, strata=["all"] * ROWS), estimator(name, 3).fit(X, y)
    assert_array_equal(one.coef_, none.coef_)
    assert one.objective_ == none.objective_
    assert_array_equal(one.baseline_cumulative_hazard_["all"], none.baseline_cumulative_hazard_)


# check 8: units; those of times are in check 7


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize(
    ("name", "settings", "factor"),
    [
        ("squared", {}, True),
        ("huber", {"delta": None}, True),
        ("quantile", {"smoothing": "auto"}, True),
        ("gamma", {}, False),
        ("tweedie", {}, False),
        ("multitask", {}, True),
    ],
)
def test_check_08_the_unit_of_the_target_does_not_matter(name, settings, factor, unit):
    X, y, _ = drawn(name)
    one, other = (estimator(name, 3, **settings).fit(X, target) for target in (y, unit * y))
    assert_array_equal(other.support_, one.support_)
    assert_allclose(other.coef_, (unit if factor else 1.0) * one.coef_, rtol=1e-6)


# check 9: models without a minimiser


def separated(name, X):
    """A target that column 5 puts in order."""
    return np.searchsorted([0.0] if name == "logistic" else [-0.5, 0.5], X[:, 5])


@pytest.mark.parametrize("name", ["logistic", "multinomial", "ordinal"])
def test_check_09_separated_classes_name_the_feature(name):
    X, _, _ = drawn(name)
    y = separated(name, X)
    if name == "multinomial":
        y = np.array([1, 0, 2])[y]
    table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(COLUMNS)])
    with pytest.warns(ConvergenceWarning, match="no finite point.*Growing without bound: the coefficients? of.*gene 5"):
        model = estimator(name, 1).fit(table, y)
    assert not model.converged_
    assert np.isfinite(theta(model)).all()
    assert estimator(name, 1, alpha=1e-3).fit(table, y).converged_


@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "tweedie"])
def test_check_09_a_dummy_that_is_on_only_at_zeros_is_named(name):
    X, y, _ = drawn(name)
    X[:, 5] = (y == 0) & (np.arange(ROWS) % 2 == 0)
    assert 2 < X[:, 5].sum() < ROWS / 2
    with pytest.warns(
        ConvergenceWarning, match="no finite point.*Growing without bound: the coefficient.* of feature 5"
    ):
        model = estimator(name, 4).fit(X, y)
    assert not model.converged_
    assert np.isfinite(theta(model)).all()
    assert estimator(name, 4, alpha=1e-3).fit(X, y).converged_


@pytest.mark.parametrize("name", ["cox_breslow", "cox_efron"])
def test_check_09_a_monotone_likelihood_names_the_feature(name):
    X, y, _ = drawn(name)
    table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(COLUMNS)])
    table["gene 5"] = -y[:, 0]
    with pytest.warns(ConvergenceWarning, match="no finite point.*Growing without bound: the coefficient of gene 5"):
        model = estimator(name, 1).fit(table, y)
    assert not model.converged_
    assert np.isfinite(theta(model)).all()
    assert estimator(name, 1, alpha=1e-3).fit(table, y).converged_


@pytest.mark.parametrize("name", ["squared", "gamma", "huber", "quantile", "squared_hinge", "multitask"])
def test_check_09_other_models_have_a_minimiser_whatever_the_columns(name):
    """Of rank-deficient columns it is not unique."""
    X, y, _ = drawn(name)
    X[:, 5] = X[:, 4]
    model = estimator(name, COLUMNS).fit(X, y)
    assert model.converged_
    assert_allclose(
        model.objective_, estimator(name, COLUMNS - 1).fit(np.delete(X, 5, axis=1), y).objective_, rtol=1e-8
    )
