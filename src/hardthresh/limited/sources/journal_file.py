"""The file of a journal: an SQLite database that holds the terms of a study and every answer that was bought."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from shlex import quote
from textwrap import shorten
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote_from_bytes

from hardthresh.core.errors import HardThreshError, InvalidInputError, warn

from .values import Answer

T = TypeVar("T")

APPLICATION_ID = int.from_bytes(b"HTJL", "big")  # marks the file, as `file` and SQLite know it
FORMAT_VERSION = 2
OLD_FORMAT = b'{"format": "hardthresh journal"'  # how the files of format version 1 begin, which were lines of JSON

_SYNCHRONOUS = "EXTRA"  # the level of SQLite at which a commit with a rollback journal survives a power failure
_BUSY_TIMEOUT = 0.1  # seconds that SQLite waits for a lock; Ctrl-C waits as long, so less than a person notices
_PAUSE = 0.01  # seconds between two attempts; arbitrary: short for a person, long for a processor
_STALLED = 10.0  # seconds after which a commit that waits for a reader is warned of; arbitrary
_PORTION = 1 << 20  # characters of old answers in memory, a megabyte; arbitrary

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


class JournalFile:
    """The answers of a journal, read in order, and bought at the end of the file by one program at a time.

    Each operation has its own connection, so there is nothing to close, and the object can be pickled, and used in
    other threads and after a fork. A purchase is a transaction that holds the write lock of SQLite from before the
    request until the answer is on disk; when a process ends, for any reason, so does its lock.

    SQLite's rollback journal is used, not its write-ahead log. That would let readers keep a transaction open during a
    commit, but its index is in shared memory: programs on two computers would overwrite each other's answers in a
    shared folder. It also would make finished journals unreadable in read-only folders.

    Parameters
    ----------
    path : path
        The file, made if it is not there or empty.
    terms : mapping from str to JSON values
        What the answers are about: see `TERMS`.
    timeout : float or None
        How many seconds to wait for another program before anything is bought; None waits as long as it takes. What
        was bought waits as long as it takes, whatever the timeout.

    Raises
    ------
    InvalidInputError
        If the file is something else, is damaged, or has other terms.
    HardThreshError
        If it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], terms: Mapping[str, Any], timeout: float | None = None) -> None:
        self.path = Path(path)
        self._timeout = timeout
        self._uri = f"file:{quote_from_bytes(os.fsencode(os.path.abspath(path)), safe='')}"
        self._number = 0
        self._checksum = _checksum("", [json.dumps(terms[name]) for name in TERMS])
        if self.path.is_dir():
            raise InvalidInputError(f"{path} is a folder; a journal is a file")
        if not self.path.parent.is_dir():
            raise InvalidInputError(f"there is no folder {self.path.parent} to write {self.path.name} in")
        self._patiently(lambda: self._open(terms), self._timeout)

    def next_answers(self, buy: Callable[[], Answer | None]) -> list[Answer]:
        """Return the next answers of the file; at its end buy one, and write it, before another program can.

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
            If the file cannot be written, before anything is bought where that can be known. The message contains an
            answer that was bought and could not be written.
        """
        with self._connected() as connection:
            answers = self._patiently(lambda: self._read_or_lock(connection), self._timeout)
            if not answers and (answer := buy()) is not None:
                self._write_bought(connection, answer)
                answers = [answer]
        return answers

    def extend(self, answers: Iterable[Answer]) -> int:
        """Write answers to a new file, all of them or none, and return how many these are."""
        with self._connected() as connection, self._explained("written"):
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
            connection.execute("BEGIN IMMEDIATE")
            for answer in answers:
                self._insert(connection, answer)
            connection.execute("COMMIT")
        return self._number

    @contextmanager
    def _connected(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        with self._explained("opened"):
            connection = sqlite3.connect(
                f"{self._uri}?mode={mode}", uri=True, timeout=_BUSY_TIMEOUT, isolation_level=None
            )
        with closing(connection):
            connection.execute("PRAGMA fullfsync = ON")  # on macOS, where fsync leaves data in the cache of the disk
            yield connection

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Name the file in errors of SQLite, except where another program holds a lock."""
        try:
            yield
        except sqlite3.Error as error:
            if _is_busy(error):
                raise
            if doing == "read":
                raise InvalidInputError(
                    f"{self.path} cannot be read as a journal: {error}; restore a copy, or begin another journal"
                ) from error
            raise HardThreshError(f"{self.path} cannot be {doing}: {error}") from error

    def _patiently(self, action: Callable[[], T], timeout: float | None, stalled: str | None = None) -> T:
        """Return what an action on the file returns; repeat it while another program holds a lock."""
        start = time.monotonic()
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise
                waited = time.monotonic() - start
                if timeout is not None and waited >= timeout:
                    raise HardThreshError(
                        f"another program has used {self.path} for {timeout:g} seconds: wait for it or end it, "
                        "or give a longer timeout"
                    ) from error
                if stalled is not None and waited >= _STALLED:
                    warn(stalled, RuntimeWarning)
                    stalled = None
            time.sleep(_PAUSE)

    def _open(self, terms: Mapping[str, Any]) -> None:
        """Make sure that the file has the tables of a journal, and these terms."""
        with self._connected("rwc") as connection:
            with self._explained("read"):
                try:
                    empty = _is_empty(connection)
                except sqlite3.DatabaseError as error:
                    if _code(error) == sqlite3.SQLITE_NOTADB:
                        self._raise_if_old()
                        self._raise_not_a_journal()
                    raise
            if empty:
                with self._explained("written"):
                    self._create(connection, terms)
            with self._explained("read"):
                self._check(connection, terms)

    def _create(self, connection: sqlite3.Connection, terms: Mapping[str, Any]) -> None:
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
        connection.execute("BEGIN IMMEDIATE")
        if _is_empty(connection):  # no other program was faster
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            for statement in filter(str.strip, _SCHEMA.split(";\n")):
                connection.execute(statement)
            rows = [(name, json.dumps(terms[name])) for name in TERMS]
            connection.executemany("INSERT INTO terms (name, content) VALUES (?, ?)", rows)
        connection.execute("COMMIT")

    def _check(self, connection: sqlite3.Connection, terms: Mapping[str, Any]) -> None:
        """Raise InvalidInputError for the file of another program, another version, or with other terms."""
        if _pragma(connection, "application_id") != APPLICATION_ID:
            self._raise_not_a_journal()
        version = _pragma(connection, "user_version")
        if version != FORMAT_VERSION:
            raise InvalidInputError(
                f"{self.path} has format version {version}; this hardthresh reads {FORMAT_VERSION}: upgrade hardthresh"
            )
        written = dict(connection.execute("SELECT name, content FROM terms").fetchall())
        for name, what in TERMS.items():
            now = json.dumps(terms[name])
            if written.get(name) != now:
                raise InvalidInputError(
                    f"{self.path} is the journal of something else: {what} was {_short(written.get(name))} and is "
                    f"{_short(now)} now; continue with what it was written for, or begin another journal"
                )

    def _raise_not_a_journal(self) -> NoReturn:
        raise InvalidInputError(f"{self.path} is there, and is not a journal; choose another name")

    def _raise_if_old(self) -> None:
        """Raise InvalidInputError for a file of format version 1.

        It must not be a database: opening and closing it here would release the locks that this process has on it.
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
        with self._explained("written, so that nothing is bought"):
            if not connection.in_transaction:
                connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
                connection.execute("BEGIN IMMEDIATE")
            # this changes nothing, but it writes: a full disk or a read-only folder is found before anything is paid
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        return self._read(connection)

    def _read(self, connection: sqlite3.Connection) -> list[Answer]:
        """Return some of the answers that were not read yet, and verify their checksums."""
        answers: list[Answer] = []
        size, checksum = 0, self._checksum
        with self._explained("read"), closing(connection.execute(_SELECT, (self._number,))) as rows:
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
        """Return the answer in a row, which must have this number, and continue the chain of checksums."""
        _, example, indices, observed, target, paid, cost, who, answered_at, written = row
        try:
            if row[0] == number and written == _checksum(checksum, row[:-1]):
                values = None if observed is None else json.loads(observed)
                return Answer(example, json.loads(indices), values, target, bool(paid), cost, who, answered_at)
        except (ArithmeticError, RecursionError, TypeError, ValueError):
            pass  # not what this class writes
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
        checksum = _checksum(self._checksum, row)
        connection.execute(_INSERT, (*row, checksum))
        self._number += 1
        self._checksum = checksum

    def _write_bought(self, connection: sqlite3.Connection, answer: Answer) -> None:
        """Write an answer to disk, however long a reader keeps it waiting; if that fails, say what was bought."""
        stalled = (
            f"another program reads {self.path}, and keeps an answer that was paid from being written: end its "
            "transaction"
        )
        try:
            self._insert(connection, answer)
            self._patiently(lambda: connection.execute("COMMIT"), None, stalled)
        except Exception as error:
            raise HardThreshError(f"{self.path} cannot be written: {error}; {_unwritten(answer)}") from error
        except BaseException as error:
            if connection.in_transaction:
                error.add_note(_unwritten(answer))
            raise


def _checksum(previous: str, row: Sequence[Any]) -> str:
    return sha256(json.dumps([previous, *row]).encode()).hexdigest()


def _short(text: Any) -> str:
    return shorten(str(text), 60, placeholder=" ...")


def _unwritten(answer: Answer) -> str:
    """Return a sentence with the whole answer, for the person who has to keep it."""
    content = {name: getattr(answer, name) for name in ("example", "indices", "observed", "target")}
    return f"an answer that was bought is not in the file, and will be asked for again: {json.dumps(content)}"


def _is_busy(error: sqlite3.Error) -> bool:
    """Return whether another program holds the lock that was needed."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: sqlite3.Error) -> int:
    """Return the primary code of an error, 0 if it comes from Python."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # the other bytes are the details of an extended code


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a database was never written to."""
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return tables == 0 and _pragma(connection, "application_id") == 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    [value] = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
