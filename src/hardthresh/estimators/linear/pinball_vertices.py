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
"""Share of the largest singular value of the columns below which a singular value is zero: of the rows themselves, not
of products of columns, as `hardthresh.arrays.linalg.DEPENDENT` is, whose root is 3e-5. Arbitrary."""
_APART = 1e-11
"""Share of the largest residual by which targets are moved so that no vertices coincide. Far above rounding; the sum
of the losses changes by no larger share of its terms."""
_BARRIER = 2.0
"""The weight of a bound, in units of the sum of all weights. Above 1 a step back to the bound always lowers the sum."""


@dataclass(frozen=True, slots=True)
class PinballMinimum:
    """A minimum of a weighted sum of pinball losses.

    Attributes
    ----------
    point : array, shape (p,)
        The minimiser.
    multiplier : array, shape (n,)
        For each row a slope of its loss, from tau - 1 to tau. The weighted sum of the rows times these is zero for each
        column that is at no bound.
    """

    point: np.ndarray
    multiplier: np.ndarray


@dataclass(frozen=True, slots=True)
class _Rows:
    """A sum over rows of weights s times max(low r, high r) with the residuals r - Z w.

    Attributes
    ----------
    Z : array, shape (n, p)
        The columns.
    r : array, shape (n,)
        The residuals at zero.
    weights, low, high : array, shape (n,)
        The weights, and the slopes of the losses of negative and of positive residuals.
    size : float
        The size of the residuals, to compare rounding with.
    """

    Z: np.ndarray
    r: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray
    size: float


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
        For each row the slope of its loss, of which the weighted sum of all rows is zero.
    """

    basis: np.ndarray
    inverse: np.ndarray
    multiplier: np.ndarray


def minimise_pinball(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    quantile: float,
    start: np.ndarray,
    origin: np.ndarray,
    bounds: np.ndarray | None = None,
) -> PinballMinimum | None:
    r"""Return the minimum of a weighted sum of pinball losses of y - X w that is nearest to a point.

    .. math:: \min_{l \le w \le u} \sum_i s_i \max(\tau (y_i - x_i^\top w), (\tau - 1) (y_i - x_i^\top w))

    A vertex passes through as many targets as there are columns, its basis. If the multiplier of a row of the basis is
    out of range, the sum falls as its residual leaves zero; the step ends where another residual becomes zero from
    which on the sum would rise, and that row takes its place. At a minimum whose multipliers are at the ends of their
    range there are other minimisers, and the one nearest to the origin is returned. A bound is one more row, whose loss
    is zero on one side and so steep on the other that no minimum is there.

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
        The point to which the minimiser is to be the nearest. It is within the bounds.
    bounds : array, shape (2, p), optional
        The lower bounds l and the upper bounds u, infinite where there is none.

    Returns
    -------
    PinballMinimum or None
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
    n, p = X.shape
    lower, upper = np.full((2, p), [[-np.inf], [np.inf]]) if bounds is None else bounds
    limits = np.concatenate([lower, upper])
    bounded = np.flatnonzero(np.isfinite(limits))
    limits, column, is_upper = limits[bounded], bounded % p, bounded >= p
    reach = np.abs(X).T @ weights / weights.sum()
    walls = np.diag(np.where(reach > 0.0, reach, 1.0))[column]  # in the units of the targets
    r = y - X @ origin
    every = np.vstack([X, walls])
    directions = _row_space(every)
    rows = _Rows(
        every @ directions,
        np.concatenate([r, walls[np.arange(column.size), column] * (limits - origin[column])]),
        np.concatenate([weights, np.full(column.size, _BARRIER * weights.sum())]),
        np.concatenate([np.full(n, quantile - 1.0), np.where(is_upper, -1.0, 0.0)]),
        np.concatenate([np.full(n, quantile), np.where(is_upper, 0.0, 1.0)]),
        float(np.max(np.abs(r), initial=0.0)) or 1.0,
    )
    vertex = _lowest_vertex(rows, directions.T @ (start - origin))
    if vertex is None:
        return None
    point = np.clip(origin + directions @ _nearest(rows, vertex), lower, upper)
    at_bound = _fixed(rows, vertex)[n:]
    point[column[at_bound]] = limits[at_bound]
    return PinballMinimum(point, vertex.multiplier[:n])


