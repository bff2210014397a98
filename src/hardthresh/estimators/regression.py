"""Sparse linear regression."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from hardthresh.core.registry import register

from .cross_validation import ChoosesBudget
from .documentation import documented, names_methods
from .linear import SparseLinearModel


@documented
@names_methods(SparseLinearModel)
@register("estimator", "linear_regression")
class SparseLinearRegression(RegressorMixin, SparseLinearModel):
    r"""Least squares with at most k features.

    .. math:: \min_{b, c} \; \frac{1}{2 \sum_i s_i} \sum_i s_i (x_i^\top b + c + o_i - y_i)^2
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2 \quad \text{with at most } k \text{ non-zero } b_j

    with weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if not standardised).

    Parameters
    ----------
    {budget}
    {parameters}
    {warm}
    {seed}

    Attributes
    ----------
    coef_ : array, shape (n_features,)
        Coefficients on the scale of the data; exactly 0 for features not chosen.
    intercept_ : float
        The intercept.
    support_ : array of int
        The chosen and the always-included features, increasing.
    n_nonzero_coefs_, n_nonzero_groups_ : int
        How many features the model uses besides those of `always_include`, or with `groups` how many groups: as many as
        it may, or fewer where fewer columns vary, or fewer fit the rows exactly.
    groups_ : tuple
        With `groups`, the labels of the chosen ones, in the order in which they first appear.
    scale_ : array, shape (n_features,)
        Standard deviation of each column as used in the fit, 0 for a constant one; ``coef_ * scale_`` is the effect
        per standard deviation.
    n_iter_, converged_, stop_reason_, objective_, history_ :
        Iterations; whether and why the solver stopped; the minimised objective; what happened along the way.
    offset_used_ : bool
        Whether the fit had an offset; predictions then need one too.
    n_features_in_, feature_names_in_ :
        The columns seen in `fit`.

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

    _loss: ClassVar[str] = "squared"
    _loss_scale: ClassVar[float] = 2.0  # the score is minus the squared error, the loss is half of it

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return predictions, shape (n_samples,). Only the chosen columns are read.

        Parameters
        ----------
        X : array, scipy.sparse array or data frame, shape (n_samples, n_features)
            Data.
        offset : array, shape (n_samples,), optional
            A known part of the prediction.
        """
        return self._linear_predictor(X, offset, "predict")


@documented
@names_methods(ChoosesBudget)
@register("estimator", "linear_regression_cv", lambda: [SparseLinearRegressionCV(cv=3)])
class SparseLinearRegressionCV(ChoosesBudget, SparseLinearRegression):
    """Least squares with the number of features chosen by cross-validation.

    Parameters
    ----------
    {cv_parameters}
    {parameters}
    {seed}

    Attributes
    ----------
    best_n_nonzero_coefs_, best_n_nonzero_groups_ : int
        The number of features that the rule chose, or with `groups` the number of these.
    n_nonzero_coefs_, n_nonzero_groups_ : int
        How many of them the model uses: fewer than chosen where fewer columns vary, or fewer fit the rows exactly.
    {cv_attributes}
    coef_, intercept_, support_, ... :
        Of the fit on all data with the chosen number, as in `SparseLinearRegression`: the same as of that model
        fitted alone.

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

    _default_scorer: ClassVar[str] = "neg_mean_squared_error"
