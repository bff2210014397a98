"""The middle matrix of sandwich estimates of the covariance, for robust standard errors."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from hardthresh.core.checking import without_overflow_warnings

from .block_rows import Point, Scaled, rows_of
from .readings import Sums

_ALONE = float(np.sqrt(np.finfo(np.float64).eps))
"""A row whose leverage is within this of 1 is fitted exactly: half of the digits are for rounding of the inverse."""


def squared_effects(
    X: np.ndarray, slopes: np.ndarray, curvatures: np.ndarray, repeated: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each coefficient the sum of the squares of what leaving out one row changes it by, to first order.

    Parameters
    ----------
    X : array, shape (n, s)
        Rows.
    slopes, curvatures : array, shape (n,)
        The derivatives of their weighted losses.
    repeated : array, shape (n,)
        How often each row is repeated.
    inverse : array, shape (s, s)
        The inverse of the Hessian of f over all rows.

    Returns
    -------
    squares : array, shape (s,)
    decided : array of bool, shape (s,)
        Whether one of the rows alone determines the coefficient.
    """
    solved = X @ inverse
    curvatures = np.maximum(curvatures, 0.0) / repeated
    kept = 1.0 - curvatures * np.sum(solved * X, axis=1)
    alone = kept <= _ALONE
    lengths = np.sqrt(np.maximum(np.diagonal(inverse), 0.0))
    decided = np.any(np.abs(solved[alone]) * np.sqrt(curvatures[alone])[:, None] > _ALONE * lengths, axis=0)
    scores = slopes / np.where(alone, inf, np.sqrt(repeated) * kept)
    return np.sum((scores[:, None] * solved) ** 2, axis=0), decided


@without_overflow_warnings
def sandwich(
    X: Any,
    y: Any,
    weight: Any,
    offset: Any,
    columns: Scaled,
    with_ones: bool,
    point: Point,
    loss: Any,
    total: float,
    frequency: bool,
    inverse: np.ndarray,
) -> Sums:
    """Return the `squared_effects` of the rows of a block.

    Parameters
    ----------
    X, y, weight, offset :
        A block.
    columns : Scaled
        The coordinates of the support, but for the intercept.
    with_ones : bool
        Whether the last coordinate is an intercept.
    point : Point
        The point.
    loss : Loss
        The loss.
    total : float
        The weight of all rows of the table.
    frequency : bool
        Whether weights say how often rows are repeated.
    inverse : array, shape (s, s)
        The inverse of the Hessian of f.

    Returns
    -------
    squares : array, shape (s,)
    decided : array, shape (s,)
        How many parts of the block have a row that alone determines the coefficient.
    """
    squares, decided = np.zeros(inverse.shape[0]), np.zeros(inverse.shape[0])
    for rows in rows_of(X, y, weight, offset):
        u, share = point.predict(rows.X, rows.offset), rows.weight / total
        Z = np.asarray(columns.of(rows.X), dtype=np.float64)
        own, alone = squared_effects(
            np.column_stack([Z, np.ones(u.size)]) if with_ones else Z,
            share * loss.gradient(rows.y, u),
            share * loss.curvature(rows.y, u),
            rows.weight if frequency else np.ones(u.size),
            inverse,
        )
        squares += own
        decided += alone
    return squares, decided
