"""Standard output and standard error, which may be closed before the end, as by ``| head``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console


class Terminal(Console):
    """A console that becomes quiet when its pipe is closed, instead of ending the process."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, **settings)

    def on_broken_pipe(self) -> None:
        """Become quiet."""
        self.quiet = True
        discard(sys.stderr if self.stderr else sys.stdout)


def asks_people() -> bool:
    """Return whether a person can be asked, as standard input is a terminal."""
    return sys.stdin.isatty()


def write_stdout(text: str) -> None:
    """Write a text to standard output, and ignore a closed pipe."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        discard(sys.stdout)


def write_stderr(line: str) -> None:
    """Write a line to standard error, and ignore failures."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python does not fail when it flushes the stream on exit."""
    with suppress(OSError, ValueError):  # a stream without a descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
