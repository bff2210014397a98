"""Small things whose points and supports are not those of `Sparsity`, so that the suites never rely on it.

They belong to the tests alone: supports that are arrays of *group* numbers, and an objective with hardly an ability,
of vectors and of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, sqrt
from typing import Any

import numpy as np

from hardthresh.arrays import gather, mask_of, namespace, top_k, union, where_true
from hardthresh.core import Constraint, Evaluation, InvalidInputError, Projection


@dataclass(frozen=True)
class Groups(Constraint):
    """At most k groups of coordinates; a support holds the increasing numbers of the groups, 0, 1, ..."""

    k: int
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(int(group) for group in self.groups))

    def check(self, shape):
        if tuple(shape) != (len(self.groups),):
            raise InvalidInputError(f"{len(self.groups)} group numbers do not fit points of shape {tuple(shape)}")

    def project(self, z):
        xp = namespace(z)
        size = xp.max(xp.abs(z))
        unit = z / xp.where(size > 0, size, xp.ones_like(size))
        chosen = top_k(self._sums(unit * unit), min(self.k, self._count))
        point = self.restrict(z, chosen)
        return Projection(point, where_true(self._sums(xp.abs(point)) > 0))

    def restrict(self, v, support):
        xp = namespace(v)
        return xp.where(gather(mask_of(support, self._count), self._numbers(v)), v, xp.zeros_like(v))

    def join(self, a, b):
        return union(a, b)

    def relax(self, factor):
        return replace(self, k=ceil(factor * self.k))

    def same(self, a, b):
        return bool(a.shape == b.shape and namespace(a, b).all(a == b))

    def is_full(self, support):
        return bool(support.shape[0] >= self.k)

    def indices(self, support):
        return where_true(gather(mask_of(support, self._count), self._numbers(support)))

    def reference_project(self, z):
        """Return the projection by trying every choice of groups."""
        best, best_distance = np.zeros_like(z), np.inf
        for chosen in combinations(range(self._count), min(self.k, self._count)):
            point = np.where(np.isin(self.groups, chosen), z, 0.0)
            distance = float(np.sum((z - point) ** 2))
            if distance < best_distance:
                best, best_distance = point, distance
        return Projection(best, np.unique(np.asarray(self.groups)[best != 0]))

    @property
    def _count(self) -> int:
        return max(self.groups) + 1

    def _numbers(self, like):
        return namespace(like).asarray(self.groups)

    def _sums(self, v):
        """The sum over each group."""
        xp = namespace(v)
        one_by_one = [xp.sum(xp.where(self._numbers(v) == group, v, 0 * v)) for group in range(self._count)]
        return xp.stack(one_by_one)


class LinearMap:
    """The mean squared residual of y = <A_i, w> for points of any shape: curvature, and no other ability."""

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


GROUPS = (2, 0, 1, 1, 0, 3, 3, 2, 0, 1, 4, 2)

TOYS: dict[str, dict[str, list[Any]]] = {
    "constraint": {
        "toy_groups": [Groups(2, GROUPS), Groups(1, GROUPS), Groups(9, GROUPS)],
    },
    "objective": {"toy_linear_map": _linear_maps()},
}
"""What the suites run on besides the registered examples, by kind and name."""
