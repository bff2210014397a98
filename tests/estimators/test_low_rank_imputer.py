"""The imputer: what it recovers, what does not change its answer, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, SearchRangeWarning
from hardthresh.core.result import History
from hardthresh.estimators import LowRankImputer, LowRankImputerCV
from hardthresh.estimators.low_rank import rank_path
from hardthresh.estimators.low_rank.rank_path import rank_schedule
from hardthresh.selection import comparison
from levels import at_most, only_at


def table(n=80, p=25, rank=2, noise=0.0, share=0.3, seed=0, scale=1.0):
    """A table of low rank with means, and the same with gaps."""
    rng = np.random.default_rng((seed, n, p, rank))
    truth = scale * (rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + rng.standard_normal(p))
    X = truth + noise * rng.standard_normal(truth.shape)
    X[rng.random(truth.shape) < share] = np.nan
    return truth, X


def noisy(seed, n=400, p=30, rank=5, noise=0.1):
    """A table of low rank with a little noise, and where a quarter of it is missing."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    X = signal + noise * rng.standard_normal((n, p))
    return X, rng.random(X.shape) < 0.25


def tight(rank, **settings):
    return LowRankImputer(rank, **{"tol": 1e-13, "alpha": 0.001, **settings})


def rmse(a, b, where):
    return float(np.sqrt(np.mean((a - b)[where] ** 2)))


# --- what it finds


@pytest.mark.parametrize("shape", [(80, 25), (25, 80), (120, 100)])
def test_a_table_of_low_rank_is_recovered(shape):
    truth, X = table(*shape)
    model = tight(3, alpha=0.0).fit(X)  # the means of what is observed are off, by a matrix of rank 1
    assert_allclose(model.transform(X), truth, atol=1e-5)
    assert model.converged_
    assert model.rank_ == 3
    assert_allclose(model.U_.T @ model.U_, np.eye(3), atol=1e-12)
    assert_allclose(model.V_.T @ model.V_, np.eye(3), atol=1e-12)
    assert np.all(np.diff(model.singular_values_) <= 0)


def test_without_centring_the_rank_is_that_of_the_table():
    truth, X = table(rank=2)
    truth, X = truth - truth.mean(axis=0), X - truth.mean(axis=0)
    model = tight(2, alpha=0.0, center=False, standardize=False).fit(X)
    assert_allclose(model.transform(X), truth, atol=1e-5)
    assert_array_equal(model.mean_, 0.0)
    assert_array_equal(model.scale_, 1.0)


