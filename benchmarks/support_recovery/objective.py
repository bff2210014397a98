"""How much of a planted support is found: the contract of `benchmark_sparse_support_recovery`, written anew.

That benchmark (https://github.com/TheoGuyard/benchmark_sparse_support_recovery, Guyard) cannot be copied here; its
solvers get X and y, are run with the largest share of non-zeros, and return ``{"w": w}``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseObjective
from sklearn.metrics import f1_score


class Objective(BaseObjective):
    """The squared error of w, and how its support compares with that of the truth."""

    name = "Sparse support recovery"
    min_benchopt_version = "1.10"
    requirements = ["numpy", "pip::scikit-learn"]  # noqa: RUF012

    def set_data(self, X: Any, y: Any, w_true: Any = None) -> None:
        """Take what a dataset has made."""
        self.X, self.y, self.w_true = X, y, w_true

    def get_objective(self) -> dict[str, Any]:
        """Return what the solvers get."""
        return {"X": self.X, "y": self.y}

    def get_one_result(self) -> dict[str, Any]:
        """Return an answer that can be evaluated, for the tests of benchopt."""
        return {"w": np.zeros(self.X.shape[1])}

    def evaluate_result(self, w: Any) -> dict[str, float]:
        """Return the mean squared error and the number of non-zeros, and with the truth how much of it was found."""
        residual = self.y - self.X @ w
        figures = {"value": float(residual @ residual / residual.size), "n_nnz": int(np.count_nonzero(w))}
        if self.w_true is not None:
            true, found = self.w_true != 0, w != 0
            figures["tpr"] = float(np.mean(found[true]))
            figures["fpr"] = float(np.mean(found[~true]))
            figures["f1score"] = float(f1_score(true, found, zero_division=0.0))
            figures["error_w"] = float(np.linalg.norm(w - self.w_true) / np.linalg.norm(self.w_true))
        return figures
