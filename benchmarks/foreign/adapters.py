"""Our models under the names and parameters of scikit-learn's, for its own tests.

Parameters without a meaning here, such as the name of a solver, are accepted and ignored. A penalty that we do not have
is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight

from hardthresh import SparseLinearRegression, SparseLinearRegressionCV, SparseLogisticRegression
from hardthresh.constraints import Sparsity
from hardthresh.core import Objective
from hardthresh.objectives import GramModel, LinearModel
from hardthresh.selection import path

called: set[str] = set()
"""The adapters that were called since the set was cleared: a test that calls none is not a test of ours."""

NOTHING_ELSE = {"alphas": 0.0, "averaging": "none", "standardize": False}
"""What our cross-validation does besides that of scikit-learn, switched off."""


def orthogonal_mp(
    X: Any,
    y: Any,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    precompute: Any = False,
    copy_X: bool = True,
    return_path: bool = False,
) -> Any:
    """Return the coefficients of `minimize` on least squares with at most `n_nonzero_coefs` non-zeros."""
    called.add("orthogonal_mp")
    X, y = np.asarray(X), np.asarray(y)
    models: Iterable[Objective] = (
        GramModel(X.T @ X, X.T @ column, column @ column) if precompute else LinearModel(X, column)
        for column in np.atleast_2d(y.T)
    )
    rows = 1 if precompute else len(X)
    found = [_path(model, X.shape[1], rows, n_nonzero_coefs, tol, return_path) for model in models]
    return _together(found, y.ndim, return_path)


def orthogonal_mp_gram(
    Gram: Any,
    Xy: Any,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    norms_squared: Any = None,
    copy_Gram: bool = True,
    copy_Xy: bool = True,
    return_path: bool = False,
) -> Any:
    """Return the same from sufficient statistics."""
    called.add("orthogonal_mp_gram")
    gram, cross = np.asarray(Gram), np.asarray(Xy)
    columns = np.atleast_2d(cross.T)
    explained = [column @ np.linalg.lstsq(gram, column, rcond=None)[0] for column in columns]
    squares = explained if norms_squared is None else np.atleast_1d(norms_squared)
    models = [GramModel(gram, column, float(square)) for column, square in zip(columns, squares, strict=True)]
    found = [_path(model, len(gram), 1, n_nonzero_coefs, tol, return_path) for model in models]
    return _together(found, cross.ndim, return_path)


def _path(model: Any, d: int, rows: int, k: int | None, tol: float | None, whole: bool) -> list[Any]:
    """Return coefficients of the largest model that is asked for, or of all smaller ones too."""
    largest = d if tol is not None else _size(k, d)
    found = []
    for result in path(model, Sparsity, range(1, largest + 1) if whole or tol is not None else [largest]):
        found.append(result.w)
        if tol is not None and 2 * rows * result.value <= tol:
            break
    return found if whole else found[-1:]


def _together(found: Sequence[Sequence[Any]], dimensions: int, whole: bool) -> Any:
    """Return coefficients in the shape of scikit-learn: (n_features, n_targets, n_models), or fewer axes."""
    joint = np.stack([np.stack(each, axis=1) for each in found], axis=1)
    joint = joint if whole else joint[:, :, -1]
    return joint[:, 0] if dimensions == 1 else joint


def _size(k: int | None, d: int) -> int:
    """Return the number of columns, a tenth of all by default, as in scikit-learn."""
    return max(d // 10, 1) if k is None else k


class OrthogonalMatchingPursuit(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """`SparseLinearRegression`, fitted to each target of its own, as matching pursuit is."""

    def __init__(
        self,
        *,
        n_nonzero_coefs: int | None = None,
        tol: float | None = None,
        fit_intercept: bool = True,
        precompute: Any = "auto",
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.precompute = precompute

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a model to each target, with the first number of columns that is precise enough if `tol` is given."""
        called.add("OrthogonalMatchingPursuit")
        X, y = np.asarray(X), np.asarray(y)
        self.n_nonzero_coefs_ = None if self.tol is not None else _size(self.n_nonzero_coefs, X.shape[1])
        models = [self._fitted(X, column) for column in np.atleast_2d(y.T)]
        coefficients, intercepts = np.stack([m.coef_ for m in models]), np.array([m.intercept_ for m in models])
        single = y.ndim == 1
        self.coef_ = coefficients[0] if single else coefficients
        self.intercept_ = (intercepts[0] if single else intercepts) if self.fit_intercept else 0.0
        self.n_iter_ = [model.n_nonzero_coefs_ for model in models]
        return self

    def _fitted(self, X: Any, y: Any) -> SparseLinearRegression:
        sizes = [self.n_nonzero_coefs_] if self.tol is None else range(1, X.shape[1] + 1)
        for k in sizes:
            model = SparseLinearRegression(n_nonzero_coefs=k, standardize=False, fit_intercept=self.fit_intercept)
            model.fit(X, y)
            if self.tol is not None and np.sum((y - model.predict(X)) ** 2) <= self.tol:
                break
        return model

    def predict(self, X: Any) -> Any:
        """Return predictions."""
        return X @ self.coef_.T + self.intercept_


