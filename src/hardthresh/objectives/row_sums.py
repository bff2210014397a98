"""Sums over kept rows of what parameters of a loss are estimated from, and quantiles of targets, exact to the last bit.

A quantile of rows that are in many places is found digit by digit: numbers are ordered as the integers that their bits
are, and a sweep adds up the weights of the numbers with each next digit. Nothing is sorted, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hardthresh.core.checking import without_overflow_warnings

from .block_rows import Point, rows_of
from .readings import Sums

_DIGIT = 16
"""Bits of a digit: four sweeps for the 64 of a number, with 512 KB of sums each."""
_AT_ONCE = 1 << 16
"""Rows whose digits are counted at once: as many as there are digits, so that either takes the same time."""
_PLACES = 1 << 16
"""Places of distinct rows: of 60 rows two share one in 3 of 100 tables."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio as a fraction of 2 ** 64, by whose powers hashes are mixed (D. E. Knuth, Section 6.4)."""
_SIGN = np.uint64(1 << 63)

RowSums = Callable[..., Sums]
"""``function(y, u, weight, *arguments)`` returns sums over some rows of targets, predictions and weights."""


@without_overflow_warnings
def row_sums(
    X: Any, y: Any, weight: Any, offset: Any, point: Point, function: RowSums, arguments: tuple[Any, ...]
) -> Sums:
    """Return what a function of the targets, the predictions at a point and the weights of some rows adds up to."""
    total: Sums | None = None
    for rows in rows_of(X, y, weight, offset):
        some = function(rows.y, point.predict(rows.X, rows.offset), rows.weight, *arguments)
        total = some if total is None else tuple(a + b for a, b in zip(total, some, strict=True))
    if total is None:  # all rows of the block have weight zero
        none = np.empty(0)
        total = tuple(0.0 * part for part in function(none, none, none, *arguments))
    return tuple(np.asarray(part, dtype=np.float64) for part in total)


@without_overflow_warnings
def rows_near(X: Any, y: Any, weight: Any, offset: Any, point: Point, columns: np.ndarray, distance: float) -> Sums:
    """Return the weight of the rows within a distance of their predictions, that of the others, and which these are.

    Returns
    -------
    weights : array, shape (2,)
        The two weights.
    places : array, shape (65536,)
        How many of the rows have each place: a hash of the targets and of some columns, the same for equal rows.
    """
    weights, places = np.zeros(2), np.zeros(_PLACES)
    for rows in rows_of(X, y, weight, offset):
        near = np.abs(point.predict(rows.X, rows.offset) - rows.y) <= distance
        weights += rows.weight[near].sum(), rows.weight[~near].sum()
        few = np.column_stack([rows.y, rows.X[:, columns]])[near] + 0.0  # -0 is 0
        bits = few.view(np.uint64)
        factors = np.multiply.accumulate(np.full(bits.shape[1], _ODD))
        mixed = (bits ^ (bits >> np.uint64(32))) * factors
        found = mixed.sum(axis=1, dtype=np.uint64) >> np.uint64(48)
        places += np.bincount(found.astype(np.int64), minlength=_PLACES)
    return weights, places


def digit_weights(
    X: Any, y: Any, weight: Any, offset: Any, about: float | None, without_offset: bool, known: int, digits: int
) -> Sums:
    """Return the weights of the numbers with each next digit, of those that begin with some digits.

    Parameters
    ----------
    X, y, weight, offset :
        A block.
    about : float or None
        Numbers are the distances of the targets from it; None for the targets themselves.
    without_offset : bool
        Whether the offset is subtracted from the targets.
    known : int
        The digits that a number begins with, as one integer.
    digits : int
        How many these are.
    """
    totals, left = np.zeros(1 << _DIGIT), 64 - _DIGIT * digits
    for rows in rows_of(X[:, :0], y, weight, offset, size=_AT_ONCE):
        numbers = rows.y - rows.offset if without_offset and rows.offset is not None else rows.y
        keys, own = _keys(numbers if about is None else np.abs(numbers - about)), rows.weight
        if digits:
            there = keys >> np.uint64(left) == np.uint64(known)
            keys, own = keys[there], own[there]
        digit = (keys >> np.uint64(left - _DIGIT)).astype(np.int64) & ((1 << _DIGIT) - 1)
        totals += np.bincount(digit, own, minlength=totals.size)
    return (totals,)


def quantile_of(sweep: Callable[..., Sums], quantile: float, about: float | None, without_offset: bool) -> float:
    """Return the smallest number at which the weights of all up to it reach a share of their sum, by four sweeps.

    Parameters
    ----------
    sweep : callable
        Returns the sums of a task over the rows.
    quantile : float
        The share; for infinity the largest number is returned.
    about, without_offset :
        As for `digit_weights`.

    See Also
    --------
    hardthresh.losses.location.weighted_quantile : The same of numbers in memory.
    """
    known, below, share = 0, 0.0, 0.0
    for digits in range(64 // _DIGIT):
        (totals,) = sweep(digit_weights, about, without_offset, known, digits)
        reached = below + np.cumsum(totals)
        if not digits:
            share = quantile * float(reached[-1]) * (1 - 1e-12)  # as in memory
        there = np.flatnonzero(totals)
        place = int(np.searchsorted(reached[there], share))
        digit = int(there[min(place, there.size - 1)])
        below = float(reached[digit] - totals[digit])
        known = known << _DIGIT | digit
    return float(_number(known))


def _keys(numbers: np.ndarray) -> np.ndarray:
    """Return integers in the order of some numbers; -0 is 0."""
    bits = (numbers + 0.0).view(np.uint64)
    keys: np.ndarray = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return keys


def _number(key: int) -> np.float64:
    """Return the number of an integer: the inverse of `_keys`."""
    bits = np.uint64(key)
    found: np.float64 = (bits ^ _SIGN if bits & _SIGN else ~bits).view(np.float64)
    return found
