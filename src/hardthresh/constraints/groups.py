"""At most k groups of coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil
from typing import Any, Self

import numpy as np

from hardthresh.arrays import Grouping, move, namespace, scaled_squares, top_k, where_true
from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.constraint import BlockBudget, Constraint, Projection
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.registry import register
from hardthresh.core.support import Support
from hardthresh.core.typing import Array

from .labels import changed, dealt, read_labels
from .supports import Groups

_MIXED = (2, 0, 1, 1, 0, 3, 3, 2, 0, 1, 4, 2)


def _examples() -> Iterable[GroupSparsity]:
    """Return constraints for vectors of 12 coordinates."""
    yield from (GroupSparsity(_MIXED, k) for k in (0, 1, 2, 9))
    yield GroupSparsity([*"abcdefghijkl"], 3)
    yield GroupSparsity(["x", ("y", 1), 3, "x", 3, ("y", 1), "z", "z", "x", "u", None, "u"], 2, free=(10, 3))
    yield GroupSparsity(_MIXED, 2, weights="size")
    yield GroupSparsity(_MIXED, 2, weights={0: 1.0, 1: 2.0, 2: 0.5, 3: 4.0, 4: 1})


@register("constraint", "groups", _examples)
@dataclass(frozen=True, slots=True, repr=False)
class GroupSparsity(Constraint):
    r"""Vectors whose non-zeros are in at most k groups of coordinates.

    .. math:: C = \{ w \in R^d : |\{ g : w_g \ne 0 \}| \le k \},
              \qquad w_g = (w_j)_{j \notin F, \; \mathrm{label}_j = g}

    Parameters
    ----------
    labels : sequence of length d
        The group of each coordinate: any hashable label (text, numbers, tuples, categories), in any order. The
        coordinates of a group need not be adjacent.
    k : int
        Largest number of groups, k >= 0. If k is at least the number of groups, every coordinate is allowed.
    free : sequence of int
        Coordinates F that are always allowed and not counted: an intercept, covariates to adjust for. They belong to no
        group, and their labels are ignored (use None, for example).
    weights : {None, "size"} or mapping from label to number
        The divisor of :math:`\|z_g\|^2` in the comparison of groups: 1 (None), the number of coordinates of the group
        ("size"), or a given number > 0 for each group. Weights do not change the set, but with unequal weights the
        projection is not the nearest point, and `exact` is False.

    Raises
    ------
    InvalidInputError
        For a negative or non-integer k, labels that are missing (None, NaN) or not hashable, weights that are not
        positive or do not match the groups, or (by `check`) if the number of labels is not the number of coordinates.
    NotFiniteError
        By `project`, for NaN.

    Notes
    -----
    The projection keeps the k groups with the largest :math:`\|z_g\|^2` (divided by the weight). Groups are numbered in
    the order in which they first appear, and the lowest number wins a tie. The support is the `Groups` that are not
    zero (`groups_of` returns their labels) with the free coordinates. Exact without weights. Cost: O(d), no data pass.

    References
    ----------
    Khanna and Kyrillidis (2018), *Accelerated IHT*, section 2.1 (the model) and B.3 (non-overlapping groups);
    Baldassarre, Bhan, Cevher, Kyrillidis and Satpathi (2016) for group models.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = GroupSparsity(["age", "dose", "age", "dose", "sex"], 1)
    >>> pairs.project(np.array([1.0, 2.0, 1.0, 0.0, 1.9])).point
    array([0., 2., 0., 0., 0.])
    >>> pairs.groups_of(pairs.project(np.array([1.0, 2.0, 2.0, 0.0, 1.9])).support)
    ('age',)
    """

    labels: Any
    k: int
    free: tuple[int, ...] = field(default=(), kw_only=True)
    weights: Any = field(default=None, kw_only=True, hash=False)
    _names: tuple[Any, ...] = field(init=False, compare=False)
    _grouping: Grouping = field(init=False, compare=False)
    _divisors: np.ndarray | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        labels, free = read_labels(self.labels, self.free)
        names, grouping = dealt(labels, free)
        weights = dict(self.weights) if isinstance(self.weights, Mapping) else self.weights
        for name, value in {
            "labels": labels,
            "k": checked_integer("k", self.k, 0),
            "free": free,
            "weights": weights,
            "_names": names,
            "_grouping": grouping,
            "_divisors": _divisors(weights, names, grouping),
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        more = (f", free={self.free}" if self.free else "") + (f", weights={self.weights!r}" if self.weights else "")
        return f"{type(self).__name__}(<{len(self.labels)} labels of {self.n_groups} groups>, k={self.k}{more})"

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether `project` returns the nearest point, which is the case if all weights are equal."""
        return self._divisors is None

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return self._grouping.count

    @property
    def names(self) -> tuple[Any, ...]:
        """The labels of the groups 0, 1, ...: in order of first appearance."""
        return self._names

    def groups_of(self, support: Support) -> tuple[Any, ...]:
        """Return the labels of the groups of a support."""
        assert isinstance(support, Groups)
        return tuple(self._names[int(group)] for group in support.numbers)

    def check(self, shape: tuple[int, ...]) -> None:
        if tuple(shape) != (len(self.labels),):
            raise InvalidInputError(
                f"there are {len(self.labels)} labels, but points have shape {tuple(shape)}; one label per coordinate "
                "of a vector is needed"
            )

    def project(self, z: Array, start: Support | None = None) -> Projection:
        energy = self._grouping.sums(scaled_squares(z))
        if self._divisors is not None:
            energy = energy / namespace(energy).asarray(move(self._divisors, energy), dtype=energy.dtype)
        point = self._groups(move(top_k(energy, min(self.k, self.n_groups)), z)).restrict(z)
        xp = namespace(point)
        return Projection(point, self._groups(where_true(self._grouping.sums(xp.astype(point != 0, point.dtype)) > 0)))

    def relax(self, factor: float) -> Self:
        return changed(self, k=ceil(factor * self.k))

    def is_full(self, support: Support) -> bool:
        assert isinstance(support, Groups)
        return bool(support.numbers.shape[0] >= min(self.k, self.n_groups))

    def structure(self, shape: tuple[int, ...]) -> BlockBudget:
        return BlockBudget(self.n_groups, self.k, self._grouping.numbers)

    def hard_threshold(self, v: Array, start: Support | None = None) -> Array:
        if self.exact:
            return self.project(v).point
        largest = top_k(self._grouping.sums(scaled_squares(v)), min(self.k, self.n_groups))
        return self._groups(move(largest, v)).restrict(v)

    def reference_project(self, z: Array) -> Projection:
        """Return the projection by brute force over all choices of groups, for tests only."""
        z = np.asarray(z)
        numbers = np.array([-1 if j in self.free else self._names.index(label) for j, label in enumerate(self.labels)])
        weight = np.ones(self.n_groups) if self._divisors is None else self._divisors
        best, best_loss = np.zeros_like(z), np.inf
        for chosen in combinations(range(self.n_groups), min(self.k, self.n_groups)):
            point = np.where(np.isin(numbers, [-1, *chosen]), z, 0.0)
            loss = sum(float(np.sum((z - point)[numbers == g] ** 2)) / weight[g] for g in range(self.n_groups))
            if loss < best_loss:
                best, best_loss = point, loss
        return Projection(best, self._groups(np.setdiff1d(numbers[best != 0], [-1])))

    def _groups(self, numbers: Array) -> Groups:
        return Groups(numbers, self._grouping)


def _divisors(weights: Any, names: tuple[Any, ...], grouping: Grouping) -> np.ndarray | None:
    """Return the divisors of the energies of the groups, or None if they are all the same."""
    if weights is None:
        return None
    if isinstance(weights, str):
        if weights != "size":
            raise InvalidInputError(f'weights must be None, "size" or a number per label, got {format_value(weights)}')
        numbers = grouping.sizes.astype(float)
    else:
        if not isinstance(weights, Mapping):
            raise InvalidInputError(
                f'weights must be None, "size" or map labels to numbers, got {format_value(weights)}'
            )
        unknown, missing = [w for w in weights if w not in names], [name for name in names if name not in weights]
        if unknown or missing:
            what = (
                f"name {format_value(unknown[0])}, which is not a group"
                if unknown
                else f"say nothing of group {format_value(missing[0])}"
            )
            raise InvalidInputError(f"weights {what}; one number for each label is needed")
        for name in names:
            checked_number(f"the weight of group {format_value(name)}", weights[name], above=0.0)
        numbers = np.array([float(weights[name]) for name in names])
    return None if numbers.size == 0 or bool(np.all(numbers == numbers[0])) else numbers
