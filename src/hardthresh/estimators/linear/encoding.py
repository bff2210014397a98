"""Categorical columns as indicators of their levels, which are chosen together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from hardthresh.constraints.labels import is_missing
from hardthresh.core.errors import InvalidInputError, format_value, numbered, plural, warn
from hardthresh.core.schema import stored

from ..frames import SHOWN, called, categorical_columns, coded, frame_of
from .columns import column_indices
from .null_comparison import rows_of_weight

MOST_LEVELS = 1000
"""The largest number of levels that are encoded: a column of more is likely to identify rows, or needs fewer levels."""

ROWS_PER_LEVEL = 10
"""The least number of rows for each coefficient of a column without a warning.

Peduzzi and others (1996, *Journal of Clinical Epidemiology* 49, 1373-1379) found ten to be the least that give
coefficients without bias. L levels explain (L - 1) / (n - 1) of the variance of any target of n rows by chance, so this
is a tenth; `docs/guide/tables.rst` has what larger shares cost.
"""

Level: TypeAlias = bool | int | float | str
Codes: TypeAlias = tuple[list[Level], np.ndarray]
"""The levels of a column, sorted, and the place of that of each row among them."""


@stored("part/factor")
@dataclass(frozen=True, slots=True)
class Factor:
    """A categorical column, and the levels that have an indicator.

    Attributes
    ----------
    column : int
        The column.
    levels : tuple of bool, int, float or str
        All of its levels in the rows of positive weight, sorted: numbers by size, and texts by character.
    reference : int or None
        The place of the level without an indicator; None if each has one.
    """

    column: int
    levels: tuple[Level, ...]
    reference: int | None

    @property
    def encoded(self) -> tuple[Level, ...]:
        """The levels that have an indicator."""
        return tuple(level for place, level in enumerate(self.levels) if place != self.reference)


@stored("part/encoding")
@dataclass(frozen=True, slots=True)
class Encoding:
    """How a table with categorical columns became one of numbers.

    Numbers stay as they are. A categorical column is replaced by one column for each of its encoded levels, which is 1
    where the row has that level and 0 elsewhere.

    Attributes
    ----------
    n_features : int
        The number of columns of the table as it was given.
    factors : tuple of Factor
        The categorical columns, in their order.
    """

    n_features: int
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        columns = [factor.column for factor in self.factors]
        sound = columns == sorted(set(columns)) and all(0 <= column < self.n_features for column in columns)
        if not sound or any(not factor.encoded for factor in self.factors):
            raise InvalidInputError(f"an encoding of {self.n_features} columns cannot have the factors {self.factors}")

    @property
    def features(self) -> np.ndarray:
        """For each encoded column, the column of the given table that it is, or is a level of."""
        widths = np.ones(self.n_features, dtype=np.intp)
        widths[[factor.column for factor in self.factors]] = [len(factor.encoded) for factor in self.factors]
        return np.repeat(np.arange(self.n_features), widths)

    @property
    def indicators(self) -> frozenset[int]:
        """The encoded columns that are levels."""
        return frozenset(np.flatnonzero(np.isin(self.features, [factor.column for factor in self.factors])).tolist())

    @property
    def n_columns(self) -> int:
        """The number of encoded columns."""
        return self.n_features + sum(len(factor.encoded) - 1 for factor in self.factors)

    def names(self, given: Sequence[Any] | None) -> np.ndarray:
        """Return the names of the encoded columns, such as "colour=red", for names of the given ones."""
        own = [f"x{j}" for j in range(self.n_features)] if given is None else [str(name) for name in given]
        levels = {factor.column: factor.encoded for factor in self.factors}
        named = [[f"{name}={level}" for level in levels[j]] if j in levels else [name] for j, name in enumerate(own)]
        return np.array([name for names in named for name in names], dtype=object)

    def encode(self, numbers: np.ndarray, codes: Mapping[int, Codes]) -> np.ndarray:
        """Return the encoded table.

        Parameters
        ----------
        numbers : array, shape (n_samples, n_features - n_factors)
            The columns that are not categorical.
        codes : mapping from int to Codes
            The categorical ones, by column; the indicators of those that are left out are 0.

        Returns
        -------
        array, shape (n_samples, n_columns)
            In the precision of `numbers`. Rows of a level that was not in the fit are 0 in all of its indicators.
        """
        features = self.features
        X = np.zeros((numbers.shape[0], features.size), dtype=numbers.dtype)
        X[:, sorted(set(range(features.size)) - self.indicators)] = numbers
        for factor in self.factors:
            levels, places = codes.get(factor.column, ([], np.zeros(0, dtype=np.intp)))
            column_of = {level: j for j, level in enumerate(factor.encoded, int(np.argmax(features == factor.column)))}
            columns = np.array([column_of.get(level, -1) for level in levels], dtype=np.intp)[places]
            rows = np.flatnonzero(columns >= 0)
            X[rows, columns[rows]] = 1
        return X

    def check_known(self, codes: Mapping[int, Codes], names: Sequence[Any] | None) -> None:
        """Check that the levels of categorical columns are those of the fit.

        Raises
        ------
        InvalidInputError
            With the column and the level that is not.
        """
        for factor, level in self.new_levels(codes):
            levels, places = codes[factor.column]
            row = numbered("row", int(np.argmax(places == levels.index(level))))
            raise InvalidInputError(
                f"{called(factor.column, names)} has the level {format_value(level)} in {row}, which was not in the "
                f"fit; known are {_listed(factor.levels)}"
            )

    def new_levels(self, codes: Mapping[int, Codes]) -> list[tuple[Factor, Level]]:
        """Return the levels of categorical columns that are not those of the fit, each with its factor."""
        return [
            (factor, level)
            for factor in self.factors
            for level in codes.get(factor.column, ((), ()))[0]
            if level not in factor.levels
        ]


@stored("part/open_encoding")
@dataclass(frozen=True, slots=True)
class OpenEncoding(Encoding):
    """An encoding that takes levels that were not in the fit: their rows are 0 in all indicators of the column."""

    def check_known(self, codes: Mapping[int, Codes], names: Sequence[Any] | None) -> None:
        """Accept every level."""


def factor_columns(X: Any, categorical_features: Any) -> tuple[int, ...]:
    """Return the categorical columns of a table, increasing.

    Parameters
    ----------
    X : array or data frame
        The table, as it was given.
    categorical_features : "from_dtype", None, or iterable of int or str
        As the user set it: the columns of a data frame whose type is categorical or an enumeration, none, or these.

    Raises
    ------
    InvalidInputError
        For columns that X does not have, and tables that cannot have categorical columns.
    """
    if categorical_features is None:
        return ()
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        frame = frame_of(X)
        return () if frame is None else categorical_columns(frame)
    frame = frame_of(X)
    if frame is None and (issparse(X) or not isinstance(X, np.ndarray | list | tuple)):
        raise InvalidInputError(
            f"categorical_features needs a data frame or a dense NumPy array, got {type(X).__name__}; encode the "
            "columns, and set groups"
        )
    shape = np.shape(X) if frame is None else frame.shape
    if len(shape) != 2:
        return ()  # which is refused later
    names = None if frame is None else [name for name in frame.columns if isinstance(name, str)]
    return column_indices(categorical_features, shape[1], names or None, "categorical_features")


def without(X: Any, columns: Collection[int]) -> Any:
    """Return a data frame or an array without some columns; an array of no columns if none is left."""
    frame = frame_of(X)
    if frame is None:
        return np.delete(np.asarray(X), list(columns), axis=1)
    kept = [j for j in range(len(frame.columns)) if j not in columns]
    return frame[:, kept].to_native() if kept else np.zeros((len(frame), 0))


def read_codes(X: Any, columns: Collection[int]) -> dict[int, Codes]:
    """Return the levels and codes of some columns of a table.

    Raises
    ------
    InvalidInputError
        For missing values.
    """
    frame = frame_of(X)
    names = None if frame is None else frame.columns
    found = {}
    for j in columns:
        raw, places = _of_array(np.asarray(X)[:, j]) if frame is None else coded(frame[:, j])
        missing = [place for place, level in enumerate(raw) if is_missing(level)]
        if missing:
            raise InvalidInputError(
                f"{called(j, names)} has {plural(int(np.isin(places, missing).sum()), 'missing value')}, and is "
                "categorical; give them a level of their own, such as 'missing', or leave out these rows"
            )
        plain = [_plain(level) for level in raw]
        levels = sorted(set(plain), key=lambda level: (isinstance(level, str), level))
        place_of = {level: place for place, level in enumerate(levels)}
        found[j] = levels, np.array([place_of[level] for level in plain], dtype=np.intp)[places]
    return found


def encoding_of(
    n_features: int,
    codes: Mapping[int, Codes],
    weights: np.ndarray | None,
    names: Sequence[Any] | None,
    *,
    every_level: Collection[int],
) -> Encoding:
    """Return the encoding of a table.

    Parameters
    ----------
    n_features : int
        The number of columns.
    codes : mapping from int to Codes
        The categorical ones.
    weights : array, shape (n_samples,), optional
        The weights of the rows.
    names : sequence of str, optional
        The names of the columns, for messages.
    every_level : collection of int
        The categorical columns of which each level has an indicator. The others have one for all but the most frequent
        level, the reference; a column of one level has it in any case.

    Raises
    ------
    InvalidInputError
        For more than `MOST_LEVELS` levels, and for a column with another level in each row.

    Warns
    -----
    UserWarning
        For more than two levels with less than `ROWS_PER_LEVEL` rows for each of their coefficients.
    """
    factors = []
    for column, (levels, places) in sorted(codes.items()):
        frequency = np.bincount(places, weights, minlength=len(levels))
        seen = np.flatnonzero(frequency)
        if seen.size > MOST_LEVELS:
            raise InvalidInputError(
                f"{called(column, names)} has {seen.size:,} levels, and at most {MOST_LEVELS:,} are encoded; join rare "
                "levels, encode it as numbers, for example with sklearn.preprocessing.TargetEncoder, or leave it out"
            )
        _check_rows(called(column, names), seen.size, np.ones(len(places)) if weights is None else weights[weights > 0])
        reference = None if column in every_level or seen.size == 1 else int(np.argmax(frequency[seen]))
        factors.append(Factor(column, tuple(levels[place] for place in seen), reference))
    return Encoding(n_features, tuple(factors))


def _check_rows(column: str, n_levels: int, weights: np.ndarray) -> None:
    """Refuse a column that has another level in each row, and warn of one that has few rows for each of its levels."""
    n = rows_of_weight(weights)
    if 1 < n <= n_levels:
        raise InvalidInputError(
            f"{column} has {plural(n_levels, 'level')} in as many rows, so it identifies rows and tells nothing about "
            "others; leave it out, join its levels, or use it as numbers if it holds some"
        )
    if n_levels > 2 and n < ROWS_PER_LEVEL * (n_levels - 1):
        warn(
            f"{column} has {plural(n_levels, 'level')} in {n:,.0f} rows, which explain {(n_levels - 1) / (n - 1):.0%} "
            "of the variance of any target by chance, so it may be chosen in place of features that predict; join its "
            "levels, encode it as numbers, for example with sklearn.preprocessing.TargetEncoder, or leave it out"
        )


def _of_array(column: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the different values of a column of an array, and the place of that of each row among them."""
    if column.dtype.kind != "O":
        values, places = np.unique(column, return_inverse=True)
        return values.tolist(), places
    place_of: dict[Any, int] = {}
    keys = (None if is_missing(value) else value for value in column.tolist())
    places = np.array([place_of.setdefault(key, len(place_of)) for key in keys], dtype=np.intp)
    return list(place_of), places


def _plain(level: Any) -> Level:
    """Return a level as a plain number or text: a whole number as an integer, and what is neither as its text."""
    level = level.item() if isinstance(level, np.generic) else level
    if isinstance(level, float) and level.is_integer():
        return int(level)
    return level if isinstance(level, bool | int | float | str) else str(level)


def _listed(levels: Sequence[Level]) -> str:
    more = f" and {len(levels) - SHOWN:,} more" if len(levels) > SHOWN else ""
    return ", ".join(format_value(level) for level in levels[:SHOWN]) + more
