"""``hardthresh alternatives``: the sets of features that fit nearly as well as a saved model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hardthresh.core.files import write_file

from .databases import source_of
from .options import NO_LIMIT, check_output, seconds_of


def alternatives(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file that fit wrote.")],
    data: Annotated[
        Any, typer.Argument(metavar="DATA", parser=source_of, help="The rows that the model was fitted to.")
    ],
    tolerance: Annotated[float, typer.Option(help="Largest relative increase of the objective.")] = 0.02,
    most: Annotated[int, typer.Option(help="Largest number of sets to list, those with the lowest objectives.")] = 100,
    time_limit: Annotated[
        str,
        typer.Option(
            metavar="SECONDS",
            help="Seconds for the search and, for least squares, a proof that there are no other sets; 0 for no proof, "
            f"{NO_LIMIT} for no limit.",
        ),
    ] = "0",
    out: Annotated[Path | None, typer.Option(help="Write all sets to this .json file.")] = None,
) -> None:
    """List other sets of features that fit nearly as well, and the substitutes of each feature.

    Starting from the features of the model, single features are exchanged as long as the refitted objective is close to
    that of the model. This may miss some sets, unless a search with --time-limit proves that there are no others.
    """
    check_output(out, "--out", ".json", {"the file of data": data, "the model": model})

    from .asking import training_of
    from .terminal import Terminal

    limit = seconds_of(time_limit)
    found = training_of(ctx, model, data).ask("alternatives", tolerance=tolerance, most=most, time_limit=limit)
    console = Terminal()
    console.print(str(found), markup=False)
    if out is not None:
        write_file(out, json.dumps(found.to_dict(), indent=1).encode())
        console.print(f"Sets: {out}", markup=False)
