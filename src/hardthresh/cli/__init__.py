"""The command ``hardthresh``: fit, predict, show, demo, reproduce, list."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its code.

    Parameters
    ----------
    args : sequence of str, optional
        Arguments; default, those of the process.

    Raises
    ------
    SystemExit
        Always: 0 for success, 1 if the extra ``hardthresh[cli]`` is not installed, 2 for a user error (one line on
        standard error), 130 if interrupted. A bug of hardthresh raises its own exception.

    Examples
    --------
    >>> from hardthresh.cli import main
    >>> main(["--version"])
    Traceback (most recent call last):
    SystemExit: 0
    """
    try:
        for package in ("typer", "rich"):
            import_module(package)
    except ImportError as error:
        print(f"error: the command line needs {error.name}: install hardthresh[cli]", file=sys.stderr)
        raise SystemExit(1) from error
    from .app import app

    app(args=args)
