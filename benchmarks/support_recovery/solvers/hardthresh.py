"""`hardthresh.minimize` on least squares with at most k non-zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.stopping_criterion import RunOnGridCriterion
from benchopt import BaseSolver

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, WorkingSet

SOLVERS = {"default": None, "thorough": WorkingSet(effort="thorough"), "iht": IHT()}


class Solver(BaseSolver):
    """The default solver, its most thorough effort, or plain iterative hard thresholding."""

    name = "hardthresh"
    stopping_criterion = RunOnGridCriterion(grid=np.linspace(0, 0.1, 10))
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    parameters = {"solver": ["default", "thorough", "iht"]}  # noqa: RUF012

    def set_objective(self, X: Any, y: Any) -> None:
        """Take the data."""
        self.model = LinearModel(X, y)

    def warm_up(self) -> None:
        """Load the solvers, which are imported on first use."""
        self.run_once(0)

    def run(self, grid_value: float) -> None:
        """Fit at most the given share of the columns."""
        k = int(grid_value * self.model.shape[0])
        self.w = ht.minimize(self.model, Sparsity(k), SOLVERS[self.solver]).w

    def get_result(self) -> dict[str, Any]:
        """Return the coefficients."""
        return {"w": self.w}
