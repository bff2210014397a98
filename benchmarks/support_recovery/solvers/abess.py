"""abess: splicing with a given number of non-zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from abess.linear import LinearRegression
from benchmark_utils.stopping_criterion import RunOnGridCriterion
from benchopt import BaseSolver


class Solver(BaseSolver):
    """`abess.linear.LinearRegression` with one thread and otherwise its defaults, without an intercept."""

    name = "abess"
    stopping_criterion = RunOnGridCriterion(grid=np.linspace(0, 0.1, 10))
    requirements = ["pip::abess"]  # noqa: RUF012

    def set_objective(self, X: Any, y: Any) -> None:
        """Take the data."""
        self.X, self.y = X, y

    def run(self, grid_value: float) -> None:
        """Fit the given share of the columns."""
        k = int(grid_value * self.X.shape[1])
        self.w = LinearRegression(support_size=k, fit_intercept=False, thread=1).fit(self.X, self.y).coef_

    def get_result(self) -> dict[str, Any]:
        """Return the coefficients."""
        return {"w": np.asarray(self.w)}
