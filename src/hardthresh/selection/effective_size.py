"""The effective number of coefficients of a fit, which a ridge and dependent columns reduce."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hardthresh.arrays import double, namespace, to_numpy
from hardthresh.core.errors import CapabilityError
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.core.threads import serial_blas
from hardthresh.objectives import BlockedClasses, GramModel, LinearModel, MultiOutputModel
from hardthresh.objectives.blocked import Blocked


def degrees_of_freedom(result: Result) -> float:
    r"""Return the effective number of coefficients of a fit, which a ridge reduces.

    .. math:: p = \operatorname{tr} \bigl( H (H + \Lambda)^{-1} \bigr)
                = m - \sum_j \lambda_j \bigl[ (H + \Lambda)^{-1} \bigr]_{jj}

    for the m coefficients of the support, including free ones, the Hessian H of the mean loss in these coefficients at
    the fit (for least squares, their weighted Gram matrix divided by the sum of the weights) and the diagonal matrix
    :math:`\Lambda` of the ridges :math:`\lambda_j`. A coefficient without a ridge counts as one.

    Parameters
    ----------
    result : Result
        A fit.

    Returns
    -------
    float
        At least the number of coefficients without a ridge, and at most the number of all coefficients. Without a ridge
        it is the rank of the columns of the support, which may be smaller than their number if groups are chosen. For
        objectives other than `LinearModel` and `MultiOutputModel` it is the number of coefficients.

    Raises
    ------
    CapabilityError
        If the result was loaded from a file, which does not contain the data.

    Notes
    -----
    Cost: m/d of a data pass to gather columns, and their Gram matrix; m passes for a design without columns; nothing
    for single columns without a ridge. The search among supports is not accounted for. With q outputs, or C classes,
    each column has q, or C - 1, coefficients in H.

    References
    ----------
    Hastie, Tibshirani and Friedman (2009), *The Elements of Statistical Learning*, Section 3.4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.constraints import Sparsity
    >>> from hardthresh.objectives import LinearModel
    >>> from hardthresh.solvers import minimize
    >>> X = np.sqrt(4) * np.eye(4)  # the Hessian is the identity
    >>> degrees_of_freedom(minimize(LinearModel(X, np.arange(4.0), l2=1.0), Sparsity(2)))
    1.0
    """
    if result.objective is None:
        raise CapabilityError("degrees of freedom need the objective of the fit; a result that was loaded has none")
    return float(effective_size(result.objective, result))


_LINEAR = (LinearModel, MultiOutputModel, Blocked, BlockedClasses, GramModel)
"""Objectives that say what a ridge takes away."""


def coefficients(model: Any, count: float) -> float:
    """Return how many coefficients some coordinates stand for: those of C classes are C - 1 for each feature."""
    if not isinstance(model, _LINEAR):
        return count
    return float(count / prod(model.shape[1:]) * model.coefficients_per_row)


def evaluation(model: Any, result: Result) -> Evaluation:
    """Return the evaluated point of a result, which of a run that ended badly is not its last one."""
    at: Evaluation = result.state.at if result.w is result.state.w else model.evaluate(result.w)
    return at


@serial_blas()
def effective_size(model: Any, result: Result) -> float:
    """Return the effective number of fitted coefficients."""
    count = coefficients(model, result.support.degrees_of_freedom)
    if not isinstance(model, _LINEAR) or count == 0:
        return count
    rows = model.rows_of(result.support)
    if not double(model.row_ridge())[to_numpy(rows)].any():
        return count - _dependent(model, result, rows) * count / int(rows.shape[0])
    return count - model.shrinkage(evaluation(model, result), rows)


def _dependent(model: Any, result: Result, chosen: Any) -> int:
    """Return how many columns of chosen groups are combinations of others.

    Columns that are chosen one by one are independent: one that others replace lowers nothing.
    """
    constraint = result.constraint
    structure = None if constraint is None else constraint.structure(tuple(result.w.shape))
    if structure is None or isinstance(model, Blocked | BlockedClasses | GramModel) or not model.design.has_columns:
        return 0
    if chosen.shape[0] - len(getattr(constraint, "free", ())) <= structure.selected(result.support):
        return 0
    weights, few = model.weights, model.design.columns(chosen)
    repeats = few.shape[0] // weights.shape[0]  # ordered classes have two linear predictors for each row
    gram = few.gram(namespace(weights).concat([weights] * repeats))
    diagonal = np.diagonal(double(gram))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values = np.linalg.eigvalsh(double(gram) * scale * scale[:, None])
    cut = scale.size * float(namespace(gram).finfo(gram.dtype).eps) * values[-1]
    return int(np.count_nonzero(values <= cut))
