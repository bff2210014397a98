"""The paths of the folds of a cross-validation, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hardthresh.arrays import double
from hardthresh.core.errors import InvalidInputError
from hardthresh.objectives import LinearModel


@dataclass(frozen=True, slots=True)
class FoldPath:
    """The fits of all budgets, each with all ridges, on the training rows of a fold.

    Attributes
    ----------
    columns : array of int
        The columns that any of the fits uses, increasing, without that of the intercept.
    coefs : array, shape (n_budgets, n_ridges, n_columns)
        The coefficients of these columns, zero for columns that a fit has not chosen.
    intercepts : array, shape (n_budgets, n_ridges)
        The intercepts; zero for models without an intercept.
    unconverged : list of str
        The reasons why fits did not converge.
    """

    columns: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    unconverged: list[str] = field(default_factory=list)


def checked_budgets(budgets: Sequence[int]) -> list[int]:
    """Return budgets that do not fall, or raise InvalidInputError."""
    steps = np.diff(np.asarray(budgets, dtype=np.int64), prepend=0)
    if len(budgets) == 0 or not np.all(steps >= 0):
        raise InvalidInputError(f"budgets must be numbers >= 0 that do not fall, at least one; got {list(budgets)}")
    return list(budgets)


def checked_ridges(ridges: Sequence[float] | np.ndarray, n_folds: int) -> np.ndarray:
    """Return the ridges >= 0 of each fold, shape (n_folds, n_ridges), or raise InvalidInputError."""
    checked = np.asarray(ridges, dtype=np.float64)
    if checked.size == 0 or not np.all((checked >= 0) & (checked < np.inf)):
        raise InvalidInputError(f"ridges must be finite numbers >= 0, at least one; got {checked.tolist()}")
    return np.broadcast_to(checked, (n_folds, checked.shape[-1]))


def searched_ridge(ridges: np.ndarray) -> np.ndarray:
    """Return the ridge with which the features of all ridges are searched, the lower third of them; of each fold.

    Parameters
    ----------
    ridges : ndarray of shape (..., n_ridges)
        The ridges, in any order.
    """
    return np.asarray(np.sort(ridges)[..., (ridges.shape[-1] - 1) // 3])


def checked_training(training: Sequence[np.ndarray], objective: LinearModel) -> list[np.ndarray]:
    """Return the training rows of each fold as numbers >= 0, or raise InvalidInputError."""
    n = objective.design.shape[0]
    training = [np.asarray(rows) for rows in training]
    if any(rows.dtype.kind not in "iu" or rows.size == 0 for rows in training):
        raise InvalidInputError("training must hold an array of row numbers for each fold, none of them empty")
    if any(np.min(rows) < -n or np.max(rows) >= n for rows in training):
        raise InvalidInputError(f"training must hold numbers of {n} rows")
    training = [rows % n for rows in training]  # a negative number counts from the end
    weights = double(objective.weights)
    for fold, rows in enumerate(training):
        if not np.any(weights[rows] > 0):
            raise InvalidInputError(f"the training rows of fold {fold} have no weight; leave this fold out")
    return training
