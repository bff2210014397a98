"""What a choice of columns is worth: the objective after one and the same refit for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
from competitors import RIDGE
from instances import Problem
from scipy.special import expit


def objective(problem: Problem, support: Any) -> float:
    """Return the refitted objective on some columns.

    Least squares: the residual sum of squares over the squared norm of y. Logistic: the mean log-loss plus half of 1e-6
    times the squared norm of the coefficients, intercept excluded.
    """
    columns = problem.X[:, np.asarray(support, dtype=np.intp)]
    if problem.loss == "squared":
        residual = problem.y - columns @ np.linalg.lstsq(columns, problem.y, rcond=None)[0]
        return float(residual @ residual) / float(problem.y @ problem.y)
    ridge = np.full(columns.shape[1], RIDGE)
    if problem.intercept:
        columns, ridge = np.column_stack([columns, np.ones(columns.shape[0])]), np.append(ridge, 0.0)
    return _logistic(columns, problem.y, ridge)


def _logistic(Z: Any, y: Any, ridge: Any) -> float:
    """Return the minimum of the ridged mean log-loss, by Newton steps that are halved until they descend."""
    b = np.zeros(Z.shape[1])
    value = _value(Z, y, ridge, b)
    for _ in range(200):
        p = expit(Z @ b)
        gradient = Z.T @ (p - y) / y.size + ridge * b
        hessian = (Z * (p * (1 - p) / y.size)[:, None]).T @ Z + np.diag(ridge + 1e-14)
        step = np.linalg.solve(hessian, gradient)
        slope = float(gradient @ step)
        if slope <= 1e-13:
            break
        length = 1.0
        while _value(Z, y, ridge, b - length * step) > value - 1e-4 * length * slope and length > 1e-9:
            length *= 0.5
        b = b - length * step
        value = _value(Z, y, ridge, b)
    return value


def _value(Z: Any, y: Any, ridge: Any, b: Any) -> float:
    u = Z @ b
    return float(np.mean(np.logaddexp(0.0, u) - y * u) + 0.5 * np.sum(ridge * b * b))
