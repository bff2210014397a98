"""The objective of the benchmark: how good a choice of columns is."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils import refit
from benchmark_utils.bases import BaseObjective
from benchmark_utils.problem import Problem


class Objective(BaseObjective):
    """The best k columns for a linear model, with k given, or chosen by EBIC or by cross-validation."""

    name = "best subset"
    min_benchopt_version = "1.6"
    requirements = ["numpy", "scipy"]  # noqa: RUF012
    sampling_strategy = "run_once"
    test_dataset_name = "least_squares"
    parameters = {"question": ["fixed", "path", "cv", "defaults"]}  # noqa: RUF012

    def set_data(self, truth: Any = None, **data: Any) -> None:
        """Take what a dataset has made."""
        self.problem = Problem(question=self.question, **data)
        self.truth = truth

    def get_objective(self) -> dict[str, Any]:
        """Return what the solvers get."""
        return {"problem": self.problem}

    def evaluate_result(self, support: Any, passes: float | None = None) -> dict[str, float]:
        """Return the refitted objective, and how much of the truth was found where it is known."""
        figures = {"value": refit.objective(self.problem, support), "size": len(support)}
        if passes is not None:
            figures["passes"] = passes
        if self.truth is not None:
            figures["f1"], figures["recall"] = refit.f1(support, self.truth), refit.recall(support, self.truth)
        return figures

    def get_one_result(self) -> dict[str, Any]:
        """Return an answer that can be evaluated, for the tests of benchopt."""
        return {"support": np.arange(self.problem.k)}
