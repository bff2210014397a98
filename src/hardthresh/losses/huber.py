"""Huber's loss, for real targets with outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hardthresh.arrays import double, namespace
from hardthresh.core.checking import checked_number
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss
from .location import check_squares, weighted_quantile


@register("loss", "huber", lambda: [Huber(), Huber(0.3)])
@dataclass(frozen=True, slots=True)
class Huber(Loss):
    r"""Huber's loss: half the squared error for small residuals, and linear for large ones.

    .. math:: \ell(y, u) = \begin{cases} r^2 / 2 & |r| \le \delta \\ \delta |r| - \delta^2 / 2 & |r| > \delta
              \end{cases} \qquad r = u - y

    The derivative of the loss is bounded by :math:`\delta`, so outliers have a bounded influence. The second derivative
    is 1 for :math:`|r| \le \delta` and 0 otherwise.

    Parameters
    ----------
    delta : float
        :math:`\delta` > 0, in units of the target.

    Raises
    ------
    InvalidInputError
        For a distance that is not a finite number > 0.

    References
    ----------
    P. J. Huber (1964), *Robust estimation of a location parameter*.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(1.0).value(np.array([0.0, 0.0]), np.array([0.5, 10.0]))
    array([0.125, 9.5  ])
    """

    delta: float = 1.35

    curvature_bound: ClassVar[float] = 1.0
    domain: ClassVar[str] = "finite numbers"
    score_name: ClassVar[str] = "neg_mean_huber_loss"
    score_scale: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        checked_number("delta", self.delta, above=0.0)

    def in_domain(self, y: Array) -> Array:
        return namespace(y).isfinite(y)

    def check_targets(self, y: Array) -> None:
        self.check_domain(y)
        check_squares(y)

    def value(self, y: Array, u: Array) -> Array:
        r = namespace(u).abs(u - y)
        within = namespace(u).where(r < self.delta, r, 0 * r + self.delta)
        return within * (r - 0.5 * within)

    def gradient(self, y: Array, u: Array) -> Array:
        return namespace(u).clip(u - y, -self.delta, self.delta)

    def curvature(self, y: Array, u: Array) -> Array:
        return namespace(u).astype(namespace(u).abs(u - y) <= self.delta, u.dtype)

    def mean(self, u: Array) -> Array:
        return namespace(u).asarray(u, copy=True)

    def link(self, mean: float) -> float:
        return mean

    def constant(self, y: np.ndarray, weights: np.ndarray, offset: np.ndarray | None = None) -> float:
        return self._balance(y, weights, np.zeros(y.shape) if offset is None else offset)

    def initial_prediction(self, y: Array, weights: Array) -> float:
        """Return the median, near which some rows usually have curvature."""
        return weighted_quantile(double(y), double(weights), 0.5)

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw targets with errors of Student's distribution with 3 degrees of freedom."""
        return u + noise * rng.standard_t(3.0, u.shape)
