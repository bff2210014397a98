"""Small things that belong to the tests alone: an objective that has curvature and nothing else."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from hardthresh.core import BaseObjective, Evaluation


class LinearMap(BaseObjective):
    """The mean squared residual of y = <A_i, w> for points of any shape: curvature, and nothing else."""

    lower_bound = 0.0

    def __init__(self, A: np.ndarray, y: np.ndarray, shape: tuple[int, ...]) -> None:
        self.A, self.y, self.shape = A, y, shape

    def zeros(self):
        return np.zeros(self.shape, dtype=self.A.dtype)

    def predict(self, w):
        return self.A @ w.ravel()

    def value(self, w, prediction=None):
        residual = (self.predict(w) if prediction is None else prediction) - self.y
        return float(np.mean(residual * residual)) / 2

    def evaluate(self, w, prediction=None):
        u = self.predict(w) if prediction is None else prediction
        return Evaluation(w, self.value(w, u), self._pull(u - self.y), u)

    def curvature(self, at, direction):
        return self._pull(self.predict(direction))

    def _pull(self, residual):
        return (self.A.T @ residual / self.y.size).reshape(self.shape)


def matrix_problem(d: int, rank: int, n: int, seed: int = 0) -> tuple[LinearMap, np.ndarray]:
    """A d x d truth of some rank seen through n Gaussian maps, noise variance 1/4: the objective and the truth."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d * d))
    U, V = rng.standard_normal((d, rank)), rng.standard_normal((d, rank))
    truth = U @ V.T / sqrt(d)
    y = A @ truth.ravel() + 0.5 * rng.standard_normal(n)
    return LinearMap(A, y, (d, d)), truth


def _linear_maps() -> list[LinearMap]:
    rng = np.random.default_rng(1)
    return [LinearMap(rng.standard_normal((30, 12)), rng.standard_normal(30), shape) for shape in ((12,), (4, 3))]


TOYS: dict[str, dict[str, list[Any]]] = {
    "objective": {"toy_linear_map": _linear_maps()},
}
"""What the suites run on besides the registered examples, by kind and name."""
