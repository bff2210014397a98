"""The minimum of the pinball loss on few columns, from vertex to vertex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

_PIVOTS, _PIVOTS_PER_COLUMN = 1000, 100
"""Limits of the steps. From the end of a smoothed fit 0 to 20 lead to the minimum. Arbitrary."""
_ROUNDING = 1e-9
"""Multipliers, between tau - 1 and tau, that are out of range by less are so by rounding. Arbitrary."""
_INDEPENDENT = (1e-6, 1e-9, 1e-12)
"""Rows are independent if they differ from all combinations of others by more than the first share at which there are
as many as columns. Arbitrary."""
_RANK = 1e-10
"""Share of the largest singular value of the columns below which a singular value is zero. Arbitrary."""
_APART = 1e-11
"""Share of the largest residual by which targets are moved so that no vertices coincide. Far above rounding; the sum
of the losses changes by no larger share of its terms."""


@dataclass(frozen=True, slots=True)
class _Vertex:
    """A vertex of the smallest sum.

    Attributes
    ----------
    basis : array of int, shape (p,)
        The rows whose residuals are zero.
    inverse : array, shape (p, p)
        The inverse of these rows.
    multiplier : array, shape (n,)
        For each row a number from tau - 1 to tau, the slope of its loss, of which the weighted sum of all rows is zero.
    """

    basis: np.ndarray
    inverse: np.ndarray
    multiplier: np.ndarray


def minimise_pinball(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, quantile: float, start: np.ndarray, origin: np.ndarray
) -> np.ndarray | None:
    r"""Return the minimiser of a weighted sum of pinball losses of y - X w that is nearest to a point.

    .. math:: \min_w \sum_i s_i \max(\tau (y_i - x_i^\top w), (\tau - 1) (y_i - x_i^\top w))

    A vertex passes through as many targets as there are columns, its basis. If the multiplier of a row of the basis is
    out of range, the sum falls as its residual leaves zero; the step ends where another residual becomes zero from
    which on the sum would rise, and that row takes its place. At a minimum whose multipliers are at the ends of their
    range there are other minimisers, and the one nearest to the origin is returned.

    Parameters
    ----------
    X : array, shape (n, p)
        The columns, dependent or not.
    y : array, shape (n,)
        The targets.
    weights : array, shape (n,)
        The weights s > 0.
    quantile : float
        :math:`\tau`.
    start : array, shape (p,)
        A point near the minimum.
    origin : array, shape (p,)
        The point to which the minimiser is to be the nearest.

    Returns
    -------
    array, shape (p,), or None
        None if the limit of steps was reached.

    Notes
    -----
    The minimum where all targets are moved a little, so that no vertices coincide, is found first. It depends on the
    order of the rows, but the nearest minimiser does not, nor on whether rows are repeated or have weights. Cost:
    :math:`O(n p^2)`, and :math:`O(n p + n \log n + p^3)` for each vertex.

    References
    ----------
    I. Barrodale and F. D. K. Roberts (1973), *An improved algorithm for discrete l1 linear approximation*, SIAM Journal
    on Numerical Analysis 10. R. Koenker and V. d'Orey (1987), *Computing regression quantiles*, Applied Statistics 36.
    """
    directions = _row_space(X)
    Z, r, at = X @ directions, y - X @ origin, directions.T @ (start - origin)
    vertex = _lowest_vertex(Z, r, weights, quantile, at)
    return None if vertex is None else origin + directions @ _nearest(Z, r, quantile, vertex)


def _row_space(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the combinations of rows, shape (p, rank): the unit vectors if the rank is p."""
    _, sizes, vectors = np.linalg.svd(X, full_matrices=False)
    kept = sizes > _RANK * sizes[0]
    return np.eye(X.shape[1]) if kept.sum() == X.shape[1] else vectors[kept].T


