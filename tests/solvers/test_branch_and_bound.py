"""Branch and bound finds the best support and proves it: check 21 of models.md."""

import pickle
import re
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core import CapabilityError, InvalidInputError, MaxIter, Status, minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import BranchAndBound, WorkingSet
from hardthresh.solvers.branch_and_bound.diagonal import moved_shape
from hardthresh.solvers.branch_and_bound.enumeration import near_supports
from hardthresh.solvers.branch_and_bound.quadratic import Quadratic, Reduced
from hardthresh.solvers.branch_and_bound.relaxation import relax
from hardthresh.solvers.branch_and_bound.rows import Rows
from hardthresh.solvers.branch_and_bound.search import Search
from levels import reaches, slow_beyond

N_PROBLEMS = 400 if reaches("all") else 100


def values(f, k, free=()):
    """The least value of f on every support of k columns, with an independent solve for each: the slow twin."""
    at = f.evaluate(np.zeros(f.shape))
    H, b = np.asarray(f.hessian(at)), -np.asarray(at.gradient)
    counted = [j for j in range(b.size) if j not in free]
    found = {}
    for chosen in combinations(counted, min(k, len(counted))):
        S = [*free, *chosen]
        found[chosen] = at.value - 0.5 * b[S] @ np.linalg.pinv(H[np.ix_(S, S)], rcond=1e-12, hermitian=True) @ b[S]
    return found


def of_rows(f, columns):
    """The least value of squared error on some columns, by a QR of the rows: twice the digits of a Gram matrix."""
    X, y = np.asarray(f.design.dense()), np.asarray(f.y)
    basis = np.linalg.qr(X[:, columns])[0]
    left = y - basis @ (basis.T @ y)
    left -= basis @ (basis.T @ left)
    return 0.5 * left @ left / y.size


def problem(seed):
    """A random problem of up to 15 columns, k <= 4, of the kinds that a search may stumble over."""
    rng = np.random.default_rng((21, seed))
    d, n, k = int(rng.integers(2, 16 if seed % 10 == 0 else 12)), int(rng.integers(5, 40)), int(rng.integers(0, 5))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + rng.choice([0.0, 0.8]) * rng.standard_normal((d, d)))
    if seed % 3 == 0 and d > 3:
        X[:, 1], X[:, d - 1] = X[:, 0], -2.0 * X[:, 2]  # copies
    if seed % 5 == 0 and d > 4:
        X[:, 3] = X[:, 0] + X[:, 4]
    if seed % 7 == 0:
        X[:, 1] = 0.0
    y = X @ (rng.standard_normal(d) * (rng.random(d) < 0.4)) + rng.choice([0.0, 0.1, 1.0, 3.0]) * rng.standard_normal(n)
    weights = rng.integers(0, 4, n).astype(float) + (np.arange(n) == 0) if seed % 2 else None
    ridge, free = np.full(d, rng.choice([0.0, 0.0, 1e-3, 0.1])), ()
    if seed % 4 == 1:  # an intercept
        X, y, ridge, free = np.c_[X, np.ones(n)], y + 10.0, np.append(ridge, 0.0), (d,)
    return LinearModel(X, y, sample_weight=weights, l2=ridge), Sparsity(k, free=free)


def hard(n=60, d=30, k=5, rho=0.8, ridge=0.01, seed=0):
    """A problem that takes some hundred nodes."""
    rng = np.random.default_rng((seed, n, d, k))
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    y = X[:, rng.permutation(d)[:k]] @ rng.choice([-1.0, 1.0], k) + 2.0 * rng.standard_normal(n)
    return LinearModel(X, y, l2=ridge), Sparsity(k)


def close(f):
    """How far values of f may be apart for their rounding."""
    return 1e-12 * abs(f.value(np.zeros(f.shape)))


