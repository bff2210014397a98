"""Validation of tables with missing entries, and their return as data frames."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from hardthresh.core.errors import InvalidInputError, format_value, numbered

_NO_NUMBERS = ("category", "categorical", "enum", "datetime", "date", "timedelta", "duration")
"""Prefixes of the names of column types that do not hold numbers, in pandas and polars."""


def validated(model: Any, X: Any, *, unstored: bool, reset: bool) -> Any:
    """Return a table of numbers, whose gaps are NaN or not stored; `reset` makes its columns those of the model.

    Raises
    ------
    InvalidInputError
        With the column that holds text, categories or infinity, or if X is sparse and should not be, or the reverse.
    """
    if issparse(X) and not unstored:
        raise InvalidInputError(
            "X is sparse: are the entries that it does not store zero, or missing? If zero, pass X.toarray(); "
            'if missing, set missing="unstored"'
        )
    if unstored and not issparse(X):
        raise InvalidInputError(f'missing="unstored" needs a scipy.sparse X, got {type(X).__name__}')
    _check_types_of_columns(X)
    try:
        return validate_data(
            model,
            X,
            accept_sparse="csr" if unstored else False,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
            reset=reset,
        )
    except ValueError as error:
        column = _offending_column(X)
        if column is None:
            raise
        raise InvalidInputError(f"{column}: {error}") from error


def as_given(table: np.ndarray, given: Any, names: np.ndarray, own: Any) -> Any:
    """Return a completed table as a data frame of the kind that was given, if it was one.

    Parameters
    ----------
    table : array, shape (n_rows, n_columns)
        The table.
    given : array or data frame
        The table as it was given.
    names : array of str
        The names of its columns.
    own : array of int, or None
        The columns of a pandas data frame that it has, if these keep their names, which are not strings.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        columns = names if own is None else given.columns[own]
        return pandas.DataFrame(table, index=given.index, columns=columns, copy=False)
    if polars is not None and isinstance(given, polars.DataFrame):
        return polars.DataFrame(table, schema=names.tolist(), orient="row")
    return table


def _check_types_of_columns(X: Any) -> None:
    """Check that no column of a data frame has a type, such as category, that NumPy would turn into numbers."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return
    for name, dtype in zip(X.columns, dtypes, strict=True):
        if str(dtype).lower().startswith(_NO_NUMBERS):
            raise InvalidInputError(
                f"column {format_value(name)} is of type {dtype}, and only numbers can be completed by a matrix of low "
                "rank; encode it as numbers, for example one column for each category, or leave it out"
            )


def _offending_column(X: Any) -> str | None:
    """Return the name of the first column with text or infinity, as in a message; None if none is found."""
    if issparse(X):
        coo = X.tocoo()
        where = coo.col[np.isinf(coo.data)] if coo.data.dtype.kind == "f" else np.zeros(0, dtype=int)
        return numbered("column", int(where.min())) if where.size else None
    framed = hasattr(X, "columns")
    table = X if framed else np.asarray(X)
    if not framed and (table.ndim != 2 or table.dtype.kind not in "fOU"):
        return None
    for j, name in enumerate(X.columns if framed else range(table.shape[1])):
        column = np.asarray(X[name] if framed else table[:, j])
        if column.ndim != 1 or column.dtype.kind not in "fOU":
            continue  # numbers without infinity, or two columns of one name
        try:
            infinite = bool(np.isinf(column.astype(float)).any())
        except (ValueError, TypeError):
            infinite = True  # text
        if infinite:
            return f"column {format_value(name)}" if framed else numbered("column", j)
    return None
