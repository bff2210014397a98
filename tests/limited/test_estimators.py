"""Estimators that buy what they see: from tables, sources and answers, within budgets, stored at any stage."""

import pickle
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardthresh as ht
from hardthresh import LimitedAttributeLogisticRegression, LimitedAttributeRegression
from hardthresh.core import CapabilityError, HardThreshError, InvalidInputError
from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    CallbackSource,
    DantzigSelector,
    Exploitation,
    Exploration,
    Geometric,
    Hybrid,
    LogisticHybrid,
    learn,
)
from levels import at_most, only_at, reaches

D, TRUTH = 24, [3, 10, 17]
NAMES = [f"lab {j}" for j in range(D)]


@cache
def table(n=2400, noise=0.3, seed=0):
    """Attributes of unequal scales, of which three matter."""
    rng = np.random.default_rng((seed, n))
    X = rng.standard_normal((n, D)) * np.linspace(0.5, 3.0, D) + np.linspace(-1.0, 2.0, D)
    y = X[:, TRUTH] @ [1.0, -0.8, 0.6] + 2.0 + noise * rng.standard_normal(n)
    X.flags.writeable = y.flags.writeable = False
    return X, y


def labels(y):
    return np.where(y > np.median(y), "ill", "well")


MODELS = {
    "regression": (LimitedAttributeRegression, lambda y: y),
    "classification": (LimitedAttributeLogisticRegression, labels),
}


@pytest.fixture(params=MODELS)
def kind(request):
    """The estimator, and what it makes of targets."""
    return MODELS[request.param]


def regression(**settings):
    return LimitedAttributeRegression(**{"n_nonzero_coefs": 3, "n_observed": 8} | settings)


def linear(model, X):
    """The linear predictor."""
    return model.predict(X) if isinstance(model, LimitedAttributeRegression) else model.decision_function(X)


def assert_same_model(a, b):
    """Everything that was learned is the same, bit for bit."""
    assert_array_equal(a.coef_, b.coef_)
    assert_array_equal(a.intercept_, b.intercept_)
    assert_array_equal(a.required_features_, b.required_features_)
    assert vars(a.budget_) == vars(b.budget_)
    assert a.converged_ == b.converged_
    assert a.learning_curve_.keys() == b.learning_curve_.keys()
    for name, values in a.learning_curve_.items():
        assert_array_equal(values, b.learning_curve_[name])


# learning


def test_it_finds_the_attributes_and_says_what_it_cost():
    X, y = table()
    model = regression().fit(X, y)
    assert model.support_.tolist() == TRUTH
    assert_allclose(model.coef_[TRUTH], [1.0, -0.8, 0.6], atol=0.05)
    assert model.intercept_ == pytest.approx(2.0, abs=0.1)
    assert model.score(X, y) > 0.95
    assert model.converged_
    assert "the source is used up" in model.stop_reason_
    budget = model.budget_
    assert (budget.examples, budget.dropped, budget.unused, budget.max_per_example) == (2400, 0, 0, 8)
    assert budget.attributes == budget.money <= 8 * 2400
    assert (budget.per_example, budget.per_prediction) == (8.0, 3.0)
    curve = model.learning_curve_
    assert 2368 < curve["examples"][-1] <= 2400  # whole requests
    assert curve["attributes"][-1] <= budget.attributes
    assert np.all(np.diff(curve["examples"]) > 0)
    assert curve["squared_error"][-5:].mean() == pytest.approx(0.09, rel=0.4)  # the variance of the noise


