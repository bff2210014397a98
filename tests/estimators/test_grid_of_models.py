"""Numbers of features and ridges chosen together, the averages of their models, and whether anything was found."""

import warnings
from itertools import product
from math import exp

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold

import hardthresh as ht
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning
from hardthresh.estimators import SparseLinearRegressionCV, SparseLogisticRegressionCV, SparsePoissonRegressionCV
from hardthresh.estimators.linear import cross_validation
from hardthresh.estimators.linear.grid_models import FoldFits
from levels import at_most, only_at, reaches

SEEDS = range(100) if reaches("pairs") else range(25)


def three_folds(n):
    return list(KFold(3, shuffle=True, random_state=0).split(np.zeros(n)))


def coefficients(model):
    return np.reshape(model.coef_, -1)


def intercept(model):
    return float(np.reshape(model.intercept_, -1)[0])


def sums_of(models, d):
    """The weighted sums of the coefficients and the intercepts of some models, one by one."""
    coef, level = np.zeros(d), 0.0
    for model in models:
        for j, value in zip(model.support, model.coef, strict=True):
            coef[j] += model.weight * value
        level += model.weight * model.intercept
    return coef, level


@pytest.fixture
def unthinned(monkeypatch):
    """Averages keep all their features."""
    monkeypatch.setattr(FoldFits, "thinned_average", lambda self, weights, table, units, noise: self.average(weights))


@pytest.fixture
def unlimited(monkeypatch):
    """Averages may have more features than were compared."""
    monkeypatch.setattr(cross_validation, "within_budget", lambda fits, weights, *others: weights)


# the average


@pytest.mark.parametrize("averaging", ["exponential", "stacking"])
def test_the_average_is_the_weighted_sum_of_its_models(chooser, averaging, unthinned):
    X, y = chooser.data(noise=1.0)
    model = chooser.make(k=6, averaging=averaging, always_include=[0]).fit(X, y)
    assert len(model.models_) > 1
    coef, level = sums_of(model.models_, 12)
    assert_allclose(coefficients(model), coef, rtol=1e-12, atol=1e-15)
    assert_allclose(intercept(model), level, rtol=1e-12)
    assert_array_equal(model.support_, np.flatnonzero((coef != 0) | (np.arange(12) == 0)))
    weights = [part.weight for part in model.models_]
    assert weights == sorted(weights, reverse=True)
    assert min(weights[:-1]) > 0
    assert_allclose(sum(weights), 1.0)


def test_the_models_of_an_average_are_fits_on_all_rows(chooser):
    X, y = chooser.data(n=300, noise=1.0)
    model = chooser.make(k=4, alphas=[0.02, 0.03]).fit(X, y)
    assert {part.alpha for part in model.models_} == {0.02, 0.03}
    for part in model.models_:
        alone = chooser.without_cv(n_nonzero_coefs=part.support.size, alpha=part.alpha, tol=1e-12)
        alone.fit(X[:, part.support], y)
        assert part.support.size <= part.n_nonzero
        assert_allclose(part.coef, coefficients(alone), rtol=1e-4, atol=1e-7)
        assert_allclose(part.intercept, intercept(alone), rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*fits inside the folds did not converge")
@pytest.mark.parametrize("weighted", [False, True])
def test_exponential_weights_are_those_of_the_scores(chooser, weighted, unlimited):
    X, y = chooser.data(noise=2.0)
    weight = np.random.default_rng(0).integers(0, 4, y.size).astype(float) if weighted else np.ones(y.size)
    model = chooser.make(n_nonzero_coefs=range(5)).fit(X, y, sample_weight=weight)
    losses = -model.grid_scores_.mean(axis=2) * (2 if chooser.loss.classifies else 1)
    phi = 1.0 if chooser.loss.classifies else losses.min()
    expected = {}
    for (row, k), (column, alpha) in product(enumerate(model.candidates_), enumerate(model.alphas_)):
        if k > 0 or column == 0:
            gap = weight.sum() * (losses[row, column] - losses.min()) / (4 * phi)
            expected[int(k), float(alpha)] = exp(-gap - 0.03 * k)
    if not model.found_:
        expected = {(0, model.alpha_): 1.0}
    expected = {place: value for place, value in expected.items() if value >= 1e-3 * max(expected.values())}
    found = {(part.n_nonzero, part.alpha): part.weight for part in model.models_}
    assert found.keys() == expected.keys()
    total = sum(expected.values())
    assert_allclose([found[place] for place in expected], [value / total for value in expected.values()], rtol=1e-9)


def held_out(model, settings, X, y, folds):
    """The coefficients of each fold with each number and ridge, by a scorer that notes them; and their predictions."""
    seen = []

    def note(fitted, X, y):
        seen.append((coefficients(fitted).copy(), intercept(fitted)))
        return 0.0

    with warnings.catch_warnings(action="ignore"):
        other = type(model)(**settings, scoring=note).fit(X, y)
    sizes = [int(k) for k in np.union1d([0], other.candidates_)]
    places = [(k, float(alpha)) for k in sizes for alpha in other.alphas_]
    fits = [
        dict(zip(places, seen[start : start + len(places)], strict=True)) for start in range(0, len(seen), len(places))
    ]
    predictions = {place: np.full(y.size, np.nan) for place in places}
    for (_, test), fold in zip(folds, fits, strict=True):
        for place, (coef, level) in fold.items():
            predictions[place][test] = X[test] @ coef + level
    return fits, predictions


def linear_data(seed=0, n=90, d=20):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 4, d) + rng.uniform(-2, 2, d)
    return X, X[:, 3] - 0.5 * X[:, 8] + 0.3 * X[:, 11] + 2 * rng.standard_normal(n)


