"""A saved model with the rows that it was fitted to, which are read as `fit` read them."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from hardthresh.core.errors import InvalidInputError, plural

from .block_training import read_block_training
from .blocks import check_blocks
from .databases import Server
from .learning import parameters_of_fit
from .terminal import write_stderr
from .training import read_training

# the base class of all errors of the command-line parser: BadParameter, UsageError, then this one
PARSER_ERROR: Any = typer.BadParameter.__mro__[2]


@dataclass(frozen=True, slots=True, eq=False)
class ModelWithRows:
    """A saved model with rows such as it was fitted to, to ask the model about them.

    Attributes
    ----------
    model : fitted estimator
        The model, without the step that fills in missing values.
    X, y : array
        The rows as the model takes them; X the engine of a table in blocks, which have the targets.
    more : dict from str to array
        Their weights, offset and strata.
    """

    model: Any
    X: Any
    y: np.ndarray | None
    more: dict[str, np.ndarray]

    def ask(self, method: str, **settings: Any) -> Any:
        """Return what a method of the model says about the rows."""
        with _matched_by_position():
            return getattr(self.model, method)(self.X, self.y, **self.more, **settings)


@contextmanager
def _matched_by_position() -> Iterator[None]:
    """Leave out scikit-learn's warning that a table has no names: its columns were put in the order of the model's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def training_of(ctx: typer.Context, model: Path, data: Path | Server) -> ModelWithRows:
    """Return a model that `fit` saved, with the rows of a file that are read as `fit` read those of the model.

    Parameters
    ----------
    ctx : typer.Context
        The context of the command, which knows the command `fit`.
    model : Path
        The file.
    data : Path or Server
        The rows.

    Raises
    ------
    InvalidInputError
        If `fit` did not write the model, or the rows do not go with it.
    """
    from hardthresh.storage import load, load_notes

    fitted, notes = load(model), load_notes(model)
    imputer, last = (fitted[0], fitted[-1]) if hasattr(fitted, "steps") else (None, fitted)
    if not hasattr(last, "support_"):
        raise InvalidInputError(f"{model} does not hold a fitted model, but {fitted!r}")
    options = _options_of_fit(ctx, model, notes.get("command", ""))
    if check_blocks(options):
        return ModelWithRows(last, read_block_training(data, options, ctx.call_on_close, quiet=True).engine, None, {})
    found = read_training(data, options, quiet=True, impute=False)
    table, task = found.table, found.task
    n = notes.get("data", {}).get("n", table.X.shape[0])
    if n != table.X.shape[0]:
        write_stderr(
            f"warning: the model was fitted to {plural(n, 'row')}, and {data} has {table.X.shape[0]:,}; this is about "
            "the latter"
        )
    names = getattr(fitted if imputer is None else imputer, "feature_names_in_", None)
    if names is not None and table.names is not None and table.names != tuple(map(str, names)):
        table = table.chosen([table.position(str(name)) for name in names])
    y = np.asarray(task.order)[task.y] if task.order else task.y
    with _matched_by_position():
        X = table.X if imputer is None else imputer.transform(table.X)
    return ModelWithRows(last, X, y, parameters_of_fit(table))


def _options_of_fit(ctx: typer.Context, model: Path, command: str) -> dict[str, Any]:
    """Return the options with which `fit` made a model, from the command line that was saved with it."""
    words = shlex.split(command)
    if words[1:2] != ["fit"] or ctx.parent is None:
        raise InvalidInputError(
            f"{model} was not written by hardthresh fit --out, so its target is not known; ask the model in Python, "
            "with its rows"
        )
    group: Any = ctx.parent.command
    try:
        options: dict[str, Any] = group.get_command(ctx.parent, "fit").make_context("fit", words[2:]).params
    except PARSER_ERROR as error:
        raise InvalidInputError(f"{model} was written by another version of fit: {error.format_message()}") from error
    return options
