"""Categorical columns: each is a group of indicators and counts as one feature, in every library of data frames."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError
from hardthresh.estimators.linear.encoding import Encoding, Factor
from hardthresh.storage import StorageError
from levels import at_most, only_at

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LIBRARIES = ["pandas", "polars", "arrow"]


def frame(library, X, **factors):
    """A data frame of the columns of X and of categorical columns."""
    columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
    if library == "pandas":
        return pd.DataFrame(columns | {name: pd.Categorical(labels) for name, labels in factors.items()})
    if library == "polars":
        return pl.DataFrame(columns | {name: pl.Series(x, dtype=pl.Categorical) for name, x in factors.items()})
    return pa.table(columns | {name: pa.array(list(x)).dictionary_encode() for name, x in factors.items()})


def table(case, n=80, seed=0):
    """Numbers, a colour that the target depends on, a size that it does not, and the target."""
    X, y = case.data(n=n, d=8, seed=seed)
    colour = np.array(["red", "blue", "green"])[np.digitize(X[:, 1], np.quantile(X[:, 1], [0.5, 0.8]))]
    size = np.array(["small", "large"])[np.random.default_rng(seed).integers(0, 2, n)]
    return X[:, [0, 2, 3, 4, 5]], colour, size, y


def fitted(case, k=2, library="pandas", seed=0, **settings):
    X, colour, size, y = table(case, seed=seed)
    given = frame(library, X, colour=colour, size=size)
    return case.make(k=k, **settings).fit(given, y), given, y


def flat(model):
    return np.ravel(model.coef_)


# the encoding


def slow_indicators(labels, levels):
    return np.array([[float(label == level) for level in levels] for label in labels])


@pytest.mark.slow
def test_levels_become_indicators_in_the_place_of_their_column(plain):
    X, colour, size, y = table(plain)
    given = frame("pandas", X, colour=colour, size=size)[["x0", "colour", "x1", "size", "x2", "x3", "x4"]]
    model = plain.make(k=3, alpha=0.0).fit(given, y)
    counts = dict(zip(*np.unique(size, return_counts=True), strict=True))
    rarer = min(counts, key=counts.get)
    names = ["x0", "colour=blue", "colour=green", "x1", f"size={rarer}", "x2", "x3", "x4"]
    assert_array_equal(model.encoded_feature_names_, names)  # red is the most frequent
    by_hand = np.column_stack(
        [X[:, :1], slow_indicators(colour, ["blue", "green"]), X[:, 1:2], slow_indicators(size, [rarer]), X[:, 2:]]
    )
    groups = ["x0", "colour", "colour", "x1", "size", "x2", "x3", "x4"]
    twin = clone(model).set_params(n_nonzero_coefs="auto", groups=groups, n_nonzero_groups=3).fit(by_hand, y)
    assert_array_equal(model.coef_, twin.coef_)
    assert_array_equal(model.support_, twin.support_)
    assert_array_equal(plain.scores(model)(given), plain.scores(twin)(by_hand))
    assert model.n_nonzero_coefs_ == len(twin.groups_) == 3
    assert not hasattr(model, "groups_")


def test_with_a_ridge_each_level_has_a_coefficient(plain):
    model, _, _ = fitted(plain, alpha=0.1)
    assert [name for name in model.encoded_feature_names_ if "=" in name] == [
        *("colour=blue", "colour=green", "colour=red"),
        *("size=large", "size=small"),
    ]
    free, _, _ = fitted(plain, alpha=0.1, always_include=["colour"])  # what is always included is not penalised
    assert "colour=red" not in free.encoded_feature_names_
    assert "size=small" in free.encoded_feature_names_


def test_check_24_the_groups_and_the_objective_do_not_depend_on_the_coding():
    rng = np.random.default_rng(5)
    n = 200
    X, city = rng.standard_normal((n, 6)), rng.integers(0, 4, n)
    y = X[:, 0] + np.array([0.0, 1.0, -1.0, 0.5])[city] + 0.3 * rng.standard_normal(n)
    labels = np.array(["a", "b", "c", "d"])[city]
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(frame("pandas", X, city=labels), y)
    indicators = slow_indicators(labels, "abcd")
    codings = {
        "every level": indicators,
        "reference a": indicators[:, 1:],
        "reference d": indicators[:, :-1],
        "sum to zero": indicators[:, :-1] - indicators[:, -1:],
    }
    for name, coding in codings.items():
        groups = [f"x{j}" for j in range(6)] + ["city"] * coding.shape[1]
        twin = ht.SparseLinearRegression(groups=groups, n_nonzero_groups=2).fit(np.column_stack([X, coding]), y)
        assert set(twin.groups_) == set(model.get_feature_names_out()) == {"x0", "city"}, name
        assert_allclose(twin.objective_, model.objective_, rtol=1e-8, err_msg=name)


@pytest.mark.slow
@at_most(3)
def test_check_24_the_bits_do_not_depend_on_the_library_of_the_frame(case):
    models = [fitted(case, library=library) for library in LIBRARIES]
    first, given, _ = models[0]
    for model, rows, _ in models[1:]:
        assert_array_equal(model.coef_, first.coef_)
        assert_array_equal(model.intercept_, first.intercept_)
        assert_array_equal(case.scores(model)(rows), case.scores(first)(given))
        assert_array_equal(model.encoded_feature_names_, first.encoded_feature_names_)
        assert_array_equal(model.feature_names_in_, first.feature_names_in_)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_numbers_is_the_array_of_its_rows(case, library):
    X, y = case.data()
    model, twin = case.make().fit(frame(library, X), y), case.make().fit(X, y)
    assert_array_equal(model.coef_, twin.coef_)
    assert_array_equal(case.scores(model)(frame(library, X)), case.scores(twin)(X))
    assert not hasattr(model, "encoding_")
    assert_array_equal(model.encoded_feature_names_, model.feature_names_in_)


def test_check_24_the_order_of_the_columns_does_not_matter(plain):
    model, given, y = fitted(plain)
    order = [6, 3, 0, 5, 1, 4, 2]
    twin = plain.make(k=2).fit(given.iloc[:, order], y)
    assert set(model.get_feature_names_out()) == set(twin.get_feature_names_out())
    place = {name: j for j, name in enumerate(twin.encoded_feature_names_)}
    assert_allclose(flat(model), flat(twin)[[place[name] for name in model.encoded_feature_names_]], atol=1e-7)


def test_ordered_boolean_and_number_labels_are_levels():
    rng = np.random.default_rng(0)
    n = 60
    level, sick, grade = rng.integers(0, 3, n), rng.integers(0, 2, n).astype(bool), rng.integers(1, 4, n)
    X = pd.DataFrame(
        {
            "x": rng.standard_normal(n),
            "level": pd.Categorical(np.array(["low", "mid", "high"])[level], ["low", "mid", "high"], ordered=True),
            "sick": pd.Categorical(sick),
            "grade": pd.Categorical(grade),
            "age": pd.cut(rng.uniform(20, 60, n), [0, 40, 80]),
        }
    )
    y = level + 2.0 * sick + 0.1 * rng.standard_normal(n)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=0.01).fit(X, y)
    assert list(model.get_feature_names_out()) == ["level", "sick"]
    assert model.encoding_.factors[1].levels == (False, True)
    assert model.encoding_.factors[2].levels == (1, 2, 3)
    assert model.encoding_.factors[3].levels == ("(0, 40]", "(40, 80]")
    named = ht.SparseLinearRegression(n_nonzero_coefs=2, alpha=0.01, categorical_features=["grade", 1, 2, "age"])
    twin = named.fit(X.assign(grade=grade), y)  # whole numbers instead of categories
    assert twin.encoding_ == model.encoding_
    assert_array_equal(twin.coef_, model.coef_)


def test_arrays_have_categorical_columns_by_index():
    rng = np.random.default_rng(2)
    n = 90
    X, city = rng.standard_normal((n, 3)), rng.integers(0, 3, n)
    y = X[:, 2] + np.array([0.0, 2.0, -2.0])[city]
    table = np.column_stack([X[:, 0], city, X[:, 1:]])
    model = ht.SparseLinearRegression(n_nonzero_coefs=2, categorical_features=[1]).fit(table, y)
    assert_array_equal(model.get_support(indices=True), [1, 3])
    assert list(model.encoded_feature_names_[1:3]) == [f"x1={level}" for level in model.encoding_.factors[0].encoded]
    assert_allclose(model.predict(table), y, atol=1e-8)
    texts = table.astype(object)
    texts[:, 1] = np.array(["a", "b", "c"])[city]
    twin = ht.SparseLinearRegression(n_nonzero_coefs=2, categorical_features=[1]).fit(texts, y)
    assert_array_equal(twin.coef_, model.coef_)
    assert ht.SparseLinearRegression(n_nonzero_coefs=2, categorical_features=None).fit(table, y).coef_.size == 4


# which level is the reference


def test_weights_say_which_level_is_the_most_frequent(plain):
    X, colour, size, y = table(plain)
    given = frame("pandas", X, colour=colour, size=size)
    weight = np.where(colour == "green", 7, 1)
    weighted = plain.make(k=2, alpha=0.0).fit(given, y, sample_weight=weight)
    rows = np.repeat(np.arange(y.size), weight)
    repeated = plain.make(k=2, alpha=0.0).fit(given.iloc[rows], y[rows])
    assert weighted.encoding_ == repeated.encoding_
    assert "colour=green" not in weighted.encoded_feature_names_
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_rows_of_weight_zero_have_no_level(plain):
    X, colour, size, y = table(plain)
    colour = np.where(np.arange(y.size) < 3, "rare", colour)
    given, weight = frame("pandas", X, colour=colour, size=size), np.where(np.arange(y.size) < 3, 0.0, 1.0)
    model, twin = plain.make(k=2).fit(given, y, sample_weight=weight), plain.make(k=2).fit(given.iloc[3:], y[3:])
    assert model.encoding_ == twin.encoding_
    assert "rare" not in model.encoding_.factors[0].levels
    assert_array_equal(model.coef_, twin.coef_)


# the columns of the user


def test_the_selector_speaks_of_the_columns_of_the_user(selector):
    model, given, _ = fitted(selector)
    assert model.n_features_in_ == given.shape[1] == model.get_support().size
    assert model.get_support().sum() == model.n_nonzero_coefs_ == 2
    assert "colour" in model.get_feature_names_out()
    chosen = np.asarray(model.transform(given))
    assert_array_equal(chosen, given[model.get_feature_names_out()].to_numpy())
    assert model.coef_.shape[-1] == model.encoded_feature_names_.size > model.n_features_in_
    numbers = np.arange(6.0).reshape(3, 2)
    assert_array_equal(model.inverse_transform(numbers)[:, model.get_support()], numbers)


@pytest.mark.slow
def test_the_certificate_names_columns_of_the_user(plain):
    model, given, y = fitted(plain)
    certificate = model.certificate()
    assert certificate.removed_name in given.columns
    assert certificate.added_name in given.columns
    again = model.certificate(given, y)
    assert again.removed_name == certificate.removed_name
    assert_allclose(again.value, certificate.value, rtol=1e-8)


@pytest.mark.slow
@at_most(3)
def test_saved_pickled_and_cloned_models_are_the_same(case, tmp_path):
    model, given, y = fitted(case)
    ht.save(model, tmp_path / "model.json")
    for other in (ht.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model)), clone(model).fit(given, y)):
        assert other.encoding_ == model.encoding_
        assert_array_equal(other.encoded_feature_names_, model.encoded_feature_names_)
        assert_array_equal(case.scores(other)(given), case.scores(model)(given))


def test_a_damaged_encoding_is_refused(tmp_path):
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).fit(
        pd.DataFrame({"c": pd.Categorical(["a", "b", "a"])}), [1, 2, 1]
    )
    ht.save(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    assert '"column":0' in text.replace(" ", "")
    (tmp_path / "model.json").write_text(text.replace('"column": 0', '"column": 5').replace('"column":0', '"column":5'))
    with pytest.raises(StorageError):
        ht.load(tmp_path / "model.json")
    model.encoding_ = Encoding(2, (Factor(0, ("a", "b"), 0),))
    with pytest.raises(StorageError, match="encoding_ is one of 2 columns; 1 are needed"):
        ht.save(model, tmp_path / "model.json")


def test_a_fit_to_numbers_forgets_the_encoding(plain):
    model, given, y = fitted(plain)
    numbers = given[["x0", "x1", "x2", "x3", "x4"]]
    assert not hasattr(model.fit(numbers, y), "encoding_")
    assert model.predict(numbers).shape == y.shape


# with other settings


def test_groups_of_columns_take_their_levels_along(plain):
    X, colour, size, y = table(plain)
    given = frame("pandas", X, colour=colour, size=size)
    labels = {name: "look" if name in ("colour", "size") else name for name in given}
    model = plain.cls(groups=labels, n_nonzero_groups=3).fit(given, y)
    assert "look" in model.groups_
    assert {"colour", "size"} < set(model.get_feature_names_out())
    assert model.n_nonzero_groups_ == 3


def test_always_included_categories_are_not_counted(case):
    model, _, _ = fitted(case, k=1, always_include=["size"])
    assert {"size"} < set(model.get_feature_names_out())
    assert model.n_nonzero_coefs_ == 1


@pytest.mark.parametrize("setting", [{"positive": True}, {"bounds": (0, 1)}])
def test_signs_and_bounds_of_levels_are_refused(plain, setting):
    with pytest.raises(
        InvalidInputError, match="does not go together with categorical columns such as column 'colour'"
    ):
        fitted(plain, **setting)


def test_a_warm_start_starts_from_the_coefficients_of_the_levels(plain):
    model, given, y = fitted(plain, warm_start=True)
    before = model.coef_.copy()
    assert_allclose(model.fit(given, y).coef_, before, atol=1e-6)


# cross-validation


@at_most(2)
def test_a_level_may_be_missing_in_a_fold(chooser):
    X, colour, size, y = table(chooser)
    colour[0] = "rare"
    given, rows = frame("pandas", X, colour=colour, size=size), np.arange(y.size)
    folds = [(rows[1:50], rows[50:]), (rows[30:], rows[:30])]
    for always in (None, ["colour"]):
        model = chooser.make(k=2, always_include=always).set_params(cv=folds).fit(given, y)
        assert "rare" in model.encoding_.factors[0].levels
        assert np.isfinite(model.scores_).all()
        assert np.isfinite(flat(model)).all()


@pytest.mark.slow
@at_most(1)
def test_scorers_and_pipelines_see_the_columns_of_the_user(chooser):
    X, colour, size, y = table(chooser)
    given, seen = frame("pandas", X, colour=colour, size=size), []

    def score(model, rows, targets):
        seen.append(list(rows.columns))
        return model.score(rows, targets)

    model = chooser.make(k=2, scoring=score).fit(given, y)
    assert seen[0] == list(given.columns)
    assert np.isfinite(model.scores_).all()
    pipeline = make_pipeline(FunctionTransformer(), chooser.make(k=2))
    with warnings.catch_warnings(action="ignore"):
        assert np.isfinite(cross_val_score(pipeline, given, y, cv=2)).all()


@pytest.mark.slow
def test_a_factor_is_chosen_whole_in_averages(chooser):
    model, _, _ = fitted(chooser, k=3, averaging="stacking")
    features = model.encoding_.features
    levels = [set(features[model.support_].tolist()), set(features[flat(model) != 0].tolist())]
    assert levels[1] <= levels[0]
    assert model.n_nonzero_coefs_ == len(levels[0])
    assert model.selection_frequency_.shape == model.encoded_feature_names_.shape


# what is refused


def changed(given, **columns):
    return given.assign(**columns)


REFUSED = {
    "null": (
        lambda n: {"colour": pd.Categorical([None, None, *["red", "blue"] * (n // 2 - 1)])},
        "column 'colour' has 2 missing values, and is categorical; give them a level of their own",
    ),
    "text": (
        lambda n: {"x1": np.array(["Rome", "Oslo"] * (n // 2))},
        "column 'x1' holds text, such as 'Rome'; cast it to a category, or name it in categorical_features",
    ),
    "date": (
        lambda n: {"x1": pd.date_range("2024-01-01", periods=n)},
        "column 'x1' is of type datetime64.*; turn it into numbers, such as the days since the first date",
    ),
    "duration": (
        lambda n: {"x1": pd.to_timedelta(np.arange(n), "D")},
        "column 'x1' is of type timedelta64.*; turn it into numbers",
    ),
    "object": (
        lambda n: {"x1": pd.Series([1.0, (2,)] * (n // 2), dtype=object)},
        "column 'x1' is of type object, and only real numbers can be computed with; convert it to float",
    ),
    "complex": (
        lambda n: {"x1": np.arange(n) * 1j},
        "column 'x1' is of type complex128, and only real numbers can be computed with",
    ),
    "many levels": (
        lambda n: {"colour": pd.Categorical([f"city {j}" for j in range(n)])},
        "column 'colour' has 1,200 levels, and at most 1,000 are encoded; join rare levels, encode it as numbers",
    ),
    "missing numbers": (
        lambda n: {"x1": [np.nan, *[1.0] * (n - 1)], "x3": [np.nan] * 2 + [1.0] * (n - 2)},
        r"X contains NaN: 1 missing value in column 'x1', 2 missing values in column 'x3'; fill them in with "
        r"make_pipeline\(SimpleImputer\(add_indicator=True\), Sparse\w*\(...\)\) or with LowRankImputer",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_check_24_columns_that_cannot_be_used_are_named(plain, what):
    columns, message = REFUSED[what]
    X, colour, size, y = table(plain, n=1200 if what == "many levels" else 80)
    given = frame("pandas", X, colour=colour, size=size)
    with pytest.raises(InvalidInputError, match=message):
        plain.make().fit(given.assign(**columns(y.size)), y)


@pytest.mark.parametrize("library", ["polars", "arrow"])
def test_nulls_of_other_libraries_are_counted(library):
    X = frame(library, np.arange(12.0).reshape(6, 2), c=["a", "b", "a", "b", "a", "b"])
    number = [None, 1.0, None, 2.0, 3.0, 4.0]
    X = X.with_columns(x1=pl.Series(number)) if library == "polars" else X.set_column(1, "x1", pa.array(number))
    with pytest.raises(InvalidInputError, match="X contains NaN: 2 missing values in column 'x1'; fill them in"):
        ht.SparseLinearRegression().fit(X, np.arange(6.0))


def test_check_24_an_unknown_level_is_refused_where_it_matters(case):
    X, colour, size, y = table(case)
    model = case.make(k=1, always_include=["colour"]).fit(frame("pandas", X, colour=colour, size=size), y)
    assert "colour" in model.get_feature_names_out()
    rows = frame("pandas", X[:2], colour=["red", "pink"], size=["small", "small"])
    with pytest.raises(
        InvalidInputError,
        match=r"column 'colour' has the level 'pink' in row 1 \(counted from 0\), which was not in the fit",
    ):
        model.predict(rows)
    if "size" not in model.get_feature_names_out():
        huge = frame("pandas", X[:2], colour=["red", "red"], size=["huge", "small"])
        assert model.predict(huge).shape == (2,)


def sites(n_sites, n=120):
    """Eight columns of numbers, of which two predict, a site that does not, and the target."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 8))
    y = X[:, 0] - 0.6 * X[:, 1] + rng.standard_normal(n)
    return X, np.array([f"site {j}" for j in rng.permutation(np.arange(n) % n_sites)]), y


