"""Orthogonal matching pursuit of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem
from sklearn.linear_model import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV


class Solver(Competitor):
    """Without the Gram matrix of all columns, which its default would form and which is far slower for many columns."""

    name = "scikit-learn OMP"
    distribution = "scikit-learn"
    requirements = ["pip::scikit-learn"]  # noqa: RUF012
    answers = everything("fixed", "cv", losses=("squared",))

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        intercept = problem.intercept
        if problem.question == "fixed":
            model = OrthogonalMatchingPursuit(n_nonzero_coefs=problem.k, fit_intercept=intercept, precompute=False)
        else:
            model = OrthogonalMatchingPursuitCV(cv=5, max_iter=problem.largest, fit_intercept=intercept)
        return np.flatnonzero(model.fit(problem.X, problem.y).coef_)
