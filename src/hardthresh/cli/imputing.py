"""Missing values of tables, which `fit --impute` fills in and `predict` fills in alike."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError

from .data import Data


def imputed(table: Data) -> tuple[Data, Any]:
    """Return a table without missing numbers, and the imputer that filled them in by the means of their columns.

    A column of zeros and ones for each column with missing values says where they were.

    Parameters
    ----------
    table : Data
        A dense table; its categories have no missing values, because `hardthresh.cli.reading.read` makes them a level.

    Returns
    -------
    table : Data
        The columns of numbers, those that say where values were missing, and the categories.
    imputer : SimpleImputer, or ColumnTransformer
        Fitted; of a table with categories, the one that fills in its numbers and passes these on.

    Raises
    ------
    InvalidInputError
        For a sparse table.
    """
    from sklearn.impute import SimpleImputer

    imputer: Any = SimpleImputer(add_indicator=True, keep_empty_features=True)
    if hasattr(table.X, "columns"):
        from sklearn.compose import ColumnTransformer

        numbers = [name for name in table.X.columns if table.X[name].dtype.is_numeric()]
        factors = [name for name in table.X.columns if name not in numbers]
        missing = int(np.isnan(table.X.select(numbers).to_numpy()).sum()) if numbers else 0
        parts = [("numbers", imputer, numbers), ("categories", "passthrough", factors)]
        imputer = ColumnTransformer(parts, verbose_feature_names_out=False).set_output(transform="polars")
        X = imputer.fit_transform(table.X)
    elif isinstance(table.X, np.ndarray):
        missing = int(np.isnan(table.X).sum())
        X = imputer.fit_transform(table.X)
        if table.names is not None:
            imputer.feature_names_in_ = np.asarray(table.names, dtype=object)
    else:
        raise InvalidInputError(
            "--impute is for dense tables; leave it out, since zeros of a sparse one are not missing"
        )
    names = None if table.names is None else tuple(imputer.get_feature_names_out().tolist())
    return replace(table, X=X, names=names, missing=table.missing + missing), imputer


def described(fitted: Any) -> Any:
    """Return the model of a pipeline with the names of the columns that the pipeline makes; any other as it is."""
    if not hasattr(fitted, "steps"):
        return fitted
    model = copy(fitted[-1])
    vars(model).update(vars(fitted[-1]))  # a copy leaves out the rows of the fit, which the report asks about
    if hasattr(fitted[0], "feature_names_in_"):
        model.feature_names_in_ = fitted[:-1].get_feature_names_out()
    return model


def columns_read(fitted: Any) -> tuple[list[int], frozenset[int]]:
    """Return the columns of the table that a model, or a pipeline, reads, increasing, and which of them are categories.

    The indicator of missing values of a column reads that column.
    """
    model = fitted[-1] if hasattr(fitted, "steps") else fitted
    encoding = getattr(model, "encoding_", None)
    features = np.arange(model.n_features_in_) if encoding is None else encoding.features
    factors = set() if encoding is None else {factor.column for factor in encoding.factors}
    sources = _sources(fitted[0]) if hasattr(fitted, "steps") else np.arange(model.n_features_in_)
    chosen = {int(features[j]) for j in np.asarray(model.support_).tolist()}
    return sorted({int(sources[j]) for j in chosen}), frozenset(int(sources[j]) for j in chosen & factors)


def _sources(imputer: Any) -> np.ndarray:
    """Return for each column that an imputer makes the column of its table that it is made of."""
    if hasattr(imputer, "transformers"):
        place = {name: j for j, name in enumerate(imputer.feature_names_in_.tolist())}
        parts = [(imputer.named_transformers_[name], columns) for name, _, columns in imputer.transformers]
        columns_of = [np.array([place[name] for name in columns], dtype=np.intp) for _, columns in parts]
        return np.concatenate(
            [
                own[_sources(part)] if hasattr(part, "statistics_") else own
                for (part, _), own in zip(parts, columns_of, strict=True)
            ]
        )
    kept = imputer.keep_empty_features | ~np.isnan(imputer.statistics_)
    marked = [] if imputer.indicator_ is None else imputer.indicator_.features_
    return np.concatenate([np.flatnonzero(kept), np.asarray(marked, dtype=np.intp)])
