"""Columns as users name them: those that are always included, the groups of all, and lists of them that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.constraints import GroupSparsity, OverlappingGroupSparsity
from hardthresh.constraints.labels import is_missing, read_labels
from hardthresh.core.errors import InvalidInputError, format_value, numbered
from hardthresh.core.typing import is_integer


def column_indices(
    given: Any, n_features: int, names: Sequence[Any] | None, setting: str = "always_include"
) -> tuple[int, ...]:
    """Return columns as increasing indices.

    Parameters
    ----------
    given : iterable of int or str, or None
        The columns as the user named them.
    n_features : int
        The number of columns.
    names : list of str, optional
        Their names.
    setting : str
        The parameter that names them, for messages.

    Raises
    ------
    InvalidInputError
        For a single column, or columns that are unknown or neither names nor indices.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInputError(f"{setting} must be a list of columns, got {format_value(given)}")
    place = {name: j for j, name in enumerate(names or ())}
    found = set()
    for column in given:
        if isinstance(column, str):
            if column not in place:
                known = f"known are {', '.join(names[:5])}, ..." if names else "X has no column names; use indices"
                raise InvalidInputError(f"{setting} names the unknown column {format_value(column)}; {known}")
            found.add(place[column])
        elif not is_integer(column):
            raise InvalidInputError(f"{setting} takes names and indices, got {format_value(column)}")
        elif not 0 <= column < n_features:
            raise InvalidInputError(f"{setting} names column {column}; X has {n_features} columns, counted from 0")
        else:
            found.add(int(column))
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class ColumnGroups:
    """Groups of columns, each column in one of them, of which whole ones are chosen.

    Attributes
    ----------
    labels : tuple
        The group of each column, None for those that are always included.
    """

    labels: tuple[Any, ...]

    def count(self, always: Iterable[int]) -> int:
        """Return the number of groups to choose from."""
        spared = set(always)
        return len({label for j, label in enumerate(self.labels) if j not in spared})

    def constraint(self, k: int, free: tuple[int, ...], size: int) -> GroupSparsity:
        """Return the set of points of a size, with k groups; coordinates beyond the columns are free."""
        return GroupSparsity(self.labels_of(size), k, free=free)

    def labels_of(self, size: int) -> tuple[Any, ...]:
        """Return the label of each coordinate of points of a size, None for those beyond the columns."""
        return (*self.labels, *[None] * (size - len(self.labels)))

    def left_out(self, always: Iterable[int]) -> np.ndarray:
        """Return the columns that are in no group and not always included: none."""
        return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class ColumnLists:
    """Lists of columns that may overlap, of which whole ones are chosen.

    Attributes
    ----------
    names : tuple
        The names of the lists.
    lists : tuple of tuples of int
        Their columns, increasing.
    n_columns : int
        The number of columns.
    """

    names: tuple[Any, ...]
    lists: tuple[tuple[int, ...], ...]
    n_columns: int

    def count(self, always: Iterable[int]) -> int:
        """Return the number of lists to choose from: of those with a column that is not always included."""
        spared = set(always)
        return sum(not spared.issuperset(columns) for columns in self.lists)

    def constraint(self, k: int, free: tuple[int, ...], size: int) -> OverlappingGroupSparsity:
        """Return the set of points of a size, with k lists."""
        return OverlappingGroupSparsity(self.lists, k, free=free, names=self.names)

    def labels_of(self, size: int) -> tuple[Any, ...]:
        """Raise InvalidInputError, as a column may be in several lists."""
        raise InvalidInputError(
            "groups that are lists of columns are for models of one output or of two classes; give a label for each "
            "column"
        )

    def left_out(self, always: Iterable[int]) -> np.ndarray:
        """Return the columns that are in no list and not always included."""
        return np.setdiff1d(np.arange(self.n_columns), [*always, *(j for columns in self.lists for j in columns)])


def are_lists(groups: Any) -> bool:
    """Return whether groups are lists of columns, by the first of them; labels of columns cannot be lists."""
    groups = groups.values() if isinstance(groups, Mapping) else groups
    listed = isinstance(groups, Iterable) and not isinstance(groups, str) and not hasattr(groups, "dtype")
    return listed and _is_list(next(iter(groups), None))


