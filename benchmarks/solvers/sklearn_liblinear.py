"""The L1 logistic regression of scikit-learn (liblinear), along a path until k columns are in."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.competitor import Competitor, everything, largest
from benchmark_utils.problem import Problem
from sklearn.linear_model import LogisticRegression


class Solver(Competitor):
    """C grows by a quarter at a time; the k largest coefficients count."""

    name = "scikit-learn L1"
    distribution = "scikit-learn"
    requirements = ["pip::scikit-learn"]  # noqa: RUF012
    test_config = {"dataset": {"name": "logistic"}}  # noqa: RUF012
    answers = everything("fixed", losses=("logistic",))
    takes_sparse = True

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        X = problem.X.tocsr() if problem.is_sparse else problem.X
        C = 2.0 / np.abs(problem.X.T @ (problem.y - 0.5)).max()
        for _ in range(40):
            C *= 1.25
            model = LogisticRegression(
                l1_ratio=1.0, solver="liblinear", C=C, fit_intercept=problem.intercept, tol=1e-3
            ).fit(X, problem.y)
            if np.count_nonzero(model.coef_) >= problem.k:
                break
        return largest(model.coef_, problem.k)
