"""Sparse Poisson regression, for counts and rates."""

from __future__ import annotations

from typing import ClassVar

from hardthresh.losses import Loss, Poisson

from ..documentation import public_estimator
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS, one_ridge, tenth_of_features, with_defaults
from .cross_validation import SparseLinearModelCV
from .regressor import SparseRegressor


@public_estimator(
    "poisson_regression",
    upgrades=[
        tenth_of_features,
        with_defaults(bounds=None, categorical_features=None),
        CHOSEN_BY_EBIC,
    ],
)
class SparsePoissonRegression(SparseRegressor):
    r"""Poisson regression with at most k features, for counts and rates.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \bigl(e^{u_i} - y_i u_i - y_i + y_i \log y_i\bigr)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad u_i = x_i^\top b + c + o_i,
              \quad \text{with at most } k \text{ non-zero } b_j

    with counts :math:`y_i \ge 0`, weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if
    not standardised). The expected count is :math:`e^{u_i}`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {coefficients}
    {attributes}

    See Also
    --------
    SparsePoissonRegressionCV : Chooses k by cross-validation.

    Notes
    -----
    {guarantee}

    For counts of events in observation times t, pass ``offset=log(t)``; or pass the rates (counts divided by t) as y,
    with ``sample_weight=t``.

    If all rows with some value of a feature have the count zero, the loss has no finite minimiser; `fit` then issues a
    warning that names the feature. A small ridge makes the coefficient finite.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparsePoissonRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = rng.poisson(np.exp(X[:, 4] - X[:, 30] / 2))
    >>> model = SparsePoissonRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, model.coef_[model.support_].round(1)
    (array([ 4, 30]), array([ 1. , -0.5]))
    """

    _loss_type: ClassVar[type[Loss]] = Poisson


@public_estimator(
    "poisson_regression_cv",
    upgrades=[one_ridge(Poisson.default_ridge), with_defaults(bounds=None, categorical_features=None), CHOSEN_BY_FOLDS],
)
class SparsePoissonRegressionCV(SparseLinearModelCV, SparsePoissonRegression):
    """Poisson regression with the number of features chosen by cross-validation.

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
    >>> from hardthresh import SparsePoissonRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = rng.poisson(np.exp(X[:, 4] - X[:, 30] / 2))
    >>> SparsePoissonRegressionCV(n_nonzero_coefs=range(1, 6), rule="one_standard_error").fit(X, y).support_
    array([ 4, 30])
    """
