"""Arrays in a file: small ones in the JSON itself, larger ones beside it, each in its own library again when loaded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from .errors import StorageError

Node: TypeAlias = Any
"""A value in its JSON form."""

INLINE = 64  # entries up to which an array stands in the JSON itself
_INLINE_KINDS = "biufU"  # if its numbers or strings are exact there

# name in a file -> what to import for it: nothing else is ever imported because a file says so
_LIBRARIES = {"torch": "array_api_compat.torch", "array_api_strict": "array_api_strict"}


def library_of(value: Any) -> str:
    """Return the name of the library of an array."""
    return str(array_namespace(value).__name__).removeprefix("array_api_compat.")


class ArrayWriter:
    """Makes the nodes of arrays and collects the arrays that go beside the JSON."""

    def __init__(self) -> None:
        self.beside: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def node(self, array: np.ndarray, library: str = "numpy") -> Node:
        """Return the node of an array that came from a library."""
        origin = {} if library == "numpy" else {"library": library}
        if array.size <= INLINE:
            node = _inline_node(array)
            if _brings_back(node, array):
                return {**node, **origin}
        if id(array) not in self._names:
            self._names[id(array)] = name = f"a{len(self.beside)}"
            self.beside[name] = array
        return {"$": "array", "file": self._names[id(array)], **origin}


class ArrayReader:
    """Makes arrays of their nodes.

    Attributes
    ----------
    lost : dict
        For each library whose arrays came back as NumPy arrays, the reason.
    """

    def __init__(self, beside: Mapping[str, np.ndarray]) -> None:
        self._beside = beside
        self._libraries: dict[str, Any] = {}
        self.lost: dict[str, str] = {}

    def value(self, node: Node) -> Any:
        """Return the array of a node, on the CPU."""
        array = self._beside[node["file"]] if "file" in node else _inline_array(node)
        if "library" not in node:
            return array
        xp = self._library(node["library"])
        return array if xp is None else xp.asarray(array)

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


def _inline_node(array: np.ndarray) -> Node:
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return {
        "$": "array",
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": order,
        "data": array.ravel(order=order).tolist(),
    }


def _inline_array(node: Node) -> np.ndarray:
    dtype = np.dtype(node["dtype"])
    if dtype.kind not in _INLINE_KINDS:
        raise StorageError(f"it holds an array of {dtype} in its JSON")
    flat: np.ndarray = np.array(node["data"], dtype=dtype)
    return flat.reshape(node["shape"], order=node["order"])


def _brings_back(node: Node, array: np.ndarray) -> bool:
    """Return whether the JSON of an array brings back every bit of it."""
    if array.dtype.kind not in _INLINE_KINDS or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return False
    return _inline_array(node).tobytes() == array.tobytes()
