"""The JSON file of a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from errno import ENOENT
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hardthresh import __version__
from hardthresh.core.errors import format_value
from hardthresh.core.files import write_file

from .arrays import Node, read_table
from .errors import StorageError
from .version_1 import arrays_beside

FORMAT_VERSION = 3


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return a path, checked to be one."""
    if not isinstance(path, str | os.PathLike):
        raise StorageError(f"the path of a model file must be text or a path, got {format_value(path)}")
    return Path(path)


def json_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a model file, checked to end in .json."""
    target = as_path(path)
    if target.suffix != ".json":
        raise StorageError(f"the name of a model file must end in .json, got {target.name!r}")
    return target


def write_document(target: Path, node: Node, arrays: Mapping[str, Node], notes: Mapping[str, Any]) -> None:
    """Write a file with an object and its larger arrays."""
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, f"the folder {target.parent} does not exist; make it first", str(target))
    write_file(target, encoded_document(node, arrays, notes))


def encoded_document(node: Node, arrays: Mapping[str, Node], notes: Mapping[str, Any]) -> bytes:
    """Return the content of a file with an object and its larger arrays."""
    document = {
        "format": "hardthresh",
        "format_version": FORMAT_VERSION,
        "written_by": {name: version(name) for name in ("numpy", "scikit-learn")} | {"hardthresh": __version__},
        "notes": dict(notes),
        "object": node,
        "arrays": arrays,
    }
    return _strict_json(document)


def read_document(path: Path) -> dict[str, Any]:
    """Return the outermost object of a file, checked to be of a known version."""
    return decoded_document(path.read_bytes())


def decoded_document(content: bytes) -> dict[str, Any]:
    """Return the outermost object of the content of a file, checked to be of a known version."""
    try:
        document = json.loads(content, parse_constant=_no_constant)
    except ValueError:
        if content.lstrip()[:1] in (b"{", b""):
            raise  # it may be what is left of a model
        document = None
    if not isinstance(document, dict) or document.get("format") != "hardthresh":
        raise StorageError("not written by hardthresh; the file of a model is what save, or fit --out, writes")
    number = document.get("format_version")
    if number not in range(1, FORMAT_VERSION + 1):
        writer = document.get("written_by", {}).get("hardthresh")
        raise StorageError(
            f"has format version {number!r}, from hardthresh {writer}; this is hardthresh {__version__}, which reads "
            f"format versions up to {FORMAT_VERSION}: upgrade hardthresh"
        )
    return document


@contextmanager
def larger_arrays(path: Path, document: Mapping[str, Any]) -> Iterator[Callable[[str], np.ndarray]]:
    """Yield a function that returns one of the larger arrays of a file by its name."""
    if document["format_version"] == 1:
        with arrays_beside(path, document["arrays"]) as read:
            yield read
    else:
        yield partial(read_table, document["arrays"])


def _strict_json(document: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(document, allow_nan=False, indent=1) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise StorageError(f"notes must be plain JSON values: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
