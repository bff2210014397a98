"""The kind of a target: numbers, classes, ordered classes or times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError, plural
from hardthresh.core.numbers import is_number

from .data import Data, listed, several_with_text

if TYPE_CHECKING:
    from hardthresh.estimators.linear.model import SparseLinearModel

FEW = 20  # whole numbers that may be classes


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A target with its loss: a regression or a classification.

    Attributes
    ----------
    y : ndarray of shape (n,), or (n, 2), or (n, n_outputs)
        The target: numbers for a regression, labels for a classification, times and events, or several outputs.
    loss : str
        The loss to minimise, by its name in the registry.
    counts : dict
        The number of rows of each class; empty for a regression.
    remarks : tuple of str
        Remarks for the reader on how the target was understood.
    order : tuple of str
        The labels of ordered classes, whose places the target holds; empty for a target of labels or numbers.
    outputs : tuple of str
        The names of several outputs; empty for one.
    """

    y: np.ndarray
    loss: str
    counts: dict[str, int]
    remarks: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def models() -> dict[tuple[str, bool], type[SparseLinearModel]]:
    """Return the registered sparse models, by the name of their loss and whether they choose k by cross-validation."""
    from hardthresh.core.registry import registered
    from hardthresh.estimators.linear.cross_validation import SparseLinearModelCV
    from hardthresh.estimators.linear.model import SparseLinearModel

    names = {entry.cls: name for name, entry in registered("loss").items()}
    sparse = [entry.cls for entry in registered("estimator").values() if issubclass(entry.cls, SparseLinearModel)]
    return {(names[model._loss_type], issubclass(model, SparseLinearModelCV)): model for model in sparse}


def takes_many_classes(loss: str) -> bool:
    """Return whether the model of a loss takes more than two classes."""
    return bool(models()[loss, False]().__sklearn_tags__().classifier_tags.multi_class)


def task_of(table: Data, loss: str, positive_class: str | None, *, classes: bool = False) -> Task:
    """Decide whether a target is a number or a class.

    Parameters
    ----------
    table : Data
        With a target.
    loss : str
        A loss by name, or "auto": logistic for texts, and for two distinct values that are truths or whole numbers,
        else squared.
    positive_class : str or None
        Learn this class against all others.
    classes : bool
        Whether numbers are classes, too.

    Raises
    ------
    InvalidInputError
        If the target has one value only, has texts that cannot be a number, or more classes than the model takes.
    """
    assert table.target is not None
    y, name = table.target, table.target_name
    losses = {name: model._loss_type() for (name, _), model in models().items()}
    checked_word("--loss", loss, ("auto", *losses))
    if table.outputs:
        return _several(table, loss)
    if y.ndim == 2:
        return Task(y, loss, {})
    if table.order:
        place = {label: number for number, label in enumerate(table.order)}
        numbers, counts = np.array([place[label] for label in y.tolist()]), _counts(y)
        return Task(numbers, loss, {label: counts[label] for label in table.order}, order=table.order)
    if loss == "ordinal" and y.dtype.kind == "U":
        raise InvalidInputError(
            f"the classes of the target {name!r} are texts ({listed(np.unique(y).tolist(), 3)}); give their order with "
            "--order, from low to high"
        )
    if classes and loss != "auto" and not losses[loss].classifies:
        raise InvalidInputError(f"--classes is for classes; the {loss} loss is for numbers, leave one out")
    loss = "logistic" if classes and loss == "auto" else loss
    if y.dtype.kind == "f" and len(y) and (y == np.floor(y)).all() and np.abs(y).max() < 2**53:
        y = y.astype(np.int64)  # labels 0 and 1, not 0.0 and 1.0
    values = np.unique(y)
    labels = [str(value) for value in values.tolist()]
    if len(values) == 1:
        raise InvalidInputError(f"the target {name!r} has only one value, {labels[0]!r}; there is nothing to predict")
    if positive_class is not None:
        if loss != "auto" and not losses[loss].classifies:
            raise InvalidInputError(f"--positive-class is for classes; the {loss} loss is for numbers, leave one out")
        return _one_against_rest(y, name, labels, positive_class, "logistic" if loss == "auto" else loss)
    if y.dtype.kind == "U" and len(values) > 2:
        _check_stray_text(y, name)
    amounts = y.dtype.kind == "f" or (len(values) > 2 and y.dtype.kind != "U")
    if amounts if loss == "auto" else not losses[loss].classifies:
        if y.dtype.kind == "U":
            raise InvalidInputError(
                f"the target {name!r} holds texts ({listed(labels, 3)}); use --loss logistic for classes"
            )
        if loss == "auto":
            return Task(y.astype(np.float64), "squared", {}, _remarks(y, name, labels))
        outside = ~losses[loss].in_domain(y) & (True if table.weight is None else table.weight > 0)
        for row in np.flatnonzero(outside)[:1].tolist():
            raise InvalidInputError(
                f"--loss {loss} needs {losses[loss].domain}, but the target {name!r} is {y[row]} in row {row + 1}"
            )
        return Task(y.astype(np.float64), loss, {})
    if len(values) > (2 if y.dtype.kind == "f" else FEW) and y.dtype.kind != "U" and not classes:
        raise InvalidInputError(
            f"the target {name!r} holds amounts ({len(values):,} different numbers); use --loss squared, or --classes"
        )
    loss = "logistic" if loss == "auto" else loss
    if len(values) > 2 and not takes_many_classes(loss):
        refuse_classes(name, labels, loss, "add --positive-class VALUE to fit one against the rest")
    if y.dtype.kind == "f":
        y = np.asarray([str(value) for value in y.tolist()])  # a class has a label; only whole numbers are ones
    return Task(y, loss, _counts(y))


