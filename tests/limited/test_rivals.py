"""Dual averaging and the Dantzig selector on bought attributes: unbiased, within budget, equal to slow twins."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from hardthresh import load, save
from hardthresh.core import CapabilityError, HardThreshError, InvalidInputError
from hardthresh.core.randomness import Purpose, generator
from hardthresh.limited import ArraySource, CostModel, DantzigSelector, Learner, RegularizedDualAveraging, learn
from hardthresh.limited.algorithms import dantzig
from hardthresh.limited.algorithms.dantzig import moments, selector
from levels import at_most, only_at

both_gradients = pytest.mark.parametrize("gradient", ["truncated", "dense"])
ALGORITHMS = {
    "truncated": RegularizedDualAveraging(n_nonzero_coefs=2, gamma=8.0),
    "dense": RegularizedDualAveraging(n_nonzero_coefs=2, gamma=20.0, gradient="dense"),
    "dantzig": DantzigSelector(n_nonzero_coefs=2),
}
every = pytest.mark.parametrize("name", ALGORITHMS)


def easy(n=2000, d=10, seed=0):
    rng = np.random.default_rng((seed, n, d))
    X = rng.standard_normal((n, d))
    return X, X[:, 2] - X[:, 5] + 0.1 * rng.standard_normal(n)


def told(algorithm, X, y, n_observed):
    """Return the learner and its source after all rows were learned from."""
    source = ArraySource(X, y, n_observed=n_observed, shuffle=False)
    learner = Learner.of(algorithm, source.cost_model, None, source.remaining)
    while learner.step(source):
        pass
    return learner, source


# --- unbiased --------------------------------------------------------------------------------------------------------


@both_gradients
def test_the_mean_over_all_explored_subsets_is_the_gradient(gradient):
    """Of one example, exactly: each U_t is equally likely."""
    d, s, width = 8, 2, 5
    rng = np.random.default_rng(3)
    x, dense, y = rng.standard_normal(d), rng.standard_normal(d), 0.7
    algorithm, cost_model = RegularizedDualAveraging(s, 1.0, gradient=gradient), CostModel.of(d, width)
    chosen = np.sort(np.argsort(-np.abs(dense))[:s])
    state = replace(algorithm.start(cost_model), dense=dense, chosen=chosen)
    estimates = []
    for explored in combinations(np.setdiff1d(np.arange(d), chosen), width - s):
        indices, estimate = np.sort(np.concatenate([chosen, explored])), np.zeros(d)
        estimate[indices] = algorithm.estimate(cost_model, state, indices, x[indices], y)
        estimates.append(estimate)
    at = dense if gradient == "dense" else np.where(np.isin(np.arange(d), chosen), dense, 0.0)
    np.testing.assert_allclose(np.mean(estimates, axis=0), 2 * (at @ x - y) * x, atol=1e-12)
    assert np.std(estimates, axis=0).max() > 0.1


@pytest.mark.slow
@at_most(1)
@both_gradients
def test_the_mean_over_many_examples_is_the_gradient_of_the_risk(gradient):
    """With the subsets that are really drawn: 2,500 gradients at one point, within five standard errors."""
    d, n = 10, 2500
    X, y = easy(n, d, seed=1)
    dense = np.random.default_rng(4).standard_normal(d)
    algorithm, cost_model = RegularizedDualAveraging(2, 1.0, gradient=gradient, seed=7), CostModel.of(d, 5)
    fresh = replace(algorithm.start(cost_model), dense=dense)
    estimates = np.zeros((n, d))
    for i in range(n):
        state = algorithm._about_to_see(cost_model, replace(fresh, seen=i))
        indices = algorithm.query(cost_model, state).indices
        assert np.all(np.isin(state.support, indices))
        estimates[i, indices] = algorithm.estimate(cost_model, state, indices, X[i, indices], y[i])
    at = dense if gradient == "dense" else state.w
    risk = 2 * at
    risk[[2, 5]] -= [2.0, -2.0]
    z = (estimates.mean(axis=0) - risk) / (estimates.std(axis=0) / np.sqrt(n))
    assert np.abs(z).max() < 5
    assert np.abs(z).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [ALGORITHMS["truncated"], ALGORITHMS["dantzig"]])
def test_explored_attributes_are_drawn_equally_often(algorithm):
    d, width, n = 10, 5, 1500
    cost_model = CostModel.of(d, width)
    counts = np.zeros(d)
    state = algorithm.start(cost_model)
    for _ in range(n):
        indices = algorithm.query(cost_model, state).indices
        assert len(indices) == width
        counts[indices] += 1
        state = algorithm.absorb(cost_model, state, indices, np.zeros((1, width)), np.zeros(1))
    certain = 2 if isinstance(algorithm, RegularizedDualAveraging) else 0  # of zeros the lowest indices are chosen
    assert np.all(counts[:certain] == n)
    p = (width - certain) / (d - certain)
    z = (counts[certain:] - n * p) / np.sqrt(n * p * (1 - p))
    assert np.abs(z).max() < 4.5


def test_the_mean_over_all_subsets_is_the_table_of_moments():
    """Of one example, exactly: each subset of s' attributes is equally likely."""
    d, width, y = 6, 3, 1.5
    x = np.random.default_rng(5).standard_normal(d)
    algorithm, cost_model = DantzigSelector(2), CostModel.of(d, width)
    seconds, firsts = [], []
    for indices in map(np.array, combinations(range(d), width)):
        state = algorithm.absorb(cost_model, algorithm.start(cost_model), indices, x[None, indices], np.array([y]))
        second, first = moments(cost_model, state)
        seconds.append(second)
        firsts.append(first)
    np.testing.assert_allclose(np.mean(seconds, axis=0), np.outer(x, x), atol=1e-12)
    np.testing.assert_allclose(np.mean(firsts, axis=0), y * x, atol=1e-12)


