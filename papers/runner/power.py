"""Finds the rows that cannot fail: those that stay as expected whatever the runs had done.

The results of groups of cells are changed, the item is summarised again, and the rows are judged again. A group is all
cells, or the cells with the same value of one argument, such as those of one method or of one data set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Any, Protocol

import numpy as np

from .digits import Numbers
from .experiment import Cell, Item, Row

Change = Callable[[list[Any]], list[Any]]


class Judge(Protocol):
    """What a row of ``digits.toml`` and one of ``claims.toml`` have in common."""

    @property
    def key(self) -> str:
        """The key of the number, or the numbers."""

    @property
    def reason(self) -> str:
        """Why the bounds are wide, if they are."""

    @property
    def what(self) -> str:
        """What the number is, in words."""

    def judge(self, numbers: Numbers) -> dict[str, Any]:
        """Return the row of the answer."""


def cannot_fail(
    item: Item, cells: Sequence[Cell], rows: Sequence[Row], full: bool, judges: Sequence[Judge]
) -> list[Judge]:
    """Return the judges that none of the changes makes fail.

    The changes are those of `CHANGES`; for rows with a reason for their wide bounds, also those of `LARGE_CHANGES`.
    """
    pending = list(judges)
    for change, only_wide in [*((change, False) for change in CHANGES), *((change, True) for change in LARGE_CHANGES)]:
        for group, names in _targets(cells, rows):
            asked = [judge for judge in pending if judge.reason or not only_wide]
            if not asked:
                break
            changed = [
                {**row, **{name: _changed(row[name], change) for name in names & row.keys()}}
                if cell.name in group
                else row
                for cell, row in zip(cells, rows, strict=True)
            ]
            numbers = _summary(item, changed, full)
            if numbers is not None:
                pending = [judge for judge in pending if judge not in asked or not _notices(judge, numbers)]
    return pending


def _notices(judge: Judge, numbers: Numbers) -> bool:
    """Return whether a judge refuses some numbers for what they are: NaN, which it always refuses, does not count."""
    row = judge.judge(numbers)
    return not row["ok"] and not any(map(isnan, row["got"]))


def _targets(cells: Sequence[Cell], rows: Sequence[Row]) -> Iterator[tuple[set[str], set[str]]]:
    """Yield what is changed at once: all results of a group of cells, then one result of all cells."""
    results = {name for cell, row in zip(cells, rows, strict=True) for name in row.keys() - cell.arguments.keys()}
    for group in _groups(cells):
        yield group, results
    for name in sorted(results):
        yield {cell.name for cell in cells}, {name}


def _groups(cells: Sequence[Cell]) -> Iterator[set[str]]:
    """Yield the names of all cells, and of those that have a value of an argument in common."""
    yield {cell.name for cell in cells}
    seen = []
    for name in dict.fromkeys(name for cell in cells for name in cell.arguments):
        by_value: dict[str, set[str]] = {}
        for cell in cells:
            by_value.setdefault(repr(cell.arguments.get(name)), set()).add(cell.name)
        for group in by_value.values():
            if len(group) < len(cells) and group not in seen:
                seen.append(group)
                yield group


def _summary(item: Item, rows: list[Row], full: bool) -> Numbers | None:
    """Return the numbers of changed rows, or None where an item cannot make sense of them."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return item.summarise(rows, full)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _changed(value: Any, change: Change) -> Any:
    """Return a result with its lists of numbers changed, and its single values as lists of one."""
    if isinstance(value, Mapping):
        return {name: _changed(part, change) for name, part in value.items()}
    if isinstance(value, list) and any(isinstance(part, list | Mapping) for part in value):
        return [_changed(part, change) for part in value]
    return change(value) if isinstance(value, list) else change([value])[0]


def _scaled(factor: float) -> Change:
    """Return the change of every number by a factor; counts stay integers."""
    return lambda values: [type(x)(factor * x) if _is_number(x) else x for x in values]


def _other(values: list[Any]) -> list[Any]:
    """A yes for a no, one more of what is counted, and 1 for what was not reached or is zero."""
    return [_opposite(value) for value in values]


def _opposite(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return 1.0 if _is_missing(value) or value == 0.0 else value


def _frozen(values: list[Any]) -> list[Any]:
    """A method that does not move."""
    return values[:1] * len(values)


def _slow(values: list[Any]) -> list[Any]:
    """A method of half the speed."""
    return [x for x in values for _ in range(2)][: len(values)]


def _falling(values: list[Any]) -> list[Any]:
    """A method that falls to half as much more in each step."""
    return [0.5**step * value if _is_number(value) else value for step, value in enumerate(values)]


def _arrived(values: list[Any]) -> list[Any]:
    """A method that is at zero after one step."""
    return values[:1] + [0.0 if _is_number(x) else x for x in values[1:]]


def _diverged(values: list[Any]) -> list[Any]:
    """A method whose first step takes it a hundred times as far as it was, or to 100."""
    far = 100.0 * max(1.0, abs(values[0])) if values and _is_number(values[0]) else 100.0
    return values[:1] + [far if _is_number(value) else value for value in values[1:]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not isfinite(value))


CHANGES: list[Change] = [_scaled(4.0), _scaled(0.25), _slow, _frozen, _falling, _arrived, _diverged, _other]
LARGE_CHANGES: list[Change] = [_scaled(100.0), _scaled(0.01)]
