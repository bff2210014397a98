"""Constraint sets: closed sets with a projection that knows the support of the point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from .errors import CapabilityError, InvalidInputError, format_value
from .objective import Objective
from .schema import stored
from .support import Support, upgrade_supports
from .typing import Array, library


@stored("point/projection", upgrades=[upgrade_supports])
@dataclass(frozen=True, slots=True)
class Projection:
    """A nearest point of the set with its support. The point never shares memory with the input.

    Attributes
    ----------
    point : array
        The point.
    support : Support
        The coordinates where it may be non-zero.
    """

    point: Array
    support: Support


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of coordinates that are chosen whole; they may overlap.

    Attributes
    ----------
    columns, starts : array of int
        The coordinates of block g, increasing, are ``columns[starts[g] : starts[g + 1]]``.
    always : array of int
        The coordinates that are always allowed.
    """

    columns: np.ndarray
    starts: np.ndarray
    always: np.ndarray

    @property
    def count(self) -> int:
        """The number of blocks."""
        return int(self.starts.size - 1)

    @property
    def owner(self) -> np.ndarray:
        """The block of each entry of `columns`."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))

    def members(self, g: int) -> np.ndarray:
        """Return the coordinates of a block."""
        return self.columns[self.starts[g] : self.starts[g + 1]]


class Structure(ABC):
    """The restriction of supports by a set to a few of many candidates, such as coordinates, groups or edges.

    Attributes
    ----------
    candidates : int
        The number of candidates, without those that are always allowed.
    budget : int
        The number of candidates that may be chosen.
    """

    candidates: int
    budget: int

    @abstractmethod
    def selected(self, support: Support) -> int:
        """Return the number of candidates in a support."""

    def swap_units(self, support: Support) -> list[Array]:
        """Return the sets of coordinates that can be removed from a support as a unit; none if they are not known."""
        return []

    def blocks(self) -> Blocks | None:
        """Return the candidates as blocks of coordinates of a flat point; None if they are something else."""
        return None

    def chosen(self, support: Support) -> Array:
        """Return the numbers of the blocks that a support has."""
        return support.numbers  # type: ignore[attr-defined]

    def placed(self, constraint: Constraint, point: Array, numbers: Sequence[int]) -> Projection:
        """Return a point of some blocks with its support."""
        return constraint.project(point)


@dataclass(frozen=True, slots=True)
class CoordinateBudget(Structure):
    """The structure of a constraint that allows any `budget` coordinates of a vector.

    Attributes
    ----------
    candidates : int
        The number of coordinates that count.
    budget : int
        The number of these that may be non-zero.
    free : tuple of int
        Coordinates that are always allowed and not counted.
    bounds : array, shape (2, d), or None
        The lower bounds, <= 0, and the upper ones, >= 0, infinite where there is none; None without any bound.
    """

    candidates: int
    budget: int
    free: tuple[int, ...] = ()
    bounds: np.ndarray | None = None

    @property
    def signs(self) -> np.ndarray | None:
        """For each coordinate, +1 or -1 if it can only have this sign, otherwise 0; None if there is no bound."""
        if self.bounds is None:
            return None
        lower, upper = self.bounds
        signs: np.ndarray = (lower == 0).astype(int) - (upper == 0).astype(int)
        return signs

    def selected(self, support: Support) -> int:
        return int(support.indices.shape[0]) - len(self.free)

    def counted(self, support: Support) -> Array:
        """Return the coordinates of a support that count, each of which any other may replace."""
        indices = support.indices
        if not self.free:
            return indices
        xp = library(indices)
        counted = xp.ones_like(indices, dtype=xp.bool)
        for j in self.free:
            counted = counted & (indices != j)
        return indices[counted]


@dataclass(frozen=True, slots=True)
class BlockBudget(Structure):
    """The structure of a constraint that allows any `budget` blocks of coordinates of a vector.

    Attributes
    ----------
    candidates : int
        The number of blocks.
    budget : int
        The number of blocks that may be non-zero.
    numbers : array of int, shape (d,)
        The block of each coordinate, from 0; `candidates` for coordinates that are always allowed.
    """

    candidates: int
    budget: int
    numbers: Array

    def selected(self, support: Support) -> int:
        return int(self.chosen(support).shape[0])

    def blocks(self) -> Blocks:
        numbers = np.asarray(self.numbers)
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(self.candidates + 1))
        return Blocks(order[: starts[-1]], starts, order[starts[-1] :])


@dataclass(frozen=True, slots=True)
class RowBudget(BlockBudget):
    """The structure of a constraint that allows any `budget` rows of a matrix, each of them a block.

    Attributes
    ----------
    free : tuple of int
        The rows that are always allowed and not counted.
    """

    free: tuple[int, ...] = ()


def require_constraint(constraint: object) -> None:
    """Raise `InvalidInputError`, before a run starts, if an object is not a `Constraint`."""
    if not isinstance(constraint, Constraint):
        found = format_value(constraint)
        raise InvalidInputError(f"the constraint must be a set to stay in, such as Sparsity(3); got {found}")


def require_symmetry(objective: Objective, constraint: Constraint) -> None:
    """Raise `CapabilityError` if the set is not of symmetric matrices but the objective is a function of these only."""
    if objective.traits.symmetric and not constraint.symmetric:
        raise CapabilityError(
            f"{type(objective).__name__} is a function of symmetric matrices, and {constraint} holds others too; use a "
            "set of symmetric ones, such as EdgeSparsity"
        )


_WITH_START = {
    "project": ("self", "z", "start"),
    "project_onto": ("self", "z", "support", "start"),
    "hard_threshold": ("self", "v", "start"),
}
"""The methods of a constraint that solvers give the support of the last iterate, and all arguments of these."""


class Constraint(ABC):
    """A closed set C with a projection that also returns the support of the point.

    Subclasses are frozen dataclasses with `check`, `project`, `relax` and `is_full`; the other methods have defaults.
    """

    exact: bool = True
    """False when `project` is only an approximation of the nearest point."""

    symmetric: ClassVar[bool] = False
    """Whether the set holds symmetric matrices only."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Raise `InvalidInputError` if a method of the subclass does not take `start`."""
        super().__init_subclass__(**settings)
        for name, arguments in _WITH_START.items():
            if name in vars(cls):
                try:
                    signature(vars(cls)[name]).bind(*arguments)
                except TypeError as error:
                    raise InvalidInputError(
                        f"{cls.__name__}.{name} is called with {', '.join(arguments[1:])}; define it as "
                        f"{name}({', '.join(arguments)}=None), where start is the support of the last iterate or None"
                    ) from error

    @abstractmethod
    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `InvalidInputError` if the set does not fit points of this shape."""

    @abstractmethod
    def project(self, z: Array, start: Support | None = None) -> Projection:
        """Return the nearest point of the set; among equally near ones, the one with the lowest indices.

        `start` is an approximate support, such as that of the last iterate, from which an iterative projection starts.
        """

    @abstractmethod
    def relax(self, factor: float) -> Constraint:
        """Return the set with a larger budget: k becomes ceil(factor k)."""

    @abstractmethod
    def is_full(self, support: Support) -> bool:
        """Return whether the support uses the whole budget."""

    def at_most(self, shape: tuple[int, ...]) -> int | None:
        """Return a bound on the number of coordinates in a support of vectors; None if no bound is known.

        A device can then select this number of columns without a synchronisation (see `hardthresh.core.few`).
        """
        return None

    def structure(self, shape: tuple[int, ...]) -> Structure | None:
        """Return the `Structure` of supports for points of a shape; None if there is none."""
        return None

    def project_onto(self, z: Array, support: Support, start: Support | None = None) -> Projection:
        """Return the nearest point of the set to a point of a support's subspace, on that support or part of it."""
        return self.project(z, start)

    def hard_threshold(self, v: Array, start: Support | None = None) -> Array:
        """Return the part of a direction with the largest norm on any support (HT_s, PM_s); bounds are ignored."""
        return self.project(v, start).point

    def free_part(self, w: Array, gradient: Array, support: Support) -> Support:
        """Return the free variables: the part of the support that can move along -gradient within the bounds."""
        return support


def coordinate_budget(constraint: Constraint, shape: tuple[int, ...]) -> CoordinateBudget | None:
    """Return the budget of coordinates that a set is; None for other sets."""
    structure = constraint.structure(shape) if len(shape) == 1 else None
    return structure if isinstance(structure, CoordinateBudget) else None
