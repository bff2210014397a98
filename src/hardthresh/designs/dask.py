"""The engine that runs passes over a table on the workers of a Dask cluster, with bitwise identical results."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from copy import copy
from functools import partial
from operator import getitem
from typing import Any, Self
from uuid import uuid4

import numpy as np

from hardthresh.core.errors import InvalidInputError, plural, warn
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Pick, RowBlocks, Rows
from hardthresh.designs.cluster import (
    current_client,
    kernel_name,
    release,
    reported_leaves,
    required_client,
    results,
    submitted,
)
from hardthresh.designs.engine import Engine, Task, both_of_leaf, kept_alone, leaves, not_empty, stacked, sum_leaf
from hardthresh.designs.formats.dask_partitions import refuse_lacking
from hardthresh.designs.formats.dask_tables import DaskBlock, Graph
from hardthresh.designs.local import Serial, sum_kept
from hardthresh.designs.reading_log import counted_reading, is_counted
from hardthresh.designs.scratch import KeptRows
from hardthresh.designs.tree import FAN, Sums
from hardthresh.designs.witness import Witness, sums_and_kept, sums_only, witness_of
from hardthresh.designs.worker import (
    Call,
    Leaf,
    Part,
    innermost,
    merged,
    rows_of,
    rows_of_block,
    run_leaf,
)

_SMALL_LEAF = 32 << 20
"""Bytes of neighbouring chunks that one task may take. They lie on different workers, and to send so many at 1 GB/s
takes as long as the scheduler needs for 8 tasks, 3 ms each."""
_LEAVES_PER_THREAD = 4
"""Leaves for each thread of the workers, at least: so that none waits long for the last one."""
_SHARE_OF_WORKER = 0.25
"""Of the memory of a worker, for a block: some columns are copied, the next one is there, Dask spills from 0.6 on."""
_LARGEST_HERE = 256 << 20
"""Bytes of kept rows that are worked on in the process of the client. A sweep over rows on the workers takes 0.1 s
for its tasks alone, of which fits of other losses than squared make up to hundreds; to send 256 MB once at 1 GB/s takes
as long as three. They are in memory as far as `KeptRows` allows."""


class DaskEngine:
    """An engine that runs tasks on the workers of a Dask cluster that hold the blocks.

    A task processes neighbouring blocks, a *leaf*, and sums are added in the same tree as in all engines. Besides sums,
    only arrays of this process are sent between machines, each once, and kept rows of at most 256 MB, which the client
    processes. Results are therefore bitwise identical to those in one process, for any number of workers, even after
    the loss of workers, whose data Dask computes again.

    Parameters
    ----------
    blocks : RowBlocks
        A table of Dask (`from_dask`), or files that all workers can read under the same path.
    client : distributed.Client, optional
        The client of the cluster. Default: the last one created in this process.
    leaf_size : int, optional
        The number of blocks of a leaf: 1, 8, 64, ...; the results are bitwise identical. Default: such that there are 4
        to 32 leaves for each thread of the workers; for Dask chunks, such that a leaf has 32 MiB.

    Attributes
    ----------
    readings : int
        The number of passes over all of X so far; passes over kept rows are not counted.
    tasks : int
        The number of tasks of the engine that were sent to the cluster so far, without those that compute the chunks of
        Dask.

    Raises
    ------
    MissingDependencyError
        Without the package distributed.
    InvalidInputError
        If there is no client.

    Warns
    -----
    UserWarning
        If a block takes more than a quarter of the memory of a worker; if workers have different BLAS kernels, so that
        rounding may differ between runs.

    Notes
    -----
    A pass raises `DataLostError` after ``distributed.comm.timeouts.connect`` without workers, `HardThreshError` if a
    block repeatedly kills workers, and `InvalidInputError` if the data differ from those of the first pass.
    """

    def __init__(self, blocks: RowBlocks, client: Any = None, leaf_size: int | None = None) -> None:
        self.blocks = blocks
        self.readings = self.tasks = 0
        self._client = required_client() if client is None else client
        self._witness = Witness()
        self._said: set[str] = set()
        workers = [*self._client.scheduler_info(n_workers=-1)["workers"].values()]
        self._memory = min((worker["memory_limit"] or np.inf for worker in workers), default=np.inf)
        self._warn_of_size(blocks.largest)
        self._leaf_size = leaf_size or _leaf_size(blocks, sum(worker["nthreads"] for worker in workers))
        self._held: dict[int, tuple[Any, Hashable]] = {}
        self._chunks = self._sent(blocks)

    def sweep(self, task: Task, *args: Any, on: Any = None, columns: Array | None = None) -> Sums:
        """Return the sum over blocks of what a task returns; see `Engine.sweep`."""
        if isinstance(on, KeptRows):
            return sum_kept(on, task, args)
        if on is not None:
            return not_empty(self._run(Call(sum_leaf, task, args), on.leaves, on.graph)[0].sums)
        return self._read(sum_leaf, sums_only, task, args, columns)[0]

    def keep(self, task: Task, *args: Any, columns: Array | None = None) -> KeptOnWorkers | KeptRows:
        """Return a handle to rows that a task returns; see `Engine.keep`."""
        return self.both(partial(kept_alone, task), *args, columns=columns)[1]

    def both(self, task: Task, *args: Any, columns: Array | None = None) -> tuple[Sums, KeptOnWorkers | KeptRows]:
        """Return the sum of the results of a task, and a handle to the rows that it returns; see `Engine.both`.

        They stay on the workers, or come to the client if they take at most 256 MB.
        """
        return self._read(both_of_leaf, sums_and_kept, task, args, columns)

    def on_blocks(self, blocks: RowBlocks) -> DaskEngine:
        """Return the same engine on other blocks of the same rows; see `Engine.on_blocks`."""
        other = copy(self)
        other.blocks, other._witness, other._held = blocks, Witness(), dict(self._held)
        other._chunks = {**self._chunks, **other._sent_parts(blocks)}
        return other

    def rows(self, picks: Sequence[Pick]) -> Rows:
        """Return some blocks or rows themselves, which workers load; see `Engine.rows`."""
        graph, name = dict(self._chunks), f"hardthresh-rows-{uuid4().hex}"
        keys: list[Hashable] = []
        for pick in picks:
            number, chosen = pick if isinstance(pick, tuple) else (pick, None)
            keys.append((name, len(keys)))
            graph[keys[-1]] = (rows_of, *Leaf.of(self.blocks.part(number, number + 1), self._key_of), chosen)
        futures = submitted(self._client, graph, keys, self.readings)
        found = self._results(futures)
        return stacked([None if parts is None else Rows(*parts) for parts in found])

    def _read(
        self, work: Callable[..., Any], order: Callable[..., Any], task: Task, args: Sequence[Any], columns: Any
    ) -> tuple[Sums, KeptOnWorkers | KeptRows]:
        """Return the sums and the kept rows of one reading, if its witness is that of the readings before."""
        blocks = self.blocks if columns is None else self.blocks.select(columns)
        found = [Leaf.of(leaf, self._key_of) for leaf in leaves(blocks, self._leaf_size)]
        with counted_reading(len(found)) as count:
            report = reported_leaves(self._client, count, len(found)) if is_counted() else nullcontext((None, count))
            with report as (reading, end):
                call = Call(work, partial(order, witness_of(columns), task), args, reading)
                part, kept = self._run(call, found, self._chunks)
                end(part.read)
        try:
            sums = self._witness.checked(not_empty(part.sums))
        except InvalidInputError:
            kept.release()
            raise
        self.readings += 1
        here = 0 < part.kept <= _LARGEST_HERE
        self._warn_of_kernels(part.kernels | {kernel_name()} if here else part.kernels)
        self._warn_of_size(part.largest)
        return sums, self._fetched(kept) if here else kept

    def _fetched(self, kept: KeptOnWorkers) -> KeptRows:
        """Return kept rows in this process, a leaf after another."""
        here, number = KeptRows(self.blocks), 0
        try:
            for leaf, future in zip(kept.leaves, kept.futures, strict=True):
                (parts,) = self._results([future])
                for block in leaf._replace(parts=parts).here():
                    here.put(number, rows_of_block(block))
                    number += 1
        except BaseException:
            here.release()
            raise
        finally:
            kept.release()
        return here

    def _run(self, call: Call, table: Sequence[Leaf], chunks: dict[Hashable, Any]) -> tuple[Part, KeptOnWorkers]:
        """Return the sum over all leaves, and a handle to what they keep: none, if the call keeps nothing."""
        if not table:
            return Part(None), KeptOnWorkers([])
        names = {what: f"hardthresh-{what}-{uuid4().hex}" for what in ("call", "leaf", "sums", "kept", "add")}
        graph = {**chunks, names["call"]: call}
        nodes: list[Hashable] = [(names["leaf"], number) for number in range(len(table))]
        for key, leaf in zip(nodes, table, strict=True):
            graph[key] = (run_leaf, *leaf, names["call"])
        kept: list[Hashable] = []
        if call.work is both_of_leaf:
            both, nodes = nodes, [(names["sums"], number) for number in range(len(table))]
            kept = [(names["kept"], number) for number in range(len(table))]
            graph.update(zip(nodes, ((getitem, key, 0) for key in both), strict=True))
            graph.update(zip(kept, ((getitem, key, 1) for key in both), strict=True))
        while len(nodes) > 1:
            groups = [nodes[start : start + FAN] for start in range(0, len(nodes), FAN)]
            nodes = [(names["add"], len(graph) + number) for number in range(len(groups))]
            graph.update(zip(nodes, ((merged, group) for group in groups), strict=True))
        self.tasks += len(graph) - len(chunks)
        futures = submitted(self._client, graph, [*nodes, *kept], self.readings)
        handle = KeptOnWorkers(futures[1:])
        try:
            (part,) = self._results(futures[:1])
        except BaseException:
            handle.release()
            raise
        return part, handle

    def _results(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results of some futures, see `cluster.results`."""
        return results(self._client, futures, self._called, self.readings, self._refuse_lacking)

    def _refuse_lacking(self, error: KeyError, where: str) -> None:
        """Say which column some blocks lack, if that is what an error of a task of the user's table means."""
        refuse_lacking(error, where, [name for graph in _graphs(self.blocks) for name in graph.columns])

    def _sent(self, blocks: RowBlocks) -> dict[Hashable, Any]:
        """Return the graph of the chunks, in which arrays of this process are where the workers get them from."""
        tasks: dict[Hashable, Any] = {}
        for graph in _graphs(blocks):
            keys = [*graph.arrays]
            tasks.update(graph.tasks)
            tasks.update(zip(keys, submitted(self._client, dict(graph.arrays), keys, self.readings), strict=True))
        return {**tasks, **self._sent_parts(blocks)}

    def _sent_parts(self, blocks: RowBlocks) -> dict[Hashable, Any]:
        """Send the arrays of this process that blocks hold, unless they were sent before, and return their futures."""
        name, arrays = f"hardthresh-part-{uuid4().hex}", dict[Hashable, Any]()
        for block in blocks:
            for part in block.held():
                if hasattr(part, "dtype") and id(part) not in self._held:
                    key = (name, len(arrays))
                    arrays[key], self._held[id(part)] = part, (part, key)
        if not arrays:
            return {}
        return dict(zip(arrays, submitted(self._client, dict(arrays), [*arrays], self.readings), strict=True))

    def _key_of(self, part: Any) -> Any:
        """Return the key under which an array was sent; a key is itself."""
        return self._held[id(part)][1] if id(part) in self._held else part

    def _called(self, key: str) -> str:
        """Return which blocks the task with a key, as text, reads."""
        leaf = re.match(r"\('hardthresh-leaf-\w+', (\d+)\)", key)
        if leaf is not None:
            start = int(leaf[1]) * self._leaf_size
            some = [*range(len(self.blocks))[start : start + self._leaf_size]]
        else:
            inner = [innermost(block) for block in self.blocks]
            some = [number for number, block in enumerate(inner) if isinstance(block, DaskBlock) and block.needs(key)]
        if len(some) > self._leaf_size or not some:
            return "a task that many blocks depend on"
        largest = max(self.blocks.bytes_of(self.blocks[number]) for number in some)
        which = f"block {some[0]}" if len(some) == 1 else f"one of the blocks {some[0]} to {some[-1]}"
        return which + (f" ({_in_mb(largest)})" if largest else "")

    def _warn_of_kernels(self, kernels: frozenset[str]) -> None:
        if len(kernels) > 1 and "kernels" not in self._said:
            self._said.add("kernels")
            names = ", ".join(sorted(kernels))
            warn(f"workers use different BLAS kernels ({names}): results agree to rounding, not bit for bit")

    def _warn_of_size(self, largest: int) -> None:
        if largest > _SHARE_OF_WORKER * self._memory and "size" not in self._said:
            self._said.add("size")
            fits = self.blocks.rows_in(_SHARE_OF_WORKER * self._memory, largest)
            warn(
                f"a block takes {_in_mb(largest)}, more than a quarter of the memory of a worker "
                f"({_in_mb(self._memory)}); use chunks of at most {plural(fits, 'row')}, as X.rechunk({{0: {fits}}})"
            )


