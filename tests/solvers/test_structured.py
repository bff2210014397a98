"""Structured sets on correlated data: promises that must not hang on rounding, on storage or on units."""

import numpy as np
import pytest

from hardthresh.certificates import certify
from hardthresh.constraints import DoubleSparsity, GroupSparsity, OverlappingGroupSparsity, Rank, Sparsity
from hardthresh.core import iterate
from hardthresh.objectives import LinearModel, MatrixRegression
from hardthresh.solvers import (
    IHT,
    AcceleratedIHT,
    ConjugateIHT,
    ConstantMomentum,
    ExactMomentum,
    HardThresholdingPursuit,
    NesterovMomentum,
    minimize,
)
from hardthresh.steps import Backtracking
from hardthresh.storage import load, save
from levels import at, at_most


def correlated(seed=0, n=150, d=120, rho=0.9):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    y = X @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) + rng.standard_normal(n)
    return X, y


def structured(name, order):
    """A set of 120 coordinates, whose columns come in another order."""
    labels = np.arange(120) // 6
    place = np.argsort(order)
    return {
        "sparsity": lambda: Sparsity(20),
        "groups": lambda: GroupSparsity(labels[order], 5),
        "double": lambda: DoubleSparsity(labels[order], 12, 3),
        "overlapping": lambda: OverlappingGroupSparsity([place[i : i + 6] for i in range(0, 116, 4)], 6),
    }[name]()


sets = pytest.mark.parametrize("name", ["sparsity", "groups", "double", "overlapping"])


@pytest.mark.slow
@at_most(1)
@sets
@pytest.mark.parametrize("seed", [0, *at("pairs", [1, 2])])
def test_neither_order_nor_scale_changes_the_answer(name, seed):
    X, y = correlated(seed)
    rng = np.random.default_rng(seed)
    solver = HardThresholdingPursuit(exchanges=10)
    same = np.arange(120)
    first = minimize(LinearModel(X, y), structured(name, same), solver)
    columns, rows = rng.permutation(120), rng.permutation(150)
    moved = minimize(LinearModel(X[:, columns], y), structured(name, columns), solver)
    mixed = minimize(LinearModel(X[rows], 3.0 * y[rows]), structured(name, same), solver)
    np.testing.assert_array_equal(np.flatnonzero(moved.w), np.flatnonzero(first.w[columns]))
    np.testing.assert_array_equal(np.flatnonzero(mixed.w), np.flatnonzero(first.w))
    np.testing.assert_allclose(mixed.w, 3.0 * first.w, rtol=1e-6, atol=1e-9)


@sets
@pytest.mark.parametrize("scale", [1e-12, 1e10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "solver",
    [None, AcceleratedIHT(), ConjugateIHT(), HardThresholdingPursuit()],
    ids=["default", "accelerated", "conjugate", "pursuit"],
)
def test_the_units_of_the_columns_are_no_reason_to_stop(name, scale, dtype, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 120))
    y = X[:, 12] - 2.0 * X[:, 20]
    f = LinearModel((scale * X).astype(dtype), y.astype(dtype))
    constraint = structured(name, np.arange(120)).relax(0.3)
    with np.errstate(over="ignore"):
        run = minimize(f, constraint, solver)
    assert {12, 20} <= set(np.flatnonzero(run.w))
    assert run.value < 1e-6 * run.history["value"][0]


def test_a_run_on_overlapping_groups_goes_on_from_where_greed_would_not_have_led():
    groups = [[0, 1], [2, 3], [1, 2]]
    f, constraint = LinearModel(np.eye(4), np.array([1.0, 9.0, 9.0, 1.0])), OverlappingGroupSparsity(groups, 2)
    run = minimize(f, constraint, HardThresholdingPursuit(exchanges=10))
    np.testing.assert_allclose(run.w, [1.0, 9.0, 9.0, 1.0])
    assert constraint.project(run.w).point[3] == 0.0 or constraint.project(run.w).point[0] == 0.0
    again = minimize(f, constraint, HardThresholdingPursuit(exchanges=10), state=run.state)
    np.testing.assert_array_equal(again.w, run.w)
    assert certify(run).is_stationary()


@pytest.mark.parametrize("momentum", [ConstantMomentum(0.5), ExactMomentum(), NesterovMomentum()], ids=repr)
@pytest.mark.parametrize("at", [3, 10, 25, 40])
def test_a_run_from_a_file_is_the_run_bit_for_bit(tmp_path, momentum, at):
    X, y = correlated()
    f, solver = LinearModel(X, y), AcceleratedIHT(momentum=momentum)
    run = minimize(f, Sparsity(20), solver, max_iter=at, tol=0.0)
    save(run, tmp_path / "run.json")
    states = iterate(f, Sparsity(20), solver, state=load(tmp_path / "run.json").state)
    live = iterate(f, Sparsity(20), solver, state=run.state)
    for _ in range(30):
        one, other = next(states), next(live)
        np.testing.assert_array_equal(one.w, other.w)
        assert one.momentum == other.momentum


def test_momentum_beyond_the_range_of_f_is_discarded():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 20))
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    with np.errstate(over="ignore", invalid="ignore"):
        run = minimize(LinearModel(X, y, loss="poisson"), Sparsity(3), AcceleratedIHT(momentum=ConstantMomentum(1e3)))
    assert run.converged
    assert (np.diff(run.history["value"]) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 5, 10])
def test_pursuit_ends_where_a_whole_refit_gains_less_than_its_tolerance(seed):
    """Weights over 24 decades: each refit still lowers f, by about 1e-13 of its value at zero."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((5, 3, 5)), rng.standard_normal(5)
    f = MatrixRegression(A, y, sample_weight=10.0 ** rng.uniform(-12, 12, 5))
    result = minimize(f, Rank(1), HardThresholdingPursuit(), max_iter=50)
    assert result.converged
    assert result.value <= 1e-8 * f.value(f.zeros())


@pytest.mark.parametrize(("seed", "first", "reached"), [(13, None, 0.3065), (3, 100.0, 0.372)])
def test_backtracking_goes_on_where_the_model_of_an_approximate_projection_rises(seed, first, reached):
    """The greedy projection on overlapping groups may lead above f(w), and that of a shorter step below."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 12)) @ (np.eye(12) + 0.9 * rng.standard_normal((12, 12)))
    y = (rng.standard_normal(20) > 0).astype(float)
    groups = [tuple(int(j) for j in rng.choice(12, 4, replace=False)) for _ in range(6)]
    groups += [(j, (j + 1) % 12) for j in range(12)]
    f = LinearModel(X, y, loss="logistic", l2=0.01)
    result = minimize(f, OverlappingGroupSparsity(groups, 2), IHT(step=Backtracking(first=first)), max_iter=500)
    assert result.value <= reached


def test_backtracking_shrinks_steps_whose_model_overflows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    f = LinearModel(X, X[:, 0])
    result = minimize(f, Sparsity(1), IHT(step=Backtracking(first=1e160, shrink=1e-4)))
    assert result.value < 1e-6