class OrthogonalMatchingPursuitCV(RegressorMixin, BaseEstimator):
    """`SparseLinearRegressionCV` over 1 to `max_iter` columns."""

    def __init__(
        self,
        *,
        copy: bool = True,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.copy = copy
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the number of columns, and fit."""
        called.add("OrthogonalMatchingPursuitCV")
        d = np.shape(X)[1]
        largest = self.max_iter or min(max(d // 10, 5), d)
        sizes = range(1, largest + 1)
        model = SparseLinearRegressionCV(
            n_nonzero_coefs=sizes, cv=self.cv or 5, fit_intercept=self.fit_intercept, n_jobs=self.n_jobs, **NOTHING_ELSE
        )
        self.model_ = model.fit(X, y)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.n_nonzero_coefs_ = model.best_n_nonzero_coefs_
        self.n_iter_ = self.n_nonzero_coefs_
        return self

    def predict(self, X: Any) -> Any:
        """Return predictions."""
        return self.model_.predict(X)


class LogisticRegression(ClassifierMixin, BaseEstimator):
    """`SparseLogisticRegression` with all columns, and the ridge of the same problem: 1 / (C * sum of the weights)."""

    def __init__(
        self,
        penalty: Any = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all columns with a ridge."""
        called.add("LogisticRegression")
        if self.penalty in ("l1", "elasticnet") or self.l1_ratio:
            raise NotImplementedError("there is no l1 penalty here")
        weights = compute_sample_weight(self.class_weight, y)
        if sample_weight is not None:
            weights = weights * sample_weight
        strength = np.inf if self.penalty is None else self.C
        settings = {
            "n_nonzero_coefs": np.shape(X)[1],
            "alpha": 0.0 if np.isinf(strength) else 1.0 / (strength * weights.sum()),
            "standardize": False,
            "fit_intercept": self.fit_intercept,
            "class_weight": self.class_weight,
            "tol": max(self.tol**2, 1e-14),  # theirs bounds a gradient, ours a decrease of f, which is of its square
            "max_iter": self.max_iter,
            "warm_start": self.warm_start,
            "random_state": self.random_state,
        }
        if self.warm_start and hasattr(self, "model_"):
            self.model_.set_params(**settings)
        else:
            self.model_ = SparseLogisticRegression(**settings)
        self.model_.fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        self.n_iter_ = np.atleast_1d(self.model_.n_iter_)
        self.n_features_in_ = self.model_.n_features_in_
        return self

    @property
    def coef_(self) -> Any:
        """The coefficients, shape (1, n_features) or (n_classes, n_features), which may be set."""
        return np.atleast_2d(self.model_.coef_)

    @coef_.setter
    def coef_(self, value: Any) -> None:
        self.model_.coef_ = np.reshape(value, np.shape(self.model_.coef_))

    @property
    def intercept_(self) -> Any:
        """The intercepts, shape (1,) or (n_classes,), which may be set."""
        return np.atleast_1d(self.model_.intercept_)

    @intercept_.setter
    def intercept_(self, value: Any) -> None:
        self.model_.intercept_ = value if np.ndim(self.model_.intercept_) else float(np.ravel(value)[0])

    def decision_function(self, X: Any) -> Any:
        """Return the log-odds, or the predictor of each class."""
        return self.model_.decision_function(X)

    def predict(self, X: Any) -> Any:
        """Return the most probable classes."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return their logarithms."""
        return self.model_.predict_log_proba(X)


SUBSTITUTES = {
    each.__name__: each
    for each in (
        orthogonal_mp,
        orthogonal_mp_gram,
        OrthogonalMatchingPursuit,
        OrthogonalMatchingPursuitCV,
        LogisticRegression,
    )
}
"""What takes the place of scikit-learn's, by its name."""
