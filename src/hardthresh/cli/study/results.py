"""``hardthresh study export``, ``report``, ``close`` and ``verify``: what a study leaves behind."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from errno import EACCES
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from hardthresh.core.errors import InvalidInputError, plural

from ..options import check_model_output
from ..terminal import asks_people, write_stderr
from .options import StudyFile, Who, check_written, name_of
from .printing import print_lines

if TYPE_CHECKING:
    from hardthresh.study import Study

TABLES = (".csv", ".parquet")


def export(
    study: StudyFile,
    answers: Annotated[Path | None, typer.Option(help="CSV or Parquet file: a row for each question.")] = None,
    trail: Annotated[
        Path | None, typer.Option(help="CSV or Parquet file: the audit trail, a row for each event and value.")
    ] = None,
    terms: Annotated[Path | None, typer.Option(help="TOML file: the terms, as they were when the study began.")] = None,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Do not escape texts that spreadsheets run as formulas.")
    ] = False,
) -> None:
    """Write the answers, the audit trail and the terms of a study to files.

    In CSV a text that a spreadsheet would run as a formula, such as =1+1, gets a ' in front.
    """
    if answers is None and trail is None and terms is None:
        raise InvalidInputError("say what to write: --answers FILE, --trail FILE or --terms FILE")
    check_written(study, {"--answers": (answers, TABLES), "--trail": (trail, TABLES), "--terms": (terms, (".toml",))})

    from hardthresh.study import Study
    from hardthresh.study.export import write_answers, write_terms, write_trail

    found = Study.open(study)
    for path, write, noun in ((answers, write_answers, "question"), (trail, write_trail, "row")):
        if path is not None:
            rows = write(found, path, verbatim=verbatim)
            write_stderr(f"{plural(rows, noun)} written to {path}")
    if terms is not None:
        write_terms(found, terms)
        write_stderr(f"the terms written to {terms}")


def report(study: StudyFile, page: Annotated[Path, typer.Argument(metavar="PAGE", help="The .html file.")]) -> None:
    """Write a page about a study as it stands, open or closed.

    It shows the budget, the error with its band, the model, missing values, drift, and who answered.
    """
    check_written(study, {"PAGE": (page, (".html",))})

    from hardthresh.study import Study
    from hardthresh.study.closing import write_study

    write_study(Study.open(study), page)
    write_stderr(f"Report: {page}")


def close(
    study: StudyFile,
    out: Annotated[Path | None, typer.Option(help="Save the final model in this .json file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the final report to this .html file.")] = None,
    reason: Annotated[str, typer.Option(help="Why now, for the audit trail.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to close.")] = False,
    who: Who = None,
) -> None:
    """Close a study for good; save its model and its report.

    Nothing can be asked, told or corrected afterwards. The files can be written again by the same command. If the model
    or the report cannot be made, the study stays open.
    """
    check_written(study, {"--report": (report, (".html",))}, {"the file of --out": out})
    check_model_output(out, {"the study": study})

    from hardthresh.study import Study
    from hardthresh.study.predicting import NO_MODEL, predictor

    found, name = Study.open(study), name_of(who)
    if not found.closed:
        if not yes:
            if not asks_people():
                raise InvalidInputError(f"nobody can be asked whether to close {study} for good; add --yes")
            typer.confirm(f"Close {study} for good?", abort=True)
        try:
            _rehearse(found, out, report)
            found.close(name, reason=reason)
        except Exception:
            write_stderr(f"{study} stays open")
            raise
    status = found.status()
    last = status.answered - found.learned().questions.size
    incomplete = f" ({last:,} of them in the last round, which is incomplete)" if last else ""
    print_lines(
        f"{study} is closed: {plural(status.answered, 'example')} learned from{incomplete}, "
        f"{found.terms.money(status.spent)} spent; a prediction needs "
        f"{', '.join(status.chosen) or 'nothing'}."
    )
    model = predictor(found)
    if model is None and out is not None:
        write_stderr(f"warning: {NO_MODEL} to write to {out}")
    elif model is not None and model.caution:
        write_stderr(f"warning: {model.caution}")
    for label, path in _write(found, out, report):
        print_lines(f"{label}: {path}")


def _write(study: Study, out: Path | None, report: Path | None) -> Iterator[tuple[str, Path]]:
    """Write the model and the report, those that are wanted."""
    from sklearn.exceptions import ConvergenceWarning

    from hardthresh.study.closing import save_model, write_study

    if out is not None and study.status().answered:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the caller says it
            save_model(study, out)
        yield "Model", out
    if report is not None:
        write_study(study, report)
        yield "Report", report


def _rehearse(study: Study, out: Path | None, report: Path | None) -> None:
    """Raise what writing the model and the report would raise: they are written to new folders beside, and removed."""
    for path in filter(None, (out, report)):
        target = Path(os.path.realpath(path))
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), os.fspath(path))
        try:
            with TemporaryDirectory(dir=target.parent) as folder:
                draft = Path(folder, path.name)
                list(_write(study, draft if path is out else None, draft if path is report else None))
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def verify(study: StudyFile) -> None:
    """Check that no event was changed or removed, and that the events give the stored model."""
    from hardthresh.study import Study

    found = Study.open(study)
    found.verify()
    *_, last = found.events()
    print_lines(
        f"{plural(last.number, 'event')}: the checksums hold, and the answers give the stored model.",
        f"The checksum of the last one depends on all: {last.checksum}",
    )