@only_at("pairs")
def test_the_lines_of_the_issue():
    """As they stand there, but for the size of the table of the solvers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12000, 500))
    X.flags.writeable = False
    truth = rng.choice(500, 25, replace=False)
    y = X[:, truth].sum(axis=1) + rng.standard_normal(12000)
    src = ArraySource(X, y, n_observed=50, seed=0)
    m = ht.LimitedAttributeRegression(n_nonzero_coefs=25, n_observed=50).fit_source(src)
    assert set(m.support_) == set(truth)
    assert np.sum((m.coef_ - np.isin(np.arange(500), truth)) ** 2) < 0.1
    assert m.budget_.max_per_example <= 50
    assert_array_equal(m.required_features_, m.support_)
    assert m.learning_curve_["squared_error"][-1] < 3 < m.learning_curve_["squared_error"][0]

    src = ArraySource(X, y, n_observed=50, shuffle=False)
    r = learn(
        Hybrid(
            step=0.3,
            explore_batches=lambda k: 200 * 2 ** (k - 1),
            exploit_batches=lambda k: 2000 * 2 ** (k - 1),
            explore_steps=3,
            exploit_steps=5,
            n_nonzero_coefs=25,
        ),
        src,
    )
    assert r.w.shape == (500,)
    assert r.support.size == 25
    assert r.meter.max_per_example == 50
    assert r.meter.examples <= 12000
    assert r.meter.attributes <= 50 * r.meter.examples

    small = X[:, :60]
    y = small[:, 7] - small[:, 30] + small[:, 31] + small[:, 59]
    src = ArraySource(small, y, n_observed=10, shuffle=False)
    r = learn(Exploration(step=0.25, batches=20, n_nonzero_coefs=4, max_updates=12), src, w0=None)
    assert r.meter.examples == 12 * 10 * 20
    assert r.support.tolist() == [7, 30, 31, 59]
    w0 = r.w
    again = learn(Exploitation(step=0.1, batches=50, max_updates=20), src, w0=w0)
    truth = np.isin(np.arange(60), [7, 31, 59]) * 1.0 - (np.arange(60) == 30)
    assert np.sum((again.w - truth) ** 2) < 0.1 * np.sum((w0 - truth) ** 2)


@pytest.mark.slow
@at_most(1)
def test_fit_is_fit_source_of_the_shuffled_table(kind):
    estimator, target = kind
    X, y = table()
    model = estimator(3, 8, random_state=5).fit(X, target(y))
    seed = int(np.random.RandomState(5).randint(2**31 - 1))
    codes = y if estimator is LimitedAttributeRegression else (labels(y) == "well").astype(float)
    other = estimator(3, 8).fit_source(ArraySource(X, codes, n_observed=8, seed=seed))
    assert_same_model(model, other)
    assert not np.array_equal(model.coef_, estimator(3, 8, random_state=6).fit(X, target(y)).coef_)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("pieces", [[2400], [1, 2399], [700, 3, 1, 896, 800], [240] * 10])
def test_in_pieces_it_learns_the_same(kind, pieces):
    estimator, target = kind
    X, y = table()
    t = target(y)
    whole = estimator(3, 8).partial_fit(X, t)
    model, begin = estimator(3, 8), 0
    for size in pieces:
        piece = slice(begin, begin + size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            settings = {} if estimator is LimitedAttributeRegression else {"classes": ["ill", "well"]}
            model.partial_fit(X[piece], t[piece], **settings)
        begin += size
    assert_same_model(model, whole)
    assert model.support_.tolist() == TRUTH


@pytest.mark.slow
def test_in_pieces_it_buys_as_if_from_an_endless_stream(kind):
    """It does not know how many examples there are; the rows come in their order."""
    estimator, target = kind
    X, y = table()

    def unknown_length():
        codes = y if estimator is LimitedAttributeRegression else (labels(y) == "well").astype(float)
        return CallbackSource(
            lambda i, indices: X[i, indices], D, 8, target=codes.__getitem__, examples=iter(range(2400))
        )

    model = estimator(3, 8).partial_fit(X, target(y))
    other = estimator(3, 8).fit_source(unknown_length())
    assert unknown_length().remaining is None
    assert_array_equal(model.coef_, other.coef_)
    assert_array_equal(model.learning_curve_["squared_error"], other.learning_curve_["squared_error"])


@pytest.mark.slow
def test_fit_forgets_what_was_before(kind):
    estimator, target = kind
    X, y = table()
    fresh = estimator(3, 8).fit(X, target(y))
    used = estimator(3, 8).fit(X[:, ::-1][:1500], target(y)[:1500])
    assert_same_model(used.fit(X, target(y)), fresh)


def test_partial_fit_goes_on_after_fit():
    X, y = table()
    model = regression().fit(X[:1200], y[:1200]).partial_fit(X[1200:], y[1200:])
    assert model.budget_.examples == 2400
    assert model.support_.tolist() == TRUTH


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_kinds_of_numbers(kind, dtype):
    estimator, target = kind
    X, y = table()
    X = np.round(10 * X).astype(dtype)
    model = estimator(3, 8).fit(X, target(y))
    assert_same_model(model, estimator(3, 8).fit(X.astype(np.float64), target(y)))
    assert_array_equal(model.predict(X), model.predict(X.astype(np.float64)))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_tables(kind, container):
    estimator, target = kind
    X, y = table()
    X = np.where(X > 0.5, X, 0.0)
    model = estimator(3, 8).fit(container(X), target(y))
    assert_same_model(model, estimator(3, 8).fit(X, target(y)))
    assert_allclose(linear(model, container(X)), linear(model, X), rtol=1e-9, atol=1e-12)


# predicting


@pytest.fixture(scope="module")
def named():
    """A regression on columns with names."""
    X, y = table()
    return regression().fit(pd.DataFrame(X, columns=NAMES), y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_only_the_required_columns_are_needed(named, frame):
    X, _ = table()
    assert named.required_features_.tolist() == ["lab 3", "lab 10", "lab 17"]
    expected = named.predict(pd.DataFrame(X, columns=NAMES))
    few = frame({"lab 17": X[:, 17], "note": ["x"] * len(X), "lab 10": X[:, 10], "lab 3": X[:, 3]})
    assert_array_equal(named.predict(few), expected)
    lone = frame({name: X[:, j] for name, j in zip(["lab 3", "lab 10", "lab 17"], TRUTH, strict=True)})
    assert_array_equal(named.predict(lone), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_missing_column_or_value_is_named(named, frame):
    with pytest.raises(InvalidInputError, match="needs the columns lab 10, lab 17, which X does not have"):
        named.predict(frame({"lab 3": [1.0], "lab 4": [2.0]}))
    with pytest.raises(InvalidInputError, match="row 1 has nan for 'lab 17', which a prediction needs"):
        named.predict(frame({"lab 3": [1.0, 2.0], "lab 10": [1.0, 2.0], "lab 17": [1.0, np.nan]}))


@pytest.mark.slow
def test_a_source_sells_the_required_attributes_and_no_others(kind):
    estimator, target = kind
    X, y = table()
    model = estimator(3, 8).fit(X, target(y))
    source = ArraySource(X[:1500], y[:1500], n_observed=4, shuffle=False)
    assert_allclose(linear(model, source), linear(model, X[:1500]), rtol=1e-9, atol=1e-12)
    meter = source.meter
    assert (meter.examples, meter.attributes, meter.max_per_example) == (1500, 3 * 1500, 3)
    assert source.remaining == 0
    assert model.predict(source).shape == (0,)


def test_a_prediction_that_the_source_cannot_pay_is_refused():
    X, y = table()
    model = regression().fit(X, y)
    with pytest.raises(ValueError, match="the budget is 2"):
        model.predict(ArraySource(X, y, n_observed=2))
    with pytest.raises(InvalidInputError, match="the source has 5 attributes, the model 24"):
        model.predict(ArraySource(X[:, :5], y, n_observed=3))


@pytest.mark.slow
def test_probabilities_are_those_of_the_log_odds():
    X, y = table()
    model = LimitedAttributeLogisticRegression(3, 8).fit(X, labels(y))
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.coef_.shape == (1, D)
    assert model.intercept_.shape == (1,)
    u = model.decision_function(X)
    assert_allclose(u, X @ model.coef_[0] + model.intercept_[0])
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-u)))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), np.where(u > 0, "well", "ill"))
    assert model.score(X, labels(y)) > 0.9


def test_predictions_need_a_fitted_model(kind):
    estimator, _ = kind
    for ask in (lambda m: m.predict(table()[0]), lambda m: m.get_support(), lambda m: m.required_features_):
        with pytest.raises(NotFittedError):
            ask(estimator())


# budgets and prices


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize(
    "settings",
    [
        {"n_observed": 5},
        {"costs": np.linspace(1.0, 4.0, D), "budget": 14.0},
        {"costs": np.linspace(1.0, 4.0, D), "budget": 14.0, "prediction_budget": 6.5},
        {"costs": dict(zip(NAMES, np.linspace(1.0, 4.0, D), strict=True)), "budget": 14.0},
        {"panels": np.arange(D) // 3, "n_observed": 12},
        {"panels": np.arange(D) // 3, "costs": np.linspace(1.0, 4.0, D), "budget": 35.0},
        {"panels": np.arange(D) // 3, "costs": {p: 2.0 + p % 3 for p in range(8)}, "budget": 13.0},
    ],
    ids=["attributes", "prices", "two budgets", "named prices", "panels", "priced panels", "panels at own prices"],
)
def test_no_example_costs_more_than_the_budget(kind, settings):
    estimator, target = kind
    X, y = table()
    model = estimator(3, **settings).fit(pd.DataFrame(X, columns=NAMES), target(y))
    cost_model, budget = model.learner_.cost_model, model.budget_
    assert budget.per_example == cost_model.budget == settings.get("budget", settings.get("n_observed"))
    assert budget.money <= cost_model.budget * 2400 * (1 + 1e-9)
    assert budget.per_prediction == cost_model.cost(model.support_) <= cost_model.prediction_limit
    assert budget.per_prediction <= settings.get("prediction_budget", np.inf)
    assert model.support_.size <= 3
    assert set(model.support_) <= set(TRUTH)
    with pytest.raises(ValueError, match="the budget"):
        ArraySource(X, y, **_terms(settings)).draw(1).observe(np.arange(D))


def _terms(settings):
    terms = {name: value for name, value in settings.items() if name != "prediction_budget"}
    if isinstance(terms.get("costs"), dict) and "panels" not in terms:
        terms["feature_names"] = NAMES
    return terms


class Auditor(ArraySource):
    """Adds up what each example cost, by itself."""

    def __init__(self, X, y, prices, panels, **settings):
        super().__init__(X, y, panels=panels, **settings)
        self.prices, self.panels, self.seen = prices, np.asarray(panels), {}

    def read(self, examples, indices):
        for example in examples:
            self.seen.setdefault(example.id, set()).update(indices.tolist())
        return super().read(examples, indices)

    def spent(self):
        return [sum(self.prices[p] for p in set(self.panels[list(seen)])) for seen in self.seen.values()]


@pytest.mark.slow
def test_an_audit_of_panels(kind):
    estimator, target = kind
    X, y = table()
    panels = [f"panel {j // 3}" for j in range(D)]
    prices = {f"panel {p}": 2.0 + p % 3 for p in range(8)}
    codes = (target(y) == "well").astype(float) if estimator is LimitedAttributeLogisticRegression else y
    source = Auditor(X, codes, prices, panels, costs=prices, budget=13.0)
    model = estimator(3).fit_source(source)
    spent = source.spent()
    assert len(spent) == 2400
    assert max(spent) <= 13.0
    assert sum(spent) == pytest.approx(model.budget_.money)
    assert max(len(seen) for seen in source.seen.values()) == model.budget_.max_per_example
    assert sum(len(seen) for seen in source.seen.values()) == model.budget_.attributes
    assert all(len(seen) % 3 == 0 for seen in source.seen.values())  # whole panels


@pytest.mark.slow
def test_prices_by_name_and_by_position_are_the_same():
    X, y = table()
    X = pd.DataFrame(X, columns=NAMES)
    prices = np.linspace(1.0, 4.0, D)
    by_position = LimitedAttributeRegression(3, costs=prices, budget=14.0).fit(X, y)
    by_name = LimitedAttributeRegression(3, costs=dict(zip(NAMES, prices, strict=True)), budget=14.0).fit(X, y)
    assert_same_model(by_name, by_position)
    every_one = LimitedAttributeRegression(3, costs=[2.0] * D, budget=16.0).fit(X, y)
    assert_array_equal(every_one.support_, TRUTH)
    assert every_one.budget_.money == 2 * every_one.budget_.attributes


@pytest.mark.slow
def test_a_dear_attribute_gives_way_to_its_cheap_double():
    """A good second: worth it if the first is out of what a prediction may cost."""
    X, y = table()
    X = X.copy()
    X[:, 20] = X[:, 17] + 0.3 * np.random.default_rng(0).standard_normal(len(X))
    prices = np.ones(D)
    prices[17] = 4.0
    with pytest.warns(UserWarning, match="1 of .* attributes are in panels for more than 3"):
        model = LimitedAttributeRegression(3, costs=prices, budget=8.0, prediction_budget=3.0).fit(X, y)
    assert model.support_.tolist() == [3, 10, 20]
    assert model.budget_.per_prediction == 3.0
    rich = LimitedAttributeRegression(3, costs=prices, budget=12.0).fit(X, y)
    assert rich.support_.tolist() == TRUTH


@pytest.mark.slow
def test_defaults_are_a_tenth_of_the_attributes_and_twice_that():
    X, y = table()
    model = LimitedAttributeRegression().fit(X, y)
    assert model.support_.size == 2
    assert model.budget_.per_example == 4.0
    one = LimitedAttributeRegression().fit(X[:, 17:18], y)
    assert one.support_.tolist() == [0]


# strategies


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        AdaptiveHybrid(3),
        Exploration(0.02, Geometric(10, 1.2), 3),
        Hybrid(0.02, 8, 60, n_nonzero_coefs=3),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_strategies_are_the_solvers(strategy):
    X, y = table()
    model = LimitedAttributeRegression(n_observed=8, strategy=strategy, random_state=0).fit(X, y)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    run = learn(strategy, ArraySource(X, y, n_observed=8, seed=seed))
    assert_array_equal(model.coef_, run.w)
    assert model.intercept_ == run.intercept
    assert model.budget_.attributes == run.meter.attributes
    assert np.count_nonzero(model.coef_) <= 3
    assert model.score(X, y) > 0.1


def test_a_strategy_that_diverges_says_so():
    X, y = table()
    for strategy in (Exploration(5.0, 10, 3), Hybrid(5.0, 8, 60, n_nonzero_coefs=3)):
        with pytest.warns(ConvergenceWarning, match="LimitedAttributeRegression: the objective grows.*smaller step"):
            model = LimitedAttributeRegression(n_observed=8, strategy=strategy).fit(X, y)
        assert not model.converged_
        assert "smaller step" in model.stop_reason_
        assert np.all(np.isfinite(model.predict(X)))


def test_too_few_examples_are_said_to_be_too_few(kind):
    estimator, target = kind
    X, y = table()
    with pytest.warns(ConvergenceWarning, match=f"{estimator.__name__}: 10 examples are too few") as caught:
        model = estimator(3, 6).fit(X[:10], target(y)[:10])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not model.converged_
    assert "too few" in model.stop_reason_
    assert np.all(np.isfinite(model.coef_))
    assert len(model.predict(X)) == len(X)


# input that makes no sense

BAD_SETTINGS = [
    ({"n_observed": 0}, r"n_observed must be an integer in 1 .. 24"),
    ({"n_observed": 25}, r"n_observed must be an integer in 1 .. 24"),
    ({"n_observed": 8.0}, "n_observed must be an integer .* got 8.0"),
    ({"n_observed": "8"}, "n_observed must be an integer .* got '8'"),
    ({"n_observed": True}, "n_observed must be an integer .* got True"),
    ({"n_observed": 3}, "n_nonzero_coefs must be at most 2 for these attributes and this budget"),
    ({"n_nonzero_coefs": -1}, "n_nonzero_coefs must be >= 0, got -1"),
    ({"n_nonzero_coefs": 25}, "n_nonzero_coefs must be at most 24 for these attributes and this budget, got 25"),
    ({"n_nonzero_coefs": 2.5}, "n_nonzero_coefs must be an integer, got 2.5"),
    ({"n_nonzero_coefs": "3"}, "n_nonzero_coefs must be an integer, got '3'"),
    ({"costs": [1.0] * 24}, "give budget=, what may be spent on one example, instead of n_observed"),
    ({"costs": [1.0] * 24, "n_observed": None}, "budget must be a finite number > 0, got None"),
    ({"costs": [1.0] * 24, "n_observed": None, "budget": -1.0}, "budget must be a finite number > 0, got -1.0"),
    ({"costs": [1.0] * 23 + [-1.0], "n_observed": None, "budget": 8.0}, "that of 'attribute 23' is not"),
    ({"costs": [1.0, np.nan] + [1.0] * 22, "n_observed": None, "budget": 8.0}, "that of 'attribute 1' is not"),
    ({"costs": [1.0, 0.0] + [1.0] * 22, "n_observed": None, "budget": 8.0}, "that of 'attribute 1' is not"),
    ({"costs": [1.0, np.inf] + [1.0] * 22, "n_observed": None, "budget": 8.0}, "that of 'attribute 1' is not"),
    ({"costs": [1.0] * 23, "n_observed": None, "budget": 8.0}, r"costs has shape \(23,\); \(24,\) is needed"),
    ({"costs": {"lab 0": 1.0}, "n_observed": None, "budget": 8.0}, "costs by name need names of the attributes"),
    ({"costs": [9.0] + [1.0] * 23, "n_observed": None, "budget": 8.0}, "costs 9, more than the budget of 8"),
    ({"costs": "cheap", "n_observed": None, "budget": 8.0}, "costs"),
    ({"costs": ["a"] * 24, "n_observed": None, "budget": 8.0}, "costs"),
    ({"budget": 8.0}, "without costs give n_observed"),
    ({"panels": ["a"] * 23}, "panels has 23 labels; one for each of 24 attributes"),
    ({"panels": ["a"] * 24}, "'a' costs 24, more than the budget of 8"),
    ({"panels": 3}, "panels"),
    ({"prediction_budget": 8.0}, "prediction_budget is 8; it must be <= 7"),
    ({"prediction_budget": -1}, "prediction_budget must be a finite number > 0, got -1"),
    ({"prediction_budget": "3"}, "prediction_budget must be a finite number > 0, got '3'"),
    ({"strategy": "hybrid"}, "strategy must be \"auto\" or an algorithm.*got 'hybrid'"),
    ({"strategy": None}, 'strategy must be "auto" or an algorithm'),
    ({"strategy": Hybrid}, 'strategy must be "auto" or an algorithm'),
    ({"strategy": ht.solvers.IHT()}, 'strategy must be "auto" or an algorithm'),
    ({"strategy": Hybrid(0.1, 5, 5, n_nonzero_coefs=3)}, "a strategy has its own n_nonzero_coefs"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS)
def test_settings_that_make_no_sense(kind, settings, message):
    estimator, target = kind
    X, y = table()
    model = estimator(**{"n_nonzero_coefs": 3, "n_observed": 8} | settings)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, target(y))
    with pytest.raises(InvalidInputError, match=message):
        model.start(D)


def test_a_price_that_is_missing_is_named():
    X, y = table()
    X = pd.DataFrame(X, columns=NAMES)
    prices = dict.fromkeys(NAMES[:-1], 1.0)
    with pytest.raises(InvalidInputError, match="costs has no price for 'lab 23'"):
        LimitedAttributeRegression(3, costs=prices, budget=8.0).fit(X, y)
    with pytest.raises(InvalidInputError, match="costs has no price for 'b'"):
        LimitedAttributeRegression(3, costs={"a": 1.0}, panels=["a", "b"] * 12, budget=8.0).fit(X, y)


def test_published_strategies_refuse_prices():
    X, y = table()
    model = LimitedAttributeRegression(
        strategy=Hybrid(0.1, 5, 5, n_nonzero_coefs=3), costs=np.linspace(1, 2, D), budget=12.0
    )
    with pytest.raises(CapabilityError, match="use AdaptiveHybrid"):
        model.fit(X, y)


def test_tables_that_make_no_sense(kind):
    estimator, target = kind
    X, y = table()
    model, t = estimator(3, 8), target(y)
    hole = X.copy()
    hole[5, 2] = np.nan
    for bad, targets, message in [
        (hole, t, "NaN"),
        (np.where(np.isnan(hole), np.inf, hole), t, "infinity"),
        (X[:0], t[:0], "0 sample"),
        (X[:-1], t, "inconsistent"),
        (X[0], t, "2D"),
        (X.astype(complex), t, "[Cc]omplex"),
        (np.full(X.shape, "a"), t, "convert|numeric"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(bad, targets)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad, targets)


def test_targets_that_make_no_sense():
    X, y = table()
    bad = y.copy()
    bad[7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        regression().fit(X, bad)
    with pytest.raises(ValueError, match=r"convert|numeric|dtype"):
        regression().fit(X, labels(y))
    with pytest.raises(ValueError, match="1d array"):
        regression().fit(X, np.column_stack([y, y]))


def test_classes_that_make_no_sense():
    X, y = table()
    model = LimitedAttributeLogisticRegression(3, 8)
    with pytest.raises(
        InvalidInputError, match=r"y has one class only, \['ill'\]; examples of two classes are needed, or in"
    ):
        model.fit(X, ["ill"] * len(X))
    with pytest.raises(InvalidInputError, match="3 classes; fit one class against the rest"):
        model.fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="continuous"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.where(y > 0, np.nan, 1.0))
    with pytest.raises(InvalidInputError, match="label 'dead'; the classes are \\['ill', 'well'\\]"):
        model.partial_fit(X[:500], labels(y)[:500]).partial_fit(X[:2], ["dead", "ill"])


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("pair", [["ill", "well"], [0, 1], [2, 1], [False, True], [-1.0, 1.0]])
def test_labels_of_any_kind(pair):
    X, y = table()
    t = np.array(pair)[(y > np.median(y)).astype(int)]
    model = LimitedAttributeLogisticRegression(3, 8).fit(X, t)
    assert_array_equal(model.classes_, np.unique(pair))
    assert np.mean(model.predict(X) == t) > 0.9
    assert model.predict(X).dtype == np.array(pair).dtype


def test_classes_come_one_after_the_other():
    X, y = table()
    t = labels(y)
    first = np.flatnonzero(t == "well")[:400]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LimitedAttributeLogisticRegression(3, 8).partial_fit(X[first], t[first], classes=["well", "ill"])
    assert model.partial_fit(X, t).classes_.tolist() == ["ill", "well"]


def test_sources_that_do_not_fit():
    X, y = table()
    for what in (X, None, "source", ArraySource):
        with pytest.raises(InvalidInputError, match="a source is needed, such as ArraySource"):
            regression().fit_source(what)
    source = ArraySource(X, y, n_observed=6)
    with pytest.raises(InvalidInputError, match="n_observed is 8, but the source allows 6 for an example"):
        regression().fit_source(source)
    with pytest.raises(InvalidInputError, match="costs, panels and budget belong to the source"):
        LimitedAttributeRegression(3, panels=np.arange(D)).fit_source(source)
    with pytest.raises(InvalidInputError, match=r"n_nonzero_coefs must be at most 2 for these .* got 3"):
        regression(n_observed=2).fit_source(ArraySource(X[:, :2], y, n_observed=2))
    assert source.meter.examples == 0
    with pytest.raises(InvalidInputError, match="targets must be 0 or 1"):
        LimitedAttributeLogisticRegression(3).fit_source(source)
    with pytest.raises(ValueError, match="features"):
        regression().partial_fit(X[:900], y[:900]).partial_fit(X[:, :5], y)


def test_gaps_in_a_source_are_paid_and_dropped():
    X, y = table()
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.01, np.nan, X)
    model = regression().fit_source(ArraySource(holes, y, n_observed=8))
    budget = model.budget_
    assert 0 < budget.dropped < 0.1 * budget.examples
    assert budget.examples == 2400
    assert model.support_.tolist() == TRUTH


# a learner that asks


def answers(row, indices):
    X, y = table()
    return X[row, indices], y[row]


def teach(learner, count):
    for _ in range(count):
        example, indices = learner.ask()
        learner.tell(example, *answers(example, indices))
    return learner


def endless_source(rows):
    X, y = table()
    return CallbackSource(lambda i, indices: X[i, indices], D, 8, target=y.__getitem__, examples=iter(rows))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 40, 700, 1000])
def test_a_learner_makes_the_model_that_a_source_makes(count):
    model = regression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        asked = teach(regression().start(D), count).model()
        model.fit_source(endless_source(range(count)))
    assert_array_equal(asked.coef_, model.coef_)
    assert asked.intercept_ == model.intercept_
    assert asked.converged_ == model.converged_
    assert asked.budget_.examples == count
    assert asked.budget_.attributes == model.budget_.attributes or count % 32  # a source has sold what is under way


def test_the_model_of_a_learner_is_a_snapshot():
    learner = teach(regression().start(D), 600)
    before = learner.model()
    coef = before.coef_.copy()
    teach(learner, 500)
    assert_array_equal(before.coef_, coef)
    assert before.budget_.examples == 600
    after = learner.model()
    assert after.budget_.examples == learner.meter.examples == 1100
    assert "1100 examples were answered" in after.stop_reason_
    X, y = table()
    assert after.score(X, y) > 0.9
    assert_same_model(after, learner.model())


def test_questions_are_answered_in_any_order():
    in_turn = teach(regression().start(D), 900)
    learner = regression().start(D)
    rng = np.random.default_rng(0)
    while learner.meter.examples < 900:
        questions = learner.questions(min(20, 900 - learner.meter.examples))
        for example, indices in [questions[i] for i in rng.permutation(len(questions))]:
            learner.tell(example, *answers(example, indices))
    assert_same_model(learner.model(), in_turn.model())


@pytest.mark.slow
def test_skipped_examples_are_ignored():
    learner, told = regression().start(D), []
    while learner.meter.examples < 900:
        example, indices = learner.ask()
        if example % 7 == 3:
            learner.skip(example)
        else:
            learner.tell(example, *answers(example, indices))
            told.append(example)
    model = learner.model()
    other = regression().fit_source(endless_source(told))
    assert_array_equal(model.coef_, other.coef_)
    assert (model.budget_.examples, model.budget_.dropped) == (900, 0)
    example, indices = learner.ask()
    learner.skip(example, paid=True)
    assert (learner.meter.examples, learner.meter.attributes) == (901, model.budget_.attributes + len(indices))
    assert learner.model().budget_.dropped == 1


def test_a_bad_answer_changes_nothing():
    learner = teach(regression().start(D, NAMES), 50)
    example, indices = learner.ask()
    values, y = answers(example, indices)
    before = pickle.dumps(learner)
    for bad, message in [
        ((example, values[:-1], y), "7 values; 8 are needed, one for each attribute"),
        ((example, [None] * 8, y), "nan"),
        ((example, [*values[:-1], np.nan], y), "measure it again, or skip"),
        ((example, ["high"] * 8, y), "a measurement must be a number"),
        ((example, values, np.inf), "must be a finite number"),
        ((example, values, None), "must be"),
        ((example, values, [y, y]), "must be a finite number"),
        ((example + 500, values, y), "no question about example"),
        ((0, values, y), "no question about example 0|told before"),
        (("a", values, y), "no question about example 'a'"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            learner.tell(*bad)
    assert pickle.dumps(learner) == before
    assert learner.ask()[0] == example


def test_a_learner_knows_names():
    learner = regression().start(D, NAMES)
    _, indices = learner.ask()
    assert learner.names(indices) == NAMES[:8]
    assert regression().start(D).names([3]) == ["attribute 3"]
    model = teach(learner, 900).model()
    assert model.required_features_.tolist() == ["lab 3", "lab 10", "lab 17"]
    X, _ = table()
    assert_array_equal(
        model.predict(pd.DataFrame(X[:, TRUTH], columns=model.required_features_)),
        model.predict(pd.DataFrame(X, columns=NAMES)),
    )
    with pytest.raises(InvalidInputError, match="feature_names has 23 names; 24 are needed"):
        regression().start(D, NAMES[:-1])
    with pytest.raises(InvalidInputError, match="number of attributes must be an integer >= 1, got 0"):
        LimitedAttributeRegression(n_observed=3).start(0)


@pytest.mark.slow
def test_a_learner_with_prices_asks_for_what_it_can_pay():
    prices = dict(zip(NAMES, np.linspace(1.0, 4.0, D), strict=True))
    learner = LimitedAttributeRegression(3, costs=prices, budget=14.0).start(D, NAMES)
    for _ in range(1500):
        example, indices = learner.ask()
        assert sum(prices[name] for name in learner.names(indices)) <= 14.0 + 1e-9
        learner.tell(example, *answers(example, indices))
    assert set(learner.model().support_) <= set(TRUTH)


@pytest.mark.slow
def test_a_learner_of_two_classes():
    learner = LimitedAttributeLogisticRegression(3, 8).start(D)
    X, y = table()
    positive = y > np.median(y)
    for row in range(1200):
        example, indices = learner.ask()
        learner.tell(example, X[row, indices], positive[row])
    model = learner.model()
    assert model.classes_.tolist() == [0, 1]
    assert model.support_.tolist() == TRUTH
    assert np.mean(model.predict(X) == positive) > 0.9


def test_too_few_answers_are_said_to_be_too_few():
    learner = teach(regression().start(D), 5)
    with pytest.warns(ConvergenceWarning, match="5 examples are too few") as caught:
        model = learner.model()
    assert caught[0].filename == __file__
    assert not model.converged_
    with pytest.warns(ConvergenceWarning):
        assert regression().start(D).model().support_.size == 0


def test_a_strategy_with_an_end_has_no_more_questions():
    strategy = Exploration(0.02, 5, 3, max_updates=2)
    learner = LimitedAttributeRegression(n_observed=8, strategy=strategy).start(D)
    count = 0
    while not learner.done:
        teach(learner, 1)
        count += 1
    assert count == 2 * 5 * 5
    assert learner.questions(3) == []
    with pytest.raises(HardThreshError, match="nothing left to ask"):
        learner.ask()
    assert learner.model().support_.size == 3


# storing


@pytest.mark.slow
@at_most(3)
@pytest.mark.parametrize("count", [0, 1, 31, 33, 200, 600, 1000])
def test_a_stored_learner_goes_on_as_if_nothing_had_happened(tmp_path, count):
    learner = teach(regression().start(D, NAMES), count)
    ht.save(learner, tmp_path / "state.json")
    loaded = ht.load(tmp_path / "state.json")
    unpickled = pickle.loads(pickle.dumps(learner))
    assert [list(map(str, q)) for q in loaded.questions(5)] == [list(map(str, q)) for q in learner.questions(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = teach(learner, 300).model()
        assert_same_model(teach(loaded, 300).model(), model)
        assert_same_model(teach(unpickled, 300).model(), model)


def test_a_learner_that_is_stored_again_and_again(tmp_path):
    learner = regression().start(D)
    calm = teach(regression().start(D), 200)
    while learner.meter.examples < 200:
        learner = teach(learner, 1 if reaches("pairs") else 20)
        ht.save(learner, tmp_path / "state.json")
        learner = ht.load(tmp_path / "state.json")
    assert vars(learner.meter).keys() == vars(calm.meter).keys()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert_same_model(learner.model(), calm.model())


@pytest.mark.slow
def test_a_fitted_model_comes_back(kind, tmp_path, named):
    estimator, target = kind
    X, y = table()
    prices = dict(zip(NAMES, np.linspace(1.0, 4.0, D), strict=True))
    frame = pd.DataFrame(X, columns=NAMES)
    model = estimator(3, costs=prices, budget=14.0).fit(frame, target(y))
    ht.save(model, tmp_path / "model.json")
    for again in (ht.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        assert_same_model(again, model)
        assert_array_equal(again.predict(frame), model.predict(frame))
        assert again.get_params() == model.get_params()
        assert_same_model(
            again.partial_fit(frame[:500], target(y)[:500]),
            pickle.loads(pickle.dumps(model)).partial_fit(frame[:500], target(y)[:500]),
        )


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Exploration(0.02, Geometric(10, 1.2), 3), Hybrid(0.02, 8, 60, n_nonzero_coefs=3)])
def test_strategies_are_stored_too(strategy, tmp_path):
    X, y = table()
    model = LimitedAttributeRegression(n_observed=8, strategy=strategy).fit(X, y)
    ht.save(model, tmp_path / "model.json")
    again = ht.load(tmp_path / "model.json")
    assert again.strategy == strategy
    assert_same_model(again.partial_fit(X[:700], y[:700]), model.partial_fit(X[:700], y[:700]))


@only_at("pairs")
def test_a_fresh_process_loads_models_and_learners(tmp_path):
    X, y = table()
    regression().fit(X, y)
    model = regression().fit(X, y)
    learner = teach(regression().start(D), 600)
    ht.save(model, tmp_path / "model.json")
    ht.save(learner, tmp_path / "state.json")
    np.save(tmp_path / "rows.npy", X[:5])
    program = f"""
