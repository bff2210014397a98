"""Fitted models in every shape that a report has to show: real ones, and stand-ins for what is slow or rare."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from hardthresh import SparseLinearRegression, SparseLogisticRegressionCV
from hardthresh.core.errors import HardThreshError
from hardthresh.datasets import load_colon
from hardthresh.losses import Logistic


@pytest.fixture(scope="session")
def colon():
    """The colon data, small enough to fit in a moment: every tenth gene."""
    data = load_colon().to_pandas()
    return data.data.iloc[:, ::10], data.target_names[data.target]


@pytest.fixture(scope="session")
def classifier(colon):
    """A real classifier that chose k by cross-validation."""
    return SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 9), cv=4).fit(*colon)


@pytest.fixture(scope="session")
def regression():
    """A real regression with a given k, on columns without names."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30)) * rng.lognormal(size=30)
    y = 3.0 * X[:, 4] - 2.0 * X[:, 20] + rng.standard_normal(80)
    return SparseLinearRegression(n_nonzero_coefs=2, always_include=[7]).fit(X, y)


class StandIn(BaseEstimator):
    """Has the attributes of a fitted estimator."""

    always_include = None
    standardize = True
    _loss = Logistic()

    def fit(self, X, y):
        return self

    def certificate(self):
        raise HardThreshError("this model does not carry its training data")


class StandInCV(StandIn):
    """The same after a cross-validation."""


@pytest.fixture
def build():
    """Builds a fitted model out of random numbers."""

    def model(k, n_features, *, cv=True, classes=("normal", "tumour"), names=None):
        rng = np.random.default_rng(k)
        self = StandInCV() if cv else StandIn()
        coef = np.zeros(n_features)
        self.support_ = np.sort(rng.choice(n_features, k, replace=False))
        coef[self.support_] = rng.normal(size=k)
        self.coef_ = coef if classes is None else coef[None]
        if classes is not None:
            self.classes_ = np.array(classes)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.scale_ = rng.lognormal(size=n_features)
        self.n_nonzero_coefs_ = k
        self.n_iter_, self.converged_, self.stop_reason_ = 7, True, "the solver sees nothing left to improve"
        self.history_ = {"value": np.geomspace(0.69, 0.12, 8), "step": np.ones(7), "passes": 3.0 * np.arange(8)}
        self.objective_ = 0.12
        if cv:
            self.candidates_ = np.array([k, k + 1, k + 2])
            self.scores_ = rng.uniform(0.8, 0.9, size=(3, 5))
            self.mean_scores_ = self.scores_.mean(axis=1)
            self.standard_errors_ = self.scores_.std(axis=1, ddof=1) / np.sqrt(5)
            self.one_standard_error_ = k
            self.scorer_name_ = "accuracy"
            self.selection_frequency_ = np.where(coef != 0, 0.8, 0.0)
            self.coefs_path_ = np.stack([coef, coef, coef])
        return self

    return model


@pytest.fixture(autouse=True)
def no_open_figures():
    """What other tests and examples of the same process have drawn is gone."""
    plt.close("all")
