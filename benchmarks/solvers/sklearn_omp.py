"""Orthogonal matching pursuit of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem
from sklearn.linear_model import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, orthogonal_mp


class Solver(Competitor):
    """Without the Gram matrix of all columns, which its default would form and which is far slower for many columns."""

    name = "scikit-learn OMP"
    distribution = "scikit-learn"
    requirements = ["pip::scikit-learn"]  # noqa: RUF012
    answers = everything("fixed", "path", "cv", losses=("squared",))

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        intercept = problem.intercept
        if problem.question == "path":
            return _path(problem)
        if problem.question == "fixed":
            model = OrthogonalMatchingPursuit(n_nonzero_coefs=problem.k, fit_intercept=intercept, precompute=False)
        else:
            model = OrthogonalMatchingPursuitCV(cv=5, max_iter=problem.largest, fit_intercept=intercept)
        return np.flatnonzero(model.fit(problem.X, problem.y).coef_)


def _path(problem: Problem) -> Any:
    """Return the columns of the path with the least EBIC: n log(RSS / n) + size (log n + 2 log d)."""
    X, y = problem.X, problem.y
    n, d = X.shape
    coefficients = orthogonal_mp(X, y, n_nonzero_coefs=problem.largest, return_path=True)
    residuals = y[:, None] - X @ coefficients
    sizes = np.arange(1, coefficients.shape[1] + 1)
    ebic = n * np.log((residuals**2).sum(axis=0) / n) + sizes * (np.log(n) + 2 * np.log(d))
    return np.flatnonzero(coefficients[:, np.argmin(ebic)])
