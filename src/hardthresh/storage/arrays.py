"""Arrays as JSON: small ones as lists of numbers, larger ones as base64 of their bytes; and back, in their library."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from importlib import import_module
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from .errors import StorageError

Node: TypeAlias = Any
"""A value in its JSON form."""

INLINE = 64  # entries up to which an array is a list of numbers, which a person can read
_INLINE_KINDS = "biufU"  # if its numbers or strings are exact there
_KINDS = "biufcUSmM"  # whose dtype.str is all that there is to say of them, and whose bytes are not pointers
_PADDING = 64  # characters; a list of short strings must not ask for an array of very long ones

# name in a file -> what to import for it: nothing else is ever imported because a file says so
_LIBRARIES = {"torch": "array_api_compat.torch", "array_api_strict": "array_api_strict"}


def library_of(value: Any) -> str:
    """Return the name of the library of an array."""
    return str(array_namespace(value).__name__).removeprefix("array_api_compat.")


class ArrayWriter:
    """Encodes arrays as nodes, and collects the larger ones, each of them once."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def node(self, array: np.ndarray, library: str = "numpy") -> Node:
        """Return the node of an array that came from a library.

        Raises
        ------
        TypeError
            If no file can hold its dtype.
        """
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"its dtype is {array.dtype}")
        origin = {} if library == "numpy" else {"library": library}
        if array.size <= INLINE:
            node = _inline_node(array)
            if _brings_back(node, array):
                return {**node, **origin}
        if id(array) not in self._names:
            self._names[id(array)] = name = f"a{len(self._arrays)}"
            self._arrays[name] = array
        return {"$": "array", "name": self._names[id(array)], **origin}

    def table(self) -> dict[str, Node]:
        """Return the collected arrays in their JSON form, by name."""
        return {
            name: {**_form(array), "base64": b64encode(array.tobytes(order=_order(array))).decode("ascii")}
            for name, array in self._arrays.items()
        }


class ArrayReader:
    """Makes arrays of their nodes.

    Parameters
    ----------
    read : callable
        ``read(name)`` returns one of the larger arrays.

    Attributes
    ----------
    lost : dict
        For each library whose arrays came back as NumPy arrays, the reason.
    """

    def __init__(self, read: Callable[[str], np.ndarray]) -> None:
        self._read = read
        self._arrays: dict[str, np.ndarray] = {}
        self._libraries: dict[str, Any] = {}
        self.lost: dict[str, str] = {}

    def value(self, node: Node) -> Any:
        """Return the array of a node, on the CPU."""
        array = _inline_array(node) if "data" in node else self._large(node)
        if "library" not in node:
            return array
        xp = self._library(node["library"])
        return array if xp is None else xp.asarray(array)

    def _large(self, node: Node) -> np.ndarray:
        name = node["name"] if "name" in node else node["file"]  # in format version 1
        if name not in self._arrays:
            self._arrays[name] = self._read(name)
        return self._arrays[name]

    def _library(self, name: str) -> Any:
        """Return a library, or None if its arrays have to stay NumPy's."""
        if name not in self._libraries:
            self._libraries[name] = None
            if name not in _LIBRARIES:
                self.lost[name] = f"only those of {' and '.join(_LIBRARIES)} are restored"
                return None
            try:
                self._libraries[name] = import_module(_LIBRARIES[name])
            except (ImportError, OSError) as error:  # OSError: a part of the library cannot be opened
                self.lost[name] = f"it cannot be imported here ({error})"
        return self._libraries[name]


def read_table(table: Mapping[str, Node], name: str) -> np.ndarray:
    """Return an array of the table that `ArrayWriter` made.

    Raises
    ------
    StorageError
        If it has not exactly the bytes that its dtype and shape need.
    """
    node = table[name]
    dtype, shape, content = np.dtype(node["dtype"]), node["shape"], b64decode(node["base64"], validate=True)
    if dtype.kind not in _KINDS:
        raise StorageError(f"it holds an array of {dtype}")
    if prod(shape) * dtype.itemsize != len(content):
        raise StorageError(f"an array of shape {shape} and dtype {dtype} is said to be in {len(content)} bytes")
    stored: np.ndarray = np.ndarray(shape, dtype, content, order=node["order"])
    return stored.copy(order="K")  # which can be written to


def _order(array: np.ndarray) -> Literal["C", "F"]:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _form(array: np.ndarray) -> Node:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "order": _order(array)}


def _inline_node(array: np.ndarray) -> Node:
    return {"$": "array", **_form(array), "data": array.ravel(order=_order(array)).tolist()}


def _inline_array(node: Node) -> np.ndarray:
    dtype, data = np.dtype(node["dtype"]), node["data"]
    if dtype.kind not in _INLINE_KINDS:
        raise StorageError(f"it holds a list of {dtype}")
    if dtype.kind == "U" and dtype.itemsize > 4 * (max(map(len, data), default=0) + _PADDING):
        raise StorageError(f"it holds a list of {dtype} whose strings are far shorter")
    flat: np.ndarray = np.array(data, dtype=dtype)
    return flat.reshape(node["shape"], order=node["order"])


def _brings_back(node: Node, array: np.ndarray) -> bool:
    """Return whether a list of the numbers of an array restores every bit of it."""
    if array.dtype.kind not in _INLINE_KINDS or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return False
    try:
        return _inline_array(node).tobytes() == array.tobytes()
    except StorageError:  # strings that are padded too much
        return False
