"""Running means and co-moments, without cancellation if means are far from 0 (Chan, Golub and LeVeque 1983)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

_ROUNDING = 16 * np.finfo(np.float64).eps
"""The largest relative deviation of a constant from its computed mean. At most 3 eps were measured."""


def _spread(square: Array, count: Array | int, mean: Array) -> Array:
    """Return sums of squares around means, with 0 in place of rounding errors."""
    return np.where(square > count * (_ROUNDING * mean) ** 2, square, 0.0)


@stored("moments/joint")
@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The mean and the centred co-moments of p variables that are observed together; the last one is the target.

    Attributes
    ----------
    count : int
        The number of examples.
    mean : array, shape (p,)
        The mean of the variables.
    comoment : array, shape (p, p)
        The sum of (z - mean)(z - mean)^T over the examples z.
    """

    count: int
    mean: Array
    comoment: Array

    @classmethod
    def none(cls, p: int) -> Self:
        """Return the moments before the first example."""
        return cls(0, np.zeros(p), np.zeros((p, p)))

    def absorb(self, z: Array) -> Moments:
        """Return the moments after further examples z, shape (count, p)."""
        if not len(z):
            return self
        mean = z.mean(axis=0)
        centred = z - mean
        shift = mean - self.mean
        count = self.count + len(z)
        comoment = self.comoment + centred.T @ centred + np.outer(shift, shift) * (self.count * len(z) / count)
        return Moments(count, self.mean + shift * (len(z) / count), comoment)

    def spread(self) -> Array:
        """Return the sum of squares of each variable around its mean; 0 for a constant."""
        return _spread(self.comoment.diagonal(), self.count, self.mean)

    def of(self, chosen: Array) -> Moments:
        """Return the moments of some of the variables."""
        return Moments(self.count, self.mean[chosen], self.comoment[np.ix_(chosen, chosen)])


@stored("moments/covariances")
@dataclass(frozen=True, slots=True, eq=False)
class Covariances:
    """The moments of each of m variables and a residual; each variable may have other examples.

    Attributes
    ----------
    count : array, shape (m,)
        The number of examples of each variable.
    mean, square : array, shape (m,)
        The mean of each variable, and the sum of squares around it.
    residual : array, shape (m,)
        The mean of the residual on the examples of each variable.
    product : array, shape (m,)
        The sum of products of variable and residual, both minus their means.
    """

    count: Array
    mean: Array
    square: Array
    residual: Array
    product: Array

    @classmethod
    def none(cls, m: int) -> Self:
        """Return the covariances before the first example."""
        return cls(*(np.zeros(m) for _ in range(5)))

    @classmethod
    def of(cls, x: Array, residual: Array) -> Self:
        """Return the covariances of examples: x of shape (n, m), the residual of shape (n,)."""
        if not len(x):
            return cls.none(x.shape[1])
        mean, r = x.mean(axis=0), float(residual.mean())
        centred = x - mean
        m = x.shape[1]
        square = np.einsum("ij,ij->j", centred, centred)
        return cls(np.full(m, float(len(x))), mean, square, np.full(m, r), (residual - r) @ centred)

    def merge(self, where: Array, other: Covariances) -> Covariances:
        """Return the covariances after adding those of further examples of the variables `where`."""
        count = self.count[where] + other.count
        share = np.divide(other.count, count, out=np.zeros_like(count), where=count > 0)
        weight = self.count[where] * share
        shift, residual_shift = other.mean - self.mean[where], other.residual - self.residual[where]
        merged = Covariances(
            *(part.copy() for part in (self.count, self.mean, self.square, self.residual, self.product))
        )
        merged.count[where] = count
        merged.mean[where] += shift * share
        merged.square[where] += other.square + shift**2 * weight
        merged.residual[where] += residual_shift * share
        merged.product[where] += other.product + shift * residual_shift * weight
        return merged

    def deviation(self) -> Array:
        """Return the standard deviation of each variable; 0 for fewer than two examples."""
        square = _spread(self.square, self.count, self.mean)
        variance = np.divide(square, self.count, out=np.zeros_like(self.count), where=self.count > 1)
        return np.sqrt(variance)

    def covariance(self) -> Array:
        """Return the covariance of each variable and the residual; 0 for fewer than two examples."""
        return np.divide(self.product, self.count, out=np.zeros_like(self.count), where=self.count > 1)
