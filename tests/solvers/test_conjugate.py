"""Conjugate IHT: counts of iterations, the safeguard, and what it does on supports of coordinates."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from hardthresh.arrays import FactoredMatrix
from hardthresh.certificates import certify
from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import BaseObjective, CapabilityError, InvalidInputError, iterate, minimize
from hardthresh.objectives import LinearModel, MatrixCompletion, MatrixRegression
from hardthresh.solvers import ConjugateIHT, HardThresholdingPursuit
from levels import at_most, only_at


def completion(shape, rank, share, seed=0, noise=0.0, **settings):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((shape[1], rank)).T
    rows, cols = np.nonzero(rng.random(shape) < share)
    y = truth[rows, cols] + noise * rng.standard_normal(rows.size)
    return MatrixCompletion(rows, cols, y, shape=shape, **settings), truth


def iterations_until(error, objective, constraint, solver, most=100):
    """How many iterations it takes to bring the training error, relative to the targets, below a level."""
    scale = np.mean(objective.y**2)
    for state in iterate(objective, constraint, solver):
        if np.sqrt(2.0 * state.value / scale) <= error:
            return state.iteration
        assert state.iteration < most
        assert not state.settled
    raise AssertionError


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize(
    ("shape", "rank", "share", "most"), [((512, 768), 60, 0.5, 13), ((800, 800), 8, 0.15, 11), ((300, 200), 5, 0.3, 15)]
)
def test_a_dozen_iterations_complete_a_random_matrix(shape, rank, share, most):
    objective, _ = completion(shape, rank, share)
    assert iterations_until(1e-4, objective, Rank(rank), ConjugateIHT()) <= most


def test_points_stay_thin():
    objective, _ = completion((120, 100), 4, 0.4)
    for state in iterate(objective, Rank(4), ConjugateIHT()):
        assert isinstance(state.w, FactoredMatrix)
        assert state.w.width == 4 * (state.iteration > 0)
        assert state.w.pattern is None
        if state.iteration == 12:
            break


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("storage", ["dense", "factored"])
def test_noisy_completion_settles_where_pursuit_does(loss, storage):
    """Both stop at a minimum on the tangent space; neither is far above the other."""
    objective, truth = completion((40, 30), 2, 0.6, noise=0.5, storage=storage)
    if loss == "logistic":
        rng = np.random.default_rng(0)
        y = (rng.random(objective.y.size) < expit(truth[objective.row_indices, objective.column_indices])).astype(float)
        objective = MatrixCompletion(
            objective.row_indices, objective.column_indices, y, shape=truth.shape, loss=loss, l2=1e-3, storage=storage
        )
    run = minimize(objective, Rank(2), ConjugateIHT())
    rival = minimize(objective, Rank(2), HardThresholdingPursuit())
    assert run.converged
    assert (np.diff(run.history["value"]) <= 0).all()
    np.testing.assert_allclose(run.value, rival.value, rtol=1e-4)
    assert certify(run).is_stationary(tol=1e-3)


def test_it_starts_anew_after_a_change_of_the_support():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30))
    y = X[:, [3, 9, 20]] @ [3.0, -2.0, 1.0] + 0.1 * rng.standard_normal(80)
    states = []
    for state in iterate(LinearModel(X, y), Sparsity(3), ConjugateIHT()):
        states.append(state)
        if state.settled:
            break
    np.testing.assert_array_equal(states[-1].support, [3, 9, 20])
    best = np.linalg.lstsq(X[:, [3, 9, 20]], y)[0]
    np.testing.assert_allclose(states[-1].w[[3, 9, 20]], best, rtol=1e-4)
    for before, after in pairwise(states):
        if not np.array_equal(before.support, after.support):
            assert after.direction is None
    assert len(states) < 20


def test_on_one_support_a_quadratic_takes_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 6)) * np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    y = rng.standard_normal(50)
    objective = LinearModel(X, y)
    best = objective.value(np.linalg.lstsq(X, y)[0])
    values = [
        state.value for state, _ in zip(iterate(objective, Sparsity(6), ConjugateIHT(1e-14)), range(10), strict=False)
    ]
    assert values[8] - best <= 1e-10 * (values[0] - best)  # the first step only finds the support


def test_linear_measurements_of_a_matrix():
    rng = np.random.default_rng(3)
    truth = rng.standard_normal((9, 2)) @ rng.standard_normal((2, 8))
    A = rng.standard_normal((70, 9, 8))
    run = minimize(MatrixRegression(A, np.einsum("nij,ij->n", A, truth)), Rank(2), ConjugateIHT())
    np.testing.assert_allclose(run.w, truth, atol=1e-6)


@only_at("pairs")
def test_small_singular_values_make_no_plateau():
    """Steps along the whole gradient bring in what the tangent space does not see."""
    rng = np.random.default_rng(4)
    U, V = (np.linalg.qr(rng.standard_normal((side, 12)))[0] for side in (120, 90))
    truth = (U * 1.25 ** -np.arange(12)) @ V.T
    rows, cols = np.nonzero(rng.random(truth.shape) < 0.5)
    objective = MatrixCompletion(rows, cols, truth[rows, cols], shape=truth.shape)
    counts = [iterations_until(1e-5, objective, Rank(12), ConjugateIHT(every=n), most=400) for n in (6, 10**6)]
    assert counts[0] < 0.7 * counts[1]


def test_what_it_refuses():
    for settings in ({"tol": 0.0}, {"tol": np.nan}, {"every": 0}):
        with pytest.raises(InvalidInputError, match=r"(tol|every) must be "):
            ConjugateIHT(**settings)

    class Plain(BaseObjective):
        shape = (3,)

    with pytest.raises(CapabilityError, match="ConjugateIHT needs curvature"):
        ConjugateIHT().check(Plain(), Sparsity(1))
