"""Exchanges ranked by the quadratic model, against least squares by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from boxes import least_squares
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers.exchange import rank_exchanges

CHOSEN = [0, 2, 5]


def problem(seed, d=14):
    """A minimiser on three columns, some of them at their bounds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, d)) + 0.7 * rng.standard_normal((50, 1))
    y = X[:, :6] @ [1.0, -1.0, 0.6, -0.6, 0.4, 0.6] + rng.standard_normal(50)
    bounds = np.stack([np.where(np.arange(d) % 3 == 1, 0.0, -0.3), np.where(np.arange(d) % 3, 0.3, np.inf)])
    w = np.zeros(d)
    w[CHOSEN], _ = least_squares(X[:, CHOSEN], y, bounds[:, CHOSEN])
    return X / np.sqrt(50), y / np.sqrt(50), bounds, w


def expected(X, y, bounds, w, removed, added, refitted):
    """The decrease of least squares; the columns between their bounds are refitted before or while one joins."""
    moving = [i for i in CHOSEN if i != removed and bounds[0, i] < w[i] < bounds[1, i]]
    held = [i for i in CHOSEN if i != removed and i not in moving]
    Z, rest = X[:, moving], y - X[:, held] @ w[held]
    rest = rest - Z @ np.linalg.lstsq(Z, rest)[0]
    column = X[:, added] - (Z @ np.linalg.lstsq(Z, X[:, added])[0] if refitted else 0.0)
    step = np.clip(column @ rest / (column @ column), *bounds[:, added])
    before = y - X @ w
    return 0.5 * (before @ before - rest @ rest) + step * (column @ rest) - 0.5 * step**2 * (column @ column)


@pytest.mark.parametrize("removals", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_steps_within_bounds(seed, removals):
    X, y, bounds, w = problem(seed)
    f, constraint = LinearModel(X * np.sqrt(50), y * np.sqrt(50)), Sparsity(3, lower=bounds[0], upper=bounds[1])
    at = f.evaluate(w)
    support = constraint.project(w).support
    assert support.indices.tolist() == CHOSEN
    assert np.isin(w[CHOSEN], bounds[:, CHOSEN]).any()
    ranked = rank_exchanges(f, constraint, at, support, removals=removals, count=100)
    outside = [j for j in range(14) if j not in CHOSEN]
    nothing = np.zeros_like(bounds)
    costs = {i: -expected(X, y, nothing, w, i, outside[0], False) for i in CHOSEN}
    leaving = sorted(CHOSEN, key=costs.get)[:removals]
    values = {(i, j): expected(X, y, bounds, w, i, j, removals == 3) for i in leaving for j in outside}
    assert [(exchange.removed, exchange.added) for exchange in ranked] == sorted(values, key=lambda ij: -values[ij])
    assert_allclose([exchange.decrease for exchange in ranked], sorted(values.values(), reverse=True), atol=1e-10)
