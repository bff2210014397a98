"""abess: splicing for a fixed k, its own EBIC and its own cross-validation over the path."""

from __future__ import annotations

from typing import Any

import numpy as np
from abess.linear import LinearRegression, LogisticRegression
from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem


class Solver(Competitor):
    """`abess.linear` with one thread and otherwise its defaults."""

    name = "abess"
    distribution = "abess"
    requirements = ["pip::abess"]  # noqa: RUF012
    answers = everything("fixed", "path", "cv", "defaults")
    takes_sparse = True

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        kind = LinearRegression if problem.loss == "squared" else LogisticRegression
        settings: dict[str, Any] = {
            "fixed": {"support_size": problem.k},
            "path": {"support_size": problem.budgets, "ic_type": "ebic"},
            "cv": {"support_size": problem.budgets, "cv": 5},
            "defaults": {"support_size": problem.budgets, "cv": 5},
        }[problem.question]
        model = kind(fit_intercept=problem.intercept, thread=1, **settings).fit(problem.X, problem.y)
        return np.flatnonzero(model.coef_)
