"""From labels of columns, of any hashable type and in any order, to numbers of groups."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Number
from operator import index
from typing import Any, TypeVar

import numpy as np

from hardthresh.arrays import Grouping
from hardthresh.core.errors import InvalidInputError, format_value, numbered

T = TypeVar("T")


def changed(constraint: T, **budgets: int) -> T:
    """Return a constraint with other budgets, without reading its labels again."""
    twin = object.__new__(type(constraint))
    for name in constraint.__dataclass_fields__:  # type: ignore[attr-defined]
        object.__setattr__(twin, name, budgets.get(name, getattr(constraint, name)))
    return twin


def free_coordinates(free: Any, size: int | None = None) -> tuple[int, ...]:
    """Return the free coordinates, increasing, without repetition."""
    try:
        found = tuple(sorted({index(j) for j in free}))
    except TypeError as error:
        raise InvalidInputError(f"the free coordinates must be integers, got {format_value(free)}") from error
    if found and found[0] < 0:
        raise InvalidInputError(f"free coordinates must be >= 0, got {found[0]}")
    if size is not None and found and found[-1] >= size:
        raise InvalidInputError(f"free coordinate {found[-1]} does not exist: there are labels for {size} coordinates")
    return found


def read_labels(labels: Any, free: tuple[int, ...] | Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return one hashable label per coordinate, None for free ones, and the free coordinates.

    Raises
    ------
    InvalidInputError
        For no labels at all, labels that are missing (None, NaN) or not hashable, True or False next to numbers, which
        would be equal to some of them, and for coordinates that do not exist.

    Notes
    -----
    Labels that are equal in Python are the same, as 1 and 1.0.
    """
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise InvalidInputError(f"labels must be a list with one label per column, got {format_value(labels)}")
    listed = [
        label.item() if isinstance(label, np.generic) else label
        for label in (labels.tolist() if hasattr(labels, "tolist") else labels)
    ]
    allowed = free_coordinates(free, len(listed))
    for j in allowed:
        listed[j] = None
    counted = np.ones(len(listed), dtype=bool)
    counted[list(allowed)] = False
    if not listed:
        raise InvalidInputError("labels are empty; give one label per column")
    kinds = {type(label) for label in listed}
    if bool in kinds and any(issubclass(kind, Number) for kind in kinds - {bool}):
        raise InvalidInputError("labels mix True or False with numbers, and True equals 1; use text or numbers only")
    for j in np.flatnonzero(counted).tolist():
        if not isinstance(listed[j], Hashable) or not _can_be_hashed(listed[j]):
            raise InvalidInputError(
                f"labels must be hashable, one per column, but that of {numbered('column', j)} is "
                f"{format_value(listed[j])}; use text or numbers"
            )
        if is_missing(listed[j]):
            raise InvalidInputError(
                f"the label of {numbered('column', j)} is missing ({format_value(listed[j])}); give every column a "
                "label, or make it free (in estimators: always_include)"
            )
    return tuple(listed), allowed


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or another library's missing value."""
    if isinstance(label, str | int):
        return False
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, tuple):
        return any(map(is_missing, label))
    return bool(label != label)


def dealt(labels: tuple[Any, ...], free: tuple[int, ...]) -> tuple[tuple[Any, ...], Grouping]:
    """Return the labels of the groups in order of first appearance, and the grouping of the coordinates."""
    number_of: dict[Any, int] = {}
    counted = np.ones(len(labels), dtype=bool)
    counted[list(free)] = False
    numbers = np.fromiter(
        (
            number_of.setdefault(label, len(number_of)) if kept else -1
            for label, kept in zip(labels, counted, strict=True)
        ),
        dtype=np.int64,
        count=len(labels),
    )
    numbers[~counted] = len(number_of)
    return tuple(number_of), Grouping(numbers, len(number_of))


def _can_be_hashed(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
