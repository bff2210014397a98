"""Data frames whose columns have numbers or tuples for names, as in pd.DataFrame(array) and read_csv(header=None)."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError

N = 120


def numbers():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 10))
    return X, X[:, 0] - 0.6 * X[:, 1] + rng.standard_normal(N)


def unnamed(**changed):
    """A frame whose columns are called 10, 11, ..., some of them changed: its names are not its places."""
    X, _ = numbers()
    columns = dict(enumerate(X.T)) | {int(name[1:]): column for name, column in changed.items()}
    return pd.DataFrame(columns).set_axis(range(10, 20), axis=1)


def model(**settings):
    return ht.SparseLinearRegression(n_nonzero_coefs=2, **settings)


def site():
    return pd.Categorical(np.where(numbers()[0][:, 0] > 0, "north", "south"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"x2": [np.nan] * 3 + [1.0, 2.0, 3.0] * 39},
            r"X contains NaN: 3 missing values in column 2 \(counted from 0\); fill",
        ),
        ({"x2": [np.inf] + [1.0] * (N - 1)}, r"column 2 \(counted from 0\): Input X contains infinity"),
        ({"x2": ["Rome"] * N}, r"column 2 \(counted from 0\) holds text, such as 'Rome'; cast it to a category"),
        ({"x2": ["1.5"] * N}, r"column 2 \(counted from 0\) holds text, such as '1.5'"),
        (
            {"x2": pd.date_range("2024-01-01", periods=N)},
            r"column 2 \(counted from 0\) is of type datetime64.*; turn it into numbers",
        ),
        (
            {"x2": pd.Categorical([None] + ["a", "b", "c"] * 39 + ["a", "a"])},
            r"column 2 \(counted from 0\) has 1 missing value, and is categorical",
        ),
    ],
)
def test_columns_that_cannot_be_used_are_named_by_their_place(changed, message):
    with pytest.raises(InvalidInputError, match=message):
        model().fit(unnamed(**changed), numbers()[1])


@pytest.mark.parametrize("by_type", [True, False], ids=["by type", "by place"])
def test_numbered_columns_may_be_categorical(by_type, tmp_path):
    _, y = numbers()
    given = unnamed(x0=site() if by_type else np.asarray(site()))
    settings = {} if by_type else {"categorical_features": [0]}
    fitted = model(**settings).fit(given, y)
    twin = model(**settings).fit(given.rename(columns=lambda name: f"x{name - 10}"), y)
    assert_array_equal(fitted.coef_, twin.coef_)
    assert not hasattr(fitted, "feature_names_in_")
    assert_array_equal(fitted.encoded_feature_names_, twin.encoded_feature_names_)
    assert_array_equal(fitted.get_feature_names_out(), ["x0", "x1"])
    ht.save(fitted, tmp_path / "model.json")
    loaded = ht.load(tmp_path / "model.json")
    assert_array_equal(loaded.predict(given.iloc[:9]), fitted.predict(given)[:9])
    assert_array_equal(fitted.transform(given)[:, 0], np.asarray(site()))


def test_numbered_columns_need_no_names_in_scikit_learn():
    _, y = numbers()
    fitted = model().fit(unnamed(), y)
    np.testing.assert_allclose(fitted.to_sklearn().predict(unnamed()), fitted.predict(unnamed()), rtol=1e-12)


def test_names_of_two_types_are_refused_by_scikit_learn_also_beside_categories():
    _, y = numbers()
    with pytest.raises(TypeError, match="Feature names are only supported if all input features have string names"):
        model().fit(unnamed(x0=site()).rename(columns={11: "age"}), y)


def test_names_of_several_levels_are_told_not_to_be_kept():
    X, y = numbers()
    columns = pd.MultiIndex.from_tuples([("blood", j) for j in range(10)])
    given = pd.DataFrame(X, columns=columns)
    with pytest.warns(UserWarning, match=r"several levels, such as \('blood', 0\), so features are numbered.*join"):
        fitted = model().fit(given, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(given)
        given.columns = [" ".join(map(str, name)) for name in given.columns]
        assert list(model().fit(given, y).get_feature_names_out()) == ["blood 0", "blood 1"]
