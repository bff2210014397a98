"""``hardthresh demo``: a model of a few out of 2,000 genes, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import check_model_output, check_output
from .terminal import write_stdout


def demo(
    ctx: typer.Context,
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("hardthresh-demo.html"),
    out: Annotated[Path | None, typer.Option(help="Save the model in this .json file.")] = None,
) -> None:
    """Select a few of 2,000 genes that separate tumour from normal tissue, and write a report."""
    check_output(report, "--report", ".html")
    check_model_output(out)

    import numpy as np

    from hardthresh.datasets import load_colon

    from .data import Data
    from .learning import finish, folds_of, learn
    from .task import task_of
    from .training import Training

    colon = load_colon()
    names = tuple(map(str, colon.feature_names))
    target = colon.target_names.astype(str)[colon.target]
    table = Data("colon (log2 intensities)", np.log2(colon.data), names, target, target_name="the tissue")
    task = task_of(table, "logistic", "tumour")
    write_stdout(
        "Which few of 2,000 genes tell tumour from normal tissue? (colon, Alon et al. 1999, 62 biopsies)\n"
        "Logistic regression of log2 intensities; 10-fold cross-validation compares numbers of genes and ridges.\n\n"
    )
    model, notes = learn(
        Training(table, task), {"cv": folds_of(task, 10, seed=0)}, validated=True, command=ctx.obj, quiet=False
    )
    finish(model, notes, out=out, report=report, quiet=False)
