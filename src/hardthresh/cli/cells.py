"""Cells of tables of text: marks of missing values, and numbers with decimal commas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from hardthresh.core.errors import InvalidInputError

from .data import listed

NO_MARKS = ["", "?", "-", "NaN", "na", "n/a", "NONE", "none", "#N/A"]  # cells of columns of numbers without a value

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_WHOLE = rf"^[+-]?\d+{_EXPONENT}$"
_COMMA = rf"^[+-]?\d*,\d+{_EXPONENT}$"
_POINT = rf"^[+-]?(?:\d+\.\d*|\.\d+){_EXPONENT}$"
_THREE_DIGITS = r"^[+-]?[1-9]\d{0,2}[.,]\d{3}$"  # 1,234: the mark of decimals, or of thousands
_SPACES = r"' \u{a0}\u{202f}"
_GROUPED = (
    rf"^[+-]?\d{{1,3}}(?:(?:[.,{_SPACES}]\d{{3}}){{2,}}(?:[.,]\d+)?|[.,{_SPACES}]\d{{3}}[.,]\d+|[{_SPACES}]\d{{3}})$"
)


def without_marks(column: Any) -> Any:
    """Return a column of text, with nothing in cells that only mark a missing value."""
    return column.set(column.str.strip_chars().is_in(NO_MARKS), None)


def parsed(column: Any) -> Any:
    """Return a column of text as numbers, with nothing where a text is not a number."""
    polars: Any = import_module("polars")
    return column.str.strip_chars().cast(polars.Float64, strict=False)


def with_decimal_comma(column: Any) -> Any:
    """Return which cells of a column of text are numbers with a decimal comma."""
    return column.str.strip_chars().str.contains(_COMMA).fill_null(False)


def read_decimal_commas(
    frame: Any, columns: Sequence[str], path: object, text_of: Callable[[list[str]], dict[str, Any]]
) -> tuple[Any, tuple[str, ...]]:
    """Return a table whose numbers with decimal commas have decimal points, and what to say about it.

    Parameters
    ----------
    frame : polars.DataFrame
        The table; numbers with commas are text.
    columns : sequence of str
        The columns in use: the others do not matter.
    path : Path
        The file, for messages.
    text_of : callable
        Return columns of numbers as the text that they have in the file; without columns if it has none.

    Raises
    ------
    InvalidInputError
        For thousands separators, or what may be some: decimal commas and points in one column; 1,234 where no other
        number of the table tells what the comma means; a column of numbers like 1.234 beside decimal commas.
    """
    text = {
        name: without_marks(frame[name]).str.strip_chars() for name in columns if str(frame[name].dtype) == "String"
    }
    commas = {name: column for name, column in text.items() if _has_decimal_commas(name, column, path)}
    if not commas:
        return frame, ()
    told = [(name, _first(column, _COMMA, other_than=_THREE_DIGITS)) for name, column in commas.items()]
    name, found = next(((name, found) for name, found in told if found is not None), (None, None))
    if name is None or found is None:
        name, (row, cell) = next((name, _first(column, _COMMA)) for name, column in commas.items())  # type: ignore[misc]
        raise InvalidInputError(
            f"{path}: cannot tell whether {cell!r} in {name!r} (row {row}) is {cell.replace(',', '.')} or "
            f"{cell.replace(',', '')}: write numbers with decimal points and without thousands separators"
        )
    for other, column in text_of([name for name in columns if frame[name].dtype.is_float()]).items():
        cells = column.str.strip_chars()
        if (point := _first(cells, _POINT)) and _first(cells, _POINT, other_than=_THREE_DIGITS) is None:
            _raise_both_marks(path, (name, *found), (other, *point))
    points = [column.str.replace(",", ".", literal=True).alias(name) for name, column in commas.items()]
    cell = found[1]
    remark = f"commas are read as decimal marks in {listed(commas)}: {cell!r} is {cell.replace(',', '.')}"
    return frame.with_columns(points), (remark,)


def _has_decimal_commas(name: str, column: Any, path: object) -> bool:
    """Return whether a column of text holds numbers, some of them with a decimal comma."""
    kinds = [column.str.contains(kind).fill_null(False) for kind in (_WHOLE, _COMMA, _POINT, _GROUPED)]
    whole, comma, point, grouped = kinds
    if not (whole | comma | point | grouped | column.is_null()).all():
        return False
    if grouped.any():
        row = int(grouped.arg_max())
        raise InvalidInputError(
            f"{path}: {column[row]!r} in {name!r} (row {row + 1}) has thousands separators: write numbers with decimal "
            "points and without them"
        )
    if comma.any() and point.any():
        _raise_both_marks(path, (name, *_found(column, comma)), (name, *_found(column, point)))
    return bool(comma.any())


def _first(column: Any, kind: str, other_than: str | None = None) -> tuple[int, str] | None:
    """Return the row, counted from 1, and the text of the first cell of a kind."""
    matches = column.str.contains(kind).fill_null(False)
    if other_than is not None:
        matches &= ~column.str.contains(other_than).fill_null(False)
    return _found(column, matches) if matches.any() else None


def _found(column: Any, matches: Any) -> tuple[int, str]:
    row = int(matches.arg_max())
    return row + 1, str(column[row])


def _raise_both_marks(path: object, comma: tuple[str, int, str], point: tuple[str, int, str]) -> NoReturn:
    places = [f"in {name!r} (row {row}: {cell!r})" for name, row, cell in (comma, point)]
    raise InvalidInputError(
        f"{path} has decimal commas {places[0]} and decimal points, or thousands separators, {places[1]}: write all "
        "numbers with decimal points"
    )
