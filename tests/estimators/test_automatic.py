"""The number of features by the extended BIC, where none is given."""

import json
import pickle
import warnings
from math import comb, floor, log

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import hardthresh as ht
from hardthresh.core import NothingFoundWarning, SearchRangeWarning, Status
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.schema import schemas
from hardthresh.selection import path
from hardthresh.selection.criteria import working_ebic
from levels import at_most, in_turn, only_at, reaches

nothing_found = pytest.mark.filterwarnings("ignore::hardthresh.core.NothingFoundWarning")


def flat(model):
    return np.reshape(model.coef_, -1)


def criterion_by_hand(case, X, y, k, n, weight=None, **settings):
    """The extended BIC of the fit with k features, as a sum over the rows."""
    model = case.make(k, **settings).fit(X, y, sample_weight=weight)
    weight = np.full(y.size, 1 / y.size) if weight is None else weight / weight.sum()
    alpha = case.loss.default_ridge if model.alpha is None else model.alpha
    u = X @ flat(model) + model.intercept_
    size = case.effective_size(model, X, y, weight, alpha)
    misfit = case.loss.working_criterion(case.numbers(y), u, weight, n)
    return misfit + size * log(n) + 2 * log(comb(X.shape[1], k))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [None, 0.2])
def test_the_number_minimises_the_criterion_by_hand(plain, alpha):
    X, y = plain.data(noise=0.5)
    model = plain.new(alpha=alpha).fit(X, y)
    expected = [criterion_by_hand(plain, X, y, int(k), 60, alpha=alpha) for k in model.candidates_]
    assert_array_equal(model.candidates_, np.arange(len(expected)))
    assert_allclose(model.criterion_path_, expected, rtol=1e-5)
    assert model.best_n_nonzero_coefs_ == model.n_nonzero_coefs_ == np.argmin(expected) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(60, 12), (100, 40), (200, 500), (60, 2000)])
@nothing_found
def test_as_many_are_compared_as_the_rows_allow(plain, n, d):
    X, y = plain.data(n=n, d=d)
    largest = min(30, d, floor(n / (log(d) * log(log(n)))))
    assert_array_equal(plain.new().fit(X, y).candidates_, np.arange(largest + 1))


SETTINGS = {
    "default": {},
    "ridge": {"alpha": 0.1},
    "positive": {"positive": True},
    "included": {"always_include": [0, 9]},
    "no intercept": {"fit_intercept": False},
    "pursuit": {"solver": "pursuit"},
    "warm start": {"warm_start": True},
}


@pytest.mark.slow
@at_most(2)
@in_turn("name,kind", list(SETTINGS), ["dense", "sparse", "float32", "weights", "offset"])
@nothing_found
def test_the_fit_is_that_of_the_number_alone(plain, name, kind):
    settings = SETTINGS[name]
    X, y = plain.data(noise=0.5)
    X = {"sparse": sp.csr_array, "float32": np.float32}.get(kind, np.asarray)(X)
    rng = np.random.default_rng(0)
    given = {
        "weights": {"sample_weight": rng.uniform(0.5, 2.0, 60)},
        "offset": {"offset": rng.uniform(-0.1, 0.1, 60)},
    }.get(kind, {})
    model = plain.new(**settings).fit(X, y, **given)
    again = plain.new(**settings, n_nonzero_coefs=model.best_n_nonzero_coefs_).fit(X, y, **given)
    assert_array_equal(model.coef_, again.coef_)
    assert_array_equal(model.intercept_, again.intercept_)
    assert model.coef_.dtype == again.coef_.dtype
    assert str(model.certificate()) == str(again.certificate())
    assert str(model.certificate(X, y, **given)) == str(again.certificate(X, y, **given))


