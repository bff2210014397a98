"""Tables in blocks of rows, which are in files, in memory or on other machines."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
import scipy.sparse as sp

from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.memory import return_free_memory
from hardthresh.core.typing import Array

LARGEST_BLOCK = 32 << 20
"""Bytes of a block: two of them and their products stay in the cache of level 3 of a server, and 20 GB are 640 tasks
(measured: blocks of 8 to 64 MiB are equally fast, smaller ones cost more calls, larger ones more memory)."""
_FEWEST, _MOST = 1 << 10, 1 << 20
"""Rows of a block: fewer than 1024 are slow in BLAS, and more than 2^20 take long between two interrupts."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a block. Iteration yields X, y, weight and offset, the first arguments of a task.

    Attributes
    ----------
    X : array or scipy.sparse.csr_array, shape (n_b, d)
        The columns, float32 or float64; dense rows are C-ordered when a task receives them.
    y : array, shape (n_b,) or (n_b, q), or None
        The target, of any dtype; None if only X is known, as in a prediction.
    weight : array, shape (n_b,), or None
        Non-negative weights of the rows; None if all are 1.
    offset : array, shape (n_b,) or (n_b, q), or None
        A known part of the predictions; None if there is none.
    fold : array, shape (n_b,), or None
        The fold of a cross-validation of each row, if the table has a column of folds; see `engine.FOLD`.
    """

    X: Any
    y: Array | None = None
    weight: Array | None = None
    offset: Array | None = None
    fold: Array | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.weight, self.offset))

    @property
    def parts(self) -> tuple[Any, ...]:
        """X, y, weight, offset and fold."""
        return (*self, self.fold)

    @property
    def nbytes(self) -> int:
        """Bytes of X."""
        return bytes_of_part(self.X)

    @property
    def nbytes_in_all(self) -> int:
        """Bytes of all arrays."""
        return sum(bytes_of_part(part) for part in self.parts if part is not None)

    def apply(self, function: Callable[[Any], Any]) -> Rows:
        """Return the results of a function of each part that is not None."""
        return Rows(*(None if part is None else function(part) for part in self.parts))


class Block(ABC):
    """A reference to some rows of a table, which can be pickled and sent to the process that reads them.

    Attributes
    ----------
    rows : int or None
        The number of rows; None if it is unknown before they are loaded.
    size : int or None
        Bytes of X once it is loaded; None for dense rows, where it follows from their number.
    """

    rows: int | None
    size: int | None = None

    @abstractmethod
    def load(self) -> Iterable[Any]:
        """Return the rows as `Rows`, or as X, y, weight and offset. It is called again in each pass over the table.

        Raises
        ------
        OSError
            If the rows cannot be read, with the path and the missing rows.
        """

    def select(self, columns: Array) -> Block:
        """Return the block with some columns, see `RowBlocks.select`; column-oriented files read only these."""
        return SelectedBlock(self, np.asarray(columns))

    def held(self) -> list[Any]:
        """Return the parts of the rows that are not in files: arrays in memory, or the keys of a Dask graph."""
        return []

    def bare(self) -> Block:
        """Return the block without the parts of `held`, which a cluster sends once to the worker of the block."""
        return self

    def holding(self, parts: Sequence[Any]) -> Block:
        """Return a bare block together with its parts, in the order of `held`."""
        return self


@dataclass(frozen=True, eq=False)
class BlockAround(Block):
    """Base of the blocks whose rows are those of another block, but for some change."""

    block: Block

    @property
    def rows(self) -> int | None:  # type: ignore[override]
        return self.block.rows

    @property
    def size(self) -> int | None:  # type: ignore[override]
        return self.block.size

    def held(self) -> list[Any]:
        return self.block.held()

    def bare(self) -> Block:
        return replace(self, block=self.block.bare())

    def holding(self, parts: Sequence[Any]) -> Block:
        return replace(self, block=self.block.holding(parts))


@dataclass(frozen=True, eq=False)
class SelectedBlock(BlockAround):
    """Some columns of a block whose rows have to be read as a whole."""

    size = None
    columns: Array

    def load(self) -> Rows:
        rows = as_rows(self.block.load())
        return replace(rows, X=rows.X[:, self.columns])


Choice: TypeAlias = Callable[[Rows], Rows]
"""Returns some rows of a block. It can be pickled, and is called where the block is."""
Pick: TypeAlias = int | tuple[int, Array | slice | Choice]
"""A block, by its number, or some of its rows: the number of the block, and theirs within it, or what chooses them."""


@dataclass(frozen=True, eq=False)
class RowBlocks(Sequence[Block]):
    """A table in blocks of rows: a sequence of `Block`, none of which is read before a fit.

    The boundaries of the blocks depend only on the size of the table and the layout of its file, not on the machine. So
    fits are bitwise identical on all machines with the same BLAS kernel.

    Parameters
    ----------
    blocks : tuple of Block
        The rows, in order.
    n_columns : int
        d.
    dtype : dtype
        float32 or float64, the type to which the entries of X are converted.
    feature_names : tuple of str, optional
        Names of the columns, if they have any.
    sources : tuple of path
        The files that are read. Their sizes and modification times show whether they have changed.
    readers : int
        The number of threads that read ahead: 1 if the disc limits the speed, 4 if decoding does, 0 for rows in memory.
    first : int
        The number of the first block, if these are blocks of a larger table.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.designs import from_arrays
    >>> table = from_arrays(np.eye(3000), np.arange(3000.0), rows=1024)
    >>> len(table), table.shape, table[2].rows
    (3, (3000, 3000), 952)
    """

    blocks: tuple[Block, ...]
    n_columns: int
    dtype: np.dtype[Any]
    feature_names: tuple[str, ...] | None = None
    sources: tuple[str, ...] = ()
    readers: int = 1
    first: int = 0

    @property
    def n_rows(self) -> int | None:
        """The number of rows of all blocks; None if that of a block is not known yet."""
        known = [block.rows for block in self.blocks]
        return None if None in known else sum(rows for rows in known if rows is not None)

    @property
    def shape(self) -> tuple[int | None, int]:
        """(n, d); n is None if it is not known yet."""
        return (self.n_rows, self.n_columns)

    @property
    def nbytes(self) -> int | None:
        """Bytes of all entries of X once they are loaded, including zeros of sparse rows; None if n is unknown."""
        rows = self.n_rows
        return None if rows is None else rows * self.n_columns * self.dtype.itemsize

    @property
    def largest(self) -> int:
        """Bytes of X in the largest block, among the blocks of known size."""
        return max(map(self.bytes_of, self.blocks), default=0)

    def bytes_of(self, block: Block) -> int:
        """Return the bytes of X in a block once it is loaded; 0 if they are not known yet."""
        return (block.rows or 0) * self.row_bytes if block.size is None else block.size

    def rows_in(self, room: float, largest: int) -> int:
        """Return how many rows fit into a number of bytes if the largest block takes `largest`; at least one."""
        rows = max((block.rows or 0 for block in self.blocks), default=0)
        return max(1, int(room) * rows // largest if rows else int(room) // self.row_bytes)

    @property
    def row_bytes(self) -> int:
        """Bytes of a dense row."""
        return max(1, self.n_columns * self.dtype.itemsize)

    def __len__(self) -> int:
        return len(self.blocks)

    @overload
    def __getitem__(self, number: int) -> Block: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, number: int | slice) -> Block | tuple[Block, ...]:
        return self.blocks[number]

    def __repr__(self) -> str:
        rows = "?" if self.n_rows is None else f"{self.n_rows:,}"
        return f"RowBlocks({rows} x {self.n_columns:,} {self.dtype}, {plural(len(self), 'block')})"

    def select(self, columns: Array) -> RowBlocks:
        """Return the table with some columns; for column-oriented files, only these are read.

        Parameters
        ----------
        columns : array of int
            The columns, increasing; in any order if the columns of the table have names.
        """
        columns = np.asarray(columns)
        names = self.feature_names and tuple(self.feature_names[j] for j in columns.tolist())
        blocks = tuple(block.select(columns) for block in self.blocks)
        return replace(self, blocks=blocks, n_columns=columns.size, feature_names=names)

    def part(self, start: int, stop: int) -> RowBlocks:
        """Return the table of some neighbouring blocks."""
        return replace(self, blocks=self.blocks[start:stop], first=self.first + start)

    def read(self, number: int) -> Rows | None:
        """Return the rows of a block in the form in which tasks receive them, or None for an empty block.

        Dense rows are C-ordered and aligned, because BLAS sums others in a different order, which changes the rounding.

        Parameters
        ----------
        number : int
            The number of the block.

        Raises
        ------
        InvalidInputError
            If the shapes of the block do not match the other blocks, or its arrays do not match each other.
        """
        return checked(self.blocks[number].load(), self.first + number, self.n_columns, self.dtype)

    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Return path, size and modification time of each file, which change if the file does."""
        found = []
        for path in self.sources:
            status = os.stat(path)
            found.append((path, status.st_size, status.st_mtime_ns))
        return tuple(found)

    def fingerprint(self) -> str:
        """Return a digest of the shape, the stamp of the files, and the rows of the first and last block."""
        digest = sha256(repr((self.shape, str(self.dtype), self.feature_names, self.stamp())).encode())
        for number in sorted({0, len(self) - 1}) if len(self) else ():
            _add_to(digest, self.read(number) or Rows(np.zeros((0, 0))))
        return_free_memory()
        return digest.hexdigest()