import hardthresh as ht
learner = ht.load({str(tmp_path / "state.json")!r})
model = ht.load({str(tmp_path / "model.json")!r})
import numpy as np
print(model.predict(np.load({str(tmp_path / "rows.npy")!r})).tolist())
print(learner.model().coef_.tolist())
example, indices = learner.ask()
print(example, indices.tolist())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    predicted, coef, question = run.stdout.splitlines()
    assert predicted == str(model.predict(X[:5]).tolist())
    assert coef == str(learner.model().coef_.tolist())
    example, indices = learner.ask()
    assert question == f"{example} {indices.tolist()}"


# among scikit-learn's tools


def test_clone_has_the_settings_and_nothing_else(named):
    copy = clone(named)
    assert copy.get_params() == named.get_params()
    assert not hasattr(copy, "coef_")
    assert named.set_params(random_state=None) is named
    assert "n_nonzero_coefs=3" in repr(named)


def test_it_is_a_selector(named):
    X, _ = table()
    X = pd.DataFrame(X, columns=NAMES)
    assert_array_equal(np.flatnonzero(named.get_support()), TRUTH)
    assert named.get_feature_names_out().tolist() == ["lab 3", "lab 10", "lab 17"]
    assert_array_equal(named.transform(X), X.to_numpy()[:, TRUTH])
    assert_array_equal(named.inverse_transform(named.transform(X))[:, TRUTH], X.to_numpy()[:, TRUTH])
    plain = regression().fit(*table())
    assert plain.get_feature_names_out().tolist() == ["x3", "x10", "x17"]


