"""SVP and BFGD on small matrix problems: the planted matrix, the closed form, and the factors' own recursion."""

import pickle
from itertools import islice

import numpy as np
import pytest

from hardthresh.arrays import FactoredMatrix
from hardthresh.baselines import BFGD, NuclearBall, bfgd, frank_wolfe, svp
from hardthresh.constraints import Rank, Sparsity
from hardthresh.core import BaseObjective, CapabilityError, InvalidInputError, Status, iterate, minimize
from hardthresh.objectives import LinearModel, MatrixCompletion, MatrixRegression
from hardthresh.solvers import IHT
from hardthresh.steps import Fixed
from levels import at_most, slow_beyond


def planted(seed=0, n=200, p=6, q=5, r=2, noise=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p, q))
    truth = rng.standard_normal((p, r)) @ rng.standard_normal((r, q))
    y = np.einsum("nij,ij->n", A, truth) + noise * rng.standard_normal(n)
    return MatrixRegression(scale * A, y), truth


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("seed", range(4))
def test_both_find_the_planted_matrix(seed):
    f, truth = planted(seed)
    for run in (svp(f, 2), bfgd(f, 2, max_iter=20_000)):
        assert run.converged
        np.testing.assert_allclose(run.w, truth, atol=5e-3)
        assert run.support.left.shape == (6, 2)
        assert np.linalg.matrix_rank(run.w) == 2


def test_svp_is_iterative_hard_thresholding():
    f, _ = planted(noise=0.5)
    run = svp(f, 2, step=0.3, max_iter=20, tol=0.0)
    other = minimize(f, Rank(2), IHT(step=Fixed(0.3)), max_iter=20, tol=0.0)
    np.testing.assert_array_equal(run.w, other.w)


