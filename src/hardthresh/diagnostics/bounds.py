"""Bounds of the restricted constants from both sides."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf
from typing import Any

import numpy as np

from hardthresh.arrays import all_finite, as_floating, namespace, to_numpy
from hardthresh.constraints import Sparsity
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import LinearObjective, require
from hardthresh.core.threads import serial_blas

from .enumeration import restricted_constants
from .restricted import restricted_condition

_TRIED = 20_000  # supports that are tried one by one: about a second for ten columns each


@dataclass(frozen=True, slots=True)
class RestrictedBounds:
    """Intervals of the restricted constants of an objective at a point; ``print`` it to read it.

    Attributes
    ----------
    smoothness : tuple of float
        The least and the largest value that the restricted smoothness can have.
    strong_convexity : tuple of float
        The same for the restricted strong convexity; 0 if it is within rounding.
    everywhere : bool
        Whether the Hessian is the same at every point, so that the intervals hold everywhere.
    """

    smoothness: tuple[float, float]
    strong_convexity: tuple[float, float]
    everywhere: bool

    @property
    def condition(self) -> tuple[float, float]:
        """The least and the largest value that the restricted condition number can have."""
        low, high = self.strong_convexity
        least = self.smoothness[0] / high if high > 0.0 else inf
        return least, self.smoothness[1] / low if low > 0.0 else inf

    def __str__(self) -> str:
        pairs = {
            "restricted smoothness": self.smoothness,
            "strong convexity": self.strong_convexity,
            "condition number": self.condition,
        }
        text = ", ".join(f"{name} in [{low:.4g}, {high:.4g}]" for name, (low, high) in pairs.items())
        return f"{text} ({'everywhere' if self.everywhere else 'at this point only'})"


@serial_blas()
def restricted_bounds(objective: Any, size: int, w: Any = None, *, trials: int = 20, seed: int = 0) -> RestrictedBounds:
    r"""Bound the restricted smoothness and strong convexity on supports of one size from both sides.

    .. math:: \alpha = \min_{|S| = m} \lambda_{\min}(H_{SS}), \qquad \beta = \max_{|S| = m} \lambda_{\max}(H_{SS})

    Parameters
    ----------
    objective : objective with ``hessian``
        Its Hessian is H, that of the *mean* loss.
    size : int
        m, from 1 to d. The theorems need 3k (`sparse_polyak_guarantee`), 4k (`accelerated_guarantee`) or 2k
        (`limited_guarantee`, which has no half in its loss: its constants are twice those of a linear model).
    w : array of the objective's shape, optional
        The point, if the Hessian depends on it. Default: the null model.
    trials, seed : int
        Random starts of `restricted_condition`, and their seed.

    Returns
    -------
    RestrictedBounds

    Raises
    ------
    CapabilityError
        If the objective has no Hessian as a matrix.
    InvalidInputError
        For a size that is not from 1 to d, a point of another shape or with NaN or infinity, or trials below 1.

    See Also
    --------
    restricted_constants : Exact values for small problems.

    Notes
    -----
    The inner ends of the intervals are the curvature along directions that `restricted_condition` finds. The outer ends
    are the better of two rigorous bounds: the extreme eigenvalues of all of H, and Gershgorin's discs with the m - 1
    largest entries of each row, :math:`H_{ii} \pm \sum |H_{ij}|`. If there are at most 20,000 supports, all are tried,
    and both ends are the exact value. Guarantee: the intervals contain the constants, up to the rounding of the dtype
    of the objective. Cost: the Hessian, its eigenvalues, :math:`O(d^3)`, and the search.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.objectives import LinearModel
    >>> X = np.random.default_rng(0).standard_normal((4000, 40))
    >>> found = restricted_bounds(LinearModel(X, X[:, 0]), 12)
    >>> [round(end, 2) for end in found.condition], found.everywhere
    ([1.37, 1.46], True)
    """
    require(objective, LinearObjective, by="restricted_bounds")
    zeros = objective.zeros()
    size = checked_integer("size", size, 1, int(np.prod(zeros.shape)), "the number of columns")
    point = objective.null_point() if w is None else as_floating(w, zeros, "w")
    if tuple(point.shape) != tuple(zeros.shape) or not all_finite(point):
        raise InvalidInputError(f"w must be finite, of shape {tuple(zeros.shape)}; got {format_value(w)}")
    everywhere = objective.traits.quadratic
    eps = float(namespace(point).finfo(point.dtype).eps)
    if comb(zeros.shape[0], size) <= _TRIED:
        exact = restricted_constants(objective, size, point)
        convexity = _rounded(exact.strong_convexity, exact.smoothness, size * eps)
        return RestrictedBounds((exact.smoothness,) * 2, (convexity,) * 2, everywhere)
    hessian = np.asarray(to_numpy(objective.hessian(objective.evaluate(point))), dtype=float)
    diagonal, others = np.diagonal(hessian), np.abs(hessian - np.diag(np.diagonal(hessian)))
    reach = np.sort(others, axis=1)[:, others.shape[1] - size + 1 :].sum(axis=1)
    eigenvalues = np.linalg.eigvalsh(hessian)
    largest = min(float(eigenvalues[-1]), float((diagonal + reach).max()))
    smallest = max(float(eigenvalues[0]), float((diagonal - reach).min()))
    smallest = _rounded(smallest, float(eigenvalues[-1]), len(eigenvalues) * eps)
    found = restricted_condition(objective, Sparsity(size), point, factor=1, trials=trials, seed=seed)
    # a curvature that was found may exceed a certain bound by rounding
    return RestrictedBounds(
        (min(found.smoothness, largest), largest), (smallest, max(found.strong_convexity, smallest)), everywhere
    )


def _rounded(value: float, largest: float, precision: float) -> float:
    """Return an eigenvalue of a matrix, 0 if it is within the rounding of the largest."""
    return 0.0 if abs(value) <= precision * largest else value