@pytest.mark.slow
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_it_gives_the_frames_that_were_asked_for(container):
    X, y = table()
    model = regression().set_output(transform=container).fit(pd.DataFrame(X, columns=NAMES), y)
    out = model.transform(pd.DataFrame(X, columns=NAMES))
    assert isinstance(out, {"pandas": pd.DataFrame, "polars": pl.DataFrame}[container])
    assert list(out.columns) == ["lab 3", "lab 10", "lab 17"]


@pytest.mark.slow
@at_most(1)
def test_pipelines_and_cross_validation(kind):
    estimator, target = kind
    X, y = table()
    t = target(y)
    pipeline = make_pipeline(StandardScaler(), estimator(3, 8)).fit(X, t)
    assert pipeline[-1].support_.tolist() == TRUTH
    assert pipeline.score(X, t) > 0.9
    assert cross_val_score(estimator(3, 8), X, t, cv=3).min() > 0.9
    chosen = make_pipeline(estimator(3, 8), StandardScaler()).fit_transform(X, t)
    assert chosen.shape == (2400, 3)


# strategies, pieces and sources that do not go together


@pytest.mark.parametrize(
    ("estimator", "strategy"),
    [
        (LimitedAttributeLogisticRegression, AdaptiveHybrid(2)),
        (LimitedAttributeLogisticRegression, Exploration(0.1, 10, 2)),
        (LimitedAttributeRegression, LogisticHybrid(2)),
    ],
)
def test_a_strategy_for_other_targets_is_refused(estimator, strategy):
    X, y = table()
    with pytest.raises(InvalidInputError, match="use another strategy"):
        estimator(n_observed=8, strategy=strategy).fit(X, y > 0)


