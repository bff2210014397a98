"""Losses of predictions, and models of complete rows to compare a study with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from hardthresh.core.typing import Array

RIDGE = 1e4
"""C of logistic regression on columns of variance 1: coefficients are finite where the classes can be separated. All of
400 fits to such and other classes converge with 1e2 to 1e5, and not all with 1e6."""


LEAST_PROBABILITY = 1e-15
"""Probabilities are kept so far from 0 and 1, as the log loss would be infinite; scikit-learn's value is 2.2e-16."""


def losses(y: Array, predicted: Array, *, is_class: bool) -> Array:
    """Return the squared error of each prediction, or of a probability the log loss in nats."""
    if not is_class:
        return (y - predicted) ** 2
    p = np.clip(predicted, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def standardized(x: Array) -> tuple[Array, Array]:
    """Return the mean and the deviation of each column, 1 where it does not vary."""
    deviation = np.std(x, axis=0)
    return np.mean(x, axis=0), np.where(deviation > 0, deviation, 1.0)


def logistic(x: Array, y: Array) -> tuple[Array, float]:
    """Return the coefficients and the intercept of logistic regression on columns of variance 1."""
    model = LogisticRegression(C=RIDGE, solver="newton-cholesky").fit(x, y)
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


def fitted(X: Array, y: Array, columns: Array, *, is_class: bool) -> Callable[[Array], Array]:
    """Return a function that predicts rows, with a linear or logistic model of some columns; or the mean."""
    mean = float(np.mean(y))
    if not columns.size or np.ptp(y) == 0:
        return lambda rows: np.full(len(rows), mean)
    centre, scale = standardized(X[:, columns])
    x = (X[:, columns] - centre) / scale
    if is_class:
        coef, constant = logistic(x, y)
        return lambda rows: expit((rows[:, columns] - centre) / scale @ coef + constant)
    coef = np.linalg.lstsq(x, y - mean, rcond=None)[0]
    return lambda rows: (rows[:, columns] - centre) / scale @ coef + mean
