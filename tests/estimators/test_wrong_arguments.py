"""Wrong arguments of estimators and of saved files: the error names the argument and its value."""

import warnings

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.storage import StorageError, load_notes

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] + 1
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
HEAVY = np.where(np.arange(60) == 3, 1.0, 0.0)


def weighted(value):
    return np.where(np.arange(60) == 4, value, 1.0)


WRONG = {
    "random_state, limited": (
        lambda: ht.LimitedAttributeRegression(2, 5, random_state="a").fit(X, Y),
        "random_state must be None, an integer or a RandomState, got 'a'",
    ),
    "random_state": (
        lambda: ht.SparseLinearRegression(random_state="a").fit(X, Y),
        "random_state must be None, an integer or a RandomState, got 'a'",
    ),
    "cv of numbers": (
        lambda: ht.SparseLinearRegressionCV(cv=[1, 2]).fit(X, Y),
        r"cv must be a number of folds, a splitter or pairs \(train, test\) of indices, got \[1, 2\]",
    ),
    "cv of numbers, imputer": (
        lambda: ht.LowRankImputerCV(cv=[1, 2]).fit(GAPS),
        r"cv must be a number of folds or pairs \(train, test\) of indices, got \[1, 2\]",
    ),
    "too many folds": (
        lambda: ht.SparseLinearRegressionCV(cv=100).fit(X, Y),
        "cv=100: Cannot have number of splits n_splits=100 greater than the number of samples: n_samples=60.$",
    ),
    "folds of rows of weight zero": (
        lambda: ht.SparseLinearRegressionCV().fit(X, Y, sample_weight=HEAVY),
        "cv=5: .*n_samples=1.; 59 of the 60 rows have weight 0 and are left out$",
    ),
    "target of text": (
        lambda: ht.SparseLinearRegression().fit(X, ["a"] * 60),
        "y: could not convert string to float.*; numbers are needed",
    ),
    "weight, NaN": (
        lambda: ht.SparseLinearRegression().fit(X, Y, sample_weight=weighted(np.nan)),
        r"sample_weight contains NaN or infinity: sample_weight\[4\] is nan",
    ),
    "weight, negative": (
        lambda: ht.SparseLinearRegression().fit(X, Y, sample_weight=weighted(-0.5)),
        r"found a negative weight: sample_weight\[4\] is -0.5",
    ),
    "entries": (
        lambda: ht.LowRankImputer(2).fit(GAPS).predict_entries([0, 70], [0, 1]),
        r"rows must be integers from 0 to 59; rows\[1\] is 70",
    ),
    "load": (lambda: ht.load(3), "the path of a model file must be text or a path, got 3"),
    "load_notes": (lambda: load_notes(3), "the path of a model file must be text or a path, got 3"),
    "save": (lambda: ht.save(X, 3), "the path of a model file must be text or a path, got 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named_with_their_value(name):
    call, message = WRONG[name]
    with pytest.raises((InvalidInputError, StorageError), match=message):
        call()


@pytest.mark.slow
def test_a_random_state_is_a_seed_of_paid_attributes():
    fits = [
        ht.LimitedAttributeRegression(2, 5, random_state=state).fit(np.tile(X, (50, 1)), np.tile(Y, 50))
        for state in (0, np.random.RandomState(0))
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_saving_into_a_missing_folder_says_so(tmp_path):
    path = tmp_path / "models" / "model.json"
    with pytest.raises(FileNotFoundError, match=r"the folder .*models does not exist; make it first") as caught:
        ht.save(ht.SparseLinearRegression().fit(X, Y), path)
    assert caught.value.filename == str(path)


def test_infinity_is_refused_without_a_warning_of_numpy():
    model = ht.LowRankImputer(2).fit(GAPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInputError, match="infinity"):
            model.transform(GAPS * np.inf)


def test_predictions_that_overflow_are_told_as_that():
    model = ht.SparsePoissonRegression(n_nonzero_coefs=1).fit(X, np.round(np.exp(Y)))
    far = np.abs(X[:3]) * np.array([[1e5], [1.0], [-1e5]])
    with pytest.warns(UserWarning, match="1 of 3 predictions exceeds the largest float64 and is infinite") as caught:
        assert np.count_nonzero(np.isinf(model.predict(far))) == 1
    assert len(caught) == 1
