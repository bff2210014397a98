"""A node of the search tree: which columns are chosen, which are undecided, and the lower bound over its supports."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hardthresh.core.schema import stored


@stored("state/branch_and_bound_node")
@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A set of supports: those that have some columns, and others only from among the undecided ones.

    Attributes
    ----------
    number : int
        Nodes are numbered as they are made; of equal bounds the lowest number is explored first.
    lower : float
        A lower bound of the quadratic over these supports.
    chosen : array of int
        The columns of the problem that every support has.
    undecided : array of uint8
        The columns that a support may have besides, one bit for each column of the problem.
    shape : array
        The shape of the diagonal where those of the children start, in units of the diagonal of their Hessians: one
        number for each undecided column, or none at all if it is equal for all.
    branch : int
        The column to decide next.
    active, start : array of int and of float32
        The columns that the relaxation chose in part, and its solution: where those of the children start.
    """

    number: int
    lower: float
    chosen: np.ndarray
    undecided: np.ndarray
    branch: int = -1
    active: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    start: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    shape: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __lt__(self, other: Node) -> bool:
        """Return whether the node is explored before another one."""
        return (self.lower, self.number) < (other.lower, other.number)

    def candidates(self, size: int) -> np.ndarray:
        """Return the undecided columns, of as many columns as the problem has."""
        return np.flatnonzero(np.unpackbits(self.undecided, count=size))


def packed(columns: np.ndarray, size: int) -> np.ndarray:
    """Return a set of columns with a bit for each column of the problem."""
    mask = np.zeros(size, dtype=bool)
    mask[columns] = True
    return np.packbits(mask)
