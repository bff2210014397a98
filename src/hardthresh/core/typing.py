"""Types that the contracts share, and checks of numbers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_numpy_array

Array: TypeAlias = Any
"""An array of any library that follows the Python array API standard: NumPy, torch, CuPy, array_api_strict."""


def library(x: Array) -> Any:
    """Return the array library of an array; NumPy itself for NumPy, which needs no wrapper."""
    return np if type(x) is np.ndarray else array_namespace(x)


def is_numpy(x: Any) -> bool:
    """Return whether an object is an array of NumPy: `is_numpy_array` of array_api_compat, faster for almost all."""
    return type(x) is np.ndarray or is_numpy_array(x)


def is_real(x: Any) -> bool:
    """Return whether an object is a real number other than True or False."""
    return isinstance(x, Real) and not isinstance(x, bool)


def is_integer(x: Any) -> bool:
    """Return whether an object is an integer other than True or False."""
    return isinstance(x, Integral) and not isinstance(x, bool)
