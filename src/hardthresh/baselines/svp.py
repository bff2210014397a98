"""Singular value projection: iterative hard thresholding over matrices of low rank, with a fixed step."""

from __future__ import annotations

from typing import Any

from hardthresh.constraints import Rank
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.minimize import minimize
from hardthresh.core.objective import Objective, SmoothObjective, require
from hardthresh.core.result import Result
from hardthresh.core.stationarity import restricted_smoothness
from hardthresh.solvers import IHT
from hardthresh.steps import Fixed


def svp(
    f: Objective, rank: int, *, step: float | None = None, max_iter: int = 1000, tol: float = 1e-8, **settings: Any
) -> Result:
    r"""Minimise an objective over matrices of rank at most r by singular value projection.

    .. math:: W_{t+1} = P_r(W_t - \mu \nabla f(W_t))

    Parameters
    ----------
    f : Objective
        On matrices of shape (p, q), such as `MatrixRegression`.
    rank : int
        r >= 0.
    step : float, optional
        :math:`\mu > 0`, which multiplies the gradient of the *mean* loss. Default: the inverse of an estimate of the
        largest curvature (about 20 more data passes), which for matrix completion is the step 1 of the paper.
    max_iter, tol, **settings :
        As for `hardthresh.minimize`.

    Returns
    -------
    Result

    Raises
    ------
    InvalidInputError
        For a negative rank, a step that is not positive and finite, or an objective whose points are not matrices.
    CapabilityError
        Without a step, for an objective without curvature.

    Notes
    -----
    It is ``IHT(step=Fixed(step))`` over ``Rank(rank)``. Cost: a gradient and a truncated singular value decomposition
    per iteration. Guarantee: linear convergence to the minimum with step 1/(1 + delta) for measurements of a restricted
    isometry constant delta < 1/3 (Jain, Meka and Dhillon 2010, Theorem 1.1); with a step that is too long the run
    diverges, and ends with the status ``DIVERGED``.

    References
    ----------
    Jain, Meka and Dhillon (2010), *Guaranteed rank minimization via singular value projection*.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.objectives import MatrixRegression
    >>> A = np.random.default_rng(0).standard_normal((60, 4, 4))
    >>> truth = np.outer([1.0, 2.0, 0.0, -1.0], [1.0, 0.0, 1.0, 1.0])
    >>> run = svp(MatrixRegression(A, np.einsum("nij,ij->n", A, truth)), 1)
    >>> bool(np.allclose(run.w, truth, atol=1e-5))
    True
    """
    constraint = Rank(rank)
    constraint.check(tuple(f.shape))
    solver = IHT(step=Fixed(largest_step(f) if step is None else step))
    return minimize(f, constraint, solver, max_iter=max_iter, tol=tol, **settings)


def largest_step(f: Objective) -> float:
    """Return one over an estimate of the largest curvature at zero, of an objective on matrices."""
    require(f, SmoothObjective, by="svp without a step")
    assert isinstance(f, SmoothObjective)
    everything = Rank(min(f.shape))
    smoothness = restricted_smoothness(f, everything, f.evaluate(f.zeros()), iterations=20, factor=1)
    if not smoothness > 0.0:
        raise InvalidInputError("the objective has no curvature at zero; give the step")
    return 1.0 / smoothness
