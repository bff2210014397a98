"""Targets and offsets that cannot be what they seem: missing, dates, out of range, exposures without a logarithm."""

import warnings

import numpy as np
import pandas as pd
import pytest

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError

N = 60


def numbers():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 4))
    return X, X[:, 0] + rng.standard_normal(N)


def with_gaps(y, value):
    return np.where(np.arange(N) % 20 == 7, value, y)


@pytest.mark.parametrize("model", [ht.SparseLinearRegression, ht.SparseHuberRegression, ht.SparseCoxRegression])
def test_rows_of_missing_targets_are_named(model):
    X, y = numbers()
    with pytest.raises(InvalidInputError, match=r"y contains NaN: 3 missing values, the first in row 7 \(counted from"):
        model().fit(X, with_gaps(y, np.nan))
    with pytest.raises(InvalidInputError, match=r"^row 7 \(counted from 0\): Input y contains infinity"):
        model().fit(X, with_gaps(y, -np.inf))


def test_rows_of_missing_outputs_are_named():
    X, y = numbers()
    with pytest.raises(InvalidInputError, match="y contains NaN: 6 missing values, the first in row 7 "):
        ht.SparseLinearRegression().fit(X, pd.DataFrame({"a": y, "b": with_gaps(y, np.nan), "c": with_gaps(y, np.nan)}))


@pytest.mark.parametrize("model", [ht.SparseLinearRegression, ht.SparsePoissonRegression, ht.SparseCoxRegression])
@pytest.mark.parametrize(
    ("given", "what"),
    [
        (pd.date_range("2024-01-01", periods=N), "dates; turn them into numbers, such as days since the first one"),
        (pd.Series(pd.to_timedelta(np.arange(N), "D")), "durations; turn them into numbers, such as days"),
    ],
    ids=["dates", "durations"],
)
def test_dates_are_no_numbers_to_predict(model, given, what):
    with pytest.raises(InvalidInputError, match=f"y holds {what}"):
        model().fit(numbers()[0], given)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("model", [ht.SparseHuberRegression, ht.SparseQuantileRegression, ht.SparseLinearRegression])
def test_huge_targets_are_not_blamed_on_an_offset(model, intercept):
    X, y = numbers()
    with pytest.raises(InvalidInputError, match=r"the squares of the targets leave the range of float64 .*; rescale y"):
        model(fit_intercept=intercept).fit(X, y * 1e200)


COUNTING = [
    ht.SparsePoissonRegression,
    ht.SparseGammaRegression,
    ht.SparseTweedieRegression,
    ht.SparseNegativeBinomialRegression,
]


@pytest.mark.parametrize("model", COUNTING)
@pytest.mark.parametrize("span", [35.0, 37.0])
def test_an_exposure_without_its_logarithm_is_warned_of(model, span):
    X, _ = numbers()
    exposure = np.linspace(1.0, 1.0 + span, N)
    y, model = np.round(exposure), model(n_nonzero_coefs=1, max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, offset=exposure)
    said = [str(warning.message) for warning in caught if "offset goes from 1 to 38" in str(warning.message)]
    assert len(said) == (span > -np.log(np.finfo(float).eps))
    assert all("give offset=np.log(exposure)" in message for message in said)


def test_the_offset_of_a_row_of_weight_0_does_not_count():
    X, _ = numbers()
    offset, weight = np.where(np.arange(N) == 3, 5000.0, 0.0), np.where(np.arange(N) == 3, 0.0, 1.0)
    y = np.random.default_rng(0).poisson(2.0, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ht.SparsePoissonRegression(n_nonzero_coefs=1).fit(X, y, offset=offset, sample_weight=weight)
