"""Exchanges of several units by gradients and values, and minimising on a support by gradients alone."""

from itertools import combinations

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity, RowSparsity, Sparsity
from hardthresh.core.errors import CapabilityError
from hardthresh.core.meter import Meter
from hardthresh.objectives import Function, LinearModel
from hardthresh.solvers import Splicing, WorkingSet, choose_solver
from hardthresh.solvers.auto import MOST_SPLICED
from hardthresh.solvers.natural_scale import Curvatures
from hardthresh.solvers.quasi_newton import End, descend_by_gradients
from hardthresh.solvers.unit_model import UnitModel
from hardthresh.solvers.units import Units

RNG = np.random.default_rng(11)
X = RNG.standard_normal((60, 10))
Y = X[:, [1, 4, 8]] @ [2.0, -1.5, 1.0] + RNG.standard_t(2, 60)


def deviations(w):
    r = X @ w - Y
    return float(np.mean(np.abs(r))), np.sign(r) @ X / len(Y)


def deviations_on(columns, X=X, y=Y):
    """Return the least mean absolute deviation of some columns, by a linear program."""
    from scipy.optimize import linprog

    A, n = X[:, columns], len(y)
    cost = np.concatenate([np.zeros(len(columns)), np.full(n, 1.0 / n)])
    rows = np.block([[A, -np.eye(n)], [-A, -np.eye(n)]])
    free = [(None, None)] * len(columns) + [(0, None)] * n
    return linprog(cost, rows, np.concatenate([y, -y]), bounds=free).fun


def start(f, constraint, w):
    projection = constraint.project(np.asarray(w, dtype=float))
    return f.evaluate(projection.point), projection.support


def test_kinks_do_not_stop_the_descent_by_gradients():
    f, columns = Function(deviations, 10, True), [0, 3, 4, 7]
    w = np.zeros(10)
    w[columns] = 1.0
    at, support = start(f, Sparsity(4), w)
    found = descend_by_gradients(f, Sparsity(4), at, support, 1e-12)
    assert found.at.value == pytest.approx(deviations_on(columns), rel=1e-6)
    assert not found.at.point[[1, 2, 5, 6, 8, 9]].any()


def test_the_descent_by_gradients_leaves_a_minimum_alone_and_keeps_to_bounds():
    f = Function(lambda w: (float(np.sum((w - 1.0) ** 2)), 2.0 * (w - 1.0)), 3, True)
    at, support = start(f, Sparsity(3), np.ones(3))
    assert descend_by_gradients(f, Sparsity(3), at, support, 1e-12).at is at
    below = Function(lambda w: (float(np.sum((w + 1.0) ** 2)), 2.0 * (w + 1.0)), 3, True)
    bounded = Sparsity(3, lower=0.0)
    at, support = start(below, bounded, np.full(3, 2.0))
    found = descend_by_gradients(below, bounded, at, support, 1e-12)
    np.testing.assert_allclose(found.at.point, 0.0, atol=1e-12)


def test_the_descent_by_gradients_stays_in_the_domain():
    def both(w):  # w - log w, infinite for other than positive w
        with np.errstate(all="ignore"):
            return (float(np.sum(w - np.log(w))) if (w > 0).all() else np.inf), 1.0 - 1.0 / w

    f = Function(both, 2, True)
    at, support = start(f, Sparsity(2), [30.0, 0.01])
    found = descend_by_gradients(f, Sparsity(2), at, support, 1e-14)
    np.testing.assert_allclose(found.at.point, 1.0, rtol=1e-5)


def test_hopeless_descents_are_abandoned():
    f, calls = Function(deviations, 10, True), []

    def counted(w):
        calls.append(1)
        return deviations(w)

    at, support = start(f, Sparsity(3), [1, 0, 1, 0, 0, 1, 0, 0, 0, 0])
    descend_by_gradients(Function(counted, 10, True), Sparsity(3), at, support, 1e-12)
    whole = len(calls)
    ended = descend_by_gradients(Function(counted, 10, True), Sparsity(3), at, support, 1e-12, below=0.0)
    assert len(calls) - whole < whole
    assert ended.end is End.ABANDONED


def test_a_descent_without_end_is_interrupted_for_the_stopping_rule():
    f = Function(lambda w: (-float(w.sum()), -np.ones(3)), 3, True)
    at, support = start(f, Sparsity(3), np.ones(3))
    assert descend_by_gradients(f, Sparsity(3), at, support, 1e-12).end is End.INTERRUPTED


