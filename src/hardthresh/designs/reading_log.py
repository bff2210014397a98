"""How often a table in blocks is read, and how far a reading is: what engines report, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any

from hardthresh.core.errors import plural
from hardthresh.core.numbers import number
from hardthresh.core.progress import format_duration, progress_line

Count = Callable[[int], None]
"""Called once for each block with the bytes of its rows, by any thread."""

_CURRENT: ContextVar[ReadingLog | None] = ContextVar("hardthresh_reading_log", default=None)


@dataclass(eq=False)
class ReadingLog:
    """The readings of all engines while `logged_readings` runs.

    Attributes
    ----------
    show : bool
        Whether each reading shows a line on standard error, with its rate and the time that is left of it.
    readings : int
        How many were completed.
    nbytes : int
        Bytes of the rows that were read, as tasks got them: of files by columns, only those that were needed.
    """

    show: bool
    readings: int = 0
    nbytes: int = 0

    @contextmanager
    def reading(self, n_blocks: int) -> Iterator[Count]:
        """Count a reading of so many blocks; yields what each of them calls."""
        began, lock, done, here = perf_counter(), Lock(), 0, 0
        with progress_line(self.show, f"Reading {self.readings + 1}", n_blocks) as report:

            def count(nbytes: int) -> None:
                nonlocal done, here
                with lock:
                    done, here = done + 1, here + nbytes
                    self.nbytes += nbytes
                    report(_so_far(done, n_blocks, here, perf_counter() - began))

            yield count
        self.readings += 1

    def __str__(self) -> str:
        return f"{plural(self.readings, 'reading')}, {in_bytes(self.nbytes)}"


def _so_far(done: int, n_blocks: int, nbytes: int, seconds: float) -> str:
    """Return how much of a reading is done, how fast, and what is left."""
    rate = f", {in_bytes(nbytes / seconds)}/s" if seconds > 0 else ""
    return f"{in_bytes(nbytes)}{rate}, {format_duration(seconds * (n_blocks - done) / done)} left"


@contextmanager
def logged_readings(show: bool = False) -> Iterator[ReadingLog]:
    """Context manager that counts passes over tables; engines within an inner block report only to that block.

    Parameters
    ----------
    show : bool
        Whether to show a line for each pass, with its rate and remaining time.

    Yields
    ------
    ReadingLog
        The log, with the attributes `readings` and `nbytes`, which ``str`` shows too.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.designs import Serial, from_arrays, logged_readings
    >>> engine = Serial(from_arrays(np.ones((5000, 2)), np.arange(5000.0), rows=1024))
    >>> with logged_readings() as log:
    ...     for _ in range(3):
    ...         _ = engine.sweep(lambda X, y, weight, offset: (X.T @ y,))
    >>> print(log)
    3 readings, 240 kB
    """
    log = ReadingLog(show)
    token = _CURRENT.set(log)
    try:
        yield log
    finally:
        _CURRENT.reset(token)


def shown_readings(wanted: bool) -> Any:
    """Return a context in which each reading shows a line, if that is wanted; else one that changes nothing."""
    return logged_readings(show=True) if wanted else nullcontext()


def is_counted() -> bool:
    """Return whether somebody asked for reports of readings."""
    return _CURRENT.get() is not None


@contextmanager
def counted_reading(n_blocks: int) -> Iterator[Count]:
    """Report a reading to whoever asked for that; yields what each block calls."""
    log = _CURRENT.get()
    if log is None:
        yield lambda nbytes: None
        return
    with log.reading(n_blocks) as count:
        yield count


def in_bytes(nbytes: float) -> str:
    """Return a number of bytes as people write it.

    Examples
    --------
    >>> in_bytes(0), in_bytes(20_480_000_000), in_bytes(999_999)
    ('0 bytes', '20.5 GB', '1 MB')
    """
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= 0.9995 * size:
            return f"{number(nbytes / size)} {unit}"
    return plural(round(nbytes), "byte")
