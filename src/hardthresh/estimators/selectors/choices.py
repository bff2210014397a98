"""The features that an estimator chooses on a subset of the rows, and its candidates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import InvalidInputError

from ..linear.model import SparseLinearModel


def chosen_features(model: Any) -> np.ndarray:
    """Return which columns of X a fitted estimator has chosen."""
    if hasattr(model, "get_support"):
        return np.asarray(model.get_support())
    if hasattr(model, "coef_"):
        coef = to_numpy(model.coef_)
        return np.asarray((coef != 0).any(axis=tuple(range(coef.ndim - 1))))
    raise InvalidInputError(
        f"estimator must choose features: {type(model).__name__} has neither get_support nor coef_ after fit; of "
        "a pipeline give the last step, and put the selector in its place"
    )


def check_chooses(model: Any) -> None:
    """Check that an estimator, fitted to all rows, can leave columns out.

    Raises
    ------
    InvalidInputError
        If it has coefficients and uses each column, as a model of low rank or a ridge regression does.
    """
    if hasattr(model, "get_support"):
        return
    used = chosen_features(model)
    if used.size > 1 and used.all():
        raise InvalidInputError(
            f"{type(model).__name__} uses all {used.size} columns, so that there is no choice whose stability could be "
            "measured; give an estimator that leaves columns out, such as SparseLinearRegression(n_nonzero_coefs=k), "
            "which also takes several outputs, or a penalty that does"
        )


def candidates(model: Any) -> np.ndarray:
    """Return the number of each column of X among what a fitted estimator chooses from; -1 if it does not choose it."""
    if isinstance(model, SparseLinearModel):
        return model._candidates()
    return np.arange(chosen_features(model).size)


def choice_of_rows(estimator: Any, X: Any, y: Any, params: dict[str, Any], rows: np.ndarray) -> np.ndarray | str:
    """Return which columns a fit to some rows chooses, or why it failed.

    What a fit warns of its rows is not repeated for each half: most of it was said of all rows.
    """
    model = clone(estimator)
    own = _check_method_params(X, params, indices=rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **own)
    except ValueError as error:
        return str(error)
    return chosen_features(model) if getattr(model, "converged_", True) else str(model.stop_reason_)


def labels_of_rows(model: Any, y: Any) -> np.ndarray | None:
    """Return the labels of which halves have equal numbers, such as classes; None if there are none."""
    if isinstance(model, SparseLinearModel):
        return model._labels_to_balance(y)
    return np.asarray(y) if is_classifier(model) else None
