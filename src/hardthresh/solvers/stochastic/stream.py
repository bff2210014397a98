"""The state of a stream of batches: an average of their gradients, and running moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardthresh.core.schema import stored
from hardthresh.core.typing import Array
from hardthresh.designs import RunningMoments


@stored("part/averaged")
@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """A mean of arrays, weighted.

    Attributes
    ----------
    mean : array
        The mean.
    weight : float
        The sum of the weights, older ones reduced.

    Examples
    --------
    >>> import numpy as np
    >>> Averaged(np.array([1.0]), 1.0).and_then(np.array([4.0]), share=0.5).mean
    array([3.])
    """

    mean: Array
    weight: float

    def and_then(self, new: Array, share: float, weight: float = 1.0) -> Averaged:
        """Return the mean with one array more, after all weights so far were multiplied by a share."""
        total = share * self.weight + weight
        return Averaged(self.mean + (weight / total) * (new - self.mean), total)


@stored("state/stream")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamState:
    """All that is known of the batches so far, in O(d) numbers of double precision; frozen and picklable.

    Coefficients and gradients are on the scale of the data, so that later batches may change the scales of columns.

    Attributes
    ----------
    coef : array, shape (d,) or (n_outputs, d)
        The coefficients.
    intercept : array, shape () or (n_outputs,)
        The intercept.
    gradients : Averaged
        The average of the gradients, of the shape of the points of the objective: in the coefficients of the columns
        less their means, and last in the intercept.
    moments : RunningMoments
        The means and variances of the columns.
    level : float
        The prediction from which intercepts are counted: of the first batch, as of a fit to it.
    parameter : Averaged or None
        The logarithm of a parameter of the loss that is estimated with the coefficients; None without one.
    batches, rows : int
        How many there were.
    """

    coef: np.ndarray
    intercept: np.ndarray
    gradients: Averaged
    moments: RunningMoments
    level: float
    parameter: Averaged | None = None
    batches: int
    rows: int
