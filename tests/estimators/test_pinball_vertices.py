"""The minimum of the pinball loss on few columns, against the linear program, and which minimiser it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from hardthresh import SparseQuantileRegression
from hardthresh.estimators.linear.pinball_vertices import minimise_pinball
from levels import at_most, draws


def pinball(X, y, weights, quantile, w):
    r = y - X @ w
    return weights @ np.maximum(quantile * r, (quantile - 1) * r)


def least_pinball(X, y, weights, quantile, limits):
    """Return the value of the linear program: residuals are differences of two non-negative numbers."""
    n, p = X.shape
    cost = np.concatenate([np.zeros(p), weights * quantile, weights * (1 - quantile)])
    equations = np.hstack([X, np.eye(n), -np.eye(n)])
    bounds = [*limits.T, *([(0, np.inf)] * (2 * n))]
    return linprog(cost, A_eq=equations, b_eq=y, bounds=bounds, method="highs").fun


def drawn(seed, kind):
    """Return numbers, dummies or small counts, with a constant, of which columns may depend on each other."""
    rng = np.random.default_rng((seed, 7))
    n, p = int(rng.integers(8, 50)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p)) if kind == "numbers" else rng.integers(0, 2 + (kind == "counts"), (n, p)) * 1.0
    y = rng.standard_normal(n) if kind == "numbers" else rng.integers(0, 4, n) * 1.0
    return np.column_stack([np.ones(n), X]), y, rng.integers(1, 4, n), float(rng.choice([0.5, 0.25, 0.7])), rng


@draws(120, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["numbers", "dummies", "counts"]), st.booleans())
def test_the_value_is_that_of_the_linear_program_and_rows_may_be_repeated(seed, kind, bounded):
    """From anywhere: the start, the order of the rows, and repetitions in the place of weights decide nothing."""
    X, y, count, quantile, rng = drawn(seed, kind)
    p = X.shape[1]
    origin, weights = np.zeros(p), count / count.sum()
    limits = np.array([[-1.0], [1.0]]) * rng.choice([0.0, 0.3, np.inf] if bounded else [np.inf], (2, p))
    w = minimise_pinball(X, y, weights, quantile, rng.standard_normal(p), origin, limits).point
    assert np.all((limits[0] <= w) & (w <= limits[1]))
    np.testing.assert_allclose(
        pinball(X, y, weights, quantile, w), least_pinball(X, y, weights, quantile, limits), rtol=1e-9, atol=1e-12
    )
    rows = rng.permutation(np.repeat(np.arange(y.size), count))
    equal = np.full(rows.size, 1 / rows.size)
    other = minimise_pinball(X[rows], y[rows], equal, quantile, rng.standard_normal(p), origin, limits)
    np.testing.assert_allclose(other.point, w, rtol=0, atol=1e-9 * max(1.0, np.abs(w).max()))


@pytest.mark.parametrize("origin", [-1.0, 0.3, 5.0])
def test_of_several_minimisers_the_nearest_is_returned(origin):
    """All numbers from 0 to 1 are medians of these."""
    y = np.array([0.0, 0.0, 1.0, 1.0])
    w = minimise_pinball(np.ones((4, 1)), y, np.full(4, 0.25), 0.5, np.array([0.9]), np.array([origin])).point
    np.testing.assert_allclose(w, [np.clip(origin, 0.0, 1.0)], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_minimiser_is_that_of_a_tiny_ridge(seed):
    """Balanced cells of small counts have whole faces of medians: a quadratic program says which point is nearest."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(16), np.tile([0.0, 0.0, 1.0, 1.0], 4), np.repeat([0.0, 1.0], 8)])
    y, weights, alpha = rng.integers(0, 6, 16) * 1.0, np.full(16, 1 / 16), 1e-6
    w = minimise_pinball(X, y, weights, 0.5, np.zeros(3), np.zeros(3)).point
    least = pinball(X, y, weights, 0.5, w)
    for _ in range(
        300
    ):  # no point near it has a lower sum with a ridge so small that it only decides between minimisers
        v = w + 10.0 ** rng.uniform(-6, 0) * rng.standard_normal(3)
        assert pinball(X, y, weights, 0.5, v) + alpha * v @ v >= least + alpha * w @ w - 1e-14


def test_columns_that_depend_on_each_other_share():
    X = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    w = minimise_pinball(X, np.array([2.0, 4.0, 9.0]), np.full(3, 1 / 3), 0.5, np.zeros(2), np.zeros(2)).point
    np.testing.assert_allclose(w[0], w[1], rtol=1e-9)
    np.testing.assert_allclose(pinball(X, np.array([2.0, 4.0, 9.0]), np.full(3, 1 / 3), 0.5, w), 0.5, rtol=1e-12)


@pytest.mark.slow
@at_most(6)
@pytest.mark.parametrize("seed", range(1, 13))
def test_with_room_for_all_features_a_fit_with_bounds_is_the_linear_program(seed):
    """Features that lower the pinball loss, but not the smoothed one of the search, are chosen too."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 10))
    y = X[:, 0] - 0.6 * X[:, 1] + rng.standard_normal(120)
    design, weights = np.column_stack([X, np.ones(120)]), np.full(120, 1 / 120)
    for low, high in ((0.0, np.inf), (-0.3, 0.3)):
        limits = np.vstack([np.append(np.full(10, low), -np.inf), np.append(np.full(10, high), np.inf)])
        least = least_pinball(design, y, weights, 0.5, limits)
        model = SparseQuantileRegression(n_nonzero_coefs=10, bounds=(low, high)).fit(X, y)
        assert model.converged_
        np.testing.assert_allclose(model.objective_, least, rtol=1e-12)
        assert np.all((low <= model.coef_) & (model.coef_ <= high))


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("seed", range(1, 7))
def test_with_room_for_all_features_a_fit_with_a_ridge_and_bounds_is_the_quadratic_program(seed):
    """No value of the dual program is above the least of f: one that is as large as f proves that f is least."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 10))
    y = X[:, 0] - 0.6 * X[:, 1] + rng.standard_normal(120)
    alpha = 0.05
    model = SparseQuantileRegression(n_nonzero_coefs=10, positive=True, alpha=alpha, standardize=False).fit(X, y)

    def dual(slopes):
        pull = np.maximum(X.T @ slopes / 120, 0.0)
        return pull @ pull / (2 * alpha) - slopes @ y / 120, X @ pull / (120 * alpha) - y / 120

    balance = {"type": "eq", "fun": np.sum, "jac": np.ones_like}
    r = y - model.predict(X)
    found = minimize(
        dual, 0.5 * np.sign(r), jac=True, bounds=[(-0.5, 0.5)] * 120, constraints=balance, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert abs(found.x.sum()) < 1e-9
    np.testing.assert_allclose(model.objective_, -found.fun, rtol=1e-7)


def test_a_fit_that_reaches_the_limit_of_steps_says_so(monkeypatch):
    monkeypatch.setattr("hardthresh.estimators.linear.pinball_vertices._PIVOTS", 0)
    monkeypatch.setattr("hardthresh.estimators.linear.pinball_vertices._PIVOTS_PER_COLUMN", 0)
    assert minimise_pinball(np.ones((3, 1)), np.arange(3.0), np.ones(3), 0.5, np.zeros(1), np.zeros(1)) is None
    X = np.random.default_rng(0).standard_normal((30, 4))
    with pytest.warns(ConvergenceWarning, match="from vertex to vertex"):
        SparseQuantileRegression(n_nonzero_coefs=2).fit(X, X[:, 1] + X[:, 2] ** 2)
