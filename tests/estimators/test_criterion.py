"""The number of features, and the ridge, by an information criterion in the place of cross-validation."""

import json
import warnings
from math import comb, floor, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hardthresh as ht
from hardthresh.core import CriterionWarning, NothingFoundWarning, SearchRangeWarning
from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.datasets import make_sparse_regression
from hardthresh.report import plot_criterion
from levels import at_most, in_turn, only_at, turn

NAMES = ("ebic", "bic", "aic", "gic")
OF_FOLDS = {
    "scores_",
    "grid_scores_",
    "mean_scores_",
    "null_scores_",
    "null_p_value_",
    "held_out_scores_",
    "selection_frequency_",
    "range_extended_",
    "one_standard_error_",
    "scorer_name_",
    "calibration_",
}


def likely(case):
    if not case.loss.has_likelihood:
        pytest.skip("no likelihood")


def by_hand(case, X, y, k, name, alpha, weight=None):
    """A criterion of the fit with k features: check 15 of models.md."""
    model = case.without_cv(n_nonzero_coefs=k, alpha=alpha).fit(X, y, sample_weight=weight)
    weight = np.ones(y.size) if weight is None else weight
    n, d = weight.sum(), X.shape[1]
    misfit = case.loss.minus_twice_log_likelihood(
        case.numbers(y), X @ np.reshape(model.coef_, -1) + model.intercept_, weight, n
    )
    size = case.effective_size(model, X, y, weight / n, alpha)
    penalty = {"aic": 2 * size, "bic": log(n) * size, "ebic": log(n) * size + 2 * log(comb(d, k))}
    return misfit + (penalty | {"gic": (size - 1) * log(d) * log(log(n))})[name]


@in_turn("name,alpha", NAMES, [0.02, 0.3])
def test_check_15_the_path_of_a_criterion_by_hand(chooser, name, alpha):
    likely(chooser)
    X, y = chooser.data(n=120, noise=0.5)
    model = chooser.new(n_nonzero_coefs=range(4), criterion=name, alphas=alpha).fit(X, y)
    expected = [by_hand(chooser, X, y, k, name, alpha) for k in range(4)]
    assert_allclose(model.criterion_path_, expected, rtol=1e-6)
    assert model.best_n_nonzero_coefs_ == np.argmin(expected)
    alone = chooser.without_cv(n_nonzero_coefs=model.best_n_nonzero_coefs_, alpha=alpha).fit(X, y)
    assert_array_equal(model.coef_, alone.coef_)
    assert model.alpha_ == alpha


@pytest.mark.slow
def test_the_extended_bic_is_that_of_the_estimator_without_folds(chooser):
    likely(chooser)
    X, y = chooser.data(noise=0.5)
    model, plain = chooser.new(criterion="ebic").fit(X, y), chooser.without_cv().fit(X, y)
    for name in ("candidates_", "criterion_path_", "coef_", "intercept_", "coefs_path_", "intercepts_path_"):
        assert_array_equal(getattr(model, name), getattr(plain, name))
    assert model.found_
    assert model.alpha_ == chooser.loss.default_ridge
    assert str(model.certificate()) == str(plain.certificate())
    assert model.certificate(X, y).value == pytest.approx(plain.certificate(X, y).value)
    assert OF_FOLDS & vars(model).keys() == set()


def test_nothing_is_left_of_another_way_to_choose(chooser):
    likely(chooser)
    X, y = chooser.data(noise=0.5)
    model = chooser.make(cv=3).fit(X, y)
    left = OF_FOLDS - {"calibration_"}
    assert left <= vars(model).keys()
    model.set_params(criterion="bic", cv=5).fit(X, y)
    assert OF_FOLDS & vars(model).keys() == set()
    with pytest.raises(AttributeError):
        model.grid_scores_  # noqa: B018
    model.set_params(criterion="cv", cv=3).fit(X, y)
    assert left <= vars(model).keys()
    assert not hasattr(model, "criterion_path_")


