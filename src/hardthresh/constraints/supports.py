"""The supports of several constraints: coordinates of a vector, and groups of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from hardthresh.arrays import Grouping, mask_of, namespace, to_numpy, union, where_true
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

    def restrict(self, v: Array) -> Array:
        xp = namespace(v)
        return xp.where(mask_of(self.indices, v.shape[0]), v, xp.zeros_like(v))

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
        return f"{type(self).__name__}({[*self]})"


@stored("support/groups")
@dataclass(frozen=True, slots=True, eq=False)
class Groups(Support):
    """Groups of coordinates of a vector, with the free coordinates that are in no group.

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
    """Rows of a matrix, or groups of them, with the free rows.

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
