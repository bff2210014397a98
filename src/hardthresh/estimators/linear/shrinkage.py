"""Whether a ridge is so large that no feature is chosen."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import double
from hardthresh.certificates.kinks import model_with_kink
from hardthresh.core.constraint import CoordinateBudget
from hardthresh.core.objective import value_rounding
from hardthresh.core.support import Support
from hardthresh.core.threads import serial_blas
from hardthresh.core.typing import Array

from .problem import Problem


@serial_blas()
def largest_ridge(problem: Problem, w: Array, support: Support, tol: float) -> float | None:
    r"""Return a ridge up to which features enter a model that is empty because its ridge is larger.

    A feature with the gradient g and the second derivative h of the loss lowers the quadratic model of f by
    :math:`g^2 / (2 (h + \alpha))`. The ridge is the reason of an empty model where this is negligible for all of them,
    and not for :math:`\alpha = 0`. Of losses with a kink, which have no h, nothing is known.

    Parameters
    ----------
    problem : Problem
        The problem that was solved.
    w, support :
        Its solution, without any chosen feature.
    tol : float
        The share of f that is negligible.

    Returns
    -------
    float or None
        None where the ridge is not the reason. By the quadratic model: exact for the squared loss.

    Notes
    -----
    Cost: two to three data passes.
    """
    if model_with_kink(problem.objective) is not None:
        return None
    examined = problem.examined(w, support)
    f, at = examined.objective, examined.objective.evaluate(examined.point)
    gradient = double(at.gradient)
    structure = examined.constraint.structure(gradient.shape)
    if isinstance(structure, CoordinateBudget) and structure.bounds is not None:
        lower, upper = structure.bounds
        gradient = np.where(np.where(gradient < 0.0, upper, lower) == 0.0, 0.0, gradient)
    plain = problem.with_ridge(0.0).examined(w, support).objective
    curvature, halves = double(plain.hessian_diag(at)), 0.5 * gradient**2
    negligible = max(tol * abs(at.value), value_rounding(f, at))
    if negligible <= 0.0 or np.any(halves > negligible * double(f.hessian_diag(at))):
        return None
    largest = float(np.max(halves / negligible - curvature, initial=0.0))
    return largest if largest > 0.0 else None
