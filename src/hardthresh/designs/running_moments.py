"""Means and variances of columns whose rows arrive in batches, merged so that a mean far from zero costs no digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hardthresh.arrays import double, move, namespace
from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .base import Design
from .standardized import Standardized, scales

_ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""How far a constant may be from its computed mean, relative to it, as in `hardthresh.limited`."""


@stored("moments/columns")
@dataclass(frozen=True, slots=True, eq=False)
class RunningMoments:
    """Running moments: the weighted mean of each column so far, and the sum of squares around it.

    Attributes
    ----------
    weight : float
        The sum of the weights of the rows.
    mean, squares : array of float64, shape (d,)
        The means, and the weighted sums of squares around them; 0 for a column that was constant so far.

    Notes
    -----
    Cost of `absorb`: two data passes of the batch. Memory: 2 d + 1 numbers.

    References
    ----------
    T. F. Chan, G. H. Golub and R. J. LeVeque (1983), Algorithms for computing the sample variance: analysis and
    recommendations, *The American Statistician* 37, 242-247.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.designs import as_design
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]])
    >>> first = RunningMoments.none(2).absorb(as_design(X[:2]), np.full(2, 0.5), 2.0)
    >>> both = first.absorb(as_design(X[2:]), np.ones(1), 1.0)
    >>> both.mean, both.squares / both.weight
    (array([4., 5.]), array([8.66666667, 0.        ]))
    """

    weight: float
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def none(cls, d: int) -> Self:
        """Return the moments before the first row."""
        return cls(0.0, np.zeros(d), np.zeros(d))

    def absorb(self, design: Design, weights: Array, weight: float) -> RunningMoments:
        """Return the moments with some more rows.

        Parameters
        ----------
        design : Design
            The rows.
        weights : array, shape (n,)
            Their weights, which sum to one.
        weight : float
            What the weights were divided by, > 0: the number of rows where none are given.
        """
        mean, deviation = (double(part) for part in design.moments(weights))
        total = self.weight + weight
        share, shift = weight / total, mean - self.mean
        squares = self.squares + weight * deviation**2 + shift**2 * (self.weight * share)
        merged = self.mean + shift * share
        squares = np.where(squares > total * (_ROUNDING * merged) ** 2, squares, 0.0)
        return RunningMoments(total, merged, squares)

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of each column, shape (d,)."""
        return np.sqrt(self.squares / self.weight)

    def standardize(self, design: Design, *, scale: bool, intercept: bool) -> Standardized:
        """Return a design centred (with an intercept) and scaled (if asked) by these moments, not by its own.

        Raises
        ------
        InvalidInputError
            If the squares of the columns leave the range of their dtype.
        """
        like = design.zeros(1)
        xp = namespace(like)
        mean, deviation = (xp.astype(move(part, like), like.dtype) for part in (self.mean, self.deviation))
        centre, inverse, _ = scales(mean, deviation, scale=scale, centre=intercept)
        return Standardized(design, centre, inverse, intercept)
