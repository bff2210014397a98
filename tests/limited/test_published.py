"""Algorithms 1-3 of limited attribute observation: against slow twins, and where they must stop."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardthresh.core import CapabilityError, InvalidInputError, Status
from hardthresh.limited import ArraySource, CostModel, Exploitation, Exploration, Hybrid, Learner, learn
from hardthresh.limited.algorithms.schedules import Geometric, scheduled
from levels import only_at


def table(n, d=11, noise=0.1, seed=0):
    """Examples of a model with three coefficients; the attributes are neither centred nor of one scale."""
    rng = np.random.default_rng((seed, n, d))
    X = 0.3 + rng.standard_normal((n, d)) * rng.uniform(0.7, 1.2, d)
    return X, X[:, [1, 4, 8]] @ [1.0, -0.8, 0.6] + noise * rng.standard_normal(n)


def in_order(X, y, n_observed=6, **settings):
    return ArraySource(X, y, n_observed, shuffle=False, **settings)


class SlowTwin:
    """The paper's boxes, one example and one attribute at a time; all that is observed goes through `see`."""

    def __init__(self, X, y):
        self.X, self.y = X, y
        self.position = 0
        self.observed = []  # for each example used, the set of its attributes

    @property
    def left(self):
        return len(self.y) - self.position

    def sample(self, count):
        rows = list(range(self.position, self.position + count))
        self.position += count
        self.observed += [set() for _ in rows]
        return rows

    def see(self, row, j):
        self.observed[row].add(j)
        return self.X[row, j]

    def derivative(self, theta, row):
        """l'_y(a) = 2 (a - y) at a = theta_S^T x_S."""
        a = sum(theta[j] * self.see(row, j) for j in range(len(theta)) if theta[j] != 0)
        return 2 * (a - self.y[row])

    def exploration(self, theta, step, n_observed, s, batch, updates):
        d = len(theta)
        width = n_observed - s
        theta = keep_largest(theta, s)
        parts = ceil(d / width)
        for t in range(1, updates + 1):
            B = batch(t)
            rows = self.sample(parts * B)
            g = [0.0] * d
            for i in range(parts):
                for j in range(width * i, min(width * (i + 1), d)):
                    for b in range(B):
                        row = rows[i * B + b]
                        g[j] += self.derivative(theta, row) * self.see(row, j) / B
            theta = keep_largest([theta[j] - step * g[j] for j in range(d)], s)
        return theta

    def exploitation(self, theta, step, batch, updates):
        support = [j for j in range(len(theta)) if theta[j] != 0]
        for t in range(1, updates + 1):
            B = batch(t)
            rows = self.sample(B)
            g = {j: sum(self.derivative(theta, row) * self.see(row, j) for row in rows) / B for j in support}
            theta = [theta[j] - step * g.get(j, 0.0) for j in range(len(theta))]
        return theta


def keep_largest(z, s):
    order = sorted(range(len(z)), key=lambda j: (-abs(z[j]), j))
    return [z[j] if j in order[:s] else 0.0 for j in range(len(z))]


def assert_same_purchases(meter, twin):
    assert meter.examples == twin.position
    assert meter.attributes == sum(len(attributes) for attributes in twin.observed)
    assert meter.max_per_example == max(len(attributes) for attributes in twin.observed)


@pytest.mark.parametrize("batches", [7, 40, Geometric(3, 1.5)], ids=["small", "in pieces", "growing"])
@pytest.mark.parametrize(("n_observed", "s"), [(6, 3), (5, 3), (11, 2), (4, 3)])
@pytest.mark.parametrize("start", [None, "dense"])
def test_exploration_is_algorithm_1(batches, n_observed, s, start):
    X, y = table(1800)
    w0 = None if start is None else np.linspace(-0.2, 0.3, 11)
    algorithm = Exploration(0.1, batches, s, max_updates=4)
    source = in_order(X, y, n_observed)
    run = learn(algorithm, source, w0)
    twin = SlowTwin(X, y)
    source = in_order(X, y, n_observed)
    for t, state in enumerate(Learner.for_source(algorithm, source, w0).iterate(source)):
        expected = SlowTwin(X, y).exploration(
            [0.0] * 11 if w0 is None else w0, 0.1, n_observed, s, lambda t: scheduled(batches, t, ""), t
        )
        np.testing.assert_allclose(state.w, expected, rtol=1e-12, atol=0)
        assert state.updates == t
    twin.exploration([0.0] * 11 if w0 is None else w0, 0.1, n_observed, s, lambda t: scheduled(batches, t, ""), 4)
    assert run.learner.state.updates == 4
    assert run.status is Status.ENOUGH
    assert_same_purchases(run.meter, twin)