def test_a_step_that_is_too_long_diverges_and_says_so():
    f, _ = planted(noise=0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        run = svp(f, 2, step=1e3)
    assert run.status is Status.DIVERGED
    assert not run.converged
    assert np.isfinite(run.w).all()


def test_all_entries_observed_is_the_truncated_decomposition():
    Y = np.random.default_rng(1).standard_normal((5, 4))
    f = MatrixRegression(np.eye(20).reshape(20, 5, 4), Y.ravel())
    U, s, Vt = np.linalg.svd(Y)
    best = (U[:, :2] * s[:2]) @ Vt[:2]
    run = svp(f, 2)
    np.testing.assert_allclose(run.w, best, atol=1e-6)
    np.testing.assert_allclose(bfgd(f, 2, max_iter=5000).w, best, atol=1e-2)


def test_bfgd_follows_its_formula():
    f, _ = planted(noise=0.5)
    smoothness = 1.3
    states = list(islice(iterate(f, Rank(2), BFGD(smoothness)), 6))
    U, V = states[0].left, states[0].right
    gradient = f.evaluate(f.zeros()).gradient
    W = U @ V.T
    left, s, right = np.linalg.svd(-gradient)
    spectral = (left[:, :2] * s[:2]) @ right[:2]
    np.testing.assert_allclose(W / np.linalg.norm(W), spectral / np.linalg.norm(spectral), atol=1e-10)
    np.testing.assert_allclose(U.T @ U, V.T @ V, atol=1e-10)
    stacked = np.linalg.norm(np.vstack([U, V]), 2) ** 2
    step = 1 / (20 * smoothness * stacked + 3 * np.linalg.norm(f.evaluate(W).gradient, 2))
    for state in states[1:]:
        gradient = f.evaluate(U @ V.T).gradient
        U, V = U - step * gradient @ V, V - step * gradient.T @ U
        np.testing.assert_allclose(state.w, U @ V.T, atol=1e-12)
        assert state.step == pytest.approx(step)


def test_states_keep_the_contract():
    f, _ = planted(noise=0.5)
    constraint = Rank(2)
    before = pickle.dumps(vars(f))
    states = list(islice(iterate(f, constraint, BFGD()), 10))
    for number, state in enumerate(states):
        assert state.iteration == number
        again = constraint.project(state.w)
        np.testing.assert_allclose(again.point, state.w, atol=1e-12)
        assert again.support == state.support
        assert state.value == pytest.approx(f.value(state.w), rel=1e-12)
    values = [state.value for state in states]
    assert (np.diff(values) < 0).all()
    stored = pickle.loads(pickle.dumps(states[4]))
    for one, other in zip(states[4:], islice(iterate(f, constraint, BFGD(), state=stored), 6), strict=True):
        np.testing.assert_array_equal(one.w, other.w)
    assert pickle.dumps(vars(f)) == before


@pytest.mark.slow
def test_the_scale_of_the_objective_does_not_matter():
    _, truth = planted(noise=0.1)
    one, other = (bfgd(planted(noise=0.1, scale=s)[0], 2, max_iter=300, tol=0.0) for s in (1.0, 1e3))
    np.testing.assert_allclose(1e3 * other.w, one.w, rtol=1e-5, atol=1e-6)
    assert np.linalg.norm(one.w - truth) < np.linalg.norm(truth)


@pytest.mark.parametrize("run", [svp, bfgd])
def test_rank_zero_zero_target_and_warm_start(run):
    f, _ = planted()
    nothing = run(f, 0)
    assert nothing.converged
    assert not nothing.w.any()
    zero = run(MatrixRegression(np.ones((3, 2, 2)), np.zeros(3)), 1)
    assert zero.converged
    assert not zero.w.any()
    warm = run(f, 2, w0=np.random.default_rng(2).standard_normal((6, 5)), max_iter=200)
    assert warm.value < warm.history["value"][0]
    single = MatrixRegression(np.eye(4, dtype=np.float32).reshape(4, 2, 2), np.ones(4, dtype=np.float32))
    assert run(single, 1, max_iter=50, tol=1e-5).w.dtype == np.float32


@pytest.mark.parametrize("run", [svp, bfgd])
def test_wrong_arguments_are_refused(run):
    f, _ = planted()
    with pytest.raises(InvalidInputError, match="rank must be >= 0"):
        run(f, -1)
    with pytest.raises(InvalidInputError, match="about matrices"):
        run(LinearModel(np.eye(3), np.ones(3)), 1)
    with pytest.raises(InvalidInputError, match="w0 has shape"):
        run(f, 1, w0=np.zeros((2, 2)))


def test_other_misuses_are_refused():
    f, _ = planted()
    for smoothness in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InvalidInputError, match="smoothness must be a finite number > 0"):
            BFGD(smoothness)
    for step in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidInputError, match="step must be a finite number > 0"):
            svp(f, 1, step=step)
    with pytest.raises(CapabilityError, match="bounded rank"):
        minimize(LinearModel(np.eye(3), np.ones(3)), Sparsity(1), BFGD())

    class Blind(BaseObjective):
        shape, lower_bound = f.shape, 0.0
        zeros, predict, value, evaluate = f.zeros, f.predict, f.value, f.evaluate

    for run in (svp, bfgd):
        with pytest.raises(CapabilityError, match="curvature"):
            run(Blind(), 1)


def completion(storage):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    rows, cols = np.nonzero(rng.random(truth.shape) < 0.6)
    return MatrixCompletion(rows, cols, truth[rows, cols], shape=truth.shape, storage=storage), truth


COMPLETERS = {
    "svp": lambda f, **arguments: svp(f, 2, **arguments),
    "bfgd": lambda f, **arguments: bfgd(f, 2, **arguments),
    **{
        f"{variant}-{corrective}": lambda f, v=variant, c=corrective, **arguments: frank_wolfe(
            f, ball=NuclearBall(60.0), variant=v, corrective=c, **arguments
        )
        for variant in ("plain", "away", "pairwise")
        for corrective in (False, True)
    },
}


@slow_beyond(3)
@at_most(6)
@pytest.mark.parametrize("name", COMPLETERS)
def test_factored_points_are_dense_ones_in_other_clothes(name):
    (dense, _), (factored, _) = completion("dense"), completion("factored")
    one, other = (COMPLETERS[name](f, max_iter=8, tol=0.0) for f in (dense, factored))
    assert isinstance(one.w, np.ndarray)
    assert isinstance(other.w, FactoredMatrix)
    np.testing.assert_allclose(np.asarray(other.w), one.w, atol=1e-6)
    assert other.value == pytest.approx(one.value, rel=1e-6)
    assert one.value < one.history["value"][0]


def test_svp_completes_with_step_one_in_the_units_of_the_paper():
    f, truth = completion("dense")
    run = svp(f, 2)
    assert run.history["step"][0] == pytest.approx(f.y.size)
    assert run.converged
    np.testing.assert_allclose(run.w, truth, atol=1e-2)