def _several(table: Data, loss: str) -> Task:
    """Return the regression of several outputs."""
    assert table.target is not None
    takes = [name for (name, _), model in models().items() if model._takes_outputs]
    loss = "squared" if loss == "auto" else loss
    if loss not in takes:
        raise InvalidInputError(f"several targets are for --loss {' or '.join(dict.fromkeys(takes))}, not for {loss}")
    if table.target.dtype.kind == "U":
        raise InvalidInputError(several_with_text(table.target[:, 0], table.outputs[0]))
    return Task(table.target.astype(np.float64), loss, {}, outputs=table.outputs)


def ordered(table: Data, order: Sequence[str]) -> Data:
    """Return a table whose target has the classes in an order, from low to high; without one, the table as it is.

    Raises
    ------
    InvalidInputError
        For a class that is not in the order, or not in the target.
    """
    if not order:
        return table
    assert table.target is not None
    labels = np.asarray([str(value) for value in table.target.tolist()])
    missing = [label for label in np.unique(labels).tolist() if label not in order]
    unused = [label for label in order if label not in labels]
    if missing or unused:
        which = f"lacks the class {missing[0]!r}" if missing else f"has {unused[0]!r}, which is no class"
        raise InvalidInputError(f"--order {which} of the target {table.target_name!r}")
    return replace(table, target=labels, order=tuple(order))


def check_offset(table: Data, task: Task) -> None:
    """Check that an exposure is given for a model of a logarithm, and an offset for one linear predictor of a row.

    Raises
    ------
    InvalidInputError
        If not.
    """
    several = len(task.counts) > 2 and not task.order and takes_many_classes(task.loss)
    if table.offset is not None and (several or task.outputs):
        refuse_offset(len(task.counts) if several else 0, "add --positive-class VALUE to fit one against the rest")
    mean = getattr(models()[task.loss, False]()._loss, "mean", None)
    if table.exposed and (mean is None or not np.allclose(mean(np.array([0.0, 1.0])), [1.0, np.e])):
        raise InvalidInputError(
            f"--exposure is for the logarithm of an expected amount, as --loss poisson has it, not for the {task.loss} "
            "loss; use --offset"
        )


def refuse_offset(n_classes: int, instead: str) -> NoReturn:
    """Raise an error about an offset beside several classes, with what to do instead, or beside several outputs, 0."""
    what, other = (f"{n_classes} classes", f", or {instead}") if n_classes else ("several outputs", "")
    raise InvalidInputError(
        f"a model of {what} has a linear predictor for each of them, and --offset is one number for each row: leave "
        f"--offset out{other}"
    )


def refuse_classes(name: str, labels: Sequence[str], loss: str, instead: str) -> NoReturn:
    """Raise an error about more than two classes of a model that takes two, with what to do instead."""
    raise InvalidInputError(
        f"the target {name!r} has {plural(len(labels), 'class')} ({listed(labels, 4)}), and the model of the {loss} "
        f"loss takes two: {instead}"
    )


def _remarks(y: np.ndarray, name: str, labels: list[str]) -> tuple[str, ...]:
    """Return a remark about numbers that are treated as amounts but could be classes or counts."""
    what, advice = "", []
    if y.dtype.kind == "f" and len(labels) == 2:
        what, advice = f"the numbers {' and '.join(labels)}", ["for classes, add --loss logistic"]
    elif y.dtype.kind in "iu":
        what = f"the {len(labels)} whole numbers" if len(labels) <= FEW else "the whole numbers"
        option = "--classes" if takes_many_classes("logistic") else "--positive-class VALUE"
        advice += [f"for classes, add {option}"] if len(labels) <= FEW else []
        advice += ["for counts, add --loss poisson"] if y.min() >= 0 else []
    if not advice:
        return ()
    return (f"{what} in {name!r} are treated as amounts (least squares); {'; '.join(advice)}",)


def _check_stray_text(y: np.ndarray, name: str) -> None:
    """Refuse a target of numbers in which some cells are not numbers, instead of treating each value as a class."""
    strays = [row for row, value in enumerate(y.tolist()) if not is_number(value)]
    if 0 < 2 * len(strays) < len(y):
        more = f" (nor are {plural(len(strays) - 1, 'other cell')})" if len(strays) > 1 else ""
        raise InvalidInputError(
            f"the target {name!r} holds numbers, but row {strays[0] + 1}: {str(y[strays[0]])!r} is not a number{more}; "
            "correct or remove it"
        )


def _one_against_rest(y: np.ndarray, name: str, labels: list[str], positive: str, loss: str) -> Task:
    if positive not in labels:
        raise InvalidInputError(f"the target {name!r} has no class {positive!r}; there are: {listed(labels, 20)}")
    rest = "other" if len(labels) > 2 else next(label for label in labels if label != positive)
    # the class that sorts last is the one that coefficients speak for
    rest = next(label for label in (rest, f"({rest})", f" {rest}", "") if label < positive)
    two = np.where(np.asarray([str(value) for value in y.tolist()]) == positive, positive, rest)
    return Task(two, loss, _counts(two))


def _counts(y: np.ndarray) -> dict[str, int]:
    values, counts = np.unique(y, return_counts=True)
    return dict(zip(map(str, values.tolist()), counts.tolist(), strict=True))
