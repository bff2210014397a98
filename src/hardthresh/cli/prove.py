"""``hardthresh prove``: try to prove that no other set of features is better."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hardthresh.core.errors import InvalidInputError

from .databases import source_of
from .options import NO_LIMIT, check_model_output, seconds_of

NOT_PROVED = 1
"""The exit code where something is left to prove."""


def prove(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file that fit wrote.")],
    data: Annotated[
        Any, typer.Argument(metavar="DATA", parser=source_of, help="The rows that the model was fitted to.")
    ],
    time_limit: Annotated[
        str, typer.Option(metavar="SECONDS", help=f"Seconds that the search may take; {NO_LIMIT} for no limit.")
    ] = "60",
    resume: Annotated[Path | None, typer.Option(help="Continue from a proof that --out saved.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save the proof in this .json file, to continue it later.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Try to prove that no other set of k features has a lower objective.

    For least squares the search is by branch and bound; for other losses a lower bound over all sets is computed.
    Ctrl-C ends the search, and the bounds proved so far are printed and saved; while rows are read, it ends the
    command. The exit code is 0 if the set is proved to be the best, and 1 if not.
    """
    check_model_output(out, {"the file of data": data, "the model": model})

    from hardthresh.certificates import Proof
    from hardthresh.storage import load, save

    from .asking import training_of
    from .terminal import Terminal

    before = None if resume is None else load(resume)
    if before is not None and not isinstance(before, Proof):
        raise InvalidInputError(f"--resume {resume} does not hold a proof, but {before!r}")
    training = training_of(ctx, model, data)
    progress = sys.stderr.isatty() and not quiet
    proof = training.ask("prove", time_limit=seconds_of(time_limit), resume=before, progress=progress)
    console = Terminal()
    console.print(str(proof), markup=False)
    if out is not None:
        save(proof, out)
        console.print(f"Proof: {out}", markup=False)
    if not proof.proved:
        raise typer.Exit(NOT_PROVED)
