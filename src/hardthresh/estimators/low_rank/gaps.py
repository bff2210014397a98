"""Validation of tables with missing entries, and their return as data frames."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hardthresh.core.errors import InvalidInputError

from .. import validation


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
    return validation.validated(
        model,
        X,
        categories=False,
        accept_sparse="csr" if unstored else False,
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan",
        ensure_min_samples=2 if reset else 1,
        reset=reset,
    )


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
