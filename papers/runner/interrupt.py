"""Ctrl-C while a cell is computed: what is half done must never be kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Stopped(BaseException):
    """Ctrl-C, under a name of its own: `hardthresh.minimize` ends at a KeyboardInterrupt and returns what it has."""


@contextmanager
def whole_or_nothing() -> Iterator[None]:
    """Leave with KeyboardInterrupt if Ctrl-C was pressed inside, whatever the code inside made of it.

    Works in the main thread, the only one that signals come to; where Ctrl-C is ignored it stays so.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    pressed = False

    def stop(*_: object) -> None:
        nonlocal pressed
        pressed = True
        raise _Stopped

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except _Stopped:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:  # also where somebody caught the exception
        raise KeyboardInterrupt
