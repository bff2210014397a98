"""``hardthresh study new`` and ``example``: the terms of a study, and its file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from hardthresh.core.errors import InvalidInputError, plural

from ..options import check_output
from ..terminal import write_stderr, write_stdout
from .options import StudyFile, Who, name_of, quoted

OTHERS = (".toml", ".csv", ".tsv", ".json", ".parquet", ".html")
"""Endings of the files beside a study, which one might be given in its place by mistake."""


def new(
    terms: Annotated[Path, typer.Argument(metavar="TERMS", help="The terms, a .toml file; see study example.")],
    study: StudyFile,
    who: Who = None,
) -> None:
    """Begin a study: read its terms, and make its file.

    The terms cannot be changed afterwards, as every question follows from them; the file keeps a copy.
    """
    from hardthresh.study import Study, Terms

    found = Terms.read(terms)
    if study.suffix in OTHERS or study.name.startswith(":"):
        raise InvalidInputError(f"{study} is no name for the file of a study; choose one such as study.db")
    Study.create(study, found, who=name_of(who))
    limits = [f"{found.money(found.budget_per_example)} for an example"]
    if found.total_budget is not None:
        limits.append(f"{found.money(found.total_budget)} in all")
    write_stderr(
        f"{study}: a study of {plural(len(found.attributes), 'attribute')} to predict {found.target.name}; "
        f"{' and '.join(limits)}. Begin with: hardthresh study ask {quoted(study)}"
    )


def example(
    out: Annotated[
        Path | None, typer.Argument(metavar="TERMS", help="The .toml file to write. Default: standard output.")
    ] = None,
) -> None:
    """Write an example of the terms of a study, with comments, to start from."""
    from hardthresh.core.files import write_file

    text = resources.files(__package__).joinpath("example.toml").read_text("utf-8")
    if out is None:
        write_stdout(text)
        return
    check_output(out, "TERMS", ".toml")
    if out.exists():
        raise InvalidInputError(f"{out} is there already; choose another name, or remove it first")
    write_file(out, text.encode())
