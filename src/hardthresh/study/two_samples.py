"""Tests of whether two samples have the same distribution, or the same linear or logistic model."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, chi2_contingency, f, fisher_exact, ks_2samp

from hardthresh.core.typing import Array

from .models import least_squares, logistic

FEW_VALUES = 10  # of a column that is tested as classes; arbitrary: with more the Kolmogorov-Smirnov test loses little
_ROUNDING = 1e-6  # of the eigenvalues of projections, which are 0 or 1; arbitrary: far above rounding, far below 1
_FEWEST_OF_LEVEL = 10  # examples; rarer values are taken together, so that 5 are expected in each half


def two_samples(early: Array, late: Array) -> float:
    """Return the p-value of a test of whether two samples have one distribution."""
    values = np.unique(np.concatenate([early, late]))
    if len(values) > FEW_VALUES:
        return float(ks_2samp(early, late, method="auto").pvalue)
    table = np.array([[np.count_nonzero(side == value) for value in values] for side in (early, late)])
    if len(values) == 2:
        return float(fisher_exact(table)[1])
    table = _pooled(table)
    return float(chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


def _pooled(table: Array) -> Array:
    """Return counts in which each rare value is taken together with the next one, or the last with the one before."""
    columns: list[Array] = []
    for column in table.T:
        if columns and columns[-1].sum() < _FEWEST_OF_LEVEL:
            columns[-1] = columns[-1] + column
        else:
            columns.append(column)
    if len(columns) > 1 and columns[-1].sum() < _FEWEST_OF_LEVEL:
        columns[-2:] = [columns[-2] + columns[-1]]
    return np.column_stack(columns)


def wald(x1: Array, y1: Array, x2: Array, y2: Array) -> float:
    """Return the p-value of a Wald test that two samples have the same linear model, for any variances of the errors.

    For q coefficients b with the covariances V by HC3, (b1 - b2)' (V1 + V2)^-1 (b1 - b2) / q has nearly an F
    distribution with q and n - 2 q degrees of freedom. Where columns are collinear, what both samples determine is
    compared.
    """
    one, two = least_squares(x1, y1), least_squares(x2, y2)
    eigenvalues, vectors = np.linalg.eigh(one.space + two.space)
    common = vectors[:, eigenvalues > 2 - _ROUNDING]  # where both projections are the identity
    size = common.shape[1]
    freedom = len(y1) + len(y2) - 2 * size
    if freedom <= 0 or not size:
        return 1.0
    difference = common.T @ (one.coef - two.coef)
    covariance = common.T @ (one.covariance + two.covariance) @ common
    return float(f.sf(difference @ np.linalg.solve(covariance, difference) / size, size, freedom))


def likelihood_ratio(x1: Array, y1: Array, x2: Array, y2: Array) -> float:
    """Return the p-value of the likelihood ratio test that two samples have the same logistic model."""
    apart = _deviance(x1, y1) + _deviance(x2, y2)
    ratio = max(0.0, _deviance(np.vstack([x1, x2]), np.append(y1, y2)) - apart)
    return float(chi2.sf(ratio, x1.shape[1] + 1))


def _deviance(x: Array, y: Array) -> float:
    coef, constant = logistic(x, y)
    linear = x @ coef + constant
    return 2.0 * float(np.sum(np.logaddexp(0.0, np.where(y == 1, -linear, linear))))
