"""Standard output and standard error, whose readers may leave before the end, as ``| head`` does."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console


class Terminal(Console):
    """A console that prints nothing more once its reader has left, where others end the process."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, **settings)

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True
        discard(sys.stderr if self.stderr else sys.stdout)


def write_stdout(text: str) -> None:
    """Write a text to standard output; that its reader has left is no error."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        discard(sys.stdout)


def write_stderr(line: str) -> None:
    """Write a line to standard error; that it cannot be written is no error."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Connect a stream to the null device, since Python flushes it again when it exits, and would fail again."""
    with suppress(OSError, ValueError):  # a stream without a descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