def test_new_rows_are_placed_among_the_directions():
    truth, X = table(n=140)
    model = tight(3, alpha=0.0).fit(X[:100])
    assert_allclose(model.transform(X[100:]), truth[100:], atol=1e-4)
    assert_allclose(model.transform(X[100:101]), truth[100:101], atol=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("shape", [(80, 25), (120, 100)])
def test_rows_of_the_fit_are_where_the_fit_left_them(shape, alpha):
    _, X = table(*shape, noise=0.5)
    model = LowRankImputer(2, alpha=alpha, keep_observed=False).fit(X)
    fitted = model.mean_ + model.scale_ * (model.U_ * model.singular_values_ @ model.V_.T)
    assert_allclose(model.transform(X), fitted, atol=1e-10)
    rows, cols = np.array([3, 0, 7]), np.array([1, 2, 24])
    assert_allclose(model.predict_entries(rows, cols), fitted[rows, cols], atol=1e-12)
    assert_allclose(model.fit_transform(X), fitted, atol=1e-10)


def test_observed_entries_stay_what_they_are():
    _, X = table(noise=0.5)
    before = X.copy()
    model = LowRankImputer(2).fit(X)
    filled = model.transform(X)
    seen = ~np.isnan(X)
    assert_array_equal(X, before)
    assert_array_equal(filled[seen], X[seen])
    assert np.isfinite(filled).all()
    smooth = LowRankImputer(2, keep_observed=False).fit_transform(X)
    assert_allclose(smooth[~seen], filled[~seen])
    assert np.abs(smooth[seen] - X[seen]).max() > 0.1


def test_the_objective_is_the_one_of_the_documentation():
    _, X = table(noise=0.5)
    model = LowRankImputer(2, alpha=0.05, tol=1e-10).fit(X)
    seen = ~np.isnan(X)
    W = model.U_ * model.singular_values_ @ model.V_.T
    Z = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    value = 0.5 * np.mean((Z - W)[seen] ** 2) + 0.05 / 2 * np.mean(W**2)
    assert_allclose(model.objective_, value, rtol=1e-9)
    assert_allclose(model.history_["value"][-1], value, rtol=1e-9)
    assert model.history_["value"].size == model.n_iter_ + 1 == model.history_["rank"].size
    assert np.all(np.diff(model.history_["value"]) <= 1e-12)
    assert sorted(set(model.history_["rank"])) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:one direction lies almost only")  # the rank is too large
def test_ridge_shrinks_what_is_filled_in():
    _, X = table(noise=0.5)
    sizes = [np.sum(LowRankImputer(4, alpha=alpha).fit(X).singular_values_ ** 2) for alpha in (0.0, 0.1, 1.0, 100.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 0.01 * sizes[0]


# --- the rank by held-out entries


@only_at("pairs")
@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_the_rank_is_found(rule):
    truth, X = table(n=150, p=40, rank=3, noise=0.5)
    model = LowRankImputerCV(rule=rule).fit(X)
    assert model.best_rank_ == model.rank_ == 3
    assert model.one_standard_error_ <= 3
    assert model.scores_.shape == (model.candidates_.size, 5)
    assert_allclose(model.mean_scores_, model.scores_.mean(axis=1))
    assert_array_equal(model.candidates_[:5], [0, 1, 2, 3, 4])
    assert model.alpha_ in model.alphas_
    assert model.alpha_scores_.shape == model.alphas_.shape
    assert model.mean_scores_.max() == model.alpha_scores_.max()
    gaps = np.isnan(X)
    assert rmse(model.transform(X), truth, gaps) < 0.5 * rmse(LowRankImputer(0).fit_transform(X), truth, gaps)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("seed", range(3))
def test_noise_has_rank_zero(seed):
    X = np.random.default_rng(seed).standard_normal((40, 12))
    X[np.random.default_rng(seed + 10).random(X.shape) < 0.2] = np.nan
    model = LowRankImputerCV(rule="one_standard_error").fit(X)
    assert model.rank_ == 0
    assert model.V_.shape == (12, 0)
    filled = model.transform(X)
    assert_allclose(filled[np.isnan(X)], np.broadcast_to(np.nanmean(X, axis=0), X.shape)[np.isnan(X)])


@only_at("pairs")
@pytest.mark.filterwarnings("ignore:one direction lies almost only")  # the rank is too large
def test_a_score_is_that_of_the_fit_of_this_rank_alone():
    _, X = table(noise=0.5)
    seen = np.flatnonzero(~np.isnan(X))
    rng = np.random.default_rng(5)
    folds = np.array_split(rng.permutation(seen.size), 3)
    splits = [(np.setdiff1d(np.arange(seen.size), fold), fold) for fold in folds]
    model = LowRankImputerCV([5, 0, 2, 1], alpha=0.01, cv=splits).fit(X)
    assert_array_equal(model.candidates_, [0, 1, 2, 5])
    unit = np.nanstd(X, axis=0)
    for column, (_, held) in enumerate(splits):
        known = X.copy()
        known.ravel()[seen[held]] = np.nan
        for row, rank in enumerate(model.candidates_):
            filled = LowRankImputer(int(rank), alpha=0.01).fit_transform(known)
            error = ((filled - X) / unit).ravel()[seen[held]]
            assert_allclose(model.scores_[row, column], -np.mean(error**2), rtol=1e-8)


@pytest.mark.slow
def test_the_chosen_fit_is_that_of_the_rank_alone():
    _, X = table(noise=0.5)
    chosen = LowRankImputerCV(cv=3).fit(X)
    alone = LowRankImputer(chosen.best_rank_, alpha=chosen.alpha_).fit(X)
    assert_array_equal(chosen.V_, alone.V_)


@only_at("pairs")
def test_folds_and_jobs():
    _, X = table(noise=0.5)
    one = LowRankImputerCV(range(4), cv=3, random_state=1).fit(X)
    two = LowRankImputerCV(range(4), cv=3, random_state=1, n_jobs=2).fit(X)
    other = LowRankImputerCV(range(4), cv=3, random_state=2).fit(X)
    assert_array_equal(one.scores_, two.scores_)
    assert np.any(one.scores_ != other.scores_)


def test_the_way_to_a_rank():
    assert list(rank_schedule(0)) == []
    assert list(rank_schedule(1)) == [1]
    assert list(rank_schedule(45)) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40]


@only_at("pairs")
@pytest.mark.parametrize(
    ("seed", "model"), [(0, LowRankImputerCV()), (2, LowRankImputerCV([5, 6])), (2, LowRankImputer(6))]
)
def test_no_direction_is_wasted_on_one_column(seed, model):
    X, gaps = noisy(seed)
    model = clone(model).set_params(alpha=1e-4).fit(np.where(gaps, np.nan, X))
    assert np.max(model.V_**2) < 0.5  # it was 0.66, in a local minimum
    assert rmse(model.transform(np.where(gaps, np.nan, X)), X, gaps) < 0.15


@only_at("pairs")
def test_the_ranks_beside_the_best_are_compared_too():
    X, gaps = noisy(0, n=200, p=40, rank=10)
    X = np.where(gaps, np.nan, X - X.mean(axis=0))
    model = LowRankImputerCV(cv=3, alpha=0.001).fit(X)
    place = int(np.argmax(model.mean_scores_))
    assert_array_equal(np.diff(model.candidates_[place - 1 : place + 2]), 1)
    assert_array_equal(np.sort(model.candidates_), model.candidates_)
    odd = int(next(rank for rank in model.candidates_ if rank not in (0, *rank_schedule(40))))
    alone = LowRankImputerCV([odd], cv=3, alpha=0.001).fit(X)
    assert_allclose(alone.scores_[0], model.scores_[list(model.candidates_).index(odd)], rtol=1e-12)


@only_at("pairs")
def test_near_ties_go_to_the_smaller_rank():
    X, gaps = noisy(1, noise=2.0)
    model = LowRankImputerCV(range(8), cv=3, alpha=0.1).fit(np.where(gaps, np.nan, X))
    worse = model.scores_[np.argmax(model.mean_scores_)] - model.scores_
    tied = worse.mean(axis=1) <= worse.std(axis=1, ddof=1) / np.sqrt(3)
    assert model.rank_ == model.candidates_[np.argmax(tied)]


# --- what does not change the answer


@only_at("pairs")
@pytest.mark.parametrize("shape", [(60, 20), (90, 80)])
def test_units_and_origins_of_columns_do_not_matter(shape):
    _, X = table(*shape, noise=0.3)
    rng = np.random.default_rng(1)
    unit, origin = 10.0 ** rng.integers(-6, 7, shape[1]) * rng.choice([-1, 1], shape[1]), rng.standard_normal(shape[1])
    origin *= np.abs(unit)
    here, there = LowRankImputer(3).fit(X), LowRankImputer(3).fit(X * unit + origin)
    assert here.n_iter_ == there.n_iter_
    assert_allclose((there.transform(X * unit + origin) - origin) / unit, here.transform(X), rtol=1e-6, atol=1e-7)
    chosen, again = (LowRankImputerCV(range(4), cv=3, alpha=0.01).fit(A) for A in (X, X * unit + origin))
    assert_allclose(again.scores_, chosen.scores_, rtol=1e-6)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_extreme_units(factor):
    _, X = table(noise=0.3)
    filled = LowRankImputer(2).fit_transform(factor * X)
    assert_allclose(filled / factor, LowRankImputer(2).fit_transform(X), rtol=1e-6)


@only_at("pairs")
@pytest.mark.filterwarnings("ignore:one direction lies almost only")
@pytest.mark.parametrize("shape", [(60, 20), (90, 80)])
def test_the_order_of_rows_and_columns_does_not_matter(shape):
    _, X = table(*shape, noise=0.3)
    rng = np.random.default_rng(2)
    rows, cols = rng.permutation(shape[0]), rng.permutation(shape[1])
    here, there = tight(3).fit(X), tight(3).fit(X[rows][:, cols])
    assert_allclose(there.transform(X[rows][:, cols]), here.transform(X)[rows][:, cols], atol=1e-5)
    assert_allclose(there.singular_values_, here.singular_values_, rtol=1e-6)


FRUSTRATED = np.array([[10.7, np.nan, 10.0], [np.nan, 11.3, 10.9], [9.2, 10.9, np.nan]])
"""Each column is 1 and -1 in standard units: rank 1 does not fit all of them, and no entry is unlike the others."""
UNRELATED = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, 1.0], [np.nan, 2.0]])
"""Nothing says whether the second column grows or falls with the first."""


