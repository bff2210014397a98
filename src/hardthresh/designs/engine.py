"""Engines: run a task over all blocks of a table and add up what it returns, with the same bits on any of them.

A *task* is a function of the rows of one block, ``task(X, y, weight, offset, *args)``, which returns a flat tuple of
float64 arrays. It is pure, and it can be pickled, so that it may run anywhere, and again after a machine was lost. A
*reading* is one sweep over all of X where it lies. What makes the bits the same is enforced here, for all engines:

* the blocks are those of the table, not of the engine, and their sums are added in the tree of `designs.tree`;
* dense rows are C-ordered and aligned when a task starts (`RowBlocks.read`);
* BLAS has one thread within a task;
* a task that draws random numbers gets the number of its block, `NUMBER`, as an argument, and takes them from
  ``default_rng((seed, number, purpose))``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array
from hardthresh.designs.blocks import Pick, RowBlocks, Rows
from hardthresh.designs.scratch import KeptRows
from hardthresh.designs.tree import FAN, Sums, Tree

Task = Callable[..., Any]
"""Called with X, y, weight, offset and more arguments; see the head of this file."""


class PerBlock(Enum):
    """Arguments of tasks that differ between blocks."""

    NUMBER = "the number of the block"
    FOLD = "the folds of its rows"


NUMBER = PerBlock.NUMBER
"""Among the arguments of a task, and in tuples there, it is replaced by the number of the block."""

FOLD = PerBlock.FOLD
"""Among the arguments of a task, it is replaced by `Rows.fold`: the fold column of the block, None without one."""


class Engine(Protocol):
    """An engine runs tasks over the blocks of a table: in this thread, in several threads, or on other machines.

    Attributes
    ----------
    blocks : RowBlocks
        The table.
    readings : int
        The number of passes over all of X so far (readings); passes over kept rows are not counted.
    """

    blocks: RowBlocks
    readings: int

    def sweep(self, task: Task, *args: Any, on: Any = None, columns: Array | None = None) -> Sums:
        """Return the sum over blocks of the results of a task: one reading (pass over the table).

        Parameters
        ----------
        task : callable
            ``task(X, y, weight, offset, *args)`` returns a tuple of arrays that are added.
        *args : object
            More arguments, the same for all blocks; `NUMBER` is replaced by the number of the block.
        on : Kept, optional
            Rows that an earlier task has kept, which replace those of the table: no reading.
        columns : array of int, optional
            The task receives only these columns of X, increasing; column-oriented files read only these.
        """

    def keep(self, task: Task, *args: Any, columns: Array | None = None) -> Any:
        """Return a handle to rows that a task computes and that are stored with its block: one reading.

        Parameters
        ----------
        task : callable
            ``task(X, y, weight, offset, *args)`` returns new X, y, weight and offset, for any number of rows.
        *args : object
            More arguments, the same for all blocks; `NUMBER` is replaced by the number of the block.
        columns : array of int, optional
            As for `sweep`.
        """

    def both(self, task: Task, *args: Any, columns: Array | None = None) -> tuple[Sums, Any]:
        """Return the sum of the results of a task, and a handle to rows that are stored with its block: one reading.

        Parameters
        ----------
        task : callable
            ``task(X, y, weight, offset, *args)`` returns a tuple of arrays that are added, and the four of `keep`.
        *args : object
            More arguments, the same for all blocks; `NUMBER` is replaced by the number of the block.
        columns : array of int, optional
            As for `sweep`.
        """

    def on_blocks(self, blocks: RowBlocks) -> Any:
        """Return the same engine on other blocks of the same rows, for example with numbers instead of labels.

        Parameters
        ----------
        blocks : RowBlocks
            The same number of blocks, with the same numbers of rows.
        """

    def rows(self, picks: Sequence[Pick]) -> Rows:
        """Return some blocks or rows, stacked; this is not counted as a reading.

        Parameters
        ----------
        picks : sequence of int or (int, array of int, slice or callable)
            Numbers of blocks, or pairs of a block and of rows in it; or pairs of a block and a function ``choice(rows)
            -> rows``, which runs where the block is, so that only the chosen rows are sent.
        """


def leaves(blocks: RowBlocks, size: int = 1) -> list[RowBlocks]:
    """Return a table in parts, the leaves: neighbouring blocks whose sum is one task of an engine.

    Parameters
    ----------
    blocks : RowBlocks
        The table.
    size : int
        Blocks of a leaf, a power of 8: the bits of the sums are the same with each.

    Raises
    ------
    InvalidInputError
        If it is no power of 8.
    """
    power = size
    while power > 1 and power % FAN == 0:
        power //= FAN
    if power != 1:
        raise InvalidInputError(f"a leaf has 1, 8, 64, ... blocks, got {size}: other sums have other bits")
    return [blocks.part(start, start + size) for start in range(0, len(blocks), size)]


def run_task(task: Task, args: Sequence[Any], number: int, data: Rows | None) -> Any:
    """Return what a task returns for the rows of one block; None if there are none."""
    if data is None:
        return None
    given = {NUMBER: number, FOLD: data.fold}
    with serial_blas():
        return task(*data, *(_filled(arg, given) for arg in args))


def _filled(argument: Any, given: dict[PerBlock, Any]) -> Any:
    """Return an argument of a task, or a tuple of them, with what differs between blocks in its place."""
    if isinstance(argument, PerBlock):
        return given[argument]
    if type(argument) is tuple:  # not a named one, which is data
        return tuple(_filled(one, given) for one in argument)
    return argument


def read_all(blocks: RowBlocks) -> Iterator[tuple[int, Rows | None]]:
    """Yield the number of each block, and its rows as a task gets them."""
    for number in range(len(blocks)):
        yield blocks.first + number, blocks.read(number)


def sum_leaf(leaf: RowBlocks, task: Task, args: Sequence[Any]) -> Sums | None:
    """Return the sum of a task over a leaf, None if it has no rows: what a remote engine sends to a worker."""
    tree = Tree()
    for number, data in read_all(leaf):
        tree.push(run_task(task, args, number, data))
    return tree.total()


def keep_leaf(leaf: RowBlocks, task: Task, args: Sequence[Any]) -> RowBlocks:
    """Return the leaf of what a task leaves with each block, in memory."""
    return both_of_leaf(leaf, partial(kept_alone, task), args)[1]


def both_of_leaf(leaf: RowBlocks, task: Task, args: Sequence[Any]) -> tuple[Sums | None, RowBlocks]:
    """Return the sum of a task over a leaf, and the leaf of what it leaves with each block, in memory."""
    tree, kept = Tree(), KeptRows(leaf, memory=sys.maxsize)  # the engine moves what is too much for its worker
    for number, data in read_all(leaf):
        found = run_task(task, args, number, data)
        tree.push(None if found is None else found[0])
        kept.put(number, None if found is None else found[1])
    return tree.total(), kept.blocks


def kept_alone(task: Task, *args: Any) -> tuple[Sums, Any]:
    """Return no sums, and what a task of `Engine.keep` returns: a task of `Engine.both`."""
    return (), task(*args)


def picked(blocks: RowBlocks, pick: Pick) -> Rows | None:
    """Return one of the picks of `Engine.rows`."""
    number, chosen = pick if isinstance(pick, tuple) else (pick, slice(None))
    data = blocks.read(number)
    if data is None:
        return None
    return chosen(data) if callable(chosen) else data.apply(lambda part: part[chosen])


class NoRows(InvalidInputError):
    """Raised where rows are asked for, and there are none."""


def stacked(found: Iterable[Rows | None]) -> Rows:
    """Return rows one below the other. Those of an iterator are freed one after another as they are copied.

    Raises
    ------
    InvalidInputError
        If there are none, or blocks have other numbers of outputs, or only some have targets, weights or an offset.
    """
    some = [data for data in found if data is not None]
    if not some:
        raise NoRows("X has no rows")
    X, *rest = map(list, zip(*(data.parts for data in some), strict=True))
    del some
    for name, parts in zip(("y", "sample_weight", "offset", "fold"), rest, strict=True):
        if len({part is None for part in parts}) > 1:
            raise InvalidInputError(f"some blocks have {name}, and others have not: all need it, or none")
        shapes = sorted({part.shape[1:] for part in parts if part is not None})
        if len(shapes) > 1:
            few, many = ("(n,)" if not shape else f"(n, {shape[0]})" for shape in shapes[:2])
            raise InvalidInputError(f"some blocks have y or offset of shape {few}, and others of shape {many}")
    below = sp.vstack(X, format="csr") if sp.issparse(X[0]) else _below(X)
    return Rows(below, *(None if parts[0] is None else np.concatenate(parts) for parts in rest))


def _below(parts: list[Array]) -> Array:
    """Return matrices one below the other, and empty the list, so that there are not two copies of all of them."""
    whole = np.empty((sum(part.shape[0] for part in parts), *parts[0].shape[1:]), np.result_type(*parts))
    at = 0
    while parts:
        part = parts.pop(0)
        whole[at : at + part.shape[0]] = part
        at += part.shape[0]
    return whole


def not_empty(total: Sums | None) -> Sums:
    """Return sums, unless all blocks are empty."""
    if total is None:
        raise InvalidInputError("X has no rows: all blocks are empty")
    return total
