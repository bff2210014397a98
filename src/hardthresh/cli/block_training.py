"""What `fit` does with a table in blocks: its target, where it is worked on, and how its number of features is set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import CapabilityError, InvalidInputError
from hardthresh.core.memory import free_memory
from hardthresh.estimators.block_posing import MOST_OF_CLASSES

from .blocks import blocks_of
from .data import Data, Request
from .databases import Server
from .options import names_of
from .settings import own_settings
from .task import Task, models, refuse_classes, refuse_offset, takes_many_classes, task_of
from .terminal import write_stderr
from .training import Training

if TYPE_CHECKING:
    from hardthresh.designs import Engine, RowBlocks

_SHARE = 0.5
"""Of the free memory, for a file that is read as a whole: it is copied once, as an array and as a standardised part."""

_LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
"""A cluster of this machine that nobody else reaches; without an address its server wants port 8787, and warns."""

Closer = Callable[[Callable[[], object]], object]
"""Called with what is to be done when the command ends."""


def read_block_training(data: Path | Server, options: Mapping[str, Any], close: Closer, *, quiet: bool) -> Training:
    """Return a table in blocks that a model is to be fitted to, of which a few blocks are read.

    Parameters
    ----------
    data : Path or Server
        The file or folder; a server is refused.
    options : mapping
        The options of ``hardthresh fit``, by the names of its parameters; see `hardthresh.cli.blocks.check_blocks`.
    close : callable
        Called with what ends the connection to a cluster.
    quiet : bool
        Whether to leave out the notes about the target.

    Raises
    ------
    InvalidInputError
        For rows that do not go with the options.
    """
    if isinstance(data, Server):
        raise InvalidInputError(f"{data} is a database: write the rows of the query to a Parquet file first")
    targets = tuple(options["target"] or ())
    request = Request(
        target=targets[0] if targets else None,
        outputs=targets[1:],
        **{role: options[role] for role in ("weight", "offset", "fold", "x_key")},
        drop=[*names_of(options["drop"]), *([options["row_id"]] if options["row_id"] else [])],
    )
    blocks = blocks_of(data, request, options["file_format"])
    engine = engine_on(blocks, options["dask"], close, quiet=quiet)
    table = Data(
        source=str(data),
        X=blocks,
        names=blocks.feature_names,
        target_name=", ".join(targets) or "y",
        offset_name=request.offset or "",
        outputs=targets if len(targets) > 1 else (),
    )
    task = _task(engine, table, options)
    _check_classes(table, task)
    for remark in () if quiet else task.remarks:
        write_stderr(f"note: {remark}")
    return Training(table, task, engine=engine)


def engine_on(blocks: RowBlocks, address: str | None, close: Closer, *, quiet: bool = False) -> Engine:
    """Return what reads a table: this process, or the workers of a Dask cluster.

    Parameters
    ----------
    blocks : RowBlocks
        Files that all workers can read under the same path.
    address : str or None
        Of the scheduler, such as "tcp://10.0.0.1:8786"; "local" starts workers on this machine; None stays here.
    close : callable
        Called with what ends the connection.
    quiet : bool
        Whether to leave out the note that it connects.

    Raises
    ------
    MissingDependencyError
        Without the package distributed.
    InvalidInputError
        If no scheduler answers.
    """
    from hardthresh.designs import DaskEngine, Serial
    from hardthresh.designs.cluster import patience, require_distributed

    if address is None:
        return Serial(blocks)
    distributed = require_distributed()
    try:
        where = _LOCAL if address == "local" else {"address": address}
        if address != "local" and not quiet:
            write_stderr(f"note: connecting to {address}, for at most {patience():.0f} seconds")
        client = distributed.Client(**where, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"--dask {address}: no scheduler of Dask answers ({error})") from error
    close(client.close)
    return DaskEngine(blocks, client)


def _task(engine: Engine, table: Data, options: Mapping[str, Any]) -> Task:
    """Return what the target is, by some rows: numbers, or classes, which the fit counts itself."""
    from hardthresh.objectives.guess import some_rows

    rows = some_rows(engine)
    if rows.y is None:
        raise InvalidInputError(f"add --target, what to predict; {table.source} has no y of its own")
    y, loss = np.asarray(rows.y), options["loss"]
    if y.ndim == 2:
        names = table.outputs or tuple(f"output {number}" for number in range(y.shape[1]))
        return task_of(replace(table, target=y if y.dtype.kind in "fiub" else y.astype(str), outputs=names), loss, None)
    if loss != "auto":
        some_numbers = np.array([1.0, 2.0])  # those of the table are checked where they are read
        task_of(replace(table, target=some_numbers), loss, None, classes=options["classes"])
        if y.dtype.kind not in "fiub" and not models()[loss, False]._loss_type().classifies:
            task_of(replace(table, target=y.astype(str)), loss, None)
        return Task(y, loss, {})
    if np.unique(y).size == 1:
        raise InvalidInputError(
            f"the target {table.target_name!r} has only one value, {str(y[0])!r}, in the {len(y):,} rows that were "
            "looked at; if it has others elsewhere, add --loss logistic for classes, or --loss squared for numbers"
        )
    sample = replace(table, target=y, weight=rows.weight)
    return replace(task_of(sample, loss, None, classes=options["classes"]), counts={})


_ONE_CLASS = "write a column that is 1 for one class and 0 for the others, and predict that"


def _check_classes(table: Data, task: Task) -> None:
    """Check that a model takes the classes in some rows, and an offset beside them or beside several outputs."""
    classifies = models()[task.loss, False]._loss_type().classifies
    labels = np.unique(task.y) if classifies and task.y.ndim == 1 else np.empty(0)
    more = labels.size if labels.size > 2 else 0
    if more and not takes_many_classes(task.loss):
        refuse_classes(table.target_name, [str(label) for label in labels.tolist()], task.loss, _ONE_CLASS)
    if table.offset_name and (more or task.outputs):
        refuse_offset(more, _ONE_CLASS)


def without_folds(
    k: int | list[int] | str,
    given: Sequence[str],
    options: Mapping[str, Any],
    task: Task,
    settings: Mapping[str, Any],
    n_columns: int,
) -> str | None:
    """Return why no numbers of features are compared on held-out rows of a table in blocks; None if they are.

    They are if an option asks for it, and by default where that is possible over blocks, as for rows in memory.

    Parameters
    ----------
    k : int, list of int or str
        What ``--k`` asks for.
    given : sequence of str
        The options about folds that are on the command line, by their names in `fit`, and "ebic_gamma".
    options : mapping
        All options of ``hardthresh fit``, by the names of its parameters.
    task : Task
        What is predicted.
    settings : mapping
        The parameters of the estimator.
    n_columns : int
        The number of columns.

    Returns
    -------
    str or None
        For a note, what of the model has no folds; empty if an option asks for none.
    """
    if isinstance(k, list) or options["fold"] is not None or any(name != "ebic_gamma" for name in given):
        return None
    if isinstance(k, int) or options["criterion"] != "cv":
        return ""
    if n_columns > MOST_OF_CLASSES and task.loss == "logistic" and np.unique(task.y).size > 2:
        return f"more than two classes with {n_columns:,} columns"
    model = models()[task.loss, True]()
    model.set_params(**{name: settings[name] for name in own_settings()[task.loss] if name in settings})
    nuisance = model._nuisance() if model._takes_blocks else None  # others are refused by the fit
    return None if nuisance is None else f"a model that estimates {nuisance.setting}"


def choice_over_blocks(
    k: int | list[int] | str, ridge: float | list[float] | str, options: Mapping[str, Any], why: str, *, quiet: bool
) -> dict[str, Any]:
    """Return the settings of a model without folds over blocks: how its number of features is set, and its ridge.

    Parameters
    ----------
    k : int, list of int or str
        The number, or "auto" or "search"; several are compared on held-out rows, not here.
    ridge : float, list of float or str
        The ridge; several are refused.
    options : mapping
        The options of ``hardthresh fit``, by the names of its parameters.
    why : str
        What of the model has no folds, see `without_folds`.
    quiet : bool
        Whether to leave out the note about the criterion.
    """
    if isinstance(ridge, list):
        raise InvalidInputError(
            "several ridges are compared on held-out rows alone over blocks: "
            + (f"of {why} give one" if why else "add --cv 5, or give one")
        )
    own: dict[str, Any] = {} if ridge == "auto" else {"alpha": ridge}
    if isinstance(k, int):
        return own
    criterion = "ebic" if options["criterion"] == "cv" else options["criterion"]
    if options["criterion"] == "cv" and not quiet:
        write_stderr(f"note: over blocks --criterion {criterion} chooses the number of features of {why}")
    names = {"max_nonzero_coefs": "max_k", "ebic_gamma": "ebic_gamma", "n_features_original": "n_features_original"}
    return own | {"criterion": criterion} | {name: options[option] for name, option in names.items()}


def scores_over_blocks(model: Any, engine: Engine) -> dict[str, float]:
    """Return how well a model fits its table, by one reading of the chosen columns or two.

    The names are those of the scores of fits to rows in memory.
    """
    found, scores = model._score_blocks(engine, None, None, None), {}
    with suppress(CapabilityError):  # the best constant beside an offset
        scores["r2" if model._loss.quadratic else "d2"] = float(found.removed)
    return scores | ({"accuracy": float(found.right)} if model._loss.classifies else {})


def hint_of_size(data: Path | Server, kind: str | None, *, quiet: bool) -> None:
    """Say that a file is large for the memory that is free, and what reads it in parts."""
    if quiet or isinstance(data, Server) or not data.is_file():
        return
    from hardthresh.designs.formats.kinds import KINDS, kind_of

    size, free = os.stat(data).st_size, free_memory()
    if size <= _SHARE * free:
        return
    kind = kind_of(data) if kind is None else kind
    how = "--blocks reads it in parts" if kind in KINDS else "written as Parquet, --blocks reads it in parts"
    write_stderr(f"note: {data} has {size / 1e9:.3g} GB, and {free / 1e9:.3g} GB of memory are free; {how}")