# --- twins -----------------------------------------------------------------------------------------------------------


def naive_dual_average(X, y, s, width, gamma, l1, dense, seed):
    """Dual averaging with loops over coordinates; returns the last w_t."""
    n, d = X.shape
    w, summed = np.zeros(d), np.zeros(d)
    m, rest = width - s, d - s
    for t in range(n):
        chosen = sorted(range(d), key=lambda j: (-abs(w[j]), j))[:s]
        others = [j for j in range(d) if j not in chosen]
        explored = [int(j) for j in generator(seed, t, Purpose.EXPLORED_ATTRIBUTES).choice(others, m, replace=False)]
        seen, x = chosen + explored, X[t]
        chance = {j: 1.0 if j in chosen else m / rest for j in range(d)}
        for j in seen:
            product = 0.0
            for k in seen if dense else chosen:
                if j in explored and k in explored and j != k:
                    likely = m * (m - 1) / (rest * (rest - 1))
                else:
                    likely = chance[j] if j == k else chance[j] * chance[k]
                product += x[j] * x[k] * w[k] / likely
            summed[j] += 2 * (product - y[t] * x[j] / chance[j])
        for j in range(d):
            average = summed[j] / (t + 1)
            pulled = max(abs(average) - l1, 0.0)
            w[j] = -np.sign(average) * pulled * np.sqrt(t + 1) / gamma
    return w


@pytest.mark.slow
@both_gradients
@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_dual_averaging_against_its_twin(gradient, l1):
    X, y = easy(300, 9, seed=2)
    algorithm = RegularizedDualAveraging(3, gamma=30.0, l1=l1, gradient=gradient, seed=11)
    learner, _ = told(algorithm, X, y, 6)
    slow = naive_dual_average(X, y, 3, 6, 30.0, l1, gradient == "dense", 11)
    np.testing.assert_allclose(learner.state.dense, slow, rtol=1e-9, atol=1e-12)
    largest = np.argsort(-np.abs(slow), kind="stable")[:3]
    assert set(learner.state.support) <= set(largest)
    np.testing.assert_allclose(learner.state.w[largest], slow[largest], rtol=1e-9)


