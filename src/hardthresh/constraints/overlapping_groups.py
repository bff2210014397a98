"""At most k groups of coordinates that may overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from math import ceil
from operator import index
from typing import Any, Self

import numpy as np

from hardthresh.arrays import move, namespace, scaled_squares, to_numpy, where_true
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import Blocks, Constraint, Projection, Structure
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.registry import register
from hardthresh.core.schema import stored
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .labels import changed, free_coordinates


def _examples() -> Iterable[OverlappingGroupSparsity]:
    """Return constraints for vectors of 12 coordinates."""
    chain = [(0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8), (8, 9, 10), (10, 11, 0)]
    yield from (OverlappingGroupSparsity(chain, k) for k in (0, 1, 2, 7))
    yield OverlappingGroupSparsity([[9, 1, 5], [5, 1, 2, 3], [3, 7], [1, 9], [10]], 2, free=(7, 11))


@register("constraint", "overlapping_groups", _examples, upgrades=[lambda fields: fields | {"names": None}])
@dataclass(frozen=True, slots=True, repr=False)
class OverlappingGroupSparsity(Constraint):
    r"""Vectors whose non-zeros are covered by at most k groups, which may overlap.

    .. math:: C = \{ w \in R^d : \mathrm{supp}(w) \setminus F \subseteq G_{i_1} \cup \cdots \cup G_{i_k} \}

    Parameters
    ----------
    groups : sequence of sequences of int
        The coordinates of each group, such as the genes of a pathway. Coordinates that are neither in a group nor free
        are zero.
    k : int
        Largest number of groups, k >= 0. It may exceed the number of groups.
    free : sequence of int
        Coordinates F that are always allowed and not counted: an intercept, covariates to adjust for.
    names : sequence of hashable, optional
        The names of the groups, for `groups_of`. Default: 0, 1, ...

    Raises
    ------
    InvalidInputError
        For a negative or non-integer k, groups that are empty or contain a coordinate twice, and (by `check`)
        coordinates out of range.
    NotFiniteError
        By `project`, for NaN.

    Notes
    -----
    The nearest point is the solution of a weighted maximum coverage problem, which is NP-hard. `project` computes the
    greedy approximation, so `exact` is False: it repeatedly adds the group whose uncovered entries have the largest sum
    of squares, with ties broken in favour of the lowest number, until there are k groups or all non-zeros are covered.
    It keeps at least a share 1 - 1/e of the sum of squares that the best k groups cover. The support is a `Cover`, with
    the groups in the order of their choice. Cost: O(sum of the sizes of the groups), plus O(number of groups) for each
    group that is evaluated again; only groups that may be next are. The computation runs on the CPU, without a data
    pass.

    References
    ----------
    Khanna and Kyrillidis (2018), *Accelerated IHT*, section 2.1 (the model) and B.3 (greedy selection of overlapping
    groups); Nemhauser, Wolsey and Fisher (1978) for the factor 1 - 1/e, Minoux (1978) for the lazy evaluation of
    groups.

    Examples
    --------
    >>> import numpy as np
    >>> pathways = OverlappingGroupSparsity([[0, 1], [1, 2, 3], [3, 4]], 2)
    >>> projection = pathways.project(np.array([1.0, 1.0, 3.0, 3.0, 2.0]))
    >>> projection.support.numbers, projection.point
    (array([1, 2]), array([0., 1., 3., 3., 2.]))
    """

    groups: Any
    k: int
    free: tuple[int, ...] = field(default=(), kw_only=True)
    names: Any = field(default=None, kw_only=True)
    _columns: np.ndarray = field(init=False, compare=False)
    _starts: np.ndarray = field(init=False, compare=False)

    exact = False

    def __post_init__(self) -> None:
        groups = _read_groups(self.groups)
        sizes = np.array([len(group) for group in groups], dtype=np.int64)
        names = tuple(range(len(groups)) if self.names is None else self.names)
        if len(names) != len(groups) or len(set(names)) < len(names):
            raise InvalidInputError(f"{len(groups)} groups need as many different names, got {format_value(names)}")
        for name, value in {
            "groups": groups,
            "k": checked_integer("k", self.k, 0),
            "free": free_coordinates(self.free),
            "names": names,
            "_columns": np.array([j for group in groups for j in group], dtype=np.int64),
            "_starts": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        more = f", free={self.free}" if self.free else ""
        return f"{type(self).__name__}(<{len(self.groups)} groups>, k={self.k}{more})"

    def groups_of(self, support: Support) -> tuple[Any, ...]:
        """Return the names of the groups of a support, in the order of the groups."""
        assert isinstance(support, Cover)
        return tuple(self.names[g] for g in sorted(to_numpy(support.numbers).tolist()))

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1:
            raise InvalidInputError(f"the groups are of coordinates of vectors, but points have shape {tuple(shape)}")
        named = [(max(group), f"group {g}") for g, group in enumerate(self.groups)]
        named += [(j, "free") for j in self.free[-1:]]
        for largest, where in named:
            if largest >= shape[0]:
                raise InvalidInputError(
                    f"{where} names coordinate {largest}, but vectors of shape {tuple(shape)} have {shape[0]}, from 0"
                )

    def project(self, z: Array, start: Support | None = None) -> Projection:
        chosen = self.cover(move(np.array(self._greedy(to_numpy(scaled_squares(z))), dtype=np.int64), z))
        return Projection(chosen.restrict(z), chosen)

    def project_onto(self, z: Array, support: Support, start: Support | None = None) -> Projection:
        return Projection(support.restrict(z), support)  # which the greedy choice may not find again

    def relax(self, factor: float) -> Self:
        return changed(self, k=ceil(factor * self.k))

    def is_full(self, support: Support) -> bool:
        assert isinstance(support, Cover)
        if support.numbers.shape[0] >= min(self.k, len(self.groups)):
            return True
        return bool(np.all(support.covered(support.size)[self._columns]))

    def structure(self, shape: tuple[int, ...]) -> Structure:
        return _CoverBudget(len(self.groups), self.k, self._columns, self._starts, self.free)

    def reference_project(self, z: Array) -> Projection:
        """Return the nearest point by brute force over all choices of groups, for tests only."""
        z = np.asarray(z)
        best, best_distance = np.zeros_like(z), np.inf
        best_groups: tuple[int, ...] = ()
        for chosen in combinations(range(len(self.groups)), min(self.k, len(self.groups))):
            allowed = {*self.free, *(j for g in chosen for j in self.groups[g])}
            point = np.array([z[j] if j in allowed else 0.0 for j in range(z.size)], dtype=z.dtype)
            distance = float(np.sum((z - point) ** 2))
            if distance < best_distance:
                best, best_groups, best_distance = point, chosen, distance
        return Projection(best, self.cover(np.array(best_groups, dtype=np.int64)))

    def reference_greedy(self, z: Array) -> list[int]:
        """Return the groups that `project` should take, computing everything anew at every choice: for tests only."""
        z = np.asarray(z)
        covered = set(self.free)
        chosen: list[int] = []
        while len(chosen) < self.k:
            left = [sum(float(z[j]) ** 2 for j in sorted(group) if j not in covered) for group in self.groups]
            if not max(left, default=0.0) > 0.0:
                break
            chosen.append(left.index(max(left)))
            covered |= set(self.groups[chosen[-1]])
        return chosen

    def cover(self, numbers: Array) -> Cover:
        """Return the support of some groups, by their numbers."""
        return Cover(numbers, self._columns, self._starts, self.free)

    def _greedy(self, energy: np.ndarray) -> list[int]:
        """Return the groups with the largest energy that those before them leave uncovered."""
        energy = np.array(energy, dtype=np.float64)
        energy[list(self.free)] = 0.0
        sizes = np.diff(self._starts)
        owner = np.repeat(np.arange(sizes.size), sizes)
        bound = np.bincount(owner, weights=energy[self._columns], minlength=sizes.size)
        chosen: list[int] = []
        while len(chosen) < min(self.k, sizes.size):
            best = int(np.argmax(bound))
            columns = self._columns[self._starts[best] : self._starts[best + 1]]
            left = float(np.cumsum(energy[columns])[-1])  # added one after another, as above, so that ties stay ties
            if left < bound[best]:
                bound[best] = left
                continue
            if not left > 0.0:
                break
            chosen.append(best)
            energy[columns] = 0.0
            bound[best] = 0.0
        return chosen


@stored("support/cover")
@dataclass(frozen=True, slots=True, eq=False)
class Cover(Support):
    """Groups of coordinates that may overlap, and the coordinates that are always allowed.

    Attributes
    ----------
    numbers : array of int
        The numbers of the groups, in the order of their choice.
    columns, starts : array of int
        The coordinates of group g are ``columns[starts[g] : starts[g + 1]]``.
    free : tuple of int
        The coordinates that are always allowed.
    """

    numbers: Array
    columns: np.ndarray
    starts: np.ndarray
    free: tuple[int, ...]

    @property
    def indices(self) -> Array:
        """The coordinates that the groups cover, increasing."""
        return where_true(move(self.covered(self.size), self.numbers))

    def restrict(self, v: Array) -> Array:
        xp = namespace(v)
        return xp.where(move(self.covered(v.shape[0]), v), v, xp.zeros_like(v))

    def __or__(self, other: Support) -> Cover:
        assert isinstance(other, Cover)
        known = set(to_numpy(self.numbers).tolist())
        more = [group for group in to_numpy(other.numbers).tolist() if group not in known]
        both = namespace(self.numbers, other.numbers).concat(
            [self.numbers, move(np.array(more, dtype=np.int64), self.numbers)]
        )
        return replace(self, numbers=both)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cover) and sorted(to_numpy(self.numbers)) == sorted(to_numpy(other.numbers))

    @property
    def size(self) -> int:
        """One more than the last coordinate that may be non-zero."""
        return 1 + max(int(self.columns.max(initial=-1)), max(self.free, default=-1))

    def covered(self, size: int, without: int | None = None) -> np.ndarray:
        """Return which of the first `size` coordinates the groups cover, without the one at a place."""
        covered = np.zeros(size, dtype=bool)
        covered[list(self.free)] = True
        for place, group in enumerate(to_numpy(self.numbers)):
            if place != without:
                covered[self.columns[self.starts[group] : self.starts[group + 1]]] = True
        return covered


@dataclass(frozen=True, slots=True)
class _CoverBudget(Structure):
    """The structure of overlapping groups: a group leaves with the coordinates that no other group covers."""

    candidates: int
    budget: int
    columns: np.ndarray
    starts: np.ndarray
    free: tuple[int, ...]

    def selected(self, support: Support) -> int:
        assert isinstance(support, Cover)
        return int(support.numbers.shape[0])

    def swap_units(self, support: Support) -> list[Array]:
        assert isinstance(support, Cover)
        inside, places = support.covered(support.size), range(self.selected(support))
        left = [inside & ~support.covered(support.size, without=place) for place in places]
        return [move(np.flatnonzero(unit), support.numbers) for unit in left if unit.any()]

    def blocks(self) -> Blocks:
        return Blocks(self.columns, self.starts, np.array(self.free, dtype=np.intp))

    def placed(self, constraint: Constraint, point: Array, numbers: Sequence[int]) -> Projection:
        """Return a point of some groups, which a greedy projection may not find again, with its support."""
        chosen = Cover(move(np.array(numbers, dtype=np.int64), point), self.columns, self.starts, self.free)
        return Projection(chosen.restrict(point), chosen)


def _read_groups(groups: Any) -> tuple[tuple[int, ...], ...]:
    """Return the groups as tuples of increasing coordinates."""
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise InvalidInputError(f"groups must be a list of lists of coordinates, got {format_value(groups)}")
    read = []
    for g, group in enumerate(groups):
        try:
            listed = list(group.tolist() if hasattr(group, "tolist") else group)
            columns = sorted(map(index, listed))
        except TypeError as error:
            raise InvalidInputError(f"group {g} must be a list of integers, got {format_value(group)}") from error
        if not columns:
            raise InvalidInputError(f"group {g} is empty; leave it out")
        if any(isinstance(j, bool) for j in listed):
            raise InvalidInputError(f"group {g} holds truth values; give the coordinates, as of numpy.flatnonzero")
        if columns[0] < 0:
            raise InvalidInputError(f"coordinates must be >= 0, but group {g} names {columns[0]}")
        twice = [a for a, b in pairwise(columns) if a == b]
        if twice:
            raise InvalidInputError(f"group {g} names coordinate {twice[0]} twice")
        read.append(tuple(columns))
    return tuple(read)
