"""The squared hinge loss of support vector machines, for two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss


@register("loss", "squared_hinge")
@dataclass(frozen=True, slots=True)
class SquaredHinge(Loss):
    r"""The squared hinge loss, :math:`\ell(y, u) = \max(0, 1 - y u)^2 / 2`, for classes y = -1 and 1.

    For a target between -1 and 1, the loss is the expectation over random classes with this mean. The mean loss of a
    constant is minimal at the mean target, so :math:`\max(-1, \min(1, u))` is the expected target for the prediction u.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredHinge().value(np.array([1.0, 1.0, -1.0]), np.array([0.0, 2.0, 2.0]))
    array([0.5, 0. , 4.5])
    """

    curvature_bound: ClassVar[float] = 1.0
    domain: ClassVar[str] = "-1, 1 or between"
    recoding: ClassVar[str] = "; recode labels 0 and 1 as 2 y - 1"
    classifies: ClassVar[bool] = True
    target_kind: ClassVar[str] = "classes"
    default_ridge: ClassVar[float] = 1e-2  # as that of the logistic loss: separated classes leave the margin undecided
    score_name: ClassVar[str] = "neg_mean_squared_hinge_loss"
    score_scale: ClassVar[float] = 1.0

    def in_domain(self, y: Array) -> Array:
        return (y >= -1) & (y <= 1)

    def value(self, y: Array, u: Array) -> Array:
        above, below = _margins(u)
        return 0.25 * ((1 + y) * below * below + (1 - y) * above * above)

    def gradient(self, y: Array, u: Array) -> Array:
        above, below = _margins(u)
        return 0.5 * ((1 - y) * above - (1 + y) * below)

    def curvature(self, y: Array, u: Array) -> Array:
        xp = namespace(u)
        return 0.5 * ((1 - y) * xp.astype(u > -1, u.dtype) + (1 + y) * xp.astype(u < 1, u.dtype))

    def mean(self, u: Array) -> Array:
        return namespace(u).clip(u, -1.0, 1.0)

    def link(self, mean: float) -> float:
        return mean

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        positive = rng.random(u.shape) < 0.5 * (1 + self.mean(u / noise))
        return np.where(positive, 1.0, -1.0).astype(u.dtype)


def _margins(u: Array) -> tuple[Array, Array]:
    """Return how far predictions are above -1 and below 1; 0 where they are not."""
    xp = namespace(u)
    return xp.where(u > -1, 1 + u, 0 * u), xp.where(u < 1, 1 - u, 0 * u)
