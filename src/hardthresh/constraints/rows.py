"""At most k rows of a matrix, or groups of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import ceil
from typing import Any, Self

import numpy as np

from hardthresh.arrays import FactoredMatrix, Grouping, move, namespace, scaled_squares, top_k, where_true
from hardthresh.core.checking import checked_integer
from hardthresh.core.constraint import BlockBudget, Constraint, Projection, RowBudget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .labels import changed, dealt, free_coordinates, read_labels
from .supports import Rows


def _examples() -> Iterable[RowSparsity]:
    """Return constraints for matrices of 4 rows."""
    yield from (RowSparsity(k) for k in (0, 2, 9))
    yield RowSparsity(1, groups=["b", "a", None, "b"], free=(2,))


@register("constraint", "rows", _examples)
@dataclass(frozen=True, slots=True, repr=False)
class RowSparsity(Constraint):
    r"""Matrices with at most k non-zero rows, or groups of rows.

    .. math:: C = \{ W \in R^{p \times q} : |\{ j \notin F : w_j \ne 0 \}| \le k \}

    for the rows :math:`w_j` of W: a feature is chosen for all outputs or for none.

    Parameters
    ----------
    k : int
        Largest number of rows, or of groups of rows, k >= 0. If k is at least their number, every row is allowed.
    groups : sequence of length p, optional
        The group of each row: any hashable label, in any order. The rows of a group are chosen together. By default
        every row is its own group.
    free : sequence of int
        Rows F that are always allowed and not counted: intercepts, covariates to adjust for. They belong to no group,
        and their labels are ignored (use None, for example).

    Raises
    ------
    InvalidInputError
        For a negative or non-integer k, labels that are missing (None, NaN) or not hashable, or (by `check`) points
        that are not matrices or whose number of rows is not the number of labels.
    NotFiniteError
        By `project`, for NaN.

    See Also
    --------
    GroupSparsity : Groups of coordinates of a vector.

    Notes
    -----
    The projection is exact: it keeps the k groups of rows with the largest sum of squares of their entries. Groups are
    numbered in the order in which they first appear, and the lowest number wins a tie. The support is the `Rows` that
    are not zero, with the free rows. Cost O(pq), no data pass.

    References
    ----------
    Obozinski, Wainwright and Jordan (2011), Support union recovery in high-dimensional multivariate regression, *Annals
    of Statistics* 39, 1-47, for the model; here the number of rows is bounded instead of the sum of their norms.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 1.0], [0.0, 1.2], [-3.0, 0.0]])
    >>> found = RowSparsity(2).project(W)
    >>> found.point
    array([[ 1.,  1.],
           [ 0.,  0.],
           [-3.,  0.]])
    >>> found.support.rows
    array([0, 2])
    """

    k: int
    groups: Any = field(default=None, kw_only=True)
    free: tuple[int, ...] = field(default=(), kw_only=True)
    _names: tuple[Any, ...] = field(init=False, compare=False)
    _grouping: Grouping | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        labels, names, free, grouping = None, (), free_coordinates(self.free), None
        if self.groups is not None:
            labels, free = read_labels(self.groups, self.free)
            names, grouping = dealt(labels, free)
        read = {"groups": labels, "free": free, "_names": names, "_grouping": grouping}
        for name, value in {"k": checked_integer("k", self.k, 0), **read}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        groups = "" if self._grouping is None else f", groups=<{len(self.groups)} labels of {self._grouping.count}>"
        return f"{type(self).__name__}({self.k}{groups}{f', free={self.free}' if self.free else ''})"

    @property
    def names(self) -> tuple[Any, ...]:
        """The labels of the groups, in the order in which they first appear; none without groups."""
        return self._names

    def groups_of(self, support: Support) -> tuple[Any, ...]:
        """Return the labels of the groups of a support."""
        assert isinstance(support, Rows)
        return tuple(self._names[int(group)] for group in support.numbers)

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2:
            raise InvalidInputError(f"RowSparsity constrains matrices, the objective's points have shape {shape}")
        if self.groups is not None and shape[0] != len(self.groups):
            raise InvalidInputError(
                f"there are {len(self.groups)} labels, but points have shape {tuple(shape)}; one label per row is "
                "needed"
            )
        if self.free and self.free[-1] >= shape[0]:
            raise InvalidInputError(f"free row {self.free[-1]} does not exist: points have {shape[0]} rows")

    def project(self, z: Array, start: Support | None = None) -> Projection:
        if isinstance(z, FactoredMatrix):
            raise InvalidInputError(f"{self} needs points whose entries are at hand, not factors; store them densely")
        xp, grouping, q = namespace(z), self._grouping_of(z.shape[0]), int(z.shape[1])
        squares = xp.reshape(scaled_squares(xp.reshape(z, (-1,))), z.shape)
        energy = grouping.sums(xp.sum(squares, axis=1))
        point = Rows(move(top_k(energy, min(self.k, grouping.count)), z), grouping, q).restrict(z)
        used = xp.astype(xp.any(point != 0, axis=1), point.dtype)
        return Projection(point, Rows(where_true(grouping.sums(used) > 0), grouping, q))

    def relax(self, factor: float) -> Self:
        return changed(self, k=ceil(factor * self.k))

    def is_full(self, support: Support) -> bool:
        assert isinstance(support, Rows)
        return bool(support.numbers.shape[0] >= min(self.k, support.grouping.count))

    def structure(self, shape: tuple[int, ...]) -> BlockBudget:
        grouping = self._grouping_of(shape[0])
        numbers = np.repeat(grouping.numbers, shape[1])
        if self._grouping is None:
            return RowBudget(grouping.count, self.k, numbers, self.free)
        return BlockBudget(grouping.count, self.k, numbers)

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by brute force over all choices of groups, for tests only."""
        z = np.asarray(z)
        grouping = self._grouping_of(len(z))
        best, best_distance = np.zeros_like(z), np.inf
        for chosen in combinations(range(grouping.count), min(self.k, grouping.count)):
            point = np.where(np.isin(grouping.numbers, [*chosen, grouping.count])[:, None], z, 0.0)
            distance = float(np.sum((z - point) ** 2))
            if distance < best_distance:
                best, best_distance = point, distance
        numbers = np.setdiff1d(grouping.numbers[best.any(axis=1)], [grouping.count])
        return Projection(best, Rows(numbers, grouping, z.shape[1]))

    def _grouping_of(self, p: int) -> Grouping:
        """Return which of p rows each group has."""
        return _single_rows(p, self.free) if self._grouping is None else self._grouping


@lru_cache(maxsize=64)
def _single_rows(p: int, free: tuple[int, ...]) -> Grouping:
    """Return the grouping of p rows in which each that is not free is a group."""
    counted = np.ones(p, dtype=bool)
    counted[list(free)] = False
    count = int(np.count_nonzero(counted))
    return Grouping(np.where(counted, np.cumsum(counted) - 1, count), count)
