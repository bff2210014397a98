"""Splitting of large arrays for several threads: by shape and dtype alone, for any number of threads."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from hardthresh.core.typing import Array, is_numpy

_BYTES, _OPERATIONS = 3e10, 5e10
"""Bytes that one core reads, and double-precision operations that it performs, in a second: 2.4e10 and 6e10 were
measured for products on the machine of benchmarks/README.md; the exact values are not important."""
_PIECE = 2.5e-4  # seconds of one core for a piece: passing all pieces to other threads takes 3e-5 to 5e-5
_FEWEST, _MOST = 4, 16  # pieces; below a millisecond splitting does not pay, and 16 is arbitrary: more than most cores
THINNEST = 12
"""The smallest number of rows or columns of a piece. In pieces of 12 rows, products of 192 rows took 1.0 to 2.6 times
the CPU time of the whole product, in pieces of 2 rows 1.4 to 11 times."""


def number_of_pieces(like: Array, shape: tuple[int, ...], width: float = 1.0) -> int:
    """Return the number of pieces in which a matrix is read, or multiplied by another matrix.

    Parameters
    ----------
    like : array
        The matrix, or another array of its library and dtype.
    shape : tuple of int
        The shape of the matrix.
    width : float
        The number of columns of the other matrix.

    Returns
    -------
    int
        1 if the operation takes a core less than a millisecond, or if `like` is not a NumPy array of floating-point
        numbers.
    """
    if not is_numpy(like) or like.dtype.kind != "f":
        return 1
    entries, size = prod(shape), like.itemsize
    seconds = max(entries * size / _BYTES, 2 * entries * width * (size / 8) / _OPERATIONS)
    if seconds < _FEWEST * _PIECE:
        return 1
    pieces = min(int(seconds / _PIECE), _MOST, max(shape, default=0) // THINNEST)
    return pieces if pieces >= _FEWEST else 1


def split(A: Array) -> list[Array]:
    """Return views that cover a NumPy array, each of them contiguous if the array is; a small array is not split."""
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


def steps(length: int, size: int) -> list[slice]:
    """Return slices of one length, the last one perhaps shorter, that cover a range."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def sum_in_order(parts: list[Array]) -> Array:
    """Return the sum of arrays, added to the first of them one after another."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
