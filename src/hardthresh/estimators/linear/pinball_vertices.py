"""The minimum of the pinball loss on few columns, from vertex to vertex."""

from __future__ import annotations

import numpy as np

_PIVOTS = 1000
"""Limit of the steps. From the end of a smoothed fit 0 to 20 lead to the minimum."""
_ROUNDING, _INDEPENDENT = 1e-9, 1e-6
"""Multipliers, between tau - 1 and tau, that are out of range by less are so by rounding; and rows are independent if
they differ from all combinations of others by more than this share. Arbitrary."""


def descend_vertices(X: np.ndarray, r: np.ndarray, weights: np.ndarray, quantile: float) -> np.ndarray:
    r"""Return the step w that minimises a weighted sum of pinball losses of r - X w, from a start close to it.

    .. math:: \min_w \sum_i s_i \max(\tau (r_i - x_i^\top w), (\tau - 1) (r_i - x_i^\top w))

    A vertex passes through as many targets as there are columns, its basis. If the multiplier of a row of the basis is
    out of range, the sum falls as its residual leaves zero; the step ends where another residual becomes zero from
    which on the sum would rise, and that row takes its place.

    Parameters
    ----------
    X : array, shape (n, p)
        The columns.
    r : array, shape (n,)
        The residuals at the start.
    weights : array, shape (n,)
        The weights s > 0.
    quantile : float
        :math:`\tau`.

    Returns
    -------
    array, shape (p,)
        The step to the last vertex; zero if the rows near the start have no basis, as those of columns that depend on
        each other. It is the minimum unless vertices coincide, as where several targets are equal.

    Notes
    -----
    Cost: O(n p + p^3) for each vertex.

    References
    ----------
    I. Barrodale and F. D. K. Roberts (1973), *An improved algorithm for discrete l1 linear approximation*, SIAM Journal
    on Numerical Analysis 10. R. Koenker and V. d'Orey (1987), *Computing regression quantiles*, Applied Statistics 36.
    """
    basis = _basis(X, r)
    if basis is None:
        return np.zeros(X.shape[1])
    outside = np.ones(r.size, dtype=bool)
    outside[basis] = False
    best, best_w = np.inf, np.zeros(X.shape[1])
    for _ in range(_PIVOTS):
        inverse = np.linalg.inv(X[basis])
        w = np.asarray(inverse @ r[basis])
        left = np.where(outside, r - X @ w, 0.0)
        value = float(weights @ np.where(left > 0, quantile * left, (quantile - 1.0) * left))
        if not value < best:
            break
        best, best_w = value, w
        slopes = weights * np.where(left > 0, quantile, quantile - 1.0) * outside
        multiplier = -(slopes @ X @ inverse) / weights[basis]
        above, below = multiplier - quantile, quantile - 1.0 - multiplier
        leaving = int(np.argmax(np.maximum(above, below) * weights[basis]))
        if max(above[leaving], below[leaving]) <= _ROUNDING:
            break
        direction = X @ inverse[:, leaving] * (-1.0 if above[leaving] > 0 else 1.0)
        slope = -weights[basis[leaving]] * max(above[leaving], below[leaving])
        entering = _entering(left, direction, weights, outside, slope)
        if entering is None:
            break
        outside[basis[leaving]], outside[entering] = True, False
        basis[leaving] = entering
    return best_w


def _basis(X: np.ndarray, r: np.ndarray) -> np.ndarray | None:
    """Return independent rows of small residuals, as many as there are columns; None if few rows have none."""
    p = X.shape[1]
    basis: list[int] = []
    directions = np.empty((0, p))
    for row in np.argsort(np.abs(r), kind="stable")[: 10 * p + 100].tolist():
        rest = X[row] - directions.T @ (directions @ X[row])
        size = float(np.linalg.norm(rest))
        if size > _INDEPENDENT * float(np.linalg.norm(X[row])):
            basis.append(row)
            directions = np.vstack([directions, rest / size])
            if len(basis) == p:
                return np.array(basis)
    return None


def _entering(
    left: np.ndarray, direction: np.ndarray, weights: np.ndarray, outside: np.ndarray, slope: float
) -> int | None:
    """Return the row at whose zero residual the slope along a direction stops being negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(outside & (direction != 0.0), left / direction, -1.0)
    ahead = np.flatnonzero(length > 0.0)
    ahead = ahead[np.argsort(length[ahead], kind="stable")]
    reached = np.flatnonzero(slope + np.cumsum(weights[ahead] * np.abs(direction[ahead])) >= 0.0)
    return int(ahead[reached[0]]) if reached.size else None
