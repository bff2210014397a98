"""Whether an estimator is whole: its parameters make sense, and its fitted attributes fit together."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import InvalidInputError

from .errors import StorageError

_NEEDED = ("coef_", "intercept_", "support_", "n_features_in_")


def check_estimator(model: Any) -> None:
    """Refuse an estimator that would fail, or predict nonsense, when it is used.

    One without fitted attributes is checked for its parameters only; one that does not derive from
    `SparseLinearModel` is not checked, as what it needs is not known here.

    Raises
    ------
    StorageError
        With the class and what is wrong with it.
    """
    if not isinstance(model, import_module("hardthresh.estimators.linear").SparseLinearModel):
        return
    kind = type(model).__name__
    try:
        model._check_settings()
    except InvalidInputError as error:
        raise StorageError(f"not a sound {kind}: {error}") from error
    if any(name.endswith("_") and not name.startswith("_") for name in vars(model)):
        wrong = _wrong(model)
        if wrong:
            raise StorageError(f"not a sound {kind}: {wrong}")


def _wrong(model: Any) -> str | None:
    """Return what is wrong with the fitted attributes, or None."""
    needed = (*_NEEDED, "classes_") if hasattr(type(model), "predict_proba") else _NEEDED
    missing = [name for name in needed if not hasattr(model, name)]
    if missing:
        return f"{' and '.join(missing)} missing"
    d = model.n_features_in_
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 1:
        return f"n_features_in_ must be a positive integer, got {d!r}"
    for name in ("coef_", "support_"):
        if not is_array_api_obj(getattr(model, name)):
            return f"{name} must be an array, got {getattr(model, name)!r}"
    coef, support = np.asarray(to_numpy(model.coef_)), np.asarray(to_numpy(model.support_))
    if coef.dtype.kind != "f" or coef.ndim == 0 or coef.shape[-1] != d or coef.size != d:
        return f"coef_ has shape {coef.shape} and dtype {coef.dtype}; one number for each of {d} features is needed"
    try:
        model._intercept()
    except (IndexError, TypeError, ValueError):
        return f"intercept_ must be one number, got {model.intercept_!r}"
    return _wrong_support(support, coef.reshape(-1)) or _wrong_labels(model, int(d))


def _wrong_support(support: np.ndarray, coef: np.ndarray) -> str | None:
    if support.ndim != 1 or (support.size and support.dtype.kind not in "iu"):
        return f"support_ has shape {support.shape} and dtype {support.dtype}; a list of integers is needed"
    chosen = [int(j) for j in support]
    outside = [j for j in chosen if not 0 <= j < coef.size]
    if outside:
        return f"support_ names feature {outside[0]}; there are {coef.size}, counted from 0"
    if any(j >= after for j, after in pairwise(chosen)):
        return "support_ is not strictly increasing"
    left_out = np.setdiff1d(np.flatnonzero(coef), support)
    if left_out.size:
        return f"coef_ is not zero for feature {left_out[0]}, which is not in support_"
    return None


def _wrong_labels(model: Any, d: int) -> str | None:
    names = getattr(model, "feature_names_in_", None)
    if names is not None and np.shape(names) != (d,):
        return f"feature_names_in_ has shape {np.shape(names)}; {d} names are needed"
    if hasattr(type(model), "predict_proba") and np.shape(model.classes_) != (2,):
        return f"classes_ has shape {np.shape(model.classes_)}; two labels are needed"
    return None
