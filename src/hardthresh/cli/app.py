"""The application: its commands, and how it says what goes wrong."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Sequence
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from hardthresh import __version__
from hardthresh.core.errors import HardThreshError

from .convert_journal import convert_journal
from .demo import demo
from .fit import fit
from .listing import list_registered
from .predict import predict
from .reproduce import reproduce
from .show import show
from .terminal import discard, write_stderr, write_stdout

# what the parser of the command line raises: a BadParameter is a usage error is an error of the parser
_PARSER_ERROR: Any = typer.BadParameter.__mro__[2]

INTERRUPTED = 130  # the exit code after Ctrl-C
CANNOT_BE_WRITTEN = (EDQUOT, EFBIG, EIO, ENOSPC)  # what an error of standard output says, which has no file name


class Commands(TyperGroup):
    """The commands; an error of the user is one line on standard error and exit code 2, a bug is a traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run a command and leave."""
        given = list(sys.argv[1:] if args is None else args)
        extra |= {"standalone_mode": False, "obj": shlex.join(["hardthresh", *given])}
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal without our signs shows "?" in their place
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            try:
                code = super().main(given or ["--help"], *rest, **extra)
                write_stdout("")  # what is still held back
            except _PARSER_ERROR as error:
                _leave(error.format_message())
            except HardThreshError as error:
                _leave(str(error))
            except OSError as error:
                if error.filename is None:
                    if error.errno not in CANNOT_BE_WRITTEN:
                        raise
                    discard(sys.stdout)
                _leave(f"{error.filename2 or error.filename or 'standard output'}: {error.strerror}")
            except (KeyboardInterrupt, typer.Abort):
                code = INTERRUPTED
        if code == INTERRUPTED:  # typer makes an exit code of an interrupt
            write_stderr("interrupted; nothing more was saved")
        sys.exit(code if isinstance(code, int) else 0)


def _leave(message: str) -> NoReturn:
    write_stderr(f"error: {' '.join(message.split())}")
    sys.exit(2)


def _say_warning(message: Warning | str, *where: object, **more: object) -> None:
    write_stderr(f"warning: {' '.join(str(message).split())}")


def _version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"hardthresh {__version__}\n")
        raise typer.Exit


VERSION = typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")

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
    """Models with at most k features: find them, say how sure to be of them, use them."""


app.command()(fit)
app.command()(predict)
app.command()(show)
app.command()(demo)
app.command()(reproduce)
app.command()(convert_journal)
app.command("list")(list_registered)
