"""The minimiser on a few rows of coefficients, by Newton steps with the exact second derivatives."""

from __future__ import annotations

import numpy as np

from hardthresh.arrays import double, move, namespace, solve_semidefinite
from hardthresh.core.objective import RowObjective, value_rounding
from hardthresh.core.typing import Array
from hardthresh.steps.line_search import ARMIJO

_ROUNDS, _HALVINGS = 25, 30
"""Limits of the Newton steps and of the halvings of one; see `subspace.FULL_SOLVE`."""


def refit_rows(objective: RowObjective, w: Array, tol: float) -> tuple[Array, Array | None]:
    """Return the minimiser of an objective of few rows, centred, and its prediction.

    Parameters
    ----------
    objective : RowObjective
        f of these rows alone, convex.
    w : array, shape (s, q)
        Where to start.
    tol : float
        Stop when the predicted decrease of f is at most this, or rounding.

    Notes
    -----
    A direction along which nothing changes, as that of adding a number to all classes, is left out of each step: it
    gets a curvature of its own, which does not matter because the gradient has no part in it. Cost of a step: the
    Hessian, :math:`n s^2 q^2 / 2` multiplications, and its factor, :math:`(sq)^3`.
    """
    w = objective.centre(w)
    unit = np.eye(w.shape[1])
    unchanged = unit - double(objective.centre(move(unit, w)))
    at = objective.evaluate(w)
    for _ in range(_ROUNDS):
        gradient = double(at.gradient)
        hessian = double(objective.hessian(at))
        if unchanged.any():
            mean = hessian.diagonal().reshape(gradient.shape).mean(axis=1)
            hessian = hessian + np.kron(np.diag(mean), unchanged)
        step = -np.asarray(solve_semidefinite(hessian, gradient.ravel())).reshape(gradient.shape)
        predicted = -0.5 * float(np.sum(gradient * step))
        last = not predicted > max(tol, value_rounding(objective, at))
        direction = namespace(w).astype(move(step, w), w.dtype)
        t = 1.0
        for _ in range(1 if last else _HALVINGS):
            point = objective.centre(at.point + t * direction)
            prediction = objective.predict(point)
            if objective.value(point, prediction) <= at.value - 2.0 * ARMIJO * t * max(predicted, 0.0):
                break
            t *= 0.5
        else:
            break
        at = objective.evaluate(point, prediction)
        if last:
            break
    return at.point, at.prediction
