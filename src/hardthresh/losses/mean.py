"""The mean of a loss over given examples, as a function of their predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.arrays import double, move, namespace
from hardthresh.core.lazy import inner
from hardthresh.core.typing import Array
from hardthresh.designs import Design

from .contrasts import Contrasts


@dataclass(frozen=True, slots=True)
class InnerHessian:
    r"""The Hessian of a mean loss in the predictions, :math:`\mathrm{diag}(a) - M^\top M`; here M has no rows.

    Attributes
    ----------
    diagonal : array of the shape of the predictions
        a.
    """

    diagonal: Array

    def image(self, columns: np.ndarray) -> np.ndarray:
        """Return M times some columns, shape (m, s): here m = 0."""
        return columns[:0]

    def times(self, v: Array) -> Array:
        """Return the matrix times a vector of predictions."""
        return self.diagonal * v

    def along(self, v: Array) -> float:
        """Return v' times the matrix times v."""
        along: float = inner(self.diagonal * v, v)
        return along

    def gram(self, design: Design, other: Design | None = None) -> Array:
        """Return X' times the matrix times Z, for Z another design of the same rows (default: X)."""
        return design.gram(self.diagonal, other)

    def squares(self, design: Design) -> Array:
        """Return the diagonal of X' times the matrix times X, shape (d,)."""
        return design.pullback_squares(self.diagonal)


_BLOCK = 1 << 20
"""Entries of columns that are mapped by M at a time: 8 MB."""


@dataclass(frozen=True, slots=True)
class JointHessian(InnerHessian, ABC):
    """The Hessian of a mean loss that is no sum over predictions: M has rows."""

    @abstractmethod
    def image(self, columns: np.ndarray) -> np.ndarray:
        """Return M times some columns, shape (m, s)."""

    @abstractmethod
    def square_times(self, v: np.ndarray) -> np.ndarray:
        """Return M'M times a vector."""

    def times(self, v: Array) -> Array:
        return self.diagonal * v - alike(self.square_times(double(v)), v)

    def along(self, v: Array) -> float:
        plain = double(v)
        return float(double(self.diagonal) @ (plain * plain) - plain @ self.square_times(plain))

    def gram(self, design: Design, other: Design | None = None) -> Array:
        whole = design.gram(self.diagonal, other)
        left = self.image(double(design.dense()))
        right = left if other is None else self.image(double(other.dense()))
        return whole - alike(left.T @ right, whole)

    def squares(self, design: Design) -> Array:
        whole = design.pullback_squares(self.diagonal)
        n, d = design.shape
        size = max(1, _BLOCK // n)
        taken = np.empty(d)
        for start in range(0, d, size):
            some = np.arange(start, min(start + size, d))
            rows = self.image(double(design.columns(move(some, whole)).dense()))
            taken[some] = np.einsum("ij,ij->j", rows, rows)
        xp = namespace(whole)
        rest = whole - alike(taken, whole)
        return xp.where(rest > 0, rest, xp.zeros_like(rest))


def alike(x: np.ndarray, like: Array) -> Array:
    """Return an array in the library and precision of another one."""
    return namespace(like).astype(move(x, like), like.dtype)


class MeanLoss(ABC):
    """The weighted mean of a loss over given examples, as a function of their predictions."""

    lower_bound: float
    """A number that it never falls below."""

    share: float = 1.0
    """The share of the examples, by weight, that information criteria count."""

    @abstractmethod
    def value(self, u: Array) -> float:
        """Return the mean loss."""

    @abstractmethod
    def value_and_slopes(self, u: Array) -> tuple[float, Array]:
        """Return the mean loss, and its derivative in each prediction."""

    @abstractmethod
    def slopes(self, u: Array) -> Array:
        """Return the derivative in each prediction, to the last bit as `value_and_slopes`."""

    @abstractmethod
    def inner_hessian(self, u: Array) -> Any:
        """Return the second derivatives in the predictions, with the methods `times` and `along`."""

    def contrasts(self) -> Contrasts:
        """Return the functions of the predictions that tell where the mean decreases indefinitely: none by default."""
        return Contrasts(np.zeros(0), np.zeros(0, dtype=bool))

    @abstractmethod
    def terms(self, u: Array) -> float:
        """Return the sum of the sizes of the terms of the mean, and of slopes times predictions: what is rounded."""


class ScalarMeanLoss(MeanLoss):
    """A mean loss whose predictions are a vector."""

    @abstractmethod
    def inner_hessian(self, u: Array) -> InnerHessian:
        """Return the second derivatives in the predictions."""

    def bounding_hessian(self) -> InnerHessian | None:
        """Return second derivatives that those of no predictions exceed, or None if there are none, as by default."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class MeanOverExamples(MeanLoss):
    """The weighted mean of the losses of examples, each a function of its own predictions.

    Attributes
    ----------
    loss : Loss or VectorLoss
        The loss.
    y : array, shape (n,) or (n, q)
        The targets.
    weights : array, shape (n,)
        The weight of each example in the mean.
    """

    loss: Any
    y: Array
    weights: Array

    def value(self, u: Array) -> float:
        return self._mean(self.loss.value(self.y, u))

    def value_and_slopes(self, u: Array) -> tuple[float, Array]:
        losses, slopes = self.loss.value_and_gradient(self.y, u)
        return self._mean(losses), self._weighted(slopes)

    def slopes(self, u: Array) -> Array:
        return self._weighted(self.loss.gradient(self.y, u))

    def terms(self, u: Array) -> float:
        xp = namespace(u)
        losses, slopes = self.loss.value_and_gradient(self.y, u)
        changes = xp.abs(slopes * u)
        return self._mean(xp.abs(losses) + (changes if changes.ndim == 1 else xp.sum(changes, axis=1)))

    def _weighted(self, values: Array) -> Array:
        """Return the weight of each example times its values."""
        return (self.weights if values.ndim == 1 else self.weights[:, None]) * values

    def _mean(self, losses: Array) -> float:
        """Return the weighted mean of the losses of the examples."""
        mean: float = inner(self.weights, losses)
        return mean
