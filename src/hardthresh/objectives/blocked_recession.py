"""Directions along which f decreases indefinitely, of models of tables in blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hardthresh.core.objective import Evaluation, value_rounding

_BEYOND = 1e6
"""How many times a point it is asked whether f falls indefinitely; as far as `hardthresh.core.verdicts` asks."""
_BEYOND_BY_NEWTON = 10.0
"""How many times the length of a point it is asked whether f falls along a Newton step. A step along which losses fall
indefinitely is exact to the share that they still curve, 1e-9 where they are about to vanish: 100 times as far f would
rise by what is left. Where f has a minimum, it rises before."""
_NEGLIGIBLE = 1e-6
"""Share of f that a Newton step may gain at a point that is about to be a minimum. Arbitrary, above the tolerances."""
_FLAT = 1e-3
"""Share of the curvature at a point that is none. Arbitrary: that of losses about to vanish falls like their values."""


def falling_beyond(model: Any, at: Evaluation, rows: np.ndarray) -> np.ndarray | None:
    """Return a direction along which f decreases indefinitely, or None: that of the point and a Newton step are tried.

    The latter finds what the former does not: that some coefficients grow and others do not, as of a dummy of rows of
    one class beside columns that do not separate the classes.

    Parameters
    ----------
    model : BlockedModel or BlockedClasses
        f.
    at : Evaluation
        A point that is to be a minimiser on the rows.
    rows : array of int
        The rows of the point that it may move along; those with a ridge stay where they are.
    """
    unbound = rows[model.l2[rows] == 0]
    own = np.zeros(model.shape)
    own[unbound] = np.asarray(at.point, dtype=np.float64)[unbound]
    if not own[: model.units.mean.size].any():
        return None
    direction: np.ndarray = (_BEYOND * own).astype(model.units.dtype)
    if model.value(at.point + direction) < at.value:
        return direction
    inner = unbound[unbound < model.units.mean.size]
    if not np.isin(inner, model.members).all():
        return None
    step = np.zeros(model.shape)
    step[unbound] = _newton_step(model.columns(unbound), at, at.gradient[unbound])
    size, decrement = float(np.sqrt(np.sum(step**2))), -float(np.sum(at.gradient * step))
    if not size > 0 or decrement > _NEGLIGIBLE * abs(at.value):  # there is more to be gained nearer
        return None
    direction = (_BEYOND_BY_NEWTON * float(np.sqrt(np.sum(own**2))) / size * step).astype(model.units.dtype)
    gain, rounding = at.value - model.value(at.point + direction), value_rounding(model, at)
    return direction if gain > rounding or (gain >= -rounding and _flattens(model, at, direction)) else None


def _newton_step(few: Any, at: Evaluation, gradient: np.ndarray) -> np.ndarray:
    """Return a Newton step of some columns from a point of all: directions that curve least are not left out.

    Parameters
    ----------
    few : KeptModel or KeptClasses
        The model of these columns.
    at : Evaluation
        The point of all columns, of which those with a ridge may not be zero.
    gradient : array
        The gradient in these columns.
    """
    curved, axes = np.linalg.eigh(np.asarray(few.hessian(at), dtype=np.float64))
    curved = np.maximum(curved, np.finfo(np.float64).eps * curved[-1])
    step: np.ndarray = -axes @ ((axes.T @ np.asarray(gradient, dtype=np.float64).ravel()) / curved)
    return step.reshape(gradient.shape)


def _flattens(model: Any, at: Evaluation, direction: np.ndarray) -> bool:
    """Return whether f curves at a point and no more beyond it, as where losses vanish; else it may be flat in both."""
    here, beyond = (
        model.curvature_along(replace(at, point=point), direction) for point in (at.point, at.point + direction)
    )
    return bool(abs(beyond) < _FLAT * here)
