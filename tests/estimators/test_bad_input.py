"""Promise 5: bad input raises an error that says what, which value, and what to do; nothing becomes NaN."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning, SearchRangeWarning
from hardthresh.estimators import (
    LowRankImputerCV,
    LowRankRegression,
    LowRankRegressionCV,
    SparseGaussianGraphicalModelCV,
    SparseLinearRegression,
    SparsePoissonRegression,
    SparsePoissonRegressionCV,
)
from hardthresh.objectives import LinearModel
from levels import inherited


def changed(X, place, value):
    X = X.copy()
    X[place] = value
    return X


BAD_DATA = {
    "NaN in X": (lambda X, y: (changed(X, (3, 2), np.nan), y), "X contains NaN"),
    "infinity in X": (lambda X, y: (changed(X, (3, 2), np.inf), y), "X contains infinity"),
    "minus infinity in X": (lambda X, y: (changed(X, (3, 2), -np.inf), y), "X contains infinity"),
    "NaN in sparse X": (lambda X, y: (sp.csr_array(changed(X, (3, 2), np.nan)), y), "X contains NaN"),
    "no rows": (lambda X, y: (X[:0], y[:0]), r"0 sample\(s\) \(shape=\(0, 12\)\)"),
    "no columns": (lambda X, y: (X[:, :0], y), r"0 feature\(s\) \(shape=\(60, 0\)\)"),
    "X with one dimension": (lambda X, y: (X[:, 0], y), "Expected 2D array, got 1D array instead"),
    "X with three dimensions": (lambda X, y: (X[:, :, None], y), "dim 3"),
    "X with text": (
        lambda X, y: (changed(X.astype(object), (0, 0), "high"), y),
        "could not convert string to float: 'high'",
    ),
    "X of texts": (
        lambda X, y: (X.astype(str).astype("<U8") + "?", y),
        "dtype='numeric' is not compatible|could not convert",
    ),
    "complex X": (lambda X, y: (X + 1j, y), "Complex data not supported"),
    "y too short": (lambda X, y: (X, y[:-1]), r"inconsistent numbers of samples: \[60, 59\]"),
    "y too long": (lambda X, y: (X[:-1], y), r"inconsistent numbers of samples: \[59, 60\]"),
    "y with two columns": (
        lambda X, y: (X, np.stack([y, y], axis=1)),
        r"^y should be a 1d array.* \(60, 2\) .* Sparse\w+ has one target; fit a model for each column",
    ),
    "no y": (lambda X, y: (X, None), "requires y to be passed"),
    "huge numbers": (
        lambda X, y: (1e160 * X, y),
        "X has entries so large that the scale of a column overflows; rescale its columns first",
    ),
    "columns that float32 has no squares of": (
        lambda X, y: ((X * np.where(np.arange(X.shape[1]) == 2, 1e20, 1.0)).astype("f4"), y),
        r"the squares of column 2 \(counted from 0\) of X overflow float32; rescale it, or standardize",
    ),
    "huge sparse column": (
        lambda X, y: (sp.csc_array(X * np.where(np.arange(X.shape[1]) == 2, 1e160, 1.0)), y),
        "X has entries so large that the scale of a column overflows; rescale its columns first",
    ),
}


@inherited
@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_are_refused(case, kind):
    if kind == "y with two columns" and case.cls._takes_outputs:
        pytest.skip("one output each")
    spoil, message = BAD_DATA[kind]
    settings = {"standardize": False} if "float32" in kind else {}
    with pytest.raises(ValueError, match=message):
        case.make(**settings).fit(*spoil(*case.data()))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_target_is_refused(case, value):
    X, y = case.data()
    y = changed(case.numbers(y), 5, value)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        case.make().fit(X, y)


@inherited
def test_text_as_the_target_of_a_regression_is_refused(case):
    X, y = case.data()
    if case.loss.classifies:
        pytest.skip("labels may be text")
    with pytest.raises(ValueError, match="could not convert string to float"):
        case.make().fit(X, [f"{value:.1f} mm" for value in y])


def test_numbers_as_labels_are_refused(classifier):
    X, _ = classifier.data()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        classifier.make().fit(X, X[:, 0])


def test_one_class_is_refused(classifier):
    X, y = classifier.data()
    with pytest.raises(
        InvalidInputError, match="y has one class only, \\['ill'\\]; examples of two classes are needed"
    ):
        classifier.make().fit(X, np.full_like(y, "ill"))


BAD_ROWS = {
    "too short": (lambda n: np.ones(n - 1), r"has shape \(59,\); \(60,\) is needed, one number per row of X"),
    "a matrix": (lambda n: np.ones((n, 1)), r"has shape \(60, 1\); \(60,\) is needed"),
    "NaN": (lambda n: changed(np.ones(n), 7, np.nan), "contains NaN or infinity"),
    "infinity": (lambda n: changed(np.ones(n), 7, np.inf), "contains NaN or infinity"),
    "text": (lambda n: ["a"] * n, "must be numeric, got dtype <U1"),
    "objects": (lambda n: np.array([None] * n), "must be numeric, got dtype object"),
    "complex": (lambda n: np.full(n, 1j), "has dtype complex128; give real numbers"),
}


@inherited
@pytest.mark.parametrize("name", ["sample_weight", "offset"])
@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_weights_and_offsets_are_refused(case, name, kind):
    X, y = case.data()
    bad, message = BAD_ROWS[kind]
    with pytest.raises(InvalidInputError, match=f"{name} {message}"):
        case.make().fit(X, y, **{name: bad(y.size)})
    if name == "offset":
        model = case.make().fit(X, y)
        with pytest.raises(InvalidInputError, match=f"{name} {message}"):
            model.predict(X, offset=bad(y.size))


@inherited
@pytest.mark.parametrize(
    ("weight", "found"),
    [
        (lambda n: changed(np.ones(n), 3, -0.5), "a negative weight"),
        (np.zeros, "only zeros"),
        (lambda n: -np.ones(n), "a negative weight"),
    ],
)
def test_weights_must_be_weights(case, weight, found):
    X, y = case.data()
    with pytest.raises(
        InvalidInputError, match=f"sample_weight must be non-negative with a positive entry, found {found}"
    ):
        case.make().fit(X, y, sample_weight=weight(y.size))


BUDGETS = {
    -1: r"between 0 and the number of features \(12\), got -1",
    13: r"between 0 and the number of features \(12\), got 13",
    2.5: "n_nonzero_coefs must be .*, got 2.5",
    2.0: "n_nonzero_coefs must be .*, got 2.0",
    True: "n_nonzero_coefs must be .*, got True",
    "many": "n_nonzero_coefs must be .*, got 'many'",
}


@pytest.mark.parametrize("k", BUDGETS)
def test_bad_numbers_of_features_are_refused(case, k):
    X, y = case.data()
    with pytest.raises(InvalidInputError, match=BUDGETS[k]):
        case.make(n_nonzero_coefs=k).fit(X, y)
    if case.chooses and not isinstance(k, str):
        with pytest.raises(InvalidInputError, match=BUDGETS[k]):
            case.make(n_nonzero_coefs=[1, k]).fit(X, y)


BAD_SETTINGS = [
    ("alpha", -0.1, "alpha must be None or a finite number >= 0, got -0.1"),
    ("alpha", np.nan, "alpha must be None or a finite number >= 0, got nan"),
    ("alpha", np.inf, "alpha must be None or a finite number >= 0, got inf"),
    ("alpha", "auto", "alpha must be None or a finite number >= 0, got 'auto'"),
    ("tol", 0.0, "tol must be > 0, got 0.0"),
    ("tol", -1e-3, "tol must be > 0, got -0.001"),
    ("tol", np.nan, "tol must be > 0, got nan"),
    ("tol", None, "tol must be > 0, got None"),
    ("max_iter", 0, "max_iter must be an integer >= 1, got 0"),
    ("max_iter", 10.0, "max_iter must be an integer >= 1, got 10.0"),
    ("max_iter", None, "max_iter must be an integer >= 1, got None"),
    ("solver", "magic", "unknown solver 'magic'; known: .*pursuit"),
    ("solver", None, 'solver must be "auto", a name or a Solver, got None'),
    ("always_include", [12], "always_include names column 12; X has 12 columns, counted from 0"),
    ("always_include", [-1], "always_include names column -1; X has 12 columns, counted from 0"),
    ("always_include", ["age"], "always_include names the unknown column 'age'; X has no column names; use indices"),
    ("always_include", "age", "always_include must be a list of columns, got 'age'"),
    ("always_include", 3, "always_include must be a list of columns, got 3"),
    ("always_include", [1.5], "always_include takes names and indices, got 1.5"),
    ("always_include", [True], "always_include takes names and indices, got True"),
]


@inherited
@pytest.mark.parametrize(("name", "value", "message"), BAD_SETTINGS, ids=lambda value: str(value)[:20])
def test_bad_settings_are_refused(case, name, value, message):
    X, y = case.data()
    if case.chooses and name == "alpha":
        pytest.skip("ridges to compare are tested with the grid")
    with pytest.raises(InvalidInputError, match=message):
        case.make(**{name: value}).fit(X, y)


@inherited
def test_an_unknown_name_is_answered_with_known_ones(case):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = case.data()
    frame = pandas.DataFrame(X, columns=[f"gene{j}" for j in range(X.shape[1])])
    with pytest.raises(InvalidInputError, match="unknown column 'gene12'; known are gene0, gene1, "):
        case.make(always_include=["gene12"]).fit(frame, y)


@inherited
def test_a_name_that_two_columns_have_is_refused(case):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = case.data(d=3)
    frame = pandas.DataFrame(X, columns=["age", "sex", "age"])
    with pytest.raises(ValueError, match="age"):
        case.make(k=1, always_include=["age"]).fit(frame, y)


CHOOSER_SETTINGS = [
    ({"n_nonzero_coefs": []}, "n_nonzero_coefs is empty; give the numbers of features to compare"),
    ({"n_nonzero_coefs": iter(())}, "n_nonzero_coefs is empty; give the numbers of features to compare"),
    ({"n_nonzero_coefs": 0}, "n_nonzero_coefs=0 leaves nothing to compare: K compares 0 to K, and .0. compares 0"),
    ({"rule": "worst"}, 'rule must be "best" or "one_standard_error", got \'worst\''),
    ({"cv": 1}, "n_splits=1"),
    ({"cv": 61}, "n_splits=61"),
    ({"cv": []}, "cv gives no folds"),
    ({"cv": "five"}, "Expected `cv` as an integer"),
    ({"cv": [([0, 1, 2, 3], [])]}, "fold 0 of cv has no rows to hold out"),
    ({"cv": [([], [0, 1, 2, 3])]}, "fold 0 of cv has no rows to train on"),
    ({"cv": [([0, 1, 2, 3], [77])]}, "cv must name rows of X, which has 60: index 77"),
    ({"scoring": "beauty"}, "beauty"),
]


@pytest.mark.parametrize(("settings", "message"), CHOOSER_SETTINGS, ids=lambda value: str(value)[:30])
def test_bad_choices_are_refused(chooser, settings, message):
    X, y = chooser.data()
    with pytest.raises(ValueError, match=message):
        chooser.make(**settings).fit(X, y)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (LowRankImputerCV(0), "rank"),
        (LowRankRegressionCV(rank=0), "rank"),
        (SparseGaussianGraphicalModelCV(0), "n_edges"),
    ],
)
def test_comparing_up_to_zero_is_refused(model, name):
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=f"{name}=0 leaves nothing to compare"):
        model.fit(rng.standard_normal((20, 4)), rng.standard_normal((20, 3)))


def test_a_score_that_is_not_finite_is_refused(chooser):
    X, y = chooser.data()
    with pytest.raises(InvalidInputError, match="a held-out score is NaN or infinite; check the scoring and the folds"):
        chooser.make(scoring=lambda model, X, y: float("nan")).fit(X, y)


def test_a_scorer_of_two_classes_comes_with_those_of_several():
    X = np.random.default_rng(0).standard_normal((60, 4))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.raises(
        InvalidInputError, match=r"^scoring='roc_auc' does not fit this .*; for more .* roc_auc_ovr or "
    ):
        ht.SparseLogisticRegressionCV(n_nonzero_coefs=[1], scoring="roc_auc").fit(X, y)

    def broken(model, X, y):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        ht.SparseLogisticRegressionCV(n_nonzero_coefs=[1], scoring=broken).fit(X, y)


def test_a_scorer_cannot_see_an_offset(chooser):
    X, y = chooser.data()
    with pytest.raises(InvalidInputError, match="scorers cannot see an offset; use scoring=None"):
        chooser.make(scoring="neg_mean_squared_error").fit(X, y, offset=np.ones(y.size))


def test_a_fold_without_one_of_the_classes_is_named(classifier):
    if not classifier.chooses:
        pytest.skip("there are no folds")
    X, y = classifier.data()
    model = classifier.make(cv=[(np.arange(40), np.arange(40, 60)), (np.flatnonzero(y == "ill"), np.arange(10))])
    message = "fold 1 of cv trains on rows of one class only; use fewer or stratified folds"
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, y)


def test_a_failed_fit_leaves_the_settings_as_they_were(case):
    X, y = case.data()
    model = case.make(alpha=-1.0)
    before = repr(model.get_params())
    with pytest.raises(InvalidInputError):
        model.fit(X, y)
    assert repr(model.get_params()) == before


# columns that cannot be chosen


def fitted_with_warning(case, X, y, message, **settings):
    with pytest.warns(UserWarning, match=message) as caught:
        model = case.make(**settings).fit(X, y)
    messages = [str(w.message) for w in caught if not isinstance(w.message, SearchRangeWarning | NothingFoundWarning)]
    assert len(messages) == 1, messages
    return model


@pytest.mark.parametrize("value", [0.0, 1.0, 1e9, 0.1])
def test_constant_columns_are_told_and_never_chosen(case, value):
    X, y = case.data()
    X[:, 1] = value  # one that the target depends on, were it not constant
    model = fitted_with_warning(
        case, X, y, r"1 constant column \(feature 1, counted from 0\) carries no information and cannot be chosen", k=12
    )
    assert 1 not in model.support_
    assert np.reshape(model.coef_, -1)[1] == 0.0
    assert model.scale_[1] == 0.0
    assert np.all(np.isfinite(model.coef_))
    without = case.make(k=11).fit(np.delete(X, 1, axis=1), y)
    if case.chooses:  # the average above counts the model of all columns twice
        with pytest.warns(UserWarning, match="1 constant column"):
            model = case.make(k=11).fit(X, y)
    assert_allclose(np.delete(np.reshape(model.coef_, -1), 1), np.reshape(without.coef_, -1), rtol=1e-6, atol=1e-9)


@inherited
@pytest.mark.filterwarnings("ignore:.* fits inside the folds did not converge")  # of as many columns as rows
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("n", [13, 26, 59])  # no powers of two: in float32 n weights of 1/n do not sum to 1
def test_constant_columns_of_float32_are_told_and_never_chosen(case, n, standardize):
    X, y = case.data(n=n)
    X = X.astype(np.float32)
    X[:, 1] = -7.25
    for weight in (None, np.random.default_rng(n).random(n)):
        with pytest.warns(UserWarning, match=r"1 constant column \(feature 1, counted from 0\)"):
            model = case.make(k=12, standardize=standardize).fit(X, y, sample_weight=weight)
        assert 1 not in model.support_
        assert np.all(np.abs(model.coef_) < 1e3)


@inherited
def test_a_column_that_is_constant_where_there_is_weight_cannot_be_chosen(case):
    X, y = case.data()
    X[: y.size // 2, 1] = 4.0
    weight = (np.arange(y.size) < y.size // 2).astype(float)
    with pytest.warns(UserWarning, match="feature 1"):
        model = case.make(k=5).fit(X, y, sample_weight=weight)
    assert 1 not in model.support_


@inherited
def test_a_constant_column_cannot_be_included(case):
    X, y = case.data()
    X[:, 2] = 7.0
    with pytest.raises(
        InvalidInputError,
        match=r"feature 2 \(counted from 0\), which is constant and cannot be told from the intercept; leave it out",
    ):
        case.make(always_include=[2]).fit(X, y)


def test_without_an_intercept_a_constant_column_is_one_like_any_other(plain):
    X, y = plain.data(level=70.0)
    X[:, 2] = 7.0
    model = plain.cls(n_nonzero_coefs=12, fit_intercept=False).fit(X, y)
    assert 2 in model.support_


def test_all_columns_constant(case):
    X, y = case.data(d=4)
    X = np.ones_like(X) * np.arange(4.0)
    with pytest.warns(UserWarning, match=r"4 constant columns \(features 0, 1, 2, 3, counted from 0\)"):
        model = case.make(k=2).fit(X, y)
    assert model.support_.size == 0
    assert_array_equal(model.coef_, np.zeros_like(model.coef_))
    assert len(set(model.predict(X).tolist())) == 1


@inherited
def test_a_constant_column_of_sparse_data_is_noticed(case):
    X, y = case.data()
    X[:, 1], X[:, 5] = 3.0, 0.0
    model = fitted_with_warning(case, sp.csr_array(X), y, r"2 constant columns \(features 1, 5, counted from 0\)")
    assert not {1, 5} & set(model.support_.tolist())


@inherited
def test_sound_input_causes_no_warning(case):
    X, y = case.data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case.make(k=12).fit(X, y).predict(X)


@inherited
def test_predicting_before_fitting_is_refused(case):
    X, _ = case.data()
    for method in ("predict", "certificate", "get_support", *(["transform"] if case.transforms else [])):
        with pytest.raises(Exception, match="not fitted yet"):
            getattr(case.make(), method)(*([X] if method in ("predict", "transform") else []))


@inherited
def test_predicting_other_columns_is_refused(case):
    X, y = case.data()
    model = case.make().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 11 features, but .* is expecting 12 features"):
        model.predict(X[:, :11])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.predict(changed(X, (0, 0), np.nan))


@pytest.mark.parametrize("name", ["fit_intercept", "standardize", "positive", "warm_start"])
@pytest.mark.parametrize("value", ["no", 1, None])
def test_flags_must_be_booleans(name, value):
    X, y = np.eye(6), np.arange(6.0)
    with pytest.raises(ValueError, match=f"{name} must be True or False, got {value!r}"):
        SparseLinearRegression(n_nonzero_coefs=2, **{name: value}).fit(X, y)


@pytest.mark.parametrize("convert", [np.asarray, sp.csc_array], ids=["dense", "sparse"])
def test_tiny_columns_are_not_called_constant(convert):
    rng = np.random.default_rng(0)
    X, y = 1e-200 * rng.standard_normal((20, 4)), rng.standard_normal(20)
    with pytest.raises(ValueError, match=r"feature 0 \(counted from 0\) are so small that their squares underflow"):
        SparseLinearRegression(n_nonzero_coefs=2).fit(convert(X), y)


def test_sparse_columns_far_from_zero_are_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    X[:, 2] += 1e8
    y = X[:, 1] + 0.1 * rng.standard_normal(20)
    SparseLinearRegression(n_nonzero_coefs=1).fit(X, y)
    with pytest.warns(UserWarning, match=r"1 sparse column \(feature 2, counted from 0\) has a mean a million times"):
        SparseLinearRegression(n_nonzero_coefs=1).fit(sp.csc_array(X), y)


@inherited
@pytest.mark.parametrize("unit", [1e300, 1e39, 1e-42, 1e-300])
def test_only_the_ratios_of_weights_need_the_precision_of_X(case, unit):
    X, y = case.data()
    X = X.astype(np.float32)
    weight = 1.0 + np.arange(y.size) % 3
    model, other = (case.single().fit(X, y, sample_weight=w) for w in (weight, unit * weight))
    assert_allclose(other.coef_, model.coef_, rtol=1e-4)
    with pytest.raises(InvalidInputError, match="found a negative weight"):
        case.make().fit(X, y, sample_weight=np.where(np.arange(y.size) == 3, -unit, unit))


@inherited
def test_numbers_beyond_the_precision_of_X_are_not_called_infinite(case):
    X, y = case.data()
    X, huge = X.astype(np.float32), np.where(np.arange(y.size) == 3, 1e100, 1.0)
    message = "has entries of up to 1e[+]100, which leave the range of float32; rescale it, or compute in float64"
    with pytest.raises(InvalidInputError, match=f"offset {message}"):
        case.make().fit(X, y, offset=huge)
    if not case.loss.classifies:
        with pytest.raises(InvalidInputError, match=f"y {message}"):
            case.make().fit(X, huge)
    for name, given in {"y": {"y": huge}, "offset": {"y": 0 * huge, "offset": list(huge)}}.items():
        with pytest.raises(InvalidInputError, match=f"{name} {message}"):
            LinearModel(X, **given)
    with pytest.raises(InvalidInputError, match=f"y {message}"):
        LowRankRegression(rank=1).fit(X, huge)


@pytest.mark.parametrize(
    "model", [SparsePoissonRegression(n_nonzero_coefs=2, alpha=10.0), SparsePoissonRegressionCV(n_nonzero_coefs=2)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_that_are_all_zero_are_told_as_that(model, weighted):
    X = np.random.default_rng(0).standard_normal((30, 4))
    y, weight = np.zeros(30), np.ones(30)
    if weighted:
        y[3], weight[3] = 2.0, 0.0
    with pytest.raises(InvalidInputError, match="all targets are 0, which no finite intercept predicts, even with"):
        model.fit(X, y, sample_weight=weight)


def test_a_model_of_zero_counts_without_an_intercept_may_converge():
    X = np.random.default_rng(0).standard_normal((30, 4))
    model = SparsePoissonRegression(n_nonzero_coefs=2, alpha=10.0, fit_intercept=False).fit(X, np.zeros(30))
    assert model.converged_


@pytest.mark.parametrize(
    "model",
    [
        ht.SparseLogisticRegression(),
        ht.SparseLogisticRegressionCV(),
        ht.SparseLinearSVC(),
        ht.SparseOrdinalRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_labels_that_are_missing_or_mixed_are_named(model):
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(InvalidInputError, match="y has 1 missing label, the first in row 1; leave out these rows"):
        model.fit(X, np.array(["a", None, "b", "a", "b", "b"], dtype=object))
    with pytest.raises(InvalidInputError, match="y has labels of the types int, str; convert them to one"):
        model.fit(X, np.array(["a", 1, "b", "a", "b", "b"], dtype=object))
