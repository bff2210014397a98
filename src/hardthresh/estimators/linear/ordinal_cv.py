"""Sparse regression of ordered classes with the number of features chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.solver import Solver

from ..documentation import public_estimator
from ..table import Table
from .cross_validation import SparseLinearModelCV
from .joint_prediction import OrdinalPrediction
from .ordinal import SparseOrdinalRegression
from .prediction import PredictionModel
from .problem import Problem


@public_estimator("ordinal_regression_cv", intercept_and_scale="standardize : bool")
class SparseOrdinalRegressionCV(SparseLinearModelCV, SparseOrdinalRegression):
    """Regression of ordered classes with the number of features chosen by cross-validation.

    Parameters
    ----------
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseOrdinalRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 20))
    >>> y = np.searchsorted([-1.0, 1.0], 2 * X[:, 4] - 2 * X[:, 11] + rng.logistic(size=300))
    >>> SparseOrdinalRegressionCV(n_nonzero_coefs=range(4), averaging="none").fit(X, y).support_
    array([ 4, 11])
    """

    def __init__(
        self,
        *,
        n_nonzero_coefs: str | int | Iterable[int] = "auto",
        groups: Any = None,
        n_nonzero_groups: str | int | Iterable[int] = "auto",
        alphas: str | float | Iterable[float] = "auto",
        averaging: str = "auto",
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        always_include: Any = None,
        positive: bool = False,
        bounds: Any = None,
        categorical_features: Any = "from_dtype",
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.groups = groups
        self.n_nonzero_groups = n_nonzero_groups
        self.alphas = alphas
        self.averaging = averaging
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.always_include = always_include
        self.positive = positive
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _prediction_model(self, loss: Any, table: Table) -> PredictionModel:
        return OrdinalPrediction(loss, self.classes_.size)

    def _fold_paths(self, problem: Problem) -> None:
        """Return None: each fold is fitted alone."""

    def _checked_averaging(self, prediction: PredictionModel) -> str:
        if self.averaging == "stacking":
            raise InvalidInputError('averaging="stacking" is not for ordered classes; use averaging="exponential"')
        return super()._checked_averaging(prediction)
