"""The open questions about *Sparse Polyak*: many small problems at once, and traps, against obvious twins."""

from itertools import islice
from math import isinf, sqrt

import numpy as np
import pytest
from papers.sparse_polyak import kappa_squared
from papers.sparse_polyak._small import Quadratics, are_solved, drawn_quadratics, fixed, sparse_polyak

from hardthresh.constraints import Sparsity
from hardthresh.core import iterate
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import Fixed, SparsePolyak


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "rule"),
    [(sparse_polyak(2, 1.0), SparsePolyak(0.0, scale=1.0)), (fixed(0.5), Fixed(0.5))],
    ids=["sparse_polyak", "fixed"],
)
def test_the_small_problems_run_as_the_library_does(step, rule):
    problems = drawn_quadratics(20, 6, 2, 30.0, np.random.default_rng(0))
    expected = []
    for hessian, truth in zip(*problems, strict=True):
        X = np.linalg.cholesky(hessian).T * sqrt(6)
        values = np.array(
            [state.value for state in islice(iterate(LinearModel(X, X @ truth), Sparsity(2), IHT(step=rule)), 41)]
        )
        expected.append(values.min() <= 1e-2 * values[0])
    assert are_solved(problems, 2, step, 40, 1e-2).tolist() == expected
    assert 0 < sum(expected) < 20


def test_one_hessian_serves_many_small_problems():
    truth = np.random.default_rng(0).standard_normal((3, 4))
    hessian = np.diag([1.0, 2.0, 3.0, 4.0])
    shared, repeated = Quadratics(hessian[None], truth), Quadratics(np.stack([hessian] * 3), truth)
    np.testing.assert_array_equal(shared.gradient(truth[:, ::-1]), repeated.gradient(truth[:, ::-1]))


def test_a_fixed_step_diverges_quietly_on_small_problems():
    problems = drawn_quadratics(3, 5, 1, 10.0, np.random.default_rng(0))
    assert not are_solved(problems, 5, fixed(10.0), 500, 1e-3).any()


def test_in_one_dimension_sparse_polyak_solves_only_with_c_above_a_quarter():
    one = Quadratics(np.ones((1, 1, 1)), np.ones((1, 1)))
    assert not are_solved(one, 1, sparse_polyak(1, 0.25), 200, 0.5).any()
    assert are_solved(one, 1, sparse_polyak(1, 0.26), 200, 0.5).all()
    assert are_solved(one, 1, sparse_polyak(1, 0.5), 1, 1e-30).all()


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "solved"), [(0.75, False), (1.0, False), (1.5, True), (2.0, True), (5.0, True)])
def test_the_problem_of_the_page_on_one_fifth_needs_more_than_1(scale, solved):
    hessian = np.array([[0.05, 0.08, 0.07], [0.08, 0.73, 0.42], [0.07, 0.42, 0.30]])
    X, truth = np.linalg.cholesky(hessian).T * sqrt(3), np.array([1.0, 0.0, 0.0])
    states = iterate(LinearModel(X, X @ truth), Sparsity(1), IHT(step=SparsePolyak(0.0, scale=scale)))
    values = np.array([state.value for state in islice(states, 501)]) / 0.025
    assert values[0] == pytest.approx(1.0)
    if solved:
        assert values[-1] < 1e-9
    else:
        assert values[300:].min() > 1.2


@pytest.mark.parametrize("trap", kappa_squared.TRAPS)
def test_a_trap_has_a_lower_sparse_vector_and_a_stationary_point(trap):
    built = kappa_squared.build_trap(8.0, *kappa_squared.TRAPS[trap](8.0), np.random.default_rng(0))
    assert np.count_nonzero(built.point) == built.s > np.count_nonzero(built.better) == kappa_squared.TRAP_S_STAR
    gradient = built.curvature * (built.point - built.minimiser)
    assert not gradient[built.point != 0].any()
    assert built.curvature.min() == 1 / 8
    assert built.curvature.max() == 1.0
    gap, whole = (built.value(w) - built.value(built.better) for w in (built.point, np.zeros_like(built.point)))
    assert gap / whole == pytest.approx(kappa_squared.MARGIN, abs=0.05)


@pytest.mark.parametrize("rule", kappa_squared.RULES)
def test_the_trap_of_a_rule_holds_it(rule):
    built = kappa_squared.build_trap(8.0, *kappa_squared.TRAPS[rule](8.0), np.random.default_rng(0))
    step = kappa_squared.rules(built.s, 1.0)[rule]
    assert not built.reached(built.point, step)
    assert built.reached(np.zeros_like(built.point), step)


def test_the_needed_budget_is_the_first_of_those_that_suffice():
    rows = [
        {"omega": 0.5, "rule": "SP5", "solved": [[True, True], [False, True], [True, True], [True, True], [True, True]]}
    ]
    assert kappa_squared.needed(rows, "SP5", 0.5) == 8 / 5
    rows[0]["solved"][-1] = [False, False]
    assert isinf(kappa_squared.needed(rows, "SP5", 0.5))