@pytest.mark.filterwarnings("ignore:4 observed entries are fewer")
@pytest.mark.parametrize("X", [FRUSTRATED, UNRELATED])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_table_that_does_not_determine_its_completion_is_warned_of(X, dtype):
    rng = np.random.default_rng(0)
    for _ in range(4):
        rows, cols = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
        with pytest.warns(UserWarning, match="not determined by X: 2 directions are equally good"):
            LowRankImputer(1).fit(X[rows][:, cols].astype(dtype))


@pytest.mark.filterwarnings("ignore:4 observed entries are fewer")
def test_the_best_of_equally_steep_directions_is_taken():
    """Rank 1 fits both columns; but from a fit of one of them alone no step leads to the other."""
    with pytest.warns(UserWarning, match="not determined by X"):
        model = LowRankImputer(1).fit(UNRELATED)
    assert model.objective_ < 1e-3
    assert_allclose(np.abs((model.U_ * model.singular_values_) @ model.V_.T), 1.0, atol=0.01)


@pytest.mark.filterwarnings("ignore:4 observed entries are fewer", "ignore:what is filled in is not determined")
def test_the_history_begins_at_rank_0_where_directions_are_tied():
    model = LowRankImputer(1).fit(UNRELATED)
    assert model.history_["value"][0] == LowRankImputer(0).fit(UNRELATED).objective_
    assert np.all(np.diff(model.history_["value"]) <= 0.0)