def test_stacking_weights_are_those_of_the_held_out_predictions(unlimited):
    X, y = linear_data()
    settings = {"n_nonzero_coefs": [2, 4, 8], "alphas": [0.0, 0.3], "cv": three_folds(90)}
    model = SparseLinearRegressionCV(**settings, averaging="stacking").fit(X, y)
    _, predictions = held_out(model, settings, X, y, three_folds(90))
    null = predictions[0, 0.0]
    places = [place for place in predictions if place[0] > 0]
    theta = nnls(np.stack([predictions[place] - null for place in places], axis=1), y - null)[0]
    found = {(part.n_nonzero, part.alpha): part.weight for part in model.models_}
    for place, weight in zip(places, theta, strict=True):
        assert_allclose(found.get(place, 0.0), weight, rtol=1e-6, atol=1e-9)
    assert_allclose(found.get((0, 0.0), 0.0), 1 - theta.sum(), atol=1e-9)


def test_what_is_said_of_held_out_rows_is_of_the_average_that_each_fold_makes():
    """Selection frequencies, scores and calibration, by averaging and thinning the fits of each fold by hand."""
    X, y = linear_data()
    folds = three_folds(90)
    settings = {"n_nonzero_coefs": [1, 2, 4, 8], "alphas": [0.0, 0.3], "cv": folds}
    model = SparseLinearRegressionCV(**settings).fit(X, y)
    assert len(model.models_) > 2
    fits, _ = held_out(model, settings, X, y, folds)
    votes, prediction, noise = np.zeros(20), np.empty(90), -model.grid_scores_.mean(axis=2).max()
    for (train, test), fold in zip(folds, fits, strict=True):
        coef = sum(part.weight * fold[part.n_nonzero, part.alpha][0] for part in model.models_)
        level = sum(part.weight * fold[part.n_nonzero, part.alpha][1] for part in model.models_)
        coef, level = thinned(coef, level, X[train], noise)
        votes += coef != 0
        prediction[test] = X[test] @ coef + level
    assert_allclose(model.selection_frequency_, votes / 3)
    assert_allclose(model.held_out_scores_["mean_squared_error"], np.mean((y - prediction) ** 2), rtol=1e-9)
    assert_allclose(model.calibration_[:, 0] @ model.calibration_[:, 2], prediction.sum(), rtol=1e-9)


# thinning


def thinned(coef, level, X, noise):
    """The features whose contributions to the predictions for rows X are needed, and the intercept for the mean."""
    parts = (X - X.mean(axis=0)) * coef
    order = sorted(np.flatnonzero(coef), key=lambda j: -parts[:, j].var())
    limit = 0.01 * min(noise, parts.sum(axis=1).var())
    kept = order[: max((n + 1 for n in range(len(order)) if parts[:, order[n:]].sum(axis=1).var() > limit), default=0)]
    small = np.where(np.isin(np.arange(coef.size), kept), coef, 0.0)
    return small, level + X.mean(axis=0) @ (coef - small)


