"""Supports: where a point may be non-zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, ClassVar, TypeVar

from array_api_compat import is_array_api_obj

from .schema import Fields
from .typing import Array

T = TypeVar("T", bound=type["Support"])

SUPPORTS = ("support", "ahead_support", "index_set")
"""The fields of states that are supports."""


class Support(ABC):
    """The support of a point, where it may be non-zero. Every projection returns one.

    Supports are frozen dataclasses, made by one kind of set. ``a | b`` is the union of two supports of that kind, and
    ``a == b`` says whether they are the same.
    """

    indices: Array
    """Increasing coordinates of a flat point; None where a support is not a set of coordinates."""

    @abstractmethod
    def restrict(self, v: Array) -> Array:
        """Return `v` on the subspace of the support, zero elsewhere."""

    @abstractmethod
    def __or__(self, other: Support) -> Support: ...

    @abstractmethod
    def __eq__(self, other: object) -> bool: ...

    __hash__: ClassVar[None]  # type: ignore[assignment]  # arrays are not hashable

    def exchange(self, removed: int, added: int) -> Support:
        """Return the support with one of its coordinates, or groups, replaced by another."""
        raise TypeError(f"{type(self).__name__} does not exchange coordinates or groups of them")

    def plain(self) -> Support:
        """Return the same support with all its arrays on the host, for storage in files."""
        return self

    @property
    def degrees_of_freedom(self) -> int:
        """The dimension of the subspace; a subclass without `indices` must define it."""
        if self.indices is None:
            raise NotImplementedError(f"{type(self).__name__} must say how many numbers its points are free to have")
        return int(self.indices.shape[0])


_STORED_AS_ARRAYS: dict[int, Any] = {}


def stored_as_array(dimensions: int) -> Callable[[T], T]:
    """Class decorator: version 1 of files had arrays of integers for such supports of points of so many dimensions."""

    def add(cls: T) -> T:
        _STORED_AS_ARRAYS[dimensions] = cls
        return cls

    return add


def upgrade_supports(fields: Fields) -> Fields:
    """Return the fields of a state or a projection in version 2, from version 1 with arrays of integers for supports.

    Numbers of groups are taken for coordinates at first; `of_kind` makes groups of them once the constraint is known.
    """
    point = fields["at"].point if "at" in fields else fields["point"]
    arrays = {name: value for name, value in fields.items() if name in SUPPORTS and is_array_api_obj(value)}
    return fields | {name: _STORED_AS_ARRAYS[point.ndim](array) for name, array in arrays.items()}


def of_kind(kind: Support, support: Support) -> Support:
    """Return a support that was stored before supports had kinds as one of the kind of another.

    What was stored are the first fields of any kind; the others, such as the coordinates of each group, are those of
    `kind`.
    """
    kind = kind.plain()
    if type(support) is type(kind):
        return support
    old: Any = support
    new: Any = kind
    pairs = zip(fields(old), fields(new), strict=False)
    made: Support = replace(new, **{theirs.name: getattr(old, ours.name) for ours, theirs in pairs})
    return made
