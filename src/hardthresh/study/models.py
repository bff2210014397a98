"""Losses of predictions, and models of complete rows to compare a study with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from hardthresh.core.typing import Array

RIDGE = 1e4
"""C of logistic regression on columns of variance 1: coefficients are finite where the classes can be separated. All of
400 fits to such and other classes converge with 1e2 to 1e5, and not all with 1e6."""
LEAST_PROBABILITY = 1e-15
"""Probabilities are kept so far from 0 and 1, as the log loss would be infinite; scikit-learn's value is 2.2e-16."""
PER_COEFFICIENT = 5
"""Examples for each coefficient that a test of a linear model needs: with 5 to 100 the Wald test by HC3 rejects 1 to 7
% of equal models at the level of 5 %, with normal, heavy-tailed and skewed values, and equal and unequal variances."""
FEWEST_OTHER = 10
"""Examples that must differ from the most frequent value of a column whose coefficient is tested, as HC3 estimates the
variance from these few. At the level of 5 %, the Wald test rejects 4 to 7 % of equal models with 10 such examples each,
and 27 to 78 % with one or two; a coefficient of 0 is rejected in 4 to 6 % with 10, and in 5 to 9 % with 5."""
_ROUNDING = 1e-12  # smaller residuals are raised to this share of the largest target, as they are rounding


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


class LeastSquares(NamedTuple):
    """Coefficients of linear regression, the intercept first, and how well they are known.

    Attributes
    ----------
    coef : array, shape (d + 1,)
        The coefficients, of least norm where columns are collinear.
    covariance : array, shape (d + 1, d + 1)
        Their covariance.
    space : array, shape (d + 1, d + 1)
        The projection on the sums of coefficients that the rows determine: the identity unless columns are collinear.
    """

    coef: Array
    covariance: Array
    space: Array


def least_squares(x: Array, y: Array) -> LeastSquares:
    """Return linear regression, with the covariance HC3 of MacKinnon and White (1985).

    It holds for any variances of the errors, in large samples.
    """
    design = np.column_stack([np.ones(len(y)), x])
    inverse = np.linalg.pinv(design, rcond=max(design.shape) * np.finfo(np.float64).eps)
    coef = inverse @ y
    leverage = np.einsum("ij,ji->i", design, inverse)
    residual = np.abs(y - design @ coef) / np.maximum(1e-12, 1 - leverage)  # an example may decide a coefficient alone
    weighted = inverse * np.maximum(residual, _ROUNDING * (np.max(np.abs(y)) or 1.0))
    return LeastSquares(coef, weighted @ weighted.T, inverse @ design)


def varied(x: Array) -> Array:
    """Return for each column whether enough examples differ from its most frequent value to test its coefficient."""
    most_frequent = [np.unique(column, return_counts=True)[1].max(initial=0) for column in x.T]
    return len(x) - np.array(most_frequent, dtype=np.intp) >= FEWEST_OTHER


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
