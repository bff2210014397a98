"""The input of the compiled kernel for a mean loss on some columns."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf
from typing import Self

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.lazy import to_host_together
from hardthresh.designs import ThresholdDesign
from hardthresh.losses import Gamma, Huber, Logistic, NegativeBinomial, Ordinal, Poisson, SquaredHinge, Tweedie
from hardthresh.losses.base import PointwiseMean
from hardthresh.losses.mean import ScalarMeanLoss
from hardthresh.losses.ordinal import OrdinalMean
from hardthresh.objectives import LinearModel

KERNEL_LOSSES = (Logistic, Poisson, Gamma, NegativeBinomial, Tweedie, SquaredHinge, Huber, Ordinal)
"""The losses that the kernel knows, by their numbers there."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelModel:
    """A mean loss on some columns, as the kernel reads it.

    Thresholds of ordered classes, which are the last coefficients, are no columns here, and the examples are sorted by
    class: each has one row, not two, and the product of a column with a threshold is a sum over some examples.

    Attributes
    ----------
    loss : tuple of (int, float, array, array)
        Its number, its parameter or 0, the targets, and the weights, shape (n,).
    columns : array, shape (m, n)
        A row for each column, contiguous.
    examples : array, shape (n, m)
        A row for each example.
    offset : array, shape (n,), or None
        The known part of the predictions; None is zero.
    bound : float
        What no second derivative exceeds; infinite if there is no such number.
    n_thresholds : int
        How many coefficients follow those of the columns.
    """

    loss: tuple[int, float, np.ndarray, np.ndarray]
    columns: np.ndarray
    examples: np.ndarray
    offset: np.ndarray | None
    bound: float = inf
    n_thresholds: int = 0

    @classmethod
    def of(cls, columns: np.ndarray, mean_loss: ScalarMeanLoss, offset: np.ndarray | None) -> Self | None:
        """Return what the kernel is given of columns, one in each row; None if it does not know the loss on them.

        It knows ordered classes where all thresholds are there, as the last columns.
        """
        if isinstance(mean_loss, OrdinalMean):
            label, inner = mean_loss.label, columns.shape[0] - mean_loss.n_classes + 1
            thresholds = np.arange(mean_loss.n_classes - 1)[:, None]
            expected = np.concatenate([label == thresholds, label - 1 == thresholds], axis=1)
            every = inner >= 0 and np.array_equal(columns[inner:], expected)
            return cls._of_classes(columns[:inner, : label.size].T, mean_loss, offset) if every else None
        if not isinstance(mean_loss, PointwiseMean) or type(mean_loss.loss) not in KERNEL_LOSSES:
            return None
        loss = mean_loss.loss
        parameter = sum(float(getattr(loss, one.name)) for one in fields(loss))  # there is one at most
        known = (KERNEL_LOSSES.index(type(loss)), parameter, mean_loss.y, mean_loss.weights)
        return cls(known, np.ascontiguousarray(columns), columns.T, offset, float(loss.curvature_bound))

    @classmethod
    def of_model(cls, model: LinearModel, mean_loss: ScalarMeanLoss, offset: np.ndarray | None) -> Self | None:
        """Return what the kernel is given of a model; None if it does not know the loss, or not without a threshold.

        The mean loss and the offset are those of `numpy_loss`.
        """
        if not isinstance(mean_loss, OrdinalMean):
            return cls.of(double(model.design.dense()).T, mean_loss, offset)
        design, n_thresholds = model.design, mean_loss.n_classes - 1
        if not isinstance(design, ThresholdDesign) or design.shape[1] - design.data.shape[1] != n_thresholds:
            return None
        return cls._of_classes(-double(design.data.dense()), mean_loss, offset)

    @classmethod
    def _of_classes(cls, examples: np.ndarray, mean: OrdinalMean, offset: np.ndarray | None) -> Self:
        """Return the same of ordered classes, given minus the examples: predictions are thresholds less x'w."""
        order = np.argsort(mean.label, kind="stable")
        loss = (KERNEL_LOSSES.index(Ordinal), float(mean.n_classes), double(mean.label[order]), mean.weights[order])
        examples, offset = examples[order], None if offset is None else offset[order]
        return cls(loss, np.ascontiguousarray(examples.T), examples, offset, n_thresholds=mean.n_classes - 1)

    @property
    def n_examples(self) -> int:
        """The number of examples."""
        return int(self.columns.shape[1])

    def of_columns(self, places: np.ndarray) -> Self:
        """Return the same on some columns, by increasing place, the thresholds among them."""
        inner = places[: places.size - self.n_thresholds]
        columns = self.columns[inner]
        return replace(self, columns=columns, examples=columns.T)

    def predict(self, coef: np.ndarray) -> np.ndarray:
        """Return the predictions, before thresholds are added to them."""
        u: np.ndarray = coef[: self.columns.shape[0]] @ self.columns
        return u if self.offset is None else u + self.offset


def numpy_loss(model: LinearModel) -> tuple[ScalarMeanLoss, np.ndarray | None]:
    """Return the mean loss and the offset of a model, of contiguous arrays of float64."""
    offset = () if model.offset is None else (model.offset,)
    y, weights, *rest = (np.ascontiguousarray(double(x)) for x in to_host_together(model.y, model.weights, *offset))
    return model.loss.prepare(y, weights), rest[0] if rest else None
