"""Sparse linear regression."""

from __future__ import annotations

from typing import ClassVar

from hardthresh.losses import Loss, Squared

from ..documentation import public_estimator
from ..upgrades import one_ridge, tenth_of_features, with_defaults
from .cross_validation import SparseLinearModelCV
from .model import SparseRegressor


@public_estimator(
    "linear_regression", upgrades=[tenth_of_features, with_defaults(bounds=None, categorical_features=None)]
)
class SparseLinearRegression(SparseRegressor):
    r"""Least squares with at most k features.

    .. math:: \min_{b, c} \; \frac{1}{2 \sum_i s_i} \sum_i s_i (x_i^\top b + c + o_i - y_i)^2
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2 \quad \text{with at most } k \text{ non-zero } b_j

    with weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if not standardised).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {coefficients}
    {attributes}

    See Also
    --------
    SparseLinearRegressionCV : Chooses k by cross-validation.

    Notes
    -----
    Cost: 5 to 20 data passes. Guarantee: that of the solver; the default stops at a basic feasible point that longer
    projected steps do not improve, and `certificate` says how it stands against every single exchange of features.
    Global optimality is not claimed (heuristic).

    References
    ----------
    *Sparse Polyak* for the theory of iterative hard thresholding on this problem.

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


@public_estimator(
    "linear_regression_cv",
    upgrades=[one_ridge(Squared.default_ridge), with_defaults(bounds=None, categorical_features=None)],
)
class SparseLinearRegressionCV(SparseLinearModelCV, SparseLinearRegression):
    """Least squares with the number of features chosen by cross-validation.

    Parameters
    ----------
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

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