def test_the_ridge_is_chosen_with_the_number():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 30)) + rng.standard_normal((60, 1))
    y = X[:, :8].mean(axis=1) + rng.standard_normal(60)
    ridges = [0.0, 0.03, 0.3, 3.0]
    model = ht.SparseLinearRegressionCV(criterion="ebic", alphas=ridges).fit(X, y)
    alone = [ht.SparseLinearRegression(alpha=alpha).fit(X, y) for alpha in ridges]
    least = [one.criterion_path_.min() for one in alone]
    best = int(np.argmin(least))
    assert best > 0, "the example of this test has a best ridge that is not the first"
    assert model.alpha_ == ridges[best]
    assert_array_equal(model.alphas_, ridges)
    assert_array_equal(model.criterion_path_, alone[best].criterion_path_)
    assert_array_equal(model.coef_, alone[best].coef_)
    assert (model.best_model_.n_nonzero, model.best_model_.alpha) == (alone[best].best_n_nonzero_coefs_, ridges[best])


def test_rows_of_weight_zero_change_nothing(chooser):
    likely(chooser)
    X, y = chooser.data(n=90, noise=0.5)
    weight = np.ones(90)
    weight[60:] = 0.0
    for name in turn(NAMES, f"weight zero of {chooser.name}"):
        one = chooser.new(criterion=name).fit(X[:60], y[:60])
        other = chooser.new(criterion=name).fit(X, y, sample_weight=weight)
        assert_allclose(one.criterion_path_, other.criterion_path_, rtol=1e-9)
        assert_array_equal(one.support_, other.support_)


@pytest.mark.slow
@at_most(2)
@in_turn("cls,name", [ht.SparseCoxRegressionCV, ht.SparseOrdinalRegressionCV, ht.SparseLogisticRegressionCV], NAMES)
def test_other_models_choose_by_criteria_too(cls, name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    u = 1.5 * X[:, 2] - 1.5 * X[:, 5]
    y = np.digitize(u + rng.logistic(size=200), [-1.0, 1.0])
    if cls is ht.SparseCoxRegressionCV:
        y = np.column_stack([rng.exponential(np.exp(-u)), rng.random(200) < 0.7])
    model = cls(criterion=name).fit(X, y)
    assert {2, 5} <= set(model.support_.tolist())
    assert model.best_n_nonzero_coefs_ == model.candidates_[np.argmin(model.criterion_path_)]
    plain = next(c for c in cls.__mro__ if f"{c.__name__}CV" == cls.__name__)
    assert_array_equal(plain(criterion=name).fit(X, y).criterion_path_, model.criterion_path_)


def test_categorical_columns_count_as_one():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((150, 4)), columns=list("abcd"))
    table["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], 150))
    y = (table["colour"] == "red") - table["b"] + 0.5 * rng.standard_normal(150)
    model = ht.SparseLinearRegressionCV(criterion="ebic").fit(table, y)
    assert (model.best_n_nonzero_coefs_, model.n_nonzero_coefs_) == (2, 2)
    assert model.candidates_[-1] == 5


@only_at("pairs")
def test_check_16_the_extended_bic_finds_the_features_of_a_strong_signal():
    """Check 16 of models.md: n=200, d=500, rho .3, signal-to-noise ratio 8, ten features, 12 seeds."""
    scores, risks, sizes = [], [], []
    covariance = 0.3 ** abs(np.subtract.outer(np.arange(500), np.arange(500)))
    for seed in range(1600, 1612):
        drawn = make_sparse_regression(200, 500, 10, correlation=0.3, snr=8.0, seed=seed)
        model = ht.SparseLinearRegressionCV(criterion="ebic").fit(drawn.X, drawn.y)
        found = np.intersect1d(model.support_, drawn.support).size
        error = model.coef_ - drawn.coef
        scores.append(2 * found / (model.support_.size + 10))
        risks.append(error @ covariance @ error / drawn.noise_variance)
        with pytest.warns(CriterionWarning):
            sizes.append(ht.SparseLinearRegressionCV(criterion="aic").fit(drawn.X, drawn.y).support_.size)
    assert np.mean(scores) >= 0.97
    assert np.mean(risks) <= 0.09
    assert min(sizes) == 19, "AIC takes as many as are compared"


# what is compared


def test_given_numbers_are_those_that_are_compared():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    y = X[:, 3] + rng.standard_normal(80)
    new = ht.SparseLinearRegressionCV
    every = new(criterion="ebic", n_nonzero_coefs=range(7)).fit(X, y)
    some = new(criterion="ebic", n_nonzero_coefs=[1, 4, 6]).fit(X, y)
    assert_array_equal(some.candidates_, [1, 4, 6])
    assert_allclose(some.criterion_path_, every.criterion_path_[[1, 4, 6]])
    assert some.coefs_path_.shape == (3, 20)
    assert_array_equal(some.coefs_path_[0], some.coef_)
    assert_array_equal(new(criterion="ebic", n_nonzero_coefs=3).fit(X, y).candidates_, range(4))
    assert_array_equal(new(criterion="ebic", n_nonzero_coefs=iter([2, 1])).fit(X, y).candidates_, [1, 2])


def test_nothing_found_without_zero_among_the_numbers():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 30)), rng.standard_normal(80)
    with pytest.warns(NothingFoundWarning, match=r"\(1 to 3\) has a better EBIC than none: add 0 to n_nonzero_coefs"):
        model = ht.SparseLinearRegressionCV(criterion="ebic", n_nonzero_coefs=[1, 2, 3]).fit(X, y)
    assert not model.found_
    assert model.support_.size == 1
    with pytest.warns(NothingFoundWarning, match="the model has none"):
        model = ht.SparseLinearRegressionCV(criterion="ebic").fit(X, y)
    assert (model.found_, model.support_.size) == (False, 0)


