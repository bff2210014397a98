"""A small model with an intercept, and the least value on some of its columns by a general optimiser."""

import numpy as np
from scipy.optimize import minimize as descend

from hardthresh.objectives import LinearModel


def problem(loss, *, l2=0.0, weights=None, n=60, d=7):
    """A model of standard columns with an intercept at the end, and targets drawn from two of them."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal((n, d)), np.ones(n)])
    X[:, 5] = X[:, 1] + 0.3 * X[:, 5]  # the closest substitute of column 1
    y = loss.example_target(0.6 * X[:, 1] - 0.5 * X[:, 3], rng)
    ridge = np.append(np.full(d, l2), 0.0)
    return LinearModel(X, y, loss, sample_weight=weights, l2=ridge)


def best(f, columns):
    """The least value on some columns, by a general optimiser."""
    small = f.columns(np.sort(np.array(columns)))

    def fun(v):
        at = small.evaluate(v)
        return at.value, at.gradient

    return descend(fun, np.zeros(len(columns)), jac=True, method="BFGS", options={"gtol": 1e-10}).fun