def test_the_inverse_hessian_of_a_quadratic_is_exact_after_as_many_steps_as_coordinates():
    """In exact arithmetic the method of BFGS ends after m steps on a quadratic of m coordinates, and needs few more."""
    scales, calls = np.array([1.0, 10.0, 100.0, 1000.0]), []

    def both(w):
        calls.append(1)
        return 0.5 * float(scales @ (w - 1.0) ** 2), scales * (w - 1.0)

    f = Function(both, 4, True)
    at, support = start(f, Sparsity(4), np.full(4, 2.0))
    found = descend_by_gradients(f, Sparsity(4), at, support, 1e-14)
    np.testing.assert_allclose(found.at.point, 1.0, rtol=1e-6)
    assert len(calls) < 40  # the steepest descent takes more than 1,000


def next_state(f, constraint, w):
    """Return the state of the solver after its refit of a start, and the one after that."""
    states = ht.iterate(f, constraint, Splicing(), w0=np.asarray(w, dtype=float))
    next(states)
    return next(states), next(states)


def test_a_splice_exchanges_several_coordinates_at_once():
    w = np.zeros(10)
    w[[0, 2, 3]] = 0.1
    refitted, better = next_state(Function(deviations, 10, True), Sparsity(3), w)
    assert refitted.support.indices.tolist() == [0, 2, 3]
    assert better.value < refitted.value
    assert len(set(better.support.indices.tolist()) - {0, 2, 3}) == 2  # k/2 of 3, rounded up


def test_a_splice_fills_a_support_that_is_not_full():
    _, better = next_state(Function(deviations, 10, True), Sparsity(3), np.zeros(10))
    assert better.support.indices.shape[0] == 3


@pytest.mark.slow
def test_the_default_finds_the_least_absolute_deviations_of_all_supports():
    best = min(deviations_on(list(columns)) for columns in combinations(range(10), 3))
    assert ht.minimize(Function(deviations, 10, True), Sparsity(3)).value == pytest.approx(best, rel=1e-5)


@pytest.mark.slow
def test_units_are_replaced_one_by_one_where_gradients_mislead():
    """The columns are correlated; without replacements the run ends 31 % above."""
    rng = np.random.default_rng(13)
    A = rng.standard_normal((30, 8))
    A[:, 4:] = A[:, :4] @ rng.standard_normal((4, 4)) + 0.5 * A[:, 4:]
    y = A[:, :3].sum(axis=1) + rng.standard_t(2, 30)

    def both(w):
        r = A @ w - y
        return float(np.mean(np.abs(r))), np.sign(r) @ A / len(y)

    best = min(deviations_on(list(columns), A, y) for columns in combinations(range(8), 3))
    assert ht.minimize(Function(both, 8, True), Sparsity(3)).value == pytest.approx(best, rel=1e-6)


def test_units_score_by_the_gradients_that_their_signs_allow():
    units = Units.of(Sparsity(2, free=(0,), lower=0.0), (4,))
    slope = np.array([9.0, -2.0, 3.0, -1.0])  # the first is free, and the third would have to be negative
    assert units.scores(slope).tolist() == [4.0, 0.0, 1.0]
    assert units.best_others(slope, np.array([0])).tolist() == [2]


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


def test_pursuit_goes_first_where_f_is_concave_in_a_direction():
    """The curvature of a well is negative within 0.58 of its middle, 0.3."""
    f = Function(saddle, 8, True)
    for w, convex in ((np.array([0.9, 0.2, 0, 0, 0, 0, 0, 0]), False), (np.array([1.2, 1.1, 0, 0, 0, 0, 0, 0]), True)):
        states = ht.iterate(f, Sparsity(2), Splicing(), w0=w)
        next(states)
        first = next(states)
        assert first.convex is convex
        assert (first.step > 0.0) is not convex  # splices and refits have no step
    assert ht.minimize(f, Sparsity(2), w0=np.array([0.9, 0.2, 0, 0, 0, 0, 0, 0])).support.indices.tolist() == [6, 7]


def test_signs_and_free_coordinates_are_kept():
    f = Function(lambda w: (float(np.sum(np.cosh(w - T))), np.sinh(w - T)), 5, True)
    result = ht.minimize(f, Sparsity(2, free=(0,), lower=0.0), w0=np.array([0.5, 0.1, 0.1, 0, 0]))
    assert result.support.indices.tolist() == [0, 1, 4]  # and not 3, whose minimum is negative
    np.testing.assert_allclose(result.w, [1.0, 0.2, 0.0, 0.0, 2.0], atol=1e-5)


T = np.array([1.0, 0.2, 0.1, -5.0, 2.0])


def test_sets_whose_units_overlap_are_refused_with_advice():
    f = Function(deviations, 10, True)
    chain = OverlappingGroupSparsity([[i, i + 1] for i in range(9)], 2)
    with pytest.raises(CapabilityError, match="HardThresholdingPursuit"):
        ht.minimize(f, chain, Splicing())


