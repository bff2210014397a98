"""The file of a study: an SQLite database to which rows are only added."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from hardthresh import __version__
from hardthresh.core.errors import HardThreshError, InvalidInputError
from hardthresh.limited.sources.database import DatabaseFile, error_code, is_empty
from hardthresh.limited.sources.journal_file import chained

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE study (
    name TEXT PRIMARY KEY,  -- "terms", the TOML; "version", of the hardthresh that began
    content TEXT NOT NULL
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,  -- 1, 2, 3, ...
    at TEXT NOT NULL,  -- UTC, ISO 8601
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    question INTEGER,  -- NULL if it is about the study
    subject TEXT,  -- what people call the example, where they said it
    body TEXT NOT NULL,  -- JSON: what was asked, told, ...
    key TEXT UNIQUE,  -- of a request that may be repeated
    request TEXT,  -- SHA-256 of the content of that request
    checksum TEXT NOT NULL  -- SHA-256 of the row and of the checksum before it
);
CREATE INDEX events_by_question ON events (question);
CREATE INDEX events_by_subject ON events (subject, question, action) WHERE subject IS NOT NULL;
CREATE TABLE batches (
    number INTEGER PRIMARY KEY,  -- 1, 2, 3, ...
    event INTEGER NOT NULL,  -- with which it was learned from
    content TEXT NOT NULL  -- JSON: the examples, what was asked of them, and what was chosen then
);
CREATE TABLE learner (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    event INTEGER NOT NULL,  -- the answers up to this event were learned from
    corrected INTEGER NOT NULL,  -- with the corrections up to this event
    content TEXT NOT NULL  -- JSON: computed from the other tables, so it may be replaced
);
CREATE TRIGGER study_is_kept BEFORE UPDATE ON study BEGIN SELECT RAISE(ABORT, 'a study keeps its terms'); END;
CREATE TRIGGER study_stays BEFORE DELETE ON study BEGIN SELECT RAISE(ABORT, 'a study keeps its terms'); END;
CREATE TRIGGER events_are_kept BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'a study keeps every event'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'a study keeps every event'); END;
CREATE TRIGGER batches_are_kept BEFORE UPDATE ON batches BEGIN SELECT RAISE(ABORT, 'a study keeps every batch'); END;
CREATE TRIGGER batches_stay BEFORE DELETE ON batches BEGIN SELECT RAISE(ABORT, 'a study keeps every batch'); END;
"""