@pytest.mark.parametrize("batches", [7, 40, Geometric(3, 1.5)], ids=["small", "in pieces", "growing"])
def test_exploitation_is_algorithm_2(batches):
    X, y = table(400)
    w0 = np.zeros(11)
    w0[[1, 4, 7]] = [0.5, 0.1, -0.2]
    run = learn(Exploitation(0.1, batches, max_updates=6), in_order(X, y), w0)
    twin = SlowTwin(X, y)
    expected = twin.exploitation(list(w0), 0.1, lambda t: scheduled(batches, t, ""), 6)
    np.testing.assert_allclose(run.w, expected, rtol=1e-12, atol=0)
    assert run.support.tolist() == [1, 4, 7]
    assert_same_purchases(run.meter, twin)


@pytest.mark.parametrize(
    "settings",
    [
        {"explore_batches": 8, "exploit_batches": 20},
        {"explore_batches": Geometric(5, 1.5), "exploit_batches": Geometric(50, 1.3), "explore_steps": 2},
        {"explore_batches": 6, "exploit_batches": 12, "explore_steps": lambda k: k, "exploit_steps": lambda k: 4 - k},
    ],
    ids=["constant", "growing", "any"],
)
def test_hybrid_is_algorithm_3(settings):
    X, y = table(3000)
    run = learn(Hybrid(0.1, n_nonzero_coefs=3, max_rounds=3, **settings), in_order(X, y))
    twin = SlowTwin(X, y)
    theta = [0.0] * 11
    values = {"explore_steps": 3, "exploit_steps": 5} | settings
    for k in (1, 2, 3):
        now = {name: scheduled(value, k, name) for name, value in values.items()}
        theta = twin.exploration(theta, 0.1, 6, 3, lambda t, now=now: now["explore_batches"], now["explore_steps"])
        theta = twin.exploitation(theta, 0.1, lambda t, now=now: now["exploit_batches"], now["exploit_steps"])
    np.testing.assert_allclose(run.w, theta, rtol=1e-12, atol=0)
    assert run.status is Status.ENOUGH
    assert_same_purchases(run.meter, twin)


def test_a_hybrid_exploits_all_that_is_too_little_to_explore():
    """The last round: no exploration of 3 * 4 * 10 examples fits into the 115 that are left, 11 batches of 10 do."""
    X, y = table(120 + 50 + 115)
    run = learn(Hybrid(0.1, 10, 10, n_nonzero_coefs=3), in_order(X, y))
    twin = SlowTwin(X, y)
    theta = twin.exploration([0.0] * 11, 0.1, 6, 3, lambda t: 10, 3)
    theta = twin.exploitation(theta, 0.1, lambda t: 10, 5 + 11)
    np.testing.assert_allclose(run.w, theta, rtol=1e-12, atol=0)
    assert run.status is Status.SOURCE_EMPTY
    assert "the last 5 are too few" in run.message
    assert_same_purchases(run.meter, twin)


def test_a_first_round_that_is_too_short_explores_as_long_as_it_can():
    X, y = table(95)
    run = learn(Hybrid(0.1, 10, 10, n_nonzero_coefs=3, max_rounds=1), in_order(X, y))
    twin = SlowTwin(X, y)
    theta = twin.exploitation(twin.exploration([0.0] * 11, 0.1, 6, 3, lambda t: 10, 2), 0.1, lambda t: 10, 1)
    np.testing.assert_allclose(run.w, theta, rtol=1e-12, atol=0)
    assert run.status is Status.SOURCE_EMPTY


