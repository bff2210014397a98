"""Tables as CSV and as Parquet files that are written some rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from hardthresh.core.spreadsheet import csv_text

from .optional import import_reader

Columns: TypeAlias = Sequence[tuple[str, Any]]
"""The columns of some rows: each its name, and an array or a list of texts. A masked number, or None, is missing."""


def csv_parts(tables: Iterable[Columns], *, verbatim: bool) -> Iterator[str]:
    """Yield some rows after the other as CSV, first with the header; see `csv_text`."""
    header = True
    for columns in tables:
        names, values = zip(*columns, strict=True)
        rows = zip(*map(_listed, values), strict=True)
        yield csv_text(chain([names], rows) if header else rows, verbatim=verbatim)
        header = False


def _listed(values: Any) -> Sequence[object]:
    listed: Sequence[object] = values.tolist() if isinstance(values, np.ndarray) else values
    return listed


def parquet_parts(tables: Iterable[Columns]) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file, which has a row group for each of one table or more."""
    parquet, arrow = require_parquet()
    file, writer = _Written(), None
    for columns in tables:
        names, values = zip(*columns, strict=True)
        table = arrow.Table.from_arrays([_as_arrow(arrow, each) for each in values], names=[*names])
        writer = parquet.ParquetWriter(file, table.schema) if writer is None else writer
        writer.write_table(table)
        yield file.taken()
    if writer is not None:
        writer.close()
    yield file.taken()


def require_parquet() -> tuple[Any, Any]:
    """Return the modules pyarrow.parquet and pyarrow.

    Raises
    ------
    MissingDependencyError
        If they are not installed.
    """
    return tuple(import_reader(name, "and writing Parquet files", "parquet") for name in ("pyarrow.parquet", "pyarrow"))


def _as_arrow(arrow: Any, values: Any) -> Any:
    """Return a column as one of Arrow; texts have a ? for what UTF-8 cannot write."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return arrow.array(values)
    listed = [text.encode(errors="replace").decode() if isinstance(text, str) else text for text in _listed(values)]
    return arrow.array(listed, type=arrow.string() if all(text is None for text in listed) else None)


class _Written:
    """A file that is open for writing; what was written is taken from it bit by bit."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: Any) -> None:
        self._parts.append(bytes(part))

    def flush(self) -> None:
        """Do nothing: all is in memory."""

    def taken(self) -> bytes:
        """Return what was written since this was called last."""
        found = b"".join(self._parts)
        self._parts.clear()
        return found