@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
@pytest.mark.parametrize("collinear", [False, True])
def test_thinning_by_hand(cls, collinear):
    X, y = linear_data(n=200)
    if collinear:
        X[:, 8] = X[:, 3] + 0.05 * X[:, 8]
        y = y + 30 * (X[:, 3] - X[:, 8]) + 0.5 * X[:, 11]
    classes = cls is SparseLogisticRegressionCV
    settings = {"n_nonzero_coefs": [2, 4, 8, 12], "alphas": [1e-5, 1e-4], "cv": 3}
    model = cls(**settings).fit(X, y > np.median(y) if classes else y)
    coef, level = sums_of(model.models_, 20)
    noise = np.inf if classes else -model.grid_scores_.mean(axis=2).max()
    expected, shifted = thinned(coef, level, X, noise)
    assert model.n_nonzero_coefs_ < 12, "no model is left out"
    assert 0 < np.count_nonzero(expected) < np.count_nonzero(coef)
    assert_allclose(coefficients(model), expected, rtol=1e-9)
    assert_allclose(intercept(model), shifted, rtol=1e-9)
    assert_array_equal(model.support_, np.flatnonzero(expected))
    assert model.n_nonzero_coefs_ == np.count_nonzero(expected)
    if collinear:
        assert 11 in model.support_, "small beside two contributions, but not beside their sum"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("averaging", ["exponential", "stacking"])
