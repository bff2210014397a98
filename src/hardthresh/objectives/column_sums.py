"""Moments of a few columns and of targets over some rows: what least squares needs to know of these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSums:
    """Moments of a few columns and of targets over some rows.

    Attributes
    ----------
    total : float
        The weight of the rows.
    mean, crossed : array, shape (m,)
        The means of the columns, and their covariances with the targets.
    covariance : array, shape (m, m)
        That of the columns.
    target_mean, target_variance : float
        Of the targets, less the offset.
    """

    total: float
    mean: np.ndarray
    covariance: np.ndarray
    crossed: np.ndarray
    target_mean: float
    target_variance: float

    def joined(self, other: ColumnSums) -> ColumnSums:
        """Return the moments over the rows of both (Chan, Golub and LeVeque 1983)."""
        total = self.total + other.total
        one, two = self.total / total, other.total / total
        gap, y_gap = other.mean - self.mean, other.target_mean - self.target_mean
        return ColumnSums(
            total,
            self.mean + two * gap,
            one * self.covariance + two * other.covariance + one * two * np.outer(gap, gap),
            one * self.crossed + two * other.crossed + one * two * gap * y_gap,
            self.target_mean + two * y_gap,
            one * self.target_variance + two * other.target_variance + one * two * y_gap * y_gap,
        )

    def errors(self, coefs: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Return the mean square errors of several linear predictors, shape (q,), of coefficients of shape (q, m)."""
        spread = np.einsum("qi,ij,qj->q", coefs, self.covariance, coefs)
        bias = self.target_mean - intercepts - coefs @ self.mean
        errors: np.ndarray = np.maximum(self.target_variance - 2.0 * coefs @ self.crossed + spread, 0.0) + bias * bias
        return errors

    def of_prediction(self, coef: np.ndarray, intercept: float) -> ColumnSums:
        """Return the same moments, of one linear predictor instead of the columns."""
        image = self.covariance @ coef
        return ColumnSums(
            self.total,
            np.array([intercept + coef @ self.mean]),
            np.array([[coef @ image]]),
            np.array([coef @ self.crossed]),
            self.target_mean,
            self.target_variance,
        )


def joined_moments(parts: Sequence[ColumnSums]) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the covariances of columns over the rows of all parts."""
    whole = reduce(ColumnSums.joined, parts)
    return whole.mean, whole.covariance
