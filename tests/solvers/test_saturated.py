"""Where a loss is saturated it has no curvature, and a Newton step leads anywhere: minima are found from there, too."""

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import AcceleratedIHT, HardThresholdingPursuit, WorkingSet


@pytest.mark.parametrize("factor", [-1000.0, -100.0, 100.0, 1000.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_warm_start_in_other_units_ends_where_a_cold_one_does(seed, factor):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 4))
    y = X[:, 0] + 0.7 * rng.standard_normal(40) > 0
    cold = ht.SparseLogisticRegression(n_nonzero_coefs=2).fit(X, y)
    warm = ht.SparseLogisticRegression(n_nonzero_coefs=2, warm_start=True).fit(X / factor, y).fit(X, y)
    assert warm.converged_
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-6)


@pytest.mark.parametrize("solver", [WorkingSet(), HardThresholdingPursuit(), AcceleratedIHT()], ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_offsets_that_say_the_contrary_are_overcome(seed, solver):
    """One column and an intercept, so that all solvers have the same minimum."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal(12), np.ones(12)])
    y = np.arange(12) % 2 * 1.0
    f = LinearModel(X, y, loss="logistic", l2=[1e-2, 0.0], offset=80.0 * rng.standard_normal(12))
    run = ht.minimize(f, Sparsity(1, free=(1,)), solver)
    at = f.evaluate(run.w)
    assert run.converged
    assert np.abs(at.gradient).max() < 1e-6
