"""Names and versions of the classes in stored files, which do not depend on where the code is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from .errors import InvalidInputError, format_value

Fields: TypeAlias = dict[str, Any]
T = TypeVar("T", bound=type)


@dataclass(frozen=True, slots=True)
class Successor:
    """Fields that belong to another class now, in its first version: returned by an upgrade.

    Attributes
    ----------
    name : str
        The name of that class in files.
    fields : dict
        Its fields.
    """

    name: str
    fields: Fields


Upgrade: TypeAlias = Callable[[Fields], Fields | Successor]


@dataclass(frozen=True, slots=True)
class Schema:
    """Name, class and upgrades of what is written to a file.

    Attributes
    ----------
    name : str
        Its name there, "kind/name".
    cls : type
        The class.
    upgrades : tuple of callables
        The i-th (from 0) turns fields of version i + 1 into fields of version i + 2.
    """

    name: str
    cls: type
    upgrades: tuple[Upgrade, ...] = ()

    @property
    def version(self) -> int:
        """The version of its fields that is written now: 1, and one more with each upgrade."""
        return 1 + len(self.upgrades)

    def upgraded(self, fields: Fields, version: int) -> Fields | Successor:
        """Return fields of this version, made of those of an older one; or those of another class."""
        for upgrade in self.upgrades[version - 1 :]:
            upgraded = upgrade(fields)
            if isinstance(upgraded, Successor):
                return upgraded
            fields = upgraded
        return fields


def renames(**names: str) -> Upgrade:
    """Return an upgrade that renames fields: ``renames(old="new")``."""
    return lambda fields: {names.get(name, name): value for name, value in fields.items()}


_SCHEMAS: dict[str, Schema] = {}


def stored(name: str, upgrades: Iterable[Upgrade] = ()) -> Callable[[T], T]:
    """Class decorator: let `hardthresh.save` write a dataclass or an enumeration under a permanent name.

    The class may be renamed or moved to another file at any time. To change its fields, append a function to `upgrades`
    that converts the old fields to the new ones, so that files of all earlier versions can still be loaded. Registered
    classes (`hardthresh.core.register`) already have the name "kind/name", and their `upgrades` are given to
    `register`.

    Parameters
    ----------
    name : str
        The name in files, "kind/name", such as "state/iht"; unique, and never given to another class.
    upgrades : iterable of callables
        From version 1 to 2, from 2 to 3, and so on: each takes the decoded fields as a dictionary and returns those of
        the next version, or a `Successor` if they are those of another class now. The fields of an estimator are its
        parameters and fitted attributes; that of an enumeration is the ``name`` of the member. A `Successor` has the
        fields of version 1 of its class, so that version must never change its meaning: append an upgrade to that
        class instead.

    Returns
    -------
    callable
        The decorator, to be written above ``@dataclass``.

    Raises
    ------
    InvalidInputError
        If the name is not of this form or taken by another class, or if the class has another name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from hardthresh.core import stored
    >>> def rename_width(fields):
    ...     return {"size": fields["width"]}
    >>> @stored("example/window", upgrades=[rename_width])
    ... @dataclass(frozen=True)
    ... class Window:
    ...     size: int
    """

    if not re.fullmatch(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*", name):
        raise InvalidInputError(f"a name in files is 'kind/name' in small letters, such as 'state/iht'; got {name!r}")

    def add(cls: T) -> T:
        other = next((known for known, schema in _SCHEMAS.items() if schema.cls is cls and known != name), None)
        if other is not None:
            raise InvalidInputError(f"{cls.__qualname__} has the name {other!r} in files; a class has one")
        taken = _SCHEMAS.get(name)
        if taken is not None and (taken.cls.__module__, taken.cls.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidInputError(
                f"the name {format_value(name)} in files is taken by {taken.cls.__qualname__}; choose another"
            )
        _SCHEMAS[name] = Schema(name, cls, tuple(upgrades))
        return cls

    return add


def schemas() -> dict[str, Schema]:
    """Return what is written to files under a name, by that name (a copy)."""
    return dict(_SCHEMAS)
