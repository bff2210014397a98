"""The default search of models that are not least squares: what it must reach."""

import numpy as np
import pytest

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.losses import Cox
from hardthresh.objectives import LinearModel
from levels import at_most


def censored(seed, n=100, d=200, k=4):
    """Return Cox's model of times that depend on k of correlated columns."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    X = np.empty_like(Z)
    X[:, 0] = Z[:, 0]
    for j in range(1, d):
        X[:, j] = 0.8 * X[:, j - 1] + 0.6 * Z[:, j]
    coef = np.zeros(d)
    coef[rng.permutation(d)[:k]] = rng.choice([-0.6, 0.6], k)
    time, limit = rng.exponential(np.exp(-X @ coef)), rng.exponential(2.0, n)
    y = np.column_stack([np.minimum(time, limit), time <= limit])
    return LinearModel((X - X.mean(axis=0)) / X.std(axis=0), y, Cox("efron"), l2=1e-3)


@pytest.mark.slow
@at_most(2)
@pytest.mark.parametrize("seed", range(4))
def test_no_exchange_improves_a_default_answer(seed):
    """Nothing is proved by it, but searches that are not deep miss such exchanges."""
    f = censored(seed)
    found = minimize(f, Sparsity(4))
    chosen = found.support.indices
    for i in range(4):
        rest = np.delete(chosen, i)
        at = f.evaluate(minimize(f, Sparsity(0, free=tuple(rest.tolist()))).w)
        scores = 0.5 * at.gradient**2 / np.maximum(f.hessian_diag(at), 1e-12)
        for j in np.argsort(-scores)[:5]:
            other = minimize(f, Sparsity(0, free=tuple(sorted({*rest.tolist(), int(j)}))))
            assert other.value >= found.value - 1e-7
