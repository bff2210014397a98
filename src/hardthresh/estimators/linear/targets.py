"""The targets of a problem minus the offset, for first estimates of a parameter of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hardthresh.arrays import double
from hardthresh.losses.location import weighted_quantile
from hardthresh.objectives.blocked import Blocked
from hardthresh.objectives.readings import Sums

_TO_SD = 1.4826
"""A median absolute deviation times this is the standard deviation of normal numbers."""


class Targets(Protocol):
    """Targets less the offset, by what is asked of all of them together."""

    def quantile(self, share: float, about: float | None = None) -> float:
        """Return the smallest number at which the weights of those up to it reach a share of their sum.

        With `about` the numbers are distances from it.
        """

    def largest(self) -> float:
        """Return the largest absolute number."""

    def deviation(self, size: float) -> float:
        """Return the standard deviation in units of a size."""


@dataclass(frozen=True, slots=True)
class RowTargets:
    """Those of rows in memory.

    Attributes
    ----------
    r : array, shape (n,)
        The targets less the offset.
    weights : array, shape (n,)
        Positive weights, which sum to 1.
    """

    r: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, objective: Any) -> RowTargets:
        """Return those of an objective."""
        y = double(objective.y)
        return cls(y if objective.offset is None else y - double(objective.offset), double(objective.weights))

    def quantile(self, share: float, about: float | None = None) -> float:
        """Return a quantile, by sorting."""
        return weighted_quantile(self.r if about is None else np.abs(self.r - about), self.weights, share)

    def largest(self) -> float:
        """Return the largest absolute number."""
        return float(np.max(np.abs(self.r), initial=0.0))

    def deviation(self, size: float) -> float:
        """Return the standard deviation in units of a size."""
        z = self.r / size
        return float(np.sqrt(self.weights @ (z - self.weights @ z) ** 2))


@dataclass(frozen=True, slots=True)
class BlockTargets:
    """Those of a table in blocks, by sweeps over the columns that are kept: no reading.

    Attributes
    ----------
    model : BlockedModel
        The model.
    """

    model: Any

    def quantile(self, share: float, about: float | None = None) -> float:
        """Return a quantile, exact to the last bit."""
        return float(self.model.target_quantile(share, about))

    def largest(self) -> float:
        """Return the largest absolute number."""
        return self.quantile(np.inf, 0.0)

    def deviation(self, size: float) -> float:
        """Return the standard deviation in units of a size."""
        zero = self.model.zeros()
        level = self.model.units.level
        (mean,) = self.model.mean_of_rows(zero, _power, size, level, 0.0, 1)
        (square,) = self.model.mean_of_rows(zero, _power, size, level, float(mean), 2)
        return float(np.sqrt(square))


def targets_of(objective: Any) -> Targets:
    """Return the targets of an objective less the offset."""
    return BlockTargets(objective) if isinstance(objective, Blocked) else RowTargets.of(objective)


def spread(targets: Targets, intercept: bool) -> float:
    """Return a scale of targets that outliers hardly change.

    It is that of their median absolute deviation, from zero if there is no intercept; or where more than half of them
    are equal, their standard deviation, and 1 if all are.
    """
    centre = targets.quantile(0.5) if intercept else 0.0
    scale = _TO_SD * targets.quantile(0.5, centre)
    size = targets.largest() or 1.0
    if not scale > 1e-12 * size:
        scale = size * targets.deviation(size)
    return scale if scale > 1e-12 * size else size


def _power(
    y: np.ndarray, u: np.ndarray, weight: np.ndarray, size: float, level: float, centre: float, power: int
) -> Sums:
    """Return the sum of powers of targets less the offset, which is what zero predicts less a level."""
    return (np.asarray(weight @ ((y - (u - level)) / size - centre) ** power),)
