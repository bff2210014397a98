"""From a table to a fitted model with its notes: what `fit` and `demo` have in common."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hardthresh.core.errors import HardThreshError, InvalidInputError, plural
from hardthresh.designs.reading_log import logged_readings

from .block_training import scores_over_blocks
from .data import Data, suggestion
from .genotypes import means_of_chosen
from .imputing import described
from .task import Task, models
from .terminal import Terminal
from .training import Training


def folds_of(task: Task, cv: int, seed: int) -> Any:
    """Return a splitter that shuffles the rows, which are often ordered in files, and stratifies classes and events.

    Raises
    ------
    InvalidInputError
        If there are fewer rows, rows of a class, or events, than folds.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    timed = task.y.ndim == 2 and not task.outputs
    groups = task.counts or {"": int(task.y[:, 1].sum()) if timed else len(task.y)}
    label, fewest = min(groups.items(), key=lambda item: item[1])
    if fewest < cv:
        rows = plural(fewest, "event" if timed else "row")
        which = f"the class {label!r} has {rows}" if task.counts else f"the table has {rows}"
        raise InvalidInputError(f"{which}, too few for {cv} folds; use fewer with --cv; one number with --k needs none")
    return (StratifiedKFold if task.counts or timed else KFold)(cv, shuffle=True, random_state=seed)


def check_scoring(scoring: str | None) -> str | None:
    """Return the name of a scorer, if scikit-learn knows it.

    Raises
    ------
    InvalidInputError
        If it does not, with names that are close.
    """
    from sklearn.metrics import get_scorer_names

    if scoring is not None and scoring not in get_scorer_names():
        raise InvalidInputError(f"scikit-learn has no scorer {scoring!r}; {suggestion(scoring, get_scorer_names())}")
    return scoring


def learn(
    training: Training, settings: dict[str, Any], *, validated: bool, command: str, quiet: bool
) -> tuple[Any, dict[str, Any]]:
    """Fit a model.

    Parameters
    ----------
    training : Training
        The rows: in memory, or in blocks, whose readings are shown and noted.
    settings : dict
        Parameters of the estimator.
    validated : bool
        Whether the estimator is the one that chooses the number of features.
    command : str
        The command line, for the notes.
    quiet : bool
        Show no progress.

    Returns
    -------
    model : fitted estimator
        With its certificate; with an imputer, the pipeline of both.
    notes : dict
        Notes kept with the model: the command, the data in a few words, the seconds, and of a table in blocks what was
        read.
    """
    from sklearn.pipeline import Pipeline

    table, task, imputer, engine = training.table, training.task, training.imputer, training.engine
    loud = sys.stderr.isatty() and not quiet
    model = model_of(table, task, settings, validated=validated, verbose=loud and engine is None)
    began = perf_counter()
    with logged_readings(show=loud) as log:
        if engine is None:
            model.fit(table.X, task.y, **parameters_of_fit(table))
        else:
            model.fit(engine)
        seconds = perf_counter() - began
        finished(model, table, task, named=imputer is None)
        scores = {} if hasattr(model, "scores_") else _scores_of_fit(model, engine)
        model.certificate()
    fitted = model if imputer is None else Pipeline([("impute", imputer), ("model", model)])
    data = data_of(table, task)
    if means := means_of_chosen(model, table.X):
        data["means"] = means
    notes = {"command": command, "data": data, "seconds": seconds, "scores": scores}
    return fitted, notes if engine is None else notes | {"read": str(log)}


def _scores_of_fit(model: Any, engine: Any) -> dict[str, float]:
    """Return how well a model fits its own rows."""
    if engine is not None:
        return scores_over_blocks(model, engine)
    problem, result = model._untouched_training()
    found: dict[str, float] = model._fit_scores(problem, problem.objective.evaluate(result.w))
    return found


def model_of(table: Data, task: Task, settings: dict[str, Any], *, validated: bool, verbose: bool) -> Any:
    """Return the estimator of a task, not fitted; `settings` are its parameters."""
    kind: Any = models()[task.loss, validated]
    if "fit_intercept" not in signature(kind).parameters and not settings.pop("fit_intercept"):
        raise InvalidInputError(f"the model of the {task.loss} loss has no intercept; leave --no-intercept out")
    model = kind(**settings, verbose=verbose)
    model._names_in_messages = table.names  # the estimator gets a bare matrix
    return model


def parameters_of_fit(table: Data) -> dict[str, Any]:
    """Return what `fit` takes besides X and y."""
    given = {"sample_weight": table.weight, "offset": table.offset, "strata": table.strata}
    return {name: values for name, values in given.items() if values is not None}


def finished(model: Any, table: Data, task: Task, *, named: bool) -> None:
    """Give a fitted model the labels of its classes and outputs and, if they are to be `named`, of its columns."""
    if task.order:
        model.classes_ = np.asarray(task.order)[model.classes_]
    model.set_params(verbose=False)
    if table.names is not None and named:  # what scikit-learn does for data frames; a sparse matrix has no names
        model.feature_names_in_ = np.asarray(table.names, dtype=object)
    if task.outputs:
        model.output_names_ = np.asarray(task.outputs, dtype=object)


def data_of(table: Data, task: Task) -> dict[str, Any]:
    """Return the data in a few words, for notes and reports."""
    n, d = table.X.shape
    dtype = getattr(table.X, "dtype", np.dtype(np.float64))
    data = {"source": Path(table.source).name, "target": table.target_name, "n": n, "d": d, "dtype": str(dtype)}
    data |= {"outputs": list(task.outputs)} if task.outputs else {}
    data |= {"missing": table.missing} | ({"classes": task.counts} if task.counts else {})
    if table.offset is not None:
        data |= {"exposure" if table.exposed else "offset": table.offset_name}
    data |= {} if table.strata is None else {"strata": table.strata_name}
    return data


def finish(model: Any, notes: dict[str, Any], *, out: Path | None, report: Path | None, quiet: bool) -> None:
    """Save a fitted model, write its report, and print it.

    In this order, since standard output may be closed or full. Each step is tried even if another one fails, since a
    fit may have taken hours.

    Raises
    ------
    HardThreshError
        If files cannot be written; the message names them with the reason.
    """
    failures, written = [], []
    for what, write, path in (("Model", _save, out), ("Report", _report, report)):
        if path is not None:
            try:
                write(model, notes, path)
            except OSError as error:
                failures.append(f"{error.filename or path}: {error.strerror}")
            except HardThreshError as error:
                failures.append(str(error))
            else:
                written.append(f"{what}: {path}")
    try:
        if not quiet:
            _print(model, notes, written)
    finally:
        if failures:
            raise HardThreshError("; ".join(failures))


def _save(model: Any, notes: dict[str, Any], path: Path) -> None:
    from hardthresh.storage import save

    save(model, path, notes=notes)


def _report(model: Any, notes: dict[str, Any], path: Path) -> None:
    from hardthresh.report import write_report

    write_report(described(model), path, data_summary=notes["data"], command=notes["command"])


def _print(model: Any, notes: dict[str, Any], written: Sequence[str]) -> None:
    from .display import print_model

    console = Terminal()
    print_model(console, described(model), notes)
    for line in written:
        console.print(line, markup=False)
