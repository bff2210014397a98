"""Fits for a range of budgets."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.selection import path
from hardthresh.solvers import IHT, minimize


@pytest.fixture
def objective():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 15)) + rng.standard_normal((40, 1))
    return LinearModel(X, rng.standard_normal(40))


def test_each_budget_gives_what_it_gives_alone(objective):
    for budget, result in zip((5, 1, 8), path(objective, Sparsity, (5, 1, 8)), strict=True):
        alone = minimize(objective, Sparsity(budget))
        assert_array_equal(result.w, alone.w)
        assert_array_equal(result.history["value"], alone.history["value"])


def test_a_warm_start_is_the_last_answer(objective):
    results = list(path(objective, Sparsity, range(1, 8), warm_start=True))
    values = [result.value for result in results]
    assert np.all(np.diff(values) <= 0)
    for before, after in pairwise(results):
        assert after.history["value"][0] == pytest.approx(before.value)


def test_nothing_is_fitted_before_it_is_asked_for(objective):
    asked = []

    def constraint(k):
        asked.append(k)
        return Sparsity(k)

    results = path(objective, constraint, iter((1, 2, 3)))
    assert asked == []
    next(results)
    assert asked == [1, 2, 3]


def test_no_budgets_are_no_fits(objective):
    assert list(path(objective, Sparsity, [])) == []


def test_the_solver_and_its_options_are_passed_on(objective):
    (result,) = path(objective, Sparsity, [3], IHT(), max_iter=2, tol=0.0)
    assert result.n_iter == 2
    assert_array_equal(result.w, minimize(objective, Sparsity(3), IHT(), max_iter=2, tol=0.0).w)


def test_other_constraints_than_a_number(objective):
    (result,) = path(objective, lambda k: Sparsity(k, free=(2,), lower=0.0), [3])
    assert 2 in result.support
    assert np.all(result.w >= 0)
