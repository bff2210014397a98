"""Methods of scikit-learn, with their penalty chosen in the inner folds: settings that the benchmark has, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import (
    ElasticNetCV,
    GammaRegressor,
    LassoCV,
    LogisticRegressionCV,
    OrthogonalMatchingPursuitCV,
    PoissonRegressor,
    RidgeCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import l1_min_c

from .scaling import Scaled
from .training import Fitted, Training, best_of_path, linear_fit

_RELEASE = tuple(map(int, sklearn.__version__.split(".")[:2]))
TREES = 200
LIBLINEAR = {"solver": "liblinear", "intercept_scaling": 10.0, "random_state": 0}
"""liblinear penalises the intercept, too; the scaling divides that by ten. saga would not, but takes 5 to 50 times as
long and ends before it has converged: on three of five sets its loss was lower, with up to ten times the features."""


def lasso(cv: Any) -> Any:
    """Return the lasso with 100 penalties."""
    return LassoCV(cv=cv)


def elastic_net(cv: Any) -> Any:
    """Return the elastic net with 50 penalties for each of three mixtures."""
    count: dict[str, Any] = {"alphas" if _RELEASE >= (1, 7) else "n_alphas": 50}
    return ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=cv, **count)


def pursuit(cv: Any) -> Any:
    """Return orthogonal matching pursuit."""
    return OrthogonalMatchingPursuitCV(cv=cv)


def ridge(cv: Any) -> Any:
    """Return ridge regression, whose penalty leaving out one row chooses, because that has a closed form.

    Among 41 penalties between a weight of next to nothing and one beside which the data are nothing.
    """
    return RidgeCV(np.logspace(-4, 6, 41))


def logistic(cv: Any, l1_ratio: float, **settings: Any) -> Any:
    """Return logistic regression with an l1 penalty (1), or a ridge (0), chosen by log loss."""
    if _RELEASE >= (1, 8):
        settings |= {"l1_ratios": (l1_ratio,), "use_legacy_attributes": False}
    else:
        settings["penalty"] = "l1" if l1_ratio else "l2"
    return LogisticRegressionCV(cv=cv, scoring="neg_log_loss", **settings)


def logistic_weights(X: Any, y: np.ndarray) -> np.ndarray:
    """Return 20 weights of the loss: from the largest that leaves no feature to a thousand times that."""
    return np.asarray(l1_min_c(X, y, loss="log") * np.logspace(0, 3, 20))


def l1_logistic(X: Any, y: np.ndarray, cv: Any) -> Any:
    """Return l1 logistic regression of two classes."""
    return logistic(cv, 1.0, Cs=logistic_weights(X, y), **LIBLINEAR)


def ridge_logistic(cv: Any) -> Any:
    """Return ridge logistic regression."""
    return logistic(cv, 0.0, Cs=np.logspace(-7, 2, 19))


def forest(loss: str, seed: int = 0) -> Any:
    """Return a random forest, with the usual share of columns for each split."""
    if loss == "logistic":
        return RandomForestClassifier(TREES, max_features="sqrt", random_state=seed)
    criterion = "poisson" if loss == "poisson" else "squared_error"
    return RandomForestRegressor(TREES, criterion=criterion, max_features=1 / 3, random_state=seed)


def fit_linear(make: Any, training: Training) -> Fitted:
    """Return the fit of a linear model that scikit-learn cross-validates itself."""
    scaled = Scaled.of(training.X)
    model = make(training.folds).fit(scaled.X, training.y, **training.fit_parameters)
    return linear_fit(training.target.loss, scaled, model.coef_, model.intercept_)


def fit_l1_logistic(training: Training) -> Fitted:
    """Return the fit of l1 logistic regression; of several classes, of each against the rest."""
    scaled = Scaled.of(training.X)
    many = len(training.target.classes) > 2
    if not many:
        model = l1_logistic(scaled.X, training.y, training.folds)
        model.fit(scaled.X, training.y, **training.fit_parameters)
        return linear_fit("logistic", scaled, model.coef_, model.intercept_)
    weights = min(
        (logistic_weights(scaled.X, (training.y == place).astype(int)) for place in np.unique(training.y)),
        key=lambda found: float(found[0]),
    )
    one = logistic(training.folds, 1.0, Cs=weights, **LIBLINEAR)
    each = OneVsRestClassifier(one).fit(scaled.X, training.y)
    used = np.any([np.ravel(model.coef_) != 0 for model in each.estimators_], axis=0)
    return Fitted(lambda X: np.asarray(each.predict_proba(scaled.apply(X))), scaled.columns[np.flatnonzero(used)])


def fit_ridge_of_log_mean(training: Training) -> Fitted:
    """Return the fit of a ridge Poisson or gamma regression, of 13 penalties from 100 to 0.0001."""
    kind = PoissonRegressor if training.target.loss == "poisson" else GammaRegressor

    def path(scaled: Scaled, y: np.ndarray, weights: np.ndarray | None) -> list[tuple[np.ndarray, float]]:
        model = kind(
            max_iter=1000, warm_start=True, solver="newton-cholesky" if y.size > scaled.columns.size else "lbfgs"
        )
        found = []
        for alpha in np.logspace(2, -4, 13):
            model.set_params(alpha=alpha).fit(scaled.X, y, sample_weight=weights)
            found.append((model.coef_.copy(), float(model.intercept_)))
        return found

    return best_of_path(training, path)


def fit_forest(training: Training) -> Fitted:
    """Return the fit of a random forest."""
    loss = training.target.loss
    model = forest(loss, training.seed).fit(training.X, training.y, **training.fit_parameters)
    return Fitted(model.predict_proba if loss == "logistic" else model.predict, None)
