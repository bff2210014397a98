"""Exact top-k: the largest entries, lowest index first among equals."""

from __future__ import annotations

import numpy as np
from array_api_compat import device, is_torch_array

from hardthresh.core.errors import NotFiniteError
from hardthresh.core.typing import Array, is_numpy

from .indexing import where_true
from .namespace import namespace


def top_k(magnitude: Array, k: int) -> Array:
    """Return the increasing indices of the k largest entries of a vector; among equals the lowest index wins.

    Parameters
    ----------
    magnitude : array, shape (n,)
        Reals, compared as they are: magnitudes, and negative ones for entries that are to rank last.
    k : int
        How many; k <= 0 gives none, k >= n gives all.

    Raises
    ------
    NotFiniteError
        If an entry that matters is NaN.

    Notes
    -----
    Cost O(n): a selection finds the k-th largest value, and what equals it is taken from the left.

    Examples
    --------
    >>> import numpy as np
    >>> top_k(np.abs([3.0, -1.0, 1.0, 0.0, -3.0, 1.0, 2.0, -1.0]), 4)
    array([0, 1, 4, 6])
    """
    xp = namespace(magnitude)
    n = magnitude.shape[0]
    if k <= 0:
        _refuse_nan(xp.any(xp.isnan(magnitude)))
        return where_true(xp.zeros_like(magnitude, dtype=xp.bool))
    if k >= n:
        _refuse_nan(xp.any(xp.isnan(magnitude)))
        return xp.arange(n, device=device(magnitude))
    if is_numpy(magnitude) and 2 * np.count_nonzero(magnitude) < n:  # selection is slow among many equal entries
        positive = (~(magnitude <= 0)).nonzero()[0]  # and NaN
        if k <= positive.size:
            return positive[top_k(magnitude[positive], k)]
        zero = (magnitude == 0).nonzero()[0][: k - positive.size]
        if k == positive.size + zero.size:
            _refuse_nan(np.isnan(magnitude[positive].sum()))
            return np.sort(np.concatenate([positive, zero]))
    least = _kth_largest(magnitude, k)
    if is_numpy(magnitude):
        chosen = (magnitude >= least).nonzero()[0]
        if chosen.size == k:
            return chosen
        above = (magnitude > least).nonzero()[0]
        equal = (magnitude == least).nonzero()[0][: k - above.size]
        return np.sort(np.concatenate([above, equal])) if above.size else equal
    larger, equal = magnitude > least, magnitude == least
    room = k - xp.sum(xp.astype(larger, xp.int64))
    return where_true(larger | (equal & (xp.cumulative_sum(xp.astype(equal, xp.int64)) <= room)))


def _kth_largest(magnitude: Array, k: int) -> Array:
    """Return the k-th largest value, 1 <= k <= n; NaN counts as larger than everything, so it is always noticed."""
    xp = namespace(magnitude)
    if is_numpy(magnitude):
        ordered = magnitude.copy()
        ordered.partition(magnitude.size - k)
        largest = ordered[magnitude.size - k :]
        _refuse_nan(np.isnan(np.maximum.reduce(largest)))
        return largest[0]
    _refuse_nan(xp.any(xp.isnan(magnitude)))
    if is_torch_array(magnitude):
        return magnitude.topk(k).values[-1]
    return xp.sort(magnitude, descending=True)[k - 1]


def _refuse_nan(found: Array) -> None:
    if bool(found):
        raise NotFiniteError("the point to threshold contains NaN; check the data, or take a smaller step")
