"""How large arrays are split for several threads: by shape and dtype alone, whatever the number of threads."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
from array_api_compat import is_numpy_array

from hardthresh.core.typing import Array

_BYTES, _OPERATIONS = 3e10, 5e10
"""Bytes that one core reads, and double-precision operations that it does, in a second: 2.4e10 and 6e10 were measured
for products on the machine of benchmarks/README.md; not crucial."""
_PIECE = 2.5e-4  # seconds of one core for a piece: handing all pieces to other threads takes 3e-5 to 5e-5
_FEWEST, _MOST = 4, 16  # pieces of what is split
THINNEST = 12
"""Rows or columns of a piece at least."""


def number_of_pieces(like: Array, shape: tuple[int, ...], width: float = 1.0) -> int:
    """Return in how many pieces a matrix is read, or multiplied by another of some width.

    Parameters
    ----------
    like : array
        The matrix, or another array of its library and dtype.
    shape : tuple of int
        Of the matrix.
    width : float
        Of the other matrix.

    Returns
    -------
    int
        1 for what takes a core less than a millisecond, and for what is no NumPy array of floating-point numbers.
    """
    if not is_numpy_array(like) or like.dtype.kind != "f":
        return 1
    entries, size = prod(shape), like.itemsize
    seconds = max(entries * size / _BYTES, 2 * entries * width * (size / 8) / _OPERATIONS)
    pieces = min(int(seconds / _PIECE), _MOST, max(shape, default=0) // THINNEST)
    return pieces if pieces >= _FEWEST else 1


def split(A: Array) -> list[Array]:
    """Return views that cover a NumPy array, each of them contiguous if the array is; one if it is small."""
    pieces = number_of_pieces(A, A.shape)
    if pieces == 1:
        return [A]
    axis = int(np.argmax(np.abs(A.strides)))
    before = (slice(None),) * axis
    return [A[(*before, piece)] for piece in ranges(A.shape[axis], min(pieces, A.shape[axis]))]


def ranges(length: int, pieces: int) -> list[slice]:
    """Return slices of nearly the same length that cover a range."""
    ends = [length * piece // pieces for piece in range(pieces + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


def sum_in_order(parts: list[Array]) -> Array:
    """Return the sum of arrays, added to the first of them one after another."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
