"""Sparse linear regression by Huber's loss, for targets with outliers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import double, move
from hardthresh.core.checking import checked_number
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result, Status
from hardthresh.losses import Huber, Loss, Squared

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..soundness import check_numbers
from ..table import Table
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS
from .cross_validation import SparseLinearModelCV
from .nuisance import Fit, Nuisance, ScalarNuisance, moved, pointwise, refitted, rows_of, spread
from .problem import Problem
from .regressor import SparseRegressor

_LEAST_SCALE = 1e-8
"""Share of the largest target below which the scale of the noise is not estimated: a perfect fit has none."""
_REACHED, _NARROWER = 1 + 1e-9, 4.0
"""A scale up to this factor above the least one counts as that; where none is found, it is divided by 4 down to it."""
_DEGENERATE = (
    "{:.0%} of the rows are fitted exactly, as many as there are coefficients, so that the scale of the noise falls to "
    "zero; choose fewer features, or set delta"
)


class NoiseScale(ScalarNuisance):
    """The scale of the noise, estimated with the coefficients."""

    rounds: ClassVar[int] = 5
    has_likelihood: ClassVar[bool] = False

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def start(self, problem: Problem) -> Loss:
        """Return the loss with the scale of the targets."""
        return self.loss(spread(problem))

    def parameter(self, loss: Loss) -> float:
        """Return the scale of the noise."""
        assert isinstance(loss, Huber)
        return loss.delta / self.epsilon

    def loss(self, parameter: float) -> Loss:
        """Return the loss for a scale of the noise."""
        return Huber(self.epsilon * parameter)

    def update(self, objective: Any, at: Evaluation) -> float:
        """Return the scale of the residuals at a point."""
        y, u, weights = rows_of(objective, at)
        return max(noise_scale(u - y, weights, self.epsilon), _least_scale(y))

    def finish(self, problem: Problem, result: Result) -> Fit:
        """Return the fit on the support of a result, with the scale that belongs to it.

        The joint objective is convex. So if it falls with the scale where that is the least one, it has no minimiser
        with a larger one. That is no failure where more rows are fitted exactly than any coefficients can.
        """
        fit = super().finish(problem, result)
        y, scale, at = double(problem.objective.y), self.parameter(pointwise(fit.problem)), fit.result.state.at
        least = _least_scale(y)
        if fit.result.converged and scale > _REACHED * least:
            return fit
        while scale > least:
            scale = max(scale / _NARROWER, least)
            problem = problem.with_loss(self.loss(scale))
            at = refitted(problem, at.point)
            if self.update(problem.objective, at) > _REACHED * scale:
                return fit
        _, u, weights = rows_of(problem.objective, at)
        exact = (np.abs(u - y) <= self.epsilon * least) & (weights > 0)
        if _interpolates(problem, at.point, exact) and np.any(weights[~exact]):
            message = _DEGENERATE.format(float(weights[exact].sum()))
            result = replace(result, status=Status.NO_MINIMISER, message=message)
        return Fit(problem, moved(problem, result, at), self.merit(problem.objective, at))

    def merit(self, objective: Any, at: Evaluation) -> float:
        """Return the joint objective of coefficients and scale."""
        scale = self.parameter(objective.loss)
        return scale + 2.0 * at.value / scale


def _least_scale(y: np.ndarray) -> float:
    """Return the scale below which that of the noise is not estimated."""
    return _LEAST_SCALE * (float(np.max(np.abs(y))) or 1.0)


def _interpolates(problem: Problem, w: Any, rows: np.ndarray) -> bool:
    """Return whether there are no more distinct rows than coefficients, which could fit any targets there."""
    few = problem.objective.columns(problem.constraint.project(w).support.indices)
    table = np.column_stack([double(few.design.dense()), double(few.y)])[rows]
    return bool(len(np.unique(table, axis=0)) < table.shape[1])


def noise_scale(r: np.ndarray, weights: np.ndarray, epsilon: float) -> float:
    r"""Return the scale that minimises the mean of sigma + H(r / sigma) sigma, where H is twice Huber's loss.

    It is the solution of :math:`\sigma^2 = \sum_{in} s r^2 / (\sum s - \epsilon^2 \sum_{out} s)`, where residuals up to
    :math:`\epsilon \sigma` are in. It is 0 if so many residuals are 0 that no positive scale solves this equation.
    """
    size = np.abs(r)
    order = np.argsort(size, kind="stable")
    size, weights = size[order], weights[order] / weights.sum()
    unit = float(size[-1]) or 1.0
    inside, squares = np.cumsum(weights), np.cumsum(weights * (size / unit) ** 2)
    left = 1.0 - epsilon**2 * (1.0 - inside)
    scales = np.sqrt(np.divide(squares, left, out=np.full(size.size, np.inf), where=left > 1e-12))
    beyond = np.append(size[1:] / unit, np.inf)
    fits = np.flatnonzero(epsilon * scales < beyond)
    return unit * float(scales[fits[0]]) if fits.size else 0.0


@public_estimator("huber_regression", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(epsilon=1.35, delta=None)
class SparseHuberRegression(SparseRegressor):
    r"""Linear regression with at most k features by Huber's loss, which outliers among the targets hardly change.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \, \rho_\delta(x_i^\top b + c + o_i - y_i)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2 \quad \text{with at most } k \text{ non-zero } b_j

    with :math:`\rho_\delta(r) = r^2 / 2` for :math:`|r| \le \delta` and :math:`\delta |r| - \delta^2 / 2` beyond,
    weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if not standardised). By default
    :math:`\delta = \epsilon \sigma` with the scale :math:`\sigma` of the noise, which is estimated.

    Parameters
    ----------
    epsilon : float
        From how many times the scale of the noise on a residual counts linearly, >= 1. With 1.35 the estimate has 95 %
        of the efficiency of least squares where the noise is normal.
    delta : float, optional
        :math:`\delta` > 0 in units of the target, in the place of `epsilon`. The answer then depends on the unit of the
        targets.
    {parameters}

    Attributes
    ----------
    {coefficients}
    noise_scale_ : float
        The scale of the noise; for a given `delta`, that over `epsilon`.
    outliers_ : array of bool, shape (n_samples,)
        The rows of the training data whose residual is more than :math:`\delta`. Rows without weight are not.
    {attributes}

    See Also
    --------
    SparseHuberRegressionCV : Chooses k by cross-validation.
    sklearn.linear_model.HuberRegressor : The same model without a limit of features.

    Notes
    -----
    The scale minimises the mean of :math:`\sigma + 2 \rho_{{\epsilon \sigma}}(r) / \sigma` over the training rows
    (Huber's concomitant scale). The features are searched with the scale of the targets, and again with that of the
    residuals, until they come back: at most five searches, of which the one with the least joint objective is kept.
    Heuristic, as the search is. Outliers among the features are not guarded against.

    With half as many coefficients as rows the scale may fall to zero, and the fit passes through as many targets as
    there are coefficients: then it has not converged, and the message says so. Where more rows than that are fitted
    exactly, as those without noise beside outliers, it has.

    `score` is :math:`R^2`. `objective_` is the equation above with the :math:`\delta` of the model: where the scale is
    estimated it is not comparable between models, because a smaller scale makes all losses smaller. No likelihood
    belongs to the loss; ``n_nonzero_coefs="auto"`` uses n times the logarithm of the mean loss in its place, with one
    scale for all numbers of features.

    References
    ----------
    P. J. Huber and E. M. Ronchetti (2009), *Robust Statistics*, Section 7.7.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseHuberRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.standard_normal(200)
    >>> y[:20] += 100
    >>> model = SparseHuberRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, model.coef_[model.support_].round(0), bool(model.outliers_[:20].all())
    (array([ 4, 30]), array([ 3., -2.]), True)
    """

    _loss_type: ClassVar[type[Loss]] = Huber

    epsilon: float
    delta: float | None

    @property
    def _loss(self) -> Loss:
        return Huber(self.epsilon * getattr(self, "noise_scale_", 1.0) if self.delta is None else self.delta)

    @property
    def _scored_loss(self) -> Loss:
        return Squared()  # Huber's has a unit of its own in each model

    def _check_settings(self) -> None:
        checked_number("epsilon", self.epsilon, least=1.0)
        if self.delta is not None:
            checked_number("delta", self.delta, above=0.0)
        super()._check_settings()

    def _check_attributes(self) -> None:
        super()._check_attributes()
        check_numbers(self, noise_scale_=())

    def _nuisance(self) -> Nuisance | None:
        return NoiseScale(self.epsilon) if self.delta is None else None

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Table:
        table = super()._validate_fit(X, y, sample_weight, offset)
        self._rows_of_fit = table.weighted_rows(), table.n_rows
        return table

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        loss, objective = problem.objective.loss, problem.objective
        assert isinstance(loss, Huber)
        y, u, _ = rows_of(objective, result.state.at if result.w is result.state.w else objective.evaluate(result.w))
        rows, n = self.__dict__.pop("_rows_of_fit")
        outliers = np.zeros(n, dtype=bool)
        outliers[rows] = np.abs(u - y) > loss.delta * (1 + 1e-9)
        return {"noise_scale_": loss.delta / self.epsilon, "outliers_": move(outliers, problem.mean)}


@public_estimator("huber_regression_cv", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(epsilon=1.35, delta=None)
class SparseHuberRegressionCV(SparseLinearModelCV, SparseHuberRegression):
    """Linear regression by Huber's loss with the number of features chosen by cross-validation.

    Parameters
    ----------
    epsilon, delta : float
        As without cross-validation. Without `delta`, all models of a fold have the scale of the noise of one that is
        fitted to its training rows, with a tenth as many features as rows and at most 10.
    {cv_parameters}

    Attributes
    ----------
    {cv_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseHuberRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.standard_normal(200)
    >>> y[:20] += 100
    >>> model = SparseHuberRegressionCV(n_nonzero_coefs=range(6)).fit(X, y)
    >>> bool(np.isin([4, 30], model.support_).all())
    True
    """
