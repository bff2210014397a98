"""Exact restricted constants of small problems, by trying every support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb, inf
from typing import Any

import numpy as np

from hardthresh.arrays import all_finite, as_floating, to_numpy
from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.core.objective import LinearObjective, Objective, require
from hardthresh.core.threads import serial_blas

_MOST_SUPPORTS = 1_000_000  # arbitrary: one to three seconds
_ENTRIES_PER_CALL = 1 << 20  # of the matrices whose eigenvalues one call computes; arbitrary: 8 MiB


@dataclass(frozen=True, slots=True)
class RestrictedConstants:
    """The restricted constants of a quadratic on supports of one size, exactly; ``print`` it to read it.

    Attributes
    ----------
    smoothness : float
        beta, the largest eigenvalue on any support.
    strong_convexity : float
        alpha, the smallest eigenvalue on any support; only rounding if columns are dependent.
    subsets : int
        The number of supports.
    """

    smoothness: float
    strong_convexity: float
    subsets: int

    @property
    def condition(self) -> float:
        """Their ratio; inf if some support has a flat direction."""
        return self.smoothness / self.strong_convexity if self.strong_convexity > 0.0 else inf

    def __str__(self) -> str:
        return (
            f"restricted smoothness {self.smoothness:.5g}, strong convexity {self.strong_convexity:.5g}, condition "
            f"number {self.condition:.4g} ({self.subsets} supports)"
        )


@serial_blas()
def restricted_constants(problem: Any, k: int, w: Any = None) -> RestrictedConstants:
    r"""Return the exact restricted constants of a small problem, by the eigenvalues on every support of k columns.

    .. math:: \alpha = \min_{|S| = k} \lambda_{\min}(H_{SS}), \qquad \beta = \max_{|S| = k} \lambda_{\max}(H_{SS})

    Parameters
    ----------
    problem : array, shape (n, d), or objective with ``hessian``
        Defines H. *Units:** for a matrix X, :math:`H = X^\top X`, as in the paper. For an objective, H is the Hessian
        of the *mean* loss: for ``LinearModel(X, y)`` the constants are n times smaller, and refer to steps that
        multiply the gradient of the mean loss.
    k : int
        Size of the supports, 1 <= k <= d, with at most a million supports.
    w : array of the objective's shape, optional
        The point, if the Hessian of an objective depends on it. Default: the null model.

    Returns
    -------
    RestrictedConstants

    Raises
    ------
    InvalidInputError
        For a matrix that is not finite or of another shape, k out of range, or more than a million supports.
    CapabilityError
        If an objective has no Hessian as a matrix.

    See Also
    --------
    restricted_condition : One-sided estimates for problems of any size.

    Notes
    -----
    Guarantee: exact up to rounding, since every support is tried. Cost: the Hessian, d passes at most, and
    :math:`O(\binom{d}{k} k^3)`.

    References
    ----------
    Khanna and Kyrillidis (2018), *IHT dies hard*, Definition of restricted strong convexity and smoothness.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    >>> print(restricted_constants(X, 1))
    restricted smoothness 4, strong convexity 1, condition number 4 (3 supports)
    """
    hessian = _hessian(problem, w)
    d = hessian.shape[0]
    size = checked_integer("k", k, 1, d, "the number of columns")
    subsets = comb(d, size)
    if subsets > _MOST_SUPPORTS:
        raise InvalidInputError(
            f"{size} of {d} columns make {subsets} supports, more than the {_MOST_SUPPORTS} that are tried; "
            "restricted_condition estimates the constants"
        )
    smallest, largest = inf, -inf
    for chosen in _batches(d, size):
        values = np.linalg.eigvalsh(hessian[chosen[:, :, None], chosen[:, None, :]])
        smallest, largest = min(smallest, float(values[:, 0].min())), max(largest, float(values[:, -1].max()))
    return RestrictedConstants(largest, smallest, subsets)


def _hessian(problem: Any, w: Any) -> np.ndarray:
    if isinstance(problem, Objective):
        require(problem, LinearObjective, by="restricted_constants")
        assert isinstance(problem, LinearObjective)
        zeros = problem.zeros()
        point = problem.null_point() if w is None else as_floating(w, zeros, "w")
        if tuple(point.shape) != tuple(zeros.shape) or not all_finite(point):
            raise InvalidInputError(f"w must be finite, of shape {tuple(zeros.shape)}; got {format_value(w)}")
        return np.asarray(to_numpy(problem.hessian(problem.evaluate(point))), dtype=float)
    if w is not None:
        raise InvalidInputError("w is for objectives; X'X of a matrix is the same everywhere")
    X = to_numpy(as_floating(problem, name="X"))
    if X.ndim != 2 or X.shape[1] == 0 or not all_finite(X):
        raise InvalidInputError(f"X must be a finite matrix with columns, got shape {X.shape}")
    X = np.asarray(X, dtype=float)
    gram: np.ndarray = X.T @ X
    return gram


def _batches(d: int, size: int) -> Iterator[np.ndarray]:
    """Yield all supports, some thousands at a time, one per row."""
    supports = combinations(range(d), size)
    count = max(1, _ENTRIES_PER_CALL // (size * size))
    while batch := list(islice(supports, count)):
        yield np.array(batch)
