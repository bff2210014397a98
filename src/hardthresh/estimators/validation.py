"""Validation of tables by scikit-learn, with messages that name the column at fault."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError, format_value, numbered

_TIMES = ("datetime", "date", "timedelta", "duration")
"""What the names of column types of dates and times begin with, in pandas and polars."""
_CATEGORIES = ("category", "categorical", "enum")
"""The same for categories, which NumPy turns into numbers if their labels are numbers."""
_ENCODE = "encode it as numbers, for example one column for each category, or leave it out"


@without_overflow_warnings
def validated(model: Any, X: Any, y: Any = "no_validation", *, categories: bool = True, **options: Any) -> Any:
    """Return what `sklearn.utils.validation.validate_data` returns; errors name the column of X.

    Parameters
    ----------
    model : estimator
        Whose columns are checked, or with ``reset=True`` set.
    X, y :
        The data.
    categories : bool
        Whether columns of categories whose labels are numbers are numbers.
    **options :
        Passed on.

    Raises
    ------
    InvalidInputError
        With the column that holds text, dates, infinity, or NaN where this is not allowed.
    """
    _check_types_of_columns(X, _TIMES if categories else (*_TIMES, *_CATEGORIES))
    try:
        return validate_data(model, X, y, **options)
    except ValueError as error:
        if str(error).startswith("The feature names"):
            raise
        column, is_text = _offending_column(X, options.get("ensure_all_finite") == "allow-nan")
        if column is None and options.get("y_numeric") and str(error).startswith("could not convert"):
            raise InvalidInputError(f"y: {error}; numbers are needed") from error
        if column is None:
            raise
        raise InvalidInputError(f"{column}: {error}" + (f"; {_ENCODE}" if is_text else "")) from error


def _check_types_of_columns(X: Any, refused: tuple[str, ...]) -> None:
    """Check that no column of a data frame has a type whose name begins with a refused word."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return
    for name, dtype in zip(X.columns, dtypes, strict=True):
        if str(dtype).lower().startswith(refused):
            raise InvalidInputError(
                f"column {format_value(name)} is of type {dtype}, and only numbers can be computed with; {_ENCODE}"
            )


def _offending_column(X: Any, may_be_nan: bool) -> tuple[str | None, bool]:
    """Return the name of the first column with text, infinity or NaN, None if none is found; and whether it is text."""
    bad = np.isinf if may_be_nan else lambda x: ~np.isfinite(x)
    if issparse(X):
        coo = X.tocoo()
        where = coo.col[bad(coo.data)] if coo.data.dtype.kind == "f" else np.zeros(0, dtype=int)
        return (numbered("column", int(where.min())) if where.size else None), False
    framed = hasattr(X, "columns")
    if not framed and not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fOU"):
        return None, False
    for j, name in enumerate(X.columns if framed else range(X.shape[1])):
        column = np.asarray(X[name] if framed else X[:, j])
        if column.ndim != 1 or column.dtype.kind not in "fOU":
            continue  # integers, or two columns of one name
        try:
            is_text, is_bad = False, bool(bad(column.astype(float)).any())
        except (ValueError, TypeError):
            is_text = is_bad = True
        if is_bad:
            return (f"column {format_value(name)}" if framed else numbered("column", j)), is_text
    return None, False
