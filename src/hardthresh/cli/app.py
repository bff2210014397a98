"""The application: its commands, and how it reports errors."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from hardthresh import __version__
from hardthresh.core.compiled import describe_kernel
from hardthresh.core.errors import HardThreshError

from .alternatives import alternatives
from .compare import compare
from .convert import convert
from .convert_journal import convert_journal
from .databases import without_password
from .demo import demo
from .fit import fit
from .listing import list_registered
from .predict import predict
from .prove import prove
from .reproduce import reproduce
from .settings import FitCommand
from .show import show
from .stability import stability
from .study import study
from .terminal import discard, write_stderr, write_stdout

# the base class of all errors of the command-line parser: BadParameter, UsageError, then this one
_PARSER_ERROR: Any = typer.BadParameter.__mro__[2]

INTERRUPTED = 130  # the exit code after Ctrl-C
CANNOT_BE_WRITTEN = (EDQUOT, EFBIG, EIO, ENOSPC)  # errors of standard output, which have no file name


class Commands(TyperGroup):
    """The commands; a user error prints one line to standard error and exits with code 2, a bug prints a traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run a command and exit."""
        given = list(sys.argv[1:] if args is None else args)
        extra |= {"standalone_mode": False, "obj": shlex.join(["hardthresh", *map(without_password, given)])}
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # characters that the terminal lacks become "?"
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            try:
                code = super().main(given or ["--help"], *rest, **extra)
                write_stdout("")  # flush
            except _PARSER_ERROR as error:
                _exit_with(error.format_message())
            except HardThreshError as error:
                _exit_with(str(error))
            except OSError as error:
                if error.filename is None:
                    if error.errno is None:  # of a table in blocks: it says which rows are missing where
                        _exit_with(str(error))
                    if error.errno not in CANNOT_BE_WRITTEN:
                        raise
                    discard(sys.stdout)
                _exit_with(f"{error.filename2 or error.filename or 'standard output'}: {error.strerror}")
            except (KeyboardInterrupt, typer.Abort):
                code = INTERRUPTED
        if code == INTERRUPTED:  # typer makes an exit code of an interrupt
            write_stderr("interrupted; nothing more was saved")
        sys.exit(code if isinstance(code, int) else 0)


def _exit_with(message: str) -> NoReturn:
    write_stderr(f"error: {_in_one_line(message)}")
    sys.exit(2)


def _print_warning(message: Warning | str, *where: object, **more: object) -> None:
    write_stderr(f"warning: {_in_one_line(str(message))}")


def _in_one_line(message: str) -> str:
    """Return a message of the library in one line; rows of a file, unlike those of an array, are counted from 1."""
    one = " ".join(message.split())
    return re.sub(r"\brow (\d+) \(counted from 0\)", lambda found: f"row {int(found[1]) + 1}", one)


def _version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"hardthresh {__version__}\nkernel: {describe_kernel()}\n")
        raise typer.Exit


VERSION = typer.Option(
    "--version", callback=_version, is_eager=True, help="Print the version, and which compiled kernel is used."
)

app = typer.Typer(
    name="hardthresh",
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def hardthresh(version: Annotated[bool, VERSION] = False) -> None:
    """Fit, inspect and apply models with at most k features."""


app.command(cls=FitCommand)(fit)
app.command()(predict)
app.command()(prove)
app.command()(alternatives)
app.command(cls=FitCommand)(stability)
app.command()(compare)
app.command()(show)
app.command()(demo)
app.command()(reproduce)
app.command()(convert)
app.command()(convert_journal)
app.command("list")(list_registered)
app.add_typer(study)
