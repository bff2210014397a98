"""The distance of a point from the minimum on its support, invariant to the scale of the columns."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import double, gather, solve_semidefinite
from hardthresh.core.constraint import Constraint
from hardthresh.core.lazy import to_host_together
from hardthresh.core.objective import LinearObjective
from hardthresh.core.state import State


def newton_decrement(objective: LinearObjective, constraint: Constraint, state: State) -> float:
    r"""Return the fall of f by a Newton step on the support of a state, to second order.

    .. math:: \tfrac{1}{2} g^\top H^{-1} g

    for the gradient g and the Hessian H on the part of the support where no bound holds. Where H is singular, the fall
    by the best step along one coordinate is added for the part of g that no combination of columns of H is. It is the
    same whatever the units of the columns, which a norm of the gradient is not.

    Parameters
    ----------
    objective : LinearObjective
        f.
    constraint : Constraint
        A set of coordinates.
    state : State
        The evaluated point.

    Returns
    -------
    float
        Infinite where f has a slope and no curvature along a coordinate, or derivatives are not finite.

    Notes
    -----
    Cost: the Hessian of the s columns of the support, and its inverse.
    """
    free = constraint.free_part(state.at.point, state.at.gradient, state.support).indices
    if free is None or not free.shape[0]:
        return 0.0
    derivatives = to_host_together(gather(state.at.gradient, free), objective.columns(free).hessian(state.at))
    slope, hessian = map(double, derivatives)
    if not (np.isfinite(slope).all() and np.isfinite(hessian).all()):
        return np.inf
    step = solve_semidefinite(hessian, slope)
    rest, own = slope - hessian @ step, np.diagonal(hessian)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(rest == 0.0, 0.0, rest * rest / own)
    return 0.5 * float(slope @ step) + 0.5 * float(np.max(alone))
