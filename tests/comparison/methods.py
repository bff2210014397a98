"""Data with two features that matter, and methods to compare on them."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import hardthresh as ht

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
Y = 2 * X[:, 1] - X[:, 4] + 0.5 * RNG.standard_normal(60)
NOISE = RNG.standard_normal(60)


class Constant(BaseEstimator):
    """Predicts the mean of the training rows."""

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        self.coef_ = np.zeros(X.shape[1])
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.mean_)


class Concealer(LinearRegression):
    """Predicts with all features, and reports one."""

    def fit(self, X, y):
        self.inner_ = LinearRegression().fit(X, y)
        self.coef_ = np.eye(X.shape[1])[0]
        return self

    def predict(self, X):
        return self.inner_.predict(X)


class Sparse(LinearRegression):
    """Least squares on the first columns, as an entrant with so many features."""

    def __init__(self, columns=(0,)):
        super().__init__()
        self.columns = columns

    def fit(self, X, y):
        chosen = list(self.columns)
        self.model_ = LinearRegression().fit(X[:, chosen], y)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[chosen] = self.model_.coef_
        return self

    def predict(self, X):
        return self.model_.predict(X[:, list(self.columns)])


def compare(entrants, y=Y, X=X, **settings):
    return ht.compare(X, y, entrants=entrants, **({"folds": 3} | settings))
