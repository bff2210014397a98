"""Proofs that no near-tied support is missing, compared with enumerations (section 5.5 of models.md)."""

from itertools import combinations

import numpy as np
import pytest

from hardthresh.certificates import alternative_supports
from hardthresh.certificates.near_ties import _Search
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.losses import Logistic
from hardthresh.objectives import LinearModel
from hardthresh.solvers import minimize
from levels import at_most, reaches
from refits import problem


def equally_correlated(rho, seed):
    """Sixty rows of twelve columns with a common part, and a weak signal in four."""
    rng = np.random.default_rng((23, int(10 * rho), seed))
    X = np.sqrt(rho) * rng.standard_normal((60, 1)) + np.sqrt(1 - rho) * rng.standard_normal((60, 12))
    y = X[:, :4] @ rng.choice([-1.0, 1.0], 4)
    return LinearModel(X, y + 2.0 * y.std() * rng.standard_normal(60))


def values_of(f, k, free=()):
    """The minimum on each support of size k, from a least-squares solver of rows."""
    A, z, ridge = f.design.dense(), f.y, np.broadcast_to(f.ridge, f.shape)
    root = np.sqrt(f.weights)

    def value(columns):
        B = np.vstack([root[:, None] * A[:, columns], np.diag(np.sqrt(ridge[columns]))])
        t = np.append(root * z, np.zeros(len(columns)))
        r = t - B @ np.linalg.lstsq(B, t, rcond=1e-13)[0]
        return 0.5 * r @ r

    counted = [j for j in range(f.shape[0]) if j not in free]
    return {some: value([*some, *free]) for some in combinations(counted, k)}


def near(values, start, tolerance):
    """The supports within a tolerance of a value, and whether none is so near its end that rounding decides."""
    limit = (1 + tolerance) * start
    clear = all(abs(value - limit) > 1e-7 * limit for value in values.values())
    return {support for support, value in values.items() if value <= limit}, clear


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("rho", [0.3, 0.6, 0.9])
def test_all_supports_within_the_tolerance_are_found_and_proved_to_be_all(rho):
    for seed in range(6 if reaches("pairs") else 1):
        f = equally_correlated(rho, seed)
        values = values_of(f, 4)
        w = minimize(f, Sparsity(4)).w
        for tolerance in (0.02, 0.1):
            pool = alternative_supports(f, Sparsity(4), w, tolerance=tolerance, most=500, time_limit=None)
            assert pool.complete
            assert not pool.more
            expected, clear = near(values, f.value(w), tolerance)
            assert clear
            assert {support.numbers for support in pool.supports} == expected
            for support in pool.supports:
                assert support.value == pytest.approx(values[support.numbers], rel=1e-9)


def test_of_more_supports_the_best_are_proved_to_be_the_best():
    f = equally_correlated(0.6, 3)
    values = sorted(values_of(f, 4).values())
    pool = alternative_supports(f, Sparsity(4), minimize(f, Sparsity(4)).w, tolerance=0.5, most=9, time_limit=None)
    assert pool.complete
    assert pool.more
    assert [support.value for support in pool.supports] == pytest.approx(values[:9], rel=1e-9)
    assert "no other set of 4 features is better than these." in str(pool)


@pytest.mark.slow
@pytest.mark.parametrize("time_limit", [0.0, None])
def test_a_list_that_the_model_ends_says_what_it_lacks(time_limit):
    """The model, of bad columns, has the place of a better set; or it is the only one, beside others."""
    f = equally_correlated(0.6, 3)
    w, X = np.zeros(12), f.design.dense()
    w[8:] = np.linalg.lstsq(X[:, 8:], f.y, rcond=None)[0]
    values = sorted(values_of(f, 4).values())
    pool, one = (
        alternative_supports(f, Sparsity(4), w, tolerance=1.0, most=most, time_limit=time_limit) for most in (3, 1)
    )
    assert pool.complete == one.complete == (time_limit is None)
    assert pool.more
    assert [support.value for support in pool.supports] == pytest.approx([*values[:2], f.value(w)], rel=1e-9)
    assert pool.supports[-1].numbers == one.supports[-1].numbers == (8, 9, 10, 11)
    assert "3 sets of 4 features, the model's and the best of those" in str(pool)
    assert ("no other set of 4 features is better than those before the model." in str(pool)) == pool.complete
    assert one.more
    assert str(one).startswith(
        "Other sets of 4 features are" if one.complete else "Other sets of 4 features were found"
    )
    assert "No other set" not in str(one)
    assert "no other set" not in str(one)


