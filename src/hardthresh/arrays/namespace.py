"""The array library, dtype and device of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
)

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.lazy import to_host
from hardthresh.core.threads import in_pieces
from hardthresh.core.typing import Array, is_numpy

from .factored import FactoredMatrix
from .pieces import split


def namespace(*arrays: Array) -> Any:
    """Return the common array library of some arrays (None is ignored).

    Raises
    ------
    InvalidInputError
        If the arrays belong to different libraries.
    """
    for array in arrays:  # the way of almost every call
        if type(array) is not np.ndarray and array is not None:
            break
    else:
        return np
    found = [array for array in arrays if array is not None]
    try:
        return array_namespace(*found)
    except TypeError as error:
        kinds = ", ".join(sorted({f"{type(a).__module__.split('.')[0]}.{type(a).__name__}" for a in found}))
        raise InvalidInputError(f"arrays of one library are needed, got {kinds}; convert them to one first") from error


def as_floating(x: Any, like: Array | None = None, name: str = "array") -> Array:
    """Return `x` as a real floating-point array: float32 is kept, integers and booleans become float64.

    Parameters
    ----------
    x : array-like
        Anything that NumPy can convert, or an array of another library, which is kept.
    like : array, optional
        Convert to the library, dtype and device of this array instead.
    name : str
        The name of `x` in errors.

    Raises
    ------
    InvalidInputError
        If it contains strings, objects or complex numbers, belongs to another library than `like`, or has finite
        entries that overflow its dtype.
    """
    if type(x) is np.ndarray and x.dtype.kind == "f":  # the way of almost every call
        if like is None and x.dtype.itemsize in (4, 8):
            return x
        if type(like) is np.ndarray and x.dtype == like.dtype:
            return x
    if isinstance(like, FactoredMatrix) and not isinstance(x, FactoredMatrix):
        return FactoredMatrix.dense(as_floating(x, np.zeros(0, dtype=like.dtype), name))
    if isinstance(x, FactoredMatrix) and like is not None and not isinstance(like, FactoredMatrix):
        x = x.to_dense()
    if not is_array_api_obj(x):
        x = np.asarray(x)
        if like is not None and x.dtype.kind in "fiub":
            with np.errstate(over="ignore"):  # what overflows is refused
                cast = namespace(like).asarray(x.tolist(), dtype=like.dtype, device=device(like))
            return _checked_cast(x, cast, name)
    xp = namespace(x) if like is None else namespace(x, like)
    if isinstance(x, np.ndarray) and x.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} must be numeric, got dtype {x.dtype}; convert or encode it first")
    if like is not None:
        if x.dtype == like.dtype:
            return x
        with np.errstate(over="ignore"):
            cast = xp.astype(x, like.dtype)
        return _checked_cast(x, cast, name)
    if xp.isdtype(x.dtype, "complex floating"):
        raise InvalidInputError(f"{name} must be real, got dtype {x.dtype}")
    if not xp.isdtype(x.dtype, "real floating") or (isinstance(x, np.ndarray) and x.dtype.itemsize not in (4, 8)):
        return xp.astype(x, xp.float64)
    return x


def _checked_cast(x: Array, cast: Array, name: str) -> Array:
    """Return an array in another dtype, if what is finite still is."""
    if all_finite(cast) or not all_finite(x):
        return cast
    xp = namespace(x)
    raise InvalidInputError(
        f"{name} has entries of up to {float(xp.max(xp.abs(x))):.3g}, which leave the range of {cast.dtype}; "
        "rescale it, or compute in float64"
    )


def all_finite(x: Array) -> bool:
    """Return whether an array holds neither NaN nor infinity.

    Parameters
    ----------
    x : array
        The array, of any shape.

    Returns
    -------
    bool
    """
    if is_numpy(x):
        return all(in_pieces(lambda piece: bool(np.isfinite(piece).all()), split(x)))
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))


def move(x: np.ndarray, like: Array) -> Array:
    """Return a NumPy array in the library and on the device of another array, with its own dtype.

    Parameters
    ----------
    x : ndarray
        The array to move.
    like : array
        An array of the target library, on the target device.

    Returns
    -------
    array
    """
    return x if is_numpy(like) else namespace(like).asarray(x, device=device(like))


def to_numpy(x: Array) -> np.ndarray:
    """Return an array of any device as a NumPy array.

    Parameters
    ----------
    x : array
        An array of any library.

    Returns
    -------
    ndarray
    """
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, FactoredMatrix):
        return x.to_dense()
    return to_host(x)


def as_double(x: Array) -> Array:
    """Return an array in double precision, in its library and on its device; itself if it already is.

    Parameters
    ----------
    x : array
        Of floating-point numbers.

    Returns
    -------
    array of float64
    """
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def double(x: Array) -> np.ndarray:
    """Return an array of any device as a NumPy array of float64.

    Parameters
    ----------
    x : array
        An array of any library.

    Returns
    -------
    ndarray of float64
    """
    return np.asarray(to_numpy(x), dtype=np.float64)
