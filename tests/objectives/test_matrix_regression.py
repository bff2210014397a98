"""Matrices seen through linear measurements: stored in any way, and solved by what solves vectors."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import hardthresh as ht
from hardthresh.arrays import to_numpy
from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import CapabilityError, InvalidInputError
from hardthresh.designs import Standardized, as_design
from hardthresh.objectives import LinearModel, MatrixRegression
from hardthresh.solvers import IHT, HardThresholdingPursuit, WorkingSet, choose_solver
from hardthresh.steps import SparsePolyak


def data(seed=0, n=80, shape=(5, 4), rank=2):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, *shape))
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    return A, np.einsum("npq,pq->n", A, truth) + 0.1 * rng.standard_normal(n), truth


STORED = {
    "three axes": lambda A: (A, {}),
    "rows": lambda A: (A.reshape(len(A), -1), {"shape": A.shape[1:]}),
    "sparse": lambda A: (sp.csr_array(A.reshape(len(A), -1)), {"shape": A.shape[1:]}),
    "operator": lambda A: (aslinearoperator(A.reshape(len(A), -1)), {"shape": A.shape[1:]}),
}


@pytest.mark.parametrize("stored", STORED)
def test_value_gradient_and_curvature_are_those_of_the_formula(stored):
    A, y, truth = data()
    given, options = STORED[stored](A)
    f = MatrixRegression(given, y, l2=0.3, **options)
    residual = np.einsum("npq,pq->n", A, truth) - y
    at = f.evaluate(truth)
    np.testing.assert_allclose(at.value, np.mean(residual**2) / 2 + 0.15 * np.sum(truth**2))
    np.testing.assert_allclose(at.gradient, np.einsum("npq,n->pq", A, residual) / 80 + 0.3 * truth)
    assert at.point is truth
    image = np.einsum("npq,n->pq", A, np.einsum("npq,pq->n", A, truth)) / 80 + 0.3 * truth
    np.testing.assert_allclose(f.curvature(at, truth), image)
    np.testing.assert_allclose(f.curvature_along(at, truth), np.sum(truth * image))
    batch = f.rows(np.array([3, 3, 7]))
    np.testing.assert_allclose(batch.value(truth), np.mean(residual[[3, 3, 7]] ** 2) / 2 + 0.15 * np.sum(truth**2))


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("solver", [None, IHT(), HardThresholdingPursuit()], ids=["auto", "iht", "pursuit"])
def test_a_matrix_of_low_rank_is_found(stored, solver):
    A, y, truth = data()
    given, options = STORED[stored](A)
    f = MatrixRegression(given, y, **options)
    run = ht.minimize(f, Rank(2), solver, max_iter=500)
    assert run.converged
    assert np.linalg.matrix_rank(run.w) == 2
    assert f.value(run.w) <= f.value(truth)
    np.testing.assert_allclose(run.w, truth, atol=0.15)
    assert run.passes > 0


def test_as_it_must_run():
    A, y, truth = data(1, n=200, shape=(12, 12), rank=4)
    f = MatrixRegression(A, y)
    target = f.value(truth)
    run = ht.minimize(f, Rank(4), IHT(step=SparsePolyak(target=target, scale=5.0)), max_iter=50, tol=0.0)
    assert run.value < 0.1 * f.value(np.zeros((12, 12)))


def test_an_operator_is_only_multiplied():
    """Of a vector model on an operator there are no columns; pursuit takes over, and what needs them says so."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = X[:, [2, 5]] @ [1.0, -1.0] + 0.1 * rng.standard_normal(60)
    dense, operator = LinearModel(X, y), LinearModel(aslinearoperator(X), y)
    assert isinstance(choose_solver(dense, Sparsity(2)), WorkingSet)
    assert isinstance(choose_solver(operator, Sparsity(2)), HardThresholdingPursuit)
    run = ht.minimize(operator, Sparsity(2))
    np.testing.assert_array_equal(run.support, [2, 5])
    np.testing.assert_allclose(run.value, ht.minimize(dense, Sparsity(2)).value, rtol=1e-8)
    with pytest.raises(CapabilityError, match="columns"):
        ht.minimize(operator, Sparsity(2), WorkingSet())
    with pytest.raises(CapabilityError, match="does not give the Gram matrix"):
        operator.design.gram(np.ones(60))


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_array_libraries(library):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    A, y, _ = data()
    theirs = ht.minimize(MatrixRegression(xp.asarray(A), xp.asarray(y)), Rank(2))
    ours = ht.minimize(MatrixRegression(A, y), Rank(2))
    np.testing.assert_allclose(to_numpy(theirs.w), ours.w, atol=1e-6)


def test_standardised_columns_of_an_operator_are_no_columns_either():
    X = np.random.default_rng(0).standard_normal((30, 5))
    design = Standardized(as_design(aslinearoperator(X)), np.zeros(5), np.ones(5), intercept=True)
    objective = LinearModel(design, X[:, 0])
    assert isinstance(choose_solver(objective, Sparsity(1, free=(5,))), HardThresholdingPursuit)
    np.testing.assert_array_equal(ht.minimize(objective, Sparsity(1, free=(5,))).support, [0, 5])


def test_a_shape_that_agrees_may_be_given():
    A, y, _ = data()
    one, other = MatrixRegression(A, y), MatrixRegression(A, y, shape=A.shape[1:])
    assert one.shape == other.shape
    assert one.value(one.zeros() + 1.0) == other.value(other.zeros() + 1.0)


def test_float32_stays_float32():
    A, y, _ = data()
    run = ht.minimize(MatrixRegression(A.astype(np.float32), y.astype(np.float32)), Rank(2))
    assert run.w.dtype == np.float32


@pytest.mark.parametrize(
    ("A", "options", "message"),
    [
        (np.ones((3, 4)), {}, "2 dimensions"),
        (np.ones((3, 4)), {"shape": (2, 3)}, r"4 columns, which do not make matrices of shape \(2, 3\)"),
        (np.ones((3, 6)), {"shape": (-2, -3)}, ">= 1"),
        (np.ones((3, 6)), {"shape": (2.5, 2.4)}, "two integers"),
        (np.ones((3, 6)), {"shape": 6}, "two integers"),
        (np.ones((3, 2, 2)) * np.nan, {}, "NaN"),
        (np.ones((4, 2, 2)), {}, "y has shape .* one number per row of A"),
        (np.ones((3, 2, 2)), {"shape": (4, 1)}, r"matrices of shape \(2, 2\), but shape = \(4, 1\)"),
        (np.full((3, 4), np.nan), {"shape": (2, 2)}, "^A contains NaN"),
        (sp.csr_array(np.ones((3, 4))), {}, r"shape=\(p, q\) is missing"),
        (aslinearoperator(np.ones((3, 4))), {}, r"shape=\(p, q\) is missing"),
    ],
)
def test_invalid_arguments_are_refused(A, options, message):
    with pytest.raises(InvalidInputError, match=message):
        MatrixRegression(A, np.ones(3), **options)
