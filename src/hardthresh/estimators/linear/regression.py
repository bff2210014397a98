"""Sparse linear regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import namespace
from hardthresh.losses import Loss, MultiTask, Squared, VectorLoss

from ..documentation import public_estimator
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS, one_ridge, tenth_of_features, with_defaults
from .cross_validation import SparseLinearModelCV
from .regressor import SparseRegressor


@public_estimator(
    "linear_regression",
    upgrades=[
        tenth_of_features,
        with_defaults(bounds=None, categorical_features=None),
        CHOSEN_BY_EBIC,
    ],
)
class SparseLinearRegression(SparseRegressor):
    r"""Least squares regression with at most k features, for one or several outputs.

    .. math:: \min_{b, c} \; \frac{1}{2 \sum_i s_i} \sum_i s_i (x_i^\top b + c + o_i - y_i)^2
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2 \quad \text{with at most } k \text{ non-zero } b_j

    with weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if not standardised). With
    several outputs (columns of y), each output has its own coefficients, and the objective is the sum over the outputs:
    a feature is chosen for all outputs or for none. Outputs with a larger variance have more influence on the choice,
    so divide outputs in different units by their standard deviations.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_ : array, shape (n_features,) or (n_outputs, n_features)
        Coefficients on the scale of the data; exactly 0 for features that were not chosen.
    intercept_ : float, or array of shape (n_outputs,)
        The intercept.
    output_names_ : array of str, shape (n_outputs,)
        The names of the columns of y, if y was a data frame.
    {attributes}

    See Also
    --------
    SparseLinearRegressionCV : Chooses k by cross-validation.

    Notes
    -----
    Cost: 5 to 20 data passes. Guarantee: that of the solver. The default solver stops at a basic feasible point (a
    minimum on its support) that longer projected gradient steps do not improve; `certificate` compares it with every
    exchange of a single feature. The solution need not be a global minimum (heuristic). `prove` tries to prove global
    optimality, and ``solver="exact"`` searches until it is proved, which may take very long.
    ``solver=BranchAndBound(time_limit=60)`` (from `hardthresh.solvers`) stops after a minute with the best features
    found, and a `ConvergenceWarning` that gives the remaining gap; `certificate` contains the bound. ``verbose=True``
    shows the progress. Ctrl-C ends `fit` without a model, and `prove` with the bounds reached.

    References
    ----------
    Qiao and Maros (2025), *Sparse Polyak* for the theory of iterative hard thresholding on this problem.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + 1
    >>> model = SparseLinearRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_
    array([ 4, 30])
    >>> model.coef_[model.support_].round(6), round(model.intercept_, 6)
    (array([ 3., -2.]), 1.0)
    """

    _loss_type: ClassVar[type[Loss]] = Squared
    _takes_outputs: ClassVar[bool] = True
    _is_column: bool = False
    """Whether the targets of the last fit had one column, which predictions then have, too."""

    def _loss_for(self, y: Any) -> Loss | VectorLoss:
        return MultiTask(self._loss) if y.ndim == 2 else self._loss

    def _outputs_of(self, y: np.ndarray) -> tuple[int, ...]:
        return () if y.ndim == 1 or y.shape[1] == 1 else (int(y.shape[1]),)

    def _encode_target(self, y: np.ndarray, *, reset: bool) -> np.ndarray:
        column = y.ndim == 2 and y.shape[1] == 1
        if reset:
            self._is_column = column
        return y[:, 0] if column else y

    def _decode_target(self, y: Any) -> Any:
        return y[:, None] if self._is_column else y

    def _fitted(self, coef: Any, intercept: Any) -> dict[str, Any]:
        fitted = super()._fitted(coef, intercept)
        if self._is_column:
            fitted |= {"coef_": coef[None, :], "intercept_": namespace(coef).reshape(intercept, (1,))}
        return fitted

    def predict(self, X: Any, offset: Any = None) -> Any:
        predictions = super().predict(X, offset)
        return predictions[:, None] if self.coef_.ndim == 2 and predictions.ndim == 1 else predictions

    predict.__doc__ = SparseRegressor.predict.__doc__


@public_estimator(
    "linear_regression_cv",
    upgrades=[one_ridge(Squared.default_ridge), with_defaults(bounds=None, categorical_features=None), CHOSEN_BY_FOLDS],
)
class SparseLinearRegressionCV(SparseLinearModelCV, SparseLinearRegression):
    """Least squares with the number of features chosen by cross-validation.

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
    >>> from hardthresh import SparseLinearRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.standard_normal(100)
    >>> SparseLinearRegressionCV(n_nonzero_coefs=range(1, 6), rule="one_standard_error").fit(X, y).support_
    array([ 4, 30])
    """