def test_what_exchanges_cannot_reach_is_found():
    """From (0, 1) to (2, 3), which fits as well, each way passes through supports that fit hardly at all."""
    rng = np.random.default_rng(1)
    t, X = rng.standard_normal(60), rng.standard_normal((60, 8))
    X[:, 1], X[:, 3] = X[:, 0] + 0.1 * t, X[:, 2] + 0.1 * t
    f = LinearModel(X, t + 0.1 * rng.standard_normal(60))
    w = minimize(f, Sparsity(2)).w
    found, proved = (alternative_supports(f, Sparsity(2), w, time_limit=limit) for limit in (0, None))
    assert [support.numbers for support in found.supports] in ([(0, 1)], [(2, 3)])
    assert not found.complete
    assert "there may be others." in str(found)
    assert {support.numbers for support in proved.supports} == {(0, 1), (2, 3)}
    assert proved.complete
    assert "no other set of 2 features is within the tolerance." in str(proved)


@pytest.mark.parametrize(("n", "l2"), [(40, 0.0), (40, 0.1), (8, 0.1)])
def test_ridge_weights_offsets_and_free_columns_are_those_of_the_objective(n, l2):
    rng = np.random.default_rng((5, n))
    X, weights = rng.standard_normal((n, 12)), rng.integers(1, 4, n).astype(float)
    X[:, 0] = 1.0
    y = X[:, 2] - X[:, 5] + rng.standard_normal(n)
    f, constraint = LinearModel(X, y, sample_weight=weights, l2=l2), Sparsity(3, free=(0,))
    w = minimize(f, constraint).w
    expected, clear = near(values_of(f, 3, free=(0,)), f.value(w), 0.3)
    pool = alternative_supports(f, constraint, w, tolerance=0.3, most=500, time_limit=None)
    assert clear
    assert len(expected) > 1
    assert {support.numbers for support in pool.supports} == expected
    assert pool.complete


@pytest.mark.parametrize("seed", [0, 7, 12, 16, 17])
def test_values_are_those_of_the_rows_where_a_refit_loses_digits(seed):
    """A column with a mean of 1e7 beside an intercept: refitted, some supports come out above the tolerance."""
    rng = np.random.default_rng((37, seed))
    X = rng.standard_normal((6, 6))
    X[:, 0], X[:, 3] = 1.0, X[:, 3] + 1e7
    y = X[:, 3] + X[:, 1] + 0.7 * rng.standard_normal(6)
    f, constraint = LinearModel(X, y), Sparsity(2, free=(0,))
    w = minimize(f, constraint).w
    values = values_of(LinearModel(X - X.mean(axis=0), y - y.mean()), 2, free=(0,))
    expected, clear = near(values, f.value(w), 0.3)
    pool = alternative_supports(f, constraint, w, tolerance=0.3, time_limit=None)
    assert clear
    assert pool.complete
    assert {support.numbers for support in pool.supports} == expected
    for support in pool.supports:
        assert support.value == pytest.approx(values[support.numbers], rel=1e-6)


def test_copies_of_columns_are_all_listed():
    """A multiple of column 1, a copy of column 2, and columns of zeros and of ones beside a free column of ones."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((50, 9))
    X[:, 0] = 1.0
    X[:, 5], X[:, 6], X[:, 7], X[:, 8] = -3.0 * X[:, 1], X[:, 2], 0.0, 2.0
    f = LinearModel(X, X[:, 1] + X[:, 2] + rng.standard_normal(50))
    constraint = Sparsity(2, free=(0,))
    pool = alternative_supports(f, constraint, minimize(f, constraint).w, tolerance=0.2, time_limit=None)
    assert {support.numbers for support in pool.supports} == {(1, 2), (1, 6), (2, 5), (5, 6)}
    assert pool.complete
    assert {support.excess for support in pool.supports} == {0.0}


def test_dependent_columns_are_no_proof_where_fewer_would_do():
    """One column and any copy or constant fits as well as the two: such sets are not searched."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((50, 6))
    X[:, 5] = X[:, 0]
    f = LinearModel(X, X[:, 0] + 0.1 * rng.standard_normal(50))
    pool = alternative_supports(f, Sparsity(2), minimize(f, Sparsity(2)).w, tolerance=0.5, time_limit=None)
    assert not pool.complete
    assert pool.reason == "some columns depend on others, and sets of fewer are as good"