class KeptOnWorkers:
    """Rows that tasks have left on workers; a context manager that releases them.

    Parameters
    ----------
    futures : sequence of Future
        A leaf each: the rows of its blocks.
    """

    def __init__(self, futures: Sequence[Any]) -> None:
        self.futures = [*futures]

    @property
    def graph(self) -> dict[Hashable, Any]:
        """The futures by their keys."""
        return {future.key: future for future in self.futures}

    @property
    def leaves(self) -> list[Leaf]:
        """What a task gets of them."""
        return [Leaf(None, future.key) for future in self.futures]

    def release(self) -> None:
        """Free the memory of the workers; the rows cannot be read any more."""
        release(self.futures)
        self.futures = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()


def engine_of(blocks: RowBlocks) -> Engine:
    """Return the engine of a table: the current Dask client, for a table of Dask, or else this process.

    Parameters
    ----------
    blocks : RowBlocks
        The table.

    Examples
    --------
    >>> from hardthresh.designs import from_arrays
    >>> type(engine_of(from_arrays(np.eye(3)))).__name__
    'Serial'
    """
    client = current_client() if any(isinstance(innermost(block), DaskBlock) for block in blocks) else None
    return Serial(blocks) if client is None else DaskEngine(blocks, client)


def _graphs(blocks: RowBlocks) -> list[Graph]:
    """Return what the blocks of Dask in a table are computed from."""
    inner = (innermost(block) for block in blocks)
    return [*{id(block.graph): block.graph for block in inner if isinstance(block, DaskBlock)}.values()]


def _in_mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _leaf_size(blocks: RowBlocks, threads: int) -> int:
    """Return the blocks of a leaf, see `DaskEngine`."""
    size, rows = 1, [block.rows for block in blocks]
    while len(blocks) >= FAN * size * _LEAVES_PER_THREAD * max(1, threads):
        size *= FAN
    if size > 1 and isinstance(innermost(blocks[0]), DaskBlock):
        while size > 1 and (None in rows or not blocks.largest or size * blocks.largest > _SMALL_LEAF):
            size //= FAN
    return size
