"""The application: its commands, and how it says what goes wrong."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from hardthresh import __version__
from hardthresh.core.errors import HardThreshError

from .demo import demo
from .fit import fit
from .listing import list_registered
from .predict import predict
from .reproduce import reproduce
from .show import show

# what the parser of the command line raises: a BadParameter is a usage error is an error of the parser
_PARSER_ERROR: Any = typer.BadParameter.__mro__[2]

INTERRUPTED = 130  # the exit code after Ctrl-C


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
            except _PARSER_ERROR as error:
                _leave(error.format_message())
            except HardThreshError as error:
                _leave(str(error))
            except OSError as error:
                if error.filename is None:
                    raise
                _leave(f"{error.filename2 or error.filename}: {error.strerror}")
            except (KeyboardInterrupt, typer.Abort):
                code = INTERRUPTED
        if code == INTERRUPTED:  # typer makes an exit code of an interrupt
            print("interrupted; nothing more was saved", file=sys.stderr)
        sys.exit(code if isinstance(code, int) else 0)


def _leave(message: str) -> NoReturn:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def _say_warning(message: Warning | str, *where: object, **more: object) -> None:
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"hardthresh {__version__}")
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
app.command("list")(list_registered)
