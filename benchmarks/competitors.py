"""The solvers, each called as its documentation tells a user to; a package that is not installed is said, not an error.

A competitor takes a problem and returns the chosen columns and, where it counts them, its data passes. Peers are used
through their installed packages only.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from instances import Problem
from sklearn.linear_model import OrthogonalMatchingPursuit

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel

Choice = tuple[Any, float | None]
Competitor = Callable[[Problem], Choice]

RIDGE = 1e-6
"""Of every logistic objective, so that separable classes have finite coefficients; the refit has the same."""


def competitors(problem: Problem) -> tuple[dict[str, Competitor], dict[str, str]]:
    """Return who takes part, ours first, and why the others do not."""
    there: dict[str, Competitor] = {"hardthresh.minimize": _minimize, "hardthresh estimator": _estimator}
    absent: dict[str, str] = {}
    if find_spec("abess") is None:
        absent["abess"] = "not installed (pip install abess)"
    else:
        there["abess"] = _abess
    if problem.loss == "squared":
        there["scikit-learn OMP"] = _omp
    else:
        absent["scikit-learn OMP"] = "least squares only"
    return there, absent


def _minimize(problem: Problem) -> Choice:
    X, d = problem.X, problem.X.shape[1]
    free: tuple[int, ...] = ()
    l2: Any = 0.0 if problem.loss == "squared" else RIDGE
    if problem.intercept:
        X, free, l2 = np.asfortranarray(np.column_stack([X, np.ones(X.shape[0])])), (d,), np.full(d + 1, RIDGE)
        l2[d] = 0.0
    model = LinearModel(X, problem.y, loss=problem.loss, l2=l2)
    result = ht.minimize(model, Sparsity(problem.k, free=free))
    return result.support[result.support < d], result.passes


def _estimator(problem: Problem) -> Choice:
    kind = ht.SparseLinearRegression if problem.loss == "squared" else ht.SparseLogisticRegression
    model = kind(n_nonzero_coefs=problem.k).fit(problem.X, problem.y)
    return model.support_, float(model.history_["passes"][-1])


def _abess(problem: Problem) -> Choice:
    from abess.linear import LinearRegression, LogisticRegression

    kind = LinearRegression if problem.loss == "squared" else LogisticRegression
    model = kind(support_size=problem.k, fit_intercept=problem.intercept, thread=1).fit(problem.X, problem.y)
    return np.flatnonzero(model.coef_), None


def _omp(problem: Problem) -> Choice:  # precompute=False: by default it forms all of X'X, far slower where d is large
    model = OrthogonalMatchingPursuit(n_nonzero_coefs=problem.k, fit_intercept=problem.intercept, precompute=False)
    return np.flatnonzero(model.fit(problem.X, problem.y).coef_), None
