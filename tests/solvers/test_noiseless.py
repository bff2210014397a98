"""On noiseless data f is tiny next to the targets that it is computed from: no decision may hang on its rounding."""

import numpy as np
import pytest

from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import (
    IHT,
    AcceleratedIHT,
    ConjugateIHT,
    HardThresholdingPursuit,
    NesterovMomentum,
    ProbabilisticIHT,
    WorkingSet,
    minimize,
)
from hardthresh.steps import Backtracking, BarzilaiBorwein, ExactLineSearch
from levels import at_most, reaches

SOLVERS = [
    IHT(),
    IHT(step=Backtracking()),
    IHT(step=BarzilaiBorwein()),
    IHT(step=ExactLineSearch()),
    AcceleratedIHT(),
    AcceleratedIHT(momentum=NesterovMomentum()),
    ConjugateIHT(),
    HardThresholdingPursuit(),
    ProbabilisticIHT(batch=None),
    WorkingSet(),
]


def data(seed, n=60, d=200, k=3):
    rng = np.random.default_rng((seed, n))
    w = np.zeros(d)
    w[rng.choice(d, k, replace=False)] = rng.standard_normal(k) + rng.choice([-1.0, 1.0], k)
    X = rng.standard_normal((n, d))
    return X, X @ w


@at_most(3)
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_the_order_of_the_rows_changes_no_number_of_iterations(solver, mean):
    """Sums in another order differ by rounding, as they do on another processor."""
    for seed in range(4 if reaches("pairs") else 1):
        X, y = data(seed)
        X = np.column_stack([X, np.ones(len(y))])
        counts = set()
        for order in range(4):
            rows = np.random.default_rng(order).permutation(len(y)) if order else np.arange(len(y))
            run = minimize(LinearModel(X[rows], y[rows] + mean), Sparsity(3, free=(200,)), solver, max_iter=400)
            counts.add((run.n_iter, run.status))
        assert len(counts) == 1, counts