def test_determined_tables_cause_no_warning():
    """Equally steep directions, both of which are wanted; and none."""
    rng = np.random.default_rng(0)
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    both = np.hstack([square, square[:, :1] + square[:, 1:], rng.permutation(square[:, :1])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LowRankImputer(2).fit(np.hstack([square, -square]))
        LowRankImputer(1).fit(both + 0.1 * rng.standard_normal(both.shape))


@only_at("pairs")
def test_small_tables_do_not_depend_on_their_order_and_units_or_are_warned_of():
    for seed in range(150):
        rng = np.random.default_rng((seed, 7))
        X = rng.standard_normal((3, rng.integers(2, 6))) + 10.0
        X[rng.random(X.shape) < 0.25] = np.nan
        if np.isnan(X).all(axis=0).any():
            continue
        rows, cols, units = rng.permutation(3), rng.permutation(X.shape[1]), 10.0 ** np.arange(X.shape[1])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            here = LowRankImputer(1).fit_transform(X)[rows][:, cols]
            there = LowRankImputer(1).fit_transform((X * units)[rows][:, cols]) / units[cols]
        if not any("not determined by X" in str(warning.message) for warning in told):
            assert_allclose(there, here, atol=1e-3)
        else:
            assert sum("not determined by X" in str(warning.message) for warning in told) == 2


def test_empty_rows_and_constant_columns_do_not_change_the_model():
    _, X = table(noise=0.3)
    more = np.full((X.shape[0] + 2, X.shape[1] + 2), np.nan)
    more[:-2, :-2] = X
    more[:-2:3, -2] = 7.0  # constant where it is observed
    here = LowRankImputer(2).fit(X)
    with pytest.warns(
        UserWarning, match=r"1 empty column \(feature 26, counted from 0\) has no observed entry and is left out"
    ):
        there = LowRankImputer(2).fit(more)
    assert_allclose(there.objective_, here.objective_)
    assert_allclose(
        LowRankImputer(0, keep_empty_features=True).fit(more).objective_, LowRankImputer(0).fit(X).objective_
    )
    filled = there.transform(more)
    assert_allclose(filled[:-2], np.hstack([here.transform(X), np.full((X.shape[0], 1), 7.0)]), atol=1e-8)
    assert_allclose(filled[-2:], np.tile(there.mean_[:-1], (2, 1)))
    assert_array_equal(there.V_[-2:], 0.0)


# --- kinds of tables


@only_at("pairs")
def test_data_frames_come_back_as_data_frames():
    pd = pytest.importorskip("pandas")
    _, X = table(n=40, p=6, noise=0.3)
    names = [f"gene{j}" for j in range(6)]
    df = pd.DataFrame(X, columns=names, index=[f"row{i}" for i in range(40)])
    model = ht.LowRankImputerCV(cv=3).fit(df)
    new = model.transform(df.iloc[5:9])
    assert isinstance(new, pd.DataFrame)
    assert list(new.columns) == names == model.get_feature_names_out().tolist()
    assert list(new.index) == ["row5", "row6", "row7", "row8"]
    assert not new.isna().any().any()
    array = clone(model).set_output(transform="default").fit(df).transform(df)
    assert isinstance(array, np.ndarray)
    assert isinstance(clone(model).set_output(transform="pandas").fit(X).transform(X), pd.DataFrame)
    numbered = pd.DataFrame(X)
    assert list(LowRankImputer(1).fit_transform(numbered).columns) == list(range(6))
    whole = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": [1.0, 2.0, None, 4.0]})
    assert LowRankImputer(1).fit_transform(whole).notna().all().all()


def test_polars_frames_come_back_as_polars_frames():
    pl = pytest.importorskip("polars")
    _, X = table(n=40, p=4, noise=0.3)
    df = pl.DataFrame(np.where(np.isnan(X), np.nan, X), schema=list("abcd"))
    filled = LowRankImputer(1).fit(df).transform(df)
    assert isinstance(filled, pl.DataFrame)
    assert filled.columns == list("abcd")
    assert_allclose(filled.to_numpy(), LowRankImputer(1).fit_transform(X))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_array, sp.csc_matrix])
