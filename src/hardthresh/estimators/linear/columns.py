"""Columns as users name them: those that are always included, and the groups of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hardthresh.constraints.labels import read_labels
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
