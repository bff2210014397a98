"""Methods of packages that hardthresh does not require: abess, skglm, celer and scikit-survival."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .scaling import Scaled
from .training import Fitted, Split, Training, best_of_path, linear_fit

SHORT, LONG = 20, 100
"""The numbers of penalties: `LONG` where the path of a package is fast, as scikit-learn's lasso has."""


def fold_numbers(n: int, folds: list[Split]) -> np.ndarray:
    """Return the number of the inner fold of each row."""
    numbers = np.empty(n, dtype=int)
    for number, (_, test) in enumerate(folds):
        numbers[test] = number
    return numbers


def abess_model(kind: str, folds: int | None) -> Any:
    """Return a model of abess, which chooses the size by its loss in so many folds, or without them by GIC.

    Its default range of sizes; for classes the loss is not its default score, but what is measured here.
    """
    settings: dict[str, Any] = {"cv": folds, "cv_score": "test_loss"} if folds is not None else {"ic_type": "gic"}
    return getattr(import_module("abess.linear"), kind)(thread=1, **settings)


def fit_abess(training: Training) -> Fitted:
    """Return the fit of best-subset selection by splicing, with the size chosen in the inner folds."""
    loss, scaled = training.target.loss, Scaled.of(training.X)
    kinds = {"squared": "LinearRegression", "poisson": "PoissonRegression", "gamma": "GammaRegression"}
    many = len(training.target.classes) > 2
    kinds |= {"cox": "CoxPHSurvivalAnalysis", "logistic": "MultinomialRegression" if many else "LogisticRegression"}
    model = abess_model(kinds[loss], len(training.folds))
    numbers = fold_numbers(len(training.y), training.folds)
    model.fit(scaled.X, training.y, cv_fold_id=numbers, **training.fit_parameters)
    intercept = 0.0 if loss == "cox" else model.intercept_
    return linear_fit(loss, scaled, model.coef_.T if many else model.coef_, intercept)


def penalties(scaled: Scaled, y: np.ndarray, count: int) -> np.ndarray:
    """Return penalties from the largest that leaves no feature, of y with mean 0, to a thousandth of it."""
    largest = np.abs(scaled.X.T @ (y - y.mean())).max() / y.size
    return np.asarray(largest * np.logspace(0, -3, count))


def fit_celer(training: Training) -> Fitted:
    """Return the fit of the lasso by celer, of `LONG` penalties."""
    celer_path = import_module("celer").celer_path

    def path(scaled: Scaled, y: np.ndarray, weights: np.ndarray | None) -> list[tuple[np.ndarray, float]]:
        alphas = penalties(scaled, y, LONG)
        coefs = celer_path(scaled.X, y - y.mean(), pb="lasso", alphas=alphas)[1]
        return [(coef, float(y.mean())) for coef in coefs.T]

    return best_of_path(training, path)


def fit_skglm(training: Training) -> Fitted:
    """Return the fit of skglm, of `SHORT` penalties: MCP for numbers, and l1 for two classes and counts."""
    skglm, loss = import_module("skglm"), training.target.loss
    if loss == "squared":
        model = skglm.MCPRegression(warm_start=True)
    elif loss == "logistic":
        model = skglm.SparseLogisticRegression(warm_start=True)
    else:
        datafit, penalty = import_module("skglm.datafits").Poisson(), import_module("skglm.penalties").L1(1.0)
        solver = import_module("skglm.solvers").ProxNewton(fit_intercept=True, warm_start=True)
        model = skglm.GeneralizedLinearEstimator(datafit, penalty, solver)

    def path(scaled: Scaled, y: np.ndarray, weights: np.ndarray | None) -> list[tuple[np.ndarray, float]]:
        gradient = y if loss != "logistic" else y.astype(float)
        found = []
        for alpha in penalties(scaled, gradient, SHORT):
            if loss == "poisson":
                model.penalty.alpha = alpha
            else:
                model.set_params(alpha=alpha)
            model.fit(scaled.X, y)
            found.append((np.ravel(model.coef_).copy(), float(np.ravel(model.intercept_)[0])))
        return found

    return best_of_path(training, path)


def fit_coxnet(training: Training) -> Fitted:
    """Return the fit of the lasso of Cox's partial likelihood by scikit-survival, of its own penalties."""
    kind = import_module("sksurv.linear_model").CoxnetSurvivalAnalysis
    times = import_module("sksurv.util").Surv
    whole = Scaled.of(training.X)
    alphas = kind(l1_ratio=1.0).fit(whole.X, _survival(times, training.y)).alphas_

    def path(scaled: Scaled, y: np.ndarray, weights: np.ndarray | None) -> list[tuple[np.ndarray, float]]:
        model = kind(l1_ratio=1.0, alphas=alphas).fit(scaled.X, _survival(times, y))
        return [(coef, 0.0) for coef in model.coef_.T]

    return best_of_path(training, path)


def _survival(times: Any, y: np.ndarray) -> Any:
    return times.from_arrays(event=y[:, 1].astype(bool), time=y[:, 0])
