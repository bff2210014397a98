"""The weights of the models of a grid in their average."""

from __future__ import annotations

import numpy as np

from hardthresh.selection import exponential_weights
from hardthresh.selection.averaging import Expendable

from ..table import Table
from .grid_models import FoldFits, Search, Units
from .problem import features_of


def exponential_average(search: Search, candidates: np.ndarray, count: float) -> np.ndarray:
    """Return exponential weights of all models by their mean scores, shape (n_sizes, n_ridges).

    Parameters
    ----------
    search : Search
        The grid, with default scores.
    candidates : array of int
        The sizes that may have a weight.
    count : float
        How many rows there are.
    """
    prediction, rows = search.everywhere.prediction, np.searchsorted(search.sizes, candidates)
    deviance = -search.scores.mean(axis=2)[rows] * (2.0 / prediction.score_scale)
    least = max(float(deviance.min()), 1e-12 * float(np.abs(deviance).max())) or 1.0
    weights = np.zeros(search.scores.shape[:2])
    weights[rows] = exponential_weights(deviance, candidates, count, prediction.dispersion(least))
    return weights


def stacked_average(
    search: Search, candidates: np.ndarray, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray
) -> np.ndarray:
    """Return the weights of all models that minimise the held-out loss, shape (n_sizes, n_ridges).

    Parameters
    ----------
    search : Search
        The grid.
    candidates : array of int
        The sizes that may have a weight.
    y, sample_weight : array, shape (n_held_out, ...)
        The targets and the weights of held-out rows.
    u : array, shape (n_held_out, n_models, ...)
        The linear predictors there of all models, one after the other.
    """
    weights = np.zeros(search.scores.shape[:2])
    models = np.zeros(weights.shape, dtype=bool)
    models[np.searchsorted(search.sizes, candidates)[candidates > 0]] = True
    prediction = search.everywhere.prediction
    stacked = prediction.stacking_weights(y, u[:, 0], u[:, models.ravel()], sample_weight)
    weights[models] = stacked
    weights[0, 0] = 1.0 - stacked.sum()
    return weights


def within_budget(
    fits: FoldFits, weights: np.ndarray, table: Table, units: Units, most: int, expendable: Expendable
) -> np.ndarray:
    """Return the weights of an average of at most so many features, or groups.

    If the thinned average has more of them, it is of the models of the largest weights that together have no more.
    """
    if np.count_nonzero(weights) == 1:
        return weights
    if units.count(fits.columns[features_of(fits.thinned_average(weights, table, units, expendable)[0])]) <= most:
        return weights
    kept, used = np.zeros_like(weights), np.zeros(fits.columns.size, dtype=bool)
    for place in zip(*np.unravel_index(np.argsort(-weights, axis=None, kind="stable"), weights.shape), strict=True):
        with_it = used | features_of(fits.coefs[place])
        if weights[place] > 0 and units.count(fits.columns[with_it]) <= most:
            kept[place], used = weights[place], with_it
    return np.asarray(kept / kept.sum())
