"""Negative binomial deviance, for counts that vary more than Poisson counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from hardthresh.arrays import double, namespace
from hardthresh.core.checking import checked_number
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .location import average
from .log_link import LogLink
from .logistic import sigmoid


@register("loss", "negative_binomial", lambda: [NegativeBinomial(), NegativeBinomial(20.0)])
@dataclass(frozen=True, slots=True)
class NegativeBinomial(LogLink):
    r"""Half the negative binomial deviance of log-means u, for a given shape :math:`\theta`.

    .. math:: \ell(y, u) = y \log \frac{y}{\mu} - (y + \theta) \log \frac{y + \theta}{\mu + \theta},
              \qquad \mu = e^u

    Targets are counts >= 0 of mean :math:`\mu` and variance :math:`\mu + \mu^2 / \theta`: Poisson counts whose rates
    are gamma distributed. :math:`1 / \theta` is called the dispersion. The loss is the negative log-likelihood up to
    terms that do not depend on u. The second derivative is at most :math:`(y + \theta) / 4`.

    Parameters
    ----------
    theta : float
        :math:`\theta` > 0; the loss tends to `Poisson` as theta grows.

    Raises
    ------
    InvalidInputError
        For a shape that is not a finite number > 0.

    References
    ----------
    J. M. Hilbe (2011), *Negative Binomial Regression*: the model NB2.

    Examples
    --------
    >>> import numpy as np
    >>> NegativeBinomial(1.0).value(np.array([0.0, 3.0]), np.array([0.0, np.log(3.0)])).round(6)
    array([0.693147, 0.      ])
    """

    theta: float = 1.0

    domain: ClassVar[str] = "finite numbers >= 0"
    unit_dispersion: ClassVar[bool] = True  # besides the shape, which is given
    target_kind: ClassVar[str] = "counts"
    saturates: ClassVar[bool] = True
    score_name: ClassVar[str] = "neg_mean_negative_binomial_deviance"

    def __post_init__(self) -> None:
        checked_number("theta", self.theta, above=0.0)

    def in_domain(self, y: Array) -> Array:
        return (y >= 0) & namespace(y).isfinite(y)

    def value(self, y: Array, u: Array) -> Array:
        xp, theta = namespace(u), self.theta
        known = xp.where(y > 0, y, xp.ones_like(y))
        gap = xp.where(y > 0, u - xp.log(known), 0 * u)
        near = xp.where(xp.abs(gap) < 1, gap, 0 * gap)  # there the terms without u would cancel
        small = (y + theta) * xp.log1p(y / (y + theta) * xp.expm1(near)) - y * near
        small = xp.where(small > 0, small, 0 * small)
        far = u - log(theta)
        softplus = xp.where(far > 0, far, 0 * far) + xp.log1p(xp.exp(-xp.abs(far)))
        of_target = y * xp.log(known / theta) - (y + theta) * xp.log1p(y / theta)
        total = of_target - y * far + (y + theta) * softplus
        return xp.where((y > 0) & (xp.abs(gap) < 1), small, total)

    def gradient(self, y: Array, u: Array) -> Array:
        far = u - log(self.theta)
        return self.theta * sigmoid(far) - y * sigmoid(-far)

    def curvature(self, y: Array, u: Array) -> Array:
        far = u - log(self.theta)
        return (y + self.theta) * sigmoid(far) * sigmoid(-far)

    def example_target(self, u: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Draw random multiples of the square of `noise`, which are counts if `noise` is 1.

        It multiplies both parts of their variance: that of the rates, and that of Poisson counts of given rates.
        """
        rate = np.exp(u) * rng.gamma(self.theta / noise**2, noise**2 / self.theta, u.shape)
        return np.asarray(noise**2 * rng.poisson(rate / noise**2))

    def saturated(self, y: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each count if it is predicted exactly, without the factorial of the count."""
        from scipy.special import gammaln, xlogy

        theta = self.theta
        saturated = gammaln(y + theta) - gammaln(theta) + xlogy(y, y / (y + theta)) - theta * np.log1p(y / theta)
        return np.asarray(saturated)

    def minus_twice_log_likelihood(self, y: Array, u: Array, weights: Array, n: float) -> float:
        """Return minus twice the log-likelihood for the shape of this loss, up to a constant of the data."""
        saturated = self.saturated(double(y))
        per_example = saturated if saturated.ndim == 1 else saturated.mean(axis=1)
        return 2.0 * n * (self.weighted_mean(y, u, weights) - average(per_example, double(weights)))
