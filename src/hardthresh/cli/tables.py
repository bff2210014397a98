"""Tables whose columns have names: CSV, TSV, Parquet and Feather files, read by polars, and rows of databases."""

from __future__ import annotations

import codecs
import csv
import io
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np

from hardthresh.core.errors import InvalidInputError, MissingDependencyError, plural

from .cells import parsed, read_decimal_commas, with_decimal_comma, without_marks
from .data import IMPUTES, Data, Request, check, check_role, listed, refuse_lacking, refuse_missing, suggestion


class Rows(Protocol):
    """Rows that are no file: of a query, or of a table that was put in another order."""

    def frame(self) -> Any:
        """Return them as a polars data frame."""


COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh")  # how files of gzip, zstd and bzip2 begin
_TEXT = ("csv", "tsv")
NO_LEVEL = "missing"
"""The level of missing categories where these are imputed."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
NO_VALUE = ["NA", "N/A", "nan", "NULL", "null", "None"]  # besides nothing at all, and NaN


def read_table(path: Path | Rows, kind: str, request: Request) -> Data:
    """Read a table; see `hardthresh.cli.reading.read`."""
    whole = frame = read_rows(path, kind)
    remarks: tuple[str, ...] = ()
    nameless = whole.width > 1 and whole.columns[0] == ""
    if nameless:
        frame = whole.drop("")
        remarks = ("the first column has no name and was taken for row names",)
    if renamed := _renamed(frame.columns) if kind in _TEXT else []:
        remarks = (*remarks, f"some columns have the same name: {listed(renamed)}")
    if frame.height == 0:
        raise InvalidInputError(f"{path} has no rows")
    if request.learn and not request.has_target:
        raise InvalidInputError(f"add --target COLUMN, the column to predict; {path} has {listed(frame.columns)}")
    known = set(frame.columns)
    others = [("column to drop", request.drop), ("categories", request.categorical)]
    for role, name in [*request.roles.items(), *((role, name) for role, names in others for name in names)]:
        if name not in known:
            raise InvalidInputError(f"{path} has no column {name!r} for the {role}; {suggestion(name, frame.columns)}")
    taken = {*request.roles.values(), *request.drop}
    features = [name for name in frame.columns if name not in taken]
    if request.only is not None:
        lacking = [name for name in request.only if name not in known]
        if lacking:
            refuse_lacking(str(path), lacking, features)
        features = list(request.only)
    named = {role: name for role, name in request.roles.items() if role != "id"}
    used = [*features, *named.values()]
    frame, commas = read_decimal_commas(frame, used, path, lambda names: _text(path, kind, names))
    remarks += commas
    roles: dict[str, Any] = {role: _role(frame, path, role, name) for role, name in named.items()}
    if not request.learn and (nameless or request.id is not None):
        roles["id"] = read_ids(path, kind, whole, whole.columns.index(request.id or ""))
    factors = [name for name in features if name in set(request.categorical)]
    for name in request.categorical:
        if name not in factors:
            raise InvalidInputError(f"--categorical {name} is not a feature; leave it out there")
    rows, numbers = frame.height, [name for name in features if name not in factors]
    numeric = _numbers(frame.select(numbers), path, request)
    X = numeric.to_numpy() if numbers else np.empty((rows, 0))
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    data = Data(str(path), X, tuple(numbers), remarks=remarks)
    if factors:
        check(data, may_be_narrow=True, may_be_missing=request.may_be_missing)
        polars: Any = import_module("polars")
        columns = {name: polars.Series(column) for name, column in zip(numbers, X.T, strict=True)}
        gaps = 0
        for name in factors:
            columns[name], empty = _levels(frame[name], path, name, may_be_missing=request.may_be_missing)
            if request.learn and "weight" not in roles and 1 < rows == columns[name].n_unique():
                raise InvalidInputError(
                    f"the categories {name!r} of {path} have another level in each row; if they identify rows, "
                    f"add --id {as_option([name])} in place of --categorical, and if they are numbers, leave it out"
                )
            gaps += empty
            if empty:
                remarks += (f"{plural(empty, 'missing value')} of {name!r} became its level {NO_LEVEL!r}",)
        X = polars.DataFrame({name: columns[name] for name in features})
        data = replace(data, X=X, names=tuple(features), missing=gaps, remarks=remarks)
    return data.with_roles(roles, request.roles)


def read_rows(path: Path | Rows, kind: str) -> Any:
    """Return the file, or the rows of the query, as a polars data frame."""
    if not isinstance(path, Path):
        return path.frame()
    try:
        polars: Any = import_module("polars")
    except ImportError as error:
        raise MissingDependencyError(f"reading {kind} files needs polars: install hardthresh[cli]") from error
    try:
        if kind == "parquet":
            return polars.read_parquet(path)
        if kind == "feather":
            return polars.read_ipc(path)
        return _read_csv(path, kind, infer_schema_length=None)
    except polars.exceptions.PolarsError as error:
        if "utf-8" in str(error):
            _raise_encoding(path)
        longer = _longer_row(path, kind) if kind in _TEXT else None
        reason = longer or " ".join(str(error).split("\n\n")[0].split())
        raise InvalidInputError(f"{path} cannot be read as {kind.upper()}: {reason}") from error


def _longer_row(path: Path, kind: str) -> str | None:
    """Return which row of a file has more cells than its header, in words; None if there is none."""
    with path.open("rb") as file:
        if file.read(4).startswith(COMPRESSED):
            return None
    mark = separator_of(path, kind)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text, suppress(csv.Error):
        rows = csv.reader(text, delimiter=mark)
        names = next(rows, [])
        for place, row in enumerate(filter(None, rows), 1):
            if len(row) > len(names):
                return f"row {place:,} has {len(row):,} cells, and the header {len(names):,}; quote cells with {mark!r}"
    return None


def _read_csv(path: Path, kind: str, *, infer_schema_length: int | None) -> Any:
    polars: Any = import_module("polars")
    separator = separator_of(path, kind)
    frame = polars.read_csv(path, separator=separator, infer_schema_length=infer_schema_length, null_values=NO_VALUE)
    return frame.rename(lambda name: name.replace('""', '"'))  # polars leaves them doubled


def _text(path: Path | Rows, kind: str, names: list[str]) -> dict[str, Any]:
    """Return columns of a file as text; none of a file whose numbers are not text."""
    if not isinstance(path, Path) or kind not in _TEXT:
        return {}
    columns: dict[str, Any] = _read_csv(path, kind, infer_schema_length=0).select(names).to_dict()
    return columns


def _raise_encoding(path: Path) -> NoReturn:
    raise InvalidInputError(f"{path} is not UTF-8 text (it may be Latin-1 or UTF-16); save it as UTF-8")


def _renamed(columns: Sequence[str]) -> list[str]:
    """Return what polars made of names that occur twice."""
    known = set(columns)
    pairs = [(name, re.fullmatch(r"(.*)_duplicated_\d+", name, re.DOTALL)) for name in columns]
    return [f"{match[1]!r} is read as {name!r}" for name, match in pairs if match and match[1] in known]


def separator_of(path: Path, kind: str) -> str:
    """Return what stands between columns: in a CSV file the comma, semicolon or tab that its first line has most of."""
    with path.open("rb") as file:
        line = file.readline(1 << 20)
    if not line.startswith(COMPRESSED):
        try:
            codecs.getincrementaldecoder("utf-8")().decode(line)
        except UnicodeDecodeError:
            _raise_encoding(path)
        if b"\0" in line:
            _raise_encoding(path)
    if kind == "tsv" or path.suffix.lower() != ".csv":
        return "\t" if kind == "tsv" else ","
    return max(",;\t", key=lambda mark: line.count(mark.encode()))


def read_ids(path: Path | Rows, kind: str, frame: Any, column: int) -> list[str]:
    """Return a column as text, exactly as it stands in the file: "007" keeps its zeros, and "NA" is not missing."""
    if kind in _TEXT and isinstance(path, Path):
        polars: Any = import_module("polars")
        rows = frame.height
        frame = polars.read_csv(path, columns=[column], separator=separator_of(path, kind), infer_schema_length=0)
        column = 0
        if frame.height != rows:
            raise InvalidInputError(f"{path} has {rows:,} rows, but {frame.height:,} ids; remove its empty lines")
    return ["" if value is None else str(value) for value in frame[:, column].to_list()]


def _role(frame: Any, path: Path | Rows, role: str, name: str) -> np.ndarray:
    column = frame[name]
    if str(column.dtype) == "String":
        cleaned = without_marks(column)
        numbers = parsed(cleaned)
        if numbers.null_count() == cleaned.null_count():
            column = numbers  # numbers, but for cells without a value
        elif role == "target" and not (column == "+").any():  # "-" may be a class beside "+"
            column = cleaned
    if column.null_count():
        refuse_missing(column.is_null().to_numpy(), str(path), role, name)
    values = column.to_numpy() if _is_numeric(column.dtype) else np.asarray(column.cast(str).to_list(), dtype=str)
    return check_role(values, str(path), role, name)


def _levels(column: Any, path: Path | Rows, name: str, *, may_be_missing: bool) -> tuple[Any, int]:
    """Return a column as categories, the texts of its cells; and how many are missing, which have a level of their own.

    Raises
    ------
    InvalidInputError
        For missing values where there may be none.
    """
    column = without_marks(column) if str(column.dtype) == "String" else column
    missing = column.null_count()
    if missing and not may_be_missing:
        row = int(column.is_null().arg_max()) + 1
        raise InvalidInputError(
            f"{path} has {plural(missing, 'missing value')} in the categories {name!r}, the first in row "
            f"{row}; give them a level of their own ({IMPUTES} does) or remove these rows"
        )
    polars: Any = import_module("polars")
    return column.cast(polars.String).fill_null(NO_LEVEL).cast(polars.Categorical), missing


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def _numbers(frame: Any, path: Path | Rows, request: Request) -> Any:
    """Return the table as numbers; columns that hold texts are refused, with the first of their values that is one."""
    shown: dict[str, str] = {}
    categories: list[str] = []
    dates = False
    for name, dtype in frame.schema.items():
        if _is_numeric(dtype):
            continue
        texts = without_marks(frame[name]) if str(dtype) == "String" else frame[name]
        if texts.null_count() == len(texts):
            shown[name] = f"{name} (empty)"
            continue
        wrong = texts.is_not_null()
        if str(dtype) == "String":
            numbers = parsed(texts)
            wrong &= numbers.is_null()
            worse = wrong & ~with_decimal_comma(texts)  # numbers, but for a text elsewhere in the column
            wrong = worse if worse.any() else wrong
        if wrong.any():
            row = int(wrong.arg_max())
            shown[name] = f"{name} (row {row + 1}: {str(texts[row])!r})"
            if _DATE.match(str(texts[row])):
                dates = True
            else:
                categories.append(name)
        else:
            frame = frame.with_columns(numbers.alias(name))
    if shown:
        if request.only is None:
            advice = _advice([*shown], categories, dates=dates)
        else:
            codes = [f"{name} ({request.codes[name]})" for name in shown if name in request.codes]
            advice = f"the model needs them as numbers{f': {listed(codes)}' if codes else ''}"
        raise InvalidInputError(
            f"{path} has {plural(len(shown), 'column')} without numbers: {listed(shown.values())}; {advice}"
        )
    return frame


def _advice(names: Sequence[str], categories: Sequence[str], *, dates: bool) -> str:
    """Return what to do about columns without numbers, of which some may be categories, and some dates."""
    some, every = (as_option(given) if len(names) <= 8 else "NAME,..." for given in (categories, names))
    advice = f"leave out by --drop {every}"
    if categories:
        advice = f"add --categorical {some} if they are categories, or leave them out by --drop {every}"
    return advice + ("; dates can be features as numbers, such as days since the first one" if dates else "")


def as_option(names: Iterable[str]) -> str:
    """Return names as they are typed on a command line: one row of a CSV file, in quotes for the shell if need be."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return shlex.quote(line.getvalue())