def test_the_classifier_does_not_recommend_the_squared_loss():
    assert "published algorithms" in LimitedAttributeRegression.__doc__
    assert "published algorithms" not in LimitedAttributeLogisticRegression.__doc__


def test_a_learner_that_diverged_makes_no_converged_model():
    learner = LimitedAttributeRegression(strategy=Exploration(2.0, 20, 2), n_observed=8).start(D)
    X, y = table()
    for row in range(len(y)):
        if learner.done:
            break
        example, indices = learner.ask()
        learner.tell(example, X[row, indices], y[row])
    assert learner.done
    with pytest.warns(ConvergenceWarning, match="smaller step"):
        assert not learner.model().converged_


def test_a_model_worse_than_the_mean_has_not_converged():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2400, D))
    y = X[:, 3] + 5
    with pytest.warns(ConvergenceWarning, match="worse than the mean"):
        model = LimitedAttributeRegression(strategy=Exploration(0.05, 20, 2), n_observed=8).fit(X, y)
    assert not model.converged_
    assert LimitedAttributeRegression(strategy=Exploration(0.05, 20, 2), n_observed=8).fit(X, y - 5).converged_


@pytest.mark.slow
def test_partial_fit_keeps_the_market_of_the_source():
    X, y = table()
    costs = np.linspace(1, 2, D)
    model = LimitedAttributeRegression(3).fit_source(ArraySource(X, y, costs=costs, budget=12.0))
    model.partial_fit(X, y)
    assert model.budget_.per_example == 12.0
    assert model.budget_.examples == 2 * len(y)
    assert f"({2 * len(y)} examples, " in model.stop_reason_


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"n_observed": 10}, {"n_nonzero_coefs": 4}, {"strategy": AdaptiveHybrid(2)}])
def test_settings_cannot_change_between_pieces(changed):
    X, y = table()
    model = regression().fit(X, y)
    settings = changed if "strategy" not in changed else changed | {"n_nonzero_coefs": None}
    with pytest.raises(InvalidInputError, match="cannot change between the pieces"):
        model.set_params(**settings).partial_fit(X, y)


