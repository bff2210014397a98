"""An SQLite database file with a format of its own, which several programs can use at the same time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar, NoReturn, TypeVar
from urllib.parse import quote_from_bytes

from hardthresh.core.errors import HardThreshError, InvalidInputError, warn

T = TypeVar("T")

_SYNCHRONOUS = "EXTRA"  # at this level of SQLite, a commit with a rollback journal survives a power failure
_BUSY_TIMEOUT = 0.1  # seconds that SQLite waits for a lock, which delay Ctrl-C: too short for a person to notice
_PAUSE = 0.01  # seconds between two attempts; arbitrary: short for a person, long for a computer
_STALLED = 10.0  # seconds after which a waiting commit warns; arbitrary


_ADVICE = {
    sqlite3.SQLITE_READONLY: "; check that you may write to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "; check that the file is there, and that you may write to it and to its folder",
    sqlite3.SQLITE_FULL: "; make room on the disk",
}
"""What to do about errors of SQLite, by their primary codes."""


class BusyError(HardThreshError):
    """Another program holds the lock of a database file for longer than the time to wait."""


class DatabaseFile:
    """An SQLite database file.

    Each operation opens a connection of its own. So nothing has to be closed, and the object can be pickled, and used
    in other threads and after a fork. Everything is written in a transaction that holds the write lock of SQLite. When
    a process ends, for any reason, its lock is released.

    The file uses SQLite's rollback journal, not its write-ahead log. With the latter, readers could keep a transaction
    open during a commit; but its index is in shared memory, so programs on two computers would overwrite each other's
    rows in a shared folder. It also would make finished files unreadable in read-only folders.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    InvalidInputError
        If the path is a folder, or its folder does not exist.
    """

    kind: ClassVar[str]
    """The kind of the file for messages, such as "a journal"."""
    application_id: ClassVar[int]
    """The application id in the header of the file, which SQLite and the program `file` read."""
    format_version: ClassVar[int]
    """The version of its tables."""
    busy_advice: ClassVar[str] = "wait for it or end it, or give a longer timeout"
    """What to do if another program holds the lock for longer than the time to wait."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._uri = f"file:{quote_from_bytes(os.fsencode(os.path.abspath(path)), safe='')}"
        if self.path.is_dir():
            raise InvalidInputError(f"{path} is a folder; {self.kind} is a file")
        if not self.path.parent.is_dir():
            raise InvalidInputError(f"there is no folder {self.path.parent} to write {self.path.name} in")

    @contextmanager
    def connected(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        """Yield a connection with a mode of SQLite's URIs: "ro", "rw" or "rwc"."""
        with self.explained("opened"):
            connection = sqlite3.connect(
                f"{self._uri}?mode={mode}", uri=True, timeout=_BUSY_TIMEOUT, isolation_level=None
            )
        with closing(connection):
            connection.execute(
                "PRAGMA fullfsync = ON"
            )  # for macOS, where fsync may leave data in the cache of the disk
            yield connection

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction with the write lock; its commit survives a power failure."""
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS}")
        connection.execute("BEGIN IMMEDIATE")

    def mark(self, connection: sqlite3.Connection) -> None:
        """Write the kind and the version of the file into it."""
        connection.execute(f"PRAGMA application_id = {self.application_id}")
        connection.execute(f"PRAGMA user_version = {self.format_version}")

    def check_kind(self, connection: sqlite3.Connection) -> None:
        """Raise InvalidInputError if the file belongs to another program or has another version."""
        if pragma(connection, "application_id") != self.application_id:
            self.raise_other_kind()
        version = pragma(connection, "user_version")
        if version != self.format_version:
            raise InvalidInputError(
                f"{self.path} has format version {version}; this hardthresh reads {self.format_version}: upgrade "
                "hardthresh"
            )

    def raise_other_kind(self) -> NoReturn:
        """Raise InvalidInputError for a file of another kind."""
        raise InvalidInputError(f"{self.path} is there, and is not {self.kind}; choose another name")

    @contextmanager
    def explained(self, doing: str) -> Iterator[None]:
        """Convert errors of SQLite to errors that name the file, except if another program holds a lock."""
        try:
            yield
        except sqlite3.Error as error:
            if is_busy(error):
                raise
            if doing == "read":
                raise InvalidInputError(
                    f"{self.path} cannot be read as {self.kind}: {error}; restore a copy, or begin another"
                ) from error
            advice = _ADVICE.get(error_code(error), "")
            raise HardThreshError(f"{self.path} cannot be {doing}: {error}{advice}") from error

    def patiently(self, action: Callable[[], T], timeout: float | None, stalled: str | None = None) -> T:
        """Return the result of an action on the file; repeat the action while another program holds a lock.

        Parameters
        ----------
        action : callable
            It is called until SQLite reports no lock.
        timeout : float or None
            Seconds after which BusyError is raised; None for no limit.
        stalled : str, optional
            The text of a RuntimeWarning that is given after ten seconds.
        """
        start = time.monotonic()
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                waited = time.monotonic() - start
                if timeout is not None and waited >= timeout:
                    raise BusyError(
                        f"another program has used {self.path} for {timeout:g} seconds: {self.busy_advice}"
                    ) from error
                if stalled is not None and waited >= _STALLED:
                    warn(stalled, RuntimeWarning)
                    stalled = None
            time.sleep(_PAUSE)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error says that another program holds the required lock."""
    return error_code(error) == sqlite3.SQLITE_BUSY


def error_code(error: sqlite3.Error) -> int:
    """Return the primary code of an error, 0 if it comes from Python."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # the other bytes are the details of an extended code


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a database was never written to."""
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return tables == 0 and pragma(connection, "application_id") == 0


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return the value of an integer pragma of SQLite."""
    [value] = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
