"""``hardthresh convert-journal``: the journal of an earlier version as one of today."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert_journal(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The journal of an earlier version: lines of JSON.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new journal, such as study.sqlite; must not exist.")],
) -> None:
    """Convert a journal of bought answers from an earlier version; the old file is not changed.

    Stop the program that writes to it first.
    """
    from hardthresh.limited import convert_journal

    count = convert_journal(old, new)
    typer.echo(f"{count:,} {'answer' if count == 1 else 'answers'} of {old} written to {new}")
