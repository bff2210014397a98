"""abess: splicing for a fixed k, its own EBIC and its own cross-validation over the path."""

from __future__ import annotations

from typing import Any

import numpy as np
from abess.linear import LinearRegression, LogisticRegression, MultinomialRegression, MultiTaskRegression
from benchmark_utils.competitor import OUTPUTS, Competitor, everything
from benchmark_utils.problem import Problem

KINDS = {
    "squared": LinearRegression,
    "logistic": LogisticRegression,
    "multi_task": MultiTaskRegression,
    "multinomial": MultinomialRegression,
}


class Solver(Competitor):
    """`abess.linear` with one thread and otherwise its defaults."""

    name = "abess"
    distribution = "abess"
    requirements = ["pip::abess"]  # noqa: RUF012
    answers = everything("fixed", "path", "cv", "defaults") | everything("fixed", losses=OUTPUTS)
    takes_sparse = True

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        kind = KINDS[problem.loss]
        settings: dict[str, Any] = {
            "fixed": {"support_size": problem.k},
            "path": {"support_size": problem.budgets, "ic_type": "ebic"},
            "cv": {"support_size": problem.budgets, "cv": 5},
            "defaults": {"support_size": problem.budgets, "cv": 5},
        }[problem.question]
        model = kind(fit_intercept=problem.intercept, thread=1, **settings).fit(problem.X, problem.y)
        if problem.loss in OUTPUTS:
            return np.flatnonzero(np.any(np.asarray(model.coef_).reshape(problem.X.shape[1], -1) != 0, axis=1))
        return np.flatnonzero(model.coef_)
