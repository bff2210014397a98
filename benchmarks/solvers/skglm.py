"""skglm: the minimax concave penalty along a path until k columns are in."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.competitor import Competitor, everything, largest
from benchmark_utils.problem import Problem
from skglm.estimators import MCPRegression


class Solver(Competitor):
    """The penalty shrinks by a tenth at a time, from a warm start; the k largest coefficients count."""

    name = "skglm MCP"
    distribution = "skglm"
    requirements = ["pip::skglm"]  # noqa: RUF012
    answers = everything("fixed", losses=("squared",))
    takes_sparse = True

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        model = MCPRegression(alpha=1.0, gamma=3.0, fit_intercept=problem.intercept, warm_start=True, tol=1e-5)
        alpha = np.abs(problem.X.T @ problem.y).max() / problem.y.size
        for _ in range(60):
            alpha *= 0.9
            model.alpha = alpha
            model.fit(problem.X, problem.y)
            if np.count_nonzero(model.coef_) >= problem.k:
                break
        return largest(model.coef_, problem.k)
