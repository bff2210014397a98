"""The classes that a file may hold: a fixed list, looked up by name and never imported by it."""

from __future__ import annotations

import json
import sys
from dataclasses import is_dataclass
from enum import Enum
from importlib import resources
from typing import Any

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import registered
from hardthresh.core.schema import Schema, schemas

from .errors import StorageError

NAMES_OF_VERSION_2: dict[str, str] = json.loads(
    resources.files(__package__).joinpath("names_of_version_2.json").read_text("utf-8")
)
"""The registered name of each class that files of format versions 1 and 2 name by its module. It is not extended."""

_RENAMED_KINDS = {"observation": "algorithm"}
"""Kinds of the registry that had another name in files of format version 3, and their name of today."""

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


def path_of(cls: type) -> str:
    """Return the module and the name of a class: how messages name it, and files if it has no other name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def kind_of(cls: type) -> str | None:
    """Return how a class is written, the key ``"$"`` of its nodes; None if it cannot be."""
    if issubclass(cls, Enum):
        return "enum"
    if cls in [entry.cls for kind in ("estimator", "selector") for entry in registered(kind).values()]:
        return "estimator"
    return "object" if is_dataclass(cls) else None


def known_classes() -> dict[str, Schema]:
    """Return what can be stored, by name.

    The classes that have a name, and by their path those of files outside hardthresh in which a class has one.
    """
    # what these rooms, and those below them, store is named when they are imported
    from hardthresh import attacks, baselines, certificates, constraints, limited, losses, steps  # noqa: F401

    named = schemas()
    files = {schema.cls.__module__ for schema in named.values() if not schema.cls.__module__.startswith("hardthresh.")}
    beside = (cls for file in files & sys.modules.keys() for cls in vars(sys.modules[file]).values())
    classes = [cls for cls in beside if isinstance(cls, type) and cls.__module__ in files and kind_of(cls)]
    upgrades = {schema.cls: schema.upgrades for schema in named.values()}  # also for what was written by its path
    return {path_of(cls): Schema(path_of(cls), cls, upgrades.get(cls, ())) for cls in classes} | named


class Finder:
    """Finds classes by the names in a file; what is known is looked up once for all of them."""

    def __init__(self) -> None:
        self._known = known_classes()

    def find(self, name: str, kind: str) -> Schema:
        """Return the schema with a name, of a class that is written as a `kind` of node.

        Raises
        ------
        StorageError
            If there is none.
        """
        name = NAMES_OF_VERSION_2.get(name, name)
        if name not in self._known:
            kind_in_file, _, word = name.partition("/")
            name = f"{_RENAMED_KINDS[kind_in_file]}/{word}" if kind_in_file in _RENAMED_KINDS else name
        if name not in self._known:
            # with scikit-learn, which not every file needs
            import hardthresh.estimators
            import hardthresh.limited.estimators  # noqa: F401

            self._known = known_classes()
        schema = self._known.get(name)
        if schema is None or kind_of(schema.cls) != kind:
            raise StorageError(f"unknown class {name!r}; if it is your own, import the file that registers it first")
        return schema


def splitter_class(name: str) -> Any:
    """Return a class of cross-validation splitters of scikit-learn.

    Raises
    ------
    StorageError
        If there is no such class on the list.
    """
    if name not in _SPLITTERS:
        raise StorageError(f"unknown class {name!r}; the splitters known are {', '.join(_SPLITTERS)}")
    from sklearn import model_selection

    return getattr(model_selection, name)


def is_splitter(cls: type) -> bool:
    """Return whether a class is on the list of splitters; scikit-learn is not imported to know."""
    return cls.__name__ in _SPLITTERS and "sklearn" in sys.modules and splitter_class(cls.__name__) is cls


def is_fitted_attribute(name: str) -> bool:
    """Return whether an attribute of an estimator is stored with it."""
    return (name.endswith("_") and not name.startswith("_")) or name in ("_certificate", "_sklearn_output_config")


def check_estimator(model: Any) -> None:
    """Check that an estimator would not fail, or predict NaN, when it is used.

    Estimators check themselves: ``_check_settings()``, and ``_check_attributes()`` once they are fitted, raise
    `InvalidInputError`. An estimator without these methods is not checked.

    Raises
    ------
    StorageError
        With the class and what is wrong with it.
    """
    fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(model))
    for method in ("_check_settings", "_check_attributes")[: 1 + fitted]:
        try:
            getattr(model, method, lambda: None)()
        except InvalidInputError as error:
            raise StorageError(f"not a sound {type(model).__name__}: {error}") from error
