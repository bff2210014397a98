"""Pipelines of scikit-learn with imputers before a model, as nodes without anything private of scikit-learn."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from .errors import StorageError


def is_pipeline(cls: type) -> bool:
    """Return whether a class is scikit-learn's `Pipeline`, which is not imported to know."""
    return cls is getattr(sys.modules.get("sklearn.pipeline"), "Pipeline", None)


def is_imputer(cls: type) -> bool:
    """Return whether a class is scikit-learn's `SimpleImputer`, which is not imported to know."""
    return cls is getattr(sys.modules.get("sklearn.impute"), "SimpleImputer", None)


def is_column_transformer(cls: type) -> bool:
    """Return whether a class is scikit-learn's `ColumnTransformer`, which is not imported to know."""
    return cls is getattr(sys.modules.get("sklearn.compose"), "ColumnTransformer", None)


def imputer_parts(imputer: Any, where: str) -> dict[str, Any]:
    """Return the settings of an imputer, and if it is fitted, a table of two rows that fits it alike.

    The rows hold what it fills in; in the second, an entry is missing in the columns that it marks.

    Raises
    ------
    StorageError
        If missing entries are marked by anything but NaN, or what is filled in are no numbers.
    """
    settings = imputer.get_params()
    if not (isinstance(settings["missing_values"], float) and np.isnan(settings["missing_values"])):
        raise StorageError(f"{where} cannot be stored: its missing_values are {settings['missing_values']!r}, not NaN")
    del settings["missing_values"]
    if not hasattr(imputer, "statistics_"):
        return {"settings": settings, "rows": None, "names": None}
    try:
        rows = np.tile(np.asarray(imputer.statistics_, dtype=np.float64), (2, 1))
    except ValueError as error:
        raise StorageError(f"{where} cannot be stored: what it fills in are no numbers: {error}") from error
    if imputer.indicator_ is not None:
        rows[1, imputer.indicator_.features_] = np.nan
    return {"settings": settings, "rows": rows, "names": getattr(imputer, "feature_names_in_", None)}


def imputer_of(settings: dict[str, Any], rows: np.ndarray | None, names: np.ndarray | None) -> Any:
    """Return the imputer with such parts.

    Raises
    ------
    StorageError
        If the rows do not lead to one that fills in what they hold.
    """
    from sklearn.impute import SimpleImputer

    imputer = SimpleImputer(**settings)
    if rows is None:
        return imputer
    try:
        imputer.fit(rows)
        sound = np.array_equal(imputer.statistics_.astype(np.float64), rows[0], equal_nan=True)
    except (ValueError, TypeError, IndexError) as error:
        raise StorageError(f"it holds an imputer that cannot be fitted: {error}") from error
    if not sound or (names is not None and np.shape(names) != (rows.shape[1],)):
        raise StorageError("it holds an imputer whose parts do not fit together")
    if names is not None:
        imputer.feature_names_in_ = names
    return imputer


def column_transformer_parts(transformer: Any, where: str) -> dict[str, Any]:
    """Return the settings of a transformer of columns, its parts, the columns that it was fitted on, and its output.

    The parts are imputers, fitted if it is, and the words "passthrough" and "drop".

    Raises
    ------
    StorageError
        If columns are not chosen by lists of names, or for other parts.
    """
    settings = transformer.get_params(deep=False)
    del settings["transformers"]
    fitted = hasattr(transformer, "transformers_")
    names = getattr(transformer, "feature_names_in_", None)
    if not isinstance(transformer.remainder, str):
        raise StorageError(f"{where} cannot be stored: its remainder is an estimator")
    parts = []
    for name, part, columns in transformer.transformers:
        if not (isinstance(part, str) or is_imputer(type(part))):
            raise StorageError(f"{where} cannot be stored: {name!r} is no SimpleImputer, 'passthrough' or 'drop'")
        if (fitted and names is None) or not (isinstance(columns, list) and all(type(one) is str for one in columns)):
            raise StorageError(f"{where} cannot be stored: the columns of {name!r} are not the names of a data frame's")
        unchanged = isinstance(part, str) or not fitted
        parts.append([name, part if unchanged else transformer.named_transformers_[name], columns])
    output = getattr(transformer, "_sklearn_output_config", {}).get("transform", "default")
    return {"settings": settings, "parts": parts, "names": names, "output": output}


def column_transformer_of(settings: dict[str, Any], parts: Any, names: np.ndarray | None, output: str) -> Any:
    """Return the transformer of columns with such parts: if they are fitted, fitted alike to a frame of two rows.

    Raises
    ------
    StorageError
        If they do not fit together, or the library of the frames that it returns is not installed.
    """
    from sklearn.compose import ColumnTransformer

    try:
        transformers = [(str(name), part, list(columns)) for name, part, columns in parts]
        transformer = ColumnTransformer(transformers, **settings).set_output(transform=output)
        if names is None:
            return transformer
        frame: dict[str, Any] = {str(name): ["", ""] for name in names}
        for _, part, columns in transformers:
            if is_imputer(type(part)) and columns:
                frame |= dict(zip(columns, imputer_parts(part, "it")["rows"].T, strict=True))
        if len(frame) != len(names):
            raise ValueError("unknown columns")
        library = import_module(output if output in ("pandas", "polars") else "pandas")
        return transformer.fit(library.DataFrame(frame))
    except ImportError as error:
        raise StorageError(f"it holds a pipeline of data frames; install {error.name} to load it") from error
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise StorageError(f"it holds a transformer of columns whose parts do not fit together: {error}") from error


def pipeline_of(steps: Any) -> Any:
    """Return the pipeline of some steps, pairs of a name and an estimator.

    Raises
    ------
    StorageError
        If they are not such pairs.
    """
    from sklearn.pipeline import Pipeline

    if not isinstance(steps, list) or not all(isinstance(step, list) and len(step) == 2 for step in steps):
        raise StorageError("it holds a pipeline whose steps are not pairs of a name and an estimator")
    pipeline = Pipeline([(str(name), step) for name, step in steps])
    try:
        pipeline._validate_steps()
    except (TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"it holds a pipeline that is none: {error}") from error
    return pipeline