def test_it_is_the_default_of_functions_whose_curvature_may_mislead():
    quadratic = Function(lambda w: (float(np.sum((w - T) ** 2)), 2.0 * (w - T)), 5, True)
    assert isinstance(choose_solver(quadratic, Sparsity(2)), WorkingSet)
    concave = Function(lambda w: (-float(np.sum((w - T) ** 2)), -2.0 * (w - T)), 5, True)
    assert isinstance(choose_solver(concave, Sparsity(2)), Splicing)
    assert isinstance(choose_solver(Function(deviations, 10, True), Sparsity(2)), Splicing)
    assert isinstance(choose_solver(Function(deviations, 10, True), GroupSparsity(np.arange(10) // 2, 2)), Splicing)


def test_pursuit_is_the_default_for_more_coordinates_than_splicing_has_gradients_for():
    f = Function(lambda w: (float(np.sum(np.cosh(w))), np.sinh(w)), 2000, True)
    pairs = np.arange(2000) // 2
    for constraint, most in (
        (Sparsity(MOST_SPLICED), MOST_SPLICED),
        (Sparsity(MOST_SPLICED, free=(0,)), MOST_SPLICED + 1),
        (GroupSparsity(pairs, MOST_SPLICED // 2), MOST_SPLICED),
        (GroupSparsity(pairs, MOST_SPLICED // 2 + 1), MOST_SPLICED + 2),
    ):
        assert Units.of(constraint, (2000,)).most_coordinates == most
        assert isinstance(choose_solver(f, constraint), Splicing) is (most <= MOST_SPLICED)


def test_a_few_gradients_are_enough_for_a_model_of_many_columns():
    """The Hessian of all 500 coordinates alone would take 500 gradients."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((120, 500))
    labels = (A[:, 7] - A[:, 300] + 0.3 * rng.standard_normal(120) > 0) * 2.0 - 1.0
    calls = []

    def logistic(w):
        calls.append(1)
        u = labels * (A @ w)
        return float(np.mean(np.logaddexp(0.0, -u))) + 0.05 * float(w @ w), 0.1 * w - A.T @ (
            labels / (1.0 + np.exp(u))
        ) / 120.0

    assert ht.minimize(Function(logistic, 500, True), Sparsity(2)).support.indices.tolist() == [7, 300]
    assert len(calls) < 250


def model_at(f, constraint, w, others):
    at, _ = start(f, constraint, w)
    units = Units.of(constraint, (w.size,))
    unknown = Curvatures(np.full(w.size, np.nan))
    return UnitModel(f, at, units, units.chosen(at.point), np.asarray(others), unknown, abs(at.value) or 1.0), at


def test_the_model_proposes_the_exchange_that_is_right_for_a_quadratic():
    model = LinearModel(X, X[:, 1] + 2.0 * X[:, 4])
    w = np.zeros(10)
    w[[1, 6]] = np.linalg.lstsq(X[:, [1, 6]], X[:, 1] + 2.0 * X[:, 4])[0]
    known, _ = model_at(model, Sparsity(2), w, [0, 4, 8])
    units, point = next(known.proposals(1e-12))
    assert known.definite
    assert units.tolist() == [1, 4]
    np.testing.assert_allclose(point[[1, 4]], [1.0, 2.0], rtol=1e-4)


def test_the_model_knows_where_the_hessian_is_not_positive_definite():
    w0 = np.array([0.3, 0.3, 0.9, 0.9, 0, 0, 0, 0.0])
    known, _ = model_at(Function(saddle, 8, True), Sparsity(4), w0, [4, 5])
    assert not known.semidefinite
    flat, _ = model_at(
        Function(lambda w: (float(np.sum(w[:2]) ** 2), 2.0 * np.sum(w[:2]) * (np.arange(8) < 2)), 8, True),
        Sparsity(2),
        np.array([1.0, -1.0, 0, 0, 0, 0, 0, 0]),
        [4],
    )
    assert flat.semidefinite
    assert not flat.definite


def test_a_kink_at_zero_does_not_hide_what_a_unit_gains():
    """A function of |w_j| rises on both sides of zero with the gradient of one side alone."""
    target = np.array([2.0, 1.0, 0.5, 3.0])

    def both(w):
        r = np.abs(w) - target
        return float(np.sum(r**2)), 2.0 * r * np.where(w >= 0, 1.0, -1.0)

    known, _ = model_at(Function(both, 4, True), Sparsity(1), np.array([2.0, 0, 0, 0]), [1, 2, 3])
    proposals = [units.tolist() for units, _ in known.proposals(1e-8)]
    assert proposals[0] == [3]


def test_an_iteration_counts_its_passes_as_two_for_each_gradient():
    calls, meter = [], Meter()

    def counted(w):
        calls.append(1)
        return deviations(w)

    f = Function(counted, 10, True).metered(meter)
    at, support = start(f, Sparsity(3), np.eye(10)[:3].sum(axis=0))
    calls.clear()  # of the first, three that try whether the function is quadratic are not counted
    before = meter.passes
    descend_by_gradients(f, Sparsity(3), at, support, 1e-10)
    assert meter.passes - before == 2 * len(calls) > 0


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
