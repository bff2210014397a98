"""The answers, the audit trail and the terms of a study, as files for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.files import write_file
from hardthresh.designs.formats.written_tables import Columns, csv_parts, parquet_parts

from .attributes import Attribute
from .log import Event
from .outcomes import Record, records_of
from .study import Study
from .terms import Terms


def write_answers(study: Study, path: str | PathLike[str], *, verbatim: bool = False) -> int:
    """Write a row for each question: what became of it, what it cost, and its values as they stand.

    Parameters
    ----------
    study : Study
        The study.
    path : path-like
        The CSV or Parquet file to write, by its ending; a file that is there is replaced, in one step.
    verbatim : bool
        Whether texts that a spreadsheet would run as formulas are written to CSV as they are.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidInputError
        If the name of the file has another ending.
    MissingDependencyError
        For a Parquet file, if pyarrow is not installed.
    OSError
        If the file cannot be written.

    Notes
    -----
    The columns are "question", "state" (open, waiting, learned, dropped, skipped or withdrawn), "holder", "asked_at",
    "answered_at", "subject", "cost", "prediction" (made before it was learned from; of two classes a probability),
    "missing" (names of what could not be measured), "corrected" (names of values that were), "reason", then the target
    and the attributes. Numbers are in the units of the terms; an empty cell was not asked for, not told yet, or could
    not be measured.
    """
    with study.snapshot() as now:
        columns = answer_columns(now)
    _write(columns, path, verbatim=verbatim)
    return len(columns[0][1])


def write_trail(study: Study, path: str | PathLike[str], *, verbatim: bool = False) -> int:
    """Write the audit trail: a row for each event, and where it has values a row for each of them.

    Parameters
    ----------
    study : Study
        The study.
    path : path-like
        The CSV or Parquet file to write, as for `write_answers`.
    verbatim : bool
        As for `write_answers`.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidInputError, MissingDependencyError, OSError
        As for `write_answers`.

    Notes
    -----
    The columns are "event", "at" (UTC), "who", "action", "question", "subject", "name", "value" (in the unit of the
    terms, or the number of a level), "reading" (the same for people, or "missing"), "typed" (the text that was
    told, where it differs, such as "150 lb"), "reason", "detail" (what else the event says, as JSON), "key" and
    "checksum" (SHA-256 of the event and of all before it).
    """
    columns = trail_columns(study)
    _write(columns, path, verbatim=verbatim)
    return len(columns[0][1])


def write_terms(study: Study, path: str | PathLike[str]) -> None:
    """Write the terms as they were when the study began: a TOML file."""
    write_file(path, study.terms.text.encode())


def answer_columns(study: Study) -> Columns:
    """Return the columns that `write_answers` writes."""
    terms, learned, waiting = study.terms, study.learned(), study.status().waiting
    records = records_of(study.events(), terms)
    predicted = dict(zip(learned.questions.tolist(), learned.prediction.tolist(), strict=True))

    def names(chosen: Any) -> list[str]:
        return [", ".join(name for name in _names(terms) if name in chosen(record)) for record in records]

    return [
        ("question", np.array([record.number for record in records], dtype=np.int64)),
        ("state", [record.outcome(waiting) for record in records]),
        ("holder", [record.holder for record in records]),
        ("asked_at", [record.asked_at for record in records]),
        ("answered_at", [record.answered_at for record in records]),
        ("subject", [record.subject for record in records]),
        ("cost", np.array([record.cost(terms) for record in records], dtype=np.float64)),
        ("prediction", _numbers([predicted.get(record.number) for record in records])),
        ("missing", names(lambda record: record.lacking)),
        ("corrected", names(lambda record: record.corrected)),
        ("reason", [record.reason for record in records]),
        *((attribute.name, _cells(attribute, records)) for attribute in (terms.target, *terms.attributes)),
    ]


def trail_columns(study: Study) -> Columns:
    """Return the columns that `write_trail` writes."""
    rows = [row for event in study.events() for row in _trail_rows(event, study.terms)]
    names = (
        *("event", "at", "who", "action", "question", "subject"),
        *("name", "value", "reading", "typed", "reason", "detail", "key", "checksum"),
    )
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return [(name, _typed(name, column)) for name, column in columns.items()]


def _trail_rows(event: Event, terms: Terms) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one event: one for each value, or one without."""
    body = dict(event.body)
    values, typed, reason = body.pop("values", {}), body.pop("typed", {}), body.pop("reason", "")
    if "doubts" in body:
        values = {name: value for name, value, *_ in body.pop("doubts")}
    if "columns" in body:
        body["columns"] = [terms.columns[j] for j in body["columns"]]
    more = {name: part for name, part in body.items() if part}
    detail = json.dumps(more, ensure_ascii=False) if more else ""
    head = (event.number, event.at, event.who, event.action, event.question, event.subject)
    for name, value in values.items() or [("", None)]:
        reading = terms.attribute(name).format(value) if name else ""
        yield (*head, name, value, reading, typed.get(name, ""), reason, detail, event.key, event.checksum)


def _names(terms: Terms) -> list[str]:
    return [attribute.name for attribute in (terms.target, *terms.attributes)]


def _cells(attribute: Attribute, records: list[Record]) -> Any:
    """Return the values of an attribute: numbers, or the names of its levels."""
    values = [record.values.get(attribute.name) for record in records]
    if attribute.kind in ("number", "integer"):
        return _numbers(values)
    return [None if value is None else attribute.format(value) for value in values]


def _typed(name: str, column: Sequence[Any]) -> Any:
    """Return a column of the trail with its type."""
    if name in ("event", "question"):
        absent = [value is None for value in column]
        return np.ma.array([value or 0 for value in column], mask=absent, dtype=np.int64)
    return _numbers(column) if name == "value" else column


def _numbers(values: Sequence[float | None]) -> Any:
    """Return numbers as a masked array, in which None is masked."""
    return np.ma.masked_invalid(np.array([np.nan if value is None else value for value in values], dtype=np.float64))


def _write(columns: Columns, path: str | PathLike[str], *, verbatim: bool) -> None:
    ending = Path(path).suffix
    if ending not in (".csv", ".parquet"):
        raise InvalidInputError(f"the name of {path} must end in .csv or .parquet")
    texts = (text.encode(errors="replace") for text in csv_parts([columns], verbatim=verbatim))
    write_file(path, parquet_parts([columns]) if ending == ".parquet" else texts)
