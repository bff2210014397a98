"""``hardthresh alternatives``: the sets of features that fit nearly as well as a saved model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hardthresh.core.files import write_file

from .options import check_output


def alternatives(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file that fit wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The rows that the model was fitted to.")],
    tolerance: Annotated[float, typer.Option(help="The largest rise of the objective, as a share of it.")] = 0.02,
    most: Annotated[int, typer.Option(help="The most sets to find, those of the lowest objectives.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Write all sets to this .json file.")] = None,
) -> None:
    """List which other features fit nearly as well, and what takes the place of each chosen one.

    Single features are exchanged, starting at those of the model, as long as the refitted objective stays near. There
    may be other sets.
    """
    check_output(out, "--out", ".json", {"the file of data": data, "the model": model})

    from .terminal import Terminal
    from .training import training_of

    found = training_of(ctx, model, data).ask("alternatives", tolerance=tolerance, most=most)
    console = Terminal()
    console.print(str(found), markup=False)
    if out is not None:
        write_file(out, json.dumps(found.to_dict(), indent=1).encode())
        console.print(f"Sets: {out}", markup=False)