def test_the_best_at_the_end_of_given_numbers_is_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    with pytest.warns(SearchRangeWarning, match="the best BIC is that of the largest number of features compared, 2"):
        ht.SparseLinearRegressionCV(criterion="bic", n_nonzero_coefs=[1, 2]).fit(X, X[:, :5].sum(axis=1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cls", [ht.SparseLinearRegression, ht.SparseLinearRegressionCV])
def test_criteria_that_do_not_pay_for_the_search_warn_if_there_are_more_columns_than_rows(cls, name):
    """Check 16 of models.md: AIC warns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    y = 3 * X[:, 1] + rng.standard_normal(40)
    for columns, warns in ((60, name != "ebic"), (40, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cls(criterion=name).fit(X[:, :columns], y)
        messages = [str(w.message) for w in caught if w.category is CriterionWarning]
        assert len(messages) == warns
        if warns:
            assert f"{name.upper()} chooses features out of 60 columns by 40 rows" in messages[0]
            assert 'use criterion="ebic", or ' in messages[0]


def test_screened_features_count():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 15))
    y = X[:, 3] + rng.standard_normal(100)
    one, other, half = (
        ht.SparseLinearRegression(n_features_original=d, ebic_gamma=gamma).fit(X, y)
        for d, gamma in ((None, 1.0), (900, 1.0), (900, 0.5))
    )
    gap = [2 * log(comb(900, k) / comb(15, k)) for k in one.candidates_]
    assert_allclose(other.criterion_path_ - one.criterion_path_, gap, rtol=1e-9, atol=1e-9)
    bic = ht.SparseLinearRegression(criterion="bic").fit(X, y)
    assert_allclose(2 * half.criterion_path_, other.criterion_path_ + bic.criterion_path_)
    gic = [ht.SparseLinearRegression(criterion="gic", n_features_original=d).fit(X, y) for d in (None, 900)]
    gap = one.candidates_ * log(900 / 15) * log(log(100))
    assert_allclose(gic[1].criterion_path_ - gic[0].criterion_path_, gap, rtol=1e-9, atol=1e-9)
    with pytest.raises(InvalidInputError, match="n_features_original must be >= 15, got 12"):
        ht.SparseLinearRegression(n_features_original=12).fit(X, y)


# a search


@pytest.mark.slow
def test_check_17_the_search_finds_the_minimum_of_the_whole_path():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((400, 150))
        size = int(rng.integers(1, 30))
        y = X[:, :size] @ rng.choice([-1.0, 1.0], size) + rng.standard_normal(400)
        search = ht.SparseLinearRegression(n_nonzero_coefs="search", max_nonzero_coefs=60).fit(X, y)
        every = ht.SparseLinearRegressionCV(criterion="ebic", n_nonzero_coefs=60).fit(X, y)
        assert search.best_n_nonzero_coefs_ == every.best_n_nonzero_coefs_
        assert_array_equal(search.support_, every.support_)
        assert search.candidates_[0] == 0
        assert search.candidates_.size <= 1 + log(60, 2) + log(60, (1 + 5**0.5) / 2) + 5 < 21
        assert_array_equal(search.candidates_, np.unique(search.candidates_))
        assert search.coefs_path_.shape == (search.candidates_.size, 150)
        assert np.count_nonzero(search.coefs_path_[np.searchsorted(search.candidates_, size)]) == size


def test_a_search_stays_where_a_criterion_compares_more_than_noise():
    """With half as many columns as rows the criterion has a second valley, far below the first."""
    drawn = make_sparse_regression(100, 2000, 3, snr=4.0, seed=0)
    model = ht.SparseLinearRegression(n_nonzero_coefs="search", max_nonzero_coefs=90).fit(drawn.X, drawn.y)
    assert model.candidates_[-1] == floor(100 / (log(2000) * log(log(100)))) == 8
    with pytest.warns(SearchRangeWarning, match="of the largest number of features compared, 2"):
        ht.SparseLinearRegression(n_nonzero_coefs="search", max_nonzero_coefs=2).fit(drawn.X, drawn.y)


@at_most(2)
@pytest.mark.parametrize("cls", [ht.SparseLinearRegressionCV, ht.SparseLogisticRegressionCV, ht.SparseCoxRegressionCV])
def test_a_search_by_folds_compares_few_numbers(cls):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60))
    u = 2 * X[:, 3] - 2 * X[:, 8]
    if cls is ht.SparseCoxRegressionCV:
        y = np.column_stack([rng.exponential(np.exp(-u)), np.ones(150)])
    elif cls is ht.SparseLinearRegressionCV:
        y = u + rng.standard_normal(150)
    else:
        y = u + rng.logistic(size=150) > 0
    settings = {"cv": 3, "averaging": "none", "alphas": 0.01}
    model = cls(n_nonzero_coefs="search", max_nonzero_coefs=40, **settings).fit(X, y)
    assert model.candidates_[0] == 0
    assert model.candidates_.size < 15
    assert model.grid_scores_.shape == (model.candidates_.size, 1, 3)
    assert {3, 8} <= set(model.support_.tolist())
    again = cls(n_nonzero_coefs=model.candidates_, **settings).fit(X, y)
    assert_allclose(model.mean_scores_[:3], again.mean_scores_[:3], rtol=1e-6)
    assert "cross-validation chose (searched, not all tried)" in str(model.summary())


def test_a_search_by_folds_takes_the_best_ridge_of_each_number():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(80)
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs="search", cv=3).fit(X, y)
    best = model.grid_scores_.mean(axis=2).max(axis=1)
    tried = {int(k) for k in model.candidates_}
    k = int(model.candidates_[1 + np.argmax(best[1:])])
    assert {*range(max(1, k - 2), min(30, k + 2) + 1)} <= tried
    assert len(model.alphas_) > 1


def test_what_was_searched_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    y = X[:, 3] + rng.standard_normal(100)
    searched = ht.SparseLinearRegression(n_nonzero_coefs="search").fit(X, y)
    every = ht.SparseLinearRegression(criterion="bic").fit(X, y)
    assert "was chosen by EBIC (searched, not all tried)" in str(searched.summary())
    assert "was chosen by BIC\n" in str(every.summary())
    assert plot_criterion(searched.candidates_, searched.criterion_path_).get_ylabel().startswith("EBIC")


@pytest.mark.slow
@pytest.mark.parametrize("cls", [ht.SparseHuberRegression, ht.SparseLinearSVC])
def test_a_criterion_that_only_ranks_says_so(cls):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 10))
    y = X[:, 3] + 0.3 * rng.standard_normal(100)
    y = y if cls is ht.SparseHuberRegression else y > 0
    summary = cls().fit(X, y).summary()
    assert "was chosen by EBIC (heuristic: the loss has no likelihood)" in str(summary)
    assert "heuristic" not in str(cls(n_nonzero_coefs=1).fit(X, y).summary())


def test_groups_are_searched_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(300)
    settings = {"groups": np.arange(60) // 2}
    model = ht.SparseLinearRegression(n_nonzero_groups="search", max_nonzero_coefs=20, **settings).fit(X, y)
    assert model.best_n_nonzero_groups_ == 3
    assert model.groups_ == (0, 1, 2)


# what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 3}, "cv=3 is about folds"),
        ({"cv": [([0], [1])]}, r"cv=\[.*\] is about folds"),
        ({"scoring": "r2"}, "scoring='r2' is about folds"),
        ({"rule": "one_standard_error"}, "rule='one_standard_error' is about folds"),
        ({"averaging": "stacking"}, "averaging='stacking' is about folds"),
        ({"ebic_gamma": 1.5}, "ebic_gamma must be .* <= 1, got 1.5"),
        ({"n_features_original": 0}, "n_features_original must be"),
        ({"max_nonzero_coefs": 5}, 'is the end of the range that n_nonzero_coefs="search" tries'),
        ({"n_nonzero_coefs": "search", "max_nonzero_coefs": 0}, "max_nonzero_coefs must be"),
        ({"n_nonzero_coefs": None}, "n_nonzero_coefs must be an integer"),
        ({"n_nonzero_coefs": []}, "n_nonzero_coefs is empty"),
        ({"n_nonzero_coefs": [2, 500]}, "n_nonzero_coefs must be"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [-1.0]}, "alphas must be"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 5)), rng.standard_normal(30)
    with pytest.raises(InvalidInputError, match=message):
        ht.SparseLinearRegressionCV(**{"criterion": "ebic", **settings}).fit(X, y)


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("SparseLinearRegressionCV", {"ebic_gamma": 0.5}, r"ebic_gamma=0.5 is for criterion='ebic', not for 'cv'"),
        ("SparseLinearRegressionCV", {"n_features_original": 9}, "n_features_original=9 is for .*'gic', not for 'cv'"),
        ("SparseLinearRegression", {"criterion": "gic", "ebic_gamma": 0.0}, "ebic_gamma=0.0 is for .*not for 'gic'"),
        ("SparseLinearRegression", {"criterion": "bic", "n_features_original": 9}, "n_features_original=9 is for"),
        ("SparseGaussianGraphicalModelCV", {"ebic_gamma": 1.0}, "ebic_gamma=1.0 is for criterion='ebic', not for 'cv'"),
    ],
)
def test_a_setting_that_the_criterion_has_no_use_for_is_refused(model, settings, message):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 5)), rng.standard_normal(30)
    with pytest.raises(InvalidInputError, match=message):
        getattr(ht, model)(**settings).fit(X, *([] if "Graph" in model else [y]))


def test_rows_in_groups_are_for_folds():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 5)), rng.standard_normal(30)
    with pytest.raises(InvalidInputError, match='groups is for folds, and criterion="bic" fits none'):
        ht.SparseLinearRegressionCV(criterion="bic").fit(X, y, groups=np.arange(30) // 2)


@pytest.mark.parametrize("wrong", ["EBIC", None])
def test_an_unknown_criterion_is_refused(case, wrong):
    X, y = case.data()
    with pytest.raises(InvalidInputError, match=r"criterion must be one of .*'ebic', 'bic'"):
        case.new(criterion=wrong).fit(X, y)


def test_folds_are_for_the_twin(plain):
    X, y = plain.data()
    with pytest.raises(InvalidInputError, match=f'criterion="cv" is for {plain.cls.__name__}CV'):
        plain.new(criterion="cv").fit(X, y)


def test_a_loss_without_a_likelihood_has_no_criterion(case):
    X, y = case.data()
    if case.loss.has_likelihood:
        case.new(criterion="bic").fit(X, y)
        return
    instead = (
        f'use criterion="cv", or {case.cls.__name__[:-2]}, whose "ebic" ranks'
        if case.chooses
        else f"or use {case.cls.__name__}CV"
    )
    for name in NAMES if case.chooses else ("bic", "aic", "gic"):
        with pytest.raises(CapabilityError, match=f'has no likelihood for criterion="{name}".*{instead}'):
            case.new(criterion=name).fit(X, y)


# storage


def test_a_choice_is_stored(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    y = X[:, 3] + rng.standard_normal(80)
    model = ht.SparseLinearRegressionCV(criterion="bic", alphas=[0.0, 0.1]).fit(X, y)
    ht.save(model, tmp_path / "model.json")
    again = ht.load(tmp_path / "model.json")
    assert again.get_params() == model.get_params()
    assert_array_equal(again.criterion_path_, model.criterion_path_)
    assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.certificate(X, y)) == str(model.certificate(X, y))


@pytest.mark.parametrize(("cls", "criterion"), [(ht.SparseHuberRegression, "ebic"), (ht.SparseCoxRegressionCV, "cv")])
def test_models_of_before_load_with_the_criterion_that_they_had(cls, criterion, tmp_path):
    ht.save(cls(), tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    assert document["object"]["version"] == 2
    document["object"]["version"] = 1
    for name in ("criterion", "ebic_gamma", "n_features_original", "max_nonzero_coefs"):
        del document["object"]["parameters"][name]
    (tmp_path / "x.json").write_text(json.dumps(document))
    again = ht.load(tmp_path / "x.json")
    assert again.criterion == criterion
    assert again.get_params() == cls().get_params()
