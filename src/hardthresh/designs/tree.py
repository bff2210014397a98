"""Sums over blocks of rows in a fixed order, so that they are bitwise identical for any division of the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import numpy as np

from hardthresh.core.typing import Array

Sums: TypeAlias = tuple[Array, ...]
"""What a task returns for a block: float64 arrays, which are added to those of other blocks."""

FAN = 8
"""Children of a node of the tree, added from left to right. More would make a leaf task of 8^j blocks coarser, fewer
would make the tree deeper: 512 blocks are 73 nodes in three rows."""


def add(parts: Sequence[Sums | None]) -> Sums | None:
    """Return the sum of the children of one node, from left to right; None for a child without rows adds nothing.

    Examples
    --------
    >>> import numpy as np
    >>> add([(np.ones(2),), None, (np.ones(2),)])
    (array([2., 2.]),)
    """
    node = _Node()
    for part in parts:
        node.add(part)
    return node.sums()


@dataclass
class _Node:
    """A node of the tree, while its children arrive."""

    count: int = 0
    total: list[Array] | None = None

    def add(self, part: Sums | None) -> None:
        self.count += 1
        if part is None:
            return
        if self.total is None:
            self.total = [np.array(each, dtype=np.float64) for each in part]  # a copy, which may be changed
            return
        for total, each in zip(self.total, part, strict=True):
            total += each

    def sums(self) -> Sums | None:
        return None if self.total is None else tuple(self.total)


class Tree:
    """The sum over blocks in a tree of fan-in 8 by their number, of which only the open nodes are held.

    Node i of a row is the sum of nodes 8i to 8i + 7 of the row below, from left to right, and the lowest row are the
    blocks. This is a counter in base 8: a digit for each row, which holds the sum of up to seven nodes.

    Examples
    --------
    >>> import numpy as np
    >>> tree = Tree()
    >>> for number in range(100):
    ...     tree.push((np.array([float(number)]),))
    >>> tree.total()
    (array([4950.]),)
    """

    def __init__(self) -> None:
        self._rows: list[_Node] = []  # the open node of each row, the lowest first

    def push(self, part: Sums | None) -> None:
        """Add the sums of the next block; None if it has no rows."""
        for level in count():
            if level == len(self._rows):
                self._rows.append(_Node())
            self._rows[level].add(part)
            if self._rows[level].count < FAN:
                return
            part, self._rows[level] = self._rows[level].sums(), _Node()

    def total(self) -> Sums | None:
        """Return the sum over all blocks so far; None if none has rows. Open nodes are closed: it can be asked once."""
        part: Sums | None = None
        for node in self._rows:
            if part is not None:
                node.add(part)
            part = node.sums()
        self._rows.clear()
        return part
