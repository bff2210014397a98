"""The estimators of hardthresh with nothing but the number of features: they standardise and fit an intercept."""

from __future__ import annotations

from typing import Any

from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem

from hardthresh import (
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
)

KINDS = {
    ("fixed", "squared"): SparseLinearRegression,
    ("fixed", "logistic"): SparseLogisticRegression,
    ("cv", "squared"): SparseLinearRegressionCV,
    ("cv", "logistic"): SparseLogisticRegressionCV,
}


class Solver(Competitor):
    """The estimator for a fixed k, its CV twin where k is to be chosen."""

    name = "hardthresh estimator"
    distribution = "hardthresh"
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    answers = everything("fixed", "cv")
    takes_sparse = True

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns and the passes counted."""
        kind = KINDS[problem.question, problem.loss]
        if problem.question == "fixed":
            model = kind(n_nonzero_coefs=problem.k)
        else:
            model = kind(n_nonzero_coefs=problem.budgets, cv=5)
        model.fit(problem.X, problem.y)
        return model.support_, float(model.history_["passes"][-1])
