"""The supports of several constraints: coordinates of a vector, and groups of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import Grouping, mask_of, namespace, refuse_nan, to_numpy, union, where_true
from hardthresh.core.few import first_true
from hardthresh.core.lazy import at_hand, scalar
from hardthresh.core.schema import stored
from hardthresh.core.support import Support, stored_as_array
from hardthresh.core.typing import Array


def equal_arrays(a: Array, b: Array) -> bool:
    """Return whether two arrays have the same shape and entries."""
    return a is b or bool(a.shape == b.shape and namespace(a, b).all(a == b))


def exchanged(indices: Array, removed: int, added: int) -> Array:
    """Return increasing indices with one of them replaced by another."""
    newcomer = namespace(indices).zeros_like(indices[:1]) + added
    return union(indices[indices != removed], newcomer)


def same_entries(a: Array, b: Array) -> bool:
    """Return whether two arrays of one shape have the same entries; of a device, as a number that is not here yet."""
    same: bool = scalar(namespace(a, b).all(a == b))
    return same


@stored_as_array(1)
@stored("support/coordinates")
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coordinates(Support):
    """Coordinates of a vector.

    It is used like the sequence of its coordinates: ``X[:, support]``, ``support[0]``, ``len(support)``.

    Attributes
    ----------
    indices : array of int
        The coordinates, increasing, in the library of the point.
    """

    indices: Array

    @staticmethod
    def of_mask(mask: Array, has_nan: bool = False, start: Support | None = None) -> Coordinates:
        """Return the support of the coordinates where a mask is true; the mask is invalid if `has_nan` is true.

        With the support that a projection started from it is compared at once: the host will ask.
        """
        if at_hand(has_nan):
            refuse_nan(has_nan)
        return MaskedCoordinates(mask, has_nan, start)

    def mask(self, size: int) -> Array:
        """Return which of all coordinates are in the support."""
        return mask_of(self.indices, size)

    def restrict(self, v: Array) -> Array:
        xp = namespace(v)
        return xp.where(self.mask(v.shape[0]), v, xp.zeros_like(v))

    def exchange(self, removed: int, added: int) -> Coordinates:
        """Return the support with one coordinate replaced by another."""
        return Coordinates(exchanged(self.indices, removed, added))

    def __or__(self, other: Support) -> Coordinates:
        assert isinstance(other, Coordinates)
        return Coordinates(union(self.indices, other.indices))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coordinates) and equal_arrays(self.indices, other.indices)

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def __getitem__(self, place: Any) -> Any:
        return to_numpy(self.indices)[place]

    def __iter__(self) -> Iterator[int]:
        return iter(to_numpy(self.indices).tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        indices = to_numpy(self.indices)
        return np.array(indices, dtype=dtype) if copy else np.asarray(indices, dtype=dtype)

    def __repr__(self) -> str:
        return f"Coordinates({[*self]})"


class MaskedCoordinates(Coordinates):
    """Coordinates of a vector on a device, which are counted and listed only when they are asked for.

    The shape of the list depends on the data, so that the host has to wait for it.

    Parameters
    ----------
    mask : array of bool, shape (n,)
        Where they are.
    has_nan : bool
        Whether there was NaN in the point that they are of, which is refused when they are asked for.
    start : Support, optional
        What they will be compared with.
    """

    __slots__ = ("_compared", "_count", "_has_nan", "_listed", "_mask")

    _mask: Array
    _has_nan: bool
    _count: int
    _listed: Array | None
    _compared: tuple[Array, bool] | None

    def __init__(self, mask: Array, has_nan: bool, start: Support | None = None) -> None:
        xp = namespace(mask)
        count = scalar(xp.count_nonzero(mask))
        values = {"_mask": mask, "_has_nan": has_nan, "_count": count, "_listed": None, "_compared": None}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if isinstance(start, MaskedCoordinates):
            object.__setattr__(self, "_compared", (start._mask, same_entries(mask, start._mask)))

    @property
    def indices(self) -> Array:
        """The coordinates, increasing, in the library of the point."""
        if self._listed is None:
            refuse_nan(self._has_nan)
            object.__setattr__(self, "_listed", first_true(self._mask, int(self._count)))
        return self._listed

    def plain(self) -> Coordinates:
        return Coordinates(self.indices)

    def mask(self, size: int) -> Array:
        return self._mask

    def __or__(self, other: Support) -> Coordinates:
        assert isinstance(other, Coordinates)
        return MaskedCoordinates(self._mask | other.mask(self._mask.shape[0]), self._has_nan)

    __ror__ = __or__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Coordinates):
            return False
        mask = other.mask(self._mask.shape[0])
        if self._compared is not None and self._compared[0] is mask:
            return self._compared[1]
        return same_entries(self._mask, mask)

    def __reduce__(self) -> tuple[Any, ...]:
        return Coordinates, (self.indices,)


@stored("support/groups")
@dataclass(frozen=True, slots=True, eq=False)
class Groups(Support):
    """Groups of coordinates of a vector, with the free coordinates, which belong to no group.

    Attributes
    ----------
    numbers : array of int
        The numbers of the groups, increasing.
    grouping : Grouping
        Which coordinates each group has.
    """

    numbers: Array
    grouping: Grouping

    @property
    def indices(self) -> Array:
        """The coordinates of the groups and the free ones, increasing."""
        return where_true(self._mask())

    def restrict(self, v: Array) -> Array:
        xp = namespace(v)
        return xp.where(self._mask(), v, xp.zeros_like(v))

    def exchange(self, removed: int, added: int) -> Groups:
        """Return the support with one group replaced by another."""
        return Groups(exchanged(self.numbers, removed, added), self.grouping)

    def __or__(self, other: Support) -> Groups:
        assert isinstance(other, Groups)
        return Groups(union(self.numbers, other.numbers), self.grouping)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and equal_arrays(self.numbers, other.numbers)

    def _mask(self) -> Array:
        return self.grouping.mask(self.numbers, none=True)


@stored("support/rows")
@dataclass(frozen=True, slots=True, eq=False)
class Rows(Support):
    """Rows of a matrix, or groups of rows, with the free rows.

    Attributes
    ----------
    numbers : array of int
        The numbers of the groups of rows, increasing. Where every row is a group of its own they are numbered in their
        order, without the free rows; see `rows`.
    grouping : Grouping
        Which rows each group has.
    n_outputs : int
        The number of columns of the matrix.
    """

    numbers: Array
    grouping: Grouping
    n_outputs: int

    @property
    def rows(self) -> Array:
        """The rows of the groups and the free ones, increasing."""
        return where_true(self._mask())

    @property
    def indices(self) -> Array:
        """The coordinates of these rows in the flat point, increasing."""
        rows = self.rows
        xp = namespace(rows)
        columns = xp.arange(self.n_outputs, dtype=rows.dtype, device=device(rows))
        return xp.reshape(rows[:, None] * self.n_outputs + columns[None, :], (-1,))

    def restrict(self, v: Array) -> Array:
        xp = namespace(v)
        return xp.where(self._mask()[:, None], v, xp.zeros_like(v))

    def exchange(self, removed: int, added: int) -> Rows:
        """Return the support with one group of rows replaced by another."""
        return Rows(exchanged(self.numbers, removed, added), self.grouping, self.n_outputs)

    def __or__(self, other: Support) -> Rows:
        assert isinstance(other, Rows)
        return Rows(union(self.numbers, other.numbers), self.grouping, self.n_outputs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and equal_arrays(self.numbers, other.numbers)

    def _mask(self) -> Array:
        return self.grouping.mask(self.numbers, none=True)
