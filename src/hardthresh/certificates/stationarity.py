"""First-order conditions of the result of a run."""

from __future__ import annotations

from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.core.objective import Objective
from hardthresh.core.result import Result
from hardthresh.core.stationarity import Certificate, certify_point

_SAME_VALUE = 1e-6
"""The largest relative difference of two values of one objective: rounding in float32 is below it. Otherwise arbitrary,
because other data change the value far more."""


def certify(result: Result, objective: Objective | None = None) -> Certificate:
    """Return the first-order certificate of the result of a run.

    Parameters
    ----------
    result : Result
        The result of `minimize`.
    objective : Objective, optional
        The objective of the run. Required if the result was loaded from a file, which does not contain the data.

    Returns
    -------
    Certificate

    Raises
    ------
    HardThreshError
        If the result was loaded from a file and no objective is given.
    InvalidInputError
        If the objective is not that of the run, that is, if its shape or its value at the result differs.

    Notes
    -----
    Cost: one data pass, and about 20 more to estimate the smoothness if the objective has curvature.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import minimize
    >>> from hardthresh.certificates import certify
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> certify(minimize(LinearModel(np.eye(3), np.array([3.0, 1.0, 2.0])), Sparsity(2))).is_stationary()
    True
    """
    found = result.objective if objective is None else objective
    if found is None or result.constraint is None:
        raise HardThreshError(
            "this result was loaded from a file, which does not contain the data; call certify(result, objective) with "
            "the objective of the run"
        )
    if tuple(found.shape) != tuple(result.w.shape):
        raise InvalidInputError(
            f"the objective has points of shape {tuple(found.shape)}, the answer has shape {tuple(result.w.shape)}"
        )
    at, trace = found.evaluate(result.w), result.state.trace
    scale = max(abs(result.value), abs(trace.null_value - result.value))
    if objective is not None and result.state.exact and not abs(at.value - result.value) <= _SAME_VALUE * scale:
        raise InvalidInputError(
            f"this is not the objective of the run: its value at the answer is {at.value:.6g} instead of "
            f"{result.value:.6g}; pass the same data and settings as in the run"
        )
    return certify_point(found, result.constraint, at, result.support, trace)
