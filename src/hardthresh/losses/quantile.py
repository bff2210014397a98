"""The pinball loss, smoothed, for quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import double, namespace
from hardthresh.core.checking import checked_number
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .base import Loss
from .location import check_squares, weighted_quantile


@register("loss", "quantile", lambda: [Quantile(), Quantile(0.8, 0.3)])
@dataclass(frozen=True, slots=True)
class Quantile(Loss):
    r"""The pinball loss of the quantile :math:`\tau`, smoothed within a distance h of the target.

    .. math:: \ell(y, u) = (\tau - \tfrac{1}{2}) r + \tfrac{1}{2} L_h(r), \quad r = y - u, \qquad
              L_h(r) = \begin{cases} r^2 / (2h) + h / 2 & |r| \le h \\ |r| & |r| > h \end{cases}

    The mean of the pinball loss is minimal at the quantile. It is smoothed by a uniform kernel of half-width h, which
    raises it by at most h / 4. The second derivative is 1 / (2h) for :math:`|r| \le h` and 0 otherwise.

    Parameters
    ----------
    quantile : float
        :math:`\tau`, 0 < tau < 1.
    smoothing : float
        h >= 0, in units of the target; 0 is the pinball loss, which solvers that use curvature cannot minimise.

    Raises
    ------
    InvalidInputError
        For numbers out of range.

    References
    ----------
    R. Koenker and G. Bassett (1978), *Regression quantiles*, Econometrica 46. M. Fernandes, E. Guerre and E. Horta
    (2021), *Smoothing quantile regressions*, Journal of Business and Economic Statistics 39.

    Examples
    --------
    >>> import numpy as np
    >>> Quantile(0.75, 0.0).value(np.array([0.0, 0.0]), np.array([-2.0, 2.0]))
    array([1.5, 0.5])
    """

    quantile: float = 0.5
    smoothing: float = 1.0

    domain: ClassVar[str] = "finite numbers"
    target_kind: ClassVar[str] = "quantiles"
    score_name: ClassVar[str] = "neg_mean_pinball_loss"
    score_scale: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        checked_number("quantile", self.quantile, above=0.0, below=1.0)
        checked_number("smoothing", self.smoothing, least=0.0)

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        """The minimum of the loss, h tau (1 - tau), up to rounding."""
        return (1 - 1e-12) * self.smoothing * self.quantile * (1 - self.quantile)

    @property
    def curvature_bound(self) -> float:  # type: ignore[override]
        """The largest second derivative, 1 / (2h)."""
        return 0.5 / self.smoothing if self.smoothing else inf

    def in_domain(self, y: Array) -> Array:
        return namespace(y).isfinite(y)

    def check_targets(self, y: Array) -> None:
        self.check_domain(y)
        check_squares(y)

    def value(self, y: Array, u: Array) -> Array:
        xp, r = namespace(u), y - u
        value = (self.quantile - 0.5) * r + 0.5 * xp.abs(r)
        if not self.smoothing:
            return value
        inside = 1 - xp.abs(r) / self.smoothing
        return value + 0.25 * self.smoothing * xp.where(inside > 0, inside, 0 * inside) ** 2

    def gradient(self, y: Array, u: Array) -> Array:
        xp, r = namespace(u), y - u
        side = xp.clip(r / self.smoothing, -1.0, 1.0) if self.smoothing else xp.sign(r)
        return (0.5 - self.quantile) - 0.5 * side

    def curvature(self, y: Array, u: Array) -> Array:
        xp = namespace(u)
        return 0.5 / self.smoothing * xp.astype(xp.abs(y - u) < self.smoothing, u.dtype) if self.smoothing else 0 * u

    def kink(self) -> tuple[float, float] | None:
        return None if self.smoothing else (-self.quantile, 1.0 - self.quantile)

    def mean(self, u: Array) -> Array:
        """Return the quantiles themselves: a copy of the predictions."""
        return namespace(u).asarray(u, copy=True)

    def constant(self, y: np.ndarray, weights: np.ndarray, offset: np.ndarray | None = None) -> float:
        offset = np.zeros(y.shape) if offset is None else offset
        if self.smoothing:
            return self._balance(y, weights, offset)
        return weighted_quantile(y - offset, weights, self.quantile)

    def link(self, mean: float) -> float:
        return mean

    def initial_prediction(self, y: Array, weights: Array) -> float:
        return weighted_quantile(double(y), double(weights), self.quantile)

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw targets whose quantile and mean are u, with uniform errors on both sides of u."""
        below = rng.random(u.shape) < self.quantile
        size = noise * rng.random(u.shape)
        return u + np.where(below, -size / self.quantile, size / (1 - self.quantile))

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood of asymmetric Laplace noise with the best scale, the mean loss."""
        mean = Quantile(self.quantile, 0.0).weighted_mean(y, u, weights)
        return 2.0 * n * log(mean) if mean > 0.0 else -inf
