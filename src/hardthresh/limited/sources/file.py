"""A source that reads the rows of a table in a file, a few at a time."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, islice
from math import nan
from pathlib import Path
from typing import IO, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, MissingDependencyError, format_value
from hardthresh.core.typing import Array, is_integer

from .base import Example
from .rows import RowSource

_BUFFER = 1 << 16  # bytes of a column of a Parquet file that are read at a time; arbitrary, but small
_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".tab")
_COMPRESSED: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_NO_VALUE = frozenset(["", "?", "-", "na", "n/a", "#n/a", "nan", "null", "none"])


class FileSource(RowSource):
    """A source of the rows of a CSV or Parquet file, each used once, in the order of the file.

    Parameters
    ----------
    path : path
        The file. The ending of its name determines the format: ``.csv`` (separated by commas, semicolons or tabs,
        whichever is most frequent in the first line), ``.tsv`` or ``.tab`` for text, each also followed by ``.gz``,
        ``.bz2`` or ``.xz``; ``.parquet`` or ``.pq`` for Parquet. Text is in UTF-8, and its first line has the names of
        the columns.
    target : str
        The name of the column of the targets.
    n_observed : int in 1 .. d, optional
        s', the number of attributes that may be observed of one example.
    features : sequence of str, optional
        The names of the columns of the attributes. The default is all columns except the target, and except a first
        column without a name, which is taken for row names. They must contain numbers. An empty cell is a missing
        value: it is paid for, and the example is dropped. So are NaN, NA, N/A, null, none, ? and -.
    chunk_rows : int >= 1
        The number of rows of a Parquet file that are in memory together; a text file is read line by line.
    costs, panels, budget
        Prices, attributes that are bought together, and the budget in money: see `CostModel.of`. `costs` may be a
        mapping from name to price.

    Raises
    ------
    InvalidInputError
        For a file that cannot be read, missing or duplicate columns, columns without numbers, and as in `CostModel.of`.
        While the file is read: for a cell that is bought and is not a number, with its row (from 0) and column.
    MissingDependencyError
        For a Parquet file if pyarrow is not installed, which is in the extra ``hardthresh[parquet]``.

    Notes
    -----
    Examples have the order of the file. If its rows are sorted, shuffle them before learning. Cost: one pass over the
    file. Memory in addition to the examples in use: O(d) for text; O(chunk_rows d) and the dictionaries of the columns
    for Parquet. The number of examples is known for Parquet only.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text("age,pulse,weight,ill\\n61,70,80.5,1\\n35,64,,0\\n")
    ...     source = FileSource(path, target="ill", n_observed=2)
    ...     both = source.draw(2)
    ...     print(both.observe([0, 1]), both.targets(), source.feature_names)
    [[61. 70.]
     [35. 64.]] [1. 0.] ['age' 'pulse' 'weight']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str,
        n_observed: int | None = None,
        *,
        features: Sequence[str] | None = None,
        chunk_rows: int = 4096,
        costs: Sequence[float] | Mapping[Any, float] | None = None,
        panels: Sequence[Any] | None = None,
        budget: float | None = None,
    ) -> None:
        if not (is_integer(chunk_rows) and chunk_rows >= 1):
            raise InvalidInputError(f"chunk_rows must be an integer >= 1, got {format_value(chunk_rows)}")
        self.path = Path(path)
        if not self.path.is_file():
            raise InvalidInputError(f"{path} is a folder" if self.path.is_dir() else f"there is no file {path}")
        self._table = _table(self.path)
        names = _chosen(self._table.names, target, features, self.path)
        self._table.check([*names, target])
        rows = self._table.rows(names, target, int(chunk_rows))
        super().__init__(rows, None, n_observed, costs=costs, panels=panels, budget=budget, feature_names=names)
        self._length = self._table.length

    def _cell(self, example: Example, j: int) -> float:
        """Return the number in a cell of a text file."""
        try:
            return _parsed(example.content[j])
        except ValueError:
            raise InvalidInputError(
                f"{self._named(j)} of example {example.id} in {self.path} is {format_value(example.content[j])}, "
                "which is not a number"
            ) from None


