"""At most k groups, and at most m coordinates in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil
from typing import Any, Self

import numpy as np

from hardthresh.arrays import Grouping, move, namespace, scaled_squares, to_numpy, top_k, where_true
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import Constraint, Projection, Structure
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .labels import changed, dealt, read_labels
from .supports import Coordinates


def _examples() -> Iterable[DoubleSparsity]:
    """Return constraints for vectors of 12 coordinates."""
    mixed = (2, 0, 1, 1, 0, 3, 3, 2, 0, 1, 4, 2)
    yield from (DoubleSparsity(mixed, k, m) for k, m in ((0, 2), (2, 0), (1, 3), (2, 2), (3, 1), (9, 9)))
    yield DoubleSparsity(["x", ("y", 1), 3, "x", 3, ("y", 1), "z", "z", "x", "u", None, "u"], 2, 2, free=(10, 3))


@register("constraint", "double_sparsity", _examples)
@dataclass(frozen=True, slots=True, repr=False)
class DoubleSparsity(Constraint):
    r"""Vectors with non-zeros in at most k groups, and at most m in each of them.

    .. math:: C = \{ w \in R^d : |\{ g : w_g \ne 0 \}| \le k, \; \|w_g\|_0 \le m \text{ for all } g \}

    Parameters
    ----------
    labels : sequence of length d
        The group of each coordinate, as in `GroupSparsity`: any hashable label, in any order.
    k : int
        Largest number of groups, k >= 0.
    m : int
        Largest number of non-zeros in each group, m >= 0.
    free : sequence of int
        Coordinates F that are always allowed and not counted. They belong to no group, and their labels are ignored.

    Raises
    ------
    InvalidInputError
        For k or m that are negative or not integers, labels that are missing (None, NaN) or not hashable, or (by
        `check`) if the number of labels is not the number of coordinates.
    NotFiniteError
        By `project`, for NaN.

    Notes
    -----
    The projection is exact: it keeps the m entries of largest magnitude in each group, then the k groups in which their
    sum of squares is largest. Ties are broken in favour of the lowest index, and of the group that appears first. The
    support is the `Coordinates` that are free or not zero, increasing. Cost O(d log d), no data pass.

    References
    ----------
    Chu, Zhou, Mullen, Sinsheimer, Lange and Sobel (2020) for the model ("doubly sparse projection"); Khanna and
    Kyrillidis (2018), *Accelerated IHT*, section 2.1, for structures in general.

    Examples
    --------
    >>> import numpy as np
    >>> DoubleSparsity(["a", "b", "a", "b", "a"], 1, 2).project(np.array([3.0, 3.5, 1.0, 2.0, -2.0])).point
    array([0. , 3.5, 0. , 2. , 0. ])
    """

    labels: Any
    k: int
    m: int
    free: tuple[int, ...] = field(default=(), kw_only=True)
    _names: tuple[Any, ...] = field(init=False, compare=False)
    _grouping: Grouping = field(init=False, compare=False)

    def __post_init__(self) -> None:
        labels, free = read_labels(self.labels, self.free)
        names, grouping = dealt(labels, free)
        for name, value in {
            "labels": labels,
            "k": checked_integer("k", self.k, 0),
            "m": checked_integer("m", self.m, 0),
            "free": free,
            "_names": names,
            "_grouping": grouping,
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        more = f", free={self.free}" if self.free else ""
        groups = f"<{len(self.labels)} labels of {self._grouping.count} groups>"
        return f"{type(self).__name__}({groups}, k={self.k}, m={self.m}{more})"

    def groups_of(self, support: Support) -> tuple[Any, ...]:
        """Return the labels of the groups that contain coordinates of a support, in order of first appearance."""
        return tuple(self._names[group] for group in np.flatnonzero(self._used(support)))

    def check(self, shape: tuple[int, ...]) -> None:
        if tuple(shape) != (len(self.labels),):
            raise InvalidInputError(
                f"there are {len(self.labels)} labels, but points have shape {tuple(shape)}; one label per coordinate "
                "of a vector is needed"
            )

    def project(self, z: Array, start: Support | None = None) -> Projection:
        xp = namespace(z)
        squares = scaled_squares(z)
        leading = self._grouping.leaders(squares, self.m)
        energy = self._grouping.sums(xp.where(leading, squares, xp.zeros_like(squares)))
        chosen = self._grouping.mask(move(top_k(energy, min(self.k, self._grouping.count)), z), none=False)
        allowed = self._always(z)
        point = xp.where((chosen & leading) | allowed, z, xp.zeros_like(z))
        return Projection(point, Coordinates(where_true(allowed | (point != 0))))

    def relax(self, factor: float) -> Self:
        return changed(self, k=ceil(factor * self.k), m=ceil(factor * self.m))

    def is_full(self, support: Support) -> bool:
        used, sizes = self._used(support), np.minimum(self.m, self._grouping.sizes)
        enough = np.count_nonzero(used) >= min(self.k, self._grouping.count)
        return self.m == 0 or bool(enough and np.all(used[used > 0] >= sizes[used > 0]))

    def structure(self, shape: tuple[int, ...]) -> Structure:
        return _NestedBudget(shape[0] - len(self.free), self._grouping)

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by brute force over all supports, for tests only."""
        z = np.asarray(z)
        places: list[list[int]] = [[] for _ in self._names]
        for j, label in enumerate(self.labels):
            if j not in self.free:
                places[self._names.index(label)].append(j)
        best, best_distance = np.zeros_like(z), np.inf
        for groups in combinations(places, min(self.k, len(places))):
            point = np.zeros_like(z)
            point[list(self.free)] = z[list(self.free)]
            for group in groups:
                lost = {kept: _left_out(z, group, kept) for kept in combinations(group, min(self.m, len(group)))}
                inside = min(lost, key=lost.__getitem__)
                point[list(inside)] = z[list(inside)]
            distance = float(np.sum((z - point) ** 2))
            if distance < best_distance:
                best, best_distance = point, distance
        return Projection(best, Coordinates(np.union1d(np.flatnonzero(best), np.asarray(self.free, dtype=np.int64))))

    def _always(self, like: Array) -> Array:
        """Return which coordinates are free."""
        return move(self._grouping.numbers == self._grouping.count, like)

    def _used(self, support: Support) -> np.ndarray:
        """Return how many coordinates of each group a support has."""
        count = self._grouping.count
        used: np.ndarray = np.bincount(self._grouping.numbers[to_numpy(support.indices)], minlength=count + 1)[:count]
        return used


@dataclass(frozen=True, slots=True)
class _NestedBudget(Structure):
    """The structure of `DoubleSparsity`: single coordinates, or all of a group, may leave."""

    candidates: int
    grouping: Grouping

    def selected(self, support: Support) -> int:
        return int(self._counted(support).size)

    def swap_units(self, support: Support) -> list[Array]:
        counted = self._counted(support)
        numbers = self.grouping.numbers[counted]
        groups = [counted[numbers == group] for group in np.unique(numbers)]
        alone = [counted[i : i + 1] for i in range(counted.size)]
        return [move(unit, support.indices) for unit in [*alone, *(group for group in groups if group.size > 1)]]

    def _counted(self, support: Support) -> np.ndarray:
        inside = to_numpy(support.indices)
        counted: np.ndarray = inside[self.grouping.numbers[inside] < self.grouping.count]
        return counted


def _left_out(z: Array, group: list[int], kept: tuple[int, ...]) -> float:
    return sum(float(z[j]) ** 2 for j in group if j not in kept)