def test_a_column_that_identifies_rows_is_refused(plain):
    X, colour, size, y = table(plain)
    rows = np.array([f"row {j}" for j in range(y.size)])
    given = frame("pandas", X, colour=colour, size=size, pid=rows)
    with pytest.raises(InvalidInputError, match="column 'pid' has 80 levels in as many rows, so it identifies rows"):
        plain.make().fit(given, y)
    weights = np.where(rows == "row 3", 0.0, 1.0)
    with pytest.raises(InvalidInputError, match="column 'pid' has 79 levels in as many rows"):
        plain.make().fit(given, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("n_sites", "weight", "share"),
    [(12, 1, None), (13, 1, None), (14, 1, "11%"), (60, 1, "50%"), (25, 2, None), (26, 2, "10%"), (14, 0.5, "11%")],
)
def test_few_rows_for_each_level_are_warned_of(n_sites, weight, share):
    X, site, y = sites(n_sites)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame("polars", X, site=site), y, sample_weight=np.full(y.size, weight))
    n = 240 if weight == 2 else 120  # weight 2 is a row given twice
    expected = f"column 'site' has {n_sites} levels in {n} rows, which explain {share} of the variance of any target by"
    told = [str(warning.message) for warning in caught if "levels" in str(warning.message)]
    assert [message[: len(expected)] for message in told] == ([] if share is None else [expected])


