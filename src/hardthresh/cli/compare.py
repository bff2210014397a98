"""``hardthresh compare``: our models and those of other packages on the same folds of a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hardthresh.core.errors import InvalidInputError

from .databases import source_of
from .fit import fit
from .options import check_output, check_together, names_of, seconds_of
from .sharing import with_options_of

OF_ONE_MODEL = frozenset(
    {"k", "max_k", "criterion", "ebic_gamma", "n_features_original", "cv", "rule", "scoring", "alpha", "averaging"}
) | {"always_include", "own", "positive", "no_standardize", "no_intercept", "max_iter"}
"""The options of `fit` that set a model: each method chooses its own."""
OF_OTHER_TABLES = frozenset({"blocks", "dask", "fold", "phenotypes", "covariates", "order", "strata"})
"""Those about tables and targets that other packages do not take."""
INTERRUPTED = 130


@with_options_of(fit, without=OF_ONE_MODEL | OF_OTHER_TABLES)
def compare(
    ctx: typer.Context,
    data: Annotated[
        Any, typer.Argument(metavar="DATA", parser=source_of, help="The rows, in any format that fit reads.")
    ],
    *,
    entrants: Annotated[
        list[str] | None, typer.Option(help="Methods to compare, NAME,... Default: all that are installed.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of outer folds, which measure the loss.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Number of repetitions with new outer folds.")] = 1,
    inner_folds: Annotated[
        int, typer.Option(min=2, help="Number of inner folds, by which each method chooses its settings.")
    ] = 5,
    time_limit: Annotated[str, typer.Option(help="Seconds after which a method is stopped, or none.")] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write all numbers to a .json file, or the table to a .csv file.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page to this .html file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")] = False,
    **options: Any,
) -> None:
    """Compare models with few features to those of other packages, and recommend one.

    Each method is fitted to the same training rows, chooses its settings by inner folds of these rows, and predicts the
    held-out rows. The data are specified by the options of `fit`. After Ctrl-C, the complete outer folds are compared.
    """
    reads = {"the file of data": data}
    check_output(out, "--out", (".json", ".csv"), reads)
    check_output(report, "--report", ".html", reads)
    given = dict.fromkeys(OF_OTHER_TABLES) | ctx.params
    check_together(given)
    limit = seconds_of(time_limit)

    from hardthresh.comparison import compare as compared
    from hardthresh.comparison.targets import LOSSES
    from hardthresh.core.files import write_file
    from hardthresh.core.spreadsheet import csv_text

    from .learning import data_of
    from .terminal import Terminal
    from .training import read_training

    training = read_training(data, given, quiet=quiet, impute=False)
    table, task = training.table, training.task
    if task.loss not in LOSSES or task.outputs:
        what = "several targets" if task.outputs else f"the {task.loss} loss"
        raise InvalidInputError(f"no other package is compared for {what}; --loss is one of {', '.join(LOSSES)}")
    found = compared(
        table.X,
        task.y,
        loss=task.loss,
        entrants=names_of(entrants) if entrants else None,
        folds=folds,
        repeats=repeats,
        inner_folds=inner_folds,
        sample_weight=table.weight,
        offset=table.offset,
        categorical_features=names_of(options["categorical"]) or None,
        feature_names=table.names,
        impute=options["impute"],
        time_limit=limit,
        random_state=seed,
        verbose=sys.stderr.isatty() and not quiet,
    )
    if not quiet:
        Terminal(soft_wrap=True).print(str(found), markup=False)
    written = []
    if out is not None:
        records = found.records()
        rows = [[*records[0]], *([*record.values()] for record in records)]
        text = csv_text(rows) if out.suffix == ".csv" else json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n"
        write_file(out, text.encode())
        written.append(f"Numbers: {out}")
    if report is not None:
        from hardthresh.report import write_comparison

        write_comparison(found, report, data_summary=data_of(table, task), command=ctx.obj)
        written.append(f"Report: {report}")
    for line in () if quiet else written:
        Terminal().print(line, markup=False)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
