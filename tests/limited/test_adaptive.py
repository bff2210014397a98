"""The hybrid without anything to tune: it finds the support, does least squares on it, and never falls over."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from hardthresh.core import InvalidInputError, Status
from hardthresh.limited import AdaptiveHybrid, ArraySource, CostModel, Learner, learn
from levels import at_most, only_at, slow_beyond

D, S, OBSERVED = 60, 4, 10


def table(kind="independent", n=6000, d=D, seed=0):
    """Attributes, targets, and the truth, with S coefficients of +-1 in units of the attributes' deviations."""
    rng = np.random.default_rng((1000, seed))
    X = rng.standard_normal((n, d))
    if kind == "ar":
        for j in range(1, d):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    if kind == "equicorrelated":
        X = np.sqrt(0.7) * X + np.sqrt(0.3) * rng.standard_normal((n, 1))
    truth = np.zeros(d)
    truth[rng.choice(d, S, replace=False)] = rng.choice([-1.0, 1.0], S)
    y = X @ truth + {"noisy": 2.0}.get(kind, 0.5) * rng.standard_normal(n)
    if kind == "rescaled":
        scale = np.exp(rng.uniform(np.log(0.3), np.log(3), d))
        X, truth = X * scale, truth / scale
    if kind == "shifted":
        X = X + 1e4
    return X, y, truth


def in_order(X, y, n_observed=OBSERVED, **settings):
    return ArraySource(X, y, n_observed, shuffle=False, **settings)


def run(X, y, n_observed=OBSERVED, n_nonzero_coefs=S, **settings):
    return learn(AdaptiveHybrid(n_nonzero_coefs), in_order(X, y, n_observed, **settings))


def least_squares(X, y):
    """Coefficients and intercept by numpy, on centred data."""
    centre = X.mean(axis=0)
    coef = np.linalg.lstsq(X - centre, y - y.mean(), rcond=None)[0]
    return coef, y.mean() - centre @ coef


class Diary(ArraySource):
    """Remembers what was observed of which row: in the order given, in which rows are handed out."""

    def observations(self, algorithm):
        """Run an algorithm, and return its result and the indices that it asked for of each example."""
        learner = Learner.of(algorithm, self.cost_model, length=self.remaining)
        observed = []
        X, y = np.asarray(self._X), self._y
        while len(observed) < len(y):
            id_, indices = learner.ask()
            assert id_ == len(observed)
            observed.append(set(indices.tolist()))
            learner.tell(id_, X[id_, indices], y[id_])
        return learner.final_state(), observed, learner


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("kind", ["independent", "ar", "equicorrelated", "rescaled", "shifted", "noisy"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_finds_the_support(kind, seed):
    X, y, truth = table(kind, seed=seed)
    found = run(X, y)
    np.testing.assert_array_equal(found.support, np.flatnonzero(truth))
    assert found.status is Status.SOURCE_EMPTY
    assert found.meter.max_per_example <= OBSERVED
    assert found.meter.examples == 6000
    exact, _ = least_squares(X[:, found.support], y)
    deviations = X[:, found.support].std(axis=0)
    noise = 2.0 if kind == "noisy" else 0.5
    distance = np.linalg.norm((found.w[found.support] - exact) * deviations)
    assert distance < 4 * noise * np.sqrt(S / 6000)  # as good as if everything had been observed


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("kind", ["independent", "ar", "shifted"])
def test_coefficients_are_least_squares_on_what_was_observed(kind):
    """Over all examples on which the support was observed, exploration and exploitation alike."""
    X, y, _ = table(kind)
    state, observed, learner = Diary(X, y, OBSERVED, shuffle=False).observations(AdaptiveHybrid(S))
    rows = [i for i, indices in enumerate(observed) if indices >= set(state.support.tolist())]
    assert len(rows) == state.own.count > 5000
    coef, intercept = least_squares(X[np.ix_(rows, state.support)], y[rows])
    np.testing.assert_allclose(state.w[state.support], coef, rtol=1e-8)
    scale = np.abs(coef) @ np.abs(X[:, state.support].mean(axis=0)) + np.abs(y).mean()
    np.testing.assert_allclose(state.intercept, intercept, rtol=0, atol=1e-8 * scale)
    assert learner.meter.examples == len(y)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("kind", ["independent", "ar", "rescaled"])
def test_units_do_not_matter(kind):
    X, y, _ = table(kind)
    rng = np.random.default_rng(5)
    plain = run(X, y)
    scale, shift = np.exp(rng.uniform(-5, 5, D)) * rng.choice([-1, 1], D), 100 * rng.standard_normal(D)
    other = run(X * scale + shift * np.abs(scale), -3.7 * y + 20)
    np.testing.assert_array_equal(other.support, plain.support)
    np.testing.assert_allclose(other.w * scale, -3.7 * plain.w, rtol=1e-8)
    assert other.meter.attributes == plain.meter.attributes
    centre = shift * np.abs(scale)
    np.testing.assert_allclose(other.intercept, -3.7 * plain.intercept + 20 - centre @ other.w, atol=1e-7)


@only_at("pairs")
def test_powers_of_two_change_no_bit():
    X, y, _ = table("ar")
    scale = 2.0 ** np.random.default_rng(5).integers(-20, 20, D)
    plain, other = run(X, y), run(X * scale, 0.25 * y)
    np.testing.assert_array_equal(other.w * scale, 0.25 * plain.w)
    assert other.intercept == 0.25 * plain.intercept


@only_at("pairs")
def test_the_order_of_attributes_does_not_matter_to_a_clear_support():
    """Which examples explore which attributes depends on their order, so candidates may differ, and with them the time
    at which a support is found. Once it is found at the same time, the same examples make the coefficients."""
    X, y, _ = table("ar")
    order = np.random.default_rng(5).permutation(D)
    plain, other = run(X, y), run(X[:, order], y)
    np.testing.assert_array_equal(np.sort(order[other.support]), plain.support)
    assert other.learner.state.own.count == plain.learner.state.own.count
    np.testing.assert_allclose(other.w, plain.w[order], rtol=1e-9)


def test_where_everything_is_affordable_it_is_least_squares_with_selection():
    X, y, truth = table(n=500, d=12)
    found = run(X, y, 12)
    np.testing.assert_array_equal(found.support, np.flatnonzero(truth))
    coef, intercept = least_squares(X[:, found.support], y)
    np.testing.assert_allclose(found.w[found.support], coef, rtol=1e-9)
    np.testing.assert_allclose(found.intercept, intercept, atol=1e-9)
    assert found.meter.attributes == 500 * 12
    everything = run(X, y, 12, n_nonzero_coefs=12)
    np.testing.assert_allclose(everything.w, least_squares(X, y)[0], rtol=1e-8)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e5 / 3])