@pytest.mark.parametrize("n", [0, 39, 121, 125])
def test_a_round_that_was_cut_short_is_not_all_that_was_asked_for(n):
    """One round takes 120 + 50 examples."""
    X, y = table(n)
    run = learn(Hybrid(0.1, 10, 10, n_nonzero_coefs=3, max_rounds=1), in_order(X, y))
    assert run.status is Status.SOURCE_EMPTY
    assert run.meter.examples == {0: 0, 39: 0, 121: 120, 125: 120}[n]


def test_a_round_that_was_not_cut_short_is():
    X, y = table(170)
    run = learn(Hybrid(0.1, 10, 10, n_nonzero_coefs=3, max_rounds=1), in_order(X, y))
    assert run.status is Status.ENOUGH
    assert run.meter.examples == 170


@only_at("pairs")
@given(d=st.integers(2, 25), n_observed=st.integers(2, 25), s=st.integers(1, 24), B=st.integers(1, 70))
def test_an_update_costs_what_the_paper_says(d, n_observed, s, B):
    """ceil(d/(s' - s)) B examples, |supp(theta) and J_i together| <= s' attributes of each of the i-th B."""
    n_observed = min(n_observed, d)
    s = min(s, n_observed - 1)
    parts = ceil(d / (n_observed - s))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * parts * B + 1, d))
    source = ArraySource(X, rng.standard_normal(len(X)), n_observed, shuffle=False)
    spent = [(0, 0)]
    supports = []
    for state in Learner.for_source(Exploration(0.1, B, s, max_updates=2), source).iterate(source):
        spent.append((source.meter.examples, source.meter.attributes))
        supports.append(set(state.support))
    for update, support in enumerate(supports[:2]):
        blocks = [set(range(i * (n_observed - s), min(d, (i + 1) * (n_observed - s)))) for i in range(parts)]
        assert spent[update + 2][0] - spent[update + 1][0] == parts * B
        assert spent[update + 2][1] - spent[update + 1][1] == B * sum(len(support | block) for block in blocks)
    assert source.meter.max_per_example <= n_observed


@pytest.mark.slow
def test_the_gradient_is_unbiased():
    """2000 gradients at one sparse theta: the mean is within 5 standard errors of 2 Sigma (theta - theta*)."""
    d, s, n_observed, B, repeats = 40, 4, 12, 2, 2000
    rng = np.random.default_rng(3)
    mixing = np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)
    sigma = mixing @ mixing.T
    truth, theta = np.zeros(d), np.zeros(d)
    truth[[0, 9, 21, 33]] = [1.0, -1.0, 0.5, 2.0]
    theta[[0, 9, 20, 39]] = [0.7, 0.4, -0.6, 0.2]
    parts = ceil(d / (n_observed - s))
    X = rng.standard_normal((repeats * parts * B, d)) @ mixing.T
    y = X @ truth + rng.standard_normal(len(X))
    algorithm, cost_model = Exploration(1.0, B, s), CostModel.of(d, n_observed)
    start = algorithm.start(cost_model, theta)
    gradients = []
    rows = iter(range(len(X)))
    for _ in range(repeats):
        state = start
        while state.updates == 0:
            request = algorithm.query(cost_model, state)
            chosen = [next(rows) for _ in range(request.count)]
            before, state = (
                state,
                algorithm.absorb(cost_model, state, request.indices, X[np.ix_(chosen, request.indices)], y[chosen]),
            )
        last = np.arange((parts - 1) * (n_observed - s), d)
        g = before.gradient.copy()
        support = np.flatnonzero(theta)
        g[last] = 2 * np.mean(
            (X[chosen][:, support] @ theta[support] - y[chosen])[:, None] * X[chosen][:, last], axis=0
        )
        np.testing.assert_allclose(state.w[state.support], (theta - g)[state.support], rtol=1e-12)
        gradients.append(g)
    error = np.std(gradients, axis=0) / np.sqrt(repeats)
    z = (np.mean(gradients, axis=0) - 2 * sigma @ (theta - truth)) / error
    assert np.abs(z).max() < 5
    assert np.abs((np.mean(gradients, axis=0) - sigma @ (theta - truth)) / error).max() > 5  # without the 2 it is seen


