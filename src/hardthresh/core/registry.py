"""The registry of every loss, constraint, step rule, solver, objective, estimator and selector, by name.

Registration is what makes the conformance tests, the documentation and ``hardthresh list`` pick a new thing up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from .errors import InvalidInputError, format_value
from .schema import Upgrade, stored

Kind = Literal["loss", "constraint", "step", "solver", "objective", "estimator", "selector", "algorithm"]
T = TypeVar("T", bound=type)


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered class with the instances for the conformance tests.

    Attributes
    ----------
    name : str
        The name under which users ask for it.
    cls : type
        The class.
    examples : callable
        Returns the instances.
    """

    name: str
    cls: type
    examples: Callable[[], Iterable[Any]]


_ENTRIES: dict[str, dict[str, Entry]] = {}


def register(
    kind: Kind, name: str, examples: Callable[[], Iterable[Any]] | None = None, upgrades: Iterable[Upgrade] = ()
) -> Callable[[T], T]:
    """Class decorator: register a class under its kind, and let it be stored as "kind/name".

    Parameters
    ----------
    kind : {"loss", "constraint", "step", "solver", "objective", "estimator", "selector", "algorithm"}
        The list; "selector" is that of estimators which choose features by fits of another estimator, and "algorithm"
        that of `hardthresh.limited`, which chooses what to observe.
    name : str
        The name under which users ask for it; unique within its kind.
    examples : callable returning an iterable of instances, optional
        Instances for the conformance tests; the default is one instance without arguments.
    upgrades : iterable of callables
        How the fields of earlier versions in files become those of this one, see `stored`.

    Returns
    -------
    callable
        The decorator, which returns the class itself.

    Raises
    ------
    InvalidInputError
        If the name is taken by another class.
    """

    def add(cls: T) -> T:
        known = _ENTRIES.setdefault(kind, {})
        taken = known.get(name)
        if taken is not None and (taken.cls.__module__, taken.cls.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidInputError(
                f"the {kind} name {format_value(name)} is taken by {taken.cls.__qualname__}; choose another"
            )
        stored(f"{kind}/{name}", upgrades)(cls)
        known[name] = Entry(name, cls, examples if examples is not None else lambda: [cls()])
        return cls

    return add


def registered(kind: Kind) -> dict[str, Entry]:
    """Return the entries of one kind, by name (a copy, in order of registration).

    Parameters
    ----------
    kind : {"loss", "constraint", "step", "solver", "objective", "estimator", "selector", "algorithm"}
        The list.

    Returns
    -------
    dict
    """
    return dict(_ENTRIES.get(kind, {}))


def lookup(kind: Kind, name: str) -> type:
    """Return the class registered under a name.

    Parameters
    ----------
    kind : {"loss", "constraint", "step", "solver", "objective", "estimator", "selector", "algorithm"}
        The list.
    name : str
        The name.

    Returns
    -------
    type

    Raises
    ------
    InvalidInputError
        If there is none; the message lists the names that exist.
    """
    known = _ENTRIES.get(kind, {})
    if name not in known:
        raise InvalidInputError(f"unknown {kind} {format_value(name)}; known: {', '.join(sorted(known))}")
    return known[name].cls
