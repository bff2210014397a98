"""The Lasso of scikit-learn, chosen by cross-validation; it has no number of columns to be given."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.competitor import Competitor, everything
from benchmark_utils.problem import Problem
from sklearn.linear_model import LassoCV


class Solver(Competitor):
    """`LassoCV` with five folds."""

    name = "scikit-learn Lasso"
    distribution = "scikit-learn"
    requirements = ["pip::scikit-learn"]  # noqa: RUF012
    test_config = {"objective": {"question": "cv"}}  # noqa: RUF012
    answers = everything("cv", losses=("squared",))

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        model = LassoCV(cv=5, fit_intercept=problem.intercept, n_jobs=1).fit(problem.X, problem.y)
        return np.flatnonzero(model.coef_)
