"""Points of few non-zeros on a device: what is computed from these columns alone, without asking where they are.

NumPy looks for the non-zeros of a point, which costs nothing. On a GPU the shape of what is found depends on the data,
so the host would wait. There a bound of their number is enough: as many entries are taken, zeros among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from array_api_compat import is_torch_array

from .constraint import Constraint
from .objective import Evaluation, LinearObjective, Objective, SmoothObjective
from .typing import Array, is_numpy, library


def first_true(mask: Array, count: int) -> Array:
    """Return the increasing coordinates where a vector is true, if it is known to be so `count` times.

    Parameters
    ----------
    mask : array of bool, shape (n,)
        The vector.
    count : int
        How often it is true, from 0 to n.

    Returns
    -------
    array of int, shape (count,)
    """
    xp = library(mask)
    places = xp.cumulative_sum(xp.astype(mask, xp.int64))
    numbers = xp.cumulative_sum(xp.ones_like(places[:count]))  # 1, 2, ..., on the device of the mask
    return xp.searchsorted(places, numbers)


def filled(mask: Array, count: int) -> Array:
    """Return so many increasing coordinates of a vector on a device, all where it is true among them.

    Parameters
    ----------
    mask : array of bool, shape (n,)
        The vector, which is true at most `count` times.
    count : int
        How many coordinates, from 1 to n.

    Returns
    -------
    array of int, shape (count,)
    """
    xp = library(mask)
    if is_torch_array(mask):  # four operations instead of fourteen
        return xp.sort(xp.topk(xp.astype(mask, xp.int8), count, sorted=False).indices)
    others = xp.cumulative_sum(xp.astype(~mask, xp.int64))
    return first_true(mask | (others <= count - (mask.shape[0] - others[-1])), count)


def take(x: Array, indices: Array, axis: int = 0) -> Array:
    """Return entries of an array along an axis, as ``take`` does in any library, by indices from 0 on.

    For torch array_api_compat sees to negative ones too, which takes three more operations.
    """
    xp = library(x)
    return xp.index_select(x, axis, indices) if is_torch_array(x) else xp.take(x, indices, axis=axis)


def predict_few(objective: Objective, constraint: Constraint, w: Array, supports: int = 1) -> Array | None:
    """Return the predictions at a point of few non-zeros.

    Parameters
    ----------
    objective : Objective
        Of a vector, or of anything else if `at_most` is None.
    constraint : Constraint
        The set, which says how few.
    w : array of the objective's shape
        A point on the union of some supports of the set.
    supports : int
        How many supports; 0 if the point is on none.

    Returns
    -------
    array or None
    """
    indices = None if is_numpy(w) else _columns(objective, constraint, w, supports)
    if indices is None:
        return objective.predict(w)
    assert isinstance(objective, LinearObjective)
    return objective.columns(indices).predict(take(w, indices))


def predict_together(objective: LinearObjective, points: Sequence[Array]) -> list[Array]:
    """Return the predictions at several points of few non-zeros; a device is asked once where any of them has one."""
    if is_numpy(points[0]):
        return [objective.predict(w) for w in points]
    xp = library(points[0])
    (indices,) = xp.nonzero(xp.any(xp.stack(list(points)) != 0, axis=0))
    few = objective.columns(indices)
    return [few.predict(take(w, indices)) for w in points]


def curvature_along_few(
    objective: SmoothObjective, constraint: Constraint, at: Evaluation, direction: Array, supports: int = 1
) -> float:
    """Return direction' H direction for a direction on the union of some supports; see `predict_few`."""
    indices = None if is_numpy(direction) else _columns(objective, constraint, direction, supports)
    if indices is None or at.prediction is None:
        return objective.curvature_along(at, direction)
    assert isinstance(objective, LinearObjective)
    # the second derivatives of a model with predictions depend on these alone
    return objective.columns(indices).curvature_along(at, take(direction, indices))


def _columns(objective: Objective, constraint: Constraint, w: Array, supports: int) -> Array | None:
    """Return the columns of a point on a device and some more, as many as it may need; None if these are most."""
    at_most = constraint.at_most(tuple(w.shape)) if supports else None
    if at_most is None or 2 * supports * at_most >= w.shape[0] or not isinstance(objective, LinearObjective):
        return None
    return filled(w != 0, supports * at_most)
