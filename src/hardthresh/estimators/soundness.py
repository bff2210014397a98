"""Checks of fitted attributes, which may come from a damaged file or from a fit that failed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import is_classifier

from hardthresh.arrays import to_numpy
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.typing import is_integer, is_real


def check_present(model: Any, *names: str) -> None:
    """Check that a model has some fitted attributes.

    Raises
    ------
    InvalidInputError
        With the names of those that are missing.
    """
    missing = [name for name in names if name not in vars(model)]
    if missing:
        raise InvalidInputError(f"{' and '.join(missing)} missing")


def check_numbers(model: Any, **shapes: tuple[int | None, ...]) -> None:
    """Check that fitted attributes are finite numbers of some shape.

    Parameters
    ----------
    model : fitted estimator
    **shapes : tuple of int or None
        The shape of each attribute; an axis of None may have any length.

    Raises
    ------
    InvalidInputError
        With the first attribute that is wrong, and why.
    """
    check_present(model, *shapes)
    for name, shape in shapes.items():
        array = _array(model, name)
        if array.dtype.kind not in "fiu":
            raise InvalidInputError(f"{name} has dtype {array.dtype}; real numbers are needed")
        if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
            raise InvalidInputError(f"{name} has shape {array.shape}; {_words(shape)} is needed")
        if not np.isfinite(array).all():
            raise InvalidInputError(f"{name} holds NaN or infinity, as after a fit that did not converge; fit it again")


def check_columns(model: Any) -> int:
    """Return the number of columns that a model was fitted on, checked against their names.

    Raises
    ------
    InvalidInputError
        If not.
    """
    check_present(model, "n_features_in_")
    d, names = model.n_features_in_, getattr(model, "feature_names_in_", None)
    if not is_integer(d) or d < 1:
        raise InvalidInputError(f"n_features_in_ must be a positive integer, got {d!r}")
    if names is not None and np.shape(names) != (d,):
        raise InvalidInputError(f"feature_names_in_ has shape {np.shape(names)}; {d} names are needed")
    return int(d)


def check_selected(model: Any) -> int:
    """Return the number of columns of a selector, checked together with the columns in `support_`.

    Raises
    ------
    InvalidInputError
        If not.
    """
    d = check_columns(model)
    check_numbers(model, support_=(None,))
    support = _array(model, "support_")
    if support.size and not (support.min() >= 0 and support.max() < d):
        raise InvalidInputError(f"support_ names features beyond the {d} columns")
    return d


def check_coefficients(model: Any, *rows: int) -> int:
    """Return the number of columns with a coefficient, which are checked together with the support.

    Parameters
    ----------
    model : fitted estimator
    *rows : int
        The axes of `coef_` before that of the columns.

    Raises
    ------
    InvalidInputError
        With the first attribute that is wrong, and why.
    """
    check_present(model, "coef_", "support_")
    d = check_columns(model)
    if hasattr(model, "encoding_"):
        if model.encoding_.n_features != d:
            raise InvalidInputError(f"encoding_ is one of {model.encoding_.n_features} columns; {d} are needed")
        d = int(model.encoding_.n_columns)
    check_numbers(model, coef_=(*rows, d))
    coef, support = np.any(np.atleast_2d(_array(model, "coef_")) != 0, axis=0), _array(model, "support_")
    if support.ndim != 1 or (support.size and support.dtype.kind not in "iu"):
        raise InvalidInputError(
            f"support_ has shape {support.shape} and dtype {support.dtype}; a list of integers is needed"
        )
    chosen = [int(j) for j in support]
    outside = [j for j in chosen if not 0 <= j < coef.size]
    if outside:
        raise InvalidInputError(f"support_ names feature {outside[0]}; there are {coef.size}, counted from 0")
    if any(j >= after for j, after in pairwise(chosen)):
        raise InvalidInputError("support_ is not strictly increasing")
    left_out = np.setdiff1d(np.flatnonzero(coef), support)
    if left_out.size:
        raise InvalidInputError(f"coef_ is not zero for feature {left_out[0]}, which is not in support_")
    return d


def check_linear_model(model: Any) -> None:
    """Check that the fitted attributes of a linear model fit together.

    Coefficients are those of one response, or have a row for each of several, for two classes or for each of more.

    Raises
    ------
    InvalidInputError
        With the first attribute that is wrong, and why.
    """
    classifies = is_classifier(model)
    check_present(model, "coef_", "intercept_", "support_", *(["classes_"] if classifies else []))
    labels = np.size(model.classes_) if classifies else 0
    if classifies and (np.ndim(model.classes_) != 1 or labels < 2):
        raise InvalidInputError(f"classes_ has shape {np.shape(model.classes_)}; two labels or more are needed")
    rows: tuple[int, ...] = (1 if labels == 2 else labels,) if classifies else _array(model, "intercept_").shape
    check_coefficients(model, *rows)
    check_numbers(model, intercept_=rows)
    names = getattr(model, "output_names_", None)
    if names is not None and np.shape(names) != rows:
        raise InvalidInputError(
            f"output_names_ has shape {np.shape(names)}; {rows} is needed, the names of the outputs"
        )


def _array(model: Any, name: str) -> np.ndarray:
    value = getattr(model, name)
    if is_array_api_obj(value):
        return np.asarray(to_numpy(value))
    if not is_real(value):
        raise InvalidInputError(f"{name} must be a number or an array, got {value!r}")
    return np.asarray(value)


def _words(shape: tuple[int | None, ...]) -> str:
    return str(tuple(shape)).replace("None", "any")
