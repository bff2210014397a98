"""The two files of a model: written whole or not at all, and checked when they are read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np

from hardthresh import __version__

from .arrays import Node
from .errors import DAMAGE, StorageError

FORMAT_VERSION = 1


def json_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a model file, after a look at its name."""
    target = Path(path)
    if target.suffix != ".json":
        raise StorageError(f"the name of a model file must end in .json, got {target.name!r}; arrays are put beside it")
    return target


def write_files(target: Path, node: Node, beside: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> None:
    """Write a JSON file and the arrays beside it: first the new arrays, then the JSON; only then the old ones go."""
    old, new = _arrays_of(target), None
    document = {
        "format": "hardthresh",
        "format_version": FORMAT_VERSION,
        "written_by": {name: version(name) for name in ("numpy", "scikit-learn")} | {"hardthresh": __version__},
        "arrays": None,
        "notes": dict(notes),
        "object": node,
    }
    if beside:
        content = _packed(beside)
        digest = sha256(content).hexdigest()
        new = target.with_name(f"{target.stem}-{digest[:12]}.npz")
        document["arrays"] = {"file": new.name, "sha256": digest}
    text = _strict_json(document)
    if new is not None:
        _write(new, content)
    _write(target, text)
    if old is not None and old != new:
        old.unlink(missing_ok=True)


def read_document(path: Path) -> dict[str, Any]:
    """Return the checked outer level of a JSON file."""
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


def read_arrays(path: Path, beside: Any) -> dict[str, np.ndarray]:
    """Return the arrays that lie beside a JSON file, after a look at their hash."""
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
        name = str(read_document(path)["arrays"]["file"])
    except (OSError, *DAMAGE):
        return None  # there is no older model, it has no arrays, or it is another file: nothing to tidy up
    return path.with_name(name) if name.startswith(f"{path.stem}-") and Path(name).name == name else None


def _packed(beside: Mapping[str, np.ndarray]) -> bytes:
    buffer = BytesIO()
    np.savez(buffer, **cast("dict[str, Any]", beside))
    return buffer.getvalue()


def _strict_json(document: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(document, allow_nan=False, indent=1) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise StorageError(f"notes must be plain JSON values: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


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
