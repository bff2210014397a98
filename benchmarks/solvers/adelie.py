"""adelie: the Lasso path until k columns are in, or its own cross-validation."""

from __future__ import annotations

from typing import Any

import adelie
import numpy as np
from benchmark_utils.competitor import Competitor, everything, largest
from benchmark_utils.problem import Problem


class Solver(Competitor):
    """100 penalties down to a thousandth, left early when enough columns are in; the k largest coefficients count."""

    name = "adelie"
    distribution = "adelie"
    requirements = ["pip::adelie", "pip::numpy<2"]  # noqa: RUF012
    answers = everything("fixed") | everything("cv", losses=("squared",))

    def solve(self, problem: Problem) -> Any:
        """Return the chosen columns."""
        family = adelie.glm.gaussian if problem.loss == "squared" else adelie.glm.binomial
        settings = {"intercept": problem.intercept, "n_threads": 1, "progress_bar": False}
        if problem.question == "cv":
            chosen = adelie.cv_grpnet(problem.X, family(problem.y), n_folds=5, **settings)
            path = chosen.fit(problem.X, family(problem.y), **settings)
            return np.flatnonzero(path.betas[-1].toarray())
        path = adelie.grpnet(
            problem.X,
            family(problem.y),
            early_exit=True,
            min_ratio=1e-3,
            lmda_path_size=100,
            max_active_size=int(1.2 * problem.k) + 5,
            **settings,
        )
        betas = path.betas.toarray()
        enough = np.flatnonzero(np.count_nonzero(betas, axis=1) >= problem.k)
        return largest(betas[enough[0] if enough.size else -1], problem.k)
