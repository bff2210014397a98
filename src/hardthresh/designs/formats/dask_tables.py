"""Blocks of Dask arrays and data frames: their chunks and partitions, which are computed where the blocks are read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Block, RowBlocks, Rows, table_dtype
from hardthresh.designs.formats.dask_partitions import (
    Wanted,
    refuse_column,
    refuse_lacking,
    rows_of_partition,
    types_of,
)
from hardthresh.designs.formats.stored import ArrayBlock

Key: TypeAlias = Hashable


@dataclass(frozen=True, eq=False)
class Graph:
    """What the blocks of a table are computed from.

    Attributes
    ----------
    tasks : dict
        A task of Dask, or a future, for each key.
    arrays : dict
        Slices of arrays that were given in memory, which an engine sends to a cluster once.
    columns : dict
        The names of the columns of data frames and series, as keys, which computing a block may find missing.
    """

    tasks: dict[Key, Any] = field(default_factory=dict)
    arrays: dict[Key, Array] = field(default_factory=dict)
    columns: dict[Hashable, None] = field(default_factory=dict)


def is_dask(x: Any) -> bool:
    """Return whether an object is a collection of Dask, without importing it.

    Examples
    --------
    >>> is_dask([1.0, 2.0])
    False
    """
    return hasattr(x, "__dask_graph__")


@dataclass(frozen=True, eq=False)
class DaskBlock(Block):
    """A chunk of X with its targets, weights and offsets, each named by its key in a graph.

    Parameters
    ----------
    keys : tuple of key or None
        Those of X, y, weight, offset and fold; None for what is not given.
    graph : Graph
        All that they depend on. The blocks of a table share it.
    rows : int or None
        How many; None if Dask does not know the size of its chunks.
    columns : array of int, optional
        The columns of X that are wanted; default: all.
    size : int, optional
        0 for sparse chunks, whose bytes are known once they are here; default: those of dense rows.
    number : int
        Of the chunk or partition.
    """

    keys: tuple[Key | None, ...]
    graph: Graph = field(repr=False)
    rows: int | None = None
    columns: Array | None = None
    size: int | None = None
    number: int = 0

    def load(self) -> Rows:
        """Return the rows, computed in this thread; those of a persisted table come from their worker.

        Raises
        ------
        InvalidInputError
            If a partition of a data frame lacks a column.
        """
        from dask.local import get_sync
        from dask.optimization import cull

        wanted = [key for key in self.keys if key is not None]
        tasks, _ = cull({**self.graph.tasks, **self.graph.arrays}, wanted)
        try:
            here = {key: part.result() if is_future(part) else part for key, part in tasks.items()}
            found = iter(get_sync(here, wanted))
        except KeyError as error:
            refuse_lacking(error, f"block {self.number}", self.graph.columns)
            raise
        return self.of([None if key is None else next(found) for key in self.keys])

    def held(self) -> list[Any]:
        return [*self.keys]

    def bare(self) -> Block:
        return replace(self, graph=Graph())

    def holding(self, parts: Sequence[Any]) -> Block:
        return ArrayBlock(self.of(parts))

    def of(self, parts: Sequence[Any]) -> Rows:
        """Return the rows, given what the keys stand for."""
        X, *rest = parts
        return Rows(X if self.columns is None else X[:, self.columns], *rest)

    def needs(self, key: str) -> bool:
        """Return whether the task with a key, as text, is one that this block is computed by."""
        from dask.optimization import cull

        wanted = [key for key in self.keys if key is not None]
        return key in map(str, cull({**self.graph.tasks, **self.graph.arrays}, wanted)[0])

    def select(self, columns: Array) -> DaskBlock:
        columns = np.asarray(columns)
        return replace(self, columns=columns if self.columns is None else self.columns[columns])


def from_dask(X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, *, fold: Any = None) -> RowBlocks:
    """Return a Dask array or data frame as blocks of rows: its chunks or partitions, whose sizes may be unknown.

    Nothing is computed, except the lengths of unknown chunks if another array is not a Dask array. Each pass over the
    table evaluates its graph; a fit takes 3 passes in the median. Call ``X.persist()`` first if the evaluation is
    slower than reading X from the memory of the workers, and if X fits there.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame, shape (n, d)
        Numeric, in chunks of rows. float32 is kept; other types are converted to float64, a block at a time.
    y : Dask array, series or data frame, or an array in memory, shape (n,) or (n, q), optional
        The target. It is rechunked like X if the sizes of all chunks are known.
    sample_weight : as y, shape (n,), optional
        Non-negative weights; default: all 1.
    offset : as y, shape (n,) or (n, q), optional
        A known part of the predictions.
    fold : as y, shape (n,), optional
        The fold of a cross-validation that each row belongs to.

    Returns
    -------
    RowBlocks
        The table. An array has no column names.

    Raises
    ------
    InvalidInputError
        If X is chunked along columns, a column is not numeric, or lengths or chunks differ.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> from_dask(da.ones((5000, 10), chunks=(2000, 10)))  # doctest: +SKIP
    RowBlocks(5,000 x 10 float64, 3 blocks)
    """
    names = ("X", "y", "sample_weight", "offset", "fold")
    if not is_dask(X):
        raise InvalidInputError(f"X must be a Dask array or data frame, got {type(X).__name__}")
    dtype, d, feature_names = _table_of(X)
    given = [X, *(_one_chunk_of_columns(part) for part in (y, sample_weight, offset, fold))]
    graph, size = Graph(), 0 if issparse(getattr(X, "_meta", None)) else None
    together = [0, *(number for number in range(1, len(given)) if _of_same_files(X, given[number]))]
    whole = _beside_each_other([given[number] for number in together]) if len(together) > 1 else X
    rows = _rows_of(whole)
    alone = [part for number, part in enumerate(given) if part is not None and number not in together]
    if None in rows and any(_needs_lengths(part, len(rows)) for part in alone):
        rows = [*_lengths(_delayed(whole))]
    columns: list[list[Key | None]] = []
    for number, (name, part) in enumerate(zip(names, given, strict=True)):
        if part is None:
            columns.append([None] * len(rows))
        elif number in together:
            place = together.index(number) if len(together) > 1 else None
            columns.append(_add_chunks(graph, whole, name, part, dtype if number == 0 else None, place))
        elif is_dask(part):
            own = _aligned(part, name, rows)
            columns.append(_add_chunks(graph, own, name, own, dtype if number == 0 else None))
        else:
            columns.append(_add_slices(graph, part, name, rows))
    blocks = tuple(
        DaskBlock(keys, graph, length, size=size, number=number)
        for number, (keys, length) in enumerate(zip(zip(*columns, strict=True), rows, strict=True))
    )
    return RowBlocks(blocks, d, dtype, feature_names=feature_names, readers=0)


def _table_of(X: Any) -> tuple[np.dtype[Any], int, tuple[str, ...] | None]:
    """Return dtype, number of columns and names of a table."""
    if isinstance(getattr(X, "npartitions", None), int) and hasattr(X, "dtypes"):  # a data frame
        for name, dtype in types_of(X):
            if getattr(dtype, "kind", "O") not in "fiub":
                refuse_column(name, dtype, "X")
        names = tuple(X.columns)
        named = all(isinstance(name, str) for name in names)
        single = [str(dtype).lower().startswith(("float32", "float[")) for dtype in X.dtypes]
        return table_dtype(*(np.float32 if one else np.float64 for one in single)), len(names), names if named else None
    if not isinstance(getattr(X, "chunks", None), tuple) or X.ndim != 2:
        raise InvalidInputError(
            f"X must be a Dask array of 2 dimensions or a data frame of Dask, got {_described(X)}; "
            "of delayed objects dask.array.from_delayed makes an array"
        )
    if X.numblocks[1] > 1:
        raise InvalidInputError(
            f"X is cut into {plural(X.numblocks[1], 'column chunk')}, and the rows of a block need all columns; "
            "use X.rechunk({1: -1})"
        )
    if X.dtype.kind not in "fiub":
        raise InvalidInputError(f"X must be numeric, got dtype {format_value(str(X.dtype))}")
    if X.shape[1] != X.shape[1]:
        raise InvalidInputError("X has an unknown number of columns; use X.compute_chunk_sizes()")
    return table_dtype(X.dtype), int(X.shape[1]), None


def _described(x: Any) -> str:
    dimensions = getattr(x, "ndim", None)
    return type(x).__name__ + (f" of {plural(dimensions, 'dimension')}" if isinstance(dimensions, int) else "")


def _one_chunk_of_columns(part: Any) -> Any:
    """Return targets of several outputs, all of a row in one chunk."""
    several = is_dask(part) and len(getattr(part, "numblocks", ())) == 2 and part.numblocks[1] > 1
    return part.rechunk({1: -1}) if several else part


def _is_frame(part: Any) -> bool:
    """Return whether something is a data frame or series of Dask."""
    return is_dask(part) and not hasattr(part, "chunks")


def _leaves(part: Any) -> set[str]:
    """Return the names of what a data frame or series is computed from: readings of files, or what is persisted."""
    expression: Any = getattr(part, "expr", None)
    walk = getattr(expression, "walk", tuple)  # without, Dask does not join files
    return {node._name for node in walk() if not node.dependencies()}


def _of_same_files(X: Any, part: Any) -> bool:
    """Return whether a data frame and another one, or a series, are parts of one table."""
    if not (_is_frame(X) and _is_frame(part)):
        return False
    return X.npartitions == part.npartitions and _leaves(X) == _leaves(part) != set()


def _beside_each_other(parts: Sequence[Any]) -> Any:
    """Return a collection whose partitions are tuples of those of some data frames and series of one table.

    Dask reads several files as one partition where few of their columns are needed (2026.8), so that parts of
    a table would have other partitions if each were optimised alone.
    """
    X, *others = parts
    return X.map_partitions(_tuple, *others, meta=X._meta, align_dataframes=False, enforce_metadata=False)


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _computed_from(part: Any) -> tuple[list[Key], dict[Key, Any]]:
    """Return the key of each chunk of rows or partition of a collection, and the optimised graph of all.

    The graph of what is persisted consists of futures, which optimisation drops. A data frame has a method of its own
    for that: `dask.optimize` of Dask 2026.8 makes data frames of series.

    Raises
    ------
    InvalidInputError
        If the graph lacks partitions.
    """
    import dask

    optimised = part.optimize() if hasattr(part, "optimize") else dask.optimize(part)[0]
    tasks = {key: value for key, value in dict(part.__dask_graph__()).items() if is_future(value)}
    tasks.update(dict(optimised.__dask_graph__()))
    keys = [key[0] if isinstance(key, list) else key for key in optimised.__dask_keys__()]
    if not tasks.keys() >= {*keys}:
        raise InvalidInputError(
            "a data frame names more partitions than it has, which persist() of Dask does to some columns of several "
            "files; persist all of the table first, as table = table.persist(), and then choose its columns"
        )
    return keys, tasks


def _rows_of(part: Any) -> list[int | None]:
    """Return the rows of each chunk or partition; None for those that Dask does not know."""
    if not hasattr(part, "chunks"):
        return [None] * len(_computed_from(part)[0])
    return [None if rows != rows else int(rows) for rows in part.chunks[0]]


def _delayed(part: Any) -> list[Any]:
    """Return the chunks or partitions of a collection, each as a delayed object."""
    from dask.delayed import Delayed

    keys, tasks = _computed_from(part)
    return [Delayed(key, tasks) for key in keys]


def _lengths(chunks: Sequence[Any]) -> list[int]:
    """Return the rows of each of some delayed chunks, which a reading of them finds."""
    import dask

    return [*dask.compute(*(dask.delayed(_length)(chunk) for chunk in chunks))]


def _length(chunk: Any) -> int:
    return len(chunk[0] if isinstance(chunk, tuple) else chunk)


def _needs_lengths(part: Any, n_chunks: int) -> bool:
    """Return whether something can only be cut to chunks whose lengths are known."""
    return not is_dask(part) or (_is_frame(part) and len(_rows_of(part)) != n_chunks)


def _as_array(part: Any, name: str) -> Any:
    """Return a data frame or series as an array of known chunks, whose lengths a reading of it finds."""
    import dask
    import dask.array as da

    chunks, empty, wanted = _delayed(part), np.asarray(part._meta.to_numpy()), Wanted.of(part._meta, name, None, None)
    numbers = dask.delayed(rows_of_partition)
    return da.concatenate(
        [
            da.from_delayed(numbers(chunk, wanted, number), (rows, *empty.shape[1:]), empty.dtype)
            for number, (chunk, rows) in enumerate(zip(chunks, _lengths(chunks), strict=True))
        ]
    )


def rows_like(part: Any, name: str, X: Any) -> Any:
    """Return one entry per row as a Dask array, in the chunks of another one.

    Raises
    ------
    InvalidInputError
        If lengths or chunks differ, or if an array in memory cannot be cut to chunks of unknown lengths.
    """
    import dask.array as da

    rows = _rows_of(X)
    if is_dask(part):
        found = _aligned(_one_chunk_of_columns(part), name, rows)
        return found if hasattr(found, "chunks") else found.to_dask_array()
    if None in rows:
        raise InvalidInputError(
            f"the lengths of the chunks of X are not known, so {name} cannot be cut to them; give it as an array of "
            "Dask in the same chunks, or call X.compute_chunk_sizes() first"
        )
    array = np.asarray(part)
    if array.shape[:1] != (X.shape[0],):
        raise InvalidInputError(f"{name} has shape {array.shape}; X has {int(X.shape[0]):,} rows")
    return da.from_array(array, chunks=(X.chunks[0], *array.shape[1:]))


def _aligned(part: Any, name: str, rows: Sequence[int | None]) -> Any:
    """Return a collection of one entry per row in the chunks of X."""
    own = _rows_of(part)
    if _is_frame(part) and len(own) != len(rows) and None not in rows:
        part = _as_array(part, name)
        own = _rows_of(part)
    if None not in own and None not in rows:
        lengths = [length for length in rows if length is not None]
        if sum(length for length in own if length is not None) != sum(lengths):
            raise InvalidInputError(
                f"X has {sum(lengths):,} rows, {name} has shape {part.shape}: one entry for each row is needed"
            )
        return part if own == lengths else part.rechunk({0: tuple(lengths)})
    if len(own) != len(rows):
        raise InvalidInputError(
            f"X has {plural(len(rows), 'chunk')} of rows and {name} has {len(own):,}, not all of known lengths; give "
            "both in the same chunks: call compute_chunk_sizes() of arrays, and persist() the data frame that both are "
            "columns of"
        )
    return part


def _add_chunks(
    graph: Graph, whole: Any, name: str, part: Any, dtype: Any, place: int | None = None
) -> list[Key | None]:
    """Add the optimised graph of a collection, and return the key of each of its chunks of rows.

    Parameters
    ----------
    graph : Graph
        What is added to.
    whole : collection
        An array, or a data frame or series, whose partitions become arrays; or one of tuples of such.
    name : str
        Of the part.
    part : collection
        That which the array, data frame or series is.
    dtype : dtype or None
        What numbers become; None for what they are.
    place : int, optional
        Which of a tuple of data frames each partition is.
    """
    keys, tasks = _computed_from(whole)
    graph.tasks.update(tasks)
    if hasattr(whole, "chunks"):
        return [*keys]
    from dask.base import tokenize

    token, wanted = f"hardthresh-{name}-{tokenize(keys, str(dtype), place)}", Wanted.of(part._meta, name, dtype, place)
    found: list[Key | None] = [(token, number) for number in range(len(keys))]
    graph.tasks[token] = wanted
    graph.tasks.update({(token, number): (rows_of_partition, key, token, number) for number, key in enumerate(keys)})
    graph.columns.update(dict.fromkeys(column for column, _ in types_of(part._meta)))
    return found


def _add_slices(graph: Graph, part: Any, name: str, rows: Sequence[int | None]) -> list[Key | None]:
    """Add the parts of an array in memory that belong to the chunks of X, and return their keys."""
    from dask.base import tokenize

    array = np.asarray(part)
    lengths = [length for length in rows if length is not None]
    if array.ndim == 0 or array.shape[0] != sum(lengths):
        raise InvalidInputError(
            f"X has {sum(lengths):,} rows, {name} has shape {array.shape}: one entry for each row is needed"
        )
    token = f"hardthresh-{name}-{tokenize(array, lengths)}"
    keys: list[Key | None] = [(token, number) for number in range(len(lengths))]
    pieces = np.split(array, np.cumsum(lengths)[:-1])
    graph.arrays.update(zip(keys, pieces, strict=True))
    return keys


def is_future(value: Any) -> bool:
    """Return whether a value of a graph is computed, or being computed, on a cluster."""
    return hasattr(value, "result") and hasattr(value, "key")