@slow_beyond(30)
@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_check_21_the_answer_is_that_of_trying_every_support(seed, monkeypatch):
    """Also, no node has a bound above the best of its supports."""
    kept = []
    bound = Search._bound

    def watched(self, work, steps):
        bound(self, work, steps)
        kept.extend((self.problem, node) for node in self.frontier if node.number == self.n_nodes)

    monkeypatch.setattr(Search, "_bound", watched)
    f, constraint = problem(seed)
    run = minimize(f, constraint, BranchAndBound())
    every = values(f, constraint.k, constraint.free)
    best = min(every.values())
    assert run.status in (Status.SETTLED, Status.LOWER_BOUND)  # the latter where the target is constant
    assert "proved to 1e-09 relative" in run.message or run.status is Status.LOWER_BOUND
    assert run.value == pytest.approx(best, rel=1e-8, abs=close(f))
    assert (run.history["lower_bound"] <= best + 1e-9 * abs(best) + close(f)).all()
    assert run.state.lower_bound == pytest.approx(best, rel=2e-9, abs=close(f))
    for whole, node in kept:
        chosen = set(whole.columns[node.chosen])
        allowed = chosen | set(whole.columns[node.candidates(whole.size)])
        own = [value for support, value in every.items() if chosen <= set(support) <= allowed]
        assert node.lower <= min(own, default=np.inf) + 1e-9 * abs(best) + close(f)


