"""Saving and loading without executing anything: one versioned format, JSON with the large arrays beside it.

`save` writes fitted estimators, results and states of runs, and settings (solvers, step rules, constraints, losses,
stopping rules); `load` brings them back. A run that goes on from a loaded state makes the same numbers, bit for bit.

The format, version 1
---------------------
``model.json`` is strict JSON (UTF-8, no ``NaN``):

.. code-block:: text

    {"format": "hardthresh", "format_version": 1,
     "written_by": {"hardthresh": ..., "numpy": ..., "scikit-learn": ...},
     "arrays": null, or {"file": "model-0123456789ab.npz", "sha256": ...},
     "notes": {...},            what the writer wants to remember: plain JSON, not part of the object
     "object": ...}

Null, booleans, integers, finite floats (in their shortest form, which is exact), strings, lists and dictionaries with
strings as keys are themselves. Everything else is a dictionary whose key ``"$"`` says what it is:

=============== ======================================================================================================
``"$"``         other keys
=============== ======================================================================================================
``float``       ``value``: ``"nan"``, ``"inf"`` or ``"-inf"``
``tuple``       ``items``
``range``       ``items``: start, stop, step
``dict``        ``items``: pairs; a dictionary with other keys, or with the key ``"$"``
``array``       up to 64 numbers or strings: ``dtype`` (as ``numpy.dtype.str``), ``shape``, ``order`` (``"C"`` or
                ``"F"``), ``data`` (flat, in that order); else ``file``, the name of the array in the npz file.
                ``library``, if it was not NumPy's
``texts``       ``items``, ``shape``: an array of Python strings, numbers or None
``scalar``      ``array``: a NumPy scalar, as an array of shape ()
``enum``        ``class``, ``name``
``object``      ``class``, ``fields``: a dataclass
``history``     ``columns``: a `History`
``estimator``   ``class``, ``parameters`` (of ``get_params(deep=False)``), ``fitted`` (the attributes that end in ``_``,
                the certificate if it was asked for, and the choice of ``set_output``)
``splitter``    ``class``, ``settings``: a cross-validation splitter of scikit-learn
``randomstate`` ``state``: a ``numpy.random.RandomState``
=============== ======================================================================================================

A class is never imported by its name: the name is looked up among the registered estimators, the enumerations and
dataclasses of hardthresh's own rooms, and the dataclasses of any file that registers a class
(`hardthresh.core.register`). So a class of your own can be stored if its file registers something, and loaded once that
file is imported.

The npz file holds the larger arrays (NumPy's own format, read with ``allow_pickle=False``). Its name contains the hash
of its content, so writing is atomic: first the new arrays, then the JSON by a rename, and only then the old arrays go.
Move the two files together.

Arrays of other libraries (torch, CuPy) are stored, and come back, as NumPy arrays; ``library`` says what they were. The
objective of a `Result` holds the data and is not stored; nor are an estimator's other private attributes, callbacks and
metadata requests. Ask a model for its ``certificate()`` before you save it: a loaded one has no data to find it with.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args
from zipfile import BadZipFile

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from hardthresh import __version__
from hardthresh.arrays import to_numpy
from hardthresh.core.errors import HardThreshError
from hardthresh.core.registry import Kind, registered
from hardthresh.core.result import History, Result

__all__ = ["StorageError", "load", "load_notes", "save"]

FORMAT_VERSION = 1
INLINE = 64  # entries up to which an array stands in the JSON itself
_INLINE_KINDS = "biufU"  # if its numbers or strings are exact there

Node: TypeAlias = Any
"""A value in its JSON form."""

# besides estimators, a file may hold the enumerations and dataclasses of these rooms: plain values and settings
_ROOMS = ("core", "losses", "constraints", "steps", "objectives", "solvers", "certificates")
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


# what cut or invented content makes the decoding and the constructors of known classes raise
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    BadZipFile,
    HardThreshError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class StorageError(HardThreshError, ValueError):
    """An object cannot be stored, or a file cannot be read as one."""


def save(obj: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
    """Write an object to ``path``, with its large arrays beside it.

    Parameters
    ----------
    obj : estimator, Result, State, or settings (Solver, StepRule, Constraint, Loss, StopRule)
        What to store; also lists, tuples and dictionaries of such things, numbers and arrays.
    path : path ending in ".json"
        An existing file is replaced, in one step: a save that is killed leaves the old model whole.
    notes : mapping, optional
        Anything in plain JSON types to keep with the object, such as the command that made it; see `load_notes`.

    Raises
    ------
    StorageError
        If a part of the object cannot be stored; the message names the part.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.solvers import IHT
    >>> from hardthresh.steps import Fixed
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ht.save(IHT(step=Fixed(0.5)), Path(folder) / "solver.json")
    ...     ht.load(Path(folder) / "solver.json")
    IHT(step=Fixed(step=0.5))
    """
    target = _json_path(path)
    writer = _Writer()
    document = {
        "format": "hardthresh",
        "format_version": FORMAT_VERSION,
        "written_by": {name: version(name) for name in ("numpy", "scikit-learn")} | {"hardthresh": __version__},
        "arrays": None,
        "notes": dict(notes or {}),
        "object": writer.encode(obj, type(obj).__name__),
    }
    old = _arrays_of(target)
    new: Path | None = None
    if writer.beside:
        buffer, beside = BytesIO(), cast("dict[str, Any]", writer.beside)
        np.savez(buffer, **beside)
        content = buffer.getvalue()
        digest = sha256(content).hexdigest()
        new = target.with_name(f"{target.stem}-{digest[:12]}.npz")
        document["arrays"] = {"file": new.name, "sha256": digest}
    try:
        text = json.dumps(document, allow_nan=False, indent=1)
    except (TypeError, ValueError) as error:
        raise StorageError(f"notes must be plain JSON values: {error}") from error
    if new is not None:
        _write(new, content)
    _write(target, (text + "\n").encode())
    if old is not None and old != new:
        old.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an object that `save` wrote. Nothing in the file is executed, and no class outside a fixed list is made.

    Parameters
    ----------
    path : path
        The JSON file; its arrays lie beside it.

    Raises
    ------
    StorageError
        If there is no such file, it is damaged or no hardthresh file, its arrays are missing or changed, it comes from
        a newer format, or it holds a class that is not known here.

    Examples
    --------
    >>> import hardthresh as ht
    >>> ht.load("nowhere.json")
    Traceback (most recent call last):
    hardthresh.storage.StorageError: nowhere.json: cannot be read, No such file or directory
    """
    target = Path(path)
    with _reading(target):
        document = _document(target)
        return _Reader(_arrays(target, document["arrays"])).decode(document["object"])


