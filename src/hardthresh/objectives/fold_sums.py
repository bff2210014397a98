"""Models of tables in blocks with separate sums for the rows of each fold of a cross-validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hardthresh.core.meter import Meter
from hardthresh.designs.engine import Engine
from hardthresh.losses import Loss, Squared

from .block_folds import BlockFolds, look_by_fold
from .column_sums import ColumnSums, joined_moments
from .table_moments import TableMoments, Units


class ColumnSumsByFold(ABC):
    """Base of the models that know the moments of columns over the rows of each fold."""

    folds: BlockFolds

    @abstractmethod
    def sums_of(self, part: int, columns: np.ndarray) -> list[ColumnSums]:
        """Return the moments of some columns, as they are in the data, and of each output over the rows of a fold."""

    def column_moments(self, columns: np.ndarray, left_out: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Return means and covariances of some columns, as they are in the data, over all rows but those of a fold."""
        parts = [self.sums_of(part, columns)[0] for part in range(self.folds.count) if part != left_out]
        return joined_moments(parts)


class SumsByFold(ColumnSumsByFold):
    """Base of the models of one output that know products of columns over the rows of each fold, or read them."""

    engine: Engine
    loss: Loss
    units: Units
    parts: Sequence[TableMoments]
    _meter: Meter

    def part_moments(self, centred: bool) -> list[TableMoments]:
        """Return the moments of the rows of each fold, of targets less what `units.level` says is known.

        Parameters
        ----------
        centred : bool
            Whether they are about means, or about zero.
        """
        level = self.units.level if self.loss.quadratic else 0.0
        parts = [replace(part, target_mean=part.target_mean - level) for part in self.parts]
        return parts if centred else [part.about_zero() for part in parts]

    def part_products(self, every: np.ndarray, columns: np.ndarray, centred: bool) -> np.ndarray:
        """Return the mean products of some columns over the rows of each fold, shape (n_folds, m, m).

        Parameters
        ----------
        every : array of int
            The columns that are asked about next, these among them: one reading for all that are new.
        columns : array of int, shape (m,)
            The columns.
        centred : bool
            Whether columns are centred by their means over these rows.
        """
        products = self._part_products(every, columns)
        inner, mean = products[:, :-1, :-1], products[:, :-1, -1]
        return inner - mean[:, :, None] * mean[:, None, :] if centred else inner

    @abstractmethod
    def _part_products(self, every: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the mean products of some columns, and of ones, last, over the rows of each fold."""

    def residual_products(self, points: Sequence[tuple[np.ndarray, float]], left_out: np.ndarray) -> np.ndarray:
        r"""Return :math:`X^\top (y - u)` of several points, shape (q, d): one reading.

        Parameters
        ----------
        points : sequence of (array, shape (d,), and float)
            Coefficients of the coordinates of columns, and the intercept of the targets of `part_moments`.
        left_out : array of int, shape (q,)
            The fold whose rows do not count for a point; -1 where all do.
        """
        units, level = self.units, self.units.level if self.loss.quadratic else 0.0
        linear = [units.point(w, level=last + level) for w, last in points]
        looked = self.engine.sweep(look_by_fold, *self.folds.arguments, linear, left_out, Squared(), units.centre)
        self._meter.add(len(points) + sum(point.columns.size for point in linear) / units.size)
        _, _, slopes, products = looked
        found = [units.gradient(products[:, i], slopes[i], units.centre) for i in range(len(points))]
        return -units.total * np.stack(found)[:, : units.mean.size]

    def sums_of(self, part: int, columns: np.ndarray) -> list[ColumnSums]:
        """Return the moments of some columns, as they are in the data, and of the one output over a fold's rows."""
        found, scale = self.parts[part], self.units.inverse_scale[columns]
        known = np.where(scale > 0, scale, 1.0)
        covariance = self.part_products(columns, columns, True)[part] / np.outer(known, known)
        targets = float(found.target_mean), float(found.target_variance)
        return [ColumnSums(found.total, found.mean[columns], covariance, found.crossed[columns], *targets)]
