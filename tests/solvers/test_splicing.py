"""Exchanges of several units by gradients and values, and minimising on a support by gradients alone."""

from itertools import combinations

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, RowSparsity, Sparsity
from hardthresh.objectives import Function
from hardthresh.solvers import HardThresholdingPursuit
from hardthresh.solvers.quasi_newton import descend_by_gradients
from hardthresh.solvers.splicing import fit_on_support, splice

RNG = np.random.default_rng(11)
X = RNG.standard_normal((60, 10))
Y = X[:, [1, 4, 8]] @ [2.0, -1.5, 1.0] + RNG.standard_t(2, 60)


def deviations(w):
    r = X @ w - Y
    return float(np.mean(np.abs(r))), np.sign(r) @ X / len(Y)


def deviations_on(columns):
    """Return the least mean absolute deviation of some columns, by a linear program."""
    from scipy.optimize import linprog

    A, n = X[:, columns], len(Y)
    cost = np.concatenate([np.zeros(len(columns)), np.full(n, 1.0 / n)])
    rows = np.block([[A, -np.eye(n)], [-A, -np.eye(n)]])
    free = [(None, None)] * len(columns) + [(0, None)] * n
    return linprog(cost, rows, np.concatenate([Y, -Y]), bounds=free).fun


def start(f, constraint, w):
    projection = constraint.project(np.asarray(w, dtype=float))
    return f.evaluate(projection.point), projection.support


def test_kinks_do_not_stop_the_descent_by_gradients():
    f, columns = Function(deviations, 10, True), [0, 3, 4, 7]
    w = np.zeros(10)
    w[columns] = 1.0
    at, support = start(f, Sparsity(4), w)
    after, projection = descend_by_gradients(f, Sparsity(4), at, support, 1e-12)
    assert after.value == pytest.approx(deviations_on(columns), rel=1e-6)
    assert not projection.point[[1, 2, 5, 6, 8, 9]].any()


def test_the_descent_by_gradients_leaves_a_minimum_alone_and_keeps_to_bounds():
    f = Function(lambda w: (float(np.sum((w - 1.0) ** 2)), 2.0 * (w - 1.0)), 3, True)
    at, support = start(f, Sparsity(3), np.ones(3))
    assert descend_by_gradients(f, Sparsity(3), at, support, 1e-12) is None
    below = Function(lambda w: (float(np.sum((w + 1.0) ** 2)), 2.0 * (w + 1.0)), 3, True)
    bounded = Sparsity(3, lower=0.0)
    at, support = start(below, bounded, np.full(3, 2.0))
    after, _ = descend_by_gradients(below, bounded, at, support, 1e-12)
    np.testing.assert_allclose(after.point, 0.0, atol=1e-12)


def test_the_descent_by_gradients_stays_in_the_domain():
    def both(w):  # w - log w, infinite for other than positive w
        with np.errstate(all="ignore"):
            return (float(np.sum(w - np.log(w))) if (w > 0).all() else np.inf), 1.0 - 1.0 / w

    f = Function(both, 2, True)
    at, support = start(f, Sparsity(2), [30.0, 0.01])
    after, _ = descend_by_gradients(f, Sparsity(2), at, support, 1e-14)
    np.testing.assert_allclose(after.point, 1.0, rtol=1e-5)


def test_hopeless_descents_are_abandoned():
    f, calls = Function(deviations, 10, True), []

    def counted(w):
        calls.append(1)
        return deviations(w)

    at, support = start(f, Sparsity(3), [1, 0, 1, 0, 0, 1, 0, 0, 0, 0])
    descend_by_gradients(Function(counted, 10, True), Sparsity(3), at, support, 1e-12)
    whole = len(calls)
    descend_by_gradients(Function(counted, 10, True), Sparsity(3), at, support, 1e-12, below=0.0)
    assert len(calls) - whole < whole


def test_a_splice_exchanges_several_coordinates_at_once():
    f, constraint = Function(deviations, 10, True), Sparsity(3)
    w = np.zeros(10)
    w[[0, 2, 3]] = 0.1
    at, _ = start(f, constraint, w)
    better = splice(f, constraint, at, 1e-8)
    assert better.value < at.value
    assert len(set(better.projection.support.indices.tolist()) - {0, 2, 3}) == 2  # k/2 of 3, rounded up


