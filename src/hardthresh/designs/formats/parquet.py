"""Blocks of Parquet files: whole row groups, of which only the columns that are needed are read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, OutOfMemoryError, format_value
from hardthresh.core.memory import address_space, memory_for_blocks
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Block, RowBlocks, Rows, as_source, block_rows
from hardthresh.designs.formats.optional import DECODERS, import_reader
from hardthresh.designs.formats.stored import PathLike, wanted_rows

_LINE = 64
"""Bytes of a line of the cache. Columns are decoded and written into rows in groups of one line. Writing is 10 ms for
8192 x 1000 singles, against 20 ms one by one and 38 ms by transposing all (an EPYC with AVX-512; groups of two lines
take 15 ms). Decoding all columns before takes a third more CPU time, as they are no longer in the cache, and twice the
memory."""
_FILES_REMEMBERED = 256
"""Files whose metadata are kept, so that they are parsed once: 5 ms for 1000 columns and 8 row groups. Arbitrary: each
takes some 100 bytes for each column of each row group."""


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are what; `as_text` says that the target is wanted as texts of any cells."""

    features: tuple[str, ...]
    target: str | tuple[str, ...] | None = None
    sample_weight: str | None = None
    offset: str | None = None
    fold: str | None = None
    as_text: bool = False

    def others(self) -> tuple[str, ...]:
        """Return the names of all columns but the features."""
        targets = (self.target,) if isinstance(self.target, str) else self.target or ()
        return tuple(name for name in (*targets, self.sample_weight, self.offset, self.fold) if name is not None)


@dataclass(frozen=True, eq=False)
class ParquetBlock(Block):
    """Some row groups of a file."""

    path: str
    groups: tuple[int, ...]
    rows: int
    first_row: int
    roles: Roles
    dtype: np.dtype[Any]

    def select(self, columns: Array) -> Block:
        features = tuple(self.roles.features[j] for j in np.asarray(columns).tolist())
        return replace(self, roles=replace(self.roles, features=features))

    def load(self) -> Rows:
        roles, last = self.roles, self.first_row + self.rows - 1
        with _reading(self.path, f"rows {self.first_row:,}..{last:,} of {self.path} cannot be read"):
            with _opened(self.path, _metadata(self.path, *_state(self.path))) as file:
                X = _by_rows(partial(_table, file, self.groups), self.rows, roles.features, self.dtype)
                table = _table(file, self.groups, roles.others())
            weight, offset = (
                None if name is None else _numbers(table.column(name)) for name in (roles.sample_weight, roles.offset)
            )
            fold = None if roles.fold is None else _labels(table, roles.fold)
            y = _texts(table.column(roles.target)) if roles.as_text else _target(table, roles.target)
            return Rows(X, y, weight, offset, fold)


def from_parquet(
    path: PathLike | Sequence[PathLike],
    target: str | Sequence[str] | None = None,
    *,
    sample_weight: str | None = None,
    offset: str | None = None,
    fold: str | None = None,
    features: Sequence[str] | None = None,
    dtype: Any = None,
    rows: int | None = None,
) -> RowBlocks:
    """Return the table in one or several Parquet files, which are read in blocks of whole row groups.

    Only the required columns are read: all in the first pass of a fit, and the chosen ones for predictions and scores.
    Four threads decode, each with one block in memory.

    Parameters
    ----------
    path : path or sequence of path
        A file; a folder, whose files that end in ``.parquet`` or ``.pq`` are read, including those in subfolders, in
        the order of their names; or several files in order.
    target : str or sequence of str, optional
        The column of y, or the columns of several outputs. Strings, categories and booleans are classes.
    sample_weight, offset, fold : str, optional
        The columns of weights, of a known part of the predictions, and of the folds of a cross-validation.
    features : sequence of str, optional
        The columns of X. Default: all others except the index of pandas, which then have to be numeric. Missing values
        become NaN, for which `fit` raises an error that names the row.
    dtype : dtype, optional
        The type of X, float32 or float64. Default: float32 if X has float32 columns and otherwise only integers of at
        most 16 bits; float64 in all other cases.
    rows : int, optional
        Rows of a block, at least one row group; default: a power of two of at most 32 MiB.

    Returns
    -------
    RowBlocks
        With the names of the columns.

    Raises
    ------
    MissingDependencyError
        If pyarrow is not installed (the extra ``parquet``).
    InvalidInputError
        If a column is missing or not numeric, or a file has columns other than the first.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> from hardthresh.designs import from_parquet
    >>> from_parquet("measurements", target="yield")  # doctest: +SKIP
    RowBlocks(1,250,000 x 1,000 float32, 153 blocks)
    """
    files = parquet_files(path)
    schemas = [_schema(file) for file in files]
    target = target if target is None or isinstance(target, str) else tuple(target)
    roles = Roles((), target, sample_weight, offset, fold)
    names = _columns(files[0], schemas[0], roles) if features is None else features
    if isinstance(names, str):
        raise InvalidInputError(f"features must be a list of names, got {format_value(names)}")
    roles = replace(roles, features=tuple(names))
    _require_columns(files, schemas, roles, exactly=features is None)
    kind = _dtype(schemas, roles.features) if dtype is None else np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise InvalidInputError(f"dtype must be float32 or float64, got {format_value(str(kind))}")
    size = wanted_rows(rows) or block_rows(len(roles.features), kind)
    blocks: list[ParquetBlock] = []
    first = 0
    for file in files:
        for groups, count in _in_blocks(file, size):
            blocks.append(ParquetBlock(file, groups, count, first, roles, kind))
            first += count
    return RowBlocks(tuple(blocks), len(roles.features), kind, roles.features, sources=tuple(files), readers=DECODERS)


