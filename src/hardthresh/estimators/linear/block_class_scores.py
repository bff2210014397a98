"""How fits of more than two classes predict the rows of a table in blocks that folds hold out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.objectives import BlockedClasses
from hardthresh.objectives.class_fits import ClassFits, held_out_classes
from hardthresh.solvers.working_set.rows import null_model

from .grid_models import FoldFits, Search
from .problem import features_of

Fits = Sequence[tuple[np.ndarray, np.ndarray]]
"""For each fold the coefficients of its columns, shape (n_fits, n_classes, n_columns), and the intercepts."""


def held_out_of_classes(model: BlockedClasses, folds: Sequence[FoldFits], fits: Fits) -> tuple[Any, ...]:
    """Return what `held_out_classes` says of some fits of each fold, a list of the folds: a sweep over kept columns.

    The last part is an array, the weight of the rows of each class that a fold holds out.
    """
    units, kept = model.units, model.kept
    columns, slopes, levels, owners = [], [], [], []
    for number, (fold, (coefs, intercepts)) in enumerate(zip(folds, fits, strict=True)):
        for coef, intercept in zip(coefs, intercepts, strict=True):
            own = np.flatnonzero(features_of(coef))
            some, b = fold.columns[own], coef[:, own].T
            factor, shift = kept.change(some)
            inverse = units.inverse_scale[some]
            w = b / np.where(inverse > 0, inverse, 1.0)[:, None]  # a constant column has no coefficient
            columns.append(kept.places(some))
            slopes.append(factor[:, None] * w)
            levels.append(intercept + units.mean[some] @ b + shift @ w)
            owners.append(number)
    stacked = np.reshape(levels, (len(levels), model.shape[1]))
    every = ClassFits(tuple(columns), tuple(slopes), stacked)
    arguments = every, np.array(owners, dtype=np.int64), model.loss
    *parts, totals = kept.sums(held_out_classes, *model.folds.arguments, *arguments)
    ends = np.cumsum([len(coefs) for coefs, _ in fits])[:-1]
    return *(np.split(part, ends) for part in parts), totals


def check_classes_of_folds(model: BlockedClasses, labels: np.ndarray) -> None:
    """Check that each fold trains on rows of every class.

    Raises
    ------
    InvalidInputError
        If not.
    """
    totals = held_out_of_classes(model, [], [])[-1]
    for fold, rest in enumerate(totals.sum(axis=0) - totals):
        missing = labels[~(rest > 0)]
        if missing.size:
            raise InvalidInputError(
                f"fold {fold} of cv trains on rows without the class {format_value(missing[0])}; use fewer or "
                "stratified folds"
            )


def scores_of_classes(search: Search, fits: Fits, model: BlockedClasses) -> dict[str, float]:
    """Return how well one model for each fold predicts held-out rows."""
    values, right, _, totals = held_out_of_classes(model, search.folds, fits)
    weight, correct = totals.sum(axis=0), np.sum(right, axis=(0, 1))
    loss, without = float(np.sum(values)) / weight.sum(), _null_loss(model, weight)
    there = weight > 0
    return {
        "log_loss": loss,
        "d2": 1.0 - loss / without if without > 0 else np.nan,
        "accuracy": float(correct.sum() / weight.sum()),
        "balanced_accuracy": float(np.mean(correct[there] / weight[there])),
    }


def _null_loss(model: BlockedClasses, weight: np.ndarray) -> float:
    """Return the least mean log-loss of constants for all rows, offset included."""
    if not model.moments.with_offset:
        shares = weight[weight > 0] / weight.sum()
        return -float(shares @ np.log(shares))
    everywhere = model.training_model(-1, 0.0, intercept=True, scale=True)
    return float(null_model(everywhere, np.array([everywhere.shape[0] - 1])).value)
