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

RIDGE = {"squared": 0.1, "logistic": 0.025}
"""One of the ridges compared by default."""

KINDS = {
    ("fixed", "squared"): SparseLinearRegression,
    ("fixed", "logistic"): SparseLogisticRegression,
    ("cv", "squared"): SparseLinearRegressionCV,
    ("cv", "logistic"): SparseLogisticRegressionCV,
    ("defaults", "squared"): SparseLinearRegressionCV,
    ("defaults", "logistic"): SparseLogisticRegressionCV,
}


class Solver(Competitor):
    """The estimator for a fixed k, its CV twin where k is to be chosen: with one ridge, or with all of the default."""

    name = "hardthresh estimator"
    distribution = "hardthresh"
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    parameters = {"ridges": ["default", "one ridge"]}  # noqa: RUF012
    answers = everything("fixed", "cv", "defaults")
    takes_sparse = True

    def refusal(self, problem: Problem) -> str | None:
        """Return why this solver cannot be asked, or None."""
        if self.ridges == "one ridge" and problem.question != "defaults":
            return "one ridge is for the defaults"
        return super().refusal(problem)

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns and the passes counted."""
        kind = KINDS[problem.question, problem.loss]
        if problem.question == "fixed":
            model = kind(n_nonzero_coefs=problem.k)
        elif self.ridges == "one ridge":
            model = kind(alphas=RIDGE[problem.loss], averaging="none", cv=5)
        elif problem.question == "defaults":
            model = kind(cv=5)
        else:
            model = kind(n_nonzero_coefs=problem.budgets, cv=5)
        model.fit(problem.X, problem.y)
        return model.support_, float(model.history_["passes"][-1])