def in_blocks(X: Any) -> bool:
    """Return whether X is a table in blocks, or an engine that holds one.

    Parameters
    ----------
    X : object
        Anything.

    Examples
    --------
    >>> in_blocks([[1.0, 2.0]])
    False
    """
    return isinstance(X, RowBlocks) or (hasattr(X, "sweep") and isinstance(getattr(X, "blocks", None), RowBlocks))


def bytes_of_part(array: Any) -> int:
    """Return the bytes of a dense or sparse array."""
    parts = (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,)
    return sum(int(part.nbytes) for part in parts)


def _add_to(digest: Any, rows: Rows) -> None:
    """Add the bytes of all rows to a digest."""
    for part in rows.parts:
        for array in _parts(part):
            digest.update(np.ascontiguousarray(array).tobytes())


def _parts(array: Any) -> Iterator[Array]:
    """Yield the arrays of numbers that a dense or sparse array consists of."""
    if sp.issparse(array):
        yield from (array.indptr, array.indices, array.data)
    elif array is not None:
        yield array if array.dtype.kind != "O" else np.asarray(array, dtype=str)


def block_rows(n_columns: int, dtype: Any, *, chunk: int = 1) -> int:
    """Return the rows of a block: a power of two of at most 32 MiB between 2^10 and 2^20, or whole chunks of a file.

    Parameters
    ----------
    n_columns : int
        d.
    dtype : dtype
        That of the entries.
    chunk : int
        Rows that can only be read together; of larger chunks, each is a block.

    Examples
    --------
    >>> block_rows(1000, "float32"), block_rows(1000, "float32", chunk=3000), block_rows(1000, "float32", chunk=10000)
    (8192, 6000, 10000)
    """
    most = LARGEST_BLOCK // max(1, n_columns * int(np.dtype(dtype).itemsize))
    rows: int = min(max(1 << max(0, most.bit_length() - 1), _FEWEST), _MOST)
    return max(1, rows // chunk) * chunk


def as_rows(loaded: Iterable[Any]) -> Rows:
    """Return what a block has loaded, or a task has kept, as `Rows`."""
    return loaded if isinstance(loaded, Rows) else Rows(*loaded)


def checked(loaded: Iterable[Any], number: int, n_columns: int, dtype: np.dtype[Any]) -> Rows | None:
    """Return what a block has loaded as a task gets it, see `RowBlocks.read`."""
    rows = as_rows(loaded)
    if rows.X.ndim != 2:
        raise InvalidInputError(f"block {number}: X must be a matrix (rows x columns), got {rows.X.ndim} dimensions")
    n, d = rows.X.shape
    if n == 0:
        return None
    if d != n_columns:
        raise InvalidInputError(
            f"block {number} has {plural(d, 'column')}, block 0 has {n_columns:,}: "
            "all parts of a table need the same columns in the same order"
        )
    for name, part in (("y", rows.y), ("sample_weight", rows.weight), ("offset", rows.offset), ("fold", rows.fold)):
        if part is not None and part.shape[0] != n:
            raise InvalidInputError(
                f"block {number} has {n:,} rows of X and {part.shape[0]:,} of {name}; rechunk {name} to the chunks of X"
            )
    arranged = replace(rows, X=None).apply(lambda part: np.require(part, requirements=["C", "A"]))
    return replace(arranged, X=_in_order(rows.X, number, dtype))


def _in_order(X: Any, number: int, dtype: np.dtype[Any]) -> Any:
    if X.dtype.kind not in "fiub":
        raise InvalidInputError(f"block {number}: X must be numeric, got dtype {format_value(str(X.dtype))}")
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=dtype)
        X.sum_duplicates()  # which sorts the columns of each row
        return X
    return np.require(X, dtype=dtype, requirements=["C", "A"])


def table_dtype(*dtypes: Any) -> np.dtype[Any]:
    """Return float32 if all parts of a table are, and float64 otherwise."""
    same = all(np.dtype(dtype).newbyteorder("=") == np.float32 for dtype in dtypes)
    return np.dtype(np.float32 if same and dtypes else np.float64)


def as_source(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file or folder that has to exist, so that it means the same in other processes."""
    if "://" in os.fspath(path):
        raise InvalidInputError(
            f"{os.fspath(path)} is an address, and only files of this machine are read here; let Dask read it, as "
            "from_dask(dask.dataframe.read_parquet(...))"
        )
    found = Path(path).expanduser().resolve()
    if not found.exists():
        raise FileNotFoundError(f"{found} does not exist")
    return str(found)
