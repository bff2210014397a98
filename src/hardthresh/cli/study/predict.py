"""``hardthresh study predict``: what the model of a study, as it stands, predicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardthresh.core.errors import InvalidInputError

from ..terminal import write_stderr, write_stdout
from .options import AsJson, StudyFile, check_written
from .printing import print_json, print_lines
from .typed import assignments, read_records

if TYPE_CHECKING:
    from hardthresh.study import Terms


def predict(
    study: StudyFile,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="Values of one example, as of tell.")
    ] = None,
    *,
    rows: Annotated[
        Path | None, typer.Option("--from", help="A .csv, .tsv or .json file of examples, a row for each.")
    ] = None,
    row_id: Annotated[str | None, typer.Option("--id", help="Column of the file to copy to the output.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV or Parquet file to write. Default: standard output.")] = None,
    as_json: AsJson = False,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Do not escape texts that spreadsheets run as formulas.")
    ] = False,
) -> None:
    """Predict the target of new examples with the model as it stands.

    Only the attributes that it needs have to be given, with units of the terms if need be. Without values, it says
    which these are.
    """
    check_written(study, {"--out": (out, (".csv", ".parquet"))}, {"the file of --from": rows})
    if values and rows is not None:
        raise InvalidInputError("give values, or --from FILE, not both")
    if rows is None and (out is not None or row_id is not None):
        raise InvalidInputError("--out and --id are for the rows of --from FILE; leave them out")

    from hardthresh.study import Study, predicting

    found = Study.open(study)
    terms, model = found.terms, predicting.predictor(found)
    if model is None:
        raise InvalidInputError(f"{study} cannot predict: {predicting.NO_MODEL}")
    if model.caution:
        write_stderr(f"warning: {model.caution}")
    needed = ", ".join(attribute.name for attribute in model.attributes)
    if rows is not None:
        records = read_records(rows)
        predicted = predicting.predictions(model.estimator, terms, records, on_doubt=_warn)
        _write(predicted, records, terms, row_id, out, as_json=as_json, verbatim=verbatim)
        return
    if not values and needed:
        raise InvalidInputError(f"give the values that the model needs: {needed}")
    one = predicting.predict(terms, model, assignments(values or []))
    for caution in one.cautions:
        _warn(caution)
    if as_json:
        print_json(one.to_dict(terms))
    elif terms.is_class:
        print_lines(f"{terms.target.name}: {terms.target.levels[1]} with probability {one.value:.3g}")
    else:
        print_lines(f"{terms.target.name}: {terms.target.format(float(f'{one.value:.4g}'))}")


def _warn(message: str) -> None:
    write_stderr(f"warning: {message}: the study knows little there")


def _column(terms: Terms) -> str:
    return f"probability of {terms.target.levels[1]}" if terms.is_class else "prediction"


def _write(
    predicted: Any,
    records: list[tuple[str, Mapping[str, Any]]],
    terms: Terms,
    row_id: str | None,
    out: Path | None,
    *,
    as_json: bool,
    verbatim: bool,
) -> None:
    """Write the predictions of the rows of a file, with the column that identifies them."""
    from hardthresh.core.files import write_file
    from hardthresh.designs.formats.written_tables import csv_parts, parquet_parts
    from hardthresh.study.reading import suggestion

    columns: list[tuple[str, Any]] = [(_column(terms), predicted)]
    if terms.is_class:
        columns.insert(0, ("prediction", [terms.target.levels[int(share > 0.5)] for share in predicted.tolist()]))
    if row_id is not None:
        lacking = [place for place, record in records if row_id not in record]
        if lacking:
            names = dict.fromkeys(name for _, record in records for name in record)
            raise InvalidInputError(f"{lacking[0]} has no {row_id!r}, the column of --id{suggestion(row_id, names)}")
        columns.insert(0, (row_id, [str(record[row_id]) for _, record in records]))
    if as_json:
        names, listed = zip(*((name, list(column)) for name, column in columns), strict=True)
        print_json([dict(zip(names, row, strict=True)) for row in zip(*listed, strict=True)])
    elif out is None:
        for text in csv_parts([columns], verbatim=verbatim):
            write_stdout(text)
    else:
        parquet = out.suffix == ".parquet"
        texts = (text.encode(errors="replace") for text in csv_parts([columns], verbatim=verbatim))
        write_file(out, parquet_parts([columns]) if parquet else texts)
        write_stderr(f"{len(records):,} predictions written to {out}")
