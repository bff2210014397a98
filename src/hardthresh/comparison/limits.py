"""A limit of time for code of other packages."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_AT_ONCE = 1e-6
"""Seconds until a timer that is overdue ends: the resolution of timers, since 0 would switch it off."""


class OutOfTimeError(BaseException):
    """The time limit of a fit; not an `Exception`, so that other packages do not catch it and continue."""


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTimeError` in the block after so many seconds.

    Compiled code is interrupted when it returns to Python. In threads other than the main one, and on systems without
    interval timers, such as Windows, nothing is interrupted. A timer of the caller continues afterwards.
    """
    if seconds is None or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: Any) -> NoReturn:
        raise OutOfTimeError

    if seconds <= 0:
        raise OutOfTimeError
    started = time.monotonic()
    before = signal.signal(signal.SIGALRM, over)
    waiting, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if waiting:
            left = waiting - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, _AT_ONCE), interval)