def enumeration(seed):
    """A random problem, the values of all its supports, and a level among them that rounding does not reach."""
    f, constraint = problem(seed)
    free = constraint.structure(f.shape).free
    size = min(constraint.structure(f.shape).budget, f.shape[0] - len(free))
    every = values(f, size, free)
    ranked = sorted(every.values())
    margin = 1e-7 * abs(ranked[-1]) + close(f)
    gap = next((i for i in range(len(ranked) // 3, len(ranked) - 1) if ranked[i + 1] - ranked[i] > 2 * margin), -1)
    return f, constraint, size, every, ranked[gap] + margin, margin


@pytest.mark.slow
def test_most_enumerations_are_complete():
    """Of 40 of these problems 23 have no dependent columns, and of the others few are as good with one fewer."""
    complete = 0
    for seed in range(40):
        f, constraint, size, every, level, _ = enumeration(seed)
        found = near_supports(f, constraint, size, level, most=len(every))
        complete += found.complete
        assert found.complete or not (seed % 3 and seed % 5 and seed % 7)
    assert complete >= 34


@slow_beyond(30)
@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_all_supports_below_a_value_are_enumerated(seed):
    """Of the same random problems, with copies, combinations and columns of zeros (section 5.5)."""
    f, constraint, size, every, level, margin = enumeration(seed)
    free, ranked = constraint.structure(f.shape).free, sorted(every.values())
    found = near_supports(f, constraint, size, level, most=len(ranked))
    below = {support for support, value in every.items() if value <= level}
    assert set(found.supports) <= below
    fewer = min(values(f, size - 1, free).values()) if size else np.inf
    assert found.complete or fewer <= level  # one column fewer is as good
    if found.complete:
        assert set(found.supports) == below
        for support, value in zip(found.supports, found.values, strict=True):
            assert value == pytest.approx(every[support], rel=1e-7, abs=close(f))
    best = near_supports(f, constraint, size, level, most=3)
    if best.complete:
        own = sorted(every[support] for support in best.supports)
        assert own == pytest.approx(ranked[: len(own)], abs=margin)
        assert len(own) == min(3, len(below))


@pytest.mark.parametrize("share", [0.0, 1e-10, 5e-10, 1e-6])
def test_sets_of_fewer_at_the_level_itself_are_as_good(share):
    """A column and its copy are worth that column, as a set that is not searched."""
    H = np.array([[(-1.0) ** bin(i & j).count("1") for j in range(16)] for i in range(16)])
    X = np.column_stack([H[:, 1:6], H[:, 1]])
    f = LinearModel(X, H[:, 1] + H[:, 9])
    found = near_supports(f, Sparsity(2), 2, 0.5 * (1.0 + share), most=100)
    assert (0, 5) not in found.supports
    assert not found.complete
    found = near_supports(f, Sparsity(2), 2, 0.5 * (1.0 - 1e-6), most=100)
    assert found.complete
    assert found.supports == ()


def test_an_enumeration_with_dependent_columns_is_complete_only_where_fewer_would_not_do():
    """Columns 0, 1 and 3 depend on each other: a set with them is worth what two of them and the others are."""
    rng = np.random.default_rng(31)
    X = rng.standard_normal((40, 7))
    X[:, 3] = X[:, 0] + 2.0 * X[:, 1]
    f = LinearModel(X, X[:, [0, 1, 2, 4]].sum(axis=1) + 0.5 * rng.standard_normal(40))
    every, fewer = values(f, 4), min(values(f, 3).values())
    for level in (0.9 * fewer, 1.1 * fewer):
        below = {support for support, value in every.items() if value <= level}
        found = near_supports(f, Sparsity(4), 4, level, most=50)
        assert found.complete == (level < fewer)
        assert set(found.supports) <= below
        if found.complete:
            assert set(found.supports) == below
            assert below


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", [1e-3, 1e-4, 1e-5, 1e-6])
def test_near_copies_are_told_apart(distance, seed):
    """The signal is in a difference of two columns: a Gram matrix has lost up to twelve of its digits."""
    rng = np.random.default_rng((22, seed))
    X = rng.standard_normal((40, 10))
    X[:, 1::2] = X[:, ::2] + distance * rng.standard_normal((40, 5))
    y = (X[:, 0] - X[:, 1]) / distance + X[:, 4] + 0.5 * rng.standard_normal(40)
    f = LinearModel(X, y)
    run = minimize(f, Sparsity(3), BranchAndBound())
    every = {some: of_rows(f, list(some)) for some in combinations(range(10), 3)}
    best = min(every.values())
    assert every[tuple(run.support)] <= best * (1 + 1e-9)
    assert run.value == pytest.approx(best, rel=1e-7)
    digits = 1e-13 / distance  # of a value of coefficients as large as 1 / distance
    assert (run.history["lower_bound"] <= best * (1 + digits)).all()
    assert best - run.state.lower_bound <= 1e-6 * best
    assert "no support has a value below this one: proved to" in run.message


@pytest.mark.slow
@pytest.mark.parametrize("share", [1e-1, 1e-2, 1e-3, 1e-4])
def test_a_pair_of_near_copies_that_exchanges_do_not_reach_is_not_given_up(share):
    """One of two near copies is most of the target, and their difference most of the rest: a share of it.

    The value of the pair is 1e-3 to 1e-9 of the target, less than what rounding leaves of its closed form.
    """
    for seed in range(25):
        rng = np.random.default_rng((34, seed))
        X, z = rng.standard_normal((30, 6)), rng.standard_normal(30)
        X[:, 3] = X[:, 2] + 10.0 ** rng.uniform(-7.5, -5) * z
        f = LinearModel(X, 2.0 * X[:, 2] + share * (z + 0.3 * rng.standard_normal(30)))
        apart = np.column_stack([X[:, 2], X[:, 3] - X[:, 2]])
        truth = of_rows(LinearModel(apart, f.y), [0, 1])
        run = minimize(f, Sparsity(2), BranchAndBound())
        assert tuple(run.support) == (2, 3)
        assert run.state.lower_bound <= truth * (1 + 1e-4)
        found = near_supports(f, Sparsity(2), 2, 3.0 * truth, most=9)
        assert not found.complete or (2, 3) in found.supports


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [1e-16, 1e-14, 1e-12, 1e-8])
def test_copies_that_a_tiny_ridge_tells_apart_end_too(ridge):
    """Rounding leaves nothing, or less, of the square of a copy, and its ridge is below that."""
    for seed in range(6):
        rng = np.random.default_rng((35, seed))
        X = rng.standard_normal((30, 8))
        X[:, 5], X[:, 6] = X[:, 0], 2.0 * X[:, 1]
        f = LinearModel(X, X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(30), l2=ridge)
        run = minimize(f, Sparsity(4), BranchAndBound())
        assert run.converged
        assert run.value == pytest.approx(min(values(f, 4).values()), rel=1e-7)


@pytest.mark.parametrize("k", [1, 2])
def test_closed_forms_bound_each_support_of_one_column_or_two(k):
    """From below, by no more than rounding where columns are far apart; copies may reach any value."""
    rng = np.random.default_rng(36)
    X = rng.standard_normal((30, 6))
    X[:, 5] = X[:, 4]
    f = LinearModel(X, X[:, 0] + rng.standard_normal(30), l2=1e-15)
    none = np.empty(0, dtype=np.int64)
    whole = Quadratic.of(f, f.evaluate(np.zeros(6)), none, Rows.of(f, none))
    bounds = Reduced.of(whole, none, np.arange(6)).bounds(k)
    for some, value in values(f, k).items():
        bound = bounds[some]
        assert bound <= value
        assert bound == (-np.inf if some == (4, 5) else pytest.approx(value, rel=1e-12))


@pytest.mark.parametrize(("mean", "deviation"), [(1e3, 1.0), (1e6, 1.0), (1.6e9, 1e3)])
def test_a_column_is_not_lost_in_its_mean(mean, deviation):
    """Where the free column of ones leaves 1e-12 of the square of a column; and a free near copy."""
    rng = np.random.default_rng(23)
    noise = rng.standard_normal((200, 6))
    t = mean + deviation * noise[:, 0]
    y = 3.0 * (t - mean) / deviation + noise[:, 3] + 0.1 * rng.standard_normal(200)
    f = LinearModel(np.column_stack([np.ones(200), t, noise[:, 1:]]), y)
    run = minimize(f, Sparsity(1, free=(0,)), BranchAndBound())
    best = of_rows(f, [0, 1])
    assert list(run.support) == [0, 1]
    assert run.value == pytest.approx(best, rel=1e-7)
    assert best * (1 - 1e-6) <= run.state.lower_bound <= best * (1 + 1e-9)
    copy = LinearModel(np.column_stack([noise[:, 0], noise[:, 0] + 1e-6 * noise[:, 1], noise[:, 2:]]), noise[:, 1])
    run = minimize(copy, Sparsity(1, free=(0,)), BranchAndBound())
    assert list(run.support) == [0, 1]
    assert run.state.lower_bound <= 1e-12


def test_rounding_is_that_of_the_answer_not_of_the_null_model():
    """Two differences of 1e-4 carry a signal of 1e8 times the noise: the null model rounds by more than that."""
    rng = np.random.default_rng(27)
    X = rng.standard_normal((50, 8))
    X[:, 1], X[:, 3] = X[:, 0] + 1e-4 * X[:, 1], X[:, 2] - X[:, 4] + 1e-4 * X[:, 3]
    y = 1e8 * (X[:, 0] - X[:, 1]) / 1e-4 + X[:, 6] + 0.1 * rng.standard_normal(50)
    f = LinearModel(X, y)
    run = minimize(f, Sparsity(3), BranchAndBound())
    every = {some: of_rows(f, list(some)) for some in combinations(range(8), 3)}
    assert run.state.lower_bound <= min(every.values())
    assert "no support" not in run.message or every[tuple(run.support)] <= 1.000001 * min(every.values())


def test_what_the_free_columns_make_up_is_left_out():
    """A constant column, a copy and a sum of free columns: up to the rounding of their entries."""
    rng = np.random.default_rng(24)
    X = rng.standard_normal((50, 8))
    X[:, 0], X[:, 2], X[:, 3], X[:, 4] = 1.0, 0.1, X[:, 1] / 3.0, 0.7 * X[:, 1] + 0.3
    f = LinearModel(X, X[:, 5] + rng.standard_normal(50))
    run = minimize(f, Sparsity(2, free=(0, 1)), BranchAndBound())
    assert run.state.problem.columns.tolist() == [5, 6, 7]
    assert "proved to 1e-09 relative" in run.message
    assert run.value == pytest.approx(min(of_rows(f, [0, 1, i, j]) for i, j in combinations((5, 6, 7), 2)))


def test_a_search_without_rows_says_how_far_it_is_proved(monkeypatch):
    """Then near copies cannot be told apart, and the answer is not said to be proved."""
    monkeypatch.setattr("hardthresh.solvers.branch_and_bound.solver.Rows.of", lambda *_: None)
    rng = np.random.default_rng(25)
    X = rng.standard_normal((40, 6))
    X[:, 1] = X[:, 0] + 1e-6 * rng.standard_normal(40)
    y = (X[:, 0] - X[:, 1]) / 1e-6 + 0.5 * rng.standard_normal(40)
    f = LinearModel(X, y)
    run = minimize(f, Sparsity(2), BranchAndBound())
    best = min(of_rows(f, list(some)) for some in combinations(range(6), 2))
    assert run.state.lower_bound <= best
    assert "rounding hides" in run.message
    assert "proved" not in run.message


def test_a_bound_above_the_value_is_withdrawn(monkeypatch):
    monkeypatch.setattr(Search, "lower", property(lambda self: 2.0 * self.upper))
    f, constraint = hard(d=10, k=2)
    run = minimize(f, constraint, BranchAndBound())
    assert run.state.lower_bound == 0.0
    assert "proved" not in run.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_search_with_many_nodes_ends_at_the_minimum(seed):
    f, constraint = hard(n=30, d=16, k=4, rho=0.9, ridge=1e-4, seed=seed)
    run = minimize(f, constraint, BranchAndBound())
    assert run.state.n_nodes > 5
    assert run.value == pytest.approx(min(values(f, 4).values()), rel=1e-9)


@slow_beyond(4)
@pytest.mark.parametrize(
    ("limits", "n"),
    list(product([{"_OWN": 5}, {"_OWN": 5, "_OWN_AT_ROOT": 5}, {"_PAIRED": 0}, {"_STEPS": 0}], [12, 40])),
)
def test_large_problems_are_searched_to_the_same_answer(limits, n, monkeypatch):
    """Where no node has a diagonal of its own, and not all pairs are tried: with other limits on a small problem."""
    for name, value in limits.items():
        monkeypatch.setattr(f"hardthresh.solvers.branch_and_bound.search.{name}", value)
    f, constraint = hard(n=n, d=14, k=4, ridge=0.05)
    run = minimize(f, constraint, BranchAndBound())
    best = min(values(f, 4).values())
    assert run.value == pytest.approx(best, rel=1e-9)
    assert (run.history["lower_bound"] <= best * (1 + 1e-9)).all()


@pytest.mark.slow
def test_a_search_begins_badly_and_ends_well(monkeypatch):
    """Where the first support is a bad one, the rounding of relaxations finds the best."""
    monkeypatch.setattr(WorkingSet, "advance", lambda self, f, c, state: state.ended("badly"))
    monkeypatch.setattr(Search, "improve", lambda self, columns: None)
    f, constraint = hard(d=16, k=4)
    run = minimize(f, constraint, BranchAndBound())
    assert run.value == pytest.approx(min(values(f, 4).values()), rel=1e-9)


# --- the bound -------------------------------------------------------------------------------------------------------


def root(f):
    """The quadratic of a problem, and how much of the diagonal can be subtracted."""
    whole = Quadratic.of(f, f.evaluate(np.zeros(f.shape)), np.empty(0, dtype=np.int64), None)
    reduced = Reduced.of(whole, np.empty(0, dtype=np.int64), np.arange(whole.size))
    return reduced, reduced.curvature(whole.hessian, np.ones(whole.size))


@slow_beyond(5)
@pytest.mark.parametrize("seed", range(10))
def test_any_point_gives_a_lower_bound(seed, monkeypatch):
    """Wherever the relaxation ends: after no step, one, or all."""
    f, _ = hard(n=40, d=10, k=3, seed=seed)
    best = min(values(f, 3).values())
    reduced, mu = root(f)
    D, bounds = np.full(10, mu), []
    for steps in (0, 1, 2, 12):
        monkeypatch.setattr("hardthresh.solvers.branch_and_bound.relaxation._STEPS", steps)
        rng = np.random.default_rng(seed)
        found = relax(reduced, D, 3, np.array([1, 4, 5, 8]), rng.standard_normal(4), best)
        assert found.lower <= best
        bounds.append(found.lower)
    assert bounds[-1] > bounds[0]


def test_the_bound_holds_for_any_slope_that_rounding_may_have_moved():
    """From a slope of zero, where a margin of first order in the rounding is zero too."""
    X, y = 2.0 * np.eye(4)[:, :2], np.array([0.0, 0.0, 1.0, 1.0])
    reduced, none = root(LinearModel(X, y))[0], np.empty(0, dtype=np.int64)
    moved = root(LinearModel(X, np.array([0.01, 0.01, 1.0, 1.0])))[0]
    share = np.abs(moved.slope).max() / reduced.problem.scale
    found = relax(replace(reduced, rounding=float(share)), np.full(2, 0.9), 1, none, np.empty(0), reduced.constant)
    assert reduced.constant - 0.6 * moved.slope[0] ** 2 < found.lower <= reduced.constant - 0.5 * moved.slope[0] ** 2


def test_the_bound_is_the_value_of_the_relaxation():
    """Strong duality: with a constant D the bound meets the minimum over x and z, computed by a general solver."""
    from scipy.optimize import minimize as general

    f, _ = hard(n=40, d=8, k=3, ridge=0.1)
    reduced, D = root(f)[0], np.full(8, 0.05)
    M, c, q = reduced.problem.hessian, reduced.slope, reduced.constant

    def value(point):
        x, z = point[:8], point[8:]
        return q - c @ x + 0.5 * x @ (M - np.diag(D)) @ x + 0.5 * np.sum(D * x * x / np.maximum(z, 1e-12))

    start = np.r_[np.linalg.solve(M, c), np.full(8, 3 / 8)]
    sums = {"type": "ineq", "fun": lambda point: 3.0 - point[8:].sum()}
    bounds = [(None, None)] * 8 + [(1e-9, 1.0)] * 8
    reference = general(value, start, constraints=[sums], bounds=bounds, options={"ftol": 1e-14, "maxiter": 1000})
    best = min(values(f, 3).values())
    found = relax(reduced, D, 3, np.empty(0, dtype=np.int64), np.empty(0), best + 1.0)
    assert found.lower <= reference.fun + 1e-12
    assert found.lower == pytest.approx(reference.fun, abs=0.06 * (best + 1.0 - reference.fun))


def test_a_larger_diagonal_gives_a_better_bound():
    f, _ = hard(n=60, d=10, k=3)
    best, none = min(values(f, 3).values()), np.empty(0, dtype=np.int64)
    reduced, mu = root(f)
    bounds = [relax(reduced, np.full(10, share * mu), 3, none, np.empty(0), best).lower for share in (1e-6, 0.1, 1.0)]
    assert bounds == sorted(bounds)
    unrestricted = reduced.constant - 0.5 * reduced.slope @ np.linalg.solve(reduced.problem.hessian, reduced.slope)
    assert bounds[0] == pytest.approx(unrestricted, rel=1e-3)  # without perspective nothing counts columns


def test_what_is_subtracted_leaves_a_semidefinite_matrix():
    """In the units of any shape, and no more than rounding is left."""
    f, _ = hard(n=60, d=10, k=3)
    reduced, _ = root(f)
    for shape in (np.ones(10), np.linspace(0.1, 3.0, 10)):
        mu = reduced.curvature(reduced.scaled(shape), shape)
        assert 0.0 <= np.linalg.eigvalsh(reduced.problem.hessian - mu * np.diag(shape)).min() < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_the_diagonal_lift_the_bound(seed):
    f, _ = hard(n=60, d=10, k=3, seed=seed)
    best, none = min(values(f, 3).values()), np.empty(0, dtype=np.int64)
    (reduced, _), shape, bounds = root(f), np.ones(10), []
    for _ in range(10):
        matrix = reduced.scaled(shape)
        mu = reduced.curvature(matrix, shape)
        found = relax(reduced, mu * shape, 3, none, np.empty(0), best)
        bounds.append(found.lower)
        shape = moved_shape(matrix, shape, mu, found, best)
    assert max(bounds) <= best
    assert best - max(bounds) < 0.9 * (best - bounds[0])


def test_the_gradient_of_the_bound_is_that_of_differences():
    """Of the relaxation for a fixed D: half of x^2 (1/z - 1)."""
    f, _ = hard(n=60, d=10, k=3)
    best, none = min(values(f, 3).values()), np.empty(0, dtype=np.int64)
    reduced, mu = root(f)
    D = np.full(10, 0.8 * mu)

    def solved(D):
        return relax(reduced, D, 3, none, np.empty(0), best * (1 + 1e-6))

    found, by = solved(D), 1e-4 * mu
    expected = np.zeros(10)
    expected[found.active] = 0.5 * found.x**2 * (1.0 / found.shares - 1.0)
    differences = [(solved(D + by * e).lower - solved(D - by * e).lower) / (2 * by) for e in np.eye(10)]
    np.testing.assert_allclose(differences, expected, atol=1e-3 * expected.max())


def test_children_have_no_lower_bound_than_their_parents(monkeypatch):
    f, constraint = hard()
    bounded = []
    bound = Search._bound

    def watched(self, work, steps):
        parent = work.lower
        bound(self, work, steps)
        bounded.extend((parent, node.lower) for node in self.frontier if node.number == self.n_nodes)

    monkeypatch.setattr(Search, "_bound", watched)
    run = minimize(f, constraint, BranchAndBound())
    assert len(bounded) > 5
    assert all(child >= parent for parent, child in bounded)
    assert (np.diff(run.history["lower_bound"]) >= 0).all()


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_is_stopped_and_stored_goes_on_to_the_same_answer(tmp_path):
    f, constraint = hard()
    straight = minimize(f, constraint, BranchAndBound())
    part = minimize(f, constraint, BranchAndBound(), stop=MaxIter(5))
    assert part.state.gap > 0.0
    assert part.state.lower_bound <= straight.value
    ht.save(part, tmp_path / "part.json")
    rest = minimize(f, constraint, BranchAndBound(), state=ht.load(tmp_path / "part.json").state)
    assert rest.value == straight.value
    assert (rest.state.n_nodes, rest.n_iter) == (straight.state.n_nodes, straight.n_iter)
    np.testing.assert_array_equal(rest.history["lower_bound"], straight.history["lower_bound"][5:])


@pytest.mark.slow
def test_an_interrupt_keeps_the_answer_and_the_bound(monkeypatch):
    f, constraint = hard()
    run, count = Search.run, []

    def interrupted(self, n):
        count.append(n)
        if len(count) == 4:
            raise KeyboardInterrupt
        run(self, n)

    monkeypatch.setattr(Search, "run", interrupted)
    stopped = minimize(f, constraint, BranchAndBound())
    monkeypatch.setattr(Search, "run", run)
    whole = minimize(f, constraint, BranchAndBound())
    assert stopped.status is Status.INTERRUPTED
    assert stopped.value == pytest.approx(whole.value)
    assert stopped.history["lower_bound"][1] <= stopped.state.lower_bound < whole.value
    resumed = minimize(f, constraint, BranchAndBound(), state=stopped.state)
    assert resumed.state.n_nodes == whole.state.n_nodes


@pytest.mark.slow
def test_the_estimator_takes_it_by_name():
    f, _ = hard()
    model = ht.SparseLinearRegression(
        n_nonzero_coefs=5, solver="exact", alpha=0.01, standardize=False, fit_intercept=False
    )
    model.fit(np.asarray(f.design.dense()), f.y)
    assert model.converged_
    assert model.objective_ == pytest.approx(minimize(f, Sparsity(5), BranchAndBound()).value)


@pytest.mark.slow
def test_the_scale_of_the_target_changes_no_node():
    f, constraint = hard()
    runs = [
        minimize(LinearModel(f.design, f.y * 2.0**power, l2=0.01), constraint, BranchAndBound())
        for power in (0, 40, -40)
    ]
    assert len({run.state.n_nodes for run in runs}) == 1
    assert [run.value * 4.0**-power for run, power in zip(runs, (0, 40, -40), strict=True)] == [runs[0].value] * 3


def test_more_columns_than_examples_without_a_ridge_end_too():
    """The bound says nothing before columns are excluded; f >= 0 and the search do."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((6, 9)), rng.standard_normal(6)
    f = LinearModel(X, y)
    run = minimize(f, Sparsity(3), BranchAndBound())
    assert run.value == pytest.approx(min(values(f, 3).values()))
    assert run.history["lower_bound"][0] == 0.0


def test_states_can_be_pickled_and_are_small():
    f, constraint = hard()
    state = minimize(f, constraint, BranchAndBound(), stop=MaxIter(5)).state
    assert pickle.loads(pickle.dumps(state)).gap == state.gap
    assert re.fullmatch(r"f = [\d.]+ >= [\d.]+, gap 0\.\d+, \d+ nodes", state.progress())
    assert all(len(pickle.dumps(node)) < 2000 for node in state.frontier)


def test_what_it_cannot_do_is_refused_with_what_can():
    X, y = np.eye(4), np.array([1.0, 0.0, 1.0, 0.0])
    with pytest.raises(CapabilityError, match="needs a quadratic objective"):
        minimize(LinearModel(X, y, loss="logistic"), Sparsity(2), BranchAndBound())
    with pytest.raises(CapabilityError, match="takes no bounds"):
        minimize(LinearModel(X, y), Sparsity(2, lower=0.0), BranchAndBound())
    with pytest.raises(CapabilityError, match="chooses single coordinates"):
        minimize(LinearModel(X, y), GroupSparsity([0, 0, 1, 1], 1), BranchAndBound())
    with pytest.raises(InvalidInputError, match="tol must be"):
        BranchAndBound(tol=0.0)


@pytest.mark.slow
def test_a_time_limit_leaves_an_answer_and_the_gap():
    """Over before the search began, it still ends with the support of the local search and the bound of the root."""
    rng = np.random.default_rng(31)
    X = rng.standard_normal((30, 40))
    y = X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(30)
    f = LinearModel(X, y, l2=0.05)
    run = ht.minimize(f, Sparsity(5), BranchAndBound(time_limit=1e-9))
    assert run.status is Status.BUDGET
    assert (run.n_iter, len(run.support)) == (1, 5)
    assert run.value <= ht.minimize(f, Sparsity(5)).value
    assert 0.0 < run.state.lower_bound < run.value
    gap = (run.value - run.state.lower_bound) / run.value
    assert re.search(
        rf"its time limit, less than 1 ms, with {100 * gap:.0f} % of the objective left to prove", run.message
    )
    again = ht.minimize(f, Sparsity(5), BranchAndBound(time_limit=1e9), state=run.state)
    assert again.converged
    with pytest.raises(InvalidInputError, match="time_limit"):
        BranchAndBound(time_limit=0.0)


def test_ctrl_c_during_the_local_search_ends_the_run(monkeypatch):
    rng = np.random.default_rng(32)
    X = rng.standard_normal((30, 40))
    f = LinearModel(X, X[:, :5].sum(axis=1) + rng.standard_normal(30), l2=0.05)

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkingSet, "advance", stopped)
    run = ht.minimize(f, Sparsity(5), BranchAndBound())
    assert run.status is Status.INTERRUPTED
    assert run.n_iter == 0


def test_several_outputs_are_refused_in_words():
    X = np.random.default_rng(33).standard_normal((20, 4))
    with pytest.raises(CapabilityError, match=r"takes one output, .* use WorkingSet\(\)"):
        ht.SparseLinearRegression(n_nonzero_coefs=2, solver="exact").fit(X, X[:, :2])
    with pytest.raises(CapabilityError, match="takes one output"):
        ht.SparseLogisticRegression(n_nonzero_coefs=2, solver="exact").fit(X, np.arange(20) % 3)