def _lowest_vertex(
    Z: np.ndarray, r: np.ndarray, weights: np.ndarray, quantile: float, start: np.ndarray
) -> _Vertex | None:
    """Return a vertex of the smallest sum; None if the limit of steps was reached.

    Targets are moved apart, so that no vertices coincide and each step lowers the sum. A basis of the smallest sum of
    the moved targets is one of the given targets too.
    """
    size = float(np.max(np.abs(r), initial=0.0)) or 1.0
    r = r + _APART * size * np.random.default_rng(0).uniform(0.5, 1.0, r.size)
    basis = _basis(Z, r - Z @ start)
    if basis is None:
        return None
    outside = np.ones(r.size, dtype=bool)
    outside[basis] = False
    for _ in range(_PIVOTS + _PIVOTS_PER_COLUMN * basis.size):
        inverse = np.linalg.inv(Z[basis])
        left = np.where(outside, r - Z @ (inverse @ r[basis]), 0.0)
        multiplier = np.where(left > 0, quantile, quantile - 1.0)
        inside = -(weights * multiplier * outside) @ Z @ inverse / weights[basis]
        multiplier[basis] = inside
        above, below = inside - quantile, quantile - 1.0 - inside
        leaving = int(np.argmax(np.maximum(above, below) * weights[basis]))
        excess = max(above[leaving], below[leaving])
        if excess <= _ROUNDING:
            return _Vertex(basis, inverse, multiplier)
        direction = Z @ inverse[:, leaving] * (-1.0 if above[leaving] > 0 else 1.0)
        entering = _entering(left, direction, weights, outside, -weights[basis[leaving]] * excess)
        if entering is None:
            break
        outside[basis[leaving]], outside[entering] = True, False
        basis[leaving] = entering
    return None


def _basis(Z: np.ndarray, r: np.ndarray) -> np.ndarray | None:
    """Return independent rows of small residuals, as many as there are columns; None if rounding hides them."""
    p, order = Z.shape[1], np.argsort(np.abs(r), kind="stable").tolist()
    for share in _INDEPENDENT:
        basis, directions = list[int](), np.empty((0, p))
        for row in order:
            rest = Z[row] - directions.T @ (directions @ Z[row])
            size = float(np.linalg.norm(rest))
            if size > share * float(np.linalg.norm(Z[row])):
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


def _nearest(Z: np.ndarray, r: np.ndarray, quantile: float, vertex: _Vertex) -> np.ndarray:
    """Return the minimiser of the smallest norm.

    At every minimiser rows with a multiplier inside its range have no residual, and others none of the wrong sign.
    """
    multiplier, point = vertex.multiplier, vertex.inverse @ r[vertex.basis]
    high, low = multiplier >= quantile - _ROUNDING, multiplier <= quantile - 1.0 + _ROUNDING
    fixed = ~(high | low)
    if fixed.sum() == Z.shape[1]:
        return np.asarray(point)
    rest = np.linalg.svd(Z[fixed])[2][fixed.sum() :].T if fixed.any() else np.eye(Z.shape[1])
    base = point - rest @ (rest.T @ point)  # the nearest point of those that leave no residual where none may be
    sign = np.where(high, 1.0, -1.0)
    G, most = sign[:, None] * (Z @ rest), sign * (r - Z @ base)
    G[fixed] = most[fixed] = 0.0
    reach = 1e-12 * (float(np.max(np.abs(r), initial=0.0)) or 1.0)
    v, bounds = np.zeros(rest.shape[1]), list[int]()
    for _ in range(4 * Z.shape[1]):
        beyond = G @ v - most
        beyond[bounds] = -np.inf
        worst = int(np.argmax(beyond))
        if beyond[worst] <= reach:
            return np.asarray(base + rest @ v)
        bounds.append(worst)
        v = _least_norm(G[bounds], most[bounds])
    return np.asarray(point)


def _least_norm(G: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return the shortest v with G v <= most, by Lawson and Hanson's least distance programming (1974, Chapter 23)."""
    size = np.linalg.norm(G, axis=1)
    unit = float(np.max(np.abs(most) / size)) or 1.0
    G, most = G / size[:, None], most / size / unit
    target = np.append(np.zeros(G.shape[1]), 1.0)
    active = nnls(-np.vstack([G.T, most]), target)[0] > 0.0
    return np.asarray(unit * np.linalg.lstsq(G[active], most[active], rcond=None)[0])