def test_entries_that_are_not_stored_may_be_missing(kind, monkeypatch):
    _, X = table(120, 90, noise=0.3, share=0.6)
    X[2, ~np.isnan(X[2])] = 0.0  # observed zeros
    rows, cols = np.nonzero(~np.isnan(X))
    Z = kind(sp.coo_array((X[rows, cols], (rows, cols)), shape=X.shape))
    with monkeypatch.context() as patch:
        patch.setattr(sp.csr_array, "toarray", lambda *_, **__: pytest.fail("the table was made dense"))
        model = LowRankImputer(2, missing="unstored").fit(Z)
    assert_allclose(model.transform(Z), LowRankImputer(2).fit_transform(X), atol=1e-8)
    with pytest.raises(InvalidInputError, match='if missing, set missing="unstored"'):
        LowRankImputer(2).fit(Z)
    with pytest.raises(InvalidInputError, match=r"needs a scipy\.sparse X, got ndarray"):
        LowRankImputer(2, missing="unstored").fit(X)


def test_single_precision_stays():
    _, X = table(noise=0.3)
    model = LowRankImputer(2).fit(X.astype(np.float32))
    assert {a.dtype for a in (model.U_, model.V_, model.singular_values_, model.mean_, model.scale_)} == {
        np.dtype(np.float32)
    }
    filled = model.transform(X.astype(np.float32))
    assert filled.dtype == np.float32
    assert_allclose(filled, LowRankImputer(2).fit_transform(X), atol=1e-2)


