"""The file of a journal: an SQLite database that holds the terms of a study and every answer that was bought."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from shlex import quote
from textwrap import shorten
from typing import Any

from hardthresh.core.errors import HardThreshError, InvalidInputError

from .database import DatabaseFile, error_code, is_empty
from .values import Answer

APPLICATION_ID = int.from_bytes(b"HTJL", "big")  # in the header of the file, which SQLite and the program `file` read
FORMAT_VERSION = 2
OLD_FORMAT = b'{"format": "hardthresh journal"'  # the beginning of files of format version 1, which are lines of JSON

_PORTION = 1 << 20  # characters of answers that are read at a time, a megabyte; arbitrary

_SCHEMA = """
CREATE TABLE terms (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL  -- JSON
);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY,  -- 1, 2, 3, ... in the order of the purchases
    example NOT NULL,  -- its name, an integer or a text
    indices TEXT NOT NULL,  -- JSON: the attributes that were asked for, counted from 0
    observed TEXT,  -- JSON: their values; NULL if the example could not be had
    target,  -- a REAL; NULL if the example could not be had. No affinity: SQLite would store -0.0 as 0
    paid INTEGER NOT NULL,  -- 1, or 0
    cost REAL NOT NULL,  -- by the prices in the terms
    who TEXT,  -- NULL if it is not known
    answered_at TEXT,  -- UTC, ISO 8601; NULL if it is not known
    checksum TEXT NOT NULL  -- SHA-256 of the row and of the checksum before it
);
"""

_COLUMNS = "number, example, indices, observed, target, paid, cost, who, answered_at, checksum"
_SELECT = f"SELECT {_COLUMNS} FROM answers WHERE number > ? ORDER BY number"
_INSERT = f"INSERT INTO answers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

TERMS = {
    "n_features": "the number of attributes",
    "budget": "the budget for one example",
    "panels": "the panels",
    "prices": "the prices",
    "feature_names": "the names of the attributes",
    "examples": "the number of examples",
}


class JournalFile(DatabaseFile):
    """The file of a journal. Answers are read in order; at the end of the file one program at a time buys new ones.

    A purchase is a transaction: it takes the write lock before the request, and holds it until the answer is on disk.

    Parameters
    ----------
    path : path
        The file, which is created if it is missing or empty.
    terms : mapping from str to JSON values
        The terms of the study: see `TERMS`.
    timeout : float or None
        How many seconds to wait for another program before anything is bought; None for no limit. A write of an answer
        that was bought has no time limit.

    Raises
    ------
    InvalidInputError
        If the file is not a journal, is damaged, or has other terms.
    HardThreshError
        If it cannot be written.
    """

    kind = "a journal"
    application_id = APPLICATION_ID
    format_version = FORMAT_VERSION

    def __init__(self, path: str | os.PathLike[str], terms: Mapping[str, Any], timeout: float | None = None) -> None:
        super().__init__(path)
        self._timeout = timeout
        self._number = 0
        self._checksum = chained("", [json.dumps(terms[name]) for name in TERMS])
        self.patiently(lambda: self._open(terms), self._timeout)

    def next_answers(self, buy: Callable[[], Answer | None]) -> list[Answer]:
        """Return the next answers of the file; at its end buy one and write it, while no other program can do so.

        Parameters
        ----------
        buy : callable
            Returns a new answer, or None if there are no more examples. No other program can write while it runs.

        Returns
        -------
        list of Answer
            At least one, unless `buy` returned None.

        Raises
        ------
        InvalidInputError
            If the file is damaged; nothing is bought then.
        HardThreshError
            If the file cannot be written; if possible, this is detected before anything is bought. If an answer was
            bought and could not be written, the message contains it.
        """
        with self.connected() as connection:
            answers = self.patiently(lambda: self._read_or_lock(connection), self._timeout)
            if not answers and (answer := buy()) is not None:
                self._write_bought(connection, answer)
                answers = [answer]
        return answers

    def extend(self, answers: Iterable[Answer]) -> int:
        """Write all answers to a new file in one transaction, and return their number."""
        with self.connected() as connection, self.explained("written"):
            self.begin(connection)
            for answer in answers:
                self._insert(connection, answer)
            connection.execute("COMMIT")
        return self._number

    def _open(self, terms: Mapping[str, Any]) -> None:
        """Create the tables of a journal if the file is empty, and check its terms."""
        with self.connected("rwc") as connection:
            with self.explained("read"):
                try:
                    empty = is_empty(connection)
                except sqlite3.DatabaseError as error:
                    if error_code(error) == sqlite3.SQLITE_NOTADB:
                        self._raise_if_old()
                        self.raise_other_kind()
                    raise
            if empty:
                with self.explained("written"):
                    self._create(connection, terms)
            with self.explained("read"):
                self._check(connection, terms)

    def _create(self, connection: sqlite3.Connection, terms: Mapping[str, Any]) -> None:
        self.begin(connection)
        if is_empty(connection):  # no other program created them in the meantime
            self.mark(connection)
            for statement in filter(str.strip, _SCHEMA.split(";\n")):
                connection.execute(statement)
            rows = [(name, json.dumps(terms[name])) for name in TERMS]
            connection.executemany("INSERT INTO terms (name, content) VALUES (?, ?)", rows)
        connection.execute("COMMIT")

    def _check(self, connection: sqlite3.Connection, terms: Mapping[str, Any]) -> None:
        """Raise InvalidInputError if the file has another kind, another version or other terms."""
        self.check_kind(connection)
        written = dict(connection.execute("SELECT name, content FROM terms").fetchall())
        for name, what in TERMS.items():
            now = json.dumps(terms[name])
            if written.get(name) != now:
                raise InvalidInputError(
                    f"{self.path} is the journal of something else: {what} was {_short(written.get(name))} and is "
                    f"{_short(now)} now; continue with what it was written for, or begin another journal"
                )

    def _raise_if_old(self) -> None:
        """Raise InvalidInputError for a file of format version 1.

        Call it only for a file that is not a database: closing a database here would release this process's locks.
        """
        with self.path.open("rb") as file:
            if file.read(len(OLD_FORMAT)) == OLD_FORMAT:
                raise InvalidInputError(
                    f"{self.path} is a journal of an earlier version of hardthresh, in lines of JSON: convert it with "
                    f"`hardthresh convert-journal {quote(str(self.path))} NEW.sqlite`, and open the new file"
                )

    def _read_or_lock(self, connection: sqlite3.Connection) -> list[Answer]:
        """Return the next answers of the file; if there are none, take the write lock."""
        if answers := self._read(connection):
            return answers
        with self.explained("written, so that nothing is bought"):
            if not connection.in_transaction:
                self.begin(connection)
            # writes an unchanged value, so that a full disk or a read-only folder is found before anything is paid for
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        return self._read(connection)

    def _read(self, connection: sqlite3.Connection) -> list[Answer]:
        """Return the next answers, about `_PORTION` characters of them, after verifying their checksums."""
        answers: list[Answer] = []
        size, checksum = 0, self._checksum
        with self.explained("read"), closing(connection.execute(_SELECT, (self._number,))) as rows:
            for row in rows:
                answers.append(self._verified(row, self._number + len(answers) + 1, checksum))
                checksum = row[-1]
                size += len(row[2]) + len(row[3] or "")
                if size > _PORTION:
                    break
        self._number += len(answers)
        self._checksum = checksum
        return answers

    def _verified(self, row: Sequence[Any], number: int, checksum: str) -> Answer:
        """Return the answer in a row, after verifying its number and its checksum, which depends on the one before."""
        _, example, indices, observed, target, paid, cost, who, answered_at, written = row
        try:
            if row[0] == number and written == chained(checksum, row[:-1]):
                values = None if observed is None else json.loads(observed)
                return Answer(example, json.loads(indices), values, target, bool(paid), cost, who, answered_at)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            pass  # this class does not write such rows
        raise InvalidInputError(
            f"answer {number} of {self.path} is damaged, was changed, or is missing; restore a copy of the file, or "
            "begin another journal"
        )

    def _insert(self, connection: sqlite3.Connection, answer: Answer) -> None:
        row = (
            self._number + 1,
            answer.example,
            json.dumps(answer.indices),
            None if answer.observed is None else json.dumps(answer.observed),
            answer.target,
            int(answer.paid),
            float(answer.cost),
            answer.who,
            answer.answered_at,
        )
        checksum = chained(self._checksum, row)
        connection.execute(_INSERT, (*row, checksum))
        self._number += 1
        self._checksum = checksum

    def _write_bought(self, connection: sqlite3.Connection, answer: Answer) -> None:
        """Write an answer to disk without a time limit; if this fails, raise an error that contains the answer."""
        stalled = (
            f"another program reads {self.path}, and keeps an answer that was paid from being written: end its "
            "transaction"
        )
        try:
            self._insert(connection, answer)
            self.patiently(lambda: connection.execute("COMMIT"), None, stalled)
        except Exception as error:
            raise HardThreshError(f"{self.path} cannot be written: {error}; {_unwritten(answer)}") from error
        except BaseException as error:
            if connection.in_transaction:
                error.add_note(_unwritten(answer))
            raise


def chained(previous: str, row: Sequence[Any]) -> str:
    """Return the checksum of a row and of the previous checksum, so that it depends on all rows before."""
    return sha256(json.dumps([previous, *row]).encode()).hexdigest()


def _short(text: Any) -> str:
    return shorten(str(text), 60, placeholder=" ...")


def _unwritten(answer: Answer) -> str:
    """Return a sentence that contains the whole answer, so that the user can record it."""
    content = {name: getattr(answer, name) for name in ("example", "indices", "observed", "target")}
    return f"an answer that was bought is not in the file, and will be asked for again: {json.dumps(content)}"
