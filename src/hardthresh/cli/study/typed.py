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

QUESTION, SUBJECT = "question", "subject"
"""What the columns are called that say which question a row answers, and of which subject."""
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
    """

    place: str
    question: int | None
    subject: str | None
    values: Typed


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

    "question" and "subject", unless attributes are called so, say which question is answered, and of whom.

    Raises
    ------
    InvalidInputError
        If it cannot be read, or has no answers.
    """
    roles = {QUESTION, SUBJECT} - set(names)
    return [_row(place, record, roles) for place, record in read_records(path)]


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


def _row(place: str, record: Mapping[str, Any], roles: set[str]) -> Row:
    question = record.get(QUESTION) if QUESTION in roles else None
    subject = record.get(SUBJECT) if SUBJECT in roles else None
    if isinstance(question, str):
        if not (question.strip().isdecimal() and len(question) <= _LONGEST_NUMBER):
            raise InvalidInputError(f"{place}: {format_value(question)} is not the number of a question")
        question = int(question)
    if question is not None and (isinstance(question, bool) or not isinstance(question, int)):
        raise InvalidInputError(f"{place}: {format_value(question)} is not the number of a question")
    return Row(
        place,
        question,
        None if subject is None else str(subject),
        {name: value for name, value in record.items() if name not in roles},
    )


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
