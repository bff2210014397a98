"""``hardthresh stability``: how often half-samples of the rows choose each feature."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError

from .blocks import check_blocks
from .databases import source_of
from .fit import fit
from .options import alpha_of, check_output, check_together, k_of
from .sharing import with_options_of

SHOWN = 20  # features, at most, in the table; arbitrary: it fits one screen
OF_THE_CHOICE_OF_K = frozenset(
    {"max_k", "criterion", "ebic_gamma", "n_features_original", "cv", "rule", "scoring", "averaging"}
)
"""The options of `fit` that have no meaning where k is given."""
OF_FOLDS = frozenset({"fold"})
"""That of `fit` about folds of a table in blocks."""


@with_options_of(fit, without=OF_THE_CHOICE_OF_K | OF_FOLDS)
def stability(
    ctx: typer.Context,
    data: Annotated[
        Any, typer.Argument(metavar="DATA", parser=source_of, help="The rows, in any format that fit reads.")
    ],
    *,
    k: Annotated[int, typer.Option(min=1, help="Number of features that each half-sample chooses.")],
    pairs: Annotated[int, typer.Option(min=1, help="Number of pairs of half-samples.")] = 50,
    threshold: Annotated[float, typer.Option(help="Smallest frequency of a selected feature, above 1/2.")] = 0.75,
    bound: Annotated[str, typer.Option(help="The bound on false selections: unimodal, or worst_case.")] = "unimodal",
    alpha: Annotated[str, typer.Option(help="Ridge on the mean loss: auto, or a number.")] = "auto",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the half-samples.")] = None,
    jobs: Annotated[
        int, typer.Option(help="Number of half-samples to fit in parallel; with --blocks, of threads.")
    ] = 1,
    out: Annotated[Path | None, typer.Option(help="Write the frequencies of all features to this .csv file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this .html file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")] = False,
    **options: Any,
) -> None:
    """Show how often fits to random halves of the rows choose each feature.

    The data and the model are specified by the options of `fit`.
    """
    reads = {"the file of data": data}
    check_output(out, "--out", ".csv", reads)
    check_output(report, "--report", ".html", reads)
    checked_word("--bound", bound, ("unimodal", "worst_case"))
    check_together(ctx.params)
    given = dict.fromkeys(OF_FOLDS) | ctx.params
    in_blocks = check_blocks(given)
    ridge = alpha_of(alpha)
    if isinstance(ridge, list):
        raise InvalidInputError(f"--alpha {alpha} has several ridges, which only a choice of k compares; give one")

    from hardthresh.core.files import write_file
    from hardthresh.core.spreadsheet import csv_text
    from hardthresh.designs.reading_log import logged_readings
    from hardthresh.estimators import StabilitySelection

    from .block_training import hint_of_size, read_block_training
    from .learning import data_of, finished, model_of, parameters_of_fit
    from .settings import common_settings
    from .terminal import Terminal
    from .training import read_training

    if in_blocks:
        training = read_block_training(data, given, ctx.call_on_close, quiet=quiet)
    else:
        hint_of_size(data, given["file_format"], quiet=quiet)
        training = read_training(data, given, quiet=quiet)
    table, task = training.table, training.task
    settings = common_settings(table, task, given)
    settings["n_nonzero_coefs"] = k_of(str(k), table.X.shape[1] - len(settings["always_include"] or ()))
    settings["alpha"] = None if ridge == "auto" else ridge
    loud = sys.stderr.isatty() and not quiet
    selector = StabilitySelection(
        model_of(table, task, settings, validated=False, verbose=loud and not in_blocks),
        n_pairs=pairs,
        threshold=threshold,
        bound=bound,
        random_state=seed,
        n_jobs=jobs,
    )
    with logged_readings(show=loud) as log:
        if in_blocks:
            selector.fit(training.engine)
        else:
            selector.fit(table.X, task.y, **parameters_of_fit(table))
    finished(selector.estimator_, table, task, named=True)
    if table.names is not None:
        selector.feature_names_in_ = selector.estimator_.feature_names_in_
    if out is not None:
        header = ("feature", "inclusion_frequency", "pair_frequency", "selected")
        write_file(out, csv_text([header, *_frequencies(selector)]).encode())
    if report is not None:
        from hardthresh.report import write_report

        write_report(selector, report, data_summary=data_of(table, task), command=ctx.obj)
    if not quiet:
        console = Terminal()
        print_selection(console, selector)
        if in_blocks:
            console.print(f"{table.source}: {log}", markup=False)
        for what, path in (("Frequencies", out), ("Report", report)):
            if path is not None:
                console.print(f"{what}: {path}", markup=False)


def _frequencies(selector: Any) -> list[tuple[str, float, float, bool]]:
    """Return the frequencies of all features, the highest first: in half-samples, in pairs, and whether selected."""
    numbers = [f"feature {j}" for j in range(selector.n_features_in_)]
    names = getattr(selector, "feature_names_in_", np.array(numbers)).tolist()
    every = zip(
        names,
        selector.inclusion_frequencies_.tolist(),
        selector.pair_frequencies_.tolist(),
        selector.get_support().tolist(),
        strict=True,
    )
    return sorted(every, key=lambda row: (-row[1], -row[2]))


def print_selection(console: Any, selector: Any) -> None:
    """Print the highest frequencies of a stability selection, and what its threshold guarantees."""
    from hardthresh.core.errors import plural
    from hardthresh.core.numbers import percent
    from hardthresh.core.printed import PrintedTable

    statement = selector.statement()
    chosen = [row for row in _frequencies(selector) if row[1]]
    table = PrintedTable(
        head=[
            f"{plural(len(selector.support_), 'feature')} in at least {percent(statement.threshold)} of "
            f"{2 * statement.n_pairs:,} half-samples"
        ],
        header=("feature", "in half-samples", "in both of a pair", ""),
        rows=[
            (str(name), percent(inclusion), percent(pair), "selected" if selected else "")
            for name, inclusion, pair, selected in chosen[:SHOWN]
        ],
        notes=[
            *([f"{len(chosen) - SHOWN:,} more are chosen at least once"] if len(chosen) > SHOWN else []),
            "",
            str(statement),
        ],
        left=("feature", ""),
    )
    console.print(table.to_text(), markup=False)
