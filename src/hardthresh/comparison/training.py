"""The input and the output of an entrant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from .scaling import Scaled
from .targets import Target

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The training rows of a fold, and nothing of the rows held out.

    Attributes
    ----------
    X : array or CSC matrix, shape (n, d)
        The columns, not standardised.
    target : Target
        The target of these rows.
    folds : list
        The training and the validation rows of each inner fold, for the choice of a penalty or of a number of features.
    factors : tuple of int
        The columns that hold codes of categories; empty for an entrant that is given indicators.
    seed : int
        The seed of entrants that draw.
    """

    X: Any
    target: Target
    folds: list[Split]
    factors: tuple[int, ...] = ()
    seed: int = 0

    @property
    def y(self) -> np.ndarray:
        """The target."""
        return self.target.y

    @property
    def fit_parameters(self) -> dict[str, Any]:
        """The weights, as a parameter of `fit`; nothing without weights."""
        return {} if self.target.weights is None else {"sample_weight": self.target.weights}


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fit of an entrant.

    Attributes
    ----------
    predict : callable
        Returns for some rows means, probabilities of the classes, or logarithms of relative hazards.
    used : array of int, or None
        The columns that predictions depend on; None for all.
    """

    predict: Callable[[Any], np.ndarray]
    used: np.ndarray | None


def linear_fit(loss: str, scaled: Scaled, coef: Any, intercept: Any) -> Fitted:
    """Return the fit of a linear model of scaled columns.

    Parameters
    ----------
    loss : str
        The loss, whose link makes predictions of linear predictors.
    scaled : Scaled
        The columns.
    coef, intercept :
        One row of coefficients, or of several classes one for each of them.
    """
    coefs = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    intercepts = np.broadcast_to(np.ravel(intercept), (coefs.shape[0],))
    used = scaled.columns[np.flatnonzero(np.any(coefs != 0, axis=0))]

    def predict(X: Any) -> np.ndarray:
        return means(loss, np.asarray(scaled.apply(X) @ coefs.T) + intercepts)

    return Fitted(predict, used)


def means(loss: str, u: np.ndarray) -> np.ndarray:
    """Return predictions of linear predictors, shape (n, 1) or (n, n_classes)."""
    if loss == "logistic":
        if u.shape[1] > 1:
            return np.asarray(softmax(u, axis=1))
        p = expit(u[:, 0])
        return np.column_stack([1 - p, p])
    return np.exp(np.minimum(u[:, 0], 700.0)) if loss in ("poisson", "gamma") else u[:, 0]  # exp(710) overflows


Path = Callable[[Scaled, np.ndarray, "np.ndarray | None"], Sequence[tuple[np.ndarray, float]]]
"""Returns coefficients and intercept for each penalty, given scaled columns, targets and weights."""


def best_of_path(training: Training, path: Path) -> Fitted:
    """Return the fit of a path of penalties, from large to small, whose mean loss in the inner folds is least.

    Columns are scaled in each fold; of equal losses the larger penalty is chosen.
    """
    target = training.target

    def fits(rows: np.ndarray) -> list[Fitted]:
        some = target.take(rows)
        scaled = Scaled.of(training.X[rows])
        return [linear_fit(target.loss, scaled, *one) for one in path(scaled, some.y, some.weights)]

    every = np.arange(len(target.y))
    losses = []
    for train, test in training.folds:
        rows = every if target.loss == "cox" else test
        found = [target.checked_prediction(fit.predict(training.X[rows]), rows.size) for fit in fits(train)]
        losses.append([target.held_out_loss(train, test, each) for each in found])
    shortest = min(map(len, losses))  # a path ends early where a model has too many features
    whole = fits(every)
    best = int(np.argmin(np.mean([one[:shortest] for one in losses], axis=0)))
    return whole[min(best, len(whole) - 1)]
