"""The compared methods: our estimators, and those of other packages that are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from hardthresh import __version__
from hardthresh.core.errors import InvalidInputError, format_value
from hardthresh.estimators import (
    SparseCoxRegressionCV,
    SparseGammaRegressionCV,
    SparseLinearRegressionCV,
    SparseLogisticRegressionCV,
    SparsePoissonRegressionCV,
)

from . import other_packages, scikit_learn
from .scaling import Scaled
from .targets import Target
from .training import Fitted, Training

OURS = "hardthresh"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A method with its settings.

    Attributes
    ----------
    name : str
        What tables call it.
    package : str
        The package that computes it, by its name in the registry of packages.
    fits : mapping
        For each loss that it takes, the function that fits training rows, and in words what that is.
    sparse : bool
        Whether it chooses features; others use all.
    native : bool
        Whether it encodes categories itself.
    weighted : bool
        Whether it takes weights of rows.
    two_classes : bool
        Whether it takes two classes at most.
    """

    name: str
    package: str
    fits: Mapping[str, tuple[Callable[[Training], Fitted], str]] = field(repr=False)
    sparse: bool = True
    native: bool = False
    weighted: bool = True
    two_classes: bool = False

    @property
    def edition(self) -> str | None:
        """The version of the package; None if it is not installed."""
        if self.package == OURS:
            return __version__
        try:
            return version(self.package) if self.package else ""
        except PackageNotFoundError:
            return None

    def reason_against(self, target: Target) -> str:
        """Return why it cannot take part in a comparison for a target; nothing if it can."""
        if self.edition is None:
            return f"{self.package} is not installed"
        if target.loss not in self.fits:
            return "it has no model for this target"
        if self.two_classes and len(target.classes) > 2:
            return "it takes two classes only"
        return "it takes no weights of rows" if target.weights is not None and not self.weighted else ""


_OURS: dict[str, Any] = {
    "squared": SparseLinearRegressionCV,
    "logistic": SparseLogisticRegressionCV,
    "poisson": SparsePoissonRegressionCV,
    "gamma": SparseGammaRegressionCV,
    "cox": SparseCoxRegressionCV,
}


def _fit_ours(training: Training) -> Fitted:
    loss = training.target.loss
    model = _OURS[loss](cv=training.folds, categorical_features=[*training.factors] or None)
    model.fit(training.X, training.y, **training.fit_parameters)
    used = np.flatnonzero(model.get_support())
    return Fitted(model.predict_proba if loss == "logistic" else model.predict, used)


def _catalogue() -> Iterable[Entrant]:
    learn, fit = "scikit-learn", scikit_learn.fit_linear
    ours = {loss: (_fit_ours, f"{kind.__name__}()") for loss, kind in _OURS.items()}
    yield Entrant(OURS, OURS, ours, native=True)
    yield Entrant(
        "lasso",
        learn,
        {
            "squared": (partial(fit, scikit_learn.lasso), "LassoCV, 100 penalties"),
            "logistic": (
                scikit_learn.fit_l1_logistic,
                "LogisticRegressionCV with the l1 penalty, 20 penalties; several classes one against the rest",
            ),
        },
    )
    elastic = partial(fit, scikit_learn.elastic_net), "ElasticNetCV, 50 penalties for each of 3 mixtures"
    yield Entrant("elastic-net", learn, {"squared": elastic})
    yield Entrant(
        "omp", learn, {"squared": (partial(fit, scikit_learn.pursuit), "OrthogonalMatchingPursuitCV")}, weighted=False
    )
    log_mean = scikit_learn.fit_ridge_of_log_mean
    yield Entrant(
        "ridge",
        learn,
        {
            "squared": (partial(fit, scikit_learn.ridge), "RidgeCV, 41 penalties by leaving out one row"),
            "logistic": (partial(fit, scikit_learn.ridge_logistic), "LogisticRegressionCV, 19 ridges"),
            "poisson": (log_mean, "PoissonRegressor, 13 ridges"),
            "gamma": (log_mean, "GammaRegressor, 13 ridges"),
        },
        sparse=False,
    )
    forest = scikit_learn.fit_forest, f"random forest of {scikit_learn.TREES} trees"
    yield Entrant("forest", learn, dict.fromkeys(("squared", "logistic", "poisson", "gamma"), forest), sparse=False)
    abess = other_packages.fit_abess, "abess with cv"
    yield Entrant("abess", "abess", dict.fromkeys(_OURS, abess))
    yield Entrant(
        "skglm",
        "skglm",
        {
            "squared": (other_packages.fit_skglm, "MCPRegression, 20 penalties"),
            "logistic": (other_packages.fit_skglm, "SparseLogisticRegression, 20 penalties"),
            "poisson": (other_packages.fit_skglm, "Poisson datafit with L1, 20 penalties"),
        },
        weighted=False,
        two_classes=True,
    )
    yield Entrant(
        "celer", "celer", {"squared": (other_packages.fit_celer, "celer_path, 100 penalties")}, weighted=False
    )
    coxnet = other_packages.fit_coxnet, "CoxnetSurvivalAnalysis with the l1 penalty, 100 penalties"
    yield Entrant("coxnet", "scikit-survival", {"cox": coxnet}, weighted=False)


