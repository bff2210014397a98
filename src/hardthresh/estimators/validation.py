"""Validation of tables by scikit-learn, with messages that name the column at fault."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_X_y, validate_data

from hardthresh.arrays import to_numpy
from hardthresh.constraints.labels import is_missing
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import InvalidInputError, format_value, numbered, plural, warn
from hardthresh.designs import Bed

from .frames import called, check_types, counted, frame_of, missing_values
from .tensors import check_numpy_alone, check_readable

_ENCODE = "encode it as numbers, for example one column for each category, or leave it out"
_CAST = "cast it to a category, or name it in categorical_features, or leave it out"
_FROM_TYPE = 'set categorical_features="from_dtype", or encode it as numbers'


@without_overflow_warnings
def validated(
    model: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    categories: bool = True,
    numbers: Any = None,
    accept_genotypes: bool = False,
    **options: Any,
) -> Any:
    """Return what `sklearn.utils.validation.validate_data` returns; errors name the column of X.

    Data frames become C-contiguous arrays, so that the bits of a fit do not depend on the library of the frame.

    Parameters
    ----------
    model : estimator
        Whose columns are checked, or with ``reset=True`` set.
    X, y :
        The data.
    categories : bool
        Whether columns of categories whose labels are numbers are numbers.
    numbers : array or data frame, optional
        X without its categorical columns. It is what is converted and returned instead of X, and it may have no
        column.
    accept_genotypes : bool
        Whether X may be a file of genotypes, which is returned as it is.
    **options :
        Passed on.

    Raises
    ------
    InvalidInputError
        With the column that holds text, dates, infinity, or NaN where this is not allowed.
    """
    if isinstance(X, Bed) and not accept_genotypes:
        raise InvalidInputError(
            f"{type(model).__name__} takes arrays and data frames, and X is {X!r}; X[:, columns] is an array of some "
            "of its columns, and the linear models take all of it"
        )
    check_readable(X, "X")
    check_readable(y, "y")
    if options.get("dtype") is not None:
        check_numpy_alone(model, X, options["dtype"])
    given = X if numbers is None else numbers
    frame = frame_of(given)
    if frame is not None:
        if not frame.columns:
            raise InvalidInputError(
                f"X is a data frame without columns ({plural(len(frame), 'row')}); give one or more"
            )
        if not options.get("reset", True):
            check_columns(model, X)  # another name comes before another type
        encodes = "categorical_features" in model.get_params(deep=False)
        advice = {"categories": _FROM_TYPE, "text": _CAST} if encodes else {"categories": _ENCODE, "text": _ENCODE}
        check_types(frame, numeric_labels=categories, **advice)
        if options.get("reset", True):
            _warn_of_levels(X)
        options["order"] = "C"
    try:
        if isinstance(X, Bed):
            return _checked_genotypes(model, X, y, **options)
        if numbers is None:
            return validate_data(model, X, y, **options)
        validate_data(model, X, y, reset=options.pop("reset"), skip_check_array=True)
        if isinstance(y, str) and y == "no_validation":
            return check_array(numbers, estimator=model, input_name="X", ensure_min_features=0, **options)
        return check_X_y(numbers, y, estimator=model, ensure_min_features=0, **options)
    except ValueError as error:
        if str(error).startswith("The feature names"):
            raise
        if str(error).startswith("Found array with 0 feature"):
            raise InvalidInputError(f"X has no columns; give one or more. {error}") from error
        if str(error).startswith("Input y contains"):
            raise _about_targets(y, error) from error
        given = to_numpy(given) if is_array_api_obj(given) else given
        may_be_nan = options.get("ensure_all_finite") == "allow-nan"
        if not may_be_nan and str(error).startswith("Input X contains NaN"):
            missing = missing_values(given)
            if missing:
                raise InvalidInputError(f"X contains NaN: {counted(missing)}; {_impute(model)}") from error
        column, is_text = _offending_column(given, may_be_nan)
        if column is None and options.get("y_numeric") and str(error).startswith("could not convert"):
            raise InvalidInputError(f"y: {error}; numbers are needed") from error
        if column is None:
            raise
        raise InvalidInputError(f"{column}: {error}" + (f"; {_ENCODE}" if is_text else "")) from error


def _checked_genotypes(model: Any, X: Bed, y: Any, *, reset: bool = True, **options: Any) -> Any:
    """Return X, whose entries are finite, and y if it is given, as `validated` does for arrays."""
    if reset:
        model.n_features_in_, model.feature_names_in_ = X.shape[1], X.feature_names
    else:
        check_columns(model, X)
    if isinstance(y, str) and y == "no_validation":
        return X
    of_targets = {name: options[name] for name in ("y_numeric", "multi_output") if name in options}
    return X, check_X_y(np.zeros((X.shape[0], 1)), y, **of_targets)[1]


def check_columns(model: Any, X: Any) -> None:
    """Check that X has as many columns as at the fit, with the same names in the same order."""
    if isinstance(X, Bed):
        _check_variants(model, X)
        return
    try:
        validate_data(model, X, reset=False, skip_check_array=True)
    except ValueError as error:
        names = getattr(model, "feature_names_in_", ())
        frame = frame_of(X)
        if frame is None or len(names) == 0:
            raise
        missing = [str(name) for name in names if name not in set(frame.columns)]
        if missing:
            listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise InvalidInputError(
                f"{str(error).rstrip()}\nX does not have {listed}: add or rename them, X[model.feature_names_in_] then "
                "has the columns of the fit."
            ) from error
        raise InvalidInputError(f"{str(error).rstrip()}\nX[model.feature_names_in_] has them.") from error


def _check_variants(model: Any, X: Bed) -> None:
    """Check that the columns of a file of genotypes are those of the fit."""
    names, known = X.feature_names, getattr(model, "feature_names_in_", X.feature_names)
    if X.shape[1] != model.n_features_in_:
        raise InvalidInputError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input"
        )
    if not np.array_equal(names, known):
        j = int(np.argmax(names != known))
        raise InvalidInputError(
            f"column {j} of X (counted from 0) is {names[j]}, in the fit it was {known[j]}: the same variants in "
            "the same order are needed, with the same counted alleles; plink --extract and --reference-allele do that"
        )


def _about_targets(y: Any, error: ValueError) -> InvalidInputError:
    """Return the error about targets that are not finite, with their rows."""
    values = np.asarray(to_numpy(y) if is_array_api_obj(y) else y)
    missing = np.frompyfunc(is_missing, 1, 1)(values).astype(bool)
    wrong = missing if missing.any() else ~np.isfinite(values.astype(np.float64))
    rows = np.flatnonzero(wrong if wrong.ndim == 1 else wrong.any(axis=1))
    first = numbered("row", int(rows[0]))
    if missing.any():
        return InvalidInputError(
            f"y contains NaN: {plural(int(missing.sum()), 'missing value')}, the first in {first}; leave out these rows"
        )
    return InvalidInputError(f"{first}: {error}")


def _warn_of_levels(X: Any) -> None:
    """Warn of names that are tuples, as those of a MultiIndex of pandas are, since only text names features."""
    frame = frame_of(X)
    names = [] if frame is None else frame.columns
    if names and isinstance(names[0], tuple):
        warn(
            f"the names of the columns of X have several levels, such as {format_value(names[0])}, so features are "
            "numbered: x0, x1, ...; to name them, join the levels: "
            "X.columns = [' '.join(map(str, name)) for name in X.columns]"
        )


def _impute(model: Any) -> str:
    """Return what to do about missing values."""
    return (
        f"fill them in with make_pipeline(SimpleImputer(add_indicator=True), {type(model).__name__}(...)) or with "
        "LowRankImputer, or leave out these rows or columns"
    )


def _offending_column(X: Any, may_be_nan: bool) -> tuple[str | None, bool]:
    """Return the name of the first column with text, infinity or NaN, None if none is found; and whether it is text."""
    bad = np.isinf if may_be_nan else lambda x: ~np.isfinite(x)
    if issparse(X):
        coo = X.tocoo()
        where = coo.col[bad(coo.data)] if coo.data.dtype.kind == "f" else np.zeros(0, dtype=int)
        return (numbered("column", int(where.min())) if where.size else None), False
    frame = frame_of(X)
    if frame is None and not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fOU"):
        return None, False
    for j in range(X.shape[1] if frame is None else len(frame.columns)):
        column = X[:, j] if frame is None else frame[:, j].to_numpy()
        if column.dtype.kind not in "fOU":
            continue
        try:
            is_text, is_bad = False, bool(bad(column.astype(float)).any())
        except (ValueError, TypeError):
            is_text = is_bad = True
        if is_bad:
            return called(j, None if frame is None else frame.columns), is_text
    return None, False


def check_some_above_zero(some: bool) -> None:
    """Raise InvalidInputError unless some targets of a model on the scale of a logarithm are above 0."""
    if not some:
        raise InvalidInputError(
            "all targets are 0, which no finite intercept predicts, even with a ridge; give rows with others"
        )


def check_labels(y: np.ndarray) -> None:
    """Check that no label of a class is missing, and that labels can be sorted.

    Raises
    ------
    InvalidInputError
        With the row of the first missing label, or the types of the labels.
    """
    if y.dtype.kind != "O" or y.ndim != 1:
        return
    labels = y.tolist()
    missing = [row for row, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise InvalidInputError(
            f"y has {plural(len(missing), 'missing label')}, the first in row {missing[0]}; leave out these rows, or "
            "give them a class of their own, such as 'missing'"
        )
    text = [isinstance(label, str) for label in labels]
    if any(text) and not all(text):
        types = sorted({type(label).__name__ for label in labels})
        raise InvalidInputError(f"y has labels of the types {', '.join(types)}; convert them to one, such as str")
