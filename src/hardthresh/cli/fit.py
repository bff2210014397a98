"""``hardthresh fit``: fit a model with few features to the data in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError

from .blocks import check_blocks
from .databases import source_of
from .options import (
    WITHOUT_FOLDS,
    alpha_of,
    check_criterion,
    check_model_output,
    check_output,
    check_together,
    k_of,
    remarks_on_k,
)
from .terminal import write_stderr

FOLDS = 5  # the default of the estimators, too


def fit(
    ctx: typer.Context,
    data: Annotated[
        Any,
        typer.Argument(
            metavar="DATA", parser=source_of, help="CSV, TSV, Parquet, Feather, NPZ, NPY, libsvm or .bed file."
        ),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column to predict; repeat it for several. NPZ: array; NPY: another file."),
    ] = None,
    k: Annotated[
        str, typer.Option(help="Number of features: auto, search, a number, a range 1-20 or a list 2,5,10.")
    ] = "auto",
    max_k: Annotated[int | None, typer.Option(min=1, help="Largest number that --k search tries.")] = None,
    criterion: Annotated[
        str, typer.Option(help="How to choose the number: cv (cross-validation), ebic, bic, aic or gic.")
    ] = "cv",
    ebic_gamma: Annotated[float, typer.Option(min=0.0, max=1.0, help="Gamma of --criterion ebic; 0 is the BIC.")] = 1.0,
    n_features_original: Annotated[
        int | None, typer.Option(min=1, help="For ebic and gic: number of features before a screening by the target.")
    ] = None,
    loss: Annotated[
        str, typer.Option(help="A loss that `hardthresh list` shows, or auto: chosen from the target.")
    ] = "auto",
    classes: Annotated[
        bool, typer.Option("--classes", help="Treat the target as classes, even if it is numeric.")
    ] = False,
    positive_class: Annotated[str | None, typer.Option(help="Class to predict against all others.")] = None,
    always_include: Annotated[
        list[str] | None, typer.Option(help="Columns to include in every model, NAME,...")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out, NAME,...")] = None,
    weight: Annotated[str | None, typer.Option(help="Column with the weights of the rows.")] = None,
    offset: Annotated[str | None, typer.Option(help="Column with a known part of the prediction.")] = None,
    exposure: Annotated[
        str | None, typer.Option(help="Column with the exposure of counts, such as the time observed.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column with times to an event, for --loss cox.")] = None,
    event: Annotated[
        str | None, typer.Option(help="Column that is 1 if the event happened at --time, 0 if the time is censored.")
    ] = None,
    strata: Annotated[
        str | None, typer.Option(help="Column of strata with separate baseline hazards, for --loss cox.")
    ] = None,
    order: Annotated[str | None, typer.Option(help="Classes from low to high, for --loss ordinal, NAME,...")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Categorical columns, NAME,...; they may contain text.")
    ] = None,
    impute: Annotated[
        bool,
        typer.Option(
            "--impute", help="Impute missing numbers by means, with indicators; missing categories become a level."
        ),
    ] = False,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Setting of the model of the loss, NAME=VALUE; or --NAME VALUE, such as --quantile 0.9."
        ),
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column of row identifiers: not a feature, and not written to any file.")
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(min=2, help="Number of folds. Default: 5, or no cross-validation if --k is one number."),
    ] = None,
    rule: Annotated[str, typer.Option(help="best, or one-se: the fewest features within one standard error.")] = "best",
    scoring: Annotated[str | None, typer.Option(help="scikit-learn scorer for the comparison, e.g. accuracy.")] = None,
    alpha: Annotated[
        str, typer.Option(help="Ridge on the mean loss: auto, a number, or a list 0.01,0.1,1 to compare.")
    ] = "auto",
    averaging: Annotated[
        str, typer.Option(help="Average of the compared models: auto, none, exponential or stacking.")
    ] = "auto",
    positive: Annotated[bool, typer.Option("--positive", help="Restrict coefficients to be non-negative.")] = False,
    no_standardize: Annotated[bool, typer.Option("--no-standardize", help="Do not standardise the features.")] = False,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit no intercept.")] = False,
    max_iter: Annotated[int, typer.Option(min=1, help="Maximum number of iterations of each fit.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet, feather, npz, npy, libsvm or bed.")
    ] = None,
    x_key: Annotated[str | None, typer.Option(help="For NPZ: name of the matrix.")] = None,
    sql: Annotated[str | None, typer.Option(help="SQL query that returns the rows, if DATA is a database.")] = None,
    blocks: Annotated[
        bool,
        typer.Option(
            "--blocks",
            help="Read DATA in blocks, two in memory at a time: Parquet, NPY, HDF5, Zarr, NPZ, libsvm or folder.",
        ),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(help="As --blocks, on a Dask cluster: tcp://ADDRESS:PORT of its scheduler, or local."),
    ] = None,
    fold: Annotated[str | None, typer.Option(help="For --blocks: column with the fold of each row.")] = None,
    phenotypes: Annotated[
        Any,
        typer.Option(parser=source_of, metavar="TABLE", help="For a .bed file: table of its samples, matched by --id."),
    ] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns of --phenotypes to include in every model, NAME,...")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Save the model in this .json file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this .html file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")] = False,
) -> None:
    """Find the best model with at most k features, and report how reliable it is."""
    check_model_output(out, {"the file of data": data})
    check_output(report, "--report", ".html", {"the file of data": data})
    checked_word("--rule", rule, ("best", "one-se"))
    checked_word("--averaging", averaging, ("auto", "none", "exponential", "stacking"))
    given = [name for name in ("cv", "rule", "scoring", "averaging", "ebic_gamma") if _given(ctx, name)]
    given = [name for name in given if ctx.params[name] not in WITHOUT_FOLDS.get(name, ())]
    check_criterion(criterion, given, n_features_original)

    check_together(ctx.params)
    in_blocks = check_blocks(ctx.params)

    from .block_training import choice_over_blocks, hint_of_size, read_block_training, without_folds
    from .learning import check_scoring, finish, folds_of, learn
    from .settings import common_settings
    from .training import read_training

    if in_blocks:
        training = read_block_training(data, ctx.params, ctx.call_on_close, quiet=quiet)
    else:
        hint_of_size(data, file_format, quiet=quiet)
        training = read_training(data, ctx.params, quiet=quiet)
    table, task = training.table, training.task
    settings = common_settings(table, task, ctx.params)
    chosen = k_of(k, table.X.shape[1] - len(settings["always_include"] or ()))
    ridge = alpha_of(alpha)
    scoring = check_scoring(scoring)
    if max_k is not None and chosen != "search":
        raise InvalidInputError("--max-k is the largest number that --k search tries; leave it out")
    validated = not isinstance(chosen, int) or cv is not None or fold is not None
    if not quiet:
        options = ("rule",) if validated else ("scoring", "rule", "averaging", "criterion")
        for remark in remarks_on_k(k, chosen, [name for name in options if _given(ctx, name)]):
            write_stderr(f"note: {remark}")
    settings["n_nonzero_coefs"] = chosen
    why = without_folds(chosen, given, ctx.params, task, settings, table.X.shape[1]) if in_blocks else None
    if why is not None:
        settings |= choice_over_blocks(chosen, ridge, ctx.params, why, quiet=quiet)
        validated = False
    elif validated and criterion != "cv":
        settings |= {"alphas": ridge, "criterion": criterion, "ebic_gamma": ebic_gamma, "max_nonzero_coefs": max_k}
        settings["n_features_original"] = n_features_original
    elif validated:
        rules = {"best": "best", "one-se": "one_standard_error"}
        settings |= {
            "n_nonzero_coefs": [chosen] if isinstance(chosen, int) else chosen,
            "alphas": ridge,
            "max_nonzero_coefs": max_k,
            "averaging": "none" if averaging == "auto" and isinstance(chosen, int) else averaging,
            "cv": cv or FOLDS if in_blocks else folds_of(task, cv or FOLDS, seed),
            "rule": rules[rule],
            "scoring": scoring,
        }
    elif isinstance(ridge, list):
        raise InvalidInputError(f"--alpha {alpha} has several ridges, which only a choice of k compares: add --cv 5")
    else:
        settings["alpha"] = None if ridge == "auto" else ridge
    model, notes = learn(training, settings, validated=validated, command=ctx.obj, quiet=quiet)
    finish(model, notes, out=out, report=report, quiet=quiet)


def _given(ctx: typer.Context, option: str) -> bool:
    """Return whether an option is on the command line."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
