"""Runs on tables in blocks begin at the best answers among the columns that a pilot names, and check all others."""

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.designs import Serial, from_arrays, standardize
from hardthresh.designs.dense import DenseDesign
from hardthresh.objectives import LinearModel, blocked_model
from hardthresh.objectives.block_rows import Point
from hardthresh.objectives.guess import Guess
from hardthresh.selection import path
from hardthresh.solvers import IHT, WorkingSet
from hardthresh.solvers.guessed import guessed_path, guessed_state
from levels import at, at_most

N, D, K = 4096, 400, 6


def table(loss, seed, correlation=0.3):
    """Columns that correlate with their neighbours, and targets of six of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    for j in range(1, D):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    u = 0.6 * X[:, rng.choice(D, K, replace=False)] @ rng.choice([-1.0, 1.0], K)
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * u)).astype(float)
    return X, u + rng.standard_normal(N) if loss in ("squared", "huber") else (u > rng.logistic(size=N)).astype(float)


def models(loss, seed):
    """The same model over blocks, without a pilot, and in memory."""
    X, y = table(loss, seed)
    blocked = blocked_model(Serial(from_arrays(X, y, rows=512)), loss)
    columns = standardize(DenseDesign(X), np.full(N, 1.0 / N), scale=True, intercept=True)
    return blocked, LinearModel(columns, y, loss, offset=np.full(N, blocked.units.level))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic", *at("pairs", ["poisson", "huber"])])
def test_a_run_without_a_pilot_makes_its_own(loss):
    """Check 3 of scale.md: three readings are the first one, the pilot's columns, and the answer; 5 to 7 without it."""
    blocked, plain = models(loss, 1)
    found, expected = (minimize(model, Sparsity(K, free=(D,))) for model in (blocked, plain))
    assert blocked.readings == 3
    assert found.support == expected.support
    assert found.converged
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_path_takes_five_readings(loss):
    """Check 3 of scale.md: at most five, here of a path of 0 to 12 columns without a pilot."""
    blocked, plain = models(loss, 2)
    budgets = range(0, 13, 1 if loss == "squared" else 3)
    found, expected = ([*path(model, lambda k: Sparsity(k, free=(D,)), budgets)] for model in (blocked, plain))
    assert blocked.readings <= 5
    assert all(result.converged for result in found)
    for one, other in zip(found, expected, strict=True):
        assert one.value <= other.value * (1 + 1e-9)
        assert len(one.support) == len(other.support)


def test_a_column_that_replaces_a_chosen_one_is_found():
    """The guess names the twin of a column. Beside the twin the column has no high score, but without it, it has."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X[:, 11] = 0.95 * X[:, 10] + np.sqrt(1 - 0.95**2) * X[:, 11]
    y = X[:, 10] - X[:, 200] + rng.standard_normal(N)
    points = tuple(Point(np.flatnonzero(w), np.zeros(np.count_nonzero(w)), w[w != 0], 0.0) for w in guesses())
    members = np.array([3, 4, 11, 150, 200])
    guess = Guess(np.zeros(D), np.ones(D), 0.0, members, points)
    model = blocked_model(Serial(from_arrays(X, y, rows=512)), "squared", guess=guess)
    chosen = Sparsity(2, free=(D,))
    at_twin = minimize(model.columns(np.append(members, D)), Sparsity(2, free=(5,)))
    point = np.zeros(D + 1)
    point[np.append(members, D)] = at_twin.w
    gradient = model.evaluate(point).gradient
    assert {11, 200} <= set(np.flatnonzero(point))
    assert gradient[10] ** 2 < 0.1 * point[11] ** 2  # no high score
    assert [*minimize(model, chosen).support] == [10, 200, D]


def guesses():
    """A null model, and that of the twin."""
    one = np.zeros(D)
    one[[11, 200]] = 1.0, -1.0
    return np.zeros(D), one


def test_others_begin_as_ever():
    """Solvers other than the working set, models in memory, and those that know all products have no such state."""
    blocked, plain = models("squared", 0)
    chosen = Sparsity(2, free=(D,))
    assert guessed_state(blocked, chosen, IHT(), 0) is None
    assert guessed_path(plain, [chosen], WorkingSet(), 0) is None
    X, y = table("squared", 0)
    known = blocked_model(Serial(from_arrays(X, y, rows=512)), products=True)
    assert guessed_state(known, chosen, WorkingSet(), 0) is None
    minimize(known, chosen)
    assert known.readings == 1


def test_a_run_goes_on_from_a_point():
    """The better of two searches, from nothing and from a point that names other columns, which are read."""
    blocked, plain = models("squared", 3)
    chosen = Sparsity(K, free=(D,))
    best = minimize(plain, chosen)
    state = guessed_state(blocked, chosen, WorkingSet(), 0, best.w)
    np.testing.assert_allclose(state.value, best.value, rtol=1e-10)
    assert [*state.support] == [*best.support]
