"""Pipelines of scikit-learn with an imputer before a model, as nodes without anything private of scikit-learn."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .errors import StorageError


def is_pipeline(cls: type) -> bool:
    """Return whether a class is scikit-learn's `Pipeline`, which is not imported to know."""
    return cls is getattr(sys.modules.get("sklearn.pipeline"), "Pipeline", None)


def is_imputer(cls: type) -> bool:
    """Return whether a class is scikit-learn's `SimpleImputer`, which is not imported to know."""
    return cls is getattr(sys.modules.get("sklearn.impute"), "SimpleImputer", None)


def imputer_parts(imputer: Any, where: str) -> dict[str, Any]:
    """Return the settings of an imputer, and if it is fitted, a table of two rows that fits it alike.

    The rows hold what it fills in; in the second, an entry is missing in the columns that it marks.

    Raises
    ------
    StorageError
        If missing entries are marked by anything but NaN.
    """
    settings = imputer.get_params()
    if not (isinstance(settings["missing_values"], float) and np.isnan(settings["missing_values"])):
        raise StorageError(f"{where} cannot be stored: its missing_values are {settings['missing_values']!r}, not NaN")
    del settings["missing_values"]
    if not hasattr(imputer, "statistics_"):
        return {"settings": settings, "rows": None, "names": None}
    rows = np.tile(np.asarray(imputer.statistics_, dtype=np.float64), (2, 1))
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
