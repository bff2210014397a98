"""The set to stay in: anything that we can project onto."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from .errors import CapabilityError, InvalidInputError, format_value
from .objective import Objective
from .schema import stored
from .typing import Array, Support


@stored("point/projection")
@dataclass(frozen=True, slots=True)
class Projection:
    """A nearest point of the set and where it may be non-zero. The point never aliases the input.

    Attributes
    ----------
    point : array
        The point.
    support : Support
        Where it may be non-zero; only its constraint looks inside.
    """

    point: Array
    support: Support


@dataclass(frozen=True, slots=True)
class Selection:
    """What a constraint is that allows any `budget` single coordinates.

    Attributes
    ----------
    budget : int
        How many coordinates may be non-zero.
    free : tuple of int
        Coordinates that are always allowed and not counted.
    signs : array or None
        For each coordinate +1 or -1 where only that sign is allowed, 0 where both are; None if there is no bound.
    """

    budget: int
    free: tuple[int, ...] = ()
    signs: Array | None = None


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a constraint is that allows any `budget` blocks of coordinates.

    Attributes
    ----------
    budget : int
        How many blocks may be non-zero.
    count : int
        How many blocks there are.
    numbers : array of int, shape (d,)
        The block of each coordinate, 0 .. count - 1; `count` for coordinates that are always allowed.
    """

    budget: int
    count: int
    numbers: Array


def require_constraint(constraint: object) -> None:
    """Refuse, before a run starts, what is no constraint."""
    if not isinstance(constraint, Constraint):
        found = format_value(constraint)
        raise InvalidInputError(f"the constraint must be a set to stay in, such as Sparsity(3); got {found}")


def require_symmetry(objective: Objective, constraint: Constraint) -> None:
    """Refuse, before a run starts, a set that leaves the symmetric matrices, where a function is only of these."""
    if objective.traits.symmetric and not constraint.symmetric:
        raise CapabilityError(
            f"{type(objective).__name__} is a function of symmetric matrices, and {constraint} holds others too; use a "
            "set of symmetric ones, such as EdgeSparsity"
        )


class Constraint(ABC):
    """A closed set C with a projection that also returns the support of the point.

    Subclasses are frozen dataclasses. The supports that a constraint hands out are opaque to solvers.
    """

    exact: bool = True
    """False when `project` is only an approximation of the nearest point."""

    symmetric: ClassVar[bool] = False
    """Whether the set holds symmetric matrices only."""

    @abstractmethod
    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `InvalidInputError` if the set makes no sense for points of this shape."""

    @abstractmethod
    def project(self, z: Array) -> Projection:
        """Return the nearest point of the set; among equally near ones, the one with the lowest indices."""

    @abstractmethod
    def restrict(self, v: Array, support: Support) -> Array:
        """Return `v` on the subspace of the support, zero elsewhere."""

    @abstractmethod
    def join(self, a: Support, b: Support) -> Support:
        """Return the union of two supports (for support expansion)."""

    @abstractmethod
    def relax(self, factor: float) -> Constraint:
        """Return the set with its budget multiplied: k becomes ceil(factor k)."""

    @abstractmethod
    def same(self, a: Support, b: Support) -> bool:
        """Return whether two supports are equal."""

    @abstractmethod
    def is_full(self, support: Support) -> bool:
        """Return whether the support uses the whole budget, so that nothing can join without something leaving."""

    def indices(self, support: Support) -> Array | None:
        """Return the support as increasing coordinates of a flat point, or None if it is not a set of coordinates."""
        return None

    def freedom(self, support: Support) -> int:
        """Return how many numbers a point on the support is free to have."""
        indices = self.indices(support)
        if indices is None:
            raise NotImplementedError(f"{type(self).__name__} must say how many numbers its supports are free to have")
        return int(indices.shape[0])

    def choice(self, support: Support, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Return out of how many pieces the set chooses and how many a support has; None if there is no such thing.

        Pieces are coordinates or groups of them; what is free is no choice.
        """
        return None

    def exchangeable(self, support: Support) -> Array | None:
        """Return the coordinates of the support that any other may replace, or None if there is no such thing."""
        return None

    def exchange(self, support: Support, removed: int, added: int) -> Support:
        """Return the support after one of its `exchangeable` coordinates, or of its `blocks`, made room for another."""
        raise TypeError(f"{type(self).__name__} does not exchange coordinates or blocks of them")

    def selection(self, size: int) -> Selection | None:
        """Return which single coordinates of a vector may be chosen, or None if the set is not of that kind."""
        return None

    def blocks(self) -> Blocks | None:
        """Return which blocks of coordinates of a vector may be chosen, or None if the set is not of that kind."""
        return None

    def parts(self, support: Support) -> list[Array] | None:
        """Return the coordinates of a support that may leave together, part by part, or None if that is not known."""
        return None

    def near(self, support: Support) -> Constraint:
        """Return the same set, whose projections may start their search from a support that is nearly right."""
        return self

    def settle(self, z: Array, support: Support) -> Projection:
        """Return the nearest point of the set to a point of a support's subspace, on that support or part of it."""
        return self.project(z)

    def leading(self, v: Array) -> Array:
        """Return the part of a direction with the largest norm on any one support (HT_s, PM_s), whatever the bounds."""
        return self.project(v).point

    def face(self, w: Array, gradient: Array, support: Support) -> Support:
        """Return the part of the support that can move to decrease the objective; smaller only where a bound holds."""
        return support
