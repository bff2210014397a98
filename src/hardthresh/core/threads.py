"""Run BLAS on one thread while the library works, and split large passes over the data over the threads that it had.

The threads of BLAS wait for each other in every call. On a busy machine one of them has often lost its time slice, so
that a product of 50 microseconds takes 10 milliseconds. The library therefore runs BLAS on one thread, and splits only
large operations. The pieces do not depend on the number of threads, so that results have the same bits with any number.
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
    """One use of `serial_blas`; it disappears with the frame that created it, even after an interrupt."""

    def __init__(self) -> None:
        self.thread = get_ident()


@dataclass
class _Process:
    """The state that the threads of this process share."""

    lock: Any = field(default_factory=RLock)  # re-entrant: a signal handler may run while its thread holds it
    holds: WeakSet[_Hold] = field(default_factory=WeakSet)
    threads: list[int] | None = None  # of each library, saved at the first hold and restored after the last
    pool: ThreadPoolExecutor | None = None


_process = _Process()


@cache
def blas_libraries() -> list[Any]:
    """Return the controllers of the BLAS libraries of NumPy and SciPy, after loading that of SciPy.

    The first call takes 5 to 15 ms, because threadpoolctl examines all libraries of the process.
    """
    importlib.import_module("scipy.linalg")
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def described_libraries() -> list[str]:
    """Return a description of each BLAS library: its name, version and number of threads."""
    found = (library.info() for library in blas_libraries())
    return [f"{one['internal_api']} {one['version'] or '?'}, threads: {one['num_threads']}" for one in found]


@contextmanager
def serial_blas() -> Iterator[None]:
    """Run BLAS on one thread within this context; also a decorator.

    BLAS can only be limited for the whole process; the limit ends when the last thread leaves the context. If an
    interrupt from the keyboard prevents an exit from restoring the threads, the next exit restores them.
    """
    hold = _Hold()
    try:
        _enter(hold)
        yield
    finally:
        _leave(hold)


def _enter(hold: _Hold) -> None:
    libraries = blas_libraries()
    with _process.lock:
        if _process.threads is None:
            _process.threads = [library.get_num_threads() for library in libraries]
        _process.holds.add(hold)
        for library in libraries:  # in each thread, because the limit of OpenMP is per thread
            _limit(library, 1)


def _leave(hold: _Hold) -> None:
    with _process.lock:
        _process.holds.discard(hold)
        if _process.threads is None:  # in a child process that was forked within the context
            return
        holders = {other.thread for other in _process.holds}
        for library, threads in zip(blas_libraries(), _process.threads, strict=True):
            if not holders or (getattr(library, "threading_layer", "") == "openmp" and hold.thread not in holders):
                _limit(library, threads)
        if not holders:
            _process.threads = None


def _limit(library: Any, threads: int) -> None:
    """Set the threads of a library, even where threadpoolctl 3.8 allows this only in the thread that set them first."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


def _begin_child() -> None:
    """Reset the state in a forked child, which has only one thread, and restore the threads of BLAS."""
    global _process
    parent, _process = _process, _Process()
    if parent.threads is not None:
        for library, threads in zip(blas_libraries(), parent.threads, strict=True):
            _limit(library, threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def thread_count() -> int:
    """Return the number of threads of the library: that of BLAS outside `serial_blas`, at most one per processor."""
    threads = _process.threads or [library.get_num_threads() for library in blas_libraries()]
    return max(1, min(max(threads, default=1), _processors()))


@cache
def _processors() -> int:
    """Return the number of processors that this process may use; a container may limit it."""
    from joblib import cpu_count

    return int(cpu_count())


Piece = TypeVar("Piece")
Part = TypeVar("Part")


def in_pieces(function: Callable[[Piece], Part], pieces: Sequence[Piece]) -> list[Part]:
    """Return ``[function(piece) for piece in pieces]``, computed on `thread_count` threads.

    Each thread takes the next piece when it has finished one, so that a thread that has lost its time slice delays the
    others by at most one piece.

    Parameters
    ----------
    function : callable
        A function that releases the interpreter lock for most of its time, as products of large arrays do.
    pieces : sequence
        The arguments of its calls.

    Returns
    -------
    list
        The results, in the order of the pieces.
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

    helpers = _helpers(work, min(thread_count(), len(pieces)) - 1)
    try:
        work()
    finally:
        left.clear()
        waiting = [helper for helper in helpers if not helper.cancel()]
        wait(waiting)  # even if a piece fails, because the others are still in `serial_blas`
    for helper in waiting:
        helper.result()
    return parts  # type: ignore[return-value]


def _helpers(work: Callable[[], None], times: int) -> list[Future[None]]:
    """Submit work to other threads, if the system and the interpreter still start any; the caller works, too.

    The futures are ours, because a pool that cannot start a thread keeps the work without returning a future for it.
    """
    with _process.lock:
        if _process.pool is None:
            _process.pool = ThreadPoolExecutor(_processors(), thread_name_prefix="hardthresh")
        pool = _process.pool
    helpers: list[Future[None]] = []
    for _ in range(times):
        helpers.append(Future())
        try:
            pool.submit(_run, work, helpers[-1])
        except RuntimeError:  # there is no room for its stack, or the pool is closed once the main thread has ended
            break
    return helpers


def _run(work: Callable[[], None], helper: Future[None]) -> None:
    """Do some work, unless it was cancelled."""
    if not helper.set_running_or_notify_cancel():
        return
    try:
        work()
    except BaseException as error:  # raised by `result` in the thread of the caller
        helper.set_exception(error)
    else:
        helper.set_result(None)