def load_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read only the notes that were saved with an object.

    Raises
    ------
    StorageError
        As in `load`.
    """
    target = Path(path)
    with _reading(target):
        return dict(_document(target)["notes"])


class _Writer:
    """Turn values into JSON nodes and collects the arrays that go beside."""

    def __init__(self) -> None:
        self.beside: dict[str, np.ndarray] = {}
        self.known = _known_classes()
        self._names: dict[int, str] = {}

    def encode(self, value: Any, where: str) -> Node:
        """Return the node of a value; `where` names it in an error."""
        match value:
            case np.generic():
                return {"$": "scalar", "array": self._array(np.asarray(value), where)}
            case None | bool() | int() | str() if type(value) in (type(None), bool, int, str):
                return value
            case float() if type(value) is float:
                return value if isfinite(value) else {"$": "float", "value": str(value)}
            case list() if type(value) is list:
                return self._items(value, where)
            case tuple() if type(value) is tuple:
                return {"$": "tuple", "items": self._items(value, where)}
            case range():
                return {"$": "range", "items": [value.start, value.stop, value.step]}
            case dict() if type(value) is dict:
                if "$" not in value and all(type(key) is str for key in value):
                    return self._fields(value, where)
                return {"$": "dict", "items": [self._items(pair, f"{where}[{pair[0]!r}]") for pair in value.items()]}
            case History():
                columns = {name: self._array(value[name], f"{where}[{name!r}]") for name in value}
                return {"$": "history", "columns": columns}
            case np.random.RandomState():
                state = value.get_state(legacy=False)
                return {"$": "randomstate", "state": self.encode(state, where)}
            case Result() if value.objective is not None:
                return self.encode(replace(value, objective=None), where)
        return self._instance(value, where)

    def _instance(self, value: Any, where: str) -> Node:
        """Return the node of an array or of an instance of a known class."""
        cls = type(value)
        name = _name(cls)
        if is_array_api_obj(value):
            return self._array(value, where)
        if cls in (entry.cls for entry in registered("estimator").values()):
            fitted = {key: part for key, part in vars(value).items() if _is_fitted(key)}
            return {
                "$": "estimator",
                "class": name,
                "parameters": self._fields(value.get_params(deep=False), where),
                "fitted": self._fields(fitted, where),
            }
        if cls is _splitters().get(cls.__name__):
            return {"$": "splitter", "class": cls.__name__, "settings": self._fields(vars(value), where)}
        if self.known.get(name) is not cls:
            raise StorageError(
                f"{where} cannot be stored: it is a {name}, which is neither plain data nor an estimator, a Result, "
                "a State or a settings object that hardthresh knows (of your own: see hardthresh.core.register)"
            )
        if isinstance(value, Enum):
            return {"$": "enum", "class": name, "name": value.name}
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return {"$": "object", "class": name, "fields": self._fields(parts, where)}

    def _items(self, values: Any, where: str) -> list[Node]:
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _fields(self, values: Mapping[str, Any], where: str) -> dict[str, Node]:
        return {name: self.encode(value, f"{where}.{name}") for name, value in values.items()}

    def _array(self, value: Any, where: str) -> Node:
        array = np.asarray(to_numpy(value))
        library = array_namespace(value).__name__.removeprefix("array_api_compat.")
        origin = {} if library == "numpy" else {"library": library}
        if array.dtype.hasobject or array.dtype.kind == "T":
            items = array.ravel().tolist()
            if array.dtype != object or any(type(x) not in (type(None), bool, int, float, str) for x in items):
                raise StorageError(f"{where} cannot be stored: an array of arbitrary Python objects; convert it first")
            return {"$": "texts", "shape": list(array.shape), "items": self._items(items, where)}
        if array.size <= INLINE:
            order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            node = {
                "$": "array",
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "order": order,
                "data": array.ravel(order=order).tolist(),
                **origin,
            }
            if _stands_inline(node, array):
                return node
        if id(array) not in self._names:
            self._names[id(array)] = name = f"a{len(self.beside)}"
            self.beside[name] = array
        return {"$": "array", "file": self._names[id(array)], **origin}


class _Reader:
    """Turn JSON nodes back into values."""

    def __init__(self, beside: Mapping[str, np.ndarray]) -> None:
        self.beside = beside

    def decode(self, node: Node) -> Any:
        """Return the value of a node."""
        match node:
            case list():
                return [self.decode(item) for item in node]
            case {"$": "float", "value": "nan" | "inf" | "-inf" as text}:
                return float(text)
            case {"$": "tuple", "items": list(items)}:
                return tuple(self.decode(items))
            case {"$": "range", "items": [int(start), int(stop), int(step)]}:
                return range(start, stop, step)
            case {"$": "dict", "items": list(items)}:
                return dict(self.decode(items))
            case {"$": "array", "file": str(name)}:
                return self.beside[name]
            case {"$": "array"}:
                return _inline_array(node)
            case {"$": "texts", "shape": list(shape), "items": list(items)}:
                texts = np.empty(len(items), dtype=object)
                texts[:] = self.decode(items)
                return texts.reshape(shape)
            case {"$": "scalar", "array": inner}:
                return self.decode(inner)[()]
            case {"$": "history", "columns": dict(columns)}:
                return History({name: self.decode(column).tolist() for name, column in columns.items()})
            case {"$": "randomstate", "state": inner}:
                random_state = np.random.RandomState()
                random_state.set_state(self.decode(inner))
                return random_state
            case {"$": "enum", "class": str(name), "name": str(member)}:
                return _find(_known_classes(), name, Enum)[member]
            case {"$": "object", "class": str(name), "fields": dict(parts)}:
                return _find(_known_classes(), name, object)(**self._fields(parts))
            case {"$": "splitter", "class": str(name), "settings": dict(parts)}:
                return _restored(_find(_splitters(load=True), name, object), self._fields(parts))
            case {"$": "estimator", "class": str(name), "parameters": dict(parameters), "fitted": dict(fitted)}:
                import_module("hardthresh.estimators")
                estimators = {_name(entry.cls): entry.cls for entry in registered("estimator").values()}
                model = _find(estimators, name, object)(**self._fields(parameters))
                vars(model).update({key: self.decode(part) for key, part in fitted.items() if _is_fitted(key)})
                return model
            case {"$": what}:
                raise StorageError(f"it holds a {what!r} that is unknown or incomplete")
            case dict():
                return self._fields(node)
        return node

    def _fields(self, parts: dict[str, Node]) -> dict[str, Any]:
        return {name: self.decode(part) for name, part in parts.items()}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of whatever goes wrong while a file is read which file it was, in one kind of error."""
    try:
        yield
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read, {error.strerror}") from error
    except _DAMAGE as error:
        raise StorageError(f"{path}: damaged, {type(error).__name__}: {error}") from error


