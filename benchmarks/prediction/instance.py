"""What an instance of the benchmark is: data to fit, and how a fit is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from scipy import sparse

LOSSES = SQUARED, LOGISTIC = "squared", "logistic"


@dataclass(frozen=True, slots=True)
class Training:
    """The rows that an entrant is given, in random order, so that unshuffled folds are random folds.

    Attributes
    ----------
    X : array or sparse matrix, shape (n_samples, n_features)
        Not standardised.
    y : array, shape (n_samples,)
        Numbers, or the classes 0 and 1.
    loss : str
        ``"squared"`` or ``"logistic"``.
    """

    X: Any
    y: np.ndarray
    loss: str

    @property
    def checksum(self) -> str:
        """A checksum of all values, which tells whether a kept result belongs to these data."""
        parts = (self.X.data, self.X.indices, self.X.indptr) if sparse.issparse(self.X) else (self.X,)
        total = crc32(np.ascontiguousarray(self.y).tobytes())
        for part in parts:
            total = crc32(np.ascontiguousarray(part).tobytes(), total)
        return f"{total:08x}"

    def with_target(self, y: np.ndarray) -> Training:
        """Return the same rows with another target."""
        return replace(self, y=y)


class Fit(Protocol):
    """What an entrant returns.

    Attributes
    ----------
    features : int
        The number of columns that the model uses.
    coef, intercept :
        Of a linear predictor on the scale of the data, None for other models.
    """

    features: int
    coef: np.ndarray | None
    intercept: float | None

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean, or the probability of class 1, of each row."""
        ...


class Judge(Protocol):
    """Measures how well a fit predicts."""

    def __call__(self, fit: Fit) -> dict[str, float]:
        """Return measures by name."""
        ...


class Instance(Protocol):
    """A simulated cell, a real set or a permuted one; repetitions are independent draws, splits or permutations."""

    title: str
    half: str
    loss: str
    real: bool

    def draw(self, repetition: int) -> tuple[Training, Judge]:
        """Return the training rows of a repetition, and the judge of fits to them."""
        ...


def held_out(loss: str, train_y: np.ndarray, X: Any, y: np.ndarray) -> Judge:
    """Return a judge by rows that no entrant was given.

    Its measure ``loss`` is relative: to the squared error of the mean of the training rows, or to the log loss of their
    class shares. So it is 1 for the model without features. Probabilities are clipped as by scikit-learn's `log_loss`.
    """
    null = np.full(y.size, train_y.mean())

    def judge(fit: Fit) -> dict[str, float]:
        prediction = np.asarray(fit.predict(X), dtype=np.float64)
        measures = {"loss": float(losses(loss, y, prediction).mean() / losses(loss, y, null).mean())}
        if loss == SQUARED:
            measures["r2"] = float(1.0 - np.mean((y - prediction) ** 2) / y.var())
        else:
            measures["auc"] = area_under_curve(y, prediction)
            measures["accuracy"] = float(np.mean((prediction > 0.5) == (y > 0.5)))
        return measures

    return judge


def losses(loss: str, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Return the squared error, or the log loss, of each row."""
    if loss == SQUARED:
        return (y - prediction) ** 2
    tiny = np.finfo(np.float64).eps
    p = np.clip(prediction, tiny, 1.0 - tiny)
    return -np.where(y > 0.5, np.log(p), np.log1p(-p))


def area_under_curve(y: np.ndarray, score: np.ndarray) -> float:
    """Return the share of pairs of rows of class 1 and 0 in the right order; equal scores count half."""
    order = np.unique(score, return_inverse=True)[1]
    positive, negative = (np.bincount(order[group], minlength=order.max() + 1) for group in (y > 0.5, y <= 0.5))
    below = np.cumsum(negative) - negative
    return float(positive @ (below + 0.5 * negative) / (positive.sum() * negative.sum()))
