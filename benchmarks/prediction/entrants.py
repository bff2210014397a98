"""Who takes part: estimators of other packages, tuned on the training rows alone, and ours at their defaults.

Other packages are given columns with mean 0 and standard deviation 1 on the training rows (sparse columns are only
scaled); ours standardise by themselves. Everybody has an intercept and, where it cross-validates, the same five folds:
training rows are in random order, so `cv=5` makes random folds, stratified for classes. The exception is the ridge of
squared loss, which scikit-learn chooses by leaving out one row, because that has a closed form.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import (
    ElasticNetCV,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    OrthogonalMatchingPursuitCV,
    RidgeCV,
)
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import l1_min_c

import hardthresh

from .instance import LOGISTIC, SQUARED, Fit, Training
from .relaxed_lasso import RelaxedLassoCV
from .relaxed_logistic import RelaxedLogisticCV

FOLDS = 5
TREES = 200


@dataclass(frozen=True, slots=True)
class LinearFit:
    """A linear predictor on the scale of the data."""

    coef: np.ndarray
    intercept: float
    loss: str

    @property
    def features(self) -> int:
        """The number of coefficients that are not 0."""
        return int(np.count_nonzero(self.coef))

    def predict(self, X: Any) -> np.ndarray:
        """Return means, or probabilities of class 1."""
        u = X @ self.coef + self.intercept
        return expit(u) if self.loss == LOGISTIC else u


@dataclass(frozen=True, slots=True)
class EstimatorFit:
    """An estimator that predicts by itself, such as a forest, or an average of several models."""

    model: Any
    loss: str
    features: int
    coef: np.ndarray | None = None
    intercept: float | None = None

    def predict(self, X: Any) -> np.ndarray:
        """Return means, or probabilities of class 1."""
        return self.model.predict_proba(X)[:, 1] if self.loss == LOGISTIC else self.model.predict(X)


@dataclass(frozen=True, slots=True)
class Entrant:
    """A method with its settings.

    Attributes
    ----------
    label : str
        The name in tables and in kept results.
    edition : str
        Results of another edition are not reused: the version of the package, and that of the settings here.
    sparse : bool
        Whether it chooses features, so that ours are compared with it.
    fitters : dict
        For each loss that it takes, the function that fits training rows.
    only_real : bool
        Whether it takes part with real sets only: a forest cannot compete where the true model is linear.
    ours : bool
        Whether it belongs to this package.
    """

    label: str
    edition: str
    sparse: bool
    fitters: dict[str, Callable[[Training], Fit]]
    only_real: bool = False
    ours: bool = False

    def fit(self, training: Training) -> tuple[Fit, float]:
        """Return the fit and its CPU seconds. Warnings are ignored: who does not converge is judged by the answer."""
        with warnings.catch_warnings(action="ignore"):
            start = time.process_time()
            fit = self.fitters[training.loss](training)
            return fit, time.process_time() - start


def peers() -> list[Entrant]:
    """Return the methods of other packages that are installed here."""
    learn = _edition("scikit-learn")
    found = [
        Entrant("lasso", learn, True, {SQUARED: _linear(_lasso)}),
        Entrant("relaxed lasso", _edition("scikit-learn", 3), True, {SQUARED: _linear(_relaxed_lasso)}),
        Entrant("elastic net", learn, True, {SQUARED: _linear(_elastic_net)}),
        Entrant("OMP", learn, True, {SQUARED: _linear(_pursuit)}),
        Entrant("l1 logistic", learn, True, {LOGISTIC: _linear(_l1_logistic)}),
        Entrant("relaxed l1 logistic", learn, True, {LOGISTIC: _linear(_relaxed_logistic)}),
        Entrant("ridge", learn, False, {SQUARED: _linear(_ridge), LOGISTIC: _linear(_ridge_logistic)}),
        Entrant(
            "random forest", _edition("scikit-learn", 2), False, {SQUARED: _forest, LOGISTIC: _forest}, only_real=True
        ),
    ]
    if (edition := _edition("abess")) is not None:
        for label, criterion in (("abess CV", "cv"), ("abess GIC", "gic")):
            fit = partial(_fit_abess, criterion)
            found.append(Entrant(label, edition, True, {SQUARED: fit, LOGISTIC: fit}))
    return found


# ours ------------------------------------------------------------------------------------------------------------

OURS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "hardthresh": {SQUARED: ("SparseLinearRegressionCV", {}), LOGISTIC: ("SparseLogisticRegressionCV", {})},
}
"""Ours by name: for each loss the class and its keyword arguments. A variant may lack a loss."""


def read_variants(file: Path) -> dict[str, Any]:
    """Return a table like `OURS` from a JSON file."""
    return json.loads(file.read_text(encoding="utf-8"))


def ours(variants: dict[str, Any]) -> list[Entrant]:
    """Return our estimators; an edition is a checksum of the package and of the settings."""
    found = []
    for label, by_loss in variants.items():
        settings = crc32(json.dumps(by_loss, sort_keys=True).encode(), _package_checksum())
        fitters = {loss: partial(_fit_ours, name, keywords) for loss, (name, keywords) in by_loss.items()}
        found.append(Entrant(label, f"{settings:08x}", True, fitters, ours=True))
    return found


@lru_cache
def _package_checksum() -> int:
    folder = Path(hardthresh.__file__).parent
    sources = sorted([*folder.rglob("*.py"), *folder.rglob("*.c")])
    return crc32(b"".join(file.read_bytes() for file in sources))


def _fit_ours(name: str, keywords: dict[str, Any], rows: Training) -> Fit:
    model = getattr(hardthresh, name)(**keywords).fit(rows.X, rows.y)
    coef = np.asarray(model.coef_, dtype=np.float64).ravel()
    intercept = float(np.ravel(model.intercept_)[0])
    return EstimatorFit(model, rows.loss, int(np.count_nonzero(coef)), coef, intercept)


# other packages --------------------------------------------------------------------------------------------------


def _edition(package: str, settings: int = 1) -> str | None:
    """Return a package with its version, None if it is not installed. Settings here that change get another number."""
    try:
        return f"{package} {version(package)}, settings {settings}"
    except PackageNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Scaled:
    """Training rows whose columns have standard deviation 1 and, unless sparse, mean 0; constant ones are left out."""

    X: Any
    y: np.ndarray
    columns: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    width: int

    @classmethod
    def of(cls, rows: Training) -> Scaled:
        """Return the rows scaled."""
        X = rows.X
        mean = np.asarray(X.mean(axis=0)).ravel()
        squares = X.multiply(X) if sparse.issparse(X) else X**2
        moments = np.asarray(squares.mean(axis=0)).ravel()
        scale = np.sqrt(np.maximum(moments - mean**2, 0)) if sparse.issparse(X) else X.std(axis=0)
        columns = np.flatnonzero(scale > 1e-7 * np.sqrt(moments))  # of a constant column rounding leaves about 1e-8
        if sparse.issparse(X):
            scaled = (X[:, columns] @ sparse.diags(1.0 / scale[columns])).tocsc()
            mean = np.zeros_like(mean)
        else:
            scaled = np.asfortranarray((X[:, columns] - mean[columns]) / scale[columns])
        return cls(scaled, rows.y, columns, mean[columns], scale[columns], X.shape[1])

    def fit(self, coef: np.ndarray, intercept: float, loss: str) -> LinearFit:
        """Return a model of these columns on the scale of the data."""
        whole = np.zeros(self.width)
        whole[self.columns] = np.ravel(coef) / self.scale
        return LinearFit(whole, float(intercept) - float(self.mean @ whole[self.columns]), loss)


def _linear(make: Callable[[Scaled], Any]) -> Callable[[Training], Fit]:
    """Return a function that scales rows and fits a linear estimator to them."""
    return partial(_fit_linear, make)


def _fit_linear(make: Callable[[Scaled], Any], rows: Training) -> Fit:
    scaled = Scaled.of(rows)
    model = make(scaled).fit(scaled.X, scaled.y)
    return scaled.fit(model.coef_, np.ravel(model.intercept_)[0], rows.loss)


def _lasso(rows: Scaled) -> Any:
    return LassoCV(cv=FOLDS)


def _relaxed_lasso(rows: Scaled) -> Any:
    return RelaxedLassoCV(cv=FOLDS)


def _pursuit(rows: Scaled) -> Any:
    return OrthogonalMatchingPursuitCV(cv=FOLDS)


def _elastic_net(rows: Scaled) -> Any:
    return ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], alphas=50, cv=FOLDS)


def _ridge(rows: Scaled) -> Any:
    """Choose among 41 penalties between a weight of next to nothing and one beside which the data are nothing."""
    return RidgeCV(np.logspace(-4, 6, 41))


def _logistic(**settings: Any) -> Any:
    return LogisticRegressionCV(cv=FOLDS, scoring="neg_log_loss", use_legacy_attributes=False, **settings)


LIBLINEAR = {"solver": "liblinear", "intercept_scaling": 10.0, "random_state": 0}
"""liblinear penalises the intercept, too; the scaling divides that by ten. saga would not, but takes 5 to 50 times as
long and ends before it has converged: on three of five sets its loss was lower, with up to ten times the features."""


def _weights(rows: Scaled) -> np.ndarray:
    """Return 20 weights of the loss: from the largest that leaves no feature to a thousand times that."""
    return l1_min_c(rows.X, rows.y, loss="log") * np.logspace(0, 3, 20)


def _l1_logistic(rows: Scaled) -> Any:
    return _logistic(Cs=_weights(rows), l1_ratios=(1.0,), **LIBLINEAR)


def _relaxed_logistic(rows: Scaled) -> Any:
    return RelaxedLogisticCV(LogisticRegression(l1_ratio=1.0, **LIBLINEAR), _weights(rows), FOLDS)


def _ridge_logistic(rows: Scaled) -> Any:
    return _logistic(Cs=np.logspace(-7, 2, 19), l1_ratios=(0.0,))


def _forest(rows: Training) -> Fit:
    kind = RandomForestClassifier if rows.loss == LOGISTIC else RandomForestRegressor
    features: Any = "sqrt" if rows.loss == LOGISTIC else 1 / 3  # the usual shares of columns for each split
    model = kind(TREES, max_features=features, random_state=0).fit(rows.X, rows.y)
    return EstimatorFit(model, rows.loss, int(np.count_nonzero(model.feature_importances_)))


def _fit_abess(criterion: str, rows: Training) -> Fit:
    """Fit abess with its default range of sizes, chosen by cross-validation or by an information criterion.

    Cross-validation scores by the loss, which for classes is not its default, but is what is measured here.
    """
    from abess.linear import LinearRegression, LogisticRegression

    scaled = Scaled.of(rows)
    settings: dict[str, Any] = {"cv": FOLDS, "cv_score": "test_loss"} if criterion == "cv" else {"ic_type": criterion}
    model = (LogisticRegression if rows.loss == LOGISTIC else LinearRegression)(thread=1, **settings)
    model.fit(scaled.X, scaled.y, cv_fold_id=_folds(rows) if criterion == "cv" else None)
    return scaled.fit(model.coef_, np.ravel(model.intercept_)[0], rows.loss)


def _folds(rows: Training) -> np.ndarray:
    """Return the number of the fold of each row, as scikit-learn splits them."""
    splitter = StratifiedKFold(FOLDS) if rows.loss == LOGISTIC else KFold(FOLDS)
    numbers = np.empty(rows.y.size, dtype=int)
    for number, (_, test) in enumerate(splitter.split(rows.X, rows.y)):
        numbers[test] = number
    return numbers