@pytest.mark.parametrize("n", [0, 1, 39, 40, 79, 80])
def test_examples_that_do_not_fill_an_update_are_not_bought(n):
    """An update takes 4 blocks of 10 examples."""
    X, y = table(n)
    run = learn(Exploration(0.1, 10, 3), in_order(X, y))
    assert run.learner.state.updates == n // 40
    assert run.meter.examples == n // 40 * 40
    assert run.status is Status.SOURCE_EMPTY
    assert (f"the last {n % 40} are too few for another update" in run.message) == (n % 40 > 0)
    w0 = np.eye(11)[1]
    exploited = learn(Exploitation(0.1, 40), in_order(X, y), w0)
    assert exploited.meter.examples == n // 40 * 40
    assert np.array_equal(exploited.w, w0) == (n < 40)


@pytest.mark.parametrize(
    "algorithm", [Exploration(0.1, 10, 3), Hybrid(0.1, 10, 20, n_nonzero_coefs=3)], ids=["exploration", "hybrid"]
)
def test_without_a_known_length_the_last_update_is_begun_and_left(algorithm):
    X, y = table(330)
    source = in_order(X, y)
    run = Learner.of(algorithm, source.cost_model).run(source)
    known = learn(algorithm, in_order(X, y))
    assert run.meter.examples == 330
    assert run.status is Status.SOURCE_EMPTY
    if isinstance(algorithm, Exploration):
        np.testing.assert_array_equal(run.w, known.w)


@pytest.mark.parametrize("step", [3.0, 1e4, 1e160, 1e300])
@pytest.mark.parametrize("kind", ["exploration", "exploitation", "hybrid"])
def test_a_step_that_is_too_long_is_said_to_be(kind, step):
    X, y = table(3000)
    algorithm, w0 = {
        "exploration": (Exploration(step, 10, 3), None),
        "exploitation": (Exploitation(step, 10), np.eye(11)[1]),
        "hybrid": (Hybrid(step, 10, 10, n_nonzero_coefs=3), None),
    }[kind]
    run = learn(algorithm, in_order(X, y), w0)
    assert run.status is Status.DIVERGED
    assert np.all(np.isfinite(run.w))
    assert np.mean((X @ run.w - y) ** 2) <= 1.1 * np.mean((y - (0 if w0 is None else X @ w0)) ** 2)  # the best iterate
    assert run.learner.done
    assert run.meter.examples < 3000
    assert "smaller step" in run.message


def test_a_zero_target_gives_an_empty_support():
    X, _ = table(1000)
    for algorithm in (Exploration(0.1, 10, 3), Hybrid(0.1, 10, 20, n_nonzero_coefs=3)):
        run = learn(algorithm, in_order(X, np.zeros(1000)))
        assert not run.support.size
        assert run.status is Status.SOURCE_EMPTY


@only_at("pairs")
def test_it_learns():
    X, y = table(20_000)
    for algorithm in (
        Exploration(0.2, Geometric(40, 1.2), 3),
        Hybrid(0.2, Geometric(40, 2), Geometric(200, 2), 3, 4, n_nonzero_coefs=3),
    ):
        run = learn(algorithm, in_order(X, y))
        assert run.support.tolist() == [1, 4, 8]
        np.testing.assert_allclose(run.w[run.support], [1.0, -0.8, 0.6], atol=0.05)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Exploration(0.0, 10, 3), "step must be a finite number > 0, got 0.0"),
        (lambda: Exploration(np.inf, 10, 3), "got inf"),
        (lambda: Exploration(np.nan, 10, 3), "got nan"),
        (lambda: Exploration("0.1", 10, 3), "got '0.1'"),
        (lambda: Exploitation(-1.0, 10), "got -1.0"),
        (lambda: Hybrid(True, 10, 10, n_nonzero_coefs=3), "got True"),
        (lambda: Hybrid(0.1, 10, 10, n_nonzero_coefs=-1), "n_nonzero_coefs must be >= 0, got -1"),
        (lambda: Exploration(0.1, 10, -1), "n_nonzero_coefs must be >= 0, got -1"),
        (lambda: Exploration(0.1, 10, 2.0), "got 2.0"),
        (lambda: Exploration(0.1, 10, 3, max_updates=0), "got 0"),
        (lambda: Hybrid(0.1, 10, 10, n_nonzero_coefs=3, max_rounds=1.5), "got 1.5"),
        (lambda: Geometric(0.5, 2), "a batch must have >= 1 example"),
        (lambda: Geometric(3, 0), "grow by a ratio > 0"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (Exploration(0.1, 0, 3), "batches must be an integer >= 1 for each t, got 0 for t = 1"),
        (Exploration(0.1, 2.5, 3), "got 2.5"),
        (Exploration(0.1, lambda t: 30 - 20 * t, 3), "got -10 for t = 2"),
        (Exploration(0.1, 10, 6), "n_nonzero_coefs must be at most 5 for these attributes and this budget, got 6"),
        (Hybrid(0.1, 10, 10, n_nonzero_coefs=7), "at most 5 for these attributes and this budget"),
        (Hybrid(0.1, 0, 10, n_nonzero_coefs=3), "explore_batches must be"),
        (Hybrid(0.1, 10, 0, n_nonzero_coefs=3), "exploit_batches must be"),
        (Hybrid(0.1, 10, 10, explore_steps=0, n_nonzero_coefs=3), "explore_steps must be"),
        (
            Hybrid(0.1, 10, 10, exploit_steps=lambda k: None, n_nonzero_coefs=3),
            "exploit_steps must be .* got None for t = 1",
        ),
        (Exploitation(0.1, 10), "the support of w0, which is empty"),
    ],
)
def test_settings_that_do_not_fit_the_source_are_named(algorithm, words):
    X, y = table(400)
    with pytest.raises(InvalidInputError, match=words):
        learn(algorithm, in_order(X, y))


