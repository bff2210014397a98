"""The targets, the losses that measure predictions, and the predictions without features."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
)
from sklearn.model_selection import KFold, StratifiedKFold

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.estimators.linear.survival_targets import SurvivalTargets
from hardthresh.estimators.validation import check_labels
from hardthresh.losses import Cox

LOSSES = ("squared", "logistic", "poisson", "gamma", "cox")
"""The losses of tasks for which other packages have models too."""

_TINY = float(np.finfo(np.float64).eps)
"""The least mean, as `sklearn.metrics.log_loss` has it for probabilities: a mean of 0 has an infinite deviance."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The target of all rows, and how its predictions are judged.

    Attributes
    ----------
    loss : str
        One of `LOSSES`.
    y : array, shape (n,), or (n, 2)
        Numbers; the places of classes in `classes`; or times and, where the event happened then, 1.
    weights : array, shape (n,), or None
        The weights of the rows; None: 1.
    classes : tuple
        The labels of the classes, sorted; empty for other targets.
    """

    loss: str
    y: np.ndarray
    weights: np.ndarray | None = None
    classes: tuple[Any, ...] = ()

    @property
    def measure(self) -> str:
        """The loss that is measured, in words."""
        return {
            "squared": "squared error",
            "logistic": "log loss",
            "poisson": "Poisson deviance",
            "gamma": "gamma deviance",
            "cox": "minus log partial likelihood",
        }[self.loss]

    @property
    def null(self) -> str:
        """What the model without features predicts."""
        constant = {"logistic": "the class shares", "cox": "the same hazard for every row"}
        return constant.get(self.loss, "the mean")

    @property
    def strata(self) -> np.ndarray | None:
        """The groups of which each fold gets its share: classes, or events."""
        return self.y if self.loss == "logistic" else self.y[:, 1].astype(int) if self.loss == "cox" else None

    def splits(self, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the training and the held-out rows of each of some random folds, stratified by `strata`."""
        splitter = KFold if self.strata is None else StratifiedKFold
        rows = np.zeros(len(self.y))
        return [*splitter(n_folds, shuffle=True, random_state=seed).split(rows, self.strata)]

    @property
    def most_folds(self) -> int:
        """The largest number of folds such that each has a row of every class, or an event."""
        if self.loss == "cox":
            return int(self.y[:, 1].sum())
        return len(self.y) if self.strata is None else int(np.bincount(self.strata).min())

    def take(self, rows: np.ndarray) -> Target:
        """Return the target of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Target(self.loss, self.y[rows], weights, self.classes)

    def null_prediction(self, n: int) -> np.ndarray:
        """Return what the model without features, fitted to these rows, predicts for n rows."""
        if self.loss == "cox":
            return np.zeros(n)
        if self.loss == "logistic":
            shares = np.bincount(self.y, self.weights, minlength=len(self.classes))
            return np.tile(shares / shares.sum(), (n, 1))
        return np.full(n, np.average(self.y, weights=self.weights))

    def held_out_loss(self, train: np.ndarray, test: np.ndarray, prediction: np.ndarray) -> float:
        """Return the mean loss of the predictions of held-out rows.

        Parameters
        ----------
        train, test : array of int
            The rows of the fit, and those held out.
        prediction : array
            `checked_prediction` of the held-out rows; of times that of all rows, since only the order of the risk sets
            counts: the loss is the cross-validated partial likelihood of Verweij and van Houwelingen (1993), minus its
            difference between all rows and the training rows, per event held out. Weights are
            divided by their mean: the loss has the logarithm of the weight at risk, which depends on their unit.
        """
        if self.loss == "cox":
            return self._partial_likelihood(train, test, prediction)
        held = self.take(test)
        if self.loss == "logistic":
            labels = np.arange(len(self.classes))
            return float(log_loss(held.y, prediction, sample_weight=held.weights, labels=labels))
        score = {"squared": mean_squared_error, "poisson": mean_poisson_deviance, "gamma": mean_gamma_deviance}
        return float(score[self.loss](held.y, prediction, sample_weight=held.weights))

    def _partial_likelihood(self, train: np.ndarray, test: np.ndarray, prediction: np.ndarray) -> float:
        weights = np.ones(len(self.y)) if self.weights is None else self.weights / self.weights.mean()

        def total(rows: np.ndarray) -> float:  # of risk sets that are sums, not the means of the loss
            share = weights[rows] / weights[rows].sum()
            total_weight = float(weights[rows].sum())
            mean = float(Cox().prepare(self.y[rows], share).value(prediction[rows]))
            return total_weight * mean + float(weights[rows] @ self.y[rows, 1]) * log(total_weight)

        events = float(weights[test] @ self.y[test, 1])
        every = np.concatenate([train, test])
        return (total(every) - total(train)) / events

    def accuracy(self, test: np.ndarray, prediction: np.ndarray) -> float | None:
        """Return the share of held-out rows whose most probable class is right; None for other targets."""
        if self.loss != "logistic":
            return None
        held = self.take(test)
        return float(accuracy_score(held.y, prediction.argmax(axis=1), sample_weight=held.weights))

    def checked_prediction(self, prediction: Any, n: int) -> np.ndarray:
        """Return a prediction as an array after checking that it has one number, or a probability of each class, a row.

        Means of counts and amounts are at least the machine epsilon, as probabilities are in scikit-learn's log loss.

        Raises
        ------
        InvalidInputError
            For another shape, numbers that are not finite, and probabilities that are none.
        """
        found = np.asarray(prediction, dtype=np.float64)
        shape = (n, len(self.classes)) if self.loss == "logistic" else (n,)
        if found.shape == (n, 1) and len(shape) == 1:
            found = found[:, 0]
        if found.shape != shape:
            raise InvalidInputError(f"its predictions have the shape {found.shape}, not {shape}")
        if not np.isfinite(found).all():
            raise InvalidInputError("a prediction is NaN or infinite")
        if self.loss == "logistic":
            if found.min() < 0 or not np.allclose(found.sum(axis=1), 1.0, atol=1e-4):
                raise InvalidInputError("its probabilities are negative, or do not sum to 1")
            floored = np.maximum(found, _TINY)
            return np.asarray(floored / floored.sum(axis=1, keepdims=True))
        return np.maximum(found, _TINY) if self.loss in ("poisson", "gamma") else found


def target_of(y: Any, loss: str, sample_weight: Any, offset: Any) -> tuple[Target, np.ndarray, int]:
    """Return the target of the rows that have a positive weight, which rows these are, and how many there are in all.

    An offset of a mean or a log-mean is part of the target: numbers are less the offset, counts become rates, weighted
    by their exposure, and amounts are divided by it. Predictions without it then have the loss of those with it.

    Raises
    ------
    InvalidInputError
        For a loss without other packages, a target outside its domain, and an offset of classes or times.
    """
    checked_word("loss", loss, ("auto", *LOSSES))
    if loss == "auto" and getattr(getattr(y, "dtype", None), "names", None):
        loss = "cox"  # the fields of a structured array are an event and a time
    if loss == "cox":
        times, classes = _times(y), ()
        values = times
    else:
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise InvalidInputError(f"y has shape {values.shape}; compare takes one target, or loss='cox' for times")
        loss = _loss_of(values) if loss == "auto" else loss
        values, classes = _labels(values) if loss == "logistic" else (_numbers(values, loss), ())
    n = len(values)
    weights = _per_row(sample_weight, n, "sample_weight")
    if weights is not None and (weights.min() < 0 or not weights.any()):
        raise InvalidInputError("sample_weight must not be negative, and not be 0 in every row")
    offset = _per_row(offset, n, "offset")
    if offset is not None:
        values, weights = _without_offset(loss, values, weights, offset)
    rows = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
    target = Target(loss, values, weights, classes).take(rows)
    if loss == "logistic" and np.bincount(target.y, minlength=len(classes)).min() == 0:
        raise InvalidInputError("a class has weight 0 in every row; leave its rows out")
    return target, rows, n


def _loss_of(y: np.ndarray) -> str:
    """Return the loss for a target: that of classes for texts, truths and two whole numbers, else the squared one."""
    if y.dtype.kind not in "fiu":
        return "logistic"
    two = np.unique(y)[:3]
    return "logistic" if y.dtype.kind in "iu" and two.size == 2 else "squared"


def _labels(y: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
    check_labels(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmax(~np.isfinite(y)))
        raise InvalidInputError(f"y is {y[row]} in row {row} (counted from 0), which is no label; leave out such rows")
    if y.dtype.kind == "f" and np.unique(y).size > max(20, len(y) // 4):
        raise InvalidInputError(
            f"y holds amounts ({plural(np.unique(y).size, 'different number')}); use loss='squared'"
        )
    labels, places = np.unique(y, return_inverse=True)
    if labels.size < 2:
        raise InvalidInputError(f"y has only one value, {format_value(labels[0])}; there is nothing to predict")
    return places.astype(np.intp), tuple(labels.tolist())


def _numbers(y: np.ndarray, loss: str) -> np.ndarray:
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"y holds {format_value(y[0])}, which is not a number; use loss='logistic'") from error
    wrong = ~np.isfinite(numbers)
    needed = "finite numbers"
    if loss == "poisson":
        wrong, needed = wrong | (numbers < 0), "numbers >= 0"
    elif loss == "gamma":
        wrong, needed = wrong | (numbers <= 0), "numbers > 0"
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(f"loss={loss!r} needs {needed}, but y is {numbers[row]} in row {row} (counted from 0)")
    if numbers.size and np.ptp(numbers) == 0:
        raise InvalidInputError(f"y has only one value, {format_value(numbers[0])}; there is nothing to predict")
    return numbers


def _times(y: Any) -> np.ndarray:
    given = SurvivalTargets.of(y)
    if given.strata is not None:
        raise InvalidInputError("compare takes no strata: other packages have none; leave them out")
    time = np.asarray(given.time, dtype=np.float64).ravel()
    event = np.ones(len(time)) if given.event is None else np.asarray(given.event, dtype=np.float64).ravel()
    found = np.column_stack([time, event])
    Cox().check_targets(found)
    return found


def _without_offset(
    loss: str, y: np.ndarray, weights: np.ndarray | None, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    if loss in ("logistic", "cox"):
        raise InvalidInputError(
            f"an offset of {'classes' if loss == 'logistic' else 'times'} is not compared: no other package takes it; "
            "leave it out"
        )
    if loss == "squared":
        return y - offset, weights
    exposure = np.exp(offset)
    if loss == "gamma":
        return y / exposure, weights
    return y / exposure, exposure if weights is None else weights * exposure


def _per_row(values: Any, n: int, name: str) -> np.ndarray | None:
    if values is None:
        return None
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must have numbers, one for each of the {n:,} rows") from error
    if found.shape != (n,):
        raise InvalidInputError(f"{name} must have one number for each of the {n:,} rows, got shape {found.shape}")
    if not np.isfinite(found).all():
        row = int(np.argmax(~np.isfinite(found)))
        raise InvalidInputError(f"{name} must be finite, but is {found[row]} in row {row} (counted from 0)")
    return found
