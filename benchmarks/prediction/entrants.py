"""Who takes part: estimators of other packages, tuned on the training rows alone, and ours at their defaults.

Their settings are those of `hardthresh.comparison`, but for the relaxed fits.

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
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

import hardthresh
from hardthresh.comparison import scikit_learn
from hardthresh.comparison.other_packages import abess_model, fold_numbers
from hardthresh.comparison.scaling import Scaled

from .instance import LOGISTIC, SQUARED, Fit, Training
from .relaxed_lasso import RelaxedLassoCV
from .relaxed_logistic import RelaxedLogisticCV

FOLDS = 5


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
    ridge_logistic = _always(scikit_learn.ridge_logistic)
    found = [
        Entrant("lasso", learn, True, {SQUARED: _always(scikit_learn.lasso)}),
        Entrant("relaxed lasso", _edition("scikit-learn", 3), True, {SQUARED: _always(RelaxedLassoCV)}),
        Entrant("elastic net", learn, True, {SQUARED: _always(scikit_learn.elastic_net)}),
        Entrant("OMP", learn, True, {SQUARED: _always(scikit_learn.pursuit)}),
        Entrant("l1 logistic", learn, True, {LOGISTIC: _linear(_l1_logistic)}),
        Entrant("relaxed l1 logistic", learn, True, {LOGISTIC: _linear(_relaxed_logistic)}),
        Entrant(
            "ridge",
            learn,
            False,
            {SQUARED: _always(scikit_learn.ridge), LOGISTIC: ridge_logistic},
        ),
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


def _linear(make: Callable[[Any, np.ndarray], Any]) -> Callable[[Training], Fit]:
    """Return a function that scales rows and fits a linear estimator, which `make` returns for them."""
    return partial(_fit_linear, make)


def _always(make: Callable[[int], Any]) -> Callable[[Training], Fit]:
    """Return the same for an estimator that does not depend on the rows, with its number of folds."""
    return _linear(lambda X, y: make(FOLDS))


def _fit_linear(make: Callable[[Any, np.ndarray], Any], rows: Training) -> Fit:
    scaled = Scaled.of(rows.X)
    model = make(scaled.X, rows.y).fit(scaled.X, rows.y)
    return LinearFit(*scaled.on_data(model.coef_, np.ravel(model.intercept_)[0]), rows.loss)


def _l1_logistic(X: Any, y: np.ndarray) -> Any:
    return scikit_learn.l1_logistic(X, y, FOLDS)


def _relaxed_logistic(X: Any, y: np.ndarray) -> Any:
    penalised = LogisticRegression(l1_ratio=1.0, **scikit_learn.LIBLINEAR)
    return RelaxedLogisticCV(penalised, scikit_learn.logistic_weights(X, y), FOLDS)


def _forest(rows: Training) -> Fit:
    model = scikit_learn.forest(rows.loss).fit(rows.X, rows.y)
    return EstimatorFit(model, rows.loss, int(np.count_nonzero(model.feature_importances_)))


def _fit_abess(criterion: str, rows: Training) -> Fit:
    """Fit abess with its default range of sizes, chosen by cross-validation or by an information criterion."""
    scaled = Scaled.of(rows.X)
    by_folds = criterion == "cv"
    kind = "LogisticRegression" if rows.loss == LOGISTIC else "LinearRegression"
    model = abess_model(kind, FOLDS if by_folds else None)
    model.fit(scaled.X, rows.y, cv_fold_id=_folds(rows) if by_folds else None)
    return LinearFit(*scaled.on_data(model.coef_, np.ravel(model.intercept_)[0]), rows.loss)


def _folds(rows: Training) -> np.ndarray:
    """Return the number of the fold of each row, as scikit-learn splits them."""
    splitter = StratifiedKFold(FOLDS) if rows.loss == LOGISTIC else KFold(FOLDS)
    return fold_numbers(rows.y.size, [*splitter.split(rows.X, rows.y)])
