"""BLAS runs on one thread while the library works; large passes over the data are split over the threads it had.

The threads of a BLAS wait for each other in every call. On a busy machine one of them has lost its time slice, and a
product of 50 microseconds takes 10 milliseconds. So the library runs BLAS on one thread, and splits only what is large:
into pieces that do not depend on the number of threads, so that the result does not either, to the last bit.
"""

from __future__ import annotations

import importlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import RLock, get_ident
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np


class _Hold:
    """One entry into `serial_blas`, which ends when the frame that made it does, also by an interrupt."""

    def __init__(self) -> None:
        self.thread = get_ident()


@dataclass
class _Process:
    """What the threads of this process share."""

    lock: Any = field(default_factory=RLock)  # a signal handler may enter while its thread holds it
    holds: WeakSet[_Hold] = field(default_factory=WeakSet)
    threads: list[int] | None = None  # of each library before the first hold, until they are restored
    pool: ThreadPoolExecutor | None = None


_process = _Process()


@cache
def _libraries() -> list[Any]:
    """Return the controllers of the BLAS libraries of NumPy and SciPy; only one that is loaded can be controlled."""
    importlib.import_module("scipy.linalg")
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def serial_blas() -> Iterator[None]:
    """Run BLAS on one thread within this context; also a decorator.

    The limit holds for the whole process, since BLAS knows no other; it ends when the last thread leaves the context.
    An interrupt from the keyboard may come at any point, also in here: then the next exit restores the threads.
    """
    hold = _Hold()
    try:
        _enter(hold)
        yield
    finally:
        _leave(hold)


def _enter(hold: _Hold) -> None:
    libraries = _libraries()
    with _process.lock:
        if _process.threads is None:
            _process.threads = [library.get_num_threads() for library in libraries]
        _process.holds.add(hold)
        for library in libraries:  # by each thread, since those of OpenMP are limited one by one
            _limit(library, 1)


def _leave(hold: _Hold) -> None:
    with _process.lock:
        _process.holds.discard(hold)
        if _process.threads is None:  # in a child that was forked within the context
            return
        holders = {other.thread for other in _process.holds}
        for library, threads in zip(_libraries(), _process.threads, strict=True):
            if not holders or (getattr(library, "threading_layer", "") == "openmp" and hold.thread not in holders):
                _limit(library, threads)
        if not holders:
            _process.threads = None


def _limit(library: Any, threads: int) -> None:
    """Set the threads of a library, also where threadpoolctl 3.8 lets only the thread do so that was the first."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


def _begin_child() -> None:
    """Forget, in a forked child, what the threads of its parent were doing: it has one thread only."""
    global _process
    parent, _process = _process, _Process()
    if parent.threads is not None:
        for library, threads in zip(_libraries(), parent.threads, strict=True):
            _limit(library, threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def thread_count() -> int:
    """Return on how many threads the library works: those of BLAS outside `serial_blas`, at most one per processor."""
    threads = _process.threads or [library.get_num_threads() for library in _libraries()]
    return max(1, min(max(threads, default=1), _processors()))


@cache
def _processors() -> int:
    """Return how many processors this process may use, which a container may limit."""
    from joblib import cpu_count

    return int(cpu_count())


Piece = TypeVar("Piece")
Part = TypeVar("Part")


def in_pieces(function: Callable[[Piece], Part], pieces: Sequence[Piece]) -> list[Part]:
    """Return ``[function(piece) for piece in pieces]``, computed on `thread_count` threads.

    Each thread takes the next piece when it is done with one, so that one that lost its time slice delays the others
    by a piece at most.

    Parameters
    ----------
    function : callable
        Releases the lock of the interpreter for most of its time, as products of large arrays do.
    pieces : sequence
        What it is called with.

    Returns
    -------
    list
        In the order of the pieces.
    """
    if len(pieces) == 1:
        return [function(pieces[0])]
    left, parts = deque(enumerate(pieces)), [None] * len(pieces)
    errors = np.geterr()

    def work() -> None:
        with serial_blas(), np.errstate(**errors):
            while left:
                try:
                    number, piece = left.popleft()
                except IndexError:  # another thread was faster
                    return
                parts[number] = function(piece)  # type: ignore[call-overload]

    helpers = _submit(work, min(thread_count(), len(pieces)) - 1)
    try:
        work()
    finally:
        left.clear()
        waiting = [helper for helper in helpers if not helper.cancel()]
        wait(waiting)  # also where a piece fails: the others are still in `serial_blas`
    for helper in waiting:
        helper.result()
    return parts  # type: ignore[return-value]


def _submit(work: Callable[[], None], times: int) -> list[Future[None]]:
    """Have other threads do some work; none does where the interpreter is shutting down."""
    with _process.lock:
        if _process.pool is None:
            _process.pool = ThreadPoolExecutor(_processors(), thread_name_prefix="hardthresh")
        pool = _process.pool
    try:
        return [pool.submit(work) for _ in range(times)]
    except RuntimeError:  # the pool is closed once the main thread has ended; the caller does the work alone
        return []
