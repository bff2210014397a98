"""The minimiser on a few rows of coefficients, by Newton steps with the exact second derivatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Self

import numpy as np
from scipy.linalg.lapack import dposv

from hardthresh.arrays import double, move, namespace, solve_semidefinite
from hardthresh.constraints import RowSparsity
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.constraint import Projection
from hardthresh.core.objective import UNITS, Evaluation, RowObjective, value_rounding
from hardthresh.core.typing import Array
from hardthresh.losses.vector import coefficient_hessian
from hardthresh.objectives import MultiOutputModel
from hardthresh.solvers.newton import LEFT_OUT
from hardthresh.solvers.refinement import FULL_SOLVE, refine
from hardthresh.steps.line_search import ARMIJO

_ROUNDS, _HALVINGS = 25, 30
"""Limits of the Newton steps and of the halvings of one; see `refinement.FULL_SOLVE`."""
_HOPEFUL = 2.0
"""A refit continues if so many times the predicted decrease would lead below what is to be beaten: 38 classifiers have
the same answers with 1.2 to 4."""
_PREDICTED, _RATE = 1e-6, 0.1
"""As for the refits of columns in folds; see `refits`: f is then within about 1e-10 of the minimum."""


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
    Hessian, :math:`n s^2 q^2 / 2` multiplications, and its inverse, :math:`(sq)^3`; for a quadratic, of which all
    outputs have the same Hessian, :math:`n s^2` and :math:`s^3`.
    """
    at = objective.evaluate(objective.centre(w))
    enough = max(tol, value_rounding(objective, at))
    for _ in range(_ROUNDS):
        gradient = double(at.gradient)
        step, rest = _newton_step(objective, at, gradient)
        predicted = -0.5 * float(np.sum(gradient * step))
        if np.linalg.norm(rest) > LEFT_OUT * np.linalg.norm(gradient):
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


def _newton_step(objective: RowObjective, at: Evaluation, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Newton step at a point with some gradient, and the part of the gradient that it leaves out."""
    if objective.traits.quadratic:
        gram = double(objective.column_products().hessian(at)) + np.diag(double(objective.row_ridge()))
        step = -np.asarray(solve_semidefinite(gram, gradient))
        return step, gradient + gram @ step
    hessian, unit = double(objective.hessian(at)), np.eye(gradient.shape[1])
    unchanged = unit - double(objective.centre(move(unit, at.point)))
    if unchanged.any():
        mean = hessian.diagonal().reshape(gradient.shape).mean(axis=1)
        hessian = hessian + np.kron(np.diag(mean), unchanged)
    step = -np.asarray(solve_semidefinite(hessian, gradient.ravel()))
    return step.reshape(gradient.shape), gradient + (hessian @ step).reshape(gradient.shape)


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


@dataclass(frozen=True, slots=True, eq=False)
class RowsToRefit:
    """A mean loss of several outputs on some columns, of which many supports are refitted.

    Attributes
    ----------
    X : array, shape (n, m)
        The columns.
    model : MultiOutputModel
        The loss, of arrays of NumPy, without a ridge.
    penalties : array, shape (m,)
        The ridge of each row, as a multiple of that of a refit.
    axes : array, shape (q, r)
        An orthonormal basis of the outputs, without directions along which no loss changes.
    hessian, products : array, shape (m, m) and (m, q), or None
        For a quadratic the Gram matrix of the columns, and the negative gradient at 0.
    """

    X: np.ndarray
    model: MultiOutputModel
    penalties: np.ndarray
    axes: np.ndarray
    hessian: np.ndarray | None = None
    products: np.ndarray | None = None

    @classmethod
    def of(cls, few: MultiOutputModel) -> Self:
        """Return the rows of a model of few columns, whose ridge is that of a refit with the ridge 1."""
        X, y, weights = (double(part) for part in (few.design.dense(), few.y, few.weights))
        offset = None if few.offset is None else double(few.offset)
        model = MultiOutputModel(X, y, few.loss, sample_weight=weights, offset=offset)
        rows = cls(X, model, double(few.row_ridge()), few.loss.axes(few.shape[1]))
        if not few.traits.quadratic:
            return rows
        slopes = model.mean_loss.slopes(model.predict(model.zeros()))
        return replace(rows, hessian=X.T @ (X * model.weights[:, None]), products=-X.T @ slopes)

    @without_overflow_warnings
    def minimiser(self, rows: np.ndarray, ridge: float, start: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the minimiser on some rows with a ridge, and whether Newton steps from a start have converged there.

        Cost of a step: a product of the columns with each other for each pair of outputs; for a quadratic none.
        """
        l2 = ridge * self.penalties[rows]
        if self.hessian is not None and self.products is not None:
            return solve_semidefinite(self.hessian[np.ix_(rows, rows)] + np.diag(l2), self.products[rows]), True
        X, mean_loss, offset, axes = self.X[:, rows], self.model.mean_loss, self.model.offset, self.axes

        def predict(coef: np.ndarray) -> np.ndarray:
            u: np.ndarray = (X @ coef) @ axes.T
            return u if offset is None else u + offset

        def penalty(coef: np.ndarray) -> float:
            return 0.5 * float(l2 @ np.sum(coef * coef, axis=1))

        coef, before = start @ axes, inf
        u = predict(coef)
        value, slopes = mean_loss.value_and_slopes(u)
        value += penalty(coef)
        for _ in range(_ROUNDS if coef.size else 0):
            gradient = X.T @ (slopes @ axes) + l2[:, None] * coef
            hessian = self._hessian(X, u)
            hessian.flat[:: coef.size + 1] += np.repeat(l2, axes.shape[1])
            step, failed = dposv(hessian, gradient.ravel())[1:]
            if failed:
                step = solve_semidefinite(hessian, gradient.ravel())
            slope, step = float(gradient.ravel() @ step), step.reshape(coef.shape)
            if not 0.0 < slope < inf:
                return coef @ axes.T, not gradient.any()
            predicted = 0.5 * slope
            last = bool(predicted <= min(_PREDICTED * abs(value), _RATE * before))
            t = 1.0
            for _ in range(_HALVINGS):
                further = coef - t * step
                there = predict(further)
                lower, further_slopes = mean_loss.value_and_slopes(there)
                lower += penalty(further)
                if lower <= value - ARMIJO * t * slope:
                    break
                t *= 0.5
            else:
                rounding = UNITS * np.finfo(float).eps * mean_loss.terms(u)
                return coef @ axes.T, last or bool(predicted <= rounding)
            coef, u, slopes, value, before = further, there, further_slopes, lower, predicted
            if last:
                return coef @ axes.T, True
        return coef @ axes.T, coef.size == 0

    def _hessian(self, X: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the second derivatives in the coefficients of all axes, row by row."""
        model, (q, r), n = self.model, self.axes.shape, X.shape[0]
        blocks = model.loss.blocks(model.y, u) * model.weights[:, None, None]
        outer = (self.axes[:, None, :, None] * self.axes[None, :, None, :]).reshape(q * q, r * r)
        along = blocks.reshape(n, q * q) @ outer
        hessian: np.ndarray = coefficient_hessian(along.reshape(n, r, r), lambda weights: (X * weights[:, None]).T @ X)
        return hessian