def with_texts(blocks: RowBlocks) -> RowBlocks:
    """Return a table with the texts of the cells of its target, which are empty where these are missing."""
    given: Any = blocks.blocks  # each a `ParquetBlock`
    own = tuple(replace(each, roles=replace(each.roles, as_text=True)) for each in given)
    return replace(blocks, blocks=own)


def parquet_files(path: PathLike | Sequence[PathLike]) -> list[str]:
    """Return the files of a table."""
    if not isinstance(path, str | os.PathLike):
        return [as_source(each) for each in path]
    source = Path(as_source(path))
    if not source.is_dir():
        return [str(source)]
    inside = (file for suffix in ("*.parquet", "*.pq") for file in source.rglob(suffix))
    hidden = ("_", ".")  # what Spark and Hive write for themselves
    files = sorted(str(file) for file in inside if not file.name.startswith(hidden) and file.is_file())
    if not files:
        raise InvalidInputError(f"the folder {source} has no files that end in .parquet or .pq")
    return files


def parquet_columns(path: str) -> list[str]:
    """Return the names of all columns of a file."""
    return [*_schema(path).names]


@cache
def _arrow() -> Any:
    """Return pyarrow; where the address space is limited, without the memory pool that reserves 1 GiB of it at once."""
    if address_space() is not None:  # else allocations of other libraries fail, which ends the process
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    return import_reader("pyarrow", "Parquet files", "parquet")


@contextmanager
def _reading(path: str, failure: str) -> Iterator[None]:
    """Turn what pyarrow raises on a file that is cut off or damaged into an OSError."""
    arrow = _arrow()
    try:
        yield
    except InvalidInputError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{failure}: {error}; {memory_for_blocks()}") from error
    except (arrow.ArrowException, OSError) as error:
        if "launch worker thread" in str(error):  # there is no room for its stack
            raise OutOfMemoryError(f"{failure}: no thread can be started; {memory_for_blocks()}") from error
        if not os.path.exists(path):
            raise OSError(f"{failure}: the file is gone") from error
        raise OSError(f"{failure} (it has {os.stat(path).st_size:,} bytes): {error}") from error


def _opened(path: str, metadata: Any = None) -> Any:
    _arrow()
    files = import_reader("pyarrow.parquet", "Parquet files", "parquet")
    return files.ParquetFile(path, metadata=metadata, pre_buffer=False)  # else threads read all columns at once


def _state(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


@lru_cache(_FILES_REMEMBERED)
def _metadata(path: str, size: int, changed: int) -> Any:
    """Return the metadata of a file in one state."""
    with _reading(path, f"{path} cannot be read as Parquet"), _opened(path) as file:
        return file.metadata


def _schema(path: str) -> Any:
    return _metadata(path, *_state(path)).schema.to_arrow_schema()


def _require_columns(files: Sequence[str], schemas: Sequence[Any], roles: Roles, *, exactly: bool) -> None:
    """Raise InvalidInputError unless each file has each column once, and numbers in those that need them.

    Parameters
    ----------
    files, schemas : sequence
        The files and what they say of their columns.
    roles : Roles
        The columns that are asked for.
    exactly : bool
        Whether others are wrong, because the features are all columns of the first file.
    """
    wanted = (*roles.features, *roles.others())
    for name in wanted:
        if wanted.count(name) > 1:
            raise InvalidInputError(f"the column {format_value(name)} is asked for twice")
    if not roles.features:
        raise InvalidInputError(f"{files[0]} has no columns for X, only {_listed(roles.others())}")
    numeric = {*roles.features, *(name for name in (roles.sample_weight, roles.offset) if name is not None)}
    numeric |= {*roles.target} if isinstance(roles.target, tuple) else set()
    for path, schema in zip(files, schemas, strict=True):
        for name in wanted:
            if (count := len(schema.get_all_field_indices(name))) != 1:
                there = "no column" if count == 0 else "more than one column"
                rest = f"; it has {_listed(schema.names)}" if path == files[0] else f", which {files[0]} has"
                raise InvalidInputError(f"{path} has {there} {format_value(name)}{rest}")
        more = [name for name in _columns(path, schema, roles) if exactly and name not in wanted]
        if more:
            raise InvalidInputError(
                f"{path} has the column {format_value(more[0])}, which {files[0]} has not: all parts of a table need "
                "the same columns; or name those of X in features"
            )
        wrong = [f"{format_value(f.name)} ({f.type})" for f in schema if f.name in numeric and not _is_numeric(f.type)]
        if wrong:
            raise InvalidInputError(
                f"{path} has columns without numbers: {', '.join(wrong[:8])}{' ...' if len(wrong) > 8 else ''}; "
                "encode them, or name the columns of X in features"
            )


def _columns(path: str, schema: Any, roles: Roles) -> list[str]:
    """Return the columns of a file that have no role and are no index of pandas."""
    about = (_metadata(path, *_state(path)).metadata or {}).get(b"pandas", b"{}")
    index = [name for name in json.loads(about).get("index_columns", []) if isinstance(name, str)]
    return [name for name in schema.names if name not in index and name not in roles.others()]


def columns_of(path: PathLike) -> list[str]:
    """Return the names of the columns of a table, by its first file, but those that are an index of pandas."""
    first = parquet_files(path)[0]
    return _columns(first, _schema(first), Roles(()))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(format_value, names[:8])) + (" ..." if len(names) > 8 else "")