def test_duplicates_and_constants(value):
    X, y, truth = table()
    support = np.flatnonzero(truth)
    spare = np.setdiff1d(np.arange(D), support)
    X[:, spare[:30:2]] = value
    X[:, spare[1]], X[:, spare[3]] = X[:, support[0]], 1e3 * X[:, support[1]] + 7
    found = run(X, y)
    assert not np.isin(found.support, spare[:30:2]).any()
    assert found.support.size == S
    assert np.mean((X @ found.w + found.intercept - y) ** 2) < 1.02 * 0.25
    many = run(X, y, 20, n_nonzero_coefs=10)
    assert np.all(np.isfinite(many.w))
    assert np.abs(many.w * X.std(axis=0)).max() < 2  # the two of a pair are never played off against each other
    assert not np.isin(many.support, spare[:30:2]).any()


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 7])
@pytest.mark.parametrize("n_observed", [OBSERVED, D])
def test_a_constant_target_is_its_own_prediction(value, n_observed):
    X, _, _ = table(n=2000)
    found = run(X, np.full(2000, value), n_observed)
    assert not found.support.size
    np.testing.assert_allclose(found.intercept, value, rtol=1e-14)


def test_attributes_that_never_change_predict_nothing():
    X, y, _ = table(n=2000)
    found = run(0 * X + 0.1, y)
    assert not found.support.size
    np.testing.assert_allclose(found.intercept, y.mean(), rtol=1e-9, atol=0.05)


@slow_beyond(5)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 12, 13, 14, 16, 20, 30, 50])
@pytest.mark.parametrize("n_observed", [OBSERVED, D])
def test_streams_that_are_much_too_short(n, n_observed):
    """12 examples are the shortest exploration. Coefficients of so few are no good, but they are never absurd."""
    for seed in range(10):
        X, y, _ = table(n=n, seed=seed)
        y = y + 3.0
        found = run(X, y, n_observed)
        assert np.all(np.isfinite(found.w))
        assert np.isfinite(found.intercept)
        assert found.support.size <= S
        assert found.meter.examples == n
        assert np.abs(found.w).sum() < 20
        if n < (8 if n_observed == D else 14):
            assert not found.support.size
            np.testing.assert_allclose(found.intercept, np.mean(y[:12]) if n else 0.0)


