"""Cells are computed once: each result is a file of its own, written in one step as soon as it is there."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hardthresh.core.files import write_file

from .digits import blas_kernel
from .experiment import Cell, Row
from .interrupt import whole_or_nothing


class Store:
    """The results of an item's cells.

    Parameters
    ----------
    folder : Path
        Where the files are.
    code : str
        A digest of the code that computes the cells, which is part of every key, as is the kernel of the linear
        algebra; see `digest`.
    """

    def __init__(self, folder: Path, code: str) -> None:
        self._folder, self._common = folder, {"code": code, "kernel": blas_kernel()}

    def read(self, cell: Cell) -> Row | None:
        """Return what was computed before; None where there is nothing, or nothing that can be trusted."""
        try:
            kept = json.loads(self._path(cell).read_text(encoding="utf-8"))
            return {**cell.arguments, **kept["result"]} if kept["settings"] == self._settings(cell) else None
        except (OSError, ValueError, KeyError, TypeError):  # cut short, edited, or something else
            return None

    def compute(self, cell: Cell) -> Row:
        """Compute a cell and keep its result; of a cell that was interrupted nothing is kept."""
        with whole_or_nothing(), _named(cell.name):
            result = dict(cell.function(**cell.arguments))
        kept = {"settings": self._settings(cell), "result": result}
        write(self._path(cell), json.dumps(kept, default=_plain))
        row = self.read(cell)
        assert row is not None  # first and later runs see the very same values
        return row

    def _settings(self, cell: Cell) -> dict[str, Any]:
        function = f"{cell.function.__module__}.{cell.function.__qualname__}"
        settings = {"function": function, "arguments": dict(cell.arguments), **self._common}
        same: dict[str, Any] = json.loads(json.dumps(settings))  # tuples are lists in the file
        return same

    def _path(self, cell: Cell) -> Path:
        key = json.dumps(self._settings(cell), sort_keys=True)
        name = re.sub(r"[^\w.=-]+", "_", cell.name)
        return self._folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.json"


def digest(*code: Path) -> str:
    """Return a digest of Python files, and of all those in folders: a result belongs to the code that computed it."""
    total = hashlib.sha256()
    for place in code:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            total.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all, also when the process is killed, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode())


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say of which cell a warning or an error is, once for each."""
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        except Exception as error:
            error.add_note(name)
            raise
    for text, category in dict.fromkeys((str(warning.message), warning.category) for warning in caught):
        hint = " (a run of this cell diverges, which its numbers show)" if issubclass(category, RuntimeWarning) else ""
        warnings.warn(f"{name}: {text}{hint}", category, stacklevel=2)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a cell's result must be numbers, texts, lists and arrays; got {type(value).__name__}")