@pytest.mark.slow
@at_most(2)
@nothing_found
def test_groups_are_chosen_by_the_same_criterion(plain):
    X, y = plain.data(n=150, noise=0.5)
    labels = [f"group {j // 2}" for j in range(12)]
    model = plain.new(groups=labels).fit(X, y)
    problem = model._training[0]
    runs = path(problem.objective, lambda k: problem.with_budget(k).constraint, range(len(model.candidates_)))
    assert_allclose(model.criterion_path_, [working_ebic(run) for run in runs], rtol=1e-6)
    assert model.best_n_nonzero_groups_ == len(model.groups_) == np.argmin(model.criterion_path_)
    assert not hasattr(model, "best_n_nonzero_coefs_")
    again = plain.new(groups=labels, n_nonzero_groups=model.best_n_nonzero_groups_).fit(X, y)
    assert_array_equal(again.coef_, model.coef_)


def test_groups_may_not_take_more_columns_than_features_might(plain):
    X, y = plain.data(n=60, d=40)
    features = floor(60 / (log(40) * log(log(60))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = plain.new(groups=np.arange(40) // 4).fit(X, y)
    assert model.candidates_[-1] == features // 4 == 2


@nothing_found
def test_one_large_group_may_always_be_chosen(plain):
    X, y = plain.data(n=60, d=40)
    model = plain.new(groups=np.arange(40) // 20).fit(X, y)
    assert model.candidates_[-1] == 1


@only_at("pairs")
def test_a_permuted_target_gives_the_empty_model_in_most_cases(plain):
    X, y = plain.data(n=100, d=40)
    empty, seeds = 0, 20 if reaches("pairs") else 10
    for seed in range(seeds):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = plain.new().fit(X, np.random.default_rng(seed).permutation(y))
        assert any(w.category is NothingFoundWarning for w in caught) == (model.best_n_nonzero_coefs_ == 0)
        empty += not flat(model).any()
    assert empty >= 0.8 * seeds


def test_nothing_found_is_said_and_the_model_predicts_the_mean():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 30)), rng.standard_normal(80)
    with pytest.warns(NothingFoundWarning, match=r"no number of features \(1 to 15\) has a better EBIC than none"):
        model = ht.SparseLinearRegression().fit(X, y)
    assert (model.best_n_nonzero_coefs_, model.n_nonzero_coefs_, model.support_.size) == (0, 0, 0)
    assert_allclose(model.predict(X), y.mean())
    with pytest.warns(NothingFoundWarning, match=r"no number of groups .* give n_nonzero_groups"):
        ht.SparseLinearRegression(groups=np.arange(30) // 3).fit(X, y)


@pytest.mark.slow
@nothing_found
def test_weights_are_repetitions(plain):
    X, y = plain.data(noise=0.5)
    weights = np.random.default_rng(3).integers(0, 4, 60)
    weights[:6] = 1  # both classes
    weighted = plain.new().fit(X, y, sample_weight=weights)
    repeated = plain.new().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_allclose(weighted.criterion_path_, repeated.criterion_path_, rtol=1e-7)
    assert_array_equal(weighted.candidates_, repeated.candidates_)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("total", [1.0, 1e-200, 59.0])
def test_weights_that_are_no_repetitions_count_as_so_many_rows(plain, total):
    X, y = plain.data(noise=0.5)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    weights = weights / weights.sum()
    there = plain.new().fit(X, y, sample_weight=total * weights)
    here = plain.new().fit(X, y, sample_weight=60.0 * weights)
    assert_allclose(there.criterion_path_, here.criterion_path_, rtol=1e-6)
    assert there.best_n_nonzero_coefs_ == here.best_n_nonzero_coefs_ > 0
    assert_allclose(here.criterion_path_[2], criterion_by_hand(plain, X, y, 2, 60, weights), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_whose_sum_overflows_count_as_so_many_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, 2] + 0.1 * rng.standard_normal(60)
    model = ht.SparseLinearRegression().fit(X, y, sample_weight=np.full(60, 1e308))
    assert_allclose(model.criterion_path_, ht.SparseLinearRegression().fit(X, y).criterion_path_, rtol=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:4 constant columns")
def test_few_rows_give_the_empty_model(rows):
    X, y = np.random.default_rng(0).standard_normal((rows, 4)), np.arange(1.0, rows + 1)
    with pytest.warns(NothingFoundWarning, match=rf"too few rows, {rows}, to choose a number of features"):
        model = ht.SparseLinearRegression().fit(X, y)
    assert_allclose(model.predict(X), y.mean())
    assert model.candidates_.tolist() == [0]
    assert np.isnan(model.criterion_path_).all()


def test_included_columns_use_up_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 20)), rng.standard_normal(8)
    with pytest.warns(NothingFoundWarning, match="too few rows, 8"):
        ht.SparseLinearRegression(always_include=range(5)).fit(X, y)
    model = ht.SparseLinearRegression(always_include=range(3)).fit(X[:, :3], y)  # nothing to choose, nothing to say
    assert model.best_n_nonzero_coefs_ == 0


def test_the_range_is_extended_where_its_end_is_best():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 50))
    model = ht.SparseLinearRegression().fit(X, X[:, :40] @ np.ones(40) + rng.standard_normal(1000))
    assert set(range(40)) <= set(model.support_.tolist())
    assert_array_equal(model.candidates_, np.arange(51))


