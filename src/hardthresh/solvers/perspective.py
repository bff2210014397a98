"""The perspective of a ridge, by which "at most k units" is relaxed: what branch and bound and certificates share."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh

_SHRUNK = 1e-9
"""The smallest eigenvalue is lowered by this share, besides its rounding: as in the specification of the bound."""


def penalty(size: np.ndarray, k: int) -> tuple[float, float, np.ndarray]:
    r"""Return the perspective of the ridge at a point with some units that are not zero.

    .. math:: \Omega = \tfrac{1}{2} \min \Bigl\{ \sum_u a_u^2 / z_u : 0 \le z \le 1, \; \sum_u z_u \le k \Bigr\}

    Parameters
    ----------
    size : array, shape (m,)
        :math:`a_u = \sqrt{D_u} \|w_u\| \ge 0`.
    k : int
        k >= 0; and >= 1 if m > k.

    Returns
    -------
    value : float
        :math:`\Omega`.
    threshold : float
        The best shares are :math:`z_u = \min(1, a_u / \text{threshold})`, or 1 where it is 0.
    whole : array of bool, shape (m,)
        Where z = 1: there :math:`\Omega` has the slope of the ridge, and elsewhere that of half the square of
        :math:`\sum a_u`, divided by the rest of k. So it is quadratic in w until this or a sign changes.

    Notes
    -----
    Cost: a sort.
    """
    if size.size <= k:
        threshold = float(size.min()) if size.size == k and k else 0.0
        return 0.5 * float(size @ size), threshold, np.ones(size.size, dtype=bool)
    order = np.argsort(-size)
    falling = size[order]
    tails = np.cumsum(falling[::-1])[::-1][:k]  # the sum of all but the largest t
    thresholds = tails / (k - np.arange(k))
    t = int(np.argmax(falling[:k] <= thresholds))
    if falling[t] > thresholds[t]:  # rounding: for t = k - 1 it is the sum of this and smaller ones
        t = k - 1
    whole = np.zeros(size.size, dtype=bool)
    whole[order[:t]] = True
    head = falling[:t]
    return 0.5 * float(head @ head) + 0.5 * float(tails[t]) * float(thresholds[t]), float(thresholds[t]), whole


def largest(gains: np.ndarray, k: int) -> np.ndarray:
    r"""Return the places of the k largest gains, or of all if there are no more.

    By Fenchel's inequality the perspective is at least :math:`v^\top w` less the sum of the k largest of
    :math:`h_u = \|v_u\|^2 / (2 D_u)`, for every v: that is its convex conjugate, from which lower bounds are made.
    """
    others = gains.size - k
    return np.arange(gains.size) if others <= 0 else np.argpartition(gains, others - 1)[others:]


def removable(matrix: np.ndarray, rounding: float) -> float:
    r"""Return a number :math:`\mu \ge 0` for which the matrix less :math:`\mu I` is positive semidefinite.

    It is the smallest eigenvalue less its rounding; of :math:`\Sigma^{-1/2} M \Sigma^{-1/2}` the multiple of
    :math:`\Sigma` that the relaxation may move from a Hessian M into the perspective. Cost: :math:`O(m^3)`.
    """
    lowest = float(eigvalsh(matrix, subset_by_index=(0, 0), check_finite=False)[0])
    return max(0.0, lowest * (1.0 - _SHRUNK) - rounding)