def _json_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix != ".json":
        raise StorageError(f"the name of a model file must end in .json, got {target.name!r}; arrays are put beside it")
    return target


def _document(path: Path) -> dict[str, Any]:
    """Return the checked outer level of a file."""
    document = json.loads(path.read_bytes(), parse_constant=_no_constant)
    if not isinstance(document, dict) or document.get("format") != "hardthresh":
        raise StorageError("not written by hardthresh")
    number = document.get("format_version")
    if number != FORMAT_VERSION:
        writer = document.get("written_by", {}).get("hardthresh")
        raise StorageError(
            f"has format version {number!r}, from hardthresh {writer}; this is hardthresh {__version__}, which reads "
            f"format version {FORMAT_VERSION}: upgrade hardthresh"
        )
    return document


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _arrays(path: Path, beside: Any) -> dict[str, np.ndarray]:
    """Return the arrays that lie beside a file, after a look at their hash."""
    if beside is None:
        return {}
    name = beside["file"]
    if Path(name).name != name:
        raise StorageError(f"names arrays in another folder, {name!r}")
    try:
        content = path.with_name(name).read_bytes()
    except OSError as error:
        raise StorageError(
            f"the arrays beside it, {name}, cannot be read, {error.strerror}; move the two files together"
        ) from error
    if sha256(content).hexdigest() != beside["sha256"]:
        raise StorageError(f"the arrays beside it, {name}, were changed or cut short")
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _arrays_of(path: Path) -> Path | None:
    """Return the arrays of the model that is about to be replaced, if they are nobody else's."""
    try:
        name = str(_document(path)["arrays"]["file"])
    except (OSError, *_DAMAGE):
        return None  # there is no older model, it has no arrays, or it is another file: nothing to tidy up
    return path.with_name(name) if name.startswith(f"{path.stem}-") and Path(name).name == name else None


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _stands_inline(node: Node, array: np.ndarray) -> bool:
    """Whether the JSON of an array brings back every bit of it."""
    if array.dtype.kind not in _INLINE_KINDS or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return False
    return _inline_array(node).tobytes() == array.tobytes()


