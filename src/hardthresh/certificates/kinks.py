"""The subgradient of a loss with a kink that is nearest to zero: it vanishes at a minimum, as no gradient does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import lsq_linear

from hardthresh.arrays import double, move, namespace, to_numpy
from hardthresh.core.constraint import Constraint, coordinate_budget
from hardthresh.core.objective import Evaluation
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.losses import Loss
from hardthresh.objectives import LinearModel

_AT_TARGET = 1e-9
"""Share of the largest residual up to which a residual is taken for zero: fits by narrowed smoothing leave 1e-10 of the
loss."""
_ROUNDING = 16
"""Units in the last place of the largest target or prediction: rounding, such as that of single precision, puts a
prediction so far beside its target. Arbitrary."""


def model_with_kink(objective: object) -> LinearModel | None:
    """Return an objective if it is a linear model with a loss that has a kink at its targets, else None."""
    if not (isinstance(objective, LinearModel) and isinstance(objective.loss, Loss)):
        return None
    return None if objective.loss.kink() is None else objective


def with_least_subgradient(model: LinearModel, constraint: Constraint, at: Evaluation, support: Support) -> Evaluation:
    r"""Return an evaluation with the subgradient that is nearest to zero on a support.

    .. math:: \min_m \Bigl\| \sum_i s_i m_i x_{i, S} + \alpha w_S \Bigr\|, \qquad
              a \le m_i \le b \quad \text{where } u_i = y_i

    and m is the slope of the loss at all other rows. Coordinates at a bound are left out of S.

    Parameters
    ----------
    model : LinearModel
        f, with a loss whose slopes at the target are from a to b.
    constraint : Constraint
        The set.
    at : Evaluation
        f at a point of the set.
    support : Support
        The support of the point.

    Notes
    -----
    Cost: two data passes, and a least-squares problem with bounds, of |S| equations and as many unknowns as there are
    predictions equal to their targets.
    """
    assert isinstance(model.loss, Loss)
    slopes = model.loss.kink()
    assert slopes is not None
    budget, moving = coordinate_budget(constraint, tuple(at.point.shape)), to_numpy(support.indices)
    if budget is not None and budget.bounds is not None:
        lower, upper = budget.bounds[:, moving]
        there = to_numpy(at.point)[moving]
        moving = moving[(lower < there) & (there < upper)]
    y, u, weights = double(model.y), double(model.predict(at.point)), double(model.weights)
    r = np.abs(y - u)
    rounding = _ROUNDING * float(namespace(at.point).finfo(at.point.dtype).eps) * max(np.abs(y).max(), np.abs(u).max())
    at_target = np.flatnonzero((r <= max(_AT_TARGET * r.max(), rounding)) & (weights > 0))
    slope = model.loss.gradient(y, u)
    slope[at_target] = 0.0
    rest = double(model.design.pullback(_like(weights * slope, at))) + double(model.l2) * double(at.point)
    if moving.size and at_target.size:
        columns = double(model.columns(move(moving, at.point)).design.dense())[at_target]
        found = lsq_linear((weights[at_target, None] * columns).T, -rest[moving], slopes, lsq_solver="lsmr")
        slope[at_target] = found.x  # "lsmr", because the default costs the cube of the number of rows
        slope[np.setdiff1d(np.arange(y.size), at_target)] = 0.0
        rest = rest + double(model.design.pullback(_like(weights * slope, at)))
    return replace(at, gradient=_like(rest, at))


def _like(values: np.ndarray, at: Evaluation) -> Array:
    return namespace(at.point).astype(move(values, at.point), at.point.dtype)
