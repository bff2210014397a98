"""The rows that a model is fitted to, as the options of `fit` say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .data import Data, Request
from .databases import Server
from .imputing import imputed
from .options import names_of
from .reading import read
from .task import Task, check_offset, ordered, task_of
from .terminal import write_stderr


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows that a model is fitted to.

    Attributes
    ----------
    table : Data
        The table.
    task : Task
        Its target.
    imputer : object
        What filled in missing values of the table; None without.
    engine : Engine or None
        Of a table in blocks, where they are worked on.
    """

    table: Data
    task: Task
    imputer: Any = None
    engine: Any = None


def read_training(data: Path | Server, options: Mapping[str, Any], *, quiet: bool, impute: bool = True) -> Training:
    """Read the rows that a model is to be fitted to.

    Parameters
    ----------
    data : Path or Server
        The file, or the address of the database.
    options : mapping
        The options of ``hardthresh fit``, by the names of its parameters.
    quiet : bool
        Whether to leave out the notes about the table and the target.
    impute : bool
        Whether to fill in missing values, where the options ask for it; else they stay missing.

    Raises
    ------
    InvalidInputError
        For rows that do not go with the options.
    """
    target, order, loss = options["target"], options["order"], options["loss"]
    request = Request(
        target=target[0] if target else None,
        outputs=target[1:] if target else (),
        **{role: options[role] for role in ("weight", "offset", "exposure", "time", "event", "strata", "x_key", "sql")},
        id=options["row_id"],
        drop=names_of(options["drop"]),
        categorical=names_of(options["categorical"]),
        may_be_missing=options["impute"],
        phenotypes=options.get("phenotypes"),  # of `fit` alone
        covariates=names_of(options.get("covariates")),
    )
    if loss == "auto" and (options["time"] is not None or order is not None):
        loss = "cox" if options["time"] is not None else "ordinal"
    table = ordered(read(data, request, options["file_format"]), names_of(order))
    task = task_of(table, loss, options["positive_class"], classes=options["classes"])
    check_offset(table, task)
    for remark in () if quiet else (*table.remarks, *task.remarks):
        write_stderr(f"note: {remark}")
    if impute and options["impute"]:
        table, imputer = imputed(table)
        return Training(table, task, imputer)
    return Training(table, task)