def _inline_array(node: Node) -> np.ndarray:
    dtype = np.dtype(node["dtype"])
    if dtype.kind not in _INLINE_KINDS:
        raise StorageError(f"it holds an array of {dtype} in its JSON")
    flat: np.ndarray = np.array(node["data"], dtype=dtype)
    return flat.reshape(node["shape"], order=node["order"])


def _is_fitted(name: str) -> bool:
    return (name.endswith("_") and not name.startswith("_")) or name in ("_certificate", "_sklearn_output_config")


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _known_classes() -> dict[str, type]:
    """Return the dataclasses and enumerations that a file may hold, by name."""
    for room in _ROOMS:
        import_module(f"hardthresh.{room}")
    rooms = tuple(f"hardthresh.{room}." for room in _ROOMS)
    files = {entry.cls.__module__ for kind in get_args(Kind) for entry in registered(kind).values()}
    files |= {name for name in sys.modules if name.startswith(rooms)}
    return {
        _name(cls): cls
        for file in files
        for cls in vars(sys.modules[file]).values()
        if isinstance(cls, type) and cls.__module__ == file and (is_dataclass(cls) or issubclass(cls, Enum))
    }


def _splitters(load: bool = False) -> dict[str, type]:
    """Return the cross-validation splitters that a file may hold; none as long as scikit-learn is not in use."""
    if not load and "sklearn.model_selection" not in sys.modules:
        return {}
    home = import_module("sklearn.model_selection")
    return {name: getattr(home, name) for name in _SPLITTERS}


def _find(known: Mapping[str, type], name: str, base: type) -> Any:
    cls = known.get(name)
    if cls is None or not issubclass(cls, base):
        raise StorageError(f"unknown class {name!r}; if it is your own, import the file that registers it first")
    return cls


def _restored(cls: type, settings: dict[str, Any]) -> Any:
    instance: Any = object.__new__(cls)
    vars(instance).update(settings)
    return instance
