"""The penalised form (48) of the graph problem, by coordinate descent, as those who posed it solve it approximately."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

_SWEEPS = 1000  # at most; arbitrary, measured with 30 variables: 50 to 200
_NEWTON = 20  # arbitrary: from above on a convex function, it doubles its digits once it is near


def penalised(
    S: Any, penalties: Any, *, l2: float = 0.0, allowed: Any = None, tol: float = 1e-9, sweeps: int = _SWEEPS
) -> Any:
    r"""Return coordinate-wise minimisers of (48), one for each penalty.

    .. math:: \sum_i \Bigl( -\log w_{ii} + \frac{w_i^\top S w_i}{w_{ii}} \Bigr) + \lambda_0 \|W\|_0
              + \tfrac{\lambda}{2} \|W\|_F^2

    among symmetric W. In one pair of entries w it is a quadratic :math:`a w^2 + 2 b w`, which is worth its penalty
    :math:`2 \lambda_0` if :math:`b^2 / a` is more; in a diagonal entry it is convex. The start is diagonal.

    Parameters
    ----------
    S : array, shape (p, p)
        The covariance.
    penalties : array, shape (m,)
        :math:`\lambda_0 \ge 0`.
    l2 : float
        :math:`\lambda`, twice the paper's :math:`\lambda_2`.
    allowed : array of bool, shape (m, p, p), optional
        Which pairs may be non-zero. Default: all.
    tol : float
        The runs end if no entry changes by more in a sweep.
    sweeps : int
        The most sweeps over all entries.

    Returns
    -------
    array, shape (m, p, p)
    """
    penalties, p = np.asarray(penalties, dtype=float), len(S)
    W = np.tile(np.diag(1.0 / np.diag(S)), (len(penalties), 1, 1))
    allowed = np.ones(W.shape, dtype=bool) if allowed is None else allowed
    M = W @ S  # its rows are S w_i
    for _ in range(sweeps):
        before = W.copy()
        for i in range(p):
            for j in range(i):
                old, up, down = W[:, i, j].copy(), W[:, i, i], W[:, j, j]
                a = S[j, j] / up + S[i, i] / down + l2
                b = (M[:, i, j] - S[j, j] * old) / up + (M[:, j, i] - S[i, i] * old) / down
                new = np.where(allowed[:, i, j] & (b * b > 2.0 * penalties * a), -b / a, 0.0)
                W[:, i, j] = W[:, j, i] = new
                M[:, i] += (new - old)[:, None] * S[j]
                M[:, j] += (new - old)[:, None] * S[i]
            old = W[:, i, i].copy()
            rest = np.maximum(np.sum(W[:, i] * M[:, i], axis=1) - 2.0 * old * M[:, i, i] + S[i, i] * old**2, 0.0)
            W[:, i, i] = new = _diagonal(S[i, i], rest, l2)
            M[:, i] += (new - old)[:, None] * S[i]
        if np.max(np.abs(W - before)) <= tol:
            break
    return W


def _diagonal(s: float, rest: Any, l2: float) -> Any:
    """Return the minimisers of -log w + s w + rest / w + l2 w^2 / 2."""
    w = (1.0 + np.sqrt(1.0 + 4.0 * s * rest)) / (2.0 * s)
    for _ in range(_NEWTON if l2 else 0):
        w = w - (l2 * w**3 + s * w**2 - w - rest) / (3.0 * l2 * w**2 + 2.0 * s * w - 1.0)
    return w


def largest_penalty(S: Any) -> float:
    """Return the penalty above which the first sweep keeps no pair."""
    correlations = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    return float(np.max(np.triu(correlations, 1) ** 2))


def lowest(f: Any, S: Any) -> list[float]:
    """Return the least F_0 with 0, 1, ... edges, by trying every graph; for a handful of variables."""
    p = len(S)
    pairs = list(combinations(range(p), 2))
    chosen = np.array([[code >> at & 1 for at in range(len(pairs))] for code in range(2 ** len(pairs))], dtype=bool)
    allowed = np.zeros((len(chosen), p, p), dtype=bool)
    for at, (i, j) in enumerate(pairs):
        allowed[:, i, j] = allowed[:, j, i] = chosen[:, at]
    values = np.array([f.value(W) for W in penalised(S, np.zeros(len(chosen)), allowed=allowed)])
    edges = chosen.sum(axis=1)
    return [float(values[edges == count].min()) for count in range(len(pairs) + 1)]


def reachable(values: list[float]) -> list[bool]:
    """Return which numbers of edges minimise values + 2 lambda_0 edges for some lambda_0: those on the lower hull."""
    found = []
    for at, value in enumerate(values):
        rises = [(values[left] - value) / (at - left) for left in range(at)]
        falls = [(value - values[right]) / (right - at) for right in range(at + 1, len(values))]
        found.append(min(rises, default=np.inf) >= max(falls, default=0.0))
    return found
