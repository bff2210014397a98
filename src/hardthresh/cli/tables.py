"""Files whose columns have names: CSV, TSV and Parquet, read by polars."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError, MissingDependencyError

from .data import Data, Request, check_role, listed, plural, refuse_lacking, refuse_missing, suggestion

NO_VALUE = ["NA", "N/A", "nan", "NULL", "null", "None"]  # besides nothing at all, and NaN


def read_table(path: Path, kind: str, request: Request) -> Data:
    """Read a table; see `hardthresh.cli.reading.read`."""
    frame = _frame(path, kind)
    remarks: tuple[str, ...] = ()
    if frame.width > 1 and frame.columns[0] == "":
        frame = frame.drop("")
        remarks = ("the first column has no name and was taken for row names",)
    if frame.height == 0:
        raise InvalidInputError(f"{path} has no rows")
    if request.learn and request.target is None:
        raise InvalidInputError(f"say what to explain with --target COLUMN; {path} has {listed(frame.columns)}")
    known = set(frame.columns)
    for role, name in [*request.roles.items(), *(("column to drop", name) for name in request.drop)]:
        if name not in known:
            raise InvalidInputError(f"{path} has no column {name!r} for the {role}; {suggestion(name, frame.columns)}")
    roles = {role: _role(frame, path, role, name) for role, name in request.roles.items()}
    taken = {*request.roles.values(), *request.drop}
    features = [name for name in frame.columns if name not in taken]
    if request.only is not None:
        lacking = [name for name in request.only if name not in known]
        if lacking:
            refuse_lacking(str(path), lacking, features)
        features = list(request.only)
    rows, frame = frame.height, frame.select(features)
    _refuse_texts(frame, path)
    X = frame.to_numpy() if features else np.empty((rows, 0))
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return Data(str(path), X, tuple(features), remarks=remarks).with_roles(roles, request.target)


def _frame(path: Path, kind: str) -> Any:
    """Return the file as a polars data frame."""
    try:
        polars: Any = import_module("polars")
    except ImportError as error:
        raise MissingDependencyError(f"reading {kind} files needs polars: install hardthresh[cli]") from error
    try:
        if kind == "parquet":
            return polars.read_parquet(path)
        return polars.read_csv(path, separator=_separator(path, kind), infer_schema_length=None, null_values=NO_VALUE)
    except polars.exceptions.PolarsError as error:
        reason = " ".join(str(error).split("\n\n")[0].split())
        raise InvalidInputError(f"{path} cannot be read as {kind.upper()}: {reason}") from error


def _separator(path: Path, kind: str) -> str:
    """Return what stands between columns: in a CSV file the comma, semicolon or tab that its first line has most of."""
    if kind == "tsv" or path.suffix.lower() != ".csv":
        return "\t" if kind == "tsv" else ","
    with path.open("rb") as file:
        line = file.readline(1 << 20)
    return max(",;\t", key=lambda mark: line.count(mark.encode()))


def _role(frame: Any, path: Path, role: str, name: str) -> np.ndarray:
    column = frame[name]
    if column.null_count():
        refuse_missing(column.is_null().to_numpy(), str(path), role, name)
    values = column.to_numpy() if _is_numeric(column.dtype) else np.asarray(column.cast(str).to_list(), dtype=str)
    return check_role(values, str(path), role, name)


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def _refuse_texts(frame: Any, path: Path) -> None:
    """Refuse columns that are no numbers, naming them with one of their values."""
    found = {name: frame[name].drop_nulls() for name, dtype in frame.schema.items() if not _is_numeric(dtype)}
    if found:
        shown = [f"{name} ({str(values[0])!r})" if len(values) else f"{name} (empty)" for name, values in found.items()]
        drop = ",".join(found) if len(found) <= 3 else "..."
        raise InvalidInputError(
            f"{path} has {plural(len(found), 'column')} without numbers: {listed(shown)}; leave out with --drop "
            f"{drop} or encode as numbers"
        )
