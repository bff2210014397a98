"""Orthogonal matching pursuit of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.stopping_criterion import RunOnGridCriterion
from benchopt import BaseSolver
from sklearn.linear_model import orthogonal_mp


class Solver(BaseSolver):
    """`orthogonal_mp` with a given number of non-zeros."""

    name = "omp"
    stopping_criterion = RunOnGridCriterion(grid=np.linspace(0, 0.1, 10))
    requirements = ["pip::scikit-learn"]  # noqa: RUF012

    def set_objective(self, X: Any, y: Any) -> None:
        """Take the data."""
        self.X, self.y = X, y

    def run(self, grid_value: float) -> None:
        """Fit the given share of the columns."""
        k = int(grid_value * self.X.shape[1])
        self.w = orthogonal_mp(self.X, self.y, n_nonzero_coefs=k) if k else np.zeros(self.X.shape[1])

    def get_result(self) -> dict[str, Any]:
        """Return the coefficients."""
        return {"w": self.w}