def naive_selector(X, y, width, c, seed):
    """The Dantzig selector with loops over pairs, and the textbook linear program."""
    n, d = X.shape
    second, first = np.zeros((d, d)), np.zeros(d)
    for t in range(n):
        seen = generator(seed, t, Purpose.EXPLORED_ATTRIBUTES).choice(d, width, replace=False)
        for j in seen:
            first[j] += X[t, j] * y[t] * d / (width * n)
            for k in seen:
                likely = width / d if j == k else width * (width - 1) / (d * (d - 1))
                second[j, k] += X[t, j] * X[t, k] / (likely * n)
    penalty = c * np.sqrt(d * np.log(d) / (width * n)) * np.sqrt(np.mean(y**2))
    above = np.block([[second, -second], [-second, second]])
    found = linprog(np.ones(2 * d), A_ub=above, b_ub=np.concatenate([first + penalty, penalty - first]))
    return found.x[:d] - found.x[d:]


@only_at("pairs")
def test_the_dantzig_selector_against_its_twin():
    X, y = easy(700, 8, seed=3)
    learner, _ = told(DantzigSelector(8, c=0.7, seed=5), X, y, 8)
    slow = naive_selector(X, y, 8, 0.7, 5)
    np.testing.assert_allclose(learner.final_state().w, slow, atol=1e-8)
    learner, _ = told(DantzigSelector(3, c=0.7, seed=5), X, y, 5)
    slow = naive_selector(X, y, 5, 0.7, 5)
    kept = np.argsort(-np.abs(slow), kind="stable")[:3]
    expected = np.zeros(8)
    expected[kept] = slow[kept]
    np.testing.assert_allclose(learner.final_state().w, expected, atol=1e-8)


def test_the_linear_program_has_the_least_norm_among_its_feasible_points():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((7, 7))
    second, truth = A @ A.T + np.eye(7), np.array([1.0, -2.0, 0.0, 0.0, 0.5, 0.0, 0.0])
    first = second @ truth
    w = selector(second, first, 0.3)
    assert np.abs(first - second @ w).max() <= 0.3 + 1e-9
    assert np.abs(w).sum() < np.abs(truth).sum()
    np.testing.assert_allclose(selector(second, first, 1e-9), truth, atol=1e-6)


# --- the contract ----------------------------------------------------------------------------------------------------


@only_at("pairs")
@every
def test_an_easy_problem_within_the_budget(name):
    X, y = easy()
    source = ArraySource(X, y, n_observed=5)
    result = learn(ALGORITHMS[name], source)
    assert result.support.tolist() == [2, 5]
    np.testing.assert_allclose(result.w[[2, 5]], [1.0, -1.0], atol=0.2)
    assert (result.meter.max_per_example, result.meter.attributes, result.meter.examples) == (5, 10000, 2000)


@pytest.mark.slow
@at_most(2)
@every
def test_with_every_attribute_there_is_nothing_random(name):
    X, y = easy(300)
    results = [learn(replace(ALGORITHMS[name], seed=seed), ArraySource(X, y, n_observed=10)).w for seed in (0, 1)]
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
def test_moments_of_whole_examples_are_those_of_the_table():
    X, y = easy(600)
    learner, source = told(DantzigSelector(2), X, y, 10)
    second, first = moments(source.cost_model, learner.state)
    np.testing.assert_allclose(second, X.T @ X / 600, atol=1e-12)
    np.testing.assert_allclose(first, X.T @ y / 600, atol=1e-12)


@pytest.mark.slow
@at_most(1)
@every
def test_another_seed_sees_other_attributes(name):
    X, y = easy(300)
    states = [told(replace(ALGORITHMS[name], seed=seed), X, y, 5)[0].final_state().w for seed in (0, 0, 1)]
    np.testing.assert_array_equal(states[0], states[1])
    assert np.any(states[0] != states[2])