def _is_numeric(kind: Any) -> bool:
    of = _arrow().types
    return bool(of.is_integer(kind) or of.is_floating(kind) or of.is_boolean(kind) or of.is_decimal(kind))


def _dtype(schemas: Sequence[Any], features: Sequence[str]) -> np.dtype[Any]:
    """Return float32 if it holds all entries of some columns exactly, and some of them are of this type."""
    names = {*features}
    kinds = {str(field.type) for schema in schemas for field in schema if field.name in names}
    exact = {"float", "halffloat", "bool", "int8", "uint8", "int16", "uint16"}
    return np.dtype(np.float32 if kinds <= exact and "float" in kinds else np.float64)


def _in_blocks(path: str, size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield neighbouring row groups that have at most `size` rows together, or one alone, and their rows."""
    metadata = _metadata(path, *_state(path))
    groups: list[int] = []
    rows = 0
    for number in range(metadata.num_row_groups):
        more = metadata.row_group(number).num_rows
        if groups and rows + more > size:
            yield tuple(groups), rows
            groups, rows = [], 0
        groups.append(number)
        rows += more
    if groups:
        yield tuple(groups), rows


def _table(file: Any, groups: Sequence[int], names: Sequence[str]) -> Any:
    """Return some columns of some row groups."""
    return file.read_row_groups(list(groups), columns=list(names), use_threads=False)


def _by_rows(read: Callable[[Sequence[str]], Any], rows: int, names: Sequence[str], dtype: np.dtype[Any]) -> Array:
    """Return columns as a C-ordered matrix; `read` returns some of them, so that few are in memory beside it."""
    X = np.empty((rows, len(names)), dtype=dtype)
    width = _LINE // dtype.itemsize
    some = np.empty((width, rows), dtype=dtype)
    for start in range(0, len(names), width):
        group = names[start : start + width]
        table = read(group)
        for row, name in zip(some, group, strict=False):
            _write(table.column(name), row)
        X[:, start : start + len(group)] = some[: len(group)].T
    return X


def _write(column: Any, out: Array) -> None:
    """Write a column of numbers, with NaN for missing ones."""
    at = 0
    for chunk in column.chunks:
        values = _values(chunk)
        out[at : at + len(values)] = values
        at += len(values)


def _values(chunk: Any) -> Array:
    """Return the numbers of a chunk of a column, with NaN for missing ones."""
    if str(chunk.type) in ("float", "double") or str(chunk.type).lstrip("u").startswith("int"):
        return chunk.to_numpy(zero_copy_only=False)
    return chunk.cast("float64", safe=False).to_numpy(zero_copy_only=False)


def _numbers(column: Any) -> Array:
    return np.concatenate([_values(chunk) for chunk in column.chunks]) if column.num_chunks else np.zeros(0)


def _target(table: Any, names: str | tuple[str, ...] | None) -> Array | None:
    if isinstance(names, tuple):
        return np.column_stack([_numbers(table.column(name)) for name in names])
    if names is None:
        return None
    kind = table.column(names).type
    labels = _arrow().types.is_boolean(kind) or not _is_numeric(kind)  # classes are False and True, not 0.0 and 1.0
    return _labels(table, names) if labels else _numbers(table.column(names))


def _texts(column: Any) -> Array:
    """Return the texts of the cells of a column; times have no nanoseconds, as in Python."""
    arrow = _arrow()
    if arrow.types.is_timestamp(column.type):
        column = column.cast(arrow.timestamp("us", column.type.tz), safe=False)
    return np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=str)


def _labels(table: Any, name: str) -> Array:
    """Return a column of labels: text, categories or numbers."""
    column = table.column(name)
    if column.null_count:
        raise InvalidInputError(f"the column {format_value(name)} has missing values: remove these rows")
    of = _arrow().types
    if of.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = np.concatenate([np.asarray(chunk.to_numpy(zero_copy_only=False)) for chunk in column.chunks])
    return values.astype(str) if values.dtype.hasobject else values
