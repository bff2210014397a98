"""Matrices in files, of which blocks of rows are read when they are needed, and their companions."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from hardthresh.arrays import as_floating
from hardthresh.arrays.pieces import steps
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Block, RowBlocks, Rows, block_rows, bytes_of_part, table_dtype

PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class StoredArray(ABC):
    """Rows of an array in a file: a name of them, which is small and can be pickled.

    Attributes
    ----------
    path : str
        The file or folder.
    shape : tuple of int
        Of these rows.
    dtype : str
        As stored, with the order of bytes.
    first_row : int
        The number of the first row in the file.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    first_row: int = 0

    def __getitem__(self, rows: slice) -> Self:
        start, stop, _ = rows.indices(self.shape[0])
        return replace(self, shape=(max(0, stop - start), *self.shape[1:]), first_row=self.first_row + start)

    @property
    def stop(self) -> int:
        """The number of the row behind the last in the file."""
        return self.first_row + self.shape[0]

    @abstractmethod
    def read(self) -> Array:
        """Return the rows.

        Raises
        ------
        OSError
            If they are not in the file, with its path and the rows that are missing.
        """


@dataclass(frozen=True)
class RawArray(StoredArray):
    """Rows of a C-ordered array in a file of numbers.

    A mapping would count as memory, and each of its page faults would stop the computation; a read leaves it running
    in other threads.

    Attributes
    ----------
    begin : int
        The byte where the array begins in the file.
    """

    begin: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(np.dtype(self.dtype).itemsize) * prod(self.shape[1:])

    def read(self) -> Array:
        array: Array = np.empty(self.shape, dtype=self.dtype)
        if not array.nbytes:
            return array
        view = memoryview(array.reshape(-1).view(np.uint8))
        at = self.begin + self.first_row * self.row_bytes
        done = self._read_into(view, at)
        if done < len(view):
            raise OSError(self._ends(at + done))
        return array

    def _read_into(self, view: memoryview, at: int) -> int:
        """Read from a byte of the file on, and return how many bytes there were."""
        done = 0
        with open(self.path, "rb", buffering=0) as file:
            file.seek(at)
            while done < len(view) and (got := file.readinto(view[done:])):
                done += got
        return done

    def require(self) -> RawArray:
        """Return it, if the file is as long as it has to be; otherwise raise what `read` would."""
        size = os.stat(self.path).st_size
        if size < self.begin + self.stop * self.row_bytes:
            raise OSError(self._ends(size))
        return self

    def _ends(self, byte: int) -> str:
        missing = max(self.first_row, (byte - self.begin) // max(1, self.row_bytes))
        return f"{self.path} ends at byte {byte:,}; rows {missing:,}..{self.stop - 1:,} are missing"


def as_text(array: Array) -> Array:
    """Return an array of texts as one of the type str: bytes are decoded; other arrays are returned as they are.

    Examples
    --------
    >>> as_text(np.array([b"yes", b"no"])), as_text(np.zeros(2))
    (array(['yes', 'no'], dtype='<U3'), array([0., 0.]))
    """
    kind = array.dtype.kind
    if kind == "S":
        return np.char.decode(array, "utf-8", "backslashreplace")
    if kind == "T" or (kind == "O" and all(isinstance(value, str) for value in array.flat)):
        return np.array(array.tolist(), dtype=str)
    return array


@dataclass(frozen=True, eq=False)
class ArrayBlock(Block):
    """Rows whose parts are arrays in memory, which a pickle holds, or in files, of which it holds the name."""

    data: Rows

    @property
    def rows(self) -> int:  # type: ignore[override]
        return int(self.data.X.shape[0])

    @property
    def size(self) -> int | None:  # type: ignore[override]
        X = self.data.X
        return bytes_of_part(X) if sp.issparse(X) else None

    def load(self) -> Rows:
        return self.data.apply(lambda part: as_text(part.read()) if isinstance(part, StoredArray) else part)

    def held(self) -> list[Any]:
        parts = self.data.parts
        return [part for part in parts if not (part is None or isinstance(part, StoredArray))]

    def bare(self) -> Block:
        return self.holding([Ellipsis] * len(self.held()))

    def holding(self, parts: Sequence[Any]) -> Block:
        given = iter(parts)
        return ArrayBlock(self.data.apply(lambda part: part if isinstance(part, StoredArray) else next(given)))


def cut(X: Any, others: Mapping[str, Any], rows: int | None, *, chunk: int = 1, readers: int = 1) -> RowBlocks:
    """Return the blocks of a matrix, in memory or in a file, and of what else its rows have.

    Parameters
    ----------
    X : array or StoredArray, shape (n, d)
        The matrix.
    others : mapping of str to array or StoredArray
        y, sample_weight, offset and fold, or None for them.
    rows : int or None
        Rows of a block that the user asks for.
    chunk : int
        Rows that are read together.
    readers : int
        Threads that read a stored matrix.
    """
    if len(X.shape) != 2:
        raise InvalidInputError(f"X must be a matrix (rows x columns), got {len(X.shape)} dimensions")
    as_floating(np.empty(0, dtype=X.dtype), name="X")  # refuses what is not numeric
    n, d = X.shape
    for name, part in others.items():
        if part is not None and (len(part.shape) == 0 or part.shape[0] != n):
            raise InvalidInputError(
                f"X has {n:,} rows, {name} has shape {part.shape}: one entry for each row is needed"
            )
    whole, dtype = Rows(X, *others.values()), table_dtype(X.dtype)
    size = wanted_rows(rows) or block_rows(d, dtype, chunk=chunk)
    blocks = tuple(_some_rows(whole, own) for own in steps(n, size))
    files = dict.fromkeys(part.path for part in (X, *others.values()) if isinstance(part, StoredArray))
    return RowBlocks(blocks, d, dtype, sources=tuple(files), readers=readers if isinstance(X, StoredArray) else 0)


def _some_rows(whole: Rows, some: slice) -> ArrayBlock:
    return ArrayBlock(whole.apply(lambda part: part[some]))


def wanted_rows(rows: int | None) -> int | None:
    """Return the rows of a block that a user asks for."""
    if rows is not None and (isinstance(rows, bool) or int(rows) != rows or rows < 1):
        raise InvalidInputError(f"rows must be a positive integer, got {format_value(rows)}")
    return None if rows is None else int(rows)
