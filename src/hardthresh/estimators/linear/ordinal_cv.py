"""Sparse regression of ordered classes with the number of features chosen by cross-validation."""

from __future__ import annotations

from typing import Any

from hardthresh.core.errors import InvalidInputError

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..table import Table
from ..upgrades import CHOSEN_BY_FOLDS
from .cross_validation import SparseLinearModelCV
from .joint_prediction import OrdinalPrediction
from .ordinal import SparseOrdinalRegression
from .prediction import PredictionModel
from .problem import Problem


@public_estimator("ordinal_regression_cv", intercept_and_scale="standardize : bool", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(without=["fit_intercept"])
class SparseOrdinalRegressionCV(SparseLinearModelCV, SparseOrdinalRegression):
    """Regression of ordered classes with the number of features chosen by cross-validation.

    Parameters
    ----------
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

    Notes
    -----
    {cv_guarantee}

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

    def _prediction_model(self, loss: Any, table: Table) -> PredictionModel:
        return OrdinalPrediction(loss, self.classes_.size)

    def _fold_paths(self, problem: Problem) -> None:
        """Return None: each fold is fitted alone."""

    def _checked_averaging(self, prediction: PredictionModel) -> str:
        if self.averaging == "stacking":
            raise InvalidInputError('averaging="stacking" is not for ordered classes; use averaging="exponential"')
        return super()._checked_averaging(prediction)