@pytest.mark.slow
@at_most(1)
@every
def test_a_stored_run_goes_on(name, tmp_path):
    X, y = easy(400)
    straight, _ = told(ALGORITHMS[name], X, y, 5)
    source = ArraySource(X, y, n_observed=5, shuffle=False)
    learner = Learner.of(ALGORITHMS[name], source.cost_model, None, source.remaining)
    for _ in range(150):
        learner.step(source)
    save(learner, tmp_path / "learner.json")
    resumed = load(tmp_path / "learner.json")
    while resumed.step(source):
        pass
    np.testing.assert_array_equal(resumed.final_state().w, straight.final_state().w)
    assert resumed.meter.attributes == straight.meter.attributes == 2000


@pytest.mark.slow
@at_most(2)
@every
def test_states_are_not_changed_by_what_comes_after(name):
    X, y = easy(400)
    source = ArraySource(X, y, n_observed=5, shuffle=False)
    learner = Learner.of(ALGORITHMS[name], source.cost_model)
    for _ in range(300):
        learner.step(source)
    state = learner.state
    before = learner.algorithm.finalize(source.cost_model, state).w.copy()
    while learner.step(source):
        pass
    np.testing.assert_array_equal(learner.algorithm.finalize(source.cost_model, state).w, before)
    assert state.seen == 300


@pytest.mark.slow
def test_the_l1_norm_empties_the_predictor():
    X, y = easy(400)
    assert learn(RegularizedDualAveraging(2, gamma=8.0, l1=1e3), ArraySource(X, y, n_observed=5)).support.size == 0


@every
def test_no_examples_give_zero_coefficients(name):
    X, y = easy(1)
    result = learn(ALGORITHMS[name], ArraySource(X[:0], y[:0], n_observed=5))
    assert not result.w.any()


@every
def test_prices_are_refused(name):
    X, y = easy(50)
    source = ArraySource(X, y, costs=np.arange(1.0, 11.0), budget=20.0)
    with pytest.raises(CapabilityError, match="AdaptiveHybrid"):
        learn(ALGORITHMS[name], source)


@every
def test_starting_points_are_refused(name):
    X, y = easy(50)
    with pytest.raises(InvalidInputError, match="w0"):
        learn(ALGORITHMS[name], ArraySource(X, y, n_observed=5), np.ones(10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RegularizedDualAveraging(-1, 1.0), "n_nonzero_coefs.*got -1"),
        (lambda: RegularizedDualAveraging(2, 0.0), "gamma.*got 0.0"),
        (lambda: RegularizedDualAveraging(2, 1.0, l1=-1.0), "l1.*got -1.0"),
        (lambda: RegularizedDualAveraging(2, 1.0, gradient="sparse"), "'truncated', 'dense'.*'sparse'"),
        (lambda: RegularizedDualAveraging(2, 1.0, seed=-1), "seed.*got -1"),
        (lambda: DantzigSelector(True), "n_nonzero_coefs.*got True"),
        (lambda: DantzigSelector(2, c=np.inf), "c must.*got inf"),
        (lambda: DantzigSelector(2, seed=0.5), "seed.*got 0.5"),
        (
            lambda: RegularizedDualAveraging(5, 1.0).start(CostModel.of(10, 5)),
            "at most 4 for these.*got 5",
        ),
        (
            lambda: RegularizedDualAveraging(4, 1.0, gradient="dense").start(CostModel.of(10, 5)),
            "at least 6, got 5",
        ),
        (
            lambda: DantzigSelector(6).start(CostModel.of(10, 5)),
            "at most 5 for these.*got 6",
        ),
        (lambda: DantzigSelector(1).start(CostModel.of(10, 1)), "at least 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_program_without_a_solution_says_what_to_do():
    with pytest.raises(HardThreshError, match=r"no solution.*raise c"):
        selector(np.zeros((2, 2)), np.ones(2), 0.1)


def test_a_run_is_not_lost_with_its_program(monkeypatch):
    monkeypatch.setattr(dantzig, "linprog", lambda *args, **named: SimpleNamespace(x=None, message="infeasible"))
    X = np.random.default_rng(0).standard_normal((20, 8))
    run = learn(DantzigSelector(2), ArraySource(X, X[:, 0], n_observed=2))
    assert not run.w.any()
    assert run.meter.examples == 20
    assert "no solution: infeasible" in run.learner.finalize()[1]
