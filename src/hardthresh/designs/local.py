"""Engines of one process, whose threads read blocks while others are worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from functools import partial
from typing import Any, Self, TypeVar

from hardthresh.core.errors import InvalidInputError, OutOfMemoryError, plural, warn
from hardthresh.core.memory import free_memory, memory_for_blocks, return_free_memory, spare_address_space
from hardthresh.core.threads import in_pieces, thread_count
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Pick, RowBlocks, Rows
from hardthresh.designs.engine import Task, kept_alone, not_empty, picked, run_task, stacked
from hardthresh.designs.reading_log import counted_reading
from hardthresh.designs.scratch import SHARE_IN_MEMORY, KeptRows
from hardthresh.designs.tree import FAN, Sums, Tree
from hardthresh.designs.witness import Witness, sums_and_kept, sums_only, witness_of

DECODING = 4
"""Times a block that a thread takes which decodes it: measured 3, of 32 MiB in Zarr with lz4 (the compressed bytes, the
chunk that is decoded, and the rows). Parquet takes little more than one, because few of its columns are decoded at a
time."""

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_order(function: Callable[[Item], Outcome], items: Iterable[Item], threads: int, ahead: int) -> Iterator[Outcome]:
    """Yield ``function(item)`` of all items in order, computed in threads while the last one is worked on.

    Parameters
    ----------
    function : callable
        Runs in the threads, in the context of the caller.
    items : iterable
        Its arguments.
    threads : int
        How many threads; with 0 it runs in the caller's own.
    ahead : int
        How many results may be computed or wait besides the last one.
    """
    if threads == 0:
        yield from map(function, items)
        return
    left = iter(items)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="hardthresh-blocks")
    waiting: deque[Any] = deque()

    def submit() -> None:
        for item in left:
            try:
                waiting.append(pool.submit(copy_context().run, function, item))
            except RuntimeError as error:  # there is no room for its stack
                raise OutOfMemoryError(f"no thread can be started to read blocks: {memory_for_blocks()}") from error
            return

    try:
        for _ in range(ahead):
            submit()
        while waiting:
            found = waiting.popleft().result()
            submit()
            yield found
            del found
    finally:  # also after an error or an interrupt of the caller: no thread is left
        pool.shutdown(wait=True, cancel_futures=True)


def _affordable(blocks: RowBlocks) -> int:
    """Return how many threads may read a table at once."""
    if blocks.readers < 2:
        return blocks.readers
    room = int(SHARE_IN_MEMORY * free_memory()) // (DECODING * max(1, blocks.largest))
    return max(1, min(blocks.readers, room))


def _warn_of_large_blocks(blocks: RowBlocks) -> None:
    """Warn of blocks that this process has too little memory for."""
    free = free_memory() if blocks.readers else 0  # blocks of arrays in memory are views
    if blocks.readers and blocks.largest > SHARE_IN_MEMORY * free:
        fits = blocks.rows_in(SHARE_IN_MEMORY * free, blocks.largest)
        warn(
            f"a block takes {blocks.largest / 1e6:,.0f} MB, more than a quarter of the free memory "
            f"({free / 1e6:,.0f} MB); write the file in chunks or row groups of at most {plural(fits, 'row')}"
        )


class _Local:
    """What the engines of one process share; `_each` says which thread does what."""

    def __init__(self, blocks: RowBlocks) -> None:
        self.blocks = blocks
        self.readings = 0
        self._stamp = blocks.stamp()
        self._witness = Witness()
        spare_address_space()
        _warn_of_large_blocks(blocks)

    def _each(self, work: Callable[[int, Rows | None], Outcome], blocks: RowBlocks) -> Iterator[Outcome]:
        raise NotImplementedError

    def _read(self, work: Callable[[int, Rows | None], Outcome], columns: Array | None) -> Iterator[Outcome]:
        """Yield what is made of each block, in order: one reading."""
        self._refuse_change()
        blocks = self.blocks if columns is None else self.blocks.select(columns)
        with counted_reading(len(blocks)) as count:

            def counted(number: int, data: Rows | None) -> Outcome:
                found = work(number, data)
                count(0 if data is None else data.nbytes)
                return found

            yield from self._each(counted, blocks)
        self._refuse_change()
        self.readings += 1
        return_free_memory()

    def _refuse_change(self) -> None:
        now = self.blocks.stamp()
        for old, new in zip(self._stamp, now, strict=True):
            if old != new:
                raise InvalidInputError(f"X changed while it was read ({new[0]}); fit again")

    def sweep(self, task: Task, *args: Any, on: Any = None, columns: Array | None = None) -> Sums:
        """Return the sum over blocks of what a task returns, as `Engine.sweep`."""
        tree = Tree()
        if on is not None:
            for part in self._each(partial(run_task, task, args), on.blocks):
                tree.push(part)
            return not_empty(tree.total())
        for part in self._read(partial(run_task, partial(sums_only, witness_of(columns), task), args), columns):
            tree.push(part)
        return self._witness.checked(not_empty(tree.total()))

    def keep(self, task: Task, *args: Any, columns: Array | None = None) -> KeptRows:
        """Return a handle to rows that a task leaves, as `Engine.keep`."""
        return self.both(partial(kept_alone, task), *args, columns=columns)[1]

    def both(self, task: Task, *args: Any, columns: Array | None = None) -> tuple[Sums, KeptRows]:
        """Return a sum and a handle to rows, as `Engine.both`."""
        kept, tree = KeptRows(self.blocks), Tree()
        witnessed = partial(sums_and_kept, witness_of(columns), task)

        def work(number: int, data: Rows | None) -> Sums | None:
            found = run_task(witnessed, args, number, data)
            kept.put(number, None if found is None else found[1])
            return None if found is None else tuple(found[0])

        try:
            for part in self._read(work, columns):
                tree.push(part)
            return self._witness.checked(not_empty(tree.total())), kept
        except BaseException:
            kept.release()
            raise

    def on_blocks(self, blocks: RowBlocks) -> Self:
        """Return the same engine on other blocks of the same rows, as `Engine.on_blocks`."""
        other = copy(self)
        other.blocks, other._witness = blocks, Witness()
        return other

    def rows(self, picks: Sequence[Pick]) -> Rows:
        """Return some blocks or rows themselves, as `Engine.rows`."""
        return stacked(picked(self.blocks, pick) for pick in picks)


class Serial(_Local):
    """An engine that computes in the calling thread while other threads read the next blocks.

    Parameters
    ----------
    blocks : RowBlocks
        The table. For a file, two blocks are in memory at a time, or one more than the number of reading threads.
    readers : int, optional
        The number of reading threads. Default: `RowBlocks.readers`, 1 for raw files, where the disc limits the speed,
        and 4 if rows are decoded, or fewer if their blocks would take more than a quarter of the free memory.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.designs import Serial, from_arrays
    >>> engine = Serial(from_arrays(np.ones((5000, 2)), np.arange(5000.0), rows=1024))
    >>> engine.sweep(lambda X, y, weight, offset: (X.T @ y,))
    (array([12497500., 12497500.]),)
    >>> engine.readings
    1
    """

    def __init__(self, blocks: RowBlocks, readers: int | None = None) -> None:
        super().__init__(blocks)
        self._readers = readers

    def _each(self, work: Callable[[int, Rows | None], Outcome], blocks: RowBlocks) -> Iterator[Outcome]:
        readers = _affordable(blocks) if self._readers is None else self._readers
        stream = in_order(blocks.read, range(len(blocks)), readers, ahead=readers)
        number = blocks.first
        for data in stream:  # not enumerated, as that holds a block until the next one is there
            yield work(number, data)
            number += 1
            del data


class Threads(_Local):
    """An engine whose threads each read and process one block at a time.

    Parameters
    ----------
    blocks : RowBlocks
        The table.
    n_threads : int
        The number of threads, each of which has one block in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.designs import Threads, from_arrays
    >>> engine = Threads(from_arrays(np.ones((5000, 2)), np.arange(5000.0), rows=1024), 4)
    >>> engine.sweep(lambda X, y, weight, offset: (X.T @ y,))
    (array([12497500., 12497500.]),)
    """

    def __init__(self, blocks: RowBlocks, n_threads: int) -> None:
        super().__init__(blocks)
        if n_threads < 1:
            raise InvalidInputError(f"n_threads must be at least 1, got {n_threads}")
        self._n_threads = n_threads

    def _each(self, work: Callable[[int, Rows | None], Outcome], blocks: RowBlocks) -> Iterator[Outcome]:
        def read_and_work(number: int) -> Outcome:
            return work(blocks.first + number, blocks.read(number))

        return in_order(read_and_work, range(len(blocks)), self._n_threads, ahead=2 * self._n_threads)


def sum_kept(kept: KeptRows, task: Task, args: Sequence[Any]) -> Sums:
    """Return the sum of a task over rows that this process has kept, worked on by the threads of the library."""
    blocks, tree = kept.blocks, Tree()

    def work(number: int) -> Sums | None:
        found: Sums | None = run_task(task, args, blocks.first + number, blocks.read(number))
        return found

    numbers, batch = range(len(blocks)), FAN * thread_count()
    for start in range(0, len(blocks), batch):  # so that few sums wait to be added
        for part in in_pieces(work, numbers[start : start + batch]):
            tree.push(part)
    return not_empty(tree.total())
