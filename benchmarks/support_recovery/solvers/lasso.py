"""The Lasso of scikit-learn: the last model of its path that is small enough."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmark_utils.stopping_criterion import RunOnGridCriterion
from benchopt import BaseSolver
from sklearn.linear_model import lars_path


class Solver(BaseSolver):
    """The exact path, up to its first model with too many non-zeros; refitted without a penalty, or not."""

    name = "lasso"
    stopping_criterion = RunOnGridCriterion(grid=np.linspace(0, 0.1, 10))
    requirements = ["pip::scikit-learn"]  # noqa: RUF012
    parameters = {"refit": [False, True]}  # noqa: RUF012

    def set_objective(self, X: Any, y: Any) -> None:
        """Take the data."""
        self.X, self.y = X, y

    def run(self, grid_value: float) -> None:
        """Fit at most the given share of the columns."""
        k = int(grid_value * self.X.shape[1])
        steps = 1 if k == 0 else k + 1
        _, _, path = lars_path(self.X, self.y, method="lasso", max_iter=steps)
        while np.count_nonzero(path[:, -1]) <= k and path.shape[1] == steps + 1:  # columns have left the model
            steps *= 2
            _, _, path = lars_path(self.X, self.y, method="lasso", max_iter=steps)
        sizes = np.count_nonzero(path, axis=0)
        first = int(np.argmax(sizes > k)) if np.any(sizes > k) else sizes.size
        self.w = path[:, first - 1].copy()
        if self.refit:
            support = np.flatnonzero(self.w)
            self.w[support] = np.linalg.lstsq(self.X[:, support], self.y, rcond=None)[0]

    def get_result(self) -> dict[str, Any]:
        """Return the coefficients."""
        return {"w": self.w}
