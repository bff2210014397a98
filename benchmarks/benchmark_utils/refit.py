"""What a choice of columns is worth: the objective after one and the same refit for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np

from .problem import Problem


def objective(problem: Problem, support: Any) -> float:
    """Return the refitted objective on some columns.

    Least squares, also of several outputs: the residual sum of squares over the squared norm of y. Classes: the mean
    log-loss plus half of the ridge times the squared norm of the coefficients, intercept excluded.
    """
    columns = problem.X[:, np.asarray(support, dtype=np.intp)]
    columns = np.asarray(columns.toarray() if problem.is_sparse else columns, dtype=np.float64)
    penalty = np.full(columns.shape[1], problem.ridge if problem.loss in ("logistic", "multinomial") else 0.0)
    if problem.intercept:
        columns, penalty = np.column_stack([columns, np.ones(columns.shape[0])]), np.append(penalty, 0.0)
    if problem.loss == "logistic":
        return _logistic(columns, problem.y, penalty)
    if problem.loss == "multinomial":
        return _multinomial(columns, problem.y.astype(int), penalty)
    residual = problem.y - columns @ np.linalg.lstsq(columns, problem.y, rcond=None)[0]
    return float(np.sum(residual * residual)) / float(np.sum(problem.y * problem.y))


def recall(support: Any, truth: Any) -> float:
    """Return the share of the planted columns that were found."""
    return float(np.isin(truth, support).mean())


def f1(support: Any, truth: Any) -> float:
    """Return the harmonic mean of precision and recall."""
    return 2.0 * int(np.isin(truth, support).sum()) / (len(support) + len(truth))


def _logistic(Z: Any, y: Any, penalty: Any) -> float:
    """Return the minimum of the ridged mean log-loss, by Newton steps that are halved until they descend."""
    b = np.zeros(Z.shape[1])
    value = _value(Z, y, penalty, b)
    for _ in range(200):
        p = 0.5 * (1.0 + np.tanh(0.5 * (Z @ b)))
        gradient = Z.T @ (p - y) / y.size + penalty * b
        hessian = (Z * (p * (1 - p) / y.size)[:, None]).T @ Z + np.diag(penalty + 1e-14)
        step = np.linalg.solve(hessian, gradient)
        slope = float(gradient @ step)
        if slope <= 1e-13:
            break
        length = 1.0
        while _value(Z, y, penalty, b - length * step) > value - 1e-4 * length * slope and length > 1e-9:
            length *= 0.5
        b = b - length * step
        value = _value(Z, y, penalty, b)
    return value


def _multinomial(Z: Any, y: Any, penalty: Any) -> float:
    """Return the minimum of the ridged mean log-loss of several classes; coefficients that add up to 0 are enough."""
    classes = int(y.max()) + 1
    targets, ridge = np.eye(classes)[y], np.repeat(penalty + 1e-12, classes)

    def value(b: Any) -> float:
        u = Z @ b.reshape(-1, classes)
        losses = np.logaddexp.reduce(u, axis=1) - np.sum(u * targets, axis=1)
        return float(np.mean(losses) + 0.5 * np.sum(ridge * b * b))

    b = np.zeros(Z.shape[1] * classes)
    for _ in range(200):
        u = Z @ b.reshape(-1, classes)
        p = np.exp(u - np.logaddexp.reduce(u, axis=1)[:, None])
        gradient = (Z.T @ (p - targets) / y.size).ravel() + ridge * b
        blocks = p[:, :, None] * (np.eye(classes) - p[:, None, :]) / y.size
        hessian = np.einsum("ij,iab,ik->jakb", Z, blocks, Z, optimize=True).reshape(b.size, b.size) + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        slope, length = float(gradient @ step), 1.0
        if slope <= 1e-15:
            break
        while value(b - length * step) > value(b) - 1e-4 * length * slope and length > 1e-9:
            length *= 0.5
        b = b - length * step
    return value(b)


def _value(Z: Any, y: Any, penalty: Any, b: Any) -> float:
    u = Z @ b
    return float(np.mean(np.logaddexp(0.0, u) - y * u) + 0.5 * np.sum(penalty * b * b))
