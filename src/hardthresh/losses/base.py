"""What a loss is: a convex or smooth function of one target and one prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import ClassVar

from hardthresh.arrays import namespace
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import Array


class Loss(ABC):
    """A pointwise loss in prediction space.

    Subclasses are frozen dataclasses; all arrays have the shape of the predictions.
    """

    convex: ClassVar[bool] = True
    """Whether the loss is convex in the prediction."""

    quadratic: ClassVar[bool] = False
    """Whether the second derivative is 1 everywhere."""

    curvature_bound: ClassVar[float] = inf
    """The largest second derivative in the prediction; inf if there is none."""

    lower_bound: ClassVar[float] = 0.0
    """A number that the loss never falls below, whatever the target."""

    domain: ClassVar[str]
    """Which targets make sense, in words for an error message."""

    @abstractmethod
    def in_domain(self, y: Array) -> Array:
        """Return, for each target, whether it makes sense."""

    @abstractmethod
    def value(self, y: Array, u: Array) -> Array:
        """Return the loss of predictions `u` for targets `y`."""

    @abstractmethod
    def gradient(self, y: Array, u: Array) -> Array:
        """Return the derivative in `u`."""

    @abstractmethod
    def curvature(self, y: Array, u: Array) -> Array:
        """Return the second derivative in `u`."""

    def recession(self, y: Array) -> Array:
        """Return for each target the direction of the prediction, +1 or -1, in which the loss falls for ever.

        0 where a finite prediction attains the minimum, as is the default. Where it is not 0 a fit may have no finite
        coefficients.
        """
        return 0 * y

    def minus_twice_log_likelihood(self, mean: float, n: float) -> float:
        """Return it for n examples and a mean loss, up to a constant of the data; a loss is minus a log-likelihood."""
        return 2.0 * n * mean

    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError, naming the first offender, if a target is outside the domain."""
        good = self.in_domain(y)
        for i in range(0 if bool(namespace(good).all(good)) else y.shape[0]):
            if not bool(good[i]):
                raise InvalidInputError(
                    f"the {type(self).__name__} loss needs targets that are {self.domain}; y[{i}] is {float(y[i])}"
                )
