"""Sparse linear regression by Huber's loss, for targets with outliers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import double, move
from hardthresh.core.checking import checked_number
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result, Status
from hardthresh.core.typing import Array
from hardthresh.losses import Huber, Loss, Squared
from hardthresh.objectives import BlockedModel
from hardthresh.objectives.readings import Sums

from ..blocked import BlockTable
from ..documentation import public_estimator
from ..parameters import own_parameters
from ..soundness import check_numbers
from ..table import Table
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS
from .cross_validation import SparseLinearModelCV
from .nuisance import Fit, Nuisance, ScalarNuisance, moved, pointwise, refitted, rows_of
from .problem import Problem
from .regressor import SparseRegressor
from .targets import RowTargets, spread, targets_of

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

    setting: ClassVar[str] = "delta"
    rounds: ClassVar[int] = 5
    has_likelihood: ClassVar[bool] = False

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def start(self, problem: Problem) -> Loss:
        """Return the loss with the scale of the targets."""
        return self.loss(spread(targets_of(problem.objective), problem.intercept))

    def of_targets(self, targets: RowTargets, k: int, intercept: bool) -> Loss:
        """Return the loss with the scale of some targets."""
        return self.loss(spread(targets, intercept))

    def parameter(self, loss: Loss) -> float:
        """Return the scale of the noise."""
        assert isinstance(loss, Huber)
        return loss.delta / self.epsilon

    def loss(self, parameter: float) -> Loss:
        """Return the loss for a scale of the noise."""
        return Huber(self.epsilon * parameter)

    def update(self, objective: Any, at: Evaluation) -> float:
        """Return the scale of the residuals at a point."""
        least = _least_scale(objective)
        if isinstance(objective, BlockedModel):
            return noise_scale_by_sweeps(objective, at, self.parameter(objective.loss), self.epsilon, least)
        y, u, weights = rows_of(objective, at)
        return max(noise_scale(u - y, weights, self.epsilon), least)

    def finish(self, problem: Problem, result: Result) -> Fit:
        """Return the fit on the support of a result, with the scale that belongs to it.

        The joint objective is convex. So if it falls with the scale where that is the least one, it has no minimiser
        with a larger one. That is no failure where more rows are fitted exactly than any coefficients can.
        """
        fit = super().finish(problem, result)
        scale, at = self.parameter(pointwise(fit.problem)), fit.result.state.at
        least = _least_scale(problem.objective)
        if fit.result.converged and scale > _REACHED * least:
            return fit
        while scale > least:
            scale = max(scale / _NARROWER, least)
            problem = problem.with_loss(self.loss(scale))
            at = refitted(problem, at.point)
            if self.update(problem.objective, at) > _REACHED * scale:
                return fit
        share, others = _exactly_fitted(problem, at, self.epsilon * least)
        if others:
            message = _DEGENERATE.format(share)
            result = replace(result, status=Status.NO_MINIMISER, message=message)
        return Fit(problem, moved(problem, result, at), self.merit(problem.objective, at))

    def vanishes(self, problem: Problem) -> bool:
        """Return whether the scale is the least one, as where most rows are fitted exactly."""
        return self.parameter(pointwise(problem)) <= _REACHED * _least_scale(problem.objective)

    def merit(self, objective: Any, at: Evaluation) -> float:
        """Return the joint objective of coefficients and scale."""
        scale = self.parameter(objective.loss)
        return scale + 2.0 * at.value / scale


def _least_scale(objective: Any) -> float:
    """Return the scale below which that of the noise is not estimated."""
    if isinstance(objective, BlockedModel):
        largest = objective.target_quantile(np.inf, 0.0, without_offset=False)
    else:
        largest = float(np.max(np.abs(double(objective.y))))
    return _LEAST_SCALE * (largest or 1.0)


def _exactly_fitted(problem: Problem, at: Evaluation, distance: float) -> tuple[float, bool]:
    """Return the share of the rows within a distance, and whether they are as few as coefficients fit, of more rows.

    Few are no more distinct rows than coefficients, which could fit any targets there.
    """
    objective: Any = problem.objective
    chosen = problem.constraint.project(at.point).support.indices
    if isinstance(objective, BlockedModel):
        share, others, distinct = objective.rows_near(at.point, chosen, distance)
        return share, distinct <= chosen.size and others > 0.0
    y, u, weights = rows_of(objective, at)
    exact = (np.abs(u - y) <= distance) & (weights > 0)
    few = objective.columns(chosen)
    table = np.column_stack([double(few.design.dense()), double(few.y)])[exact]
    interpolates = len(np.unique(table, axis=0)) < table.shape[1]
    return float(weights[exact].sum()), interpolates and bool(np.any(weights[~exact]))


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


def noise_scale_by_sweeps(objective: BlockedModel, at: Evaluation, start: float, epsilon: float, least: float) -> float:
    r"""Return the scale of `noise_scale`, or a least one, of rows over blocks, by sweeps over kept columns.

    In :math:`t = \sigma^2` the equation is :math:`t (\sum s - \epsilon^2 \sum_{out} s) = \sum_{in} s r^2`, whose sides
    differ by a convex function that is linear while no residual changes sides. So steps of Newton's method decrease
    after the first one, and end at the solution once the same residuals are in as before.

    Parameters
    ----------
    objective : BlockedModel
        The model.
    at : Evaluation
        Where the residuals are.
    start : float
        The scale to begin with.
    epsilon : float
        That of the loss.
    least : float
        What is returned for smaller scales.
    """
    scale, before, falling = start, -2.0, False
    unit = least / _LEAST_SCALE

    def split(distance: float) -> tuple[float, ...]:
        return tuple(map(float, objective.mean_of_rows(at.point, _split, distance, unit)))

    while True:
        outside, square, count = split(epsilon * scale)
        left = 1.0 - epsilon**2 * outside
        if left <= 1e-12:  # no step begins below the solution where so many residuals are out
            if falling:
                return max(scale, least)
            left, square, count = 1.0, split(np.inf)[1], -1.0
        following = unit * (square / left) ** 0.5
        if count == before or (falling and following >= scale):
            return max(scale, least)
        if following <= least:
            return least
        scale, before, falling = following, count, True


def _split(y: np.ndarray, u: np.ndarray, weight: np.ndarray, distance: float, unit: float) -> Sums:
    """Return the weight of the residuals beyond a distance, and the weighted squares and number of the others."""
    size = np.abs(u - y)
    inside = size <= distance
    near = size[inside] / unit
    squares = weight[inside] @ (near * near)
    return np.asarray(weight[~inside].sum()), np.asarray(squares), np.asarray(float(np.count_nonzero(inside)))


@public_estimator("huber_regression", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(epsilon=1.35, delta=None)
class SparseHuberRegression(SparseRegressor):
    r"""Linear regression with at most k features by Huber's loss, which is robust to outliers among the targets.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \, \rho_\delta(x_i^\top b + c + o_i - y_i)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2 \quad \text{with at most } k \text{ non-zero } b_j

    with :math:`\rho_\delta(r) = r^2 / 2` for :math:`|r| \le \delta` and :math:`\delta |r| - \delta^2 / 2` beyond,
    weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if not standardised). By default
    :math:`\delta = \epsilon \sigma` with the scale :math:`\sigma` of the noise, which is estimated.

    Parameters
    ----------
    epsilon : float
        The loss is linear in residuals of more than `epsilon` times the scale of the noise, epsilon >= 1. With 1.35 the
        estimate has 95 % of the efficiency of least squares for normal noise.
    delta : float, optional
        :math:`\delta` > 0 in units of the target; it replaces `epsilon`. The fit then depends on the unit of the
        targets.
    {parameters}

    Attributes
    ----------
    {coefficients}
    noise_scale_ : float
        The estimated scale of the noise, in units of the target; with a given `delta`, delta / epsilon.
    outliers_ : array of bool, shape (n_samples,)
        Whether the absolute residual of each training row exceeds :math:`\delta`; False for rows of weight 0. Absent
        after a fit to a table in blocks.
    {attributes}

    See Also
    --------
    SparseHuberRegressionCV : Chooses k by cross-validation.
    sklearn.linear_model.HuberRegressor : The same model without a limit of features.

    Notes
    -----
    The scale minimises the mean of :math:`\sigma + 2 \rho_{{\epsilon \sigma}}(r) / \sigma` over the training rows
    (Huber's concomitant scale). The features are first searched with the scale of the targets. The scale of the
    residuals is then estimated and the search repeated until the same features are found: at most five searches, of
    which the one with the smallest joint objective is kept (heuristic). The fit is not robust to outliers among the
    features.

    If there are at least half as many coefficients as rows, the estimated scale may fall to zero, where the fit passes
    through as many targets as there are coefficients. `converged_` is then False, and a warning says so. If more rows
    than coefficients are fitted exactly, as with noiseless rows and a few outliers, the scale zero is correct and
    `converged_` is True.

    `score` is :math:`R^2`. `objective_` is the equation above with the :math:`\delta` of the model. If the scale is
    estimated, it is not comparable between models, because a smaller scale makes all losses smaller. The loss is not a
    negative log-likelihood, so ``n_nonzero_coefs="auto"`` uses n times the logarithm of the mean loss instead, with the
    same scale for all numbers of features.

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
    noise_scale_: float
    outliers_: Array

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

    def _parameter_of(self, loss: Any) -> dict[str, Any]:
        return {"noise_scale_": loss.delta / self.epsilon}

    def _nuisance(self) -> Nuisance | None:
        return NoiseScale(self.epsilon) if self.delta is None else None

    def _validate_fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Table:
        table = super()._validate_fit(X, y, sample_weight, offset)
        if not isinstance(table, BlockTable):
            self._rows_of_fit = table.weighted_rows(), table.n_rows
        return table

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        objective: Any = problem.objective
        loss = objective.loss
        self.__dict__.pop("outliers_", None)
        if isinstance(objective, BlockedModel):
            return {"noise_scale_": loss.delta / self.epsilon}
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
        As in `SparseHuberRegression`. Without `delta`, all models of a fold use one scale of the noise: that of a model
        fitted to the training rows with a tenth as many features as rows, at most 10.
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
    >>> from hardthresh import SparseHuberRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.standard_normal(200)
    >>> y[:20] += 100
    >>> model = SparseHuberRegressionCV(n_nonzero_coefs=range(6)).fit(X, y)
    >>> bool(np.isin([4, 30], model.support_).all())
    True
    """