@pytest.mark.parametrize(
    "algorithm", [Exploration(0.1, 10, 3), Exploitation(0.1, 10), Hybrid(0.1, 10, 10, n_nonzero_coefs=3)]
)
@pytest.mark.parametrize("w0", [np.ones(10), np.ones((11, 1)), np.full(11, np.nan), [np.inf] * 11], ids=lambda w: "")
def test_a_starting_point_that_is_none_is_refused(algorithm, w0):
    X, y = table(400)
    source = in_order(X, y)
    with pytest.raises(InvalidInputError, match="w0 must be 11 finite numbers"):
        learn(algorithm, source, w0)
    assert source.meter.examples == 0


def test_a_support_to_exploit_has_to_be_affordable():
    X, y = table(400)
    with pytest.raises(InvalidInputError, match="the support of w0 costs 11 per example; the budget is 6"):
        learn(Exploitation(0.1, 10), in_order(X, y), np.ones(11))


def test_prices_and_panels_are_for_another_solver():
    X, y = table(400)
    priced = {"costs": np.arange(1.0, 12.0), "budget": 20.0}
    for algorithm in (Exploration(0.1, 10, 3), Hybrid(0.1, 10, 10, n_nonzero_coefs=3)):
        for cost_model in (priced, {"n_observed": 6, "panels": [j // 2 for j in range(11)]}):
            with pytest.raises(CapabilityError, match="one price, each bought alone; use AdaptiveHybrid"):
                learn(algorithm, ArraySource(X, y, **cost_model))


def test_a_given_support_can_be_exploited_at_any_prices():
    """Nothing has to be shared out between blocks, so the prices make no difference to the iterates."""
    X, y = table(400)
    w0 = np.zeros(11)
    w0[[1, 4]] = 0.5
    algorithm = Exploitation(0.1, 20)
    priced = learn(algorithm, in_order(X, y, None, costs=np.arange(1.0, 12.0), budget=11.0), w0)
    np.testing.assert_array_equal(priced.w, learn(algorithm, in_order(X, y), w0).w)
    assert priced.meter.money == 400 * (2.0 + 5.0)


def test_a_schedule_is_a_number_or_a_function():
    assert [Geometric(100, 1.2)(t) for t in (1, 2, 3)] == [100, 120, 144]
    assert [scheduled(lambda t: t**2, t, "batches") for t in (1, 2, 3)] == [1, 4, 9]
    assert scheduled(np.int64(5), 7, "batches") == 5


def test_a_forgotten_sparsity_is_no_sparsity_of_one():
    with pytest.raises(TypeError, match="n_nonzero_coefs"):
        Hybrid(0.1, 10, 10)
