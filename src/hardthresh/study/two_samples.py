"""Tests of whether two samples have the same distribution, or the same linear or logistic model."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, chi2_contingency, f, fisher_exact, ks_2samp

from hardthresh.core.typing import Array

from .models import logistic

FEW_VALUES = 10  # of a column that is tested as classes; arbitrary: with more the Kolmogorov-Smirnov test loses little
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


def chow(x1: Array, y1: Array, x2: Array, y2: Array) -> float:
    """Return the p-value of Chow's test that two samples have the same linear model."""
    together, (one, two) = _residual(np.vstack([x1, x2]), np.append(y1, y2)), (_residual(x1, y1), _residual(x2, y2))
    free, within = one[1] + two[1] - together[1], len(y1) + len(y2) - one[1] - two[1]
    apart = one[0] + two[0]
    if free <= 0 or within <= 0 or apart <= 1e-14 * together[0]:  # a share that is rounding
        return 1.0
    return float(f.sf((together[0] - apart) / free / (apart / within), free, within))


def _residual(x: Array, y: Array) -> tuple[float, int]:
    """Return the residual sum of squares with an intercept, and the number of independent columns."""
    design = np.column_stack([np.ones(len(y)), x])
    coef, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    return float(np.sum((y - design @ coef) ** 2)), int(rank)


def likelihood_ratio(x1: Array, y1: Array, x2: Array, y2: Array) -> float:
    """Return the p-value of the likelihood ratio test that two samples have the same logistic model."""
    apart = _deviance(x1, y1) + _deviance(x2, y2)
    ratio = max(0.0, _deviance(np.vstack([x1, x2]), np.append(y1, y2)) - apart)
    return float(chi2.sf(ratio, x1.shape[1] + 1))


def _deviance(x: Array, y: Array) -> float:
    coef, constant = logistic(x, y)
    linear = x @ coef + constant
    return 2.0 * float(np.sum(np.logaddexp(0.0, np.where(y == 1, -linear, linear))))
