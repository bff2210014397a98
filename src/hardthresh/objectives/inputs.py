"""The checks of the data of objectives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from array_api_compat import device, is_array_api_obj

from hardthresh.arrays import all_finite, as_double, as_floating, namespace, to_numpy
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array, is_integer
from hardthresh.designs import Design, as_design


def checked_design(X: Any) -> Design:
    """Return the design of some data with at least one row and one column."""
    design = as_design(X)
    if 0 in design.shape:
        raise InvalidInputError(f"X has shape {design.shape}; at least one example and one column are needed")
    return design


def checked_targets(y: Any, like: Array, n: int, name: str) -> Array:
    """Return one finite number for each of n rows, shape (n,)."""
    y = as_floating(y, like, name)
    if tuple(y.shape) != (n,):
        raise InvalidInputError(f"{name} has shape {tuple(y.shape)}; ({n},) is needed, one number per row of X")
    return _finite(y, name)


def checked_target_matrix(y: Any, like: Array, n: int, name: str) -> Array:
    """Return at least one finite number for each of n rows, shape (n, q)."""
    y = as_floating(y, like, name)
    if y.ndim != 2 or y.shape[0] != n or y.shape[1] == 0:
        raise InvalidInputError(f"{name} has shape {tuple(y.shape)}; ({n}, q) is needed, one row per row of X")
    return _finite(y, name)


def _finite(y: Array, name: str) -> Array:
    if not all_finite(y):
        raise InvalidInputError(f"{name} contains NaN or infinity; remove or impute these entries first")
    return y


def check_squares(x: Array, name: str) -> None:
    """Refuse numbers, one for each row, a sum of whose squares overflows."""
    xp = namespace(x)
    largest = float(xp.max(xp.abs(x)))
    if not largest < float(xp.finfo(x.dtype).max) ** 0.5 / x.shape[0]:
        raise InvalidInputError(
            f"the squares of {name} leave the range of {x.dtype} (the largest is {largest:.3g}); rescale it"
        )


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a model with their weights and offset, checked.

    Attributes
    ----------
    y : array, shape (n,) or (n, q)
        The targets.
    weights : array, shape (n,)
        The weight of each example in the mean: their sum is 1.
    n_examples : float
        The number of examples that the weights stand for: the sum of the sample weights.
    offset : array, shape of y, or None
        A known part of the predictions.
    """

    y: Array
    weights: Array
    n_examples: float
    offset: Array | None

    @classmethod
    def of(cls, y: Any, sample_weight: Any, offset: Any, like: Array, n: int, name: str = "y") -> Targets:
        """Return the targets of n examples, one each."""
        y = checked_targets(y, like, n, name)
        offset = None if offset is None else checked_targets(offset, like, n, "offset")
        return cls._weighted(y, sample_weight, offset, like, name)

    @classmethod
    def of_matrix(cls, y: Any, sample_weight: Any, offset: Any, like: Array, n: int, name: str = "Y") -> Targets:
        """Return the targets of n examples, a row for each."""
        y = checked_target_matrix(y, like, n, name)
        offset = None if offset is None else checked_target_matrix(offset, like, n, "offset")
        if offset is not None and offset.shape != y.shape:
            raise InvalidInputError(f"offset has shape {tuple(offset.shape)}, but {name} has {tuple(y.shape)}")
        return cls._weighted(y, sample_weight, offset, like, name)

    @classmethod
    def of_examples(cls, y: Any, sample_weight: Any, offset: Any, like: Array, n: int, name: str = "y") -> Targets:
        """Return the targets of n examples, a row for each, of which there is one prediction and one offset each."""
        y = checked_target_matrix(y, like, n, name)
        offset = None if offset is None else checked_targets(offset, like, n, "offset")
        return cls._weighted(y, sample_weight, offset, like, name)

    @classmethod
    def _weighted(cls, y: Array, sample_weight: Any, offset: Array | None, like: Array, name: str) -> Targets:
        n = y.shape[0]
        if offset is not None:
            check_squares(offset, "offset")
        weights = mean_weights(sample_weight, like, n)
        count = float(n) if sample_weight is None else total_weight(as_floating(sample_weight, like))
        return cls(y, weights, count, offset)

    def double(self) -> Targets:
        """Return the same in double precision."""
        offset = None if self.offset is None else as_double(self.offset)
        return replace(self, y=as_double(self.y), weights=as_double(self.weights), offset=offset)

    def take(self, indices: Array) -> Targets:
        """Return those of some examples, with the same weights."""
        take = namespace(self.y).take
        offset = None if self.offset is None else take(self.offset, indices, axis=0)
        return replace(
            self, y=take(self.y, indices, axis=0), weights=take(self.weights, indices, axis=0), offset=offset
        )


def mean_weights(sample_weight: Any, like: Array, n: int) -> Array:
    """Return the weight of each of n rows in the mean: their sum is 1 but for the rounding of each."""
    xp = namespace(like)
    if sample_weight is None:
        return xp.full((n,), 1.0 / n, dtype=like.dtype, device=device(like))
    weights = checked_targets(sample_weight, like, n, "sample_weight")
    if bool(xp.any(weights < 0)) or not bool(xp.any(weights > 0)):
        raise InvalidInputError(
            "sample_weight must be non-negative with a positive entry; negative or all-zero weights given"
        )
    double = xp.astype(weights, xp.float64)
    double = double / xp.max(double)  # the sum of large ones may overflow
    return xp.astype(double / xp.sum(double), like.dtype)


def weighted_rows(sample_weight: Any, n: int) -> np.ndarray:
    """Return which of n rows have a weight other than 0: all of them if there are no weights."""
    if sample_weight is None:
        return np.arange(n)
    weights = to_numpy(sample_weight) if is_array_api_obj(sample_weight) else np.asarray(sample_weight)
    return np.flatnonzero(np.broadcast_to(weights, (n,)))


def checked_ridge(l2: Any, like: Array, d: int | None = None) -> Array:
    """Return a ridge: one finite number >= 0, or, where d is given, one for each of d coordinates."""
    xp = namespace(like)
    l2 = xp.asarray(l2, dtype=like.dtype, device=device(like))
    if tuple(l2.shape) not in ((), (d,)):
        needed = "a number" if d is None else f"a number or ({d},)"
        raise InvalidInputError(f"l2 has shape {tuple(l2.shape)}; {needed} is needed")
    if not bool(xp.all((l2 >= 0) & (l2 < inf))):
        raise InvalidInputError("l2 must be finite and >= 0 everywhere")
    return l2


def total_weight(weights: Array) -> float:
    """Return the sum of non-negative weights, infinite if that overflows."""
    xp = namespace(weights)
    largest = float(xp.max(weights))
    return largest * float(xp.sum(xp.astype(weights, xp.float64) / largest))


def matrix_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the two sides of a matrix, checked."""
    sides: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else ()
    if len(sides) != 2 or not all(is_integer(side) and side >= 1 for side in sides):
        raise InvalidInputError(f"shape must be two integers (p, q), each >= 1, got {format_value(shape)}")
    return int(sides[0]), int(sides[1])