def _is_list(group: Any) -> bool:
    return isinstance(group, list | set | frozenset | range) or getattr(group, "ndim", 0) == 1


def column_lists(groups: Any, n_features: int, names: Sequence[Any] | None, features: np.ndarray) -> ColumnLists:
    """Return the groups of columns that a user gave as lists of these.

    Parameters
    ----------
    groups : sequence of lists, or mapping from name to list
        As the user gave it; each list has columns by index or name.
    n_features : int
        The number of columns.
    names : list of str, optional
        Their names.
    features : array of int
        For each column with a coefficient, the column that it is, or is a level of.

    Raises
    ------
    InvalidInputError
        For labels among the lists, empty lists, names of groups that are missing, and columns that are unknown or named
        twice.
    """
    given = groups if isinstance(groups, Mapping) else dict(enumerate(groups))
    lists = []
    for name, group in given.items():
        called = f"groups[{format_value(name)}]"
        if is_missing(name):
            raise InvalidInputError(f"a name in groups is missing ({format_value(name)}); give every group one")
        if not _is_list(group):
            raise InvalidInputError(
                f"groups mixes lists of columns with labels: {called} is {format_value(group)}; give a list of columns "
                "for each group, or a label for each column"
            )
        columns = [column.item() if isinstance(column, np.generic) else column for column in group]
        found = column_indices(columns, n_features, names, setting=called)
        if not found:
            raise InvalidInputError(f"{called} is empty; leave it out")
        if len(found) < len(columns):
            raise InvalidInputError(f"{called} names a column twice, {format_value(columns)}; name it once")
        lists.append(tuple(np.flatnonzero(np.isin(features, found)).tolist()))
    return ColumnLists(tuple(given), tuple(lists), features.size)


def column_labels(groups: Any, n_features: int, names: list[Any] | None, always: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the group of each column, None for those that are always included, whose labels do not matter.

    Parameters
    ----------
    groups : sequence, or mapping from column to label
        As the user gave it; a pandas Series is a mapping, too, unless its index is the default 0, 1, ...
    n_features : int
        The number of columns.
    names : list of str, optional
        Their names; without them a mapping names columns by index.
    always : tuple of int
        The columns that are always included.

    Raises
    ------
    InvalidInputError
        For missing or unhashable labels, another number of labels than columns, or columns unknown, left out or named
        twice.
    """
    if hasattr(groups, "to_dict") and hasattr(groups, "index") and getattr(groups, "ndim", 0) == 1:
        index = list(groups.index)
        if index != list(range(len(index))):
            if len(set(index)) < len(index):
                raise InvalidInputError("groups names a column twice in its index; one label for each column is needed")
            groups = groups.to_dict()
    if isinstance(groups, Mapping):
        columns = list(range(n_features)) if names is None else names
        known, spared = set(columns), set(always)
        unknown = [column for column in groups if column not in known]
        left_out = [column for j, column in enumerate(columns) if column not in groups and j not in spared]
        if unknown or left_out:
            what = (
                f"names the unknown column {format_value(unknown[0])}"
                if unknown
                else f"has no label for {numbered('column', left_out[0])}"
                if names is None
                else f"has no label for column {format_value(left_out[0])}"
            )
            nameless = unknown and names is None
            why = (
                "X has no column names, only numbers, counted from 0"
                if nameless
                else "one label for each column is needed"
            )
            raise InvalidInputError(f"groups {what}; {why}")
        groups = [groups.get(column) for column in columns]
    if not hasattr(groups, "__len__") or isinstance(groups, str):
        raise InvalidInputError(
            f"groups must be a list of labels, one for each column, or a mapping; got {format_value(groups)}"
        )
    count = len(groups)
    if count != n_features:
        raise InvalidInputError(f"groups has {count} labels, but X has {n_features} columns; give one for each")
    try:
        labels, _ = read_labels(groups, always)
    except InvalidInputError as error:
        raise InvalidInputError(f"groups: {error}") from error
    return labels
