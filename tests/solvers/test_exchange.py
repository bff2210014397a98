"""Exchanges ranked by the quadratic model, against least squares by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from boxes import least_squares
from hardthresh.certificates import swap_certificate
from hardthresh.constraints import Sparsity
from hardthresh.designs import Serial, from_arrays
from hardthresh.objectives import LinearModel, blocked_model
from hardthresh.solvers.exchange import Exchange, rank_exchanges, try_exchanges

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


@pytest.mark.parametrize("added", [[5], [5, 9, 20]])
def test_exchanges_of_a_table_in_blocks_take_one_reading(added):
    """Check 3 of scale.md: with the curvature that a certificate asks for next a reading, not one for each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 40))
    y = (X[:, 0] - X[:, 1] + X[:, 30] + rng.logistic(size=2000) > 0).astype(float)
    objective = blocked_model(Serial(from_arrays(X, y, rows=512)), "logistic", intercept=False)
    constraint, w = Sparsity(2), np.zeros(40)
    w[:2] = [0.5, -0.5]
    at = objective.evaluate(w)
    exchanges = [Exchange(1, j, 0.0) for j in added]
    before = objective.readings
    support, settings = constraint.project(w).support, {"cg_iterations": 0, "rounds": 3, "besides": [30]}
    tried = [*try_exchanges(objective, constraint, at, support, exchanges, **settings)]
    assert len(tried) == len(added)
    away = np.zeros(40)
    away[[0, 1, 30]] = [0.5, -0.5, 1.0]
    objective.curvature_along(at, away)
    assert objective.readings == before + 1


def test_the_exchanges_of_a_certificate_bring_the_column_that_it_asks_about_next():
    """Check 3 of scale.md: `certify_point` needs the curvature towards the column of the largest gradient."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 40))
    X[:, 30] = X[:, 0] + 0.3 * X[:, 30]
    y = (2.0 * X[:, 0] - X[:, 1] + X[:, 5] + rng.logistic(size=2000) > 0).astype(float)
    objective = blocked_model(Serial(from_arrays(X, y, rows=512)), "logistic", intercept=False)
    w = np.zeros(40)
    w[:2] = [0.1, -1.0]  # too little of the first column, which the last one resembles
    at = objective.evaluate(w)
    assert np.argmax(np.abs(at.gradient[2:])) == 28
    assert swap_certificate(objective, Sparsity(2), at, tries=1).added == 5
    before = objective.readings
    objective.columns(np.array([0, 1, 5, 30]))
    assert objective.readings == before