def test_combinations_of_columns_are_told_from_near_ones():
    """Columns 0, 1 and 3 depend on each other, and 7 is a copy of 4 but for 1e-6 of its length."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((40, 9))
    X[:, 3], X[:, 7] = X[:, 0] + 0.3 * X[:, 1], X[:, 4] + 1e-6 * X[:, 7]
    f = LinearModel(X, X[:, 0] + X[:, 4] + X[:, 8] + 0.5 * rng.standard_normal(40))
    w = minimize(f, Sparsity(3)).w
    expected, clear = near(values_of(f, 3), f.value(w), 0.3)
    pool = alternative_supports(f, Sparsity(3), w, tolerance=0.3, most=200, time_limit=None)
    assert clear
    assert {(0, 4, 8), (0, 7, 8), (3, 4, 8), (3, 7, 8)} <= expected
    assert {support.numbers for support in pool.supports} == expected
    assert pool.complete


def test_a_search_that_runs_out_of_time_is_no_proof():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60, 30))
    f = LinearModel(X, rng.standard_normal(60), l2=0.01)
    w = minimize(f, Sparsity(5)).w
    pool = alternative_supports(f, Sparsity(5), w, most=10, time_limit=1e-9)
    assert not pool.complete
    assert pool.reason == "the time limit was reached"
    assert str(pool).endswith("No proof that there are none: the time limit was reached.")
    limit = 1.02 * pool.value
    assert all(support.value <= limit * (1 + 1e-9) for support in pool.supports)


def test_an_interrupt_keeps_what_was_found(monkeypatch):
    def interrupted(search, count):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardthresh.solvers.branch_and_bound.search.Search.run", interrupted)
    f = equally_correlated(0.9, 0)
    w = minimize(f, Sparsity(4)).w
    pool = alternative_supports(f, Sparsity(4), w, time_limit=None)
    assert not pool.complete
    assert pool.reason == "the search was interrupted"
    assert len(pool.supports) >= len(alternative_supports(f, Sparsity(4), w).supports) > 1


def test_a_single_support_is_all_there_is():
    f = LinearModel(np.eye(3), np.array([1.0, 2.0, 3.0]))
    pool = alternative_supports(f, Sparsity(3), np.array([1.0, 2.0, 3.0]), time_limit=None)
    assert pool.complete
    assert len(pool.supports) == 1
    assert str(pool).startswith("No other set of 3 features fits within 2 % of the model.")


@pytest.mark.parametrize("time_limit", [0.0, None])
def test_an_empty_model_has_no_alternatives(time_limit):
    pool = alternative_supports(LinearModel(np.eye(3), np.ones(3)), Sparsity(0), np.zeros(3), time_limit=time_limit)
    assert pool.complete
    assert len(pool.supports) == 1
    assert str(pool) == "The model has no feature, and there is no other empty set."


def many_ties():
    """Nine of thirty columns fit ten rows but for rounding: nearly all of 14 million sets tie."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 30))
    f = LinearModel(X, X[:, 0] + 0.1 * rng.standard_normal(9))
    return f, Sparsity(9), minimize(f, Sparsity(9)).w


@pytest.mark.slow
def test_many_ties_end_the_exchanges_and_the_search():
    f, constraint, w = many_ties()
    found = alternative_supports(f, constraint, w, most=10)
    assert not found.complete
    assert found.more
    assert found.examined == 400
    assert found.reason == "exchanges of 400 sets were compared, and there are more near them"
    searched = alternative_supports(f, constraint, w, most=10, time_limit=None)
    assert not searched.complete
    assert searched.reason == "too many sets are equally good"
    assert len(searched.supports) == 10


def test_the_time_limit_and_ctrl_c_end_exchanges(monkeypatch):
    f, constraint, w = many_ties()
    short = alternative_supports(f, constraint, w, time_limit=1e-9)
    assert not short.complete
    assert short.examined == 0
    assert short.reason == "the time limit was reached"
    refit, calls = _Search._refit, []

    def interrupted(search, step):
        calls.append(step)
        if len(calls) > 20:
            raise KeyboardInterrupt
        return refit(search, step)

    monkeypatch.setattr(_Search, "_refit", interrupted)
    part = alternative_supports(f, constraint, w, time_limit=None)
    assert not part.complete
    assert part.reason == "the search was interrupted"
    assert 1 < len(part.supports) <= 21


def test_what_is_not_searched_says_why():
    squared, f = LinearModel(np.eye(4), np.arange(4.0)), problem(Logistic(), l2=0.1)
    pool = alternative_supports(f, Sparsity(2), minimize(f, Sparsity(2)).w, time_limit=1.0)
    assert not pool.complete
    assert pool.reason == "searches are for least squares"
    groups = GroupSparsity([0, 0, 1, 1], 1)
    pool = alternative_supports(squared, groups, minimize(squared, groups).w, time_limit=1.0)
    assert pool.reason.startswith("searches choose single columns for one output")
    with pytest.raises(InvalidInputError, match="time_limit must be"):
        alternative_supports(f, Sparsity(2), np.zeros(8), time_limit=-1)
