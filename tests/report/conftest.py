"""Fitted models in every shape that a report has to show, without fitting them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from hardthresh.core.errors import HardThreshError


class Fake(BaseEstimator):
    """Has the attributes of a fitted estimator."""

    always_include = None

    def fit(self, X, y):
        return self

    def certificate(self):
        if self.certificate_ is None:
            raise HardThreshError("this model was loaded from a file, which does not carry the data; fit it again")
        return self.certificate_


class FakeCV(Fake):
    """The same after a cross-validation."""


class FakeCertificate:
    swap_optimal = True

    def is_stationary(self):
        return True

    def __str__(self):
        return "Fitted to the end: yes.\nFirst-order test: passed (smallest L 0.4, smoothness at least 3.1).\nNot proved: the rest."


def fake(k=6, n_features=2000, *, cv=True, classes=("normal", "tumour"), names=None, seed=0):
    """Build a fitted model out of random numbers."""
    rng = np.random.default_rng(seed)
    model = FakeCV() if cv else Fake()
    support = np.sort(rng.choice(n_features, k, replace=False))
    coef = np.zeros(n_features)
    coef[support] = rng.normal(size=k)
    model.scale_ = rng.lognormal(size=n_features)
    if classes is None:
        model.coef_, model.intercept_ = coef, 0.5
    else:
        model.coef_, model.intercept_, model.classes_ = coef[None], np.array([0.5]), np.array(classes)
    model.support_ = support
    model.n_iter_, model.converged_, model.stop_reason_ = 7, True, "the solver sees nothing left to improve"
    model.history_ = {"value": np.geomspace(0.69, 0.12, 8), "step": np.ones(7), "passes": 3.0 * np.arange(8)}
    model.objective_ = 0.12
    model.n_features_in_ = n_features
    model.feature_names_in_ = np.array([f"gene_{j + 1:04}" for j in range(n_features)] if names is None else names, dtype=object)
    model.n_nonzero_coefs_ = k
    model.certificate_ = FakeCertificate()
    if cv:
        model.candidates_ = np.unique([*range(min(k, 1), max(2 * min(k, 15), 8)), k])
        model.scores_ = 0.9 - 0.3 * np.exp(-model.candidates_ / 2)[:, None] + rng.normal(scale=0.04, size=(len(model.candidates_), 5))
        model.mean_scores_ = model.scores_.mean(axis=1)
        model.standard_errors_ = model.scores_.std(axis=1, ddof=1) / np.sqrt(5)
        model.scorer_name_ = "accuracy"
        model.selection_frequency_ = np.zeros(n_features)
        model.selection_frequency_[support] = rng.integers(1, 6, size=k) / 5
        model.coefs_path_ = np.zeros((len(model.candidates_), n_features))
        for row, candidate in zip(model.coefs_path_, model.candidates_, strict=True):
            chosen = support[: min(candidate, k)]
            row[chosen] = coef[chosen] * rng.uniform(0.8, 1.2, size=len(chosen))
        model.coefs_path_[model.candidates_ == k] = coef
    return model


@pytest.fixture
def build():
    return fake
