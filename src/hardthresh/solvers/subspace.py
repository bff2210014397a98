"""An objective on the subspace of one support."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any

from hardthresh.arrays import gather, mask_of, namespace, scatter, where_true
from hardthresh.core.constraint import Constraint, Projection
from hardthresh.core.objective import LinearObjective, Objective, RowObjective
from hardthresh.core.support import Support
from hardthresh.core.typing import Array


class Subspace(ABC):
    """An objective on the subspace of one support, whose points may be shorter than those of the whole space.

    `free` is the part of the support that can move, where no bound holds (`Constraint.free_part`).
    """

    has_hessian: bool
    """Whether the objective on the points of the subspace gives its Hessian as a matrix."""

    @abstractmethod
    def lower(self, w: Array) -> Array:
        """Return the subspace's coordinates of a full point or gradient."""

    @abstractmethod
    def lift(self, v: Array) -> Array:
        """Return the full point with these coordinates."""

    @abstractmethod
    def keep(self, v: Array, free: Support) -> Array:
        """Return `v` with the coordinates outside a smaller support set to zero."""

    @abstractmethod
    def coordinates(self, free: Support) -> Array | None:
        """Return the flat indices of the free coordinates; None if the free part is not one of coordinates."""

    @abstractmethod
    def support(self, reached: Projection) -> Support:
        """Return the support to move on from a point that was reached."""

    @property
    @abstractmethod
    def objective(self) -> Any:
        """The objective on the points of the subspace, with `evaluate` and `curvature`."""


class _Columns(Subspace):
    """A support of coordinates of a linear objective, which becomes an objective of these columns only."""

    has_hessian = True

    def __init__(
        self, objective: LinearObjective | RowObjective, constraint: Constraint, support: Support, indices: Array
    ) -> None:
        self._constraint, self._support, self._indices = constraint, support, indices
        self._size = objective.shape[0]
        self._objective = objective.columns(indices)

    def lower(self, w: Array) -> Array:
        return gather(w, self._indices)

    def lift(self, v: Array) -> Array:
        return scatter(v, self._indices, self._size)

    def keep(self, v: Array, free: Support) -> Array:
        kept = free.indices
        if kept is None or kept.shape[0] == v.shape[0]:
            return v
        return namespace(v).where(self.lower(mask_of(kept, self._size)), v, 0 * v)

    def coordinates(self, free: Support) -> Array | None:
        return where_true(self.lower(mask_of(free.indices, self._size)))

    def support(self, reached: Projection) -> Support:
        return self._support  # a coordinate that has become zero may come back

    @property
    def objective(self) -> Any:
        return self._objective


class _Rows(_Columns):
    """A support of whole rows of an objective of matrices, which becomes an objective of their columns only."""

    def __init__(self, objective: RowObjective, constraint: Constraint, support: Support, indices: Array) -> None:
        self._width = prod(objective.shape[1:])
        super().__init__(objective, constraint, support, indices[:: self._width] // self._width)

    def keep(self, v: Array, free: Support) -> Array:
        return v if free.indices is None else namespace(v).where(self._is_free(free), v, 0 * v)

    def coordinates(self, free: Support) -> Array | None:
        return where_true(namespace(free.indices).reshape(self._is_free(free), (-1,)))

    def _is_free(self, free: Support) -> Array:
        """Return for each entry of a point of the subspace whether it can move."""
        mask = mask_of(free.indices, self._size * self._width)
        return self.lower(namespace(mask).reshape(mask, (self._size, self._width)))


class _Restricted(Subspace):
    """Any support of any constraint: points of full size, and directions restricted to the tangent space."""

    def __init__(self, objective: Objective, constraint: Constraint) -> None:
        self._objective, self._constraint = objective, constraint
        self.has_hessian = isinstance(objective, LinearObjective)

    def lower(self, w: Array) -> Array:
        return w

    def lift(self, v: Array) -> Array:
        return v

    def keep(self, v: Array, free: Support) -> Array:
        return free.restrict(v)

    def coordinates(self, free: Support) -> Array | None:
        indices = free.indices
        if indices is None or not self._constraint.symmetric:
            return indices
        size = self._objective.shape[0]
        return indices[indices // size <= indices % size]  # each pair once

    def support(self, reached: Projection) -> Support:
        return reached.support

    @property
    def objective(self) -> Any:
        return self._objective


def subspace(objective: Objective, constraint: Constraint, support: Support) -> Subspace:
    """Return the subspace of a support, in the cheapest form that the objective and the constraint allow."""
    indices = support.indices
    if indices is None or not is_of_columns(objective):
        return _Restricted(objective, constraint)
    kind: Any = _Columns if isinstance(objective, LinearObjective) else _Rows
    found: Subspace = kind(objective, constraint, support, indices)
    return found


def is_of_columns(objective: Objective) -> bool:
    """Return whether an objective is minimised on a support as one of these columns only.

    Of objectives of matrices, whose rows are few columns, that is so where a reading of all columns is expensive.
    """
    if isinstance(objective, LinearObjective):
        return True
    return objective.traits.reading_is_dear and isinstance(objective, RowObjective)
