"""Logistic regression with an l1 penalty, relaxed as `relaxed_lasso` relaxes the lasso."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from .instance import LOGISTIC, losses
from .relaxed_lasso import GAMMAS, LIMIT

RIDGE = 1e-2
"""Penalty of the refits, of the sum of the losses: chosen columns often separate the classes, and then there is no
minimiser without one. Arbitrary: a mixture with the penalised fit is chosen by cross-validation."""


class RelaxedLogisticCV:
    """A mixture of logistic regression with an l1 penalty and of its refit on the chosen columns.

    Parameters
    ----------
    penalised : LogisticRegression
        With an l1 penalty.
    weights : array
        Its candidates for ``C``, increasing.
    cv : int
        The number of folds, stratified.

    Attributes
    ----------
    coef_, intercept_ :
        The model.
    C_, gamma_ : float
        The chosen weight of the loss, and the share of the penalised fit.
    """

    def __init__(self, penalised: LogisticRegression, weights: np.ndarray, cv: int = 5) -> None:
        self.penalised = penalised
        self.weights = weights
        self.cv = cv

    def fit(self, X: Any, y: np.ndarray) -> Self:
        """Choose what has the least log loss in the folds; of equal ones the larger penalty, then gamma."""
        total = np.zeros((self.weights.size, len(GAMMAS)))
        for train, test in StratifiedKFold(self.cv).split(X, y):
            for row, mixtures in enumerate(map(self._mixtures(X[train], y[train]), self.weights)):
                for column, (coef, intercept) in enumerate(mixtures):
                    total[row, column] += losses(LOGISTIC, y[test], expit(X[test] @ coef + intercept)).sum()
        row, place = np.unravel_index(np.argmin(total[:, ::-1]), total.shape)
        column = len(GAMMAS) - 1 - place
        self.C_, self.gamma_ = float(self.weights[row]), GAMMAS[column]
        self.coef_, self.intercept_ = self._mixtures(X, y)(self.C_)[column]
        return self

    def _mixtures(self, X: Any, y: np.ndarray) -> Any:
        """Return a function that makes the models of a weight, one for each gamma."""

        def mixtures(weight: float) -> list[tuple[np.ndarray, float]]:
            penalised = self.penalised.set_params(C=weight).fit(X, y)
            coef, intercept = penalised.coef_[0], penalised.intercept_[0]
            refitted, level = coef, intercept
            support = np.flatnonzero(coef)
            if 0 < support.size <= LIMIT * X.shape[0]:
                refit = LogisticRegression(C=1.0 / RIDGE).fit(X[:, support], y)
                refitted, level = np.zeros_like(coef), refit.intercept_[0]
                refitted[support] = refit.coef_[0]
            return [(g * coef + (1 - g) * refitted, g * intercept + (1 - g) * level) for g in GAMMAS]

        return mixtures
