"""Whether a model predicts held-out rows better than the model without features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_CLEAR, _LEVEL = 3.0, 0.03
"""A model is better than none if its held-out gain is more than its standard error and the null model is rejected at
this level, or if its gain is more than so many standard errors. Of 400 permuted targets 96 % then have an empty model,
and 95 % with the level .05; the mean relative risk on the choosing half of the benchmark of prediction is .499 and
.498. With standard errors alone it takes 2.25 of them for 95 %, and the risk is .549."""


@dataclass(frozen=True, slots=True)
class NullComparison:
    """A comparison of a model with the one without features.

    Attributes
    ----------
    found : bool
        Whether the model is better.
    p_value : float
        That of the permutation test; NaN if it was not needed.
    """

    found: bool
    p_value: float


def compare_with_none(gain: float, error: float, p_value: Callable[[], float], *, clear: bool) -> NullComparison:
    """Return whether the gain of a model over the model without features is more than chance gives.

    Parameters
    ----------
    gain, error : float
        The mean gain in held-out score, and its standard error.
    p_value : callable
        Computes the p-value of a test that there is nothing to find.
    clear : bool
        Whether a gain of three standard errors replaces the test. Over a few folds, or rows of unequal weights, such
        gains are not rare.
    """
    if not gain > error:
        return NullComparison(False, np.nan)
    if clear and gain > _CLEAR * error:
        return NullComparison(True, np.nan)
    value = p_value()
    return NullComparison(value <= _LEVEL, value)


def is_clear(gain: float, error: float) -> bool:
    """Return whether a gain is so many standard errors that no test is needed."""
    return gain > _CLEAR * error


def mean_over_rows(gains: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the weighted mean of the gains on held-out rows, and its standard error.

    Parameters
    ----------
    gains : array, shape (n_held_out,)
        The gain on each held-out row.
    rows : array of int, shape (n_held_out,)
        Which row it is; repeated cross-validation holds each out several times, and its mean gain counts.
    weights : array, shape (n_rows,)
        The weights of all rows. If they are counts, the standard error is that of so many rows; else it is valid for
        weights of any kind, and does not change with their scale.
    """
    count = np.bincount(rows, minlength=weights.size)
    there = count > 0
    size = float(np.max(np.abs(gains))) or 1.0  # no overflow in the squares of large gains
    per_row = np.bincount(rows, gains / size, minlength=weights.size)[there] / count[there]
    weights = weights[there]
    mean = float(np.average(per_row, weights=weights))
    squares, n = (per_row - mean) ** 2, rows_of_weight(weights)
    if are_counts(weights):
        variance = np.average(squares, weights=weights) / max(n - 1, 1)
    else:
        variance = (weights / weights.sum()) ** 2 @ squares * n / max(n - 1, 1)
    return size * mean, size * float(np.sqrt(variance))


def are_counts(weights: np.ndarray) -> bool:
    """Return whether weights are whole numbers, as those that say how often a row was seen."""
    return bool(np.all(weights == np.round(weights)))


def rows_of_weight(weights: np.ndarray) -> float:
    """Return how many rows positive weights stand for: their sum if they are counts, else the rows there are."""
    return float(weights.sum()) if are_counts(weights) else float(weights.size)
