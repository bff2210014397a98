"""celer: the Lasso along a path until k columns are in, or its own cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.competitor import Competitor, everything, largest
from benchmark_utils.problem import Problem
from celer import LassoCV, celer_path


class Solver(Competitor):
    """The penalty shrinks by a tenth at a time, from a warm start; the k largest coefficients count."""

    name = "celer"
    distribution = "celer"
    requirements = ["pip::celer"]  # noqa: RUF012
    answers = everything("fixed") | everything("cv", losses=("squared",))
    takes_sparse = True
    takes_intercept = False

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        if problem.question == "cv":
            return np.flatnonzero(
                LassoCV(cv=5, fit_intercept=False, n_jobs=1, tol=1e-4).fit(problem.X, problem.y).coef_
            )
        kind, y, scale = "lasso", problem.y, problem.y.size
        if problem.loss == "logistic":
            kind, y, scale = "logreg", np.where(problem.y > 0, 1.0, -1.0), 2.0
        alpha, w = np.abs(problem.X.T @ y).max() / scale, np.zeros(problem.X.shape[1])
        for _ in range(60):
            alpha *= 0.9
            w = celer_path(problem.X, y, kind, alphas=np.array([alpha]), coef_init=w, tol=1e-4)[1][:, 0]
            if np.count_nonzero(w) >= problem.k:
                break
        return largest(w, problem.k)
