"""Sparse gamma regression, for amounts."""

from __future__ import annotations

from typing import Any, ClassVar

from hardthresh.core.result import Result
from hardthresh.losses import Gamma, Loss

from ..documentation import public_estimator
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS, one_ridge, tenth_of_features, with_defaults
from .cross_validation import SparseLinearModelCV
from .dispersion import fitted_dispersion
from .problem import Problem
from .regressor import SparseRegressor


@public_estimator(
    "gamma_regression",
    upgrades=[
        tenth_of_features,
        with_defaults(bounds=None, categorical_features=None),
        CHOSEN_BY_EBIC,
    ],
)
class SparseGammaRegression(SparseRegressor):
    r"""Gamma regression with at most k features, for amounts such as costs and durations.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \bigl(u_i - \log y_i + y_i e^{-u_i} - 1\bigr)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad u_i = x_i^\top b + c + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    with amounts :math:`y_i > 0`, weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if
    not standardised). The expected amount is :math:`e^{u_i}`, and the standard deviation is proportional to it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {coefficients}
    {dispersion}
    {attributes}

    See Also
    --------
    SparseGammaRegressionCV : Chooses k by cross-validation.

    Notes
    -----
    {guarantee}

    Multiplying all amounts by a constant, as a change of unit does, changes only the intercept.

    There is no `transform` method, because scikit-learn expects that transformers accept any target, and amounts must
    be positive. In a pipeline the model can therefore only be the last step. ``X[:, model.get_support()]`` selects the
    chosen columns, and ``SelectFromModel(SparseGammaRegression(), threshold=1e-12)`` does so within a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseGammaRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = np.exp(X[:, 4] - X[:, 30] / 2) * rng.gamma(5.0, 1 / 5.0, 200)
    >>> model = SparseGammaRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, model.coef_[model.support_].round(1)
    (array([ 4, 30]), array([ 1. , -0.5]))
    """

    _loss_type: ClassVar[type[Loss]] = Gamma

    dispersion_: float

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        return {"dispersion_": fitted_dispersion(result)}


@public_estimator(
    "gamma_regression_cv",
    upgrades=[one_ridge(Gamma.default_ridge), with_defaults(bounds=None, categorical_features=None), CHOSEN_BY_FOLDS],
)
class SparseGammaRegressionCV(SparseLinearModelCV, SparseGammaRegression):
    """Gamma regression with the number of features chosen by cross-validation.

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
    >>> from hardthresh import SparseGammaRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = np.exp(X[:, 4] - X[:, 30] / 2) * rng.gamma(5.0, 1 / 5.0, 200)
    >>> SparseGammaRegressionCV(n_nonzero_coefs=range(1, 6), rule="one_standard_error").fit(X, y).support_
    array([ 4, 30])
    """
