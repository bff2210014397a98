"""``hardthresh study plan``: simulated studies, before the first example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hardthresh.core.errors import InvalidInputError

from ..options import names_of
from ..tables import read_rows
from .options import AsJson
from .printing import print_json, print_lines

TABLES = ("csv", "tsv", "parquet", "feather")


def plan(
    terms: Annotated[Path, typer.Argument(metavar="TERMS", help="The terms, a .toml file; see study example.")],
    table: Annotated[
        Path | None,
        typer.Option(
            help="Completely measured rows of an earlier study (CSV, TSV, Parquet, Feather), in place of a guess."
        ),
    ] = None,
    needed: Annotated[
        str | None, typer.Option(help="Guess: how many columns have an effect, or the attributes, NAME,...")
    ] = None,
    r2: Annotated[
        float | None,
        typer.Option(help="Guess, of a number: the share of its variance that the best model explains. Default: 0.5."),
    ] = None,
    auc: Annotated[
        float | None, typer.Option(help="Guess, of two classes: the area under the ROC curve. Default: 0.8.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="Guess, of two classes: the share of the second one. Default: 0.5.")
    ] = None,
    correlation: Annotated[
        float | None, typer.Option(help="Guess: the correlation of any two attributes. Default: 0.1.")
    ] = None,
    examples: Annotated[str | None, typer.Option(help="Numbers of examples to simulate, N,...")] = None,
    wanted: Annotated[float, typer.Option(help="The share of studies that should find all right columns.")] = 0.8,
    repeats: Annotated[int, typer.Option(min=2, help="Number of simulated studies of each size.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulations.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say how many examples a study needs, what it costs, and how often it finds the right attributes.

    Studies with these terms are simulated, by a guess of the signal or from complete rows of an earlier study.
    """
    from hardthresh.study import Terms
    from hardthresh.study import plan as planned

    found = Terms.read(terms)
    if table is not None and table.suffix[1:] not in TABLES:
        raise InvalidInputError(f"the name of {table} must end in .{', .'.join(TABLES)}")
    result = planned(
        found,
        examples=None if examples is None else _integers("--examples", examples),
        needed=_needed(needed),
        r2=r2,
        auc=auc,
        share=share,
        correlation=correlation,
        table=None if table is None else read_rows(table, table.suffix[1:]),
        wanted=wanted,
        repeats=repeats,
        seed=seed,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print_lines(str(result))


def _needed(text: str | None) -> int | list[str] | None:
    """Return a number of columns, or names of attributes."""
    if text is None:
        return None
    return int(text) if text.strip().isdecimal() else names_of(text)


def _integers(option: str, text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise InvalidInputError(f"{option} must be numbers such as 200,400; got {text!r}")
    return [int(word) for word in words]