_COLUMNS = "number, at, who, action, question, subject, body, key, request, checksum"
_WAIT = 60.0  # seconds for other programs, whose transactions take milliseconds; arbitrary


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the log.

    Attributes
    ----------
    number : int
        1, 2, 3, ...
    at : str
        When, in UTC and ISO 8601.
    who : str
        Who did it.
    action : str
        "created", "asked", "asked again", "told", "doubted", "skipped", "given back", "corrected", "withdrawn" or
        "closed".
    question : int or None
        The question it is about.
    subject : str or None
        What people call the example.
    body : dict
        What was asked, told, ...
    key, request : str or None
        Of a request that may be repeated: its key, and a digest of its content.
    checksum : str
        SHA-256 of the row and of the checksum before it.
    """

    number: int
    at: str
    who: str
    action: str
    question: int | None
    subject: str | None
    body: dict[str, Any]
    key: str | None
    request: str | None
    checksum: str


class StudyLog(DatabaseFile):
    """The events of a study, and the learner that is computed from them.

    Every row but that of the learner is written once. Each event has a checksum of itself and of all before it, so a
    row that was changed or taken out is found; triggers refuse to do that by accident.
    """

    kind = "a study"
    application_id = int.from_bytes(b"HTST", "big")
    format_version = 1
    busy_advice = "wait for it or end it, and try again; nothing was stored"

    @classmethod
    def create(cls, path: str | os.PathLike[str], terms: str, who: str, at: str) -> StudyLog:
        """Make a new file with some terms, and the event that somebody began the study.

        Raises
        ------
        InvalidInputError
            If the file is there.
        """
        log = cls(path)
        if log.path.exists() and log.path.stat().st_size:  # a program that was killed here may have left an empty file
            raise InvalidInputError(f"{path} is there; choose another name, nothing was changed")
        log._wait(lambda: log._create(terms, who, at))
        return log

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StudyLog:
        """Open a file.

        Raises
        ------
        InvalidInputError
            If there is none, or it is something else.
        """
        if not Path(path).exists():
            raise InvalidInputError(
                f"there is no study {path}; begin one with `hardthresh study new`, or in Python with Study.create"
            )
        log = cls(path)
        with log.reading() as transaction:
            transaction.terms  # noqa: B018  (reads the file)
        return log

    def _create(self, terms: str, who: str, at: str) -> None:
        with self.connected("rwc") as connection, self.explained("written"):
            self.begin(connection)
            if not is_empty(connection):
                raise InvalidInputError(f"{self.path} is there; choose another name, nothing was changed")
            self.mark(connection)
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            rows = [("terms", terms), ("version", __version__)]
            connection.executemany("INSERT INTO study (name, content) VALUES (?, ?)", rows)
            Transaction(self, connection).add(at, who, "created")
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Yield a transaction that sees the file as it is now, and cannot write."""
        with self.connected() as connection, self.explained("read"):  # it undoes what a killed writer left half written
            self._wait(lambda: self._begin(connection, "BEGIN"))
            yield Transaction(self, connection)

    @contextmanager
    def copied(self) -> Iterator[StudyCopy]:
        """Yield a copy of the file as it is now, which is read without a lock on the file."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
            with self.reading() as transaction:
                copy = transaction.copy_to(memory)
            yield StudyCopy(self, copy)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Yield a transaction that no other program can write beside; it is written whole, or after an error not."""
        with self.connected() as connection:
            with self.explained("written"):
                self._wait(lambda: self._begin(connection, "BEGIN IMMEDIATE"))
            with self.explained("written"):
                yield Transaction(self, connection)
                self._wait(lambda: connection.execute("COMMIT"))

    def _wait(self, action: Callable[[], T]) -> T:
        """Return the result of an action, for which other programs may have to be waited for."""
        return self.patiently(
            action, _WAIT, f"another program uses {self.path}; waiting for it, up to {_WAIT:g} seconds"
        )

    def _begin(self, connection: sqlite3.Connection, statement: str) -> None:
        try:
            if statement == "BEGIN":
                connection.execute(statement)
            else:
                self.begin(connection)
            self.check_kind(connection)
        except sqlite3.DatabaseError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if error_code(error) == sqlite3.SQLITE_NOTADB:
                self.raise_other_kind()
            raise


