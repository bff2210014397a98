"""The classes that a file may hold: a fixed list, looked up by name and never imported by it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, get_args

from hardthresh.core.registry import Kind, registered

from .errors import StorageError

# the rooms of plain values and settings
_ROOMS = (
    "core",
    "arrays",
    "losses",
    "constraints",
    "steps",
    "objectives",
    "attributes",
    "solvers",
    "baselines",
    "certificates",
    "attacks",
)
_SPLITTERS = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePOut",
    "PredefinedSplit",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)


def class_name(cls: type) -> str:
    """Return the name by which a file knows a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def plain_classes() -> dict[str, type]:
    """Return the dataclasses and enumerations of the rooms, and of every file that registers a class."""
    for room in _ROOMS:
        import_module(f"hardthresh.{room}")
    rooms = tuple(f"hardthresh.{room}." for room in (*_ROOMS, "estimators"))  # estimators only if they are in use
    files = {entry.cls.__module__ for kind in get_args(Kind) for entry in registered(kind).values()}
    files |= {name for name in sys.modules if name.startswith(rooms)}
    return {
        class_name(cls): cls
        for file in files
        for cls in vars(sys.modules[file]).values()
        if isinstance(cls, type) and cls.__module__ == file and (is_dataclass(cls) or issubclass(cls, Enum))
    }


def estimators(*, load: bool = False) -> dict[str, type]:
    """Return the registered estimators; without `load`, those whose files are imported already."""
    if load:
        import_module("hardthresh.estimators")
    return {class_name(entry.cls): entry.cls for entry in registered("estimator").values()}


def splitters(*, load: bool = False) -> dict[str, type]:
    """Return the cross-validation splitters; without `load`, none as long as scikit-learn is not in use."""
    if not load and "sklearn.model_selection" not in sys.modules:
        return {}
    home = import_module("sklearn.model_selection")
    return {name: getattr(home, name) for name in _SPLITTERS}


def find(known: Mapping[str, type], name: str, base: type = object) -> Any:
    """Return a class of a list by its name.

    Raises
    ------
    StorageError
        If it is not in the list, or not derived from `base`.
    """
    cls = known.get(name)
    if cls is None or not issubclass(cls, base):
        raise StorageError(f"unknown class {name!r}; if it is your own, import the file that registers it first")
    return cls


def is_fitted_attribute(name: str) -> bool:
    """Return whether an attribute of an estimator is stored with it."""
    return (name.endswith("_") and not name.startswith("_")) or name in ("_certificate", "_sklearn_output_config")
