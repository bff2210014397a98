"""Gathering and scattering coordinates in any array library, without writing into an argument."""

from __future__ import annotations

from array_api_compat import device, is_torch_array

from hardthresh.core.few import take
from hardthresh.core.typing import Array, is_numpy

from .namespace import namespace


def gather(v: Array, indices: Array) -> Array:
    """Return ``v[indices]``: entries of a vector, or rows of a matrix.

    Parameters
    ----------
    v : array, shape (n,) or (n, q)
        The vector or matrix.
    indices : array of int, shape (m,)
        The indices of the entries.

    Returns
    -------
    array, shape (m,) or (m, q)
    """
    return v[indices] if is_numpy(v) else take(v, indices)


def gather_columns(X: Array, indices: Array) -> Array:
    """Return ``X[:, indices]`` for a matrix; a NumPy result has contiguous columns.

    Parameters
    ----------
    X : array, shape (n, d)
        The matrix.
    indices : array of int, shape (m,)
        The indices of the columns.

    Returns
    -------
    array, shape (n, m)
    """
    if not is_numpy(X):
        return take(X, indices, axis=1)
    return X.T[indices].T


def mask_of(indices: Array, size: int) -> Array:
    """Return the boolean vector that is true at some coordinates.

    Parameters
    ----------
    indices : array of int
        The coordinates.
    size : int
        The length of the vector.

    Returns
    -------
    array of bool, shape (size,)
    """
    xp = namespace(indices)
    if is_numpy(indices):
        mask = xp.zeros(size, dtype=xp.bool)
        mask[indices] = True
        return mask
    if is_torch_array(indices):  # two operations instead of five
        none = xp.zeros(size, dtype=xp.bool, device=device(indices))
        return xp.index_fill(none, 0, indices, True)
    every = xp.arange(size, dtype=indices.dtype, device=device(indices))
    return _found(indices, every)[0]


def scatter(values: Array, indices: Array, size: int) -> Array:
    """Return the vector of zeros with `values` at the increasing coordinates `indices`, or the matrix with such rows.

    Parameters
    ----------
    values : array, shape (m,) or (m, q)
        The entries, or rows, that are not zero.
    indices : array of int, shape (m,)
        Their coordinates, increasing.
    size : int
        The length of the vector, or the number of rows.

    Returns
    -------
    array, shape (size,) or (size, q)
    """
    xp = namespace(values)
    if is_numpy(values):
        full = xp.zeros((size, *values.shape[1:]), dtype=values.dtype)
        full[indices] = values
        return full
    zeros = xp.zeros((size, *values.shape[1:]), dtype=values.dtype, device=device(values))
    if indices.shape[0] == 0:
        return zeros
    if is_torch_array(values):  # two operations instead of eight
        return xp.index_copy(zeros, 0, indices, values)
    every = xp.arange(size, dtype=indices.dtype, device=device(values))
    mask, place = _found(indices, every)
    taken = take(values, place)
    return xp.where(mask if values.ndim == 1 else mask[:, None], taken, xp.zeros_like(taken))


def union(a: Array, b: Array) -> Array:
    """Return the increasing union of two increasing index arrays.

    Parameters
    ----------
    a, b : array of int
        Increasing.

    Returns
    -------
    array of int
    """
    xp = namespace(a, b)
    return xp.sort(xp.unique_values(xp.concat([a, b])))  # NumPy's are in no order


def where_true(mask: Array) -> Array:
    """Return the increasing coordinates where a vector is true.

    Parameters
    ----------
    mask : array of bool, shape (n,)
        The vector.

    Returns
    -------
    array of int
    """
    return namespace(mask).nonzero(mask)[0]


def _found(indices: Array, every: Array) -> tuple[Array, Array]:
    """Return, for each coordinate, whether it is among increasing indices, and where."""
    xp = namespace(indices)
    if indices.shape[0] == 0:
        return xp.zeros_like(every, dtype=xp.bool), every
    place = xp.clip(xp.searchsorted(indices, every), 0, indices.shape[0] - 1)
    return take(indices, place) == every, place
