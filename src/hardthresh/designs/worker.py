"""The task of a worker of a cluster for a leaf (neighbouring blocks) of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hardthresh.designs.blocks import Block, RowBlocks, Rows, as_rows
from hardthresh.designs.cluster import kernel_name, report_leaf
from hardthresh.designs.engine import Task, picked, sum_leaf
from hardthresh.designs.formats.dask_tables import DaskBlock, Graph
from hardthresh.designs.tree import Sums, add


@dataclass(frozen=True, eq=False)
class Call:
    """What workers do with each leaf: one object in the graph, so that arguments are sent once to each worker.

    No tuple, because in a graph a tuple whose first entry can be called is a task.
    """

    work: Callable[..., Any]
    """`sum_leaf` or `both_of_leaf`."""
    task: Task
    args: Sequence[Any]
    reading: str | None = None
    """The reading that the client shows, of which it wants to hear after each leaf."""


@dataclass(frozen=True, eq=False)
class Part:
    """What is known of some leaves."""

    sums: Sums | None
    kernels: frozenset[str] = frozenset()
    """Of the BLAS libraries of their workers."""
    largest: int = 0
    """Bytes of X in their largest block."""
    read: int = 0
    """Bytes of X in all of them; 0 of kept rows."""
    kept: int = 0
    """Bytes of the rows that they keep."""


class Leaf(NamedTuple):
    """A leaf in a graph, as arguments of a task; the keys are replaced by what they stand for."""

    table: RowBlocks | None
    """Blocks that load themselves, or wait for the parts; None for kept rows."""
    parts: Any
    """For each block the keys of what it holds, or the key of kept rows; None if the blocks load themselves."""

    @classmethod
    def of(cls, table: RowBlocks, key_of: Callable[[Any], Any]) -> Leaf:
        """Return some blocks, where `key_of` says under which key the cluster has an array that they hold."""
        held = [[key_of(part) for part in block.held()] for block in table]
        if not any(held):
            return cls(table, None)
        return cls(replace(table, blocks=tuple(block.bare() for block in table)), held)

    def here(self) -> RowBlocks:
        """Return the table, where the keys have been replaced."""
        if self.parts is None:
            assert self.table is not None
            return self.table
        table, parts = self.parts if self.table is None else (self.table, self.parts)
        return replace(table, blocks=tuple(block.holding(own) for block, own in zip(table, parts, strict=True)))


def innermost(block: Any) -> Any:
    """Return the block that others have changed, such as to some of its columns; itself, if none has."""
    while hasattr(block, "block"):
        block = block.block
    return block


def run_leaf(table: RowBlocks | None, parts: Any, call: Call) -> Any:
    """Return the part of a leaf, and if something is kept also its rows."""
    leaf = Leaf(table, parts).here()
    found = call.work(leaf, call.task, call.args)
    sums, kept = (found, None) if call.work is sum_leaf else found
    largest, read = leaf.largest, 0 if sums is None or table is None else _bytes_read(leaf, sums)
    if call.reading is not None:
        report_leaf(call.reading, leaf.first, read)
    if kept is None:
        return Part(sums, frozenset({kernel_name()}), largest, read)
    bare, rows = replace(kept, blocks=tuple(DaskBlock((), Graph()) for _ in kept)), [*map(rows_of_block, kept)]
    size = sum(each.nbytes_in_all for each in rows)
    return Part(sums, frozenset({kernel_name()}), largest, read, size), (bare, [list(each.parts) for each in rows])


def rows_of_block(block: Block) -> Rows:
    """Return the rows of a block that are in memory."""
    return as_rows(block.load())


def merged(parts: Sequence[Part]) -> Part:
    """Return a node of the tree."""
    kernels: frozenset[str] = frozenset().union(*(part.kernels for part in parts))
    largest = max(part.largest for part in parts)
    read, kept = (sum(sizes) for sizes in zip(*((part.read, part.kept) for part in parts), strict=True))
    return Part(add([part.sums for part in parts]), kernels, largest, read, kept)


def rows_of(table: RowBlocks, parts: Any, chosen: Any) -> list[Any] | None:
    """Return what the rows of a leaf of one block consist of, or some of them."""
    found = picked(Leaf(table, parts).here(), 0 if chosen is None else (0, chosen))
    return None if found is None else list(found.parts)  # a list, of which Dask can see the size


def _bytes_read(leaf: RowBlocks, sums: Sums) -> int:
    """Return the bytes of X in blocks that were read, whose rows their witness, the last of the sums, has counted."""
    if any(block.size is None for block in leaf):
        return int(sums[-1][0]) * leaf.row_bytes
    return sum(map(leaf.bytes_of, leaf))
