"""The relaxed lasso, with its penalty and its relaxation chosen by cross-validation.

Reference: N. Meinshausen (2007), *Relaxed lasso*, Computational Statistics & Data Analysis 52, 374-393, in the
simplified form of Hastie, Tibshirani and Tibshirani (2020): gamma * lasso + (1 - gamma) * least squares on the columns
that the lasso chooses. Where these are nearly as many as the rows, least squares is unstable, and the lasso is kept.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import lstsq
from sklearn.linear_model import lasso_path
from sklearn.model_selection import KFold

GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)

LIMIT = 0.8
"""Columns for each row beyond which the lasso is not relaxed. Without a limit a model that is chosen in folds of fewer
rows, where its support is smaller, may interpolate all rows: on one real set its held-out loss was 200 times that of
the lasso. Between 0.5 and 0.9 the limit seldom matters."""

SINGULAR = 1e-8
"""Relative size of what counts as dependent columns: rounding makes near duplicates of equal genotypes, and least
squares without a limit gives these coefficients of opposite signs that have no bound."""


class RelaxedLassoCV:
    """Lasso, relaxed: 100 penalties as `sklearn.linear_model.LassoCV` has them, and five relaxations.

    Parameters
    ----------
    cv : int
        The number of folds, which are consecutive rows as those of scikit-learn.
    alphas : int
        The number of penalties, from the largest that is useful to a thousandth of it.

    Attributes
    ----------
    coef_, intercept_ :
        The model.
    alpha_, gamma_ : float
        The chosen penalty, of squared error / 2n, and the share of the lasso; 0 is least squares on its columns.
    """

    def __init__(self, cv: int = 5, alphas: int = 100) -> None:
        self.cv = cv
        self.alphas = alphas

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Choose what has the least squared error in the folds; of equal ones the larger penalty, then gamma."""
        largest = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / y.size
        alphas = largest * np.logspace(0, -3, self.alphas)
        errors = np.zeros((alphas.size, len(GAMMAS)))
        for train, test in KFold(self.cv).split(X):
            coefs, intercepts = relaxed_path(X[train], y[train], alphas)
            residuals = y[test] - intercepts[..., None] - coefs @ X[test].T
            errors += (residuals**2).sum(axis=-1)
        gamma_first = errors[:, ::-1]  # so that argmin meets larger penalties and larger shares of the lasso first
        row, place = np.unravel_index(np.argmin(gamma_first), errors.shape)
        column = len(GAMMAS) - 1 - place
        self.alpha_, self.gamma_ = float(alphas[row]), GAMMAS[column]
        coefs, intercepts = relaxed_path(X, y, alphas[: row + 1])
        self.coef_, self.intercept_ = coefs[row, column], float(intercepts[row, column])
        return self


def relaxed_path(X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients, shape (n_alphas, n_gammas, n_features), and intercepts, shape (n_alphas, n_gammas)."""
    mean, level = X.mean(axis=0), y.mean()
    centred, target = np.asfortranarray(X - mean), y - level
    lasso = lasso_path(centred, target, alphas=alphas, precompute=X.shape[0] > X.shape[1])[1].T
    least_squares = lasso.copy()
    for i, coef in enumerate(lasso):
        support = np.flatnonzero(coef)
        if i and np.array_equal(support, np.flatnonzero(lasso[i - 1])):
            least_squares[i] = least_squares[i - 1]
        elif 0 < support.size <= LIMIT * X.shape[0]:
            least_squares[i, support] = lstsq(centred[:, support], target, SINGULAR, lapack_driver="gelsy")[0]
    share: Any = np.asarray(GAMMAS)[:, None]
    coefs = share * lasso[:, None, :] + (1.0 - share) * least_squares[:, None, :]
    return coefs, level - coefs @ mean