@pytest.mark.slow
def test_few_examples_are_hardly_worse_than_predicting_the_mean():
    ours, means = [], []
    for seed in range(40):
        X, y, truth = table(n=25, seed=seed)
        found = run(X, y + 3.0)
        ours.append(np.sum((found.w - truth) ** 2) + (found.intercept - 3) ** 2)
        means.append(np.sum(truth**2) + np.mean(y) ** 2)
    assert np.mean(ours) < 1.25 * np.mean(means)


@only_at("pairs")
def test_more_examples_are_better():
    errors = []
    for n in (300, 1500, 6000):
        distances = []
        for seed in range(3):
            X, y, truth = table("ar", n=n, seed=seed)
            distances.append(np.sum((run(X, y).w - truth) ** 2))
        errors.append(np.mean(distances))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 3 * S * 0.25 / 6000 / 0.75


class TestPrices:
    @staticmethod
    def priced(seed=0):
        """Panels of three attributes at two prices: support within four panels."""
        X, y, truth = table(n=3000, seed=seed)
        panels = np.arange(D) // 3
        costs = {p: 2.0 if p % 2 else 5.0 for p in range(D // 3)}
        return X, y, truth, panels, costs

    @pytest.mark.slow
    @at_most(1)
    @pytest.mark.parametrize("prediction_budget", [None, 12.0, 7.0])
    def test_budgets_are_kept_and_panels_whole(self, prediction_budget):
        X, y, truth, panels, costs = self.priced()
        source = Diary(X, y, costs=costs, panels=panels.tolist(), budget=25.0, shuffle=False)
        algorithm = AdaptiveHybrid(S, prediction_budget)
        state, observed, learner = source.observations(algorithm)
        cost_model = source.cost_model
        for indices in set(map(frozenset, observed)):
            assert cost_model.cost(sorted(indices)) <= 25.0
            assert indices == set(cost_model.whole_panels(sorted(indices)).tolist())
        limit = 20.0 if prediction_budget is None else prediction_budget
        assert 0 < cost_model.cost(state.support) <= limit
        assert learner.meter.attributes == sum(map(len, observed))
        assert learner.meter.money == pytest.approx(sum(cost_model.cost(sorted(indices)) for indices in observed))
        if prediction_budget is None:
            np.testing.assert_array_equal(state.support, np.flatnonzero(truth))
        else:
            assert np.isin(state.support[np.abs(state.w[state.support]) > 0.5], np.flatnonzero(truth)).all()

    @only_at("pairs")
    def test_equal_prices_of_any_size_are_no_prices(self):
        X, y, _ = table()
        priced = learn(
            AdaptiveHybrid(S), ArraySource(X, y, costs=np.full(D, 8.0), budget=8.0 * OBSERVED, shuffle=False)
        )
        np.testing.assert_array_equal(priced.support, run(X, y).support)
        assert priced.meter.money == 8 * priced.meter.attributes
        assert priced.meter.max_per_example <= OBSERVED

    def test_the_dearest_has_to_fit_beside_the_predictor(self):
        X, y, _, panels, costs = self.priced()
        with pytest.raises(InvalidInputError, match="prediction_budget is 21; it must be <= 20"):
            learn(AdaptiveHybrid(S, 21.0), ArraySource(X, y, costs=costs, panels=panels.tolist(), budget=25.0))
        with pytest.raises(InvalidInputError, match="as the cheapest costs 2, it would always be empty"):
            learn(AdaptiveHybrid(S, 1.5), ArraySource(X, y, costs=costs, panels=panels.tolist(), budget=25.0))

    @pytest.mark.slow
    def test_attributes_that_no_prediction_can_afford_are_not_bought(self):
        X, y, _, panels, costs = self.priced()
        source = in_order(X, y, None, costs=costs, panels=panels.tolist(), budget=6.0)
        dear = source.cost_model.price[source.cost_model.panel] > 3.0
        seen = []
        source.draw, draw = lambda count: seen.append(examples := draw(count)) or examples, source.draw
        with pytest.warns(UserWarning, match=f"{np.count_nonzero(dear)} of {X.shape[1]} attributes"):
            learn(AdaptiveHybrid(S), source)
        assert sum(map(len, seen)) == len(y)
        assert not any(np.any(dear[examples.owned]) for examples in seen)

    def test_short_streams(self):
        X, y, _, panels, costs = self.priced()
        for n in (0, 1, 2, 5, 20, 60):
            source = in_order(X[:n], y[:n], None, costs=costs, panels=panels.tolist(), budget=25.0)
            found = learn(AdaptiveHybrid(S), source)
            assert np.all(np.isfinite(found.w))
            assert source.cost_model.cost(found.support) <= 20.0


@pytest.mark.slow
def test_the_length_of_the_stream_need_not_be_known():
    X, y, truth = table("ar")
    source = in_order(X, y)
    found = Learner.of(AdaptiveHybrid(S), source.cost_model).run(source)
    np.testing.assert_array_equal(found.support, np.flatnonzero(truth))
    assert found.meter.examples == 6000


def stored_numbers(thing):
    if isinstance(thing, np.ndarray):
        return thing.size
    if is_dataclass(thing):
        return sum(stored_numbers(getattr(thing, field.name)) for field in fields(thing))
    if isinstance(thing, list | tuple):
        return sum(map(stored_numbers, thing))
    return 1


@only_at("pairs")
def test_memory_does_not_grow_with_the_stream():
    """O(d + s'^2), the learning curve and the answers under way included."""
    sizes = []
    for n in (2000, 20_000):
        X, y, _ = table(n=n)
        source = in_order(X, y)
        learner = Learner.of(AdaptiveHybrid(S), source.cost_model, length=n)
        most = 0
        while learner.step(source):
            most = max(most, stored_numbers(learner.state))
        assert (
            stored_numbers(learner) - stored_numbers(learner.state) < 4 * 256 + 2 * D + 32 * (OBSERVED + 3) + 2 * D + 50
        )
        sizes.append(most)
    assert max(sizes) <= 15 * D + 4 * (OBSERVED + 1) ** 2
    assert sizes[1] <= sizes[0] + 5 * OBSERVED


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AdaptiveHybrid(-1), "n_nonzero_coefs must be >= 0, got -1"),
        (lambda: AdaptiveHybrid(2.0), "got 2.0"),
        (lambda: AdaptiveHybrid(True), "got True"),
        (lambda: AdaptiveHybrid(3, 0), "prediction_budget must be a finite number > 0, got 0"),
        (lambda: AdaptiveHybrid(3, np.nan), "got nan"),
        (
            lambda: AdaptiveHybrid(OBSERVED).start(CostModel.of(D, OBSERVED)),
            "n_nonzero_coefs must be at most 9 for these attributes and this budget, got 10",
        ),
        (lambda: AdaptiveHybrid(S).start(CostModel.of(D, OBSERVED), np.ones(D)), "always starts from the null model"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


class TestSpecification:
    """Checks D15 and D16: one seed of the paper's data at full size; the tables of all seeds are in papers/."""

    @only_at("pairs")
    def test_the_data_of_the_paper(self, generators):
        X, y, train, _, truth = generators.synthetic(0)
        source = ArraySource(X[train], y[train], 50, shuffle=False)
        found = learn(AdaptiveHybrid(25), source)
        assert found.support.tolist() == list(range(25))
        assert np.sum((found.w - truth) ** 2) <= 4.0e-4
        curve = found.learning_curve
        late = curve["examples"] > 17_000
        assert np.average(curve["squared_error"][late], weights=np.diff(curve["examples"], prepend=0)[late]) < 1.1

    @only_at("pairs")
    @pytest.mark.parametrize("kind", ["scales", "ar5", "equi3", "noisy"])
    def test_other_data(self, kind):
        """The generators of the specification at a fifth of the attributes, coefficients and examples."""
        n, d, s = 20_000, 100, 5
        rng = np.random.default_rng(1000)
        X = rng.standard_normal((n, d), dtype=np.float32).astype(float)
        if kind == "ar5":
            for j in range(1, d):
                X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        if kind == "equi3":
            X = np.sqrt(0.7) * X + np.sqrt(0.3) * rng.standard_normal((n, 1))
        truth = np.zeros(d)
        truth[rng.choice(d, s, False)] = rng.choice([-1.0, 1.0], s)
        if kind == "scales":
            scale = np.exp(rng.uniform(np.log(0.3), np.log(3), d))
            X, truth = X * scale, truth / scale
        y = X @ truth + (5.0 if kind == "noisy" else 1.0) * rng.standard_normal(n)
        found = run(X[:18_000], y[:18_000], 10, s)
        np.testing.assert_array_equal(found.support, np.flatnonzero(truth))
        excess = np.mean((X[18_000:] @ (found.w - truth) + found.intercept) ** 2)
        assert excess < (5e-2 if kind == "noisy" else 3e-3)
