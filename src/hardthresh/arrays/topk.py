"""Exact top-k: the largest entries, with ties broken by the lowest index."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array

from hardthresh.core.errors import NotFiniteError
from hardthresh.core.few import first_true
from hardthresh.core.typing import Array, is_numpy

from .indexing import where_true
from .namespace import namespace


def top_k(magnitude: Array, k: int) -> Array:
    """Return the increasing indices of the k largest entries of a vector; the lowest index wins a tie.

    Parameters
    ----------
    magnitude : array, shape (n,)
        Real numbers, usually magnitudes; negative numbers rank last.
    k : int
        The number of entries; k <= 0 gives none, k >= n gives all.

    Raises
    ------
    NotFiniteError
        If an entry that affects the result is NaN.

    Notes
    -----
    Cost O(n): a selection finds the k-th largest value, and entries equal to it are taken from the left.

    Examples
    --------
    >>> import numpy as np
    >>> top_k(np.abs([3.0, -1.0, 1.0, 0.0, -3.0, 1.0, 2.0, -1.0]), 4)
    array([0, 1, 4, 6])
    """
    xp = namespace(magnitude)
    n = magnitude.shape[0]
    if k <= 0:
        refuse_nan(xp.any(xp.isnan(magnitude)))
        return where_true(xp.zeros_like(magnitude, dtype=xp.bool))
    if k >= n:
        refuse_nan(xp.any(xp.isnan(magnitude)))
        return xp.arange(n, device=device(magnitude))
    if is_numpy(magnitude) and 2 * np.count_nonzero(magnitude) < n:  # selection is slow among many equal entries
        positive = (~(magnitude <= 0)).nonzero()[0]  # and NaN
        if k <= positive.size:
            return positive[top_k(magnitude[positive], k)]
        zero = (magnitude == 0).nonzero()[0][: k - positive.size]
        if k == positive.size + zero.size:
            refuse_nan(np.isnan(magnitude[positive].sum()))
            return np.sort(np.concatenate([positive, zero]))
    least = _kth_largest(magnitude, k)
    if is_numpy(magnitude):
        chosen = (magnitude >= least).nonzero()[0]
        if chosen.size == k:
            return chosen
        above = (magnitude > least).nonzero()[0]
        equal = (magnitude == least).nonzero()[0][: k - above.size]
        return np.sort(np.concatenate([above, equal])) if above.size else equal
    return first_true(_from(magnitude, least, k), k)


def leading(magnitude: Array, k: int) -> Array:
    """Return where the k largest entries of a vector on a device are, like `top_k`, without a synchronisation.

    Parameters
    ----------
    magnitude : array, shape (n,)
        Real numbers of a library other than NumPy. NaN is treated as the largest number and raises no error; if there
        are k or more, every entry is marked.
    k : int
        How many, from 0 to n.

    Returns
    -------
    array of bool, shape (n,)
    """
    xp = namespace(magnitude)
    if k == 0 or k == magnitude.shape[0]:
        return xp.full(magnitude.shape, k > 0, dtype=xp.bool, device=device(magnitude))
    return _from(magnitude, _selected(magnitude, k), k)


def _from(magnitude: Array, least: Array, k: int) -> Array:
    """Return where entries are above the k-th largest, or equal to it and among the first; NaN is above it."""
    xp = namespace(magnitude)
    larger, equal = ~(magnitude <= least), magnitude == least
    room = k - xp.count_nonzero(larger)
    return larger | (equal & (xp.cumulative_sum(xp.astype(equal, xp.int64)) <= room))


def _kth_largest(magnitude: Array, k: int) -> Array:
    """Return the k-th largest value, 1 <= k <= n; NaN counts as larger than everything, so it is always noticed."""
    xp = namespace(magnitude)
    if is_numpy(magnitude):
        ordered = magnitude.copy()
        ordered.partition(magnitude.size - k)
        largest = ordered[magnitude.size - k :]
        refuse_nan(np.isnan(np.maximum.reduce(largest)))
        return largest[0]
    refuse_nan(xp.any(xp.isnan(magnitude)))
    return _selected(magnitude, k)


def _selected(magnitude: Array, k: int) -> Array:
    """Return the k-th largest value of a vector without NaN, of a library other than NumPy."""
    if is_torch_array(magnitude):
        return magnitude.topk(k).values[-1]
    return namespace(magnitude).sort(magnitude, descending=True)[k - 1]


def refuse_nan(found: Any) -> None:
    """Raise `NotFiniteError` if NaN was found in an array to be thresholded.

    Parameters
    ----------
    found : bool, or array of bool of shape ()
        Whether there is NaN; the host synchronises with the device to read it.

    Raises
    ------
    NotFiniteError
    """
    if bool(found):
        raise NotFiniteError("the point to threshold contains NaN; check the data, or take a smaller step")
