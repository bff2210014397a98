"""The dispersion of targets about their expected values."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.result import Result

from .criterion import number_of_examples


def pearson_dispersion(result: Result, power: float) -> float:
    r"""Return Pearson's estimate of the dispersion of a model of log-means.

    .. math:: \frac{n}{n - p} \sum_i \omega_i \frac{(y_i - \mu_i)^2}{\mu_i^{\text{power}}}

    with p coefficients, free ones among them, and n examples; NaN where there are no more examples than coefficients.

    References
    ----------
    P. McCullagh and J. A. Nelder (1989), *Generalized Linear Models*, Section 8.3.
    """
    objective: Any = result.objective
    n, size = number_of_examples(objective), result.support.degrees_of_freedom
    if not n > size:
        return nan
    at = result.state.at if result.w is result.state.w else objective.evaluate(result.w)
    y, u, weights = double(objective.y), double(at.prediction), double(objective.weights)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = (y / np.exp(u) - 1) ** 2 * np.exp((2 - power) * u)  # no overflow in the squares of large means
        return float(n / (n - size) * np.average(ratio, weights=weights))
