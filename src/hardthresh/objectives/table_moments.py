"""The moments of a table in blocks, and the units that they give to the coordinates of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.designs.dense import deviations
from hardthresh.designs.standardized import scales

from .block_rows import NO_WEIGHT, Point, Scaled
from .readings import Sums

FAR = 8.0
"""Columns whose mean is more than so many of their scales from zero are centred before they are multiplied; see
`hardthresh.designs.standardized`."""


@dataclass(frozen=True, slots=True, eq=False)
class TableMoments:
    """The moments of a table.

    Attributes
    ----------
    n_rows : int
        Rows of positive weight.
    total : float
        Their weight.
    mean, deviation : array, shape (d,)
        Of the columns; the deviation of a constant one is 0.
    target_mean, target_variance : float, or array of shape (q,)
        Of the targets; of squared errors less the offset.
    crossed : array, shape (d,) or (d, q)
        The covariances of columns and targets.
    outside, rising, falling : float
        How many targets are outside of the domain, and the weight of those whose loss falls indefinitely as predictions
        grow, or fall.
    with_offset : bool
        Whether rows have an offset.
    """

    n_rows: int
    total: float
    mean: np.ndarray
    deviation: np.ndarray
    target_mean: Any
    target_variance: Any
    crossed: np.ndarray
    outside: int
    rising: float
    falling: float
    with_offset: bool

    @classmethod
    def of(cls, sums: Sequence[np.ndarray], shift: np.ndarray, level: Any, dtype: Any) -> TableMoments:
        """Return the moments from the sums of `moments`."""
        counts, targets, linear, squares, crossed = sums
        total = float(counts[1])
        if not total > 0:
            raise InvalidInputError(NO_WEIGHT)
        gap, target = linear / total, targets / total
        variance = squares / total - gap * gap
        covariance = crossed / total - np.multiply.outer(gap, target[0])
        return cls(
            round(float(counts[0])),
            total,
            shift + gap,
            deviations(shift + gap, variance, dtype),
            level + target[0],
            np.maximum(target[1] - target[0] ** 2, 0.0),
            covariance,
            round(float(counts[2])),
            float(counts[3]),
            float(counts[4]),
            bool(counts[5] > 0),
        )

    def attain_bound(self, l2: np.ndarray) -> bool:
        """Return whether every loss has a finite minimiser, or every coordinate a ridge."""
        return bool((l2 > 0).all()) or (self.rising == 0 and self.falling == 0)

    def about_zero(self) -> TableMoments:
        """Return second moments about zero instead of those about means, which are 0 then: of no intercept."""
        return replace(
            self,
            mean=np.zeros_like(self.mean),
            deviation=np.sqrt(self.deviation**2 + self.mean**2),
            target_mean=0.0,
            target_variance=self.target_variance + self.target_mean**2,
            crossed=self.crossed + self.mean * self.target_mean,
        )

    def is_coarse(self, shift: np.ndarray, level: Any, dtype: Any) -> bool:
        """Return whether a shift or a level is so far from a mean that a third of the digits of a variance is lost."""
        eps = float(np.finfo(np.float64).eps)
        gap, own = np.abs(self.mean - shift), np.abs(self.target_mean - level)
        columns = (self.deviation > 0) & (gap**2 > float(np.finfo(dtype).eps) ** (-1 / 3) * self.deviation**2)
        rounding = 64.0 * eps * np.abs(self.target_mean)  # of the mean of targets that are all the same
        targets = (own > rounding) & (own**2 > eps ** (-1 / 3) * self.target_variance)
        return bool(np.any(columns) or np.any(targets))


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    r"""The coordinates of a model of standardised columns, and the way from and to linear predictors of the data.

    Attributes
    ----------
    mean, inverse_scale : array, shape (d,)
        What is subtracted from the columns, and the factor afterwards; 0 for a constant column.
    squares : array, shape (d,)
        The mean squares of the standardised columns.
    intercept : bool
        Whether the last coordinate is an intercept.
    level : float, or array of shape (q,)
        The part of the intercept that is known, so that the coordinate is small.
    total : float
        The weight of all rows.
    dtype : dtype
        That of X, which points have.
    """

    mean: np.ndarray
    inverse_scale: np.ndarray
    squares: np.ndarray
    intercept: bool
    level: Any
    total: float
    dtype: Any

    @classmethod
    def of(cls, found: TableMoments, *, level: Any, intercept: bool, scale: bool, centre: bool, dtype: Any) -> Units:
        """Return the units that moments say, in the precision of X as those of tables in memory."""
        mean, inverse, _ = scales(found.mean.astype(dtype), found.deviation.astype(dtype), scale=scale, centre=centre)
        mean, inverse = mean.astype(np.float64), inverse.astype(np.float64)
        squares = (found.deviation**2 + (found.mean - mean) ** 2) * inverse**2
        return cls(mean, inverse, squares, intercept, level if intercept else 0.0, found.total, np.dtype(dtype))

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.mean.size + self.intercept

    @property
    def centre(self) -> np.ndarray | None:
        """What is subtracted from the columns before they are multiplied: None where all means are moderate."""
        return self.mean if bool(np.any(np.abs(self.mean) * self.inverse_scale > FAR)) else None

    def point(self, w: np.ndarray, level: float | None = None) -> Point:
        """Return the linear predictor of a point, or with another level that of a direction."""
        w = np.asarray(w, dtype=np.float64)
        d = self.mean.size
        coef = (w[:d].T * self.inverse_scale).T
        chosen = chosen_columns(coef)
        last = w[d] if self.intercept else np.zeros(w.shape[1:])
        return Point(chosen, self.mean[chosen], coef[chosen], (last + (self.level if level is None else level))[()])

    def coordinates(self, point: Point) -> np.ndarray:
        """Return the point that a linear predictor is: the inverse of `point`, in the precision of X."""
        w, d = np.zeros((self.size, *point.coef.shape[1:])), self.mean.size
        known = self.inverse_scale[point.columns] > 0
        index, coef = point.columns[known], point.coef[known]
        w[index] = (coef.T / self.inverse_scale[index]).T
        if self.intercept:
            w[d] = point.level - self.level + (self.mean[index] - point.centre[known]) @ coef
        return w.astype(self.dtype)

    def gradient(self, products: np.ndarray, slopes: Any, centre: np.ndarray | None) -> np.ndarray:
        """Return the gradient of the mean loss from the sums of `look`."""
        shift = self.mean if centre is None else self.mean - centre
        inner = ((products - np.multiply.outer(shift, slopes)).T * self.inverse_scale).T
        return (np.concatenate([inner, np.asarray(slopes)[None]]) if self.intercept else inner) / self.total

    def scaled(self, index: np.ndarray) -> Scaled:
        """Return some columns as the model has them; a constant one keeps its scale."""
        inverse = self.inverse_scale[index]
        return Scaled(index, self.mean[index], np.where(inverse > 0, inverse, 1.0))


def chosen_columns(coef: np.ndarray) -> np.ndarray:
    """Return the columns that have a coefficient, of one output or of several."""
    return np.flatnonzero(coef.any(axis=tuple(range(1, coef.ndim))))


@dataclass(frozen=True, slots=True, eq=False)
class PartSums:
    """The sums of `moments` over the rows of each fold.

    Attributes
    ----------
    sums : tuple of arrays
        The sums, each with a first axis of the folds.
    shift, level, dtype :
        As `TableMoments.of` takes them.
    """

    sums: Sums
    shift: np.ndarray
    level: Any
    dtype: Any

    def moments(self, some: Any) -> TableMoments:
        """Return the moments of the rows of some folds together."""
        return TableMoments.of([part[some].sum(axis=0) for part in self.sums], self.shift, self.level, self.dtype)
