"""Exact restricted constants, against one eigenvalue problem at a time and the paper's toy."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
from papers.accelerated_iht._data import toy

from hardthresh.constraints import Sparsity
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.diagnostics import restricted_condition, restricted_constants
from hardthresh.objectives import LinearModel, MatrixRegression


def test_the_toy_of_the_paper_in_its_units():
    found = restricted_constants(toy(seed=409).X, 2)
    assert found.strong_convexity == pytest.approx(0.6274, abs=5e-5)
    assert found.smoothness == pytest.approx(10.811, abs=5e-4)
    assert found.subsets == 45


def test_an_objective_is_a_mean():
    drawn = toy(seed=409)
    paper, ours = restricted_constants(drawn.X, 2), restricted_constants(LinearModel(drawn.X, drawn.y), 2)
    assert 6 * ours.strong_convexity == pytest.approx(paper.strong_convexity)
    assert 6 * ours.smoothness == pytest.approx(paper.smoothness)


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_against_one_support_at_a_time(k):
    X = np.random.default_rng(k).standard_normal((12, 8))
    values = [np.linalg.eigvalsh(X[:, chosen].T @ X[:, chosen]) for chosen in map(list, combinations(range(8), k))]
    found = restricted_constants(X, k)
    assert found.smoothness == pytest.approx(max(v[-1] for v in values))
    assert found.strong_convexity == pytest.approx(min(v[0] for v in values))
    assert found.subsets == len(values)


@pytest.mark.slow
def test_many_supports_come_in_batches():
    X = np.random.default_rng(0).standard_normal((30, 24))
    found = restricted_constants(X, 6)
    assert found.subsets == 134596
    estimated = restricted_condition(LinearModel(X, X[:, 0]), Sparsity(6), factor=1)
    assert 30 * estimated.smoothness <= found.smoothness * (1 + 1e-9)
    assert 30 * estimated.strong_convexity >= found.strong_convexity * (1 - 1e-9)


def test_where_the_hessian_is_not_the_same_everywhere():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 6))
    objective = LinearModel(X, (rng.random(40) < 0.5).astype(float), loss="logistic")
    here, there = restricted_constants(objective, 2), restricted_constants(objective, 2, np.full(6, 2.0))
    assert there.smoothness < here.smoothness
    hessian = objective.hessian(objective.evaluate(np.full(6, 2.0)))
    assert restricted_constants(objective, 6, np.full(6, 2.0)).smoothness == np.linalg.eigvalsh(hessian)[-1]


def test_a_dependent_column_has_no_condition():
    found = restricted_constants(np.zeros((3, 2)), 1)
    assert found.condition == inf
    assert "inf" in str(found)


def test_too_many_supports_are_refused_with_their_number():
    with pytest.raises(InvalidInputError, match="75287520 supports"):
        restricted_constants(np.ones((3, 100)), 5)


@pytest.mark.parametrize("k", [0, 4, -1, 1.5])
def test_a_size_out_of_range_is_refused(k):
    with pytest.raises(InvalidInputError, match="k must be"):
        restricted_constants(np.eye(3), k)


@pytest.mark.parametrize("X", [np.ones(3), np.array([[1.0, np.nan]]), np.array([[1.0, np.inf]]), np.ones((3, 0))])
def test_arguments_other_than_finite_matrices_are_refused(X):
    with pytest.raises(InvalidInputError, match="X must be a finite matrix"):
        restricted_constants(X, 1)


def test_other_wrong_arguments_are_refused():
    objective = LinearModel(np.eye(3), np.ones(3))
    with pytest.raises(CapabilityError, match="hessian"):
        restricted_constants(MatrixRegression(np.ones((2, 2, 2)), np.ones(2)), 1)
    with pytest.raises(InvalidInputError, match="w must be finite"):
        restricted_constants(objective, 1, np.ones(2))
    with pytest.raises(InvalidInputError, match="w is for objectives"):
        restricted_constants(np.eye(3), 1, np.ones(3))
