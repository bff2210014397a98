"""The minimiser on a few rows of coefficients, by Newton steps with the exact second derivatives."""

from __future__ import annotations

from math import inf

import numpy as np

from hardthresh.arrays import double, move, namespace, solve_semidefinite
from hardthresh.constraints import RowSparsity
from hardthresh.core.constraint import Projection
from hardthresh.core.objective import Evaluation, RowObjective, value_rounding
from hardthresh.core.typing import Array
from hardthresh.solvers.subspace import FULL_SOLVE, refine
from hardthresh.steps.line_search import ARMIJO

_ROUNDS, _HALVINGS = 25, 30
"""Limits of the Newton steps and of the halvings of one; see `subspace.FULL_SOLVE`."""
_LEFT_OUT = 1e-6
"""Share of the gradient that a Newton step may leave out; see `subspace`."""
_HOPEFUL = 2.0
"""A refit goes on if so many times the predicted decrease would lead below what is to be beaten: 38 classifiers have
the same answers with 1.2 to 4."""


def refit_rows(objective: RowObjective, w: Array, tol: float, below: float = inf) -> Evaluation:
    """Return an objective of few rows at its minimiser, centred.

    Parameters
    ----------
    objective : RowObjective
        f of these rows alone, convex.
    w : array, shape (s, q)
        Where to start.
    tol : float
        Stop when the predicted decrease of f is at most this, or rounding.
    below : float
        Give up where twice the predicted decrease would not lead below this value (heuristic).

    Notes
    -----
    A direction along which nothing changes, as that of adding a number to all classes, is left out of each step: it
    gets a curvature of its own, which does not matter because the gradient has no part in it. Cost of a step: the
    Hessian, :math:`n s^2 q^2 / 2` multiplications, and its inverse, :math:`(sq)^3`.
    """
    unit = np.eye(w.shape[1])
    unchanged = unit - double(objective.centre(move(unit, w)))
    at = objective.evaluate(objective.centre(w))
    enough = max(tol, value_rounding(objective, at))
    for _ in range(_ROUNDS):
        gradient = double(at.gradient)
        hessian = double(objective.hessian(at))
        if unchanged.any():
            mean = hessian.diagonal().reshape(gradient.shape).mean(axis=1)
            hessian = hessian + np.kron(np.diag(mean), unchanged)
        step = -np.asarray(solve_semidefinite(hessian, gradient.ravel())).reshape(gradient.shape)
        predicted = -0.5 * float(np.sum(gradient * step))
        rest = gradient.ravel() + hessian @ step.ravel()
        if np.linalg.norm(rest) > _LEFT_OUT * np.linalg.norm(gradient):
            after = _without_curvature(objective, at, enough)
            if after is None:
                break
            at = after
            continue
        if at.value - _HOPEFUL * predicted > below:
            break
        last = not predicted > enough
        after = _lower(objective, at, namespace(w).astype(move(step, w), w.dtype), predicted, 1 if last else _HALVINGS)
        if after is None:
            break
        at = after
        if last:
            break
    centred = objective.centre(at.point)
    return at if bool(namespace(w).all(centred == at.point)) else objective.evaluate(centred)


def _without_curvature(objective: RowObjective, at: Evaluation, enough: float) -> Evaluation | None:
    """Return f after the steps of `refine`, which go along the gradient where there is no curvature, if it is lower."""
    every = RowSparsity(0, free=tuple(range(objective.shape[0])))
    start = Projection(at.point, every.project(at.point).support)
    found = refine(objective, every, start, at.prediction, cg_iterations=0, rounds=FULL_SOLVE, tol=enough)
    if not found.value < at.value - enough:
        return None
    return objective.evaluate(found.projection.point, found.prediction)


def _lower(objective: RowObjective, at: Evaluation, step: Array, predicted: float, tries: int) -> Evaluation | None:
    """Return the first of the points at + t step, t = 1, 1/2, ..., with a sufficient decrease."""
    t = 1.0
    for _ in range(tries):
        after = objective.evaluate(at.point + t * step)
        if after.value <= at.value - 2.0 * ARMIJO * t * max(predicted, 0.0):
            return after
        t *= 0.5
    return None