class StudyCopy:
    """The events of a study at one time, in memory; it can be read like a `StudyLog`, and not be written to."""

    def __init__(self, log: StudyLog, transaction: Transaction) -> None:
        self.path = log.path
        self._log, self._transaction = log, transaction

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Yield the transaction that sees the copy."""
        with self._log.explained("read"):
            yield self._transaction

    @contextmanager
    def copied(self) -> Iterator[StudyCopy]:
        """Yield this copy."""
        yield self

    def writing(self) -> AbstractContextManager[Transaction]:
        """Raise InvalidInputError."""
        raise InvalidInputError(f"this is a copy of {self.path} for reading; open the file itself to write to it")


class Transaction:
    """What is read and written at one time, which other programs see whole or not at all."""

    def __init__(self, log: StudyLog, connection: sqlite3.Connection) -> None:
        self._log, self._connection = log, connection

    @property
    def terms(self) -> str:
        """The TOML of the terms."""
        return self._content("terms")

    @property
    def version(self) -> str:
        """The version of hardthresh that began the study."""
        return self._content("version")

    def _content(self, name: str) -> str:
        row = self._connection.execute("SELECT content FROM study WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise InvalidInputError(f"{self._log.path} is damaged: it has no {name}; restore a copy")
        return str(row[0])

    @property
    def last(self) -> int:
        """The number of the last event, 0 before the first."""
        [number] = self._connection.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()
        return int(number)

    def events(self, after: int = 0, question: int | None = None, until: int | None = None) -> Iterator[Event]:
        """Yield the events after one and up to another one, all of them or those of a question."""
        conditions = {"number > ?": after, "question = ?": question, "number <= ?": until}
        given = {condition: value for condition, value in conditions.items() if value is not None}
        statement = f"SELECT {_COLUMNS} FROM events WHERE {' AND '.join(given)} ORDER BY number"
        return map(self._event, self._connection.execute(statement, tuple(given.values())))

    def checksum(self, number: int) -> str | None:
        """Return the checksum of an event; None if there is no such event."""
        row = self._connection.execute("SELECT checksum FROM events WHERE number = ?", (number,)).fetchone()
        return None if row is None else str(row[0])

    def with_key(self, key: str) -> Event | None:
        """Return the event of the request with a key; None if there was none."""
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM events WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._event(row)

    def subjects(self) -> list[tuple[int, str]]:
        """Return each subject that a question was ever said to be about, with the question."""
        statement = (
            "SELECT DISTINCT question, subject FROM events "
            "WHERE subject IS NOT NULL AND action IN ('told', 'corrected') ORDER BY question"
        )
        return [(int(number), str(subject)) for number, subject in self._connection.execute(statement)]

    def copy_to(self, connection: sqlite3.Connection) -> Transaction:
        """Copy the file into an empty database, and return it."""
        self._connection.backup(connection)
        return Transaction(self._log, connection)

    def add(
        self,
        at: str,
        who: str,
        action: str,
        question: int | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        subject: str | None = None,
        key: str | None = None,
        request: str | None = None,
    ) -> Event:
        """Write an event, and return it."""
        text = json.dumps(body or {}, allow_nan=False)
        last = self._connection.execute("SELECT number, checksum FROM events ORDER BY number DESC LIMIT 1").fetchone()
        number, before = (0, self._first_checksum) if last is None else last
        row = (number + 1, at, who, action, question, subject, text, key, request)
        checksum = chained(before, row)
        self._connection.execute(f"INSERT INTO events ({_COLUMNS}) VALUES (?{', ?' * len(row)})", (*row, checksum))
        return self._event((*row, checksum))

    def batches(self) -> list[tuple[int, str]]:
        """Return the event and the content of each batch, in order."""
        rows = self._connection.execute("SELECT event, content FROM batches ORDER BY number").fetchall()
        return [(int(event), str(content)) for event, content in rows]

    def add_batch(self, event: int, content: str) -> None:
        """Write what was learned from together."""
        self._connection.execute("INSERT INTO batches (event, content) VALUES (?, ?)", (event, content))

    @property
    def learner(self) -> tuple[int, int, str] | None:
        """The learner: after which event, with the corrections up to which event, and its content."""
        row = self._connection.execute("SELECT event, corrected, content FROM learner").fetchone()
        return None if row is None else (int(row[0]), int(row[1]), str(row[2]))

    def set_learner(self, event: int, corrected: int, content: str) -> None:
        """Replace the learner."""
        self._connection.execute(
            "INSERT OR REPLACE INTO learner (number, event, corrected, content) VALUES (1, ?, ?, ?)",
            (event, corrected, content),
        )

    def verify(self) -> None:
        """Raise InvalidInputError if an event was changed or is missing."""
        before = self._first_checksum
        rows: Iterator[Sequence[Any]] = self._connection.execute(f"SELECT {_COLUMNS} FROM events ORDER BY number")
        for number, row in enumerate(rows, start=1):
            if row[0] != number or row[-1] != chained(before, row[:-1]):
                raise InvalidInputError(
                    f"event {number} of {self._log.path} is damaged, was changed, or is missing; restore a copy"
                )
            before = row[-1]

    @property
    def _first_checksum(self) -> str:
        return sha256(json.dumps([self.terms, self.version]).encode()).hexdigest()

    def _event(self, row: Sequence[Any]) -> Event:
        try:
            number, at, who, action, question, subject, body, key, request, checksum = row
            return Event(number, at, who, action, question, subject, json.loads(body), key, request, checksum)
        except (TypeError, ValueError) as error:
            raise HardThreshError(f"event {row[0]} of {self._log.path} is damaged: {error}; restore a copy") from error
