"""``hardthresh predict``: predictions of a saved model for new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.files import write_file

from .options import check_output, names_of
from .terminal import write_stderr, write_stdout

if TYPE_CHECKING:
    from .data import Data


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file that fit wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="New rows, in any format that fit reads.")],
    out: Annotated[Path | None, typer.Option(help="CSV file to write. Default: standard output.")] = None,
    offset: Annotated[str | None, typer.Option(help="The column with a known part of the prediction.")] = None,
    exposure: Annotated[str | None, typer.Option(help="The column with the exposure of counts.")] = None,
    row_id: Annotated[str | None, typer.Option("--id", help="Column to copy to the front of the output.")] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, if the model has no feature names.")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, parquet, feather, npz, npy or libsvm.")
    ] = None,
    x_key: Annotated[str | None, typer.Option(help="NPZ: the name of the matrix.")] = None,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Do not escape texts that spreadsheets run as formulas.")
    ] = False,
) -> None:
    """Predict with a saved model: a number for each row, or its class with a probability.

    Columns are matched by name, in any order; only the features that the model uses are required. Rows keep their
    order. --id copies a column to the output; a first column without a name is copied automatically.

    A text that a spreadsheet would run as a formula, such as =1+1, gets a ' in front.
    """
    from hardthresh.storage import load, load_notes

    from .data import Request
    from .imputing import columns_read
    from .reading import read
    from .spreadsheet import csv_text

    check_output(out, "--out", ".csv", {"the file of data": data, "the model": model})
    if offset is not None and exposure is not None:
        raise InvalidInputError("--offset and --exposure are the same on another scale; leave one of them out")
    fitted = load(model)
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    if not (hasattr(last, "support_") and hasattr(last, "predict")):
        raise InvalidInputError(f"{model} does not hold a fitted model, but {fitted!r}")
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
    )
    rows = read(data, request, file_format)
    for remark in rows.remarks:
        write_stderr(f"note: {remark}")
    if rows.offset is None and getattr(last, "offset_used_", False):
        known = load_notes(model).get("data", {})  # not in files of the library or of earlier versions
        option = "exposure" if "exposure" in known else "offset"
        which = f"the {option} {known[option]!r}" if option in known else "an offset"
        write_stderr(f"warning: the model was fitted with {which}, which these predictions leave out; add --{option}")
    table = _predictions(fitted, _columns(fitted, rows, only, used), rows.offset)
    if rows.ids is not None:
        table = [(name, *row) for name, row in zip([rows.id_name, *rows.ids], table, strict=True)]
    text = csv_text(table, verbatim=verbatim)
    if out is None:
        write_stdout(text)
    else:
        write_file(out, text.encode(errors="replace"))
        write_stderr(f"{rows.X.shape[0]:,} predictions written to {out}")


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


def _predictions(model: Any, X: Any, offset: Any) -> Iterable[Sequence[object]]:
    """Return the table of predictions with its header; print each warning as one line to standard error."""
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
        probabilities = model.predict_proba(X, **further).T.tolist() if classes else []
    for warning in {str(warning.message).replace("predict_proba", "predict"): None for warning in caught}:
        write_stderr(f"warning: {warning}")
    first = 1 if len(classes) == 2 else 0  # the probability of the other class is 1 less this one
    head = ["prediction", *(f"probability of {label}" for label in classes[first:])]
    if predictions.ndim == 2:
        head = [f"prediction of {name}" for name in output_names(last)]
    columns = np.atleast_2d(predictions.T).tolist()
    return [head, *zip(*columns, *probabilities[first:], strict=True)]
