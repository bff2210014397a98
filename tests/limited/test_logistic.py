"""The logistic twin of the hybrid: its Newton steps go down, and it is about as good as logistic regression."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from hardthresh.limited import ArraySource, CostModel, LogisticHybrid, learn
from hardthresh.limited.algorithms.logistic import LogisticState, _loss, _moved
from levels import at_most, only_at

D, N, SUPPORT = 12, 6000, [1, 4, 7]


def state_of(logit, information):
    empty = LogisticHybrid(n_nonzero_coefs=2).start(CostModel.of(D, 6))
    return replace(empty, logit=np.asarray(logit, dtype=float), information=np.asarray(information, dtype=float))


def table(kind):
    """Attributes, classes, and nothing else but the columns of `SUPPORT` to predict them from."""
    rng = np.random.default_rng(1)
    n = 20000 if kind == "rare" else N
    X = rng.standard_normal((n, D))
    w, intercept = np.array([1.5, -1.0, 0.8]), -8.5 if kind == "rare" else -0.5
    if kind == "skewed":
        X = np.exp(X)
    if kind == "steep":
        X, w = np.exp(X), 3 * w
    if kind == "binary":
        X, w = (X > 0.8).astype(float), 1.5 * w
    return X, (rng.random(n) < expit(X[:, SUPPORT] @ w + intercept)).astype(float)


def by_newton(state, z, y):
    """The minimiser, from many cautious steps in another arithmetic: gradients of the loss by its definition."""
    t = state.logit.copy()
    steepest = np.linalg.norm(state.information, 2) + np.linalg.norm(z, 2) ** 2 / 4
    for _ in range(20000):
        gradient = state.information @ (t - state.logit) + z.T @ (1 / (1 + np.exp(-z @ t)) - y)
        t = t - gradient / steepest
    return t


def test_a_part_of_the_stream_moves_the_coefficients_to_the_minimiser():
    rng = np.random.default_rng(0)
    z = np.column_stack([rng.standard_normal((32, 2)), np.ones(32)])
    y = (rng.random(32) < expit(z @ [1.0, -1.0, 0.5])).astype(float)
    state = state_of([0.5, 0.5, -1.0], np.diag([1.0, 2.0, 3.0]))
    moved = _moved(state, z, y)
    np.testing.assert_allclose(moved.logit, by_newton(state, z, y), atol=1e-5)


def test_the_information_is_that_of_the_point_where_it_arrived():
    rng = np.random.default_rng(0)
    z = np.column_stack([np.exp(rng.standard_normal((32, 2))), np.ones(32)])
    y = (rng.random(32) < 0.4).astype(float)
    state = state_of([2.0, -3.0, 1.0], np.eye(3))
    moved = _moved(state, z, y)
    p = expit(z @ moved.logit)
    np.testing.assert_allclose(moved.information, np.eye(3) + z.T @ np.diag(p * (1 - p)) @ z, rtol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_the_loss_never_rises_and_ends_where_the_slope_is_nothing(seed):
    """Skewed attributes, 32 at a time, a model that is wrong: plain Newton steps overshoot there."""
    rng = np.random.default_rng((7, seed))
    z = np.column_stack([np.exp(1.5 * rng.standard_normal((32, 4))) - 3.0, np.ones(32)])
    y = (rng.random(32) < expit(z @ rng.standard_normal(5))).astype(float)
    state = state_of(3 * rng.standard_normal(5), np.eye(5) * rng.choice([0.1, 1.0, 30.0]))
    moved = _moved(state, z, y)
    assert _loss(state, z, y, moved.logit) <= _loss(state, z, y, state.logit)
    slope = state.information @ (moved.logit - state.logit) + z.T @ (expit(z @ moved.logit) - y)
    assert slope @ np.linalg.solve(moved.information, slope) < 1e-8  # nats, twice what is left to gain


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e9, 1e160, 1e308])
def test_the_model_stays_finite_whatever_comes(size):
    z = np.column_stack([size * np.array([1.0, -1.0, 1.0, 1.0]), size * np.ones(4), size * np.ones(4), np.ones(4)])
    state = state_of(np.ones(4), np.eye(4))
    with np.errstate(over="ignore", invalid="ignore"):
        for y in (np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4)):
            state = _moved(state, z, y)
    assert np.all(np.isfinite(state.logit))
    assert np.all(np.isfinite(state.information))


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("kind", ["normal", "skewed", "steep", "binary"])
def test_nearly_the_log_loss_of_logistic_regression_on_all_examples(kind):
    X, y = table(kind)
    found = learn(LogisticHybrid(n_nonzero_coefs=3), ArraySource(X, y, n_observed=8, shuffle=False))
    assert found.support.tolist() == SUPPORT
    full = LogisticRegression(C=np.inf, tol=1e-8, max_iter=2000).fit(X[:, SUPPORT], y)
    best = log_loss(y, full.predict_proba(X[:, SUPPORT]))
    expected = (len(SUPPORT) + 1) / (2 * found.learner.state.own.count)  # above the best, of as many examples as it had
    assert log_loss(y, expit(X @ found.w + found.intercept)) < best + 4 * expected


@pytest.mark.parametrize("positives", [0, 1, 5])
def test_the_null_model_knows_how_rare_the_positives_are(positives):
    """Their share is (k + 1/2)/(n + 1), so that the log-odds are finite, and not those of one in a hundred."""
    n = 200
    y = (np.arange(n) < positives).astype(float)
    algorithm, cost_model = LogisticHybrid(n_nonzero_coefs=1), CostModel.of(D, 3)
    state = algorithm.start(cost_model)
    for part in np.split(y, 10):
        request = algorithm.query(cost_model, state)
        state = algorithm.absorb(cost_model, state, request.indices, np.zeros((len(part), request.indices.size)), part)
    assert not state.fitted
    assert algorithm.finalize(cost_model, state).intercept == pytest.approx(
        np.log((positives + 0.5) / (n - positives + 0.5))
    )


@only_at("pairs")
def test_rare_positives_are_given_their_rate():
    X, y = table("rare")
    found = learn(LogisticHybrid(n_nonzero_coefs=3), ArraySource(X, y, n_observed=8, shuffle=False))
    rate = expit(X @ found.w + found.intercept).mean()
    assert y.mean() < 0.003
    assert 0.8 * y.mean() < rate < 1.25 * y.mean()


def test_the_state_is_one_of_logistic_regression_from_the_start():
    state = LogisticHybrid(n_nonzero_coefs=2).start(CostModel.of(D, 6))
    assert isinstance(state, LogisticState)
    assert state.logit.shape == (1,)
    assert state.phase == "explore"