def _row_space(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the combinations of rows, shape (p, rank): the unit vectors if the rank is p."""
    _, sizes, vectors = np.linalg.svd(X, full_matrices=False)
    kept = sizes > _RANK * sizes[0]
    return np.eye(X.shape[1]) if kept.sum() == X.shape[1] else vectors[kept].T


def _lowest_vertex(rows: _Rows, start: np.ndarray) -> _Vertex | None:
    """Return a vertex of the smallest sum; None if the limit of steps was reached.

    Targets are moved apart, so that no vertices coincide and each step lowers the sum. A basis of the smallest sum of
    the moved targets is one of the given targets too.
    """
    Z, weights = rows.Z, rows.weights
    r = rows.r + _APART * rows.size * np.random.default_rng(0).uniform(0.5, 1.0, rows.r.size)
    basis = _basis(Z, r - Z @ start)
    if basis is None:
        return None
    outside = np.ones(r.size, dtype=bool)
    outside[basis] = False
    steepness = weights * (rows.high - rows.low)
    for _ in range(_PIVOTS + _PIVOTS_PER_COLUMN * basis.size):
        inverse = np.linalg.inv(Z[basis])
        left = np.where(outside, r - Z @ (inverse @ r[basis]), 0.0)
        multiplier = np.where(left > 0, rows.high, rows.low)
        inside = -(weights * multiplier * outside) @ Z @ inverse / weights[basis]
        multiplier[basis] = inside
        above, below = inside - rows.high[basis], rows.low[basis] - inside
        leaving = int(np.argmax(np.maximum(above, below) * weights[basis]))
        excess = max(above[leaving], below[leaving])
        if excess <= _ROUNDING:
            return _Vertex(basis, inverse, multiplier)
        direction = Z @ inverse[:, leaving] * (-1.0 if above[leaving] > 0 else 1.0)
        entering = _entering(left, direction, steepness, outside, -weights[basis[leaving]] * excess)
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
    left: np.ndarray, direction: np.ndarray, steepness: np.ndarray, outside: np.ndarray, slope: float
) -> int | None:
    """Return the row at whose zero residual the slope along a direction stops being negative.

    As its residual changes sign, the slope of a row changes by its steepness.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(outside & (direction != 0.0), left / direction, -1.0)
    ahead = np.flatnonzero(length > 0.0)
    ahead = ahead[np.argsort(length[ahead], kind="stable")]
    reached = np.flatnonzero(slope + np.cumsum(steepness[ahead] * np.abs(direction[ahead])) >= 0.0)
    return int(ahead[reached[0]]) if reached.size else None


def _ends(rows: _Rows, vertex: _Vertex) -> tuple[np.ndarray, np.ndarray]:
    """Return which multipliers are at the upper, and which at the lower end of their range."""
    return vertex.multiplier >= rows.high - _ROUNDING, vertex.multiplier <= rows.low + _ROUNDING


def _fixed(rows: _Rows, vertex: _Vertex) -> np.ndarray:
    """Return which rows have no residual at any minimiser: those with a multiplier inside its range."""
    high, low = _ends(rows, vertex)
    return np.asarray(~(high | low))


def _nearest(rows: _Rows, vertex: _Vertex) -> np.ndarray:
    """Return the minimiser of the smallest norm.

    At every minimiser rows with a multiplier inside its range have no residual, and others none of the wrong sign.
    """
    Z, r = rows.Z, rows.r
    (high, _), fixed = _ends(rows, vertex), _fixed(rows, vertex)
    point = vertex.inverse @ r[vertex.basis]
    if fixed.sum() == Z.shape[1]:
        return np.asarray(point)
    rest = np.linalg.svd(Z[fixed])[2][fixed.sum() :].T if fixed.any() else np.eye(Z.shape[1])
    base = point - rest @ (rest.T @ point)  # the nearest point of those that leave no residual where none may be
    sign = np.where(high, 1.0, -1.0)
    G, most = sign[:, None] * (Z @ rest), sign * (r - Z @ base)
    G[fixed] = most[fixed] = 0.0
    reach = 1e-12 * rows.size
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
