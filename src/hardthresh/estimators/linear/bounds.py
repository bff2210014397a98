"""Bounds of coefficients, on the scale of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from hardthresh.arrays import move, namespace, to_numpy
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array

from .columns import column_indices


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest and the largest coefficient that each feature may have, on the scale of the data.

    Attributes
    ----------
    lower, upper : array, shape (n_features,)
        Lower <= 0 <= upper, infinite where there is no bound: numbers in double precision that the precision of the
        data has, too.
    """

    lower: np.ndarray
    upper: np.ndarray

    def standardized(self, inverse_scale: Array, n_levels: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the bounds of standardised coefficients and of unbounded intercepts; None where none is finite.

        A constant column has no standardised coefficient; only the signs of its bounds are kept.
        """
        factor = to_numpy(inverse_scale).astype(np.float64)
        varies = factor > 0
        found = []
        for bound, sign in ((self.lower, -1.0), (self.upper, 1.0)):
            free = np.where(bound == 0, 0.0, sign * np.inf)
            scaled = np.divide(bound, factor, out=free, where=varies)
            scaled = np.append(scaled, np.full(n_levels, sign * np.inf))
            found.append(scaled if np.isfinite(scaled).any() else None)
        return found[0], found[1]

    def clip(self, coef: Array, columns: np.ndarray | None = None) -> Array:
        """Return coefficients, in the last axis, of all features or of some columns, without what rounding adds."""
        lower, upper = (self.lower, self.upper) if columns is None else (self.lower[columns], self.upper[columns])
        xp = namespace(coef)
        low, high = (xp.astype(move(bound, coef), coef.dtype) for bound in (lower, upper))
        return xp.minimum(xp.maximum(coef, low), high)


def bounds_of(
    bounds: Any,
    n_features: int,
    names: Sequence[Any] | None,
    dtype: type[np.floating[Any]],
    name: Callable[[int], str],
) -> Bounds | None:
    """Return the bounds that a user gave; None if there is none.

    Parameters
    ----------
    bounds : (lower, upper), mapping from column to (lower, upper), or None
        Each bound of a pair is a number for all features, an array with one for each, or None for no bound; in a
        mapping it is a number or None, and columns that are not in it have no bounds.
    n_features : int
        The number of columns.
    names : list of str, optional
        Their names.
    dtype : type
        The precision of the data; bounds are rounded to it, towards 0.
    name : callable
        Returns what a message calls a column.

    Raises
    ------
    InvalidInputError
        For anything else, NaN, arrays of other lengths, unknown columns, and bounds between which there is no 0.
    """
    if bounds is None:
        return None
    lower, upper = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if isinstance(bounds, Mapping):
        for column, pair in bounds.items():
            (place,) = column_indices([column], n_features, names, setting="bounds")
            low, high = _pair(pair, f"the bounds of {format_value(column)}")
            lower[place] = _side(low, (), -np.inf, f"the lower bound of {format_value(column)}")
            upper[place] = _side(high, (), np.inf, f"the upper bound of {format_value(column)}")
    else:
        low, high = _pair(bounds, "bounds")
        lower[:] = _side(low, (n_features,), -np.inf, "the lower bound")
        upper[:] = _side(high, (n_features,), np.inf, "the upper bound")
    for bound, side, wrong in ((lower, "lower", lower > 0), (upper, "upper", upper < 0)):
        if wrong.any():
            j = int(np.argmax(wrong))
            raise InvalidInputError(
                f"bounds must hold 0, the coefficient of a feature that is not chosen, but the {side} bound of "
                f"{name(j)} is {bound[j]:g}; a part of the prediction that is known can be given as an offset"
            )
    if not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return None
    return Bounds(_towards_zero(lower, dtype), _towards_zero(upper, dtype))


def has_bound(bounds: Any) -> bool:
    """Return whether a finite bound is among those that a user gave; False for what `bounds_of` refuses."""
    pairs = bounds.values() if isinstance(bounds, Mapping) else [bounds]
    sides = (side for pair in pairs if isinstance(pair, Iterable) and not isinstance(pair, str) for side in pair)
    numbers = (np.asarray(to_numpy(side) if is_array_api_obj(side) else side) for side in sides)
    return any(bool(np.isfinite(side).any()) for side in numbers if side.dtype.kind in "fiu")


def _pair(bounds: Any, what: str) -> tuple[Any, Any]:
    if isinstance(bounds, str) or not isinstance(bounds, Iterable) or len(listed := list(bounds)) != 2:
        raise InvalidInputError(f"{what} must be a pair (lower, upper), got {format_value(bounds)}")
    return listed[0], listed[1]


def _side(bound: Any, shape: tuple[int, ...], none: float, what: str) -> np.ndarray:
    """Return one side of the bounds: a number, or an array of a shape."""
    if bound is None:
        return np.asarray(none)
    array = np.asarray(to_numpy(bound) if is_array_api_obj(bound) else bound)
    if array.dtype.kind not in "fiu" or array.shape not in ((), shape):
        numbers = f"a number, or an array of shape {shape}" if shape else "a number"
        raise InvalidInputError(f"{what} must be {numbers}, or None; got {format_value(bound)}")
    if np.isnan(array).any():
        raise InvalidInputError(f"{what} is NaN; give None or infinity for no bound")
    return array.astype(np.float64)


def _towards_zero(bound: np.ndarray, dtype: type[np.floating[Any]]) -> np.ndarray:
    """Return bounds that a precision has, none farther from zero than the one given."""
    with np.errstate(over="ignore"):
        rounded = bound.astype(dtype)
    farther = np.abs(rounded.astype(np.float64)) > np.abs(bound)
    return np.where(farther, np.nextafter(rounded, dtype(0)), rounded).astype(np.float64)
