"""Covariance selection: positive definite precision matrices of a given graph, and the most likely of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from hardthresh.arrays import conjugate_gradients, symmetric_part

_DEFINITE = 1e-6  # least eigenvalue, of a unit diagonal, that counts as positive; arbitrary, well above rounding
_ROUNDS = 60  # limit of Newton steps; arbitrary: fewer than ten are the rule
_SMALL = 200  # up to this side a product of matrices costs less than the handling of single entries
_CHUNK = 1 << 22  # entries that are gathered at a time: 32 MB


def positive_definite(W: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a positive definite matrix with the graph and the diagonal of W, and by what c its other entries shrank.

    It is W itself, c = 1, where that is positive definite; else diag(W) + c (W - diag(W)) with the c in [0, 1) of the
    largest Gaussian likelihood for the covariance matrix S, which is concave in c. Cost O(p^3).
    """
    diagonal = np.diag(np.diag(W))
    off = W - diagonal
    scale = 1.0 / np.sqrt(np.diag(W))
    eigenvalues = np.linalg.eigvalsh(off * scale[:, None] * scale)
    if 1.0 + eigenvalues[0] >= _DEFINITE:
        return W, 1.0
    most, slope = (1.0 - _DEFINITE) / -eigenvalues[0], float(np.sum(off * S))

    def loss(c: float) -> float:
        return float(c * slope - np.sum(np.log1p(c * eigenvalues)))

    c = float(minimize_scalar(loss, bounds=(0.0, most), method="bounded", options={"xatol": 1e-9}).x)
    return diagonal + c * off, c


def most_likely_precision(S: np.ndarray, start: np.ndarray, alpha: float, tol: float) -> tuple[np.ndarray, bool]:
    r"""Return the most likely Gaussian precision matrix on the graph of a given one, and whether it was reached.

    .. math:: \min_W \; -\log \det W + \mathrm{tr}(S W) + \tfrac{\alpha}{2} \|W\|_F^2
              \quad \text{with } w_{ij} = 0 \text{ wherever the start has a zero}

    Parameters
    ----------
    S : array, shape (p, p)
        Covariance matrix.
    start : array, shape (p, p)
        Symmetric and positive definite.
    alpha : float
        Ridge >= 0. Without one there may be no maximum, as where a column is a combination of its neighbours.
    tol : float
        Relative decrease that a Newton step must promise to be taken.

    Notes
    -----
    Newton's method on the K entries of the graph, with conjugate gradients and a line search that stays inside the
    cone: every matrix on the way is positive definite, and no worse than the last. Cost: O(p^3) for each Newton step
    and O(K p) for each product with the Hessian.

    References
    ----------
    A. P. Dempster (1972), Covariance selection, *Biometrics* 28, 157-175.
    """
    p, (rows, columns) = S.shape[0], np.nonzero(start)
    W, (value, covariance) = start, _evaluate(S, start, alpha)
    for _ in range(_ROUNDS):
        slope = (S - covariance + alpha * W)[rows, columns]
        direction = -conjugate_gradients(_hessian(covariance, rows, columns, alpha), slope, 100, 1e-3)
        promised = -0.5 * float(slope @ direction)
        if promised <= tol * max(abs(value), p):
            return W, True
        step = np.zeros_like(W)
        step[rows, columns] = direction
        found = _search(S, W, symmetric_part(step), alpha, value - 2e-4 * promised)
        if found is None:  # all that is left is rounding
            return W, promised <= 1e-6 * max(abs(value), p)
        W, value, covariance = found
    return W, False


def _evaluate(S: np.ndarray, W: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """Return minus the log-likelihood and the inverse; infinite, with an empty one, outside the cone."""
    try:
        root = cholesky(W, lower=True, check_finite=False)
    except LinAlgError:
        return np.inf, np.empty((0, 0))
    value = -2.0 * float(np.sum(np.log(np.diag(root)))) + float(np.sum(S * W)) + 0.5 * alpha * float(np.sum(W * W))
    return value, symmetric_part(np.linalg.inv(W))


def _hessian(
    covariance: np.ndarray, rows: np.ndarray, columns: np.ndarray, alpha: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that multiplies by the Hessian on the graph: the entries there of C D C + alpha D."""
    p = covariance.shape[0]
    if p <= _SMALL or 10 * rows.size > p * p:  # a product of matrices, whose entries cost less each

        def by_products(v: np.ndarray) -> np.ndarray:
            step = np.zeros_like(covariance)
            step[rows, columns] = v
            return np.asarray((covariance @ step @ covariance)[rows, columns] + alpha * v)

        return by_products
    sparse = csr_array((np.ones(rows.size), (rows, columns)), shape=(p, p))
    length = max(1, _CHUNK // p)

    def by_entries(v: np.ndarray) -> np.ndarray:
        sparse.data = v  # in the order of the entries, as they are sorted by rows
        half = np.ascontiguousarray((sparse @ covariance).T)
        image = alpha * v
        for first in range(0, v.size, length):
            some = slice(first, first + length)
            image[some] += np.einsum("kp,kp->k", covariance[rows[some]], half[columns[some]])
        return image

    return by_entries


def _search(
    S: np.ndarray, W: np.ndarray, direction: np.ndarray, alpha: float, enough: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Backtrack from W + direction; return the first point that is low enough, with its value and inverse."""
    t = 1.0
    for _ in range(40):
        tried = W + t * direction
        value, covariance = _evaluate(S, tried, alpha)
        if value <= enough:
            return tried, value, covariance
        t *= 0.5
    return None
