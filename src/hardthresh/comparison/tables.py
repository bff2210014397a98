"""The features as numbers and codes of categories, and what is made of them in each fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_array

from hardthresh.core.errors import InvalidInputError, plural
from hardthresh.designs import Design
from hardthresh.designs.blocks import in_blocks
from hardthresh.estimators.frames import check_types, counted, frame_of, missing_values
from hardthresh.estimators.linear.encoding import factor_columns, read_codes, without


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The columns of a table.

    Attributes
    ----------
    X : array or CSR matrix, shape (n, d)
        Numbers; a column of categories holds the codes of its levels.
    factors : tuple of int
        The columns of categories.
    names : tuple of str
        The names of the columns.
    impute : bool
        Whether missing numbers are filled in, within each fold.
    """

    X: Any
    factors: tuple[int, ...]
    names: tuple[str, ...]
    impute: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        n, d = self.X.shape
        return int(n), int(d)

    def take(self, rows: np.ndarray) -> Features:
        """Return some rows."""
        return Features(self.X[rows], self.factors, self.names, self.impute)


def features_of(X: Any, categorical_features: Any, names: Sequence[str] | None, *, impute: bool) -> Features:
    """Return the columns of a table in memory.

    Raises
    ------
    InvalidInputError
        For a table in blocks, text that is not declared as a category, and missing numbers without `impute`.
    """
    if isinstance(X, Design) or in_blocks(X):
        raise InvalidInputError("compare needs a table in memory: an array, a sparse matrix or a data frame")
    factors = factor_columns(X, categorical_features)
    frame = frame_of(X)
    numbers = without(X, factors) if factors else X
    if frame is not None and frame_of(numbers) is not None:
        check_types(
            frame_of(numbers),
            numeric_labels=True,
            categories="name it in categorical_features",
            text="name it in categorical_features, or leave it out",
        )
    missing = missing_values(numbers)
    if missing and not impute:
        raise InvalidInputError(
            f"X has {counted(missing)}; fill them in within each fold by impute=True, or leave out these rows"
        )
    if sparse.issparse(numbers) and impute:
        raise InvalidInputError("impute=True is for dense tables; zeros of a sparse one are not missing")
    finite: Any = "allow-nan" if impute else True
    if not factors or np.shape(numbers)[1]:
        numbers = check_array(numbers, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite)
    whole = numbers
    d = numbers.shape[1] + len(factors)
    if factors:
        whole = np.empty((np.shape(X)[0], d))
        whole[:, sorted(set(range(d)).difference(factors))] = numbers
        for column, (_, codes) in read_codes(X, factors).items():
            whole[:, column] = codes
    if names is not None and len(names) != d:
        raise InvalidInputError(f"feature_names has {plural(len(names), 'name')}, and X has {plural(d, 'column')}")
    given = names if names is not None else None if frame is None else frame.columns
    return Features(whole, factors, tuple(f"x{j}" if given is None else str(given[j]) for j in range(d)), impute)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a fold makes of the columns, by its training rows alone.

    Attributes
    ----------
    train, test : array or sparse matrix
        The training rows and those held out, without missing values. Of a level that is not in the training rows, those
        held out have their most frequent level.
    factors : tuple of int
        The columns of categories.
    sources : array of int
        For each column, that of the table which it is made of; a column that says where numbers were missing is made of
        that of these numbers.
    """

    train: Any
    test: Any
    factors: tuple[int, ...]
    sources: np.ndarray

    @classmethod
    def of(cls, features: Features, train: np.ndarray, test: np.ndarray) -> Prepared:
        """Return the rows of a fold."""
        parts = features.X[train], features.X[test]
        sources = np.arange(features.shape[1])
        if sparse.issparse(features.X):
            return cls(parts[0].tocsc(), parts[1].tocsr(), (), sources)
        for factor in features.factors:
            levels, counts = np.unique(parts[0][:, factor], return_counts=True)
            unknown = ~np.isin(parts[1][:, factor], levels)
            parts[1][unknown, factor] = levels[np.argmax(counts)]
        if features.impute:
            imputer = SimpleImputer(add_indicator=True, keep_empty_features=True).fit(parts[0])
            parts = imputer.transform(parts[0]), imputer.transform(parts[1])
            sources = np.concatenate([sources, imputer.indicator_.features_])
        return cls(parts[0], parts[1], features.factors, sources)

    def encoded(self) -> Prepared:
        """Return the rows with an indicator for each level of the training rows instead of a category."""
        if not self.factors:
            return self
        trains: list[np.ndarray] = []
        tests: list[np.ndarray] = []
        sources: list[int] = []
        for j, source in enumerate(self.sources):
            levels = np.unique(self.train[:, j]) if j in self.factors else None
            for found, X in ((trains, self.train), (tests, self.test)):
                column = X[:, [j]]
                found.append(column if levels is None else (column == levels).astype(np.float64))
            sources += [source] * trains[-1].shape[1]
        return Prepared(np.hstack(trains), np.hstack(tests), (), np.asarray(sources))

    def columns_of(self, used: np.ndarray | None) -> np.ndarray | None:
        """Return the columns of the table that some columns are made of; None for all."""
        return None if used is None else np.unique(self.sources[used])
