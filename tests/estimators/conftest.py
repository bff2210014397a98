"""Every registered sparse model as a case: how to make one, and data it can be fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.utils import get_tags

import hardthresh.estimators  # noqa: F401 - registers them
from hardthresh.core.registry import lookup, registered
from hardthresh.estimators.linear import SparseLinearModel
from hardthresh.losses import Loss
from levels import reaches


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests compare numbers up to the one that is known to be the best; marks of their own come after this one."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            ignored = pytest.mark.filterwarnings("ignore::hardthresh.core.errors.SearchRangeWarning")
            item.add_marker(ignored, append=False)


@dataclass(frozen=True)
class Case:
    """An estimator class, with small settings and data that suit it."""

    name: str
    cls: Any

    @property
    def chooses(self) -> bool:
        """Whether it chooses the number of features by cross-validation."""
        return "cv" in self.cls().get_params()

    @property
    def classifies(self) -> bool:
        return bool(is_classifier(self.cls()))

    @property
    def loss(self) -> Loss:
        """The loss that it fits by."""
        return lookup("loss", self.cls._loss)()

    @property
    def scoring(self) -> str:
        """The name of a scorer for its predictions."""
        return "accuracy" if self.classifies else "r2"

    def numbers(self, y: np.ndarray) -> np.ndarray:
        """Return targets as the loss takes them."""
        return (y == "well").astype(float) if self.classifies else y

    def linear(self, model: Any, X: Any, **offset: Any) -> Any:
        """Return the linear predictions of a fitted model: log-odds of a classifier."""
        return model.decision_function(X, **offset) if self.classifies else model.predict(X, **offset)

    def assert_same_predictions(self, one: np.ndarray, other: np.ndarray, **tolerance: float) -> None:
        """Labels have to be equal, numbers nearly so."""
        if self.classifies:
            assert_array_equal(one, other)
        else:
            assert_allclose(one, other, **tolerance)

    @property
    def twin(self) -> Any:
        """The estimator with a given number of features that a chooser refits."""
        return next(cls for cls in self.cls.__mro__ if f"{cls.__name__}CV" == self.cls.__name__)

    def make(self, k: int = 3, **settings: Any) -> Any:
        """A model with at most k features; a chooser compares 1 .. k."""
        budget = {"n_nonzero_coefs": range(1, k + 1), "cv": 3} if self.chooses else {"n_nonzero_coefs": k}
        return self.cls(**{**budget, **settings})

    def data(self, n: int = 60, d: int = 12, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
        """Correlated columns of unequal scales; the target depends on columns 1, 4 and 7 (if there are so many)."""
        rng = np.random.default_rng((seed, n, d))
        X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
        X = X * np.linspace(0.5, 3.0, d) + np.linspace(-2.0, 2.0, d)
        beta = np.zeros(d)
        for j, effect in ((1, 2.0), (4, -1.5), (7, 1.0)):
            beta[j : j + 1] = effect
        u = (X - X.mean(axis=0)) @ beta
        return X, self.target(u, rng, noise)

    def target(self, u: np.ndarray, rng: np.random.Generator, noise: float) -> np.ndarray:
        """A target in the estimator's domain for predictions u."""
        if not self.classifies:
            target = u + noise * rng.standard_normal(u.size)
            return np.exp(0.2 * target) if get_tags(self.cls()).target_tags.positive_only else target
        positive = u + 3 * noise * rng.logistic(size=u.size) > np.median(u)
        positive[:6] = np.tile([True, False], 3)[: positive[:6].size]  # both classes, also among few rows
        return np.where(positive, "well", "ill")


CASES = [
    Case(name, entry.cls) for name, entry in registered("estimator").items() if issubclass(entry.cls, SparseLinearModel)
]


def _parameters(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Test every estimator; what a chooser inherits is tested on choosers from the level ``pairs`` on."""
    if "case" in metafunc.fixturenames:
        inherited = any(metafunc.definition.iter_markers("inherited")) and not reaches("pairs")
        cases = [case for case in CASES if not (inherited and case.chooses)]
        metafunc.parametrize("case", _parameters(cases), scope="session")


@pytest.fixture(scope="session", params=_parameters([case for case in CASES if not case.chooses]))
def plain(request: pytest.FixtureRequest) -> Case:
    """Every estimator with a given number of features."""
    return request.param


@pytest.fixture(scope="session", params=_parameters([case for case in CASES if case.chooses]))
def chooser(request: pytest.FixtureRequest) -> Case:
    """Every estimator that chooses the number of features."""
    return request.param


@pytest.fixture(scope="session", params=_parameters([case for case in CASES if case.classifies]))
def classifier(request: pytest.FixtureRequest) -> Case:
    """Every classifier."""
    return request.param