@pytest.mark.slow
def test_prices_cannot_change_between_pieces():
    X, y = table()
    model = LimitedAttributeRegression(3, costs=np.linspace(1, 2, D), budget=12.0).partial_fit(X, y)
    model.partial_fit(X, y)
    with pytest.raises(InvalidInputError, match="cannot change between the pieces"):
        model.set_params(costs=np.linspace(1, 3, D)).partial_fit(X, y)


def test_a_source_with_names_in_another_order_is_refused():
    X, y = table()
    model = regression().fit(pd.DataFrame(X, columns=NAMES), y)
    source = ArraySource(X[:, ::-1], y, n_observed=8, feature_names=NAMES[::-1])
    with pytest.raises(InvalidInputError, match="attribute 0 of the source is 'lab 23', and was 'lab 0'"):
        model.predict(source)
    assert source.meter.examples == 0
    same = ArraySource(X, y, n_observed=8, feature_names=NAMES, shuffle=False)
    assert_allclose(model.predict(same), model.predict(pd.DataFrame(X, columns=NAMES)))


@pytest.mark.slow
def test_predictions_of_a_source_with_gaps_keep_their_places(kind):
    estimator, target = kind
    X, y = table()
    model = estimator(3, 8).fit(X, target(y))
    holes = X[:1500].copy()
    holes[[0, 7, 1499], model.support_[0]] = np.nan
    expected = linear(model, X[:1500]).copy()
    expected[[0, 7, 1499]] = np.nan
    bought = lambda: ArraySource(holes, y[:1500], n_observed=8, shuffle=False)  # noqa: E731
    assert_allclose(linear(model, bought()), expected, rtol=1e-9, atol=1e-12)
    if estimator is LimitedAttributeLogisticRegression:
        assert [i for i, label in enumerate(model.predict(bought())) if label is None] == [0, 7, 1499]


