"""The design of ordered classes: the distances of a linear predictor from the thresholds of each example's class."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import as_double, move, namespace
from hardthresh.core.meter import Meter
from hardthresh.core.typing import Array

from .base import Design
from .dense import DenseDesign


class ThresholdDesign(Design):
    r"""The matrix :math:`[[-X, U], [-X, L]]`, stored as X and the thresholds above and below each example.

    A point is (w, t). Its predictions are :math:`t_y - x^\top w` for all examples, then :math:`t_{y-1} - x^\top w`; if
    an example has no such threshold, :math:`-x^\top w`.

    Parameters
    ----------
    design : Design
        X, shape (n, d).
    upper, lower : array, shape (n, q)
        U and L: a 1 where an example has a threshold.

    Notes
    -----
    Products cost what those of X cost, and nq numbers.
    """

    def __init__(self, design: Design, upper: Array, lower: Array) -> None:
        self._design, self._upper, self._lower = design, upper, lower
        self.stores_zeros, self.has_columns = design.stores_zeros, design.has_columns

    @classmethod
    def of(cls, design: Design, label: np.ndarray, n_classes: int) -> ThresholdDesign:
        """Return the design of examples of classes 0, 1, ..., n_classes - 1."""
        like, numbers = design.zeros(1), np.arange(n_classes - 1)
        xp = namespace(like)
        upper, lower = (
            xp.astype(move(1.0 * (level[:, None] == numbers), like), like.dtype) for level in (label, label - 1)
        )
        return cls(design, upper, lower)

    @property
    def data(self) -> Design:
        """X."""
        return self._design

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self._design.shape
        return (2 * n, d + self._upper.shape[1])

    def zeros(self, size: int) -> Array:
        return self._design.zeros(size)

    def predict(self, w: Array) -> Array:
        d = self._design.shape[1]
        u, t = self._design.predict(w[:d, ...]), w[d:, ...]
        return namespace(w).concat([self._upper @ t - u, self._lower @ t - u])

    def pullback(self, r: Array) -> Array:
        above, below = self._halves(r)
        thresholds = self._upper.T @ above + self._lower.T @ below
        return namespace(r).concat([-self._design.pullback(above + below), thresholds])

    def gram(self, weights: Array, other: Design | None = None) -> Array:
        right = self if other is None else other
        assert isinstance(right, ThresholdDesign)
        xp = namespace(weights)
        above, below = (half[:, None] for half in self._halves(weights))
        whole = self._design.gram(above[:, 0] + below[:, 0], None if right is self else right._design)
        corner = self._design.pullback(above * right._upper + below * right._lower)
        mirrored = corner if right is self else right._design.pullback(above * self._upper + below * self._lower)
        last = self._upper.T @ (above * right._upper) + self._lower.T @ (below * right._lower)
        rows = xp.concat([whole, -corner], axis=1)
        return xp.concat([rows, xp.concat([-mirrored.T, last], axis=1)], axis=0)

    def pullback_squares(self, r: Array, center: Array | None = None) -> Array:
        d = self._design.shape[1]
        center = self.zeros(self.shape[1]) if center is None else center
        above, below = self._halves(r)
        inner = self._design.pullback_squares(above + below, -center[:d])
        last = ((self._upper - center[d:]) ** 2).T @ above + ((self._lower - center[d:]) ** 2).T @ below
        return namespace(r).concat([inner, last])

    def squares_of_differences(self, r: Array) -> Array:
        """Return, for each column, the sum of r times the squares of the differences of the two rows of an example.

        They have no difference but in thresholds.
        """
        return namespace(r).concat([self.zeros(self._design.shape[1]), ((self._upper - self._lower) ** 2).T @ r])

    def columns(self, indices: Array) -> Design:
        d = self._design.shape[1]
        xp = namespace(indices)
        inner = indices[indices < d]
        rest = indices[indices >= d] - d
        some = (xp.take(half, rest, axis=1) for half in (self._upper, self._lower))
        return ThresholdDesign(self._design.columns(inner), *some)

    def rows(self, indices: Array | slice) -> Design:
        X = self.dense()
        return DenseDesign.of(X[indices, ...] if isinstance(indices, slice) else namespace(X).take(X, indices, axis=0))

    def dense(self) -> Array:
        X = -self._design.dense()
        xp = namespace(X)
        return xp.concat([xp.concat([X, half], axis=1) for half in (self._upper, self._lower)], axis=0)

    def double(self) -> Design:
        return ThresholdDesign(self._design.double(), as_double(self._upper), as_double(self._lower))

    def metered(self, meter: Meter, share: float = 1.0) -> Design:
        return ThresholdDesign(self._design.metered(meter, share), self._upper, self._lower)

    def moments(self, weights: Array) -> tuple[Array, Array]:
        xp = namespace(weights)
        total = xp.sum(weights)
        mean = self.pullback(weights) / total
        return mean, xp.sqrt(self.pullback_squares(weights, mean) / total)

    def _halves(self, r: Array) -> tuple[Array, Array]:
        n = self._design.shape[0]
        return r[:n, ...], r[n:, ...]
