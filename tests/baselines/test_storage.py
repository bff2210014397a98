"""Runs of the baselines can be stored and resumed, like all others."""

import numpy as np
import pytest

from hardthresh import load, minimize, save
from hardthresh.baselines import (
    BFGD,
    AdaptiveForwardBackward,
    ForwardGreedy,
    FrankWolfe,
    GroupBall,
    L1Ball,
    NuclearBall,
    Oblivious,
)
from hardthresh.constraints import Rank, Sparsity
from hardthresh.objectives import LinearModel, MatrixRegression

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 8))
VECTORS = LinearModel(X, X[:, :3] @ np.array([2.0, -1.0, 1.0]) + 0.1 * RNG.standard_normal(40))
MATRICES = MatrixRegression(RNG.standard_normal((40, 3, 2)), RNG.standard_normal(40))
RUNS = {
    "plain": (VECTORS, L1Ball(2.0), FrankWolfe()),
    "pairwise": (VECTORS, L1Ball(2.0), FrankWolfe("pairwise", corrective=True)),
    "groups": (VECTORS, GroupBall(("a", "b") * 4, 2.0), FrankWolfe("away")),
    "nuclear": (MATRICES, NuclearBall(0.5), FrankWolfe("away")),
    "omp": (VECTORS, Sparsity(4), ForwardGreedy()),
    "forward": (VECTORS, Sparsity(4), ForwardGreedy("decrease")),
    "oblivious": (VECTORS, Sparsity(4), Oblivious()),
    "foba": (VECTORS, Sparsity(4), AdaptiveForwardBackward()),
    "bfgd": (MATRICES, Rank(1), BFGD()),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_stored_run_goes_on(name, tmp_path):
    objective, constraint, solver = RUNS[name]
    straight = minimize(objective, constraint, solver, max_iter=6, tol=0.0)
    save(minimize(objective, constraint, solver, max_iter=2, tol=0.0), tmp_path / "run.json")
    stored = load(tmp_path / "run.json")
    rest = minimize(objective, constraint, solver, state=stored.state, max_iter=6, tol=0.0)
    np.testing.assert_array_equal(rest.w, straight.w)
    assert (rest.value, rest.n_iter, rest.status) == (straight.value, straight.n_iter, straight.status)
