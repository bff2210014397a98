"""Rows that are stored where they were computed: in memory while there is room, otherwise in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.memory import free_memory, return_free_memory
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Block, RowBlocks, Rows, as_rows, checked, table_dtype
from hardthresh.designs.formats.stored import ArrayBlock, RawArray

SHARE_IN_MEMORY = 0.25
"""Of the memory that is free when the first rows are kept: arbitrary, so that a fit leaves room for its user's work."""
MOST_IN_MEMORY = 64 << 20
"""Bytes, at most: so that the memory of a fit does not grow with its rows. What is in the file is read from the cache
of the system as long as this has room."""


class Kept(Protocol):
    """What `Engine.keep` has left with each block, for `Engine.sweep`. A context manager that releases it."""

    def release(self) -> None:
        """Free the memory or the disc that it takes; it cannot be read any more."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, *raised: object) -> None:
        """Release it."""


class KeptRows:
    """Rows that this process has kept: in memory at first, and in one file from where they exceed their share of it.

    Parameters
    ----------
    table : RowBlocks
        What is read: there will be as many blocks, with the same numbers.
    memory : int, optional
        Bytes that stay in memory; default: a quarter of what is free, and at most 64 MiB.
    """

    def __init__(self, table: RowBlocks, memory: int | None = None) -> None:
        self._blocks: list[Block | None] = [None] * len(table)
        self._first = table.first
        if memory is None:
            memory = min(int(SHARE_IN_MEMORY * free_memory()), MOST_IN_MEMORY)
        self._left = memory
        self._scratch: Scratch | None = None
        self._columns, self._dtype = 0, np.dtype(np.float64)  # of the rows, once some are here
        self._lock = Lock()

    def put(self, number: int, data: Iterable[Any] | None) -> None:
        """Keep what a task has left with a block; None if that has no rows. Threads may call it at once."""
        given = Rows(np.zeros((0, 0))) if data is None else as_rows(data)
        rows = checked(given, number, given.X.shape[1], table_dtype(given.X.dtype))
        self._blocks[number - self._first] = ArrayBlock(given if rows is None else self._stored(rows))

    def _stored(self, rows: Rows) -> Rows:
        parts = [part for part in rows.parts if part is not None]
        with self._lock:
            self._columns, self._dtype = rows.X.shape[1], rows.X.dtype
            self._left -= rows.nbytes_in_all
            if self._left >= 0 or any(sp.issparse(part) or part.dtype.hasobject for part in parts):
                return rows
            if self._scratch is None:
                self._scratch = Scratch()
        return self._scratch.write(rows)

    @property
    def blocks(self) -> RowBlocks:
        """The rows, as a table."""
        if None in self._blocks:
            raise InvalidInputError("kept rows were released, or not all blocks were put")
        blocks = tuple(block for block in self._blocks if block is not None)
        return RowBlocks(
            blocks, self._columns, self._dtype, readers=0 if self._scratch is None else 1, first=self._first
        )

    def release(self) -> None:
        self._blocks = [None] * max(1, len(self._blocks))
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None
        return_free_memory()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_NAMELESS = hasattr(os, "preadv")
"""Whether a file can be read at any place through its descriptor alone, so that it needs no name. Not on Windows."""


class Scratch:
    """A file of rows in the temporary folder, which disappears with the object or the process.

    On Unix it has no name from the start, so that nothing is left of it however the process ends.
    """

    def __init__(self) -> None:
        handle, self.path = tempfile.mkstemp(prefix="hardthresh-", suffix=".rows")
        self._file = os.fdopen(handle, "w+b", buffering=0)
        if _NAMELESS:
            Path(self.path).unlink()
        self._end = 0
        self._lock = Lock()
        self.remove = weakref.finalize(self, _remove, self._file, self.path)

    def write(self, rows: Rows) -> Rows:
        """Append dense rows.

        Raises
        ------
        OSError
            If the disc is full; the message has the folder and the bytes that were needed.
        """
        with self._lock:
            return rows.apply(self._store)

    def _store(self, part: Array) -> RawArray:
        at = self._end
        self._append(memoryview(part.reshape(-1).view(np.uint8)))
        if _NAMELESS:
            return _Nameless(self.path, part.shape, part.dtype.str, begin=at, file=self._file)
        return RawArray(self.path, part.shape, part.dtype.str, begin=at)

    def _append(self, content: memoryview) -> None:
        done = 0
        while done < len(content):
            try:
                done += self._file.write(content[done:])
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                missing = f"{len(content) - done:,} more bytes are needed after {self._end + done:,}"
                raise OSError(  # without a number, which would be taken for that of another file
                    f"the disc of the temporary folder {Path(self.path).parent} is full: {missing}; "
                    "set TMPDIR to another folder, or ask for fewer features"
                ) from error
        self._end += done


@dataclass(frozen=True)
class _Nameless(RawArray):
    """Rows in a file that is open, whose name is gone."""

    file: Any = None

    def _read_into(self, view: memoryview, at: int) -> int:
        done = 0
        while done < len(view) and (got := os.preadv(self.file.fileno(), [view[done:]], at + done)):
            done += got
        return done


def _remove(file: Any, path: str) -> None:
    file.close()
    Path(path).unlink(missing_ok=True)
