"""Sparse Tweedie regression, for amounts of which many are zero."""

from __future__ import annotations

from typing import Any, ClassVar

from hardthresh.core.result import Result
from hardthresh.losses import Loss, Tweedie

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS
from .cross_validation import SparseLinearModelCV
from .dispersion import fitted_dispersion
from .problem import Problem
from .regressor import SparseRegressor


@public_estimator("tweedie_regression", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(power=1.5)
class SparseTweedieRegression(SparseRegressor):
    r"""Tweedie regression with at most k features, for amounts >= 0 of which some are exactly zero.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \Bigl(\frac{\mu_i^{2-p}}{2-p} - y_i \frac{\mu_i^{1-p}}{1-p}
              + \frac{y_i^{2-p}}{(1-p)(2-p)}\Bigr) + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad
              \log \mu_i = x_i^\top b + c + o_i, \quad \text{with at most } k \text{ non-zero } b_j

    with amounts :math:`y_i \ge 0`, weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if
    not standardised). The expected amount is :math:`\mu_i`, and the variance is proportional to :math:`\mu_i^p`.

    Parameters
    ----------
    power : float
        The power p of the variance function, 1 < p < 2. Amounts are sums of many small terms if p is near 1, and of few
        large terms if p is near 2.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {dispersion}
    {attributes}

    See Also
    --------
    SparseTweedieRegressionCV : Chooses k by cross-validation.
    SparsePoissonRegression : The power 1.
    SparseGammaRegression : The power 2, for amounts > 0.

    Notes
    -----
    {guarantee}

    Multiplying all amounts by a constant, as a change of unit does, changes only the intercept and the scale of the
    objective. If all rows with some value of a feature have the amount zero, the loss has no finite minimiser; `fit`
    then issues a warning that names the feature.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseTweedieRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> claims = rng.poisson(np.exp(X[:, 4] - X[:, 30] / 2))
    >>> y = np.where(claims > 0, rng.gamma(np.maximum(claims, 1), 100.0), 0.0)
    >>> model = SparseTweedieRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, round(model.coef_[4], 1)
    (array([ 4, 30]), np.float64(1.0))
    """

    _loss_type: ClassVar[type[Loss]] = Tweedie

    power: float
    dispersion_: float

    @property
    def _loss(self) -> Loss:
        return Tweedie(self.power)

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        return {"dispersion_": fitted_dispersion(result)}


@public_estimator("tweedie_regression_cv", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(power=1.5)
class SparseTweedieRegressionCV(SparseLinearModelCV, SparseTweedieRegression):
    """Tweedie regression with the number of features chosen by cross-validation.

    Parameters
    ----------
    power : float
        As in `SparseTweedieRegression`.
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
    >>> from hardthresh import SparseTweedieRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 50))
    >>> claims = rng.poisson(np.exp(X[:, 4] - X[:, 30] / 2))
    >>> y = np.where(claims > 0, rng.gamma(np.maximum(claims, 1), 100.0), 0.0)
    >>> SparseTweedieRegressionCV(n_nonzero_coefs=range(1, 6), rule="one_standard_error").fit(X, y).support_
    array([ 4, 30])
    """
