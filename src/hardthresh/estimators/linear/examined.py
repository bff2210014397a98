"""The form in which the features of a fitted linear model are examined one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hardthresh.core.support import Support
from hardthresh.core.typing import Array


@dataclass(frozen=True, slots=True)
class Examined:
    """An objective of vectors, a set and a point of it, in which single features, or groups, are examined.

    Attributes
    ----------
    objective, constraint : LinearObjective, Constraint
        Those of a vector.
    point : array
        The point as a vector.
    support : Support
        Its support.
    units : tuple of int
        The feature, or group, that each unit of the constraint is; empty if it is the unit itself.
    """

    objective: Any
    constraint: Any
    point: Array
    support: Support
    units: tuple[int, ...] = ()

    def feature(self, unit: int) -> int:
        """Return the feature, or group, that a unit of the constraint is."""
        return self.units[unit] if self.units else unit
