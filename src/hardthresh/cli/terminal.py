"""Standard output and standard error, whose readers may leave before the end, as ``| head`` does."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console


class Terminal(Console):
    """A console that goes on in silence when nobody reads it any more: a command has more to do than to print."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, **settings)

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True
        silence(sys.stderr if self.stderr else sys.stdout)


def show(text: str) -> None:
    """Write a text to standard output, if somebody reads it."""
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        silence(sys.stdout)


def say(line: str) -> None:
    """Write a line to standard error. Notes and warnings are never worth an error of their own."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let a stream drop what it holds and what will come; else Python fails to flush it when it exits."""
    with suppress(OSError, ValueError):  # it has no descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
