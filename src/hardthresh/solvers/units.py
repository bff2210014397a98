"""The units that a sparse set chooses: single coordinates, groups, or rows of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from hardthresh.arrays import move, namespace, to_numpy
from hardthresh.core.constraint import Constraint, CoordinateBudget
from hardthresh.core.support import Support
from hardthresh.core.typing import Array


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a set: single coordinates or blocks of them.

    Attributes
    ----------
    owner : array of int, shape (size,)
        The unit of each coordinate of a flat point, -1 for those that are always allowed.
    signs : array of int, shape (size,)
        The only sign that each coordinate may have; 0 where it may have both.
    count, budget : int
        How many units there are, and may be chosen.
    """

    owner: np.ndarray
    signs: np.ndarray
    count: int
    budget: int

    @classmethod
    def of(cls, constraint: Constraint, shape: tuple[int, ...]) -> Units | None:
        """Return the units of a set; None for sets without any, or where they overlap."""
        structure, size = constraint.structure(shape), prod(shape)
        owner, signs = np.full(size, -1), np.zeros(size, dtype=int)
        if isinstance(structure, CoordinateBudget):
            counted = np.setdiff1d(np.arange(size), np.asarray(structure.free, dtype=int))
            owner[counted] = np.arange(counted.size)
            signs = signs if structure.signs is None else to_numpy(structure.signs)
            return cls(owner, signs, counted.size, min(structure.budget, counted.size))
        blocks = None if structure is None else structure.blocks()
        if structure is None or blocks is None or np.unique(blocks.columns).size < blocks.columns.size:
            return None
        owner[blocks.columns] = blocks.owner
        return cls(owner, signs, blocks.count, min(structure.budget, blocks.count))

    @property
    def most_coordinates(self) -> int:
        """The largest number of coordinates that may be non-zero."""
        inside = self.owner >= 0
        sizes = np.sort(np.bincount(self.owner[inside], minlength=self.count))[::-1]
        return int(sizes[: self.budget].sum() + np.count_nonzero(~inside))

    def chosen(self, point: np.ndarray) -> np.ndarray:
        """Return the units that are not zero at a flat point."""
        used = np.unique(self.owner[point != 0])
        return used[used >= 0]

    def scores(self, slope: np.ndarray) -> np.ndarray:
        """Return for each unit the sum of squared gradients that its signs allow."""
        score = np.where((self.signs == 0) | (slope * self.signs < 0), slope * slope, 0.0)
        inside = self.owner >= 0
        return np.bincount(self.owner[inside], weights=score[inside], minlength=self.count)

    def best_others(self, slope: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the units that are not chosen and have a positive score, by decreasing score."""
        scores = self.scores(slope)
        scores[chosen] = -1.0
        return np.argsort(-scores, kind="stable")[: np.count_nonzero(scores > 0.0)]

    def coordinates(self, units: np.ndarray) -> np.ndarray:
        """Return the coordinates of some units, and those that are always allowed, by increasing index."""
        return np.flatnonzero(np.isin(self.owner, units) | (self.owner < 0))

    def support(self, constraint: Constraint, units: np.ndarray, like: Array) -> Support:
        """Return the support of some units."""
        values = np.zeros(self.owner.size)
        there = self.coordinates(units)
        values[there] = np.where(self.signs[there] < 0, -1.0, 1.0)
        xp = namespace(like)
        return constraint.project(xp.astype(xp.reshape(move(values, like), like.shape), like.dtype)).support
