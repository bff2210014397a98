"""The diagonal of the perspective relaxation, moved to where the bound is higher."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from .relaxation import Relaxed

_SOFT = 0.03
"""The eigenvectors count by the inverse distance of their eigenvalues from this share below the smallest one: where
several meet, the gradient of one of them would be that by chance. The searches of five problems of the benchmark have
6,300, 6,500, 6,500 and 7,000 nodes with 0.02, 0.05, 0.1 and 0.2."""

_LONGEST = 0.5
"""How far a step moves the logarithm of an entry at most; between 0.3 and 1 the searches have about as many nodes."""


def moved_shape(matrix: np.ndarray, shape: np.ndarray, curvature: float, found: Relaxed, upper: float) -> np.ndarray:
    r"""Return the shape of a diagonal for which the bound of the perspective relaxation should be higher.

    The diagonal is :math:`D = \mu(\sigma) \, \sigma`, for the shape :math:`\sigma` and the smallest eigenvalue
    :math:`\mu` of :math:`\Sigma^{-1/2} M \Sigma^{-1/2}`. The bound is a concave function of D, with the gradient
    :math:`\tfrac{1}{2} x_j^2 (1 / z_j - 1)` at the solution x, z of the relaxation, and :math:`\mu` has the gradient
    :math:`-\mu u_j^2`, for an eigenvector with :math:`u^\top \Sigma u = 1`. A step along the gradient in
    :math:`\log \sigma` moves the diagonal to the columns that the relaxation chooses in part. Its length is that of
    Polyak, with the best value known as the target.

    Parameters
    ----------
    matrix : array, shape (m, m)
        :math:`\Sigma^{-1/2} M \Sigma^{-1/2}`.
    shape : array, shape (m,)
        :math:`\sigma`, positive.
    curvature : float
        :math:`\mu > 0`.
    found : Relaxed
        The solution of the relaxation.
    upper : float
        The best value known.

    Notes
    -----
    Heuristic: any shape gives a valid bound. Cost: :math:`O(m^3)`. The best shape solves the semidefinite program of
    Dong, Chen and Linderoth (2015), *Regularization vs. relaxation: a conic optimization perspective of statistical
    variable selection*.
    """
    shifted = matrix.copy()
    shifted[np.diag_indices(shape.size)] -= (1.0 - _SOFT) * curvature
    factor, failed = dpotrf(shifted, lower=1)
    if failed:
        return shape
    weights = dpotri(factor, lower=1)[0].diagonal()
    slope = np.zeros(shape.size)
    slope[found.active] = 0.5 * found.x**2 * (1.0 / found.shares - 1.0)
    gradient = curvature * (slope * shape - float(slope @ shape) / weights.sum() * weights)
    square = float(gradient @ gradient)
    if not square > 0:
        return shape
    step = (upper - found.lower) / square * gradient
    moved: np.ndarray = shape * np.exp(step * min(1.0, _LONGEST / float(np.abs(step).max())))
    return moved