def test_a_splice_fills_a_support_that_is_not_full():
    f, constraint = Function(deviations, 10, True), Sparsity(3)
    at, _ = start(f, constraint, np.zeros(10))
    better = splice(f, constraint, at, 1e-8)
    assert better.projection.support.indices.shape[0] == 3


def test_the_default_finds_the_least_absolute_deviations_of_all_supports():
    best = min(deviations_on(list(columns)) for columns in combinations(range(10), 3))
    assert ht.minimize(Function(deviations, 10, True), Sparsity(3)).value == pytest.approx(best, rel=1e-5)


def saddle(w):
    """The sum over coordinates of two wells each, -0.7 and 1.3, the deeper the later: concave where w is 0.3."""
    depth, bump = np.repeat([1.0, 1.5, 2.0, 2.5], 2), (w - 0.3) ** 2 - 1.0
    return float(np.sum(depth * bump**2)), 4.0 * depth * bump * (w - 0.3)


def test_groups_are_spliced_where_the_curvature_is_negative():
    f = Function(saddle, 8, True)
    result = ht.minimize(f, GroupSparsity(np.arange(8) // 2, 2), w0=np.array([0.9, 0.9, 0.9, 0.9, 0, 0, 0, 0.0]))
    assert result.value == pytest.approx(2 * (1.0 + 1.5) * 0.91**2)  # the two deepest wells are used


def test_rows_of_a_matrix_are_groups():
    """The curvature is negative at the start, where a search by a quadratic model ends."""

    def by_rows(W):
        value, slope = saddle(W.ravel())
        return value, slope.reshape(4, 2)

    w0 = np.array([[0.9, 0.9], [0.9, 0.9], [0.0, 0.0], [0.0, 0.0]])
    result = ht.minimize(Function(by_rows, (4, 2), True), RowSparsity(2), w0=w0)
    assert result.support.numbers.tolist() == [2, 3]
    assert result.value == pytest.approx(2 * (1.0 + 1.5) * 0.91**2)


def test_signs_and_free_coordinates_are_kept():
    f = Function(lambda w: (float(np.sum((w - T) ** 2)), 2.0 * (w - T)), 5, True)
    constraint = Sparsity(2, free=(0,), lower=0.0)
    at, _ = start(f, constraint, [0.5, 0.1, 0.1, 0, 0])
    better = splice(f, constraint, at, 1e-8)
    w = better.projection.point
    assert w[0] == pytest.approx(T[0])
    assert (w >= 0).all()
    assert np.count_nonzero(w[1:]) == 2


T = np.array([1.0, 0.2, 0.1, -5.0, 2.0])


def test_a_start_outside_of_the_domain_has_no_fit():
    f = Function(lambda w: (np.inf, w + np.nan), 3, True)
    support = Sparsity(2).project(np.ones(3)).support
    assert fit_on_support(f, Sparsity(2), np.ones(3), support, 1e-8) is None


def test_pursuit_splices_arbitrary_functions_only_with_exchanges():
    f, w0 = Function(saddle, 8, True), np.array([0.9, 0.9, 0.9, 0.9, 0, 0, 0, 0.0])
    constraint = GroupSparsity(np.arange(8) // 2, 2)
    without = ht.minimize(f, constraint, HardThresholdingPursuit(), w0)
    assert ht.minimize(f, constraint, HardThresholdingPursuit(exchanges=10), w0).value <= without.value


def test_a_quotient_that_is_nan_at_zero_is_searched_all_the_same():
    cov = np.diag([4.0, 1.0, 3.0, 0.5, 2.0, 0.25])

    def both(w):
        with np.errstate(all="ignore"):
            total = w.sum()
            variance = w @ cov @ w / total**2
            return float(variance), 2.0 * (cov @ w / total**2 - variance / total)

    result = ht.minimize(Function(both, 6, True), Sparsity(2), w0=np.ones(6))
    assert result.support.indices.tolist() == [3, 5]
    assert result.value == pytest.approx(1.0 / (1.0 / 0.5 + 1.0 / 0.25))  # the least variance of a sum of shares
