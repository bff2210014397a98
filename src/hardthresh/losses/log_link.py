"""The base of losses whose predictions are logarithms of expected targets."""

from __future__ import annotations

from math import log
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.typing import Array

from .base import Loss
from .location import average


class LogLink(Loss):
    """Base of the losses of log-means u: the expected target is e^u."""

    multiplies: ClassVar[str] = "the expected target"

    def mean(self, u: Array) -> Array:
        """Return e^u."""
        return namespace(u).exp(u)

    def link(self, mean: float) -> float:
        """Return the logarithm of a mean > 0."""
        return log(mean)

    def recession(self, y: Array) -> Array:
        """Return -1 for targets of 0, which no finite prediction expects."""
        return namespace(y).where(y > 0, 0 * y, 0 * y - 1)

    def initial_prediction(self, y: Array, weights: Array) -> float:
        """Return the logarithm of the mean target; 0 if that is 0."""
        mean = average(y, weights)
        return self.link(mean) if mean > 0.0 else 0.0