CATALOGUE: dict[str, Entrant] = {entrant.name: entrant for entrant in _catalogue()}

ENTRANTS: tuple[str, ...] = tuple(CATALOGUE)
"""The names of the methods that `compare` knows, of packages that are installed or not."""


def entrants_of(given: Any) -> list[Entrant]:
    """Return the entrants that a user names, or estimators of the user.

    Raises
    ------
    InvalidInputError
        For a name that is not known or given twice, and what is neither.
    """
    if given is None:
        return [*CATALOGUE.values()]
    if isinstance(given, str):
        raise InvalidInputError(f"entrants must be a list of names, such as [{given!r}], got {given!r}")
    names = [*given] if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise InvalidInputError(
            "entrants must be a list of names, such as ['lasso'], or a mapping from names to estimators, such as "
            f"{{'mine': Lasso()}}; got {format_value(given)}"
        )
    items = [*given.items()] if isinstance(given, Mapping) else [(name, None) for name in names]
    found = []
    for name, estimator in items:
        if estimator is not None:
            found.append(_of_user(name, estimator))
        elif name not in CATALOGUE:
            raise InvalidInputError(f"unknown entrant {format_value(name)}; known: {', '.join(CATALOGUE)}")
        else:
            found.append(CATALOGUE[name])
        if names.count(name) > 1:
            raise InvalidInputError(f"the entrant {format_value(name)} is given twice")
    if not found:
        raise InvalidInputError(f"entrants is empty; name some of {', '.join(CATALOGUE)}, or leave it out for all")
    return found


def _of_user(name: str, estimator: Any) -> Entrant:
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise InvalidInputError(
            f"the entrant {name!r} must be an estimator of scikit-learn, got {format_value(estimator)}"
        )
    words = " ".join(repr(estimator).split())
    fit = partial(_fit_of_user, estimator), words
    return Entrant(name, "", dict.fromkeys(_OURS, fit), weighted=has_fit_parameter(estimator, "sample_weight"))


def _fit_of_user(estimator: Any, training: Training) -> Fitted:
    """Return the fit of an estimator to scaled columns; the columns that it uses are those of its coefficients."""
    scaled = Scaled.of(training.X)
    model = clone(estimator).fit(scaled.X, training.y, **training.fit_parameters)
    classes = training.target.loss == "logistic"
    if classes and not hasattr(model, "predict_proba"):
        raise InvalidInputError("it has no predict_proba, which log loss needs")
    predict = model.predict_proba if classes else model.predict
    coef = getattr(model, "coef_", None)
    used = None if coef is None else scaled.columns[np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0))]
    return Fitted(lambda X: np.asarray(predict(scaled.apply(X))), used)