def test_thinning_keeps_the_mean_prediction_and_the_limit(chooser, averaging, weighted):
    X, y = chooser.data(noise=3.0)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, y.size) if weighted else np.ones(y.size)
    model = chooser.make(k=3, averaging=averaging).fit(X, y, sample_weight=weight)
    coef, level = sums_of(model.models_, 12)
    mean = np.average(X @ coef + level, weights=weight)
    assert_allclose(np.average(X @ coefficients(model) + intercept(model), weights=weight), mean, rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(model.coef_) <= 3
    assert set(model.support_.tolist()) <= set(np.flatnonzero(coef).tolist())


@pytest.mark.parametrize("seed", range(6))
def test_an_average_within_the_limit_is_of_the_models_of_the_largest_weights(seed, monkeypatch):
    """Without thinning, by a loop over the models: each joins that leaves the features within the limit."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) + 2 * rng.standard_normal((40, 1))
    y = X.sum(axis=1) + 3 * rng.standard_normal(40)
    settings = {"n_nonzero_coefs": 2, "cv": 3, "always_include": [5]}
    monkeypatch.setattr(FoldFits, "thinned_average", lambda self, weights, table, units, noise: self.average(weights))
    model = SparseLinearRegressionCV(**settings).fit(X, y)
    monkeypatch.setattr(cross_validation, "within_budget", lambda fits, weights, *others: weights)
    every = SparseLinearRegressionCV(**settings).fit(X, y)
    kept, features = [], {5}
    for part in every.models_:
        if len((features | set(part.support.tolist())) - {5}) <= 2:
            kept, features = [*kept, part], features | set(part.support.tolist())
    if every.n_nonzero_coefs_ <= 2:
        kept = list(every.models_)
    weight = sum(part.weight for part in kept)
    assert [(part.n_nonzero, part.alpha) for part in model.models_] == [(part.n_nonzero, part.alpha) for part in kept]
    assert_allclose([part.weight for part in model.models_], [part.weight / weight for part in kept])
    assert model.n_nonzero_coefs_ <= 2
    assert seed < 5 or every.n_nonzero_coefs_ > 2, "there is something to leave out"


@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_thinning_takes_groups_whole(cls):
    X, y = linear_data(n=200)
    target = y if cls is SparseLinearRegressionCV else y > np.median(y)
    groups = ["a" if j in (3, 8) else j // 2 for j in range(20)]
    model = cls(groups=groups, n_nonzero_groups=3, cv=3, always_include=[5]).fit(X, target)
    assert len(model.models_) > 1
    before = np.count_nonzero(sums_of(model.models_, 20)[0])
    chosen = set(np.flatnonzero(coefficients(model)).tolist()) - {5}
    assert "a" in model.groups_
    assert {groups[j] for j in chosen} == set(model.groups_)
    assert chosen == {j for j in range(20) if groups[j] in model.groups_ and j != 5}
    assert model.n_nonzero_groups_ == len(model.groups_) <= 3
    assert before > len(chosen) + 1, "there is something to thin"
    assert 5 in model.support_


def test_thinning_keeps_included_columns_however_small_their_effect(chooser):
    X, y = chooser.data(n=200, noise=0.5)
    model = chooser.make(k=2, always_include=[0, 11]).fit(X, y)
    coef = coefficients(model)
    assert {0, 11} <= set(model.support_.tolist())
    assert np.all(coef[[0, 11]] != 0)
    assert np.count_nonzero(coef) - 2 == model.n_nonzero_coefs_ <= 2
    assert_allclose(coef[[0, 11]], sums_of(model.models_, 12)[0][[0, 11]], rtol=1e-12)


# the certificate


def test_the_certificate_of_an_average_is_about_the_best_single_model(chooser):
    X, y = chooser.data(noise=2.0)
    model = chooser.make(k=4, tol=1e-12).fit(X, y)
    assert len(model.models_) > 1
    best = model.best_model_
    subject = f"the best single model (k = {best.n_nonzero}, ridge {best.alpha:.3g}), not the average of"
    assert model.certificate().subject == f"{subject} {len(model.models_)}"
    assert str(model.certificate()).startswith(f"About {subject}")
    assert_allclose(model.certificate().value, model.objective_)
    again = model.certificate(X, y)
    assert again.subject == model.certificate().subject
    assert_allclose(again.value, model.objective_)
    assert again.fitted
    alone = chooser.without_cv(n_nonzero_coefs=best.n_nonzero, alpha=best.alpha, tol=1e-12).fit(X, y)
    assert_array_equal(alone.support_, best.support)
    assert_allclose(alone.certificate().value, again.value)
    assert alone.certificate().best_swap == again.best_swap


def test_the_certificate_of_a_single_model_is_about_that(chooser):
    X, y = chooser.data(noise=2.0)
    model = chooser.make(averaging="none").fit(X, y)
    assert model.certificate().subject == model.certificate(X, y).subject == ""
    assert_array_equal(model.best_model_.coef, coefficients(model)[model.support_])
    assert [part.weight for part in model.models_] == [1.0]


# two dimensions of choice


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_the_choice_among_numbers_and_ridges_by_naive_loops(chooser, rule):
    ridges, moved = [0.01, 0.1, 1.0], 0
    for seed in range(5):
        X, y = chooser.data(noise=3.0, seed=seed)
        model = chooser.make(k=6, alphas=ridges, rule=rule, averaging="none").fit(X, y)
        mean = model.grid_scores_.mean(axis=2)
        places = list(product(range(6), range(3)))
        top = max(places, key=lambda place: (mean[place], -place[0], place[1]))
        error = model.grid_scores_[top].std(ddof=1) / np.sqrt(3)
        close = [place for place in places if mean[place] >= mean[top] - error]
        fewest = min(row for row, _ in close)
        modest = fewest, max(column for row, column in close if row == fewest)
        row, column = top if rule == "best" else modest
        assert (model.best_n_nonzero_coefs_, model.alpha_) == (row + 1, ridges[column])
        assert model.one_standard_error_ == fewest + 1
        assert (model.best_model_.n_nonzero, model.best_model_.alpha) == (row + 1, ridges[column])
        moved += modest != top
    assert moved > 0, "the data of this test tell the rules apart"


@pytest.mark.parametrize(
    "given", [[0.5, 0.1], (0.1, 0.5), np.array([0.1, 0.5, 0.1]), {0.5, 0.1}, iter([0.5, 0.1]), (a for a in [0.1, 0.5])]
)
def test_every_way_to_give_ridges(given):
    X, y = linear_data()
    model = SparseLinearRegressionCV(alphas=given, n_nonzero_coefs=3).fit(X, y)
    assert_array_equal(model.alphas_, [0.1, 0.5])
    assert_array_equal(
        model.grid_scores_, SparseLinearRegressionCV(alphas=[0.1, 0.5], n_nonzero_coefs=3).fit(X, y).grid_scores_
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ridges_of_an_iterator_reach_other_processes(n_jobs):
    X, y = linear_data()
    settings = {"n_nonzero_coefs": [0, 3], "solver": "pursuit"}
    listed = SparseLinearRegressionCV(alphas=[0.5, 0.1], **settings).fit(X, y)
    model = SparseLinearRegressionCV(alphas=iter([0.5, 0.1]), n_jobs=n_jobs, **settings).fit(X, y)
    assert_array_equal(model.grid_scores_, listed.grid_scores_)
    assert_array_equal(model.coef_, listed.coef_)


@pytest.mark.parametrize("given", [0.3, np.float64(0.3), [0.3]])
def test_one_ridge(chooser, given):
    X, y = chooser.data()
    model = chooser.make(alphas=given).fit(X, y)
    assert (model.alphas_.tolist(), model.alpha_) == ([0.3], 0.3)
    assert model.grid_scores_.shape == (3, 1, 3)


def test_the_default_ridges_are_in_units_of_the_curvature_at_the_null_model():
    X, y = linear_data()
    assert_allclose(SparseLinearRegressionCV(cv=3).fit(X, y).alphas_, [0, 0.1, 0.3, 1, 3, 10])
    classes = y > np.quantile(y, 0.8)
    curvature = classes.mean() * (1 - classes.mean())
    expected = [0.001, 0.01, *(curvature * np.array([0.1, 0.3, 1, 3]))]
    assert_allclose(SparseLogisticRegressionCV(cv=3).fit(X, classes).alphas_, np.sort(expected))
    counts = np.random.default_rng(0).poisson(2.0, 90)
    expected = counts.mean() * np.array([0, 0.1, 0.3, 1, 3, 10])
    assert_allclose(SparsePoissonRegressionCV(cv=3).fit(X, counts).alphas_, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": []}, "alphas is empty; give the ridges to compare"),
        ({"alphas": iter([])}, "alphas is empty"),
        ({"alphas": -1.0}, 'alphas must be "auto" or finite numbers >= 0, got -1.0'),
        ({"alphas": [0.1, -0.1]}, "finite numbers >= 0, got -0.1"),
        ({"alphas": [np.nan]}, "finite numbers >= 0, got nan"),
        ({"alphas": np.inf}, "finite numbers >= 0, got inf"),
        ({"alphas": "many"}, "finite numbers >= 0, got 'many'"),
        ({"alphas": ["0.1"]}, "finite numbers >= 0, got '0.1'"),
        ({"alphas": None}, "finite numbers >= 0, got None"),
        ({"averaging": "mean"}, 'averaging must be "auto", "none", "exponential" or "stacking", got \'mean\''),
        ({"averaging": None}, "averaging must be"),
        ({"averaging": True}, "averaging must be"),
        ({"averaging": ["none"]}, "averaging must be"),
        ({"averaging": "stacking", "rule": "one_standard_error"}, 'weighs models by their loss, and rule="one_st'),
        ({"averaging": "exponential", "scoring": "r2"}, "weighs models by their loss, and a scorer chooses one"),
        ({"n_nonzero_coefs": "many"}, "n_nonzero_coefs must be a number or numbers of features to compare, got 'many'"),
        ({"n_nonzero_coefs": [-1]}, "n_nonzero_coefs"),
        ({"n_nonzero_coefs": [1.5]}, "n_nonzero_coefs"),
    ],
)
def test_bad_settings_of_the_grid_are_refused(settings, message):
    X, y = linear_data()
    with pytest.raises(InvalidInputError, match=message):
        SparseLinearRegressionCV(**settings).fit(X, y)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    ("settings", "done"),
    [
        ({}, "exponential"),
        ({"rule": "one_standard_error"}, "none"),
        ({"scoring": "r2"}, "none"),
        ({"averaging": "none", "scoring": "r2", "rule": "one_standard_error"}, "none"),
        ({"averaging": "stacking"}, "stacking"),
    ],
)
def test_what_is_averaged_by_default(settings, done):
    X, y = linear_data()
    model = SparseLinearRegressionCV(**settings).fit(X, y)
    assert model.found_
    assert model.averaging_ == done
    assert (len(model.models_) == 1) == (done == "none")


# nothing to find


def noise(cls, seed, n=60, d=20):
    """Targets that the columns do not predict."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    return X, y > np.median(y) if cls is SparseLogisticRegressionCV else y


@pytest.mark.slow
@at_most(1)
@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")
@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_permuted_targets_have_empty_models(cls):
    """At most as many as a share of 5 % has with a probability of .999."""
    found = sum(cls().fit(*noise(cls, seed)).found_ for seed in SEEDS)
    assert found <= (14 if reaches("pairs") else 6)


@only_at("pairs")
@pytest.mark.filterwarnings("ignore::hardthresh.core.errors.NothingFoundWarning")
@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_permuted_targets_of_a_wide_table_have_empty_models(cls):
    assert sum(cls().fit(*noise(cls, seed, d=500)).found_ for seed in range(60)) <= 10


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_a_strong_signal_is_always_found(cls):
    for seed in range(15):
        X, _ = noise(cls, seed, n=100)
        u = 2 * X[:, 3] - 2 * X[:, 7]
        rng = np.random.default_rng(seed)
        y = u + rng.logistic(size=100) > 0 if cls is SparseLogisticRegressionCV else u + rng.standard_normal(100)
        model = cls(n_nonzero_coefs=range(6)).fit(X, y)
        assert model.found_
        assert {3, 7} <= set(model.support_.tolist())


@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_nothing_found_is_the_empty_model_and_is_said(cls):
    X, y = noise(cls, 1)
    with pytest.warns(NothingFoundWarning, match="no number of features predicts clearly better.*the model has none"):
        model = cls().fit(X, y)
    assert model.found_ is False
    assert_array_equal(coefficients(model), np.zeros(20))
    assert model.support_.size == model.n_nonzero_coefs_ == model.best_n_nonzero_coefs_ == 0
    assert (model.averaging_, len(model.models_)) == ("none", 1)
    assert model.models_[0].support.size == 0
    assert_array_equal(model.selection_frequency_, np.zeros(20))
    assert_allclose(model.null_scores_, model.scores_[0], rtol=1e-12)
    none = cls.__bases__[1](n_nonzero_coefs=0).fit(X, y)
    assert_allclose(intercept(model), intercept(none), atol=1e-9)
    assert np.isnan(model.null_p_value_) or model.null_p_value_ > 0.03


def test_the_empty_model_keeps_the_included_columns(chooser):
    X, y = chooser.data()
    X = np.column_stack([X[:, [1, 4, 7]], np.random.default_rng(0).standard_normal((y.size, 9))])
    model = chooser.make(n_nonzero_coefs=range(4), always_include=[0, 1, 2]).fit(X, y)
    assert not model.found_
    assert_array_equal(model.support_, [0, 1, 2])
    assert model.n_nonzero_coefs_ == 0
    alone = chooser.without_cv(n_nonzero_coefs=0, always_include=[0, 1, 2], alpha=model.alpha_).fit(X, y)
    assert_allclose(coefficients(model), coefficients(alone), rtol=1e-5, atol=1e-8)


def test_a_range_without_none_keeps_a_model_and_warns(chooser):
    X, y = chooser.data()
    y = np.random.default_rng(2).permutation(y)
    with pytest.warns(NothingFoundWarning, match="add 0 to n_nonzero_coefs for a model without any"):
        model = chooser.make(k=3, averaging="none").fit(X, y)
    assert not model.found_
    assert 1 <= model.n_nonzero_coefs_ == model.best_n_nonzero_coefs_ <= 3
    assert_array_equal(model.candidates_, [1, 2, 3])


def test_a_found_model_is_not_warned_of(chooser):
    X, y = chooser.data(n=150)
    with warnings.catch_warnings(action="error", category=NothingFoundWarning):
        model = chooser.make(n_nonzero_coefs=range(6)).fit(X, y)
    assert model.found_


def test_a_target_without_variation_has_nothing_to_find():
    X, _ = linear_data()
    with pytest.warns(NothingFoundWarning):
        model = SparseLinearRegressionCV().fit(X, np.full(90, 2.5))
    assert not model.found_
    assert_allclose(model.predict(X), 2.5)


def test_groups_that_predict_nothing():
    X, y = noise(SparseLinearRegressionCV, 1)
    with pytest.warns(NothingFoundWarning, match="no number of groups"):
        model = SparseLinearRegressionCV(groups=np.arange(20) // 4).fit(X, y)
    assert (model.n_nonzero_groups_, model.groups_, model.best_n_nonzero_groups_) == (0, (), 0)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("cls", [SparseLinearRegressionCV, SparseLogisticRegressionCV])
def test_the_p_value_decides_where_standard_errors_do_not(cls, monkeypatch):
    """Of data with some gain, those are found that the permutation test does not call exchangeable."""
    monkeypatch.setattr("hardthresh.estimators.linear.null_comparison._CLEAR", np.inf)
    decided = []
    with warnings.catch_warnings(action="ignore"):
        for seed in range(25):
            X, y = noise(cls, seed)
            y = y + 0.6 * X[:, 0] > 0.5 if cls is SparseLogisticRegressionCV else y + 0.4 * X[:, 0]
            model = cls(n_nonzero_coefs=range(4), averaging="none").fit(X, y)
            if np.isnan(model.null_p_value_):
                assert not model.found_, seed
            else:
                assert model.found_ == (model.null_p_value_ <= 0.03), seed
                decided.append(model.found_)
    assert {True, False} == set(decided)


@only_at("pairs")
@pytest.mark.parametrize("dependence", ["rows of a group", "a scorer", "one split", "unequal weights"])
def test_noise_is_seldom_found_where_rows_are_not_alike(dependence):
    """At most 4 of 30; a test of level .03 finds more in one of two thousand such tests."""
    found = 0
    with warnings.catch_warnings(action="ignore"):
        for seed in range(30):
            rng = np.random.default_rng((7, seed))
            X, y, model, fit = rng.standard_normal((60, 20)), rng.standard_normal(60), SparseLinearRegressionCV(), {}
            if dependence == "rows of a group":
                group = np.repeat(np.arange(12), 5)
                X, y = X[group] + 0.1 * rng.standard_normal(X.shape), y[group]
                model, fit = model.set_params(cv=GroupKFold(4)), {"groups": group}
            elif dependence == "unequal weights":
                fit = {"sample_weight": rng.uniform(0.5, 2.0, 60)}
            else:
                cv = 5 if dependence == "a scorer" else [(np.arange(40), np.arange(40, 60))]
                model = model.set_params(scoring="r2", cv=cv)
            found += model.fit(X, y, **fit).found_
    assert found <= 4


def test_weights_that_are_no_counts_have_no_scale(chooser):
    """The decision and the average do not change when they are multiplied."""
    X, y = chooser.data()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    one, other = (chooser.make(n_nonzero_coefs=range(4)).fit(X, y, sample_weight=w) for w in (weight, 100 * weight))
    assert one.found_ == other.found_
    assert_allclose(coefficients(other), coefficients(one), rtol=1e-6, atol=1e-9)


def test_repeated_folds_score_each_model_not_their_mean():
    X, y = noise(SparseLinearRegressionCV, 3)
    model = SparseLinearRegressionCV(
        n_nonzero_coefs=[4], alphas=0.0, averaging="none", cv=RepeatedKFold(n_splits=4, n_repeats=5, random_state=0)
    )
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y)
    assert_allclose(model.held_out_scores_["mean_squared_error"], -model.mean_scores_[0], rtol=0.02)


def test_a_clear_gain_needs_no_test(chooser):
    X, y = chooser.data(n=300, noise=0.1 if not chooser.loss.classifies else 0.5)
    model = chooser.make().fit(X, y)
    assert model.found_
    assert np.isnan(model.null_p_value_)


# ranges that are extended


def test_a_signal_of_sixty_columns_extends_the_default_range():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 90))
    y = X[:, :60] @ rng.choice([-1.0, 1.0], 60) + rng.standard_normal(400)
    model = SparseLinearRegressionCV(cv=3, alphas=[0.0, 0.1]).fit(X, y)
    assert model.range_extended_
    assert model.candidates_[-1] == 90
    assert np.all(np.diff(model.candidates_) > 0)
    assert model.grid_scores_.shape == (model.candidates_.size, 2, 3)
    assert set(range(60)) <= set(model.support_.tolist())
    assert model.score(X, y) > 0.97
    explicit = SparseLinearRegressionCV(cv=3, alphas=[0.0, 0.1], n_nonzero_coefs=model.candidates_.tolist()).fit(X, y)
    assert not explicit.range_extended_
    assert_allclose(model.mean_scores_.max(), explicit.mean_scores_.max(), rtol=0.05)


def test_a_range_that_was_given_is_not_extended(chooser):
    X, y = chooser.data()
    model = chooser.make(n_nonzero_coefs=2).fit(X, y)
    assert not model.range_extended_
    assert_array_equal(model.candidates_, [0, 1, 2])


@pytest.mark.slow
def test_a_stored_average_predicts_and_certifies_as_before(chooser, tmp_path):
    X, y = chooser.data(noise=1.0)
    model = chooser.make().fit(X, y)
    model.certificate()
    ht.save(model, tmp_path / "model.json")
    again = ht.load(tmp_path / "model.json")
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate() == model.certificate()
    assert again.certificate(X, y).subject == model.certificate().subject
    assert [part.weight for part in again.models_] == [part.weight for part in model.models_]
    assert_array_equal(again.best_model_.coef, model.best_model_.coef)
    assert_array_equal(again.fit(X, y).coef_, model.coef_)
