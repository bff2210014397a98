"""Answers as they are typed: NAME=VALUE on the command line, JSON, or the rows of a CSV file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.repeats import first_repeat, without_repeats

from ..data import listed
from ..tables import separator_of

QUESTION, SUBJECT, VALUES = "question", "subject", "values"
"""What says which question a row of a file answers, of which subject, and with which values in a request to the API."""
_LONGEST_NUMBER = 30  # characters; arbitrary: the largest number that SQLite stores has 19 digits
Typed: TypeAlias = dict[str, Any]
"""Texts, numbers, or None for what could not be measured, by name."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a file says of one example.

    Attributes
    ----------
    place : str
        Where it is, for messages.
    question : int or None
        The number of the question that it answers, if the file says so.
    subject : str or None
        Who or what the example is, if the file says so.
    values : dict
        The values.
    who : str or None
        Who tells it, if the file says so.
    confirmed : tuple of str
        The names of values outside their range that are right.
    """

    place: str
    question: int | None
    subject: str | None
    values: Typed
    who: str | None = None
    confirmed: tuple[str, ...] = ()


def assignments(words: Iterable[str]) -> Typed:
    """Return the values of words NAME=VALUE.

    Raises
    ------
    InvalidInputError
        For a word without "=" or without a value, and for a name that is given twice.

    Examples
    --------
    >>> assignments(["age=61", "creatinine = 1.2 mg/dl"])
    {'age': '61', 'creatinine': '1.2 mg/dl'}
    """
    found: Typed = {}
    for word in words:
        name, mark, value = (part.strip() for part in word.partition("="))
        if not (mark and name):
            raise InvalidInputError(f"{format_value(word)} is not NAME=VALUE, such as age=61")
        if not value:
            raise InvalidInputError(
                f"{name}= has no value; write {name}=missing if it could not be measured, or leave it out"
            )
        if name in found:
            raise InvalidInputError(f"{name} is given twice; give it once")
        found[name] = value
    return found


def read_answers(path: Path, names: Iterable[str]) -> list[Row]:
    """Return what a file, as of `read_records`, says of one example or more.

    "question" and "subject", unless attributes are called so, say which question is answered, and of whom. A record of
    JSON may also be the body of a request to the API, which has the values in an object "values".

    Parameters
    ----------
    path : Path
        The file.
    names : iterable of str
        The names of the attributes and of the target.

    Raises
    ------
    InvalidInputError
        If it cannot be read, has no answers, or names something else.
    """
    known = list(names)
    return [
        _request(place, record, known) if _is_request(record, known) else _row(place, record, known)
        for place, record in read_records(path)
    ]


def read_records(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the records of a JSON, CSV or TSV file, each with its place for messages.

    A JSON file has an object with values by name, or a list of such objects; null is a value that could not be
    measured. A CSV file has a header of names; an empty cell says nothing.

    Raises
    ------
    InvalidInputError
        If it cannot be read as one of these, or has no records.
    """
    if path.suffix not in (".json", ".csv", ".tsv"):
        raise InvalidInputError(f"the name of {path} must end in .json, .csv or .tsv")
    records = _json_records(path) if path.suffix == ".json" else _csv_records(path)
    if not records:
        raise InvalidInputError(f"{path} has no rows")
    return records


def _row(place: str, record: Mapping[str, Any], known: list[str]) -> Row:
    roles = {QUESTION, SUBJECT}.difference(known)
    _check_names(place, record, [*known, *roles])
    question = record.get(QUESTION) if QUESTION in roles else None
    subject = record.get(SUBJECT) if SUBJECT in roles else None
    return Row(
        place,
        _question_number(place, question),
        None if subject is None else str(subject),
        {name: value for name, value in record.items() if name not in roles},
    )


def _is_request(record: Mapping[str, Any], known: list[str]) -> bool:
    return isinstance(record.get(VALUES), dict) and VALUES not in known


def _check_names(place: str, names: Iterable[str], known: list[str]) -> None:
    from hardthresh.study.reading import suggestion

    for name in names:
        if name not in known:
            raise InvalidInputError(f"{place}: there is no attribute {format_value(name)}{suggestion(name, known)}")


def _request(place: str, record: Mapping[str, Any], known: list[str]) -> Row:
    """Return what the body of a request to the API says."""
    from hardthresh.study.reading import check_keys

    check_keys(place, record, [QUESTION, SUBJECT, VALUES, "who", "confirmed"])
    for name in (SUBJECT, "who"):
        if not isinstance(record.get(name), str | None):
            raise InvalidInputError(f"{place}: {name} must be a text, got {format_value(record[name])}")
    confirmed = record.get("confirmed", [])
    if not (isinstance(confirmed, list) and all(isinstance(name, str) for name in confirmed)):
        raise InvalidInputError(f"{place}: confirmed must be a list of names, got {format_value(confirmed)}")
    _check_names(place, [*record[VALUES], *confirmed], known)
    return Row(
        place=place,
        question=_question_number(place, record.get(QUESTION)),
        subject=record.get(SUBJECT),
        values=record[VALUES],
        who=record.get("who"),
        confirmed=tuple(confirmed),
    )


def _question_number(place: str, given: Any) -> int | None:
    """Return the number of a question; a spreadsheet may have written it as 33.0."""
    if given is None:
        return None
    number = given
    if isinstance(given, str) and len(given) <= _LONGEST_NUMBER:
        whole = given.strip().removesuffix(".0")
        number = int(whole) if whole.isdecimal() else None
    elif isinstance(given, float) and given.is_integer():
        number = int(given)
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidInputError(f"{place}: {format_value(given)} is not the number of a question")
    return number


def _json_records(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=without_repeats)
    except ValueError as error:  # also of text that is not UTF-8, and of nested repeats
        raise InvalidInputError(f"{path} cannot be read as JSON: {error}") from error
    records = found if isinstance(found, list) else [found]
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise InvalidInputError(
                f'{path} must hold {{"name": value, ...}} or a list of these; record {number} is {format_value(record)}'
            )
    if len(records) == 1:
        return [(str(path), records[0])]
    return [(f"{path}, record {number}", record) for number, record in enumerate(records, 1)]


def _csv_records(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    mark = separator_of(path, path.suffix[1:])
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file, delimiter=mark, strict=True)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{path} cannot be read as CSV: {error}") from error
    header, *rows = [line for line in lines if any(line)] or [[]]
    repeated = first_repeat(header)
    if repeated is not None:
        raise InvalidInputError(f"{path} has two columns {repeated!r}; leave one of them out")
    for number, cells in enumerate(rows, 1):
        if len(cells) > len(header):
            raise InvalidInputError(
                f"{path}: row {number:,} has {plural(len(cells), 'cell')}, and the header {len(header):,} "
                f"({listed(header)}); quote cells with {mark!r}"
            )
    return [
        (f"{path}, row {number:,}", {name: cell for name, cell in zip(header, cells, strict=False) if cell})
        for number, cells in enumerate(rows, 1)
    ]
