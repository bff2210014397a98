"""Arguments and options that the commands of a study share."""

from __future__ import annotations

import getpass
import shlex
from os.path import realpath
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from hardthresh.core.errors import InvalidInputError

from ..options import check_output

WHO = "HARDTHRESH_WHO"
"""The environment variable with the name of the person who types."""

StudyFile: TypeAlias = Annotated[Path, typer.Argument(metavar="STUDY", help="The file of the study, such as study.db.")]
Number: TypeAlias = Annotated[int, typer.Argument(metavar="QUESTION", help="The number of the question.")]
Who: TypeAlias = Annotated[
    str | None, typer.Option(envvar=WHO, show_envvar=False, help=f"Your name. Default: ${WHO}, or the login name.")
]
Reason: TypeAlias = Annotated[str, typer.Option(help="Why, for the audit trail.")]
Key: TypeAlias = Annotated[
    str | None, typer.Option(help="A name for this request; the same request with the same key is done only once.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def name_of(who: str | None) -> str:
    """Return the name of the person who gives a command: what was given, or the login name.

    Raises
    ------
    InvalidInputError
        If there is neither.
    """
    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError) as error:
        raise InvalidInputError(f"who are you? add --who NAME, or set the environment variable {WHO}") from error


def quoted(study: Path) -> str:
    """Return the name of a file as it is typed in a shell, where a name that begins with "-" would be an option.

    Examples
    --------
    >>> quoted(Path("-x.db")), quoted(Path("my study.db"))
    ('./-x.db', "'my study.db'")
    """
    return shlex.quote(f"./{study}" if str(study).startswith("-") else str(study))


def check_written(
    study: Path, outputs: dict[str, tuple[Path | None, tuple[str, ...]]], reads: dict[str, Path | None] | None = None
) -> None:
    """Refuse files that cannot be written, or are what the command reads or one another, before anything is done.

    Parameters
    ----------
    study : Path
        The file of the study.
    outputs : dict from str to (Path or None, tuple of str)
        By option, the file to write and the endings that its name may have.
    reads : dict from str to (Path or None), optional
        What the command reads besides the study, by its description.

    Raises
    ------
    InvalidInputError
        With the option.
    """
    read = {"the study": study, **(reads or {})}
    for option, (path, endings) in outputs.items():
        check_output(path, option, endings, read)
        if path is None:
            continue
        for other, (beside, _) in outputs.items():
            if other != option and beside is not None and realpath(beside) == realpath(path):
                raise InvalidInputError(f"{option} and {other} are both {path}; choose two names")