def test_predictions_of_a_source_that_ends_while_it_is_read():
    X, y = table()
    model = regression().fit(X, y)

    def ask(i, indices):
        if i == 5:
            raise StopIteration
        return None if i == 2 else X[i, indices]

    predicted = model.predict(CallbackSource(ask, D, 8, target=lambda i: 0.0))
    assert np.flatnonzero(np.isnan(predicted)).tolist() == [2]
    assert predicted.shape == (5,)


@only_at("pairs")
def test_the_end_of_a_linear_program_is_no_trouble():
    X, y = table()
    X = X - X.mean(axis=0)
    model = LimitedAttributeRegression(strategy=DantzigSelector(3), n_observed=8).fit(X / X.std(axis=0), y - y.mean())
    assert "too few examples" not in model.stop_reason_


def test_attributes_of_one_price_go_on_in_their_number():
    X, y = table()
    source = ArraySource(X, y, costs=np.full(D, 2.0), budget=20.0)
    model = LimitedAttributeRegression(3, n_observed=10).fit_source(source)
    before = model.budget_.examples
    assert model.partial_fit(X[:50], y[:50]).budget_.examples == before + 50


@pytest.mark.parametrize("cls", [LimitedAttributeRegression, LimitedAttributeLogisticRegression])
def test_attributes_that_never_vary_predict_nothing(cls):
    """With prices the predictor is chosen among what varies, of which there is nothing here."""
    model = cls(6, costs=[4, 1, 4, 2, 2, 3], budget=10.0).fit(np.zeros((80, 6)), [0, 1] * 40)
    assert model.support_.size == 0
    np.testing.assert_array_equal(np.ravel(model.coef_), np.zeros(6))