def test_two_levels_are_never_too_many():
    X, site, y = sites(2)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="column 'site'")
        ht.SparseLinearRegression(n_nonzero_coefs=1).fit(frame("pandas", X[:9], site=site[:9]), y[:9])


def test_lists_of_columns_are_checked():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    for given, message in [
        (["c"], "categorical_features names the unknown column 'c'"),
        ([2], "categorical_features names column 2; X has 2 columns"),
        ("colour", "categorical_features must be a list of columns, got 'colour'"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            ht.SparseLinearRegression(categorical_features=given).fit(X, y)
    with pytest.raises(InvalidInputError, match="categorical_features needs a data frame or a dense NumPy array"):
        ht.SparseLinearRegression(categorical_features=[0]).fit(sp.csr_array(X), y)


def test_categories_are_numbers_only_if_asked_and_their_labels_are():
    y = np.array([1.0, 2.0, 3.0, 2.5])
    grade = pd.DataFrame({"grade": pd.Categorical([1, 2, 3, 2])})
    model = ht.SparseLinearRegression(n_nonzero_coefs=1, categorical_features=None).fit(grade, y)
    assert model.coef_.shape == (1,)
    colour = pd.DataFrame({"colour": pd.Categorical(["a", "b", "a", "b"])})
    with pytest.raises(InvalidInputError, match="of type category with labels such as 'a'; set categorical_features="):
        ht.SparseLinearRegression(categorical_features=None).fit(colour, y)


def test_lazy_frames_are_refused():
    lazy = pl.DataFrame({"x": [1.0, 2.0]}).lazy()
    with pytest.raises(InvalidInputError, match="X is a lazy LazyFrame; compute it first"):
        ht.SparseLinearRegression().fit(lazy, [1.0, 2.0])


def test_categories_are_chosen_for_all_classes_and_all_outputs():
    rng = np.random.default_rng(0)
    n = 200
    X, city = rng.standard_normal((n, 5)), rng.choice(["a", "b", "c"], n)
    given = frame("pandas", X, city=city)
    U = np.column_stack([2 * X[:, 1], 3.0 * (city == "a"), np.zeros(n)])
    classes = ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(given, np.argmax(U + rng.gumbel(size=U.shape), axis=1))
    assert set(classes.get_feature_names_out()) == {"x1", "city"}
    assert classes.coef_.shape == (3, classes.encoded_feature_names_.size)
    assert classes.n_nonzero_coefs_ == 2
    outputs = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(given, U[:, :2])
    assert set(outputs.get_feature_names_out()) == {"x1", "city"}
    assert_allclose(outputs.predict(given), U[:, :2], atol=1e-8)


@only_at("pairs")
def test_a_choice_among_many_categories_is_the_best_of_all():
    """Twenty categorical columns, two of them with an effect: every pair is tried by least squares."""
    rng = np.random.default_rng(3)
    n, levels = 400, np.array(list("abcd"))
    codes = rng.integers(0, 4, (n, 20))
    y = np.array([0, 1, -1, 0.5])[codes[:, 3]] + np.array([0.5, -0.5, 0, 0])[codes[:, 11]] + rng.standard_normal(n)
    given = pd.DataFrame({f"f{j}": pd.Categorical(levels[codes[:, j]]) for j in range(20)})
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(given, y)
    ones = [slow_indicators(levels[codes[:, j]], levels) for j in range(20)]
    best = min(
        float(np.mean((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2) / 2)
        for i in range(20)
        for j in range(i)
        for X in [np.column_stack([ones[i], ones[j]])]
    )
    assert_allclose(model.objective_, best, rtol=1e-9)


@pytest.mark.slow
def test_callbacks_score_the_rows_of_the_user(case):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    X, colour, size, y = table(case)
    monitor = callback.ScoringMonitor(scoring="accuracy" if case.loss.classifies else "r2")
    case.make(k=2).set_callbacks(monitor).fit(frame("pandas", X, colour=colour, size=size), y)
    assert len(monitor.get_logs().data) >= 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_chosen_columns_of_a_frame_with_categories_keep_their_values(library):
    rng = np.random.default_rng(0)
    colour, sick = np.array(["red", "blue", "red", "green"] * 20), np.array([True, False, False, True] * 20)
    X = frame(library, rng.standard_normal((80, 2)), colour=colour)
    X = X.assign(sick=sick) if library == "pandas" else X.with_columns(sick=pl.Series(sick))
    y = 3.0 * (colour == "red") + 2.0 * sick + 0.1 * rng.standard_normal(80)
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    chosen = model.transform(X)
    assert model.get_feature_names_out().tolist() == ["colour", "sick"]
    assert chosen[:, 0].tolist() == colour.tolist()
    assert chosen[:, 1].tolist() == sick.tolist()
    assert_array_equal(model.fit_transform(X, y), chosen)


def test_set_output_keeps_the_types_of_chosen_columns():
    X = frame("pandas", np.random.default_rng(0).standard_normal((40, 1)), colour=["red", "blue"] * 20)
    model = ht.SparseLinearRegression(n_nonzero_coefs=1).set_output(transform="pandas")
    chosen = model.fit(X, X["colour"] == "red").transform(X)
    pd.testing.assert_frame_equal(chosen, X[["colour"]])
