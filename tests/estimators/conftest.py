"""Every registered sparse model as a case: how to make one, and data it can be fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import gain
from sklearn.metrics import get_scorer, get_scorer_names

import hardthresh.estimators  # noqa: F401 - registers them
from hardthresh.core.registry import registered
from hardthresh.estimators.linear.model import SparseLinearModel
from hardthresh.losses import Huber, Loss, NegativeBinomial, Quantile
from hardthresh.losses.log_link import LogLink
from levels import reaches, turn


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests compare numbers up to the best, and fit rows with little to be found or with little noise.

    Marks of their own come after these.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in (
                ":hardthresh.core.errors.SearchRangeWarning",
                ":hardthresh.core.errors.NothingFoundWarning",
                "the counts vary no more than Poisson counts",  # examples with little noise
            ):
                item.add_marker(pytest.mark.filterwarnings(f"ignore:{warning}"), append=False)


FIXED = {"huber": {"delta": 3.0}, "negative_binomial": {"dispersion": 0.5}, "quantile": {"smoothing": 3.0}}


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
    def loss(self) -> Loss:
        """What it minimises the mean of."""
        return self.cls(**self.fixed)._loss

    @property
    def fixed(self) -> dict[str, Any]:
        """Parameters with which the loss is the same for all targets; how it is estimated is tested elsewhere."""
        return next((fixed for name, fixed in FIXED.items() if self.name.startswith(name)), {})

    @property
    def has_log_link(self) -> bool:
        """Whether its loss grows like an exponential."""
        return self.loss.curvature_bound == np.inf

    @property
    def transforms(self) -> bool:
        """Whether it is also one of scikit-learn's transformers."""
        return hasattr(self.cls(), "transform")

    @property
    def gain(self) -> float:
        """How large the predictions of the examples are."""
        if isinstance(self.loss, NegativeBinomial):
            return 0.24  # counts as scattered as its dispersion, 0.5, says hide the effects of those of 0.2
        return 1.0 if isinstance(self.loss, Huber | Quantile) else gain(self.loss)

    @property
    def without_cv(self) -> Any:
        """The estimator with a given number of features that a chooser refits."""
        return partial(next(cls for cls in self.cls.__mro__ if f"{cls.__name__}CV" == self.cls.__name__), **self.fixed)

    def new(self, **settings: Any) -> Any:
        """A model with the defaults of the estimator."""
        return self.cls(**{**self.fixed, **settings})

    def make(self, k: int = 3, **settings: Any) -> Any:
        """A model with at most k features; a chooser compares 1 .. k, and averages models of several ridges.

        A ridge `alpha` is the only one that it compares.
        """
        budget = {"n_nonzero_coefs": range(1, k + 1), "cv": 3} if self.chooses else {"n_nonzero_coefs": k}
        if self.chooses and "alpha" in settings:
            budget["alphas"] = settings.pop("alpha")
        return self.cls(**{**self.fixed, **budget, **settings})

    def single(self, k: int = 3, **settings: Any) -> Any:
        """A model that minimises one objective: a chooser compares 1 .. k with one ridge, and keeps the best."""
        alone = {"averaging": "none", "alpha": self.loss.default_ridge} if self.chooses else {}
        return self.make(k, **{**alone, **settings})

    def data(
        self, n: int = 60, d: int = 12, seed: int = 0, noise: float = 0.3, level: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Correlated columns of unequal scales; the target depends on columns 1, 4 and 7 (if there are so many).

        `level` is added to predictions; classes are balanced whatever it is.
        """
        rng = np.random.default_rng((seed, n, d))
        X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
        X = X * np.linspace(0.5, 3.0, d) + np.linspace(-2.0, 2.0, d)
        beta = np.zeros(d)
        for j, effect in ((1, 2.0), (4, -1.5), (7, 1.0)):
            beta[j : j + 1] = effect
        u = (X - X.mean(axis=0)) @ beta
        return X, self.target(u + level, rng, noise)

    def target(self, u: np.ndarray, rng: np.random.Generator, noise: float) -> np.ndarray:
        """A target in the estimator's domain for predictions u, as its users give it."""
        if not self.loss.classifies:
            return self.loss.example_target(self.gain * u, rng, noise)
        positive = self.loss.example_target(u - np.median(u), rng, 3 * noise)
        positive[:6] = np.tile([1.0, 0.0], 3)[: positive[:6].size]  # both classes, also among few rows
        return np.where(positive > 0, "well", "ill")

    def numbers(self, y: np.ndarray) -> np.ndarray:
        """A target as the loss wants it."""
        if not self.loss.classifies:
            return y
        return np.where(y == "well", 1.0, -1.0 if self.loss.in_domain(-np.ones(1))[0] else 0.0)

    def scores(self, model: Any) -> Any:
        """The method that says the most about rows: log-odds, or predictions."""
        return model.decision_function if self.loss.classifies else model.predict

    def expected(self, model: Any, X: np.ndarray, offset: Any = None) -> np.ndarray:
        """The expected target of rows, as the loss counts it."""
        if not self.loss.classifies:
            return model.predict(X, offset)
        return self.loss.mean(model.decision_function(X, offset))

    def effective_size(self, model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, alpha: float) -> float:
        """The trace of H (H + ridge)^-1 on the standardised chosen columns and the intercept; weights sum to 1."""
        mean = np.average(X, axis=0, weights=weight)
        scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
        Z = np.column_stack([((X - mean) / scale)[:, model.support_], np.ones(y.size)])
        u = X @ np.reshape(model.coef_, -1) + model.intercept_
        hessian = (Z.T * (weight * self.loss.curvature(self.numbers(y), u))) @ Z
        ridge = np.diag([alpha] * model.support_.size + [0.0])
        return float(np.trace(hessian @ np.linalg.inv(hessian + ridge)))

    def scorer(self) -> Any:
        """The scorer of the default score."""
        if self.loss.score_name in get_scorer_names():
            return get_scorer(self.loss.score_name)

        def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
            u = model.decision_function(X) if self.loss.classifies else model.predict(X)
            return self.score(y, np.log(u) if isinstance(self.loss, LogLink) else u, sample_weight)

        return score

    def score(self, y: np.ndarray, u: np.ndarray, sample_weight: Any = None) -> float:
        """The default score of linear predictors."""
        loss = replace(self.loss, smoothing=0.0) if isinstance(self.loss, Quantile) else self.loss
        return -loss.score_scale * float(np.average(loss.value(self.numbers(y), u), weights=sample_weight))


CASES = [
    Case(name, entry.cls)
    for name, entry in registered("estimator").items()
    if issubclass(entry.cls, SparseLinearModel) and isinstance(entry.cls()._loss, Loss)
]
"""Models of a pointwise loss. Others, of censored times and of ordered classes, have tests of their own."""


ARGUMENTS: dict[str, Callable[[Case], bool]] = {
    "case": lambda case: True,
    "plain": lambda case: not case.chooses,
    "chooser": lambda case: case.chooses,
    "selector": lambda case: case.transforms,
    "classifier": lambda case: case.loss.classifies,
    "probabilistic": lambda case: hasattr(case.cls, "predict_proba"),
}
"""Which estimators a test runs on, by the name of its argument: every one, those with a given number of features, those
that choose it, transformers, classifiers, and those of probabilities."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Test every estimator that the argument of a test asks for; below the level ``pairs`` one of each family."""
    inherited = any(metafunc.definition.iter_markers("inherited"))
    for name, takes in ARGUMENTS.items():
        if name not in metafunc.fixturenames:
            continue
        cases = [case for case in CASES if takes(case)]
        if "xp" in metafunc.fixturenames:
            cases = [case for case in cases if case.cls().__sklearn_tags__().array_api_support]
        if not reaches("pairs"):
            cases = one_of_each_family(cases, metafunc.function.__name__, inherited)
        metafunc.parametrize(name, [pytest.param(case, id=case.name) for case in cases], scope="session")


def one_of_each_family(cases: list[Case], test: str, inherited: bool) -> list[Case]:
    """Estimators of classes, those with a log link, and the others: one of each, whose turn it is in a test.

    Of those with cross-validation there is one in all where the others are tested too, and none if the test is marked
    ``inherited``: the code is that of the others.
    """
    plain = [case for case in cases if not case.chooses]
    choosers = [] if inherited else [case for case in cases if case.chooses]
    if plain:
        choosers = list(turn([case for case in choosers if not case.has_log_link], test))
    families = [
        [case for case in some if (case.loss.classifies, case.has_log_link) == family]
        for some in (plain, choosers)
        for family in ((True, False), (False, True), (False, False))
    ]
    return [case for family in families for case in turn(family, test)]
