"""Fitted models in every shape that a report has to show: real ones, and stand-ins for what is slow or rare."""

from dataclasses import dataclass, field

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

    def summary(self):
        raise HardThreshError("this model does not carry its training data")

    def alternatives(self, most):
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


@dataclass(frozen=True)
class Part:
    """One of the models of an average."""

    n_nonzero: int
    alpha: float
    weight: float
    support: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))


@pytest.fixture
def build_grid(build):
    """Builds a fitted model that compared numbers of features and ridges, out of numbers that tests give."""

    def model(k=4, *, found=True, parts=(), first=0, **options):
        self = build(k, 30, **options)
        sizes = np.arange(first, 7)
        loss = 0.9 - 0.1 * sizes if found else 0.7 + 0.01 * sizes
        loss[-1] = 0.5 if found else 0.75
        ridges = np.array([0.0, 0.1, 1.0])
        folds = 0.05 * np.array([-1.0, 0.0, 1.0])  # its standard error is 0.029
        self.candidates_, self.alphas_, self.alpha_ = sizes, ridges, 0.1
        self.grid_scores_ = -(loss[:, None, None] + 0.02 * np.array([1.0, 0.0, 2.0])[:, None] + folds)
        self.grid_scores_[:2, 2] += 0.1 * found  # there the largest ridge is best
        self.scores_ = self.grid_scores_[:, 1]
        self.mean_scores_, self.standard_errors_ = self.scores_.mean(axis=1), np.full(len(sizes), 0.05 / np.sqrt(3))
        self.null_scores_ = -(0.7 + 0.1 * folds)
        self.best_n_nonzero_coefs_ = 5 if found else first
        self.one_standard_error_, self.scorer_name_ = 5 if found else first, "neg_log_loss"
        self.coefs_path_ = np.tile(self.coef_.reshape(-1), (len(sizes), 1))
        self.found_, self.null_p_value_, self.range_extended_ = found, np.nan if found else 0.31, False
        self.models_ = tuple(Part(*part) for part in parts)
        self.held_out_scores_ = {
            "log_loss": 0.35,
            "d2": 0.5,
            "roc_auc": 0.875,
            "accuracy": 0.9,
            "calibration_intercept": -0.1,
            "calibration_slope": 0.8,
        }
        self.calibration_ = np.array([[0.1, 0.2, 30.0], [np.nan, np.nan, 0.0], [0.9, 0.8, 10.0]])
        return self

    return model


@pytest.fixture(autouse=True)
def no_open_figures():
    """What other tests and examples of the same process have drawn is gone."""
    plt.close("all")