class _Text:
    """A text file; its cells are parsed when they are bought."""

    length: int | None = None

    def __init__(self, path: Path, ending: str) -> None:
        self._path, self._ending = path, ending
        lines = self._lines()
        self.names: list[str] = next(lines, [])
        self._first: list[str] | None = next(lines, None)
        lines.close()
        if not self.names:
            raise InvalidInputError(f"{path} is empty")
        if self._first is None:
            raise InvalidInputError(f"{path} has no rows")

    def check(self, names: Sequence[str]) -> None:
        """Raise InvalidInputError for columns whose first cell is text."""
        assert self._first is not None
        cells = dict(zip(self.names, self._first, strict=True))
        _require_numbers(
            [f"{format_value(name)} ({format_value(cells[name])})" for name in names if not _is_number(cells[name])],
            self._path,
        )

    def rows(self, names: Sequence[str], target: str, chunk: int) -> Iterator[tuple[list[str], Any]]:
        """Yield the cells of the attributes as text, and the target."""
        where, last = [self.names.index(name) for name in names], self.names.index(target)
        for cells in islice(self._lines(), 1, None):
            yield [cells[i] for i in where], _parsed(cells[last]) if _is_number(cells[last]) else cells[last]

    def _lines(self) -> Generator[list[str]]:
        """Yield the cells of each line that is not empty, including the first one."""
        ending = self._path.suffix.lower()
        opener: Callable[..., IO[str]] = _COMPRESSED.get(ending, open)
        with _reading(self._path), opener(self._path, "rt", encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            mark = max(",;\t", key=first.count) if self._ending == ".csv" else "\t"
            width = 0
            for number, cells in enumerate(csv.reader(chain([first], file), delimiter=mark)):
                if not cells:
                    continue
                width = width or len(cells)
                if len(cells) != width:
                    raise InvalidInputError(f"row {number} of {self._path} has {len(cells)} cells; {width} are needed")
                yield cells


class _Parquet:
    """A Parquet file, read by pyarrow in portions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._arrow: Any = import_module("pyarrow")
            parquet: Any = import_module("pyarrow.parquet")
        except ImportError as error:
            raise MissingDependencyError("reading Parquet files needs pyarrow: install hardthresh[parquet]") from error
        with _reading(path, self._arrow.ArrowException), parquet.ParquetFile(path) as file:
            self._schema = file.schema_arrow
            self.length: int | None = int(file.metadata.num_rows)
        self._open = parquet.ParquetFile
        self.names = list(self._schema.names)
        if not self.length:
            raise InvalidInputError(f"{path} has no rows")

    def check(self, names: Sequence[str]) -> None:
        """Raise InvalidInputError for columns without numbers."""
        kinds = self._arrow.types
        numeric = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
        types = {name: self._schema.field(name).type for name in names}
        wrong = [
            f"{format_value(name)} ({kind})" for name, kind in types.items() if not any(is_(kind) for is_ in numeric)
        ]
        _require_numbers(wrong, self._path)

    def rows(self, names: Sequence[str], target: str, chunk: int) -> Iterator[tuple[Array, float]]:
        """Yield the attributes as an array, and the target."""
        settings = {"pre_buffer": False, "buffer_size": _BUFFER}  # otherwise whole row groups are read at once
        with _reading(self._path, self._arrow.ArrowException), self._open(self._path, **settings) as file:
            for batch in file.iter_batches(batch_size=chunk, columns=[*names, target], use_threads=False):
                X = np.column_stack([self._numbers(batch.column(name)) for name in names])
                yield from zip(X, self._numbers(batch.column(target)).tolist(), strict=True)

    def _numbers(self, column: Any) -> Array:
        values: Array = column.cast(self._arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return values


def _table(path: Path) -> _Text | _Parquet:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PARQUET:
        return _Parquet(path)
    if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in _TEXT:
        return _Text(path, suffixes[-1])
    raise InvalidInputError(
        f"the name {path.name} does not say what the file is: {' '.join(_TEXT)} (and {' '.join(_COMPRESSED)} behind "
        f"it), or {' '.join(_PARQUET)}"
    )


def _chosen(known: list[str], target: str, features: Sequence[str] | None, path: Path) -> list[str]:
    """Return the names of the attributes."""
    if isinstance(features, str):
        raise InvalidInputError(f"features must be a list of names, got {format_value(features)}")
    names = [name for name in known if name != target] if features is None else list(features)
    if features is None and names and names[0] == "":
        del names[0]
    for name in [target, *names]:
        if known.count(name) != 1:
            there = "no column" if name not in known else "more than one column"
            raise InvalidInputError(f"{path} has {there} {format_value(name)}; it has {_listed(known)}")
    for j, name in enumerate(names):
        if name == target or name in names[:j]:
            raise InvalidInputError(
                f"features has {format_value(name)}, which is {'the target' if name == target else 'there twice'}"
            )
    return names


def _require_numbers(wrong: list[str], path: Path) -> None:
    if wrong:
        raise InvalidInputError(
            f"{path} has columns without numbers: {_listed(wrong)}; leave them out with features=, or encode them as "
            "numbers"
        )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:8]) + (f", and {len(names) - 8} more" if len(names) > 8 else "")


def _parsed(cell: str) -> float:
    """Return the number in a cell, NaN for a missing value; raise ValueError for other text."""
    text = cell.strip()
    if text.lower() in _NO_VALUE:
        return nan
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _is_number(cell: str) -> bool:
    try:
        _parsed(cell)
    except ValueError:
        return False
    return True


@contextmanager
def _reading(path: Path, *more: type[Exception]) -> Iterator[None]:
    """Convert errors that occur while a file is read to InvalidInputError with the name of the file."""
    unreadable: tuple[type[Exception], ...] = (EOFError, OSError, csv.Error, lzma.LZMAError, *more)
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not UTF-8 text; save it as UTF-8") from error
    except unreadable as error:
        raise InvalidInputError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
