"""Tweedie deviance of a power between 1 and 2, for amounts of which many are zero."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .exponential import capped_exp, exponential_excess
from .log_link import LogLink, pearson_sums

_OTHERS = {0.0: "SparseLinearRegression", 1.0: "SparsePoissonRegression", 2.0: "SparseGammaRegression"}
"""The estimators of the powers at which the formula has a limit."""


@register("loss", "tweedie", lambda: [Tweedie(), Tweedie(1.9)])
@dataclass(frozen=True, slots=True)
class Tweedie(LogLink):
    r"""Half the Tweedie deviance of log-means u, for a power p between 1 and 2.

    .. math:: \ell(y, u) = \frac{\mu^{2-p}}{2-p} - \frac{y \mu^{1-p}}{1-p} + \frac{y^{2-p}}{(1-p)(2-p)},
              \qquad \mu = e^u

    Targets are amounts >= 0, some of which are exactly zero, whose variance is proportional to :math:`\mu^p`. An
    example is the sum of a random number of random amounts, such as rainfall or the yearly claims of an insured person.
    The loss is the negative log-likelihood times the dispersion, up to terms that do not depend on u. The limits p = 1
    and p = 2 are `Poisson` and `Gamma`. Near the overflow threshold the exponential is replaced by its second-order
    Taylor polynomial, as in `Poisson`.

    Parameters
    ----------
    power : float
        p, 1 < p < 2.

    Raises
    ------
    InvalidInputError
        For another power. For p > 2 the loss is not convex in u; for 0 < p < 1 there is no such distribution.

    References
    ----------
    B. Jorgensen (1987), *Exponential dispersion models*, JRSS B 49.

    Examples
    --------
    >>> import numpy as np
    >>> Tweedie(1.5).value(np.array([0.0, 4.0]), np.array([0.0, np.log(4.0)]))
    array([2., 0.])
    """

    power: float = 1.5

    domain: ClassVar[str] = "finite numbers >= 0"
    target_kind: ClassVar[str] = "amounts"
    score_name: ClassVar[str] = "neg_mean_tweedie_deviance"

    def __post_init__(self) -> None:
        if self.power in _OTHERS:
            raise InvalidInputError(
                f"power must be > 1 and < 2, got {self.power}; {_OTHERS[self.power]} is the model of that power"
            )
        checked_number("power", self.power, above=1.0, below=2.0)

    def in_domain(self, y: Array) -> Array:
        return (y >= 0) & namespace(y).isfinite(y)

    def value(self, y: Array, u: Array) -> Array:
        return self.value_and_gradient(y, u)[0]

    def gradient(self, y: Array, u: Array) -> Array:
        return self.value_and_gradient(y, u)[1]

    def value_and_gradient(self, y: Array, u: Array) -> tuple[Array, Array]:
        xp, up, down = namespace(u), 2.0 - self.power, self.power - 1.0
        known = xp.where(y > 0, y, xp.ones_like(y))
        gap = xp.where(y > 0, u - xp.log(known), 0 * u)
        near = xp.where(xp.abs(gap) < 1, gap, 0 * gap)  # there the three terms would cancel
        small = known**up * (exponential_excess(up * near) / up + exponential_excess(-down * near) / down)
        rising, above = capped_exp(up * u)
        falling, below = capped_exp(-down * xp.where(y > 0, u, 0 * u))  # no 0 * inf where its factor y is 0
        total = rising * (1 + above + 0.5 * above * above) / up - y**up / (up * down)
        total = total + y * falling * (1 + below + 0.5 * below * below) / down
        value = xp.where((y > 0) & (xp.abs(gap) < 1), small, total)
        return value, rising * (1 + above) - y * falling * (1 + below)

    def curvature(self, y: Array, u: Array) -> Array:
        up, down = 2.0 - self.power, self.power - 1.0
        return up * capped_exp(up * u)[0] + down * y * capped_exp(-down * u)[0]

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        up, down = 2.0 - self.power, self.power - 1.0
        mean, dispersion = np.exp(u), noise**2
        count = rng.poisson(mean**up / (dispersion * up))
        amount = rng.gamma(np.maximum(count, 1) * up / down, dispersion * down * mean**down)
        return np.asarray(np.where(count > 0, amount, 0.0))

    def dispersion_sums(self, y: np.ndarray, u: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
        """Return the sums of Pearson's estimate for a variance proportional to the power of the mean."""
        return pearson_sums(y, u, weights, self.power)

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the extended quasi-log-likelihood at its best dispersion, n log of the mean loss.

        The density itself is an infinite sum (Nelder and Pregibon 1987, *Biometrika* 74).
        """
        return self.criterion_of_mean(self.weighted_mean(y, u, weights), n)

    def criterion_of_mean(self, mean: float, n: float) -> float:
        return n * log(mean) if mean > 0.0 else -inf
