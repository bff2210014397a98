"""``hardthresh predict``: predictions of a saved model for new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.files import write_file

from .blocks import IN_MEMORY, how_read
from .databases import source_of
from .options import check_output, names_of
from .terminal import write_stderr, write_stdout

if TYPE_CHECKING:
    from hardthresh.designs.formats.written_tables import Columns

    from .data import Data


def predict(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file that fit wrote.")],
    data: Annotated[
        Any, typer.Argument(metavar="DATA", parser=source_of, help="New rows, in any format that fit reads.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file to write, chosen by its ending. Default: CSV on standard output."),
    ] = None,
    offset: Annotated[str | None, typer.Option(help="Column with a known part of the prediction.")] = None,
    exposure: Annotated[str | None, typer.Option(help="Column with the exposure of counts.")] = None,
    row_id: Annotated[str | None, typer.Option("--id", help="Column to copy to the front of the output.")] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, if the model has no feature names.")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet, feather, npz, npy, libsvm or bed.")
    ] = None,
    x_key: Annotated[str | None, typer.Option(help="For NPZ: name of the matrix.")] = None,
    sql: Annotated[str | None, typer.Option(help="SQL query that returns the rows, if DATA is a database.")] = None,
    blocks: Annotated[
        bool, typer.Option("--blocks", help="Read and write rows in blocks; DATA as for fit --blocks.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(help="As --blocks, on a Dask cluster: tcp://ADDRESS:PORT, or local."),
    ] = None,
    phenotypes: Annotated[
        Any,
        typer.Option(
            parser=source_of, metavar="TABLE", help="For a .bed file: covariates of its samples, matched by --id."
        ),
    ] = None,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Do not escape text that spreadsheets would run as formulas.")
    ] = False,
) -> None:
    """Predict with a saved model: a number for each row, or its class with a probability.

    Columns are matched by name, in any order; only the features that the model uses are required. Rows keep their
    order. --id copies a column to the output; a first column without a name is copied automatically.

    Text that a spreadsheet would run as a formula, such as =1+1, is escaped by a leading '.
    """
    from hardthresh.designs.formats.written_tables import csv_parts, parquet_parts, require_parquet
    from hardthresh.storage import load, load_notes

    from .block_predictions import parts_of
    from .data import Request
    from .imputing import columns_read
    from .reading import read

    check_output(out, "--out", (".csv", ".parquet"), {"the file of data": data, "the model": model})
    if offset is not None and exposure is not None:
        raise InvalidInputError("--offset and --exposure are the same on another scale; leave one of them out")
    as_parquet = out is not None and out.suffix == ".parquet"
    if as_parquet:
        require_parquet()
    blocks = blocks or dask is not None
    if blocks and (exposure is not None or sql is not None):
        which = "exposure" if exposure is not None else "sql"
        raise InvalidInputError(f"--{which} needs all rows in memory, unlike {how_read(dask)}: {IN_MEMORY[which]}")
    fitted = load(model)
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    if not (hasattr(last, "support_") and hasattr(last, "predict")):
        raise InvalidInputError(f"{model} does not hold a fitted model, but {fitted!r}")
    notes = load_notes(model)
    names = getattr(fitted[0] if hasattr(fitted, "steps") else fitted, "feature_names_in_", None)
    used, factors = columns_read(fitted)
    only = None if names is None else [str(names[j]) for j in used]
    request = Request(
        offset=offset,
        exposure=exposure,
        id=row_id,
        learn=False,
        drop=names_of(drop),
        only=only,
        may_be_missing=hasattr(fitted, "steps"),
        categorical=[] if names is None else [str(names[j]) for j in used if j in factors],
        x_key=x_key,
        sql=sql,
        phenotypes=phenotypes,
        means=notes.get("data", {}).get("means"),
        codes=_codes(notes.get("terms")),
    )
    if blocks:
        parts = parts_of(
            data, request, file_format, used, wide=fitted.n_features_in_, dask=dask, close=ctx.call_on_close
        )
        only = [str(j) for j in used] if only is None else only
    else:
        rows = read(data, request, file_format)
        for remark in rows.remarks:
            write_stderr(f"note: {remark}")
        offset = rows.offset_name if offset is None and rows.offset is not None else offset
        parts = iter([rows])
    if offset is None and getattr(last, "offset_used_", False):
        known = load_notes(model).get("data", {})  # not in files of the library or of earlier versions
        option = "exposure" if "exposure" in known else "offset"
        which = f"the {option} {known[option]!r}" if option in known else "an offset"
        write_stderr(f"warning: the model was fitted with {which}, which these predictions leave out; add --{option}")
    written = Written()
    tables = written.tables(fitted, parts, used, only)
    texts = csv_parts(tables, verbatim=verbatim)
    if out is None:
        for text in texts:
            write_stdout(text)
    else:
        write_file(out, parquet_parts(tables) if as_parquet else (text.encode(errors="replace") for text in texts))
        write_stderr(f"{written.rows:,} predictions written to {out}")


def _codes(terms: Any) -> dict[str, str]:
    """Return what numbers stand for in the columns of the model of a study, by the terms in its notes."""
    if not isinstance(terms, str):
        return {}
    from hardthresh.study import Terms

    try:
        attributes = Terms.parse(terms).attributes
    except InvalidInputError:  # of another version
        return {}
    codes: dict[str, str] = {}
    for attribute in attributes:
        levels = ("no", "yes") if attribute.kind == "yes/no" else attribute.levels
        if attribute.kind == "category":
            codes |= dict.fromkeys(attribute.columns, "1 if it is that level, else 0")
        elif levels:
            codes[attribute.name] = ", ".join(f"{code} {level}" for code, level in enumerate(levels))
        elif attribute.unit:
            codes[attribute.name] = f"in {attribute.unit}"
    return codes


@dataclass
class Written:
    """The predictions that were written.

    Attributes
    ----------
    rows : int
        The number of predictions.
    said : set of str
        The warnings that were printed, each of them once.
    """

    rows: int = 0
    said: set[str] = field(default_factory=set)

    def tables(
        self, model: Any, parts: Iterable[Data], used: Sequence[int], only: Sequence[str] | None
    ) -> Iterator[Columns]:
        """Yield the predictions for some rows after the other: the columns of each part, with their names.

        Raises
        ------
        InvalidInputError
            If there is no part, as the types of the columns of a Parquet file are unknown then.
        """
        empty = True
        for part in parts:
            ids = [] if part.ids is None else [(part.id_name, part.ids)]
            yield [*ids, *self._predictions(model, _columns(model, part, only, used), part.offset)]
            self.rows += part.X.shape[0]
            empty = False
        if empty:
            raise InvalidInputError("there are no rows to predict")

    def _predictions(self, model: Any, X: Any, offset: Any) -> Columns:
        """Return the columns of predictions with their names; print each warning as one line to standard error."""
        from hardthresh.estimators.choice_facts import output_names

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", message="X does not have valid feature names")  # they were matched above
            warnings.filterwarnings("ignore", message=".* was fitted with an offset")  # said by the caller
            last = model[-1] if hasattr(model, "steps") else model
            if offset is not None and "offset" not in signature(last.predict).parameters:
                raise InvalidInputError(f"{type(last).__name__} predicts without an offset; leave --offset out")
            further = {} if offset is None else {"offset": offset}
            predictions = np.asarray(model.predict(X, **further))
            classes = model.classes_.tolist() if hasattr(model, "predict_proba") else []
            probabilities = model.predict_proba(X, **further).T if classes else []
        for warning in {str(warning.message).replace("predict_proba", "predict"): None for warning in caught}:
            if warning not in self.said:
                write_stderr(f"warning: {warning}")
            self.said.add(warning)
        first = 1 if len(classes) == 2 else 0  # the probability of the other class is 1 less this one
        names = ["prediction", *(f"probability of {label}" for label in classes[first:])]
        if predictions.ndim == 2:
            names = [f"prediction of {name}" for name in output_names(last)]
        return [*zip(names, [*np.atleast_2d(predictions.T), *probabilities[first:]], strict=True)]


def _columns(model: Any, rows: Data, only: Sequence[str] | None, used: Sequence[int]) -> Any:
    """Return the rows as a sparse matrix of the model's width that holds only the columns it uses.

    Of a model of categorical columns it is a data frame, and of a pipeline a dense array; other columns are 0.
    """
    from scipy.sparse import coo_array, csr_array

    first = model[0] if hasattr(model, "steps") else model
    if only is not None and (hasattr(first, "encoding_") or hasattr(first, "transformers")):
        polars: Any = import_module("polars")
        names = [str(name) for name in model.feature_names_in_]
        frame = rows.X if hasattr(rows.X, "columns") else polars.DataFrame(rows.X, schema=list(only))
        others = {name: polars.lit(0.0) for name in names if name not in only}
        return frame.with_columns(**others).select(names)

    wide, support = model.n_features_in_, np.asarray(used, dtype=np.intp)
    if only is not None and rows.names is not None:
        X = rows.X
    else:
        d = rows.X.shape[1]
        if d != wide and not (rows.ragged and d > max(support, default=-1)):
            raise InvalidInputError(
                f"{rows.source} has {d:,} feature columns; the model was fitted on {wide:,} and matches them by "
                "position: leave out other columns with --drop"
            )
        if only is not None:
            write_stderr(f"note: {rows.source} has no column names; its columns are matched by position")
        X = rows.X[:, support]
    if hasattr(model, "steps"):
        filled = np.zeros((X.shape[0], wide))
        filled[:, support] = X
        return filled
    entries = coo_array(csr_array(X))
    return csr_array((entries.data, (entries.row, support[entries.col])), shape=(X.shape[0], wide))