def test_the_largest_number_that_rows_allow_is_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 500))
    y = X[:, :9] @ 0.5 ** np.arange(9) + 0.001 * rng.standard_normal(60)
    with pytest.warns(SearchRangeWarning) as caught:
        model = ht.SparseLinearRegression().fit(X, y)
    assert model.best_n_nonzero_coefs_ == model.candidates_[-1] == 6
    assert "60 rows allow to be compared, 6" in str(caught[0].message)
    assert "SparseLinearRegressionCV" in str(caught[0].message)


def test_a_perfect_fit_is_not_extended():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 100))
    model = ht.SparseLinearRegression().fit(X, X[:, 5] - X[:, 8])
    assert_array_equal(model.support_, [5, 8])
    assert model.criterion_path_[2] == -np.inf


def test_rows_of_weight_not_their_sum_bound_the_number():
    """Thousands of repetitions of ten rows are ten equations: nine columns would fit them, whatever the target."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 40)), rng.standard_normal(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchRangeWarning)
        model = ht.SparseLinearRegression().fit(X, y, sample_weight=np.full(10, 1000.0))
    assert model.candidates_[-1] == 10 - 2 - 1


def test_fits_of_the_path_that_end_early_are_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 20)) + rng.standard_normal((50, 1))
    y = X[:, :4] @ np.ones(4) + rng.standard_normal(50)
    with pytest.warns(ConvergenceWarning) as caught:
        ht.SparseLinearRegression(solver="iht", max_iter=2).fit(X, y)
    assert "fits for the choice of n_nonzero_coefs did not converge" in str(caught[1].message)


def test_separated_classes_are_not_nothing():
    """Without a ridge no number of features from 1 on has a minimiser; its criterion is that of the limit."""
    X = np.random.default_rng(0).standard_normal((80, 6))
    with pytest.warns(ConvergenceWarning):
        model = ht.SparseLogisticRegression(alpha=0.0).fit(X, X[:, 3] > 0)
    assert_array_equal(model.support_, [3])
    assert Status.NO_MINIMISER.sentence in model.stop_reason_


# what a fit leaves behind


@pytest.mark.slow
def test_a_choice_is_kept_pickled_and_stored(plain, tmp_path):
    X, y = plain.data(noise=0.5)
    model = plain.new().fit(X, y)
    ht.save(model, tmp_path / "model.json")
    for again in (pickle.loads(pickle.dumps(model)), ht.load(tmp_path / "model.json")):
        assert again.best_n_nonzero_coefs_ == model.best_n_nonzero_coefs_
        assert_array_equal(again.criterion_path_, model.criterion_path_)
        assert_array_equal(again.predict(X), model.predict(X))
        assert str(again.certificate(X, y)) == str(model.certificate(X, y))


@pytest.mark.slow
def test_another_fit_leaves_nothing_of_the_choice(plain):
    X, y = plain.data(noise=0.5)
    model = plain.new().fit(X, y)
    model.set_params(n_nonzero_coefs=2).fit(X, y)
    left = {"best_n_nonzero_coefs_", "candidates_", "criterion_path_"} & vars(model).keys()
    assert left == set()
    model.set_params(n_nonzero_coefs="auto").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(groups=np.arange(12) // 2).fit(X, y)
    assert not hasattr(model, "best_n_nonzero_coefs_")


@pytest.mark.parametrize("wrong", [None, "cv", "AUTO", 2.5, [1, 2]])
def test_what_is_neither_a_number_nor_auto_is_refused(plain, wrong):
    X, y = plain.data()
    with pytest.raises(InvalidInputError, match=r"n_nonzero_coefs must be an integer"):
        plain.new(n_nonzero_coefs=wrong).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"n_nonzero_groups must be an integer"):
        plain.new(groups=np.arange(12) // 2, n_nonzero_groups=wrong).fit(X, y)


def test_a_refusal_of_none_names_the_default(plain):
    X, y = plain.data()
    with pytest.raises(InvalidInputError, match=r'must be an integer or "auto", got None'):
        plain.new(n_nonzero_coefs=None).fit(X, y)


def as_version_1(model, path, **parameters):
    """Write a model as the version before "auto" did."""
    ht.save(model, path)
    document = json.loads(path.read_text())
    document["object"]["version"] = 1
    document["object"]["parameters"].update(parameters)
    path.write_text(json.dumps(document))


@pytest.mark.slow
@nothing_found
def test_models_of_before_load_with_the_tenth_that_none_stood_for(plain, tmp_path):
    if schemas()[f"estimator/{plain.name}"].version < 4:
        pytest.skip("no version in which None was a tenth")
    X, y = plain.data(d=40)
    model = plain.new(n_nonzero_coefs=4).fit(X, y)
    as_version_1(model, tmp_path / "x.json", n_nonzero_coefs=None, n_nonzero_groups=None)
    again = ht.load(tmp_path / "x.json")
    assert (again.n_nonzero_coefs, again.n_nonzero_groups) == (4, "auto")
    assert str(again.certificate(X, y)) == str(model.certificate(X, y))
    assert_array_equal(again.fit(X, y).coef_, model.coef_)
    grouped = plain.new(groups=np.arange(40) // 2, n_nonzero_groups=2).fit(X, y)
    as_version_1(grouped, tmp_path / "x.json", n_nonzero_coefs=None, n_nonzero_groups=None)
    again = ht.load(tmp_path / "x.json")
    assert (again.n_nonzero_coefs, again.n_nonzero_groups) == ("auto", 2)
    as_version_1(plain.new(), tmp_path / "x.json", n_nonzero_coefs=None, n_nonzero_groups=None)
    assert ht.load(tmp_path / "x.json").n_nonzero_coefs == "auto"
    as_version_1(plain.new(n_nonzero_coefs=7), tmp_path / "x.json", n_nonzero_groups=None)
    assert ht.load(tmp_path / "x.json").n_nonzero_coefs == 7


@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_nothing_chosen_is_transformed_there_and_back(kind):
    X = np.random.default_rng(0).standard_normal((30, 4))
    none = ht.SparseLinearRegression(n_nonzero_coefs=0).fit(kind(X), X[:, 0]).transform(kind(X))
    model = ht.SparseLinearRegression(n_nonzero_coefs=0).fit(X, X[:, 0])
    back = model.inverse_transform(none)
    assert none.shape == (30, 0)
    assert back.shape == (30, 4)
    assert abs(back).sum() == 0
