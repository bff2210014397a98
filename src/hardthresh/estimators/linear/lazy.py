"""Lazy predictions for tables of Dask."""

from __future__ import annotations

from copy import copy
from functools import wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import to_numpy
from hardthresh.core.checking import Function
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value, plural
from hardthresh.designs.formats.dask_tables import is_dask, rows_like


def lazy(method: Function) -> Function:
    """Decorate a method that predicts each row by itself, so that of a table of Dask it returns a Dask array.

    Nothing is computed then, and later only the chosen columns are, where they can be had alone.
    """

    @wraps(method)
    def predicted(self: Any, X: Any, offset: Any = None) -> Any:
        if is_dask(X):
            check_is_fitted(self)
            return _lazily(self, method.__name__, X, offset)
        return method(self, X, offset)

    predicted.decorated_by = lazy  # type: ignore[attr-defined] # for copies of the method, see `names_methods`
    return predicted  # type: ignore[return-value]


def _on_chosen_columns(model: Any, X: Any) -> tuple[np.ndarray, Any]:
    """Return the columns that a model needs of a table, and a copy of the model that takes these alone.

    Raises
    ------
    CapabilityError
        If the model was fitted with categorical columns.
    InvalidInputError
        If the table has other columns than that of the fit.
    """
    if hasattr(model, "encoding_"):
        raise CapabilityError(
            "the model has categorical columns, which are read in data frames in memory alone; predict them part by "
            "part, as with X.map_partitions(model.predict)"
        )
    names = getattr(model, "feature_names_in_", None)
    given = getattr(X, "columns", None)
    if names is not None and given is not None and [*given] != [*names]:
        raise InvalidInputError(
            f"X has the columns {format_value([*given])}, those of the fit were {format_value(names.tolist())}; "
            "X[model.feature_names_in_] has them"
        )
    d = int(X.shape[1])
    if d != model.n_features_in_:
        raise InvalidInputError(
            f"X has {plural(d, 'feature')}, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input"
        )
    support = np.sort(to_numpy(model.support_))
    columns = support if support.size else np.zeros(1, dtype=support.dtype)
    small = copy(model)
    small.coef_ = to_numpy(model.coef_)[..., columns]
    small.support_ = np.arange(support.size)
    small.n_features_in_ = columns.size
    small.__dict__.pop("feature_names_in_", None)
    return columns, small


def lazy_columns(X: Any, columns: np.ndarray) -> Any:
    """Return some columns of a table of Dask as a Dask array, each row in one chunk."""
    if hasattr(X, "chunks"):
        return X[:, columns].rechunk({1: -1})
    return X[[X.columns[j] for j in columns.tolist()]].to_dask_array()


def _lazily(model: Any, name: str, X: Any, offset: Any) -> Any:
    """Return the predictions of a table of Dask as a Dask array."""
    import dask.array as da

    columns, small = _on_chosen_columns(model, X)
    chosen = lazy_columns(X, columns)
    known = None if offset is None else rows_like(offset, "offset", chosen)
    row = np.zeros((1, columns.size), dtype=chosen.dtype if chosen.dtype.kind == "f" else np.float64)
    one = getattr(small, name)(row, None if known is None else np.zeros((1, *known.shape[1:])))  # warns as it should
    small.offset_used_ = False  # of all chunks but this row
    return da.blockwise(
        _predicted,
        "ik"[: one.ndim],
        chosen,
        "ij",
        *(() if known is None else (known, "il"[: known.ndim])),
        model=small,
        method=name,
        empty=one[:0],
        concatenate=True,
        new_axes={"k": one.shape[1]} if one.ndim == 2 else None,
        align_arrays=False,
        dtype=one.dtype,
        meta=one[:0],
    )


def _predicted(X: Any, offset: Any = None, *, model: Any, method: str, empty: Any) -> Any:
    """Return the predictions of a chunk."""
    return getattr(model, method)(X, offset) if len(X) else empty