def test_empty_columns_are_left_out_or_kept():
    _, X = table(noise=0.3)
    X[:, 4] = np.nan
    with pytest.warns(UserWarning, match="left out by transform"):
        model = LowRankImputer(2).fit(X)
    assert model.transform(X).shape == (80, 24)
    assert "x4" not in model.get_feature_names_out()
    assert np.isnan(model.mean_[4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = LowRankImputer(2, keep_empty_features=True).fit(X)
    assert_array_equal(kept.transform(X)[:, 4], 0.0)
    new = X[:3].copy()
    new[:, 4] = 5.0
    assert_array_equal(kept.transform(new)[:, 4], 5.0)
    assert_allclose(np.delete(kept.transform(new), 4, axis=1), kept.transform(X[:3])[:, np.arange(25) != 4])


def test_gaps_come_back():
    _, X = table(n=40, p=6, noise=0.3, share=0.2)
    X[:, 2] = np.arange(40.0)
    model = LowRankImputer(2, add_indicator=True).fit(X)
    filled = model.transform(X)
    assert filled.shape == (40, 11)
    assert_array_equal(model.indicator_features_, [0, 1, 3, 4, 5])
    assert model.get_feature_names_out().tolist()[6:8] == ["missingindicator_x0", "missingindicator_x1"]
    assert_array_equal(model.inverse_transform(filled), X)
    with pytest.raises(InvalidInputError, match="11 columns are needed"):
        model.inverse_transform(X)
    with pytest.raises(AttributeError, match="inverse_transform"):
        LowRankImputer(2).fit(X).inverse_transform(X)


# --- among other things


def test_in_a_pipeline_and_a_search():
    rng = np.random.default_rng(0)
    truth, X = table(n=120, p=12, rank=3, noise=0.1, share=0.15)
    y = truth[:, 2] - truth[:, 5] + 0.1 * rng.standard_normal(120)
    pipeline = make_pipeline(LowRankImputer(alpha=0.01), ht.SparseLinearRegression(n_nonzero_coefs=4))
    search = GridSearchCV(pipeline, {"lowrankimputer__rank": [0, 3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"lowrankimputer__rank": 3}
    assert search.predict(X).shape == (120,)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pickle", "file"])
def test_a_model_travels(way, tmp_path):
    _, X = table(noise=0.3)
    X[:, 3] = np.nan
    model = LowRankImputerCV(range(3), cv=2, add_indicator=True, keep_empty_features=True).fit(X)
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        ht.save(model, tmp_path / "imputer.json")
        again = ht.load(tmp_path / "imputer.json")
    assert_array_equal(again.transform(X), model.transform(X))
    assert_array_equal(again.scores_, model.scores_)
    assert isinstance(again.history_, History)
    assert_array_equal(clone(again).fit(X).V_, model.V_)


@pytest.mark.parametrize("solver", ["pursuit", "iht"])
def test_other_solvers(solver):
    _, X = table(noise=0.3)
    here = LowRankImputer(2, tol=1e-9).fit(X)
    there = LowRankImputer(2, tol=1e-9, solver=solver).fit(X)
    assert_allclose(there.objective_, here.objective_, rtol=1e-3)


# --- what is refused or told


@pytest.mark.filterwarnings("ignore:.*observed entries are fewer")
def test_rows_known_by_entries_too_small_to_tell_them_are_refused():
    """The squares of the first column's share of the direction are subnormal, and its entries are all that is known."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 1)) * np.array([[1e-52, 1e105, -1e105]])
    row = np.array([[1e-52, np.nan, np.nan]])
    settings = {"alpha": 0.0, "center": False}
    message = "columns of X are too far apart; set standardize=True, or rescale the columns"
    with pytest.raises(InvalidInputError, match=message):
        LowRankImputer(1, standardize=False, **settings).fit(np.vstack([X, row]))
    model = LowRankImputer(1, standardize=False, **settings).fit(X)
    with pytest.raises(InvalidInputError, match=message):
        model.transform(row)
    filled = LowRankImputer(1, **settings).fit(np.vstack([X, row])).transform(row)
    assert_allclose(filled, [[1e-52, 1e105, -1e105]])


def test_invalid_tables_are_refused():
    pd = pytest.importorskip("pandas")
    _, X = table(n=20, p=5)
    bad = X.copy()
    bad[3, 1] = np.inf
    with pytest.raises(InvalidInputError, match=r"column 1 \(.*\): (?s:.*)infinity"):
        LowRankImputer(1).fit(bad)
    with pytest.raises(InvalidInputError, match=r"column 'b': (?s:.*)infinity"):
        LowRankImputer(1).fit(pd.DataFrame(bad, columns=list("abcde")))
    with pytest.raises(InvalidInputError, match=r"column 1 \(.*\): (?s:.*)infinity"):
        LowRankImputer(1, missing="unstored").fit(sp.csr_array(bad))
    with pytest.raises(InvalidInputError, match="no entry of X is observed"):
        LowRankImputer(1).fit(np.full((4, 3), np.nan))
    df = pd.DataFrame({"a": [1.0, 2.0, 3.0], "colour": pd.Categorical(["red", "red", "blue"])})
    with pytest.raises(InvalidInputError, match="column 'colour' is of type category"):
        LowRankImputer(1).fit(df)
    with pytest.raises(InvalidInputError, match=r"column 1 \(.*\): could not convert"):
        LowRankImputer(1).fit(np.array([[1.0, "x"], [2.0, 3.0]], dtype=object))
    with pytest.raises(InvalidInputError, match="column 'b' holds text, such as 'x'"):
        LowRankImputer(1).fit(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    with pytest.raises(NotFittedError):
        LowRankImputer(1).transform(X)
    with pytest.raises(ValueError, match="features"):
        LowRankImputer(1).fit(X).transform(X[:, :3])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 5}, r"between 0 and min\(n_samples, n_features\) - 1 \(4\), got 5"),
        ({"rank": -1}, "got -1"),
        ({"rank": "cv"}, "rank must be an integer or None, got 'cv'; LowRankImputerCV chooses it by cross-validation"),
        ({"rank": [1, 2]}, r"got \[1, 2\]; LowRankImputerCV chooses it"),
        ({"rank": 1.5}, "rank must be an integer, got 1.5"),
        ({"rank": True}, "rank must be an integer, got True"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"center": "yes"}, "center must be True or False"),
        ({"missing": 0}, 'missing must be "nan" or "unstored"'),
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_settings_are_checked(settings, message):
    _, X = table(n=20, p=5)
    with pytest.raises(InvalidInputError, match=message):
        LowRankImputer(**settings).fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": "best"}, "rank must be a number or ranks to compare, got 'best'"),
        ({"rank": [1.5]}, "rank must be an integer, got 1.5"),
        ({"rank": [2, 5]}, r"between 0 and min\(n_samples, n_features\) - 1 \(4\), got 5"),
        ({"rank": []}, "rank is empty"),
        ({"rule": "worst"}, "rule must be"),
        ({"cv": 1}, "cv must be >= 2, got 1"),
        ({"cv": "five"}, "cv must be a number of folds"),
        ({"cv": [([0, 1], [500])]}, "cv must name observed entries"),
        ({"cv": []}, "cv gives no folds"),
    ],
)
def test_settings_of_the_comparison_are_checked(settings, message):
    _, X = table(n=20, p=5)
    with pytest.raises(InvalidInputError, match=message):
        LowRankImputerCV(**settings).fit(X)


def test_a_single_number_of_the_comparison_means_all_from_one():
    _, X = table(n=30, p=8, noise=0.3)
    assert_array_equal(LowRankImputerCV(3, cv=2, alpha=0.01).fit(X).candidates_, [1, 2, 3])


def test_places_are_checked():
    _, X = table(n=20, p=5)
    model = LowRankImputer(1).fit(X)
    assert model.predict_entries([], []).shape == (0,)
    for rows, cols in (([20], [0]), ([0], [-1]), ([0.5], [0]), ([0, 1], [0])):
        with pytest.raises(InvalidInputError, match=r"integers from 0|one shape"):
            model.predict_entries(rows, cols)


@only_at("pairs")
def test_too_few_entries_are_told():
    _, X = table(n=30, p=20, share=0.8)
    with pytest.warns(UserWarning, match=r"observed entries are fewer than the \d+ free numbers of a matrix of rank 8"):
        LowRankImputer(8).fit(X)


@only_at("pairs")
def test_a_direction_of_one_column_or_row_is_told(monkeypatch):
    X, gaps = noisy(0)
    X = np.where(gaps, np.nan, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LowRankImputer(6, alpha=0.01).fit(X)
        large = X * np.where(np.arange(30) == 3, 100, 1)  # a column that its size makes a direction, but others tell
        LowRankImputer(6, standardize=False, alpha=1e-6).fit(large)
    wild = X.copy()
    wild[7] += 1e3 * np.random.default_rng(0).standard_normal(30)
    with pytest.warns(UserWarning, match=r"only in row 7 \(.*\): .* take a rank smaller than 6 or an alpha larger"):
        LowRankImputer(6).fit(wild)
    monkeypatch.setattr(rank_path, "ranks_to", lambda rank: [1, 2, 3, 4, 6])  # two directions at once
    with pytest.warns(
        UserWarning, match=r"only in feature 8 \(counted from 0\), which the others do not tell .* than 0\.01, and"
    ):
        LowRankImputer(6, alpha=0.01).fit(X)


def test_not_converged_is_told():
    _, X = table(noise=0.3)
    with pytest.warns(ConvergenceWarning, match="limit of iterations"):
        model = LowRankImputer(2, max_iter=1, tol=1e-12).fit(X)
    assert not model.converged_


@only_at("pairs")
def test_the_search_ends_where_larger_ranks_are_worse(monkeypatch):
    _, X = table(n=150, p=60, rank=2, noise=1.0)
    model = LowRankImputerCV(cv=3, alpha=0.0001).fit(X)
    assert model.candidates_[-1] <= 8
    monkeypatch.setattr(comparison, "_PATIENCE", 1)
    assert LowRankImputerCV(cv=3, alpha=0.0001).fit(X).candidates_.size < model.candidates_.size


# --- the best rank, or the best ridge, at an end of those compared


@only_at("pairs")
def test_a_best_rank_at_an_end_of_the_range_is_warned_of():
    _, X = table(rank=4, noise=0.1)
    for ranks, message in (([1, 3], "largest rank compared, 3: .* up to 6"), ([6, 8], "smallest rank compared, 6: ")):
        with pytest.warns(SearchRangeWarning, match=message):
            LowRankImputerCV(ranks, alpha=0.01).fit(X)


@only_at("pairs")
@pytest.mark.filterwarnings("error::hardthresh.core.errors.SearchRangeWarning")
def test_a_search_that_ends_by_itself_is_not_warned_of():
    _, X = table(rank=2, noise=0.3)
    assert LowRankImputerCV().fit(X).rank_ == 2
    _, X = table(50, 20, rank=1, noise=10.0)
    assert LowRankImputerCV().fit(X).rank_ == 0, "the ridge does not matter to the means"


@only_at("pairs")
def test_a_best_ridge_that_is_the_largest_compared_is_warned_of():
    _, X = table(50, 20, rank=3, noise=1.5)
    with pytest.warns(SearchRangeWarning, match=r"largest ridge compared, 0.1: .* alpha=0.2,"):
        model = LowRankImputerCV().fit(X)
    larger = LowRankImputerCV(alpha=0.2).fit(X)
    assert larger.mean_scores_.max() > model.mean_scores_.max(), "the advice of the warning helps here"
