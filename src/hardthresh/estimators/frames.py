"""Data frames of any library, which narwhals reads: the types of their columns, and missing values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from hardthresh.constraints.labels import is_missing
from hardthresh.core.errors import InvalidInputError, format_value, numbered, plural

Frame: TypeAlias = Any
"""A `narwhals.stable.v2.DataFrame`."""

SHOWN = 5
"""The number of columns, or levels, that a message lists."""


def frame_of(X: Any, name: str = "X") -> Frame | None:
    """Return a data frame of pandas, polars, arrow or another library as narwhals reads it; None for anything else.

    Raises
    ------
    InvalidInputError
        For a lazy frame, and for two columns of one name.
    """
    if isinstance(X, np.ndarray) or issparse(X):
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InvalidInputError(f"columns of {name} have the same name: {' '.join(str(error).split())}") from error
    if isinstance(frame, nw.LazyFrame):
        raise InvalidInputError(
            f"{name} is a lazy {type(X).__name__}; compute it first, as {name}.collect() does for polars"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def ordered_labels(y: Any) -> list[Any] | None:
    """Return the labels of a column of ordered categories, in their order: of pandas, or an enumeration of polars."""
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False):
        return [*dtype.categories]
    column = None if isinstance(y, np.ndarray) else nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(column, nw.Series) and isinstance(column.dtype, nw.Enum):
        return [*column.dtype.categories]
    return None


def called(column: int, names: Sequence[Any] | None) -> str:
    """Return how a message names a column: by its place if its name is not text, since only text names features.

    Examples
    --------
    >>> called(1, ["age", "city"]), called(1, [2023, 2024]), called(1, None)
    ("column 'city'", 'column 1 (counted from 0)', 'column 1 (counted from 0)')
    """
    if names is None or not isinstance(names[column], str):
        return numbered("column", column)
    return f"column {format_value(names[column])}"


def categorical_columns(frame: Frame) -> tuple[int, ...]:
    """Return the columns whose type is categorical or an enumeration."""
    if _plain_numbers(frame):
        return ()
    return tuple(j for j, dtype in enumerate(frame.schema.values()) if dtype in (nw.Categorical, nw.Enum))


def check_types(frame: Frame, *, numeric_labels: bool, categories: str, text: str) -> None:
    """Check that the columns of a data frame can be numbers.

    Parameters
    ----------
    frame : Frame
        The columns.
    numeric_labels : bool
        Whether categories whose labels are numbers are numbers.
    categories : str
        What to do with a column of other categories.
    text : str
        What to do with a column of text.

    Raises
    ------
    InvalidInputError
        For text, dates, categories and what else is not a number, with the column, its type, and what to do.
    """
    if _plain_numbers(frame):
        return
    for j, dtype in enumerate(frame.schema.values()):
        if dtype.is_numeric() or dtype == nw.Boolean:
            continue
        column, where = frame[:, j], called(j, frame.columns)
        own = _native_type(column)
        if dtype == nw.String:
            example = next((value for value in column.to_list() if isinstance(value, str)), None)
            such = "" if example is None else f", such as {format_value(example)}"
            if all(map(_is_number_as_text, column.drop_nulls().to_list())):
                text = f"convert it to float, or if these are labels, {text}"
            raise InvalidInputError(f"{where} holds text{such}; {text}")
        if dtype in (nw.Categorical, nw.Enum):
            labels = [label for label in column.unique().to_list() if not is_missing(label)]
            if not (numeric_labels and all(isinstance(label, int | float | np.number) for label in labels)):
                such = f" with labels such as {format_value(labels[0])}" if labels else ""
                raise InvalidInputError(f"{where} is of type {own}{such}; {categories}")
            continue
        if dtype.is_temporal():
            raise InvalidInputError(
                f"{where} is of type {own}; turn it into numbers, such as the days since the first date, or leave it "
                "out"
            )
        raise InvalidInputError(
            f"{where} is of type {own}, and only real numbers can be computed with; convert it to float, or leave it "
            "out"
        )


def _is_number_as_text(value: Any) -> bool:
    """Return whether a text is a number; what is missing may be one."""
    if not isinstance(value, str):
        return is_missing(value)
    try:
        float(value)
    except ValueError:
        return False
    return True


def missing_values(X: Any) -> list[tuple[str, int]]:
    """Return the columns that have missing values, as messages call them, and how many each has."""
    frame = frame_of(X)
    if frame is not None:
        counts = ((called(j, frame.columns), _missing_in(frame[:, j])) for j in range(len(frame.columns)))
        return [(name, count) for name, count in counts if count]
    if issparse(X):
        coo = X.tocoo()
        places = coo.col[np.isnan(coo.data)] if coo.data.dtype.kind == "f" else np.zeros(0, dtype=np.intp)
        found = np.bincount(places, minlength=X.shape[1])
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fO":
        found = np.isnan(X).sum(axis=0) if X.dtype.kind == "f" else (X != X).sum(axis=0)
    else:
        return []
    return [(numbered("column", j), int(found[j])) for j in np.flatnonzero(found).tolist()]


def counted(missing: Iterable[tuple[str, int]]) -> str:
    """Return columns and their numbers of missing values in words."""
    listed = [f"{plural(count, 'missing value')} in {name}" for name, count in missing]
    more = f", and more in {plural(len(listed) - SHOWN, 'other column')}" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def coded(column: Any) -> tuple[list[Any], np.ndarray]:
    """Return the different values of a column, and the place of that of each row among them; None if one is missing."""
    column = column.fill_nan(None) if column.dtype.is_float() else column
    present = ~column.is_null().to_numpy().astype(bool)
    values = [value for value in column.unique().to_list() if not is_missing(value)]
    places = np.full(len(column), len(values), dtype=np.intp)
    if values:
        numbers = column.drop_nulls().replace_strict(values, list(range(len(values))), return_dtype=nw.Int64)
        places[present] = numbers.to_numpy()
    return values if present.all() else [*values, None], places


def _missing_in(column: Any) -> int:
    """Return the number of nulls and NaN in a column; pandas does not always distinguish them."""
    if column.dtype.is_float():
        return int(np.isnan(np.asarray(column.to_numpy(), dtype=np.float64)).sum())
    return int(column.null_count())


def _plain_numbers(frame: Frame) -> bool:
    """Return whether all columns of a pandas frame have types of numbers of NumPy's, which is quick to see."""
    dtypes = getattr(frame.to_native(), "dtypes", None)
    return dtypes is not None and all(getattr(dtype, "kind", "O") in "fiub" for dtype in set(dtypes))


def _native_type(column: Any) -> str:
    """Return the type of a column as its own library calls it."""
    native = column.to_native()
    return str(getattr(native, "dtype", getattr(native, "type", "")))
