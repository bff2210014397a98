"""Sparse quantile regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np

from hardthresh.arrays import double, gather, move, namespace, scatter, to_numpy
from hardthresh.constraints import Sparsity
from hardthresh.core.checking import checked_number
from hardthresh.core.constraint import CoordinateBudget, coordinate_budget
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.objective import Evaluation, value_rounding
from hardthresh.core.result import Result, Status
from hardthresh.losses import Loss, Quantile, VectorLoss
from hardthresh.losses.location import weighted_quantile

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..table import Table
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS
from .criterion import number_of_examples
from .cross_validation import SparseLinearModelCV
from .held_out import held_out_scores
from .nuisance import Fit, Nuisance, Solve, moved, refitted, rows_of
from .pinball_vertices import minimise_pinball
from .prediction import PointwisePrediction, PredictionModel
from .problem import Problem
from .regressor import SparseRegressor
from .targets import spread, targets_of

_LEAST_SMOOTHING = 0.05
"""The smoothing of the search is at least this share of the scale of the targets; with less few rows have curvature,
and the search stops early."""
_CURVED_PER_COEFFICIENT = 3.0
"""The smoothing is so wide that at the null model so many rows have curvature for each coefficient. With fewer the
Hessian of the columns is nearly singular. Arbitrary."""
_BEYOND = 1.001
"""The factor by which it is wider than the distance of the last of these rows, and of those at the same distance where
targets have few values: rows at the distance h itself have curvature or none as rounding decides. Arbitrary."""
_NARROWER = 4.0
"""The factor between smoothings on a support. A cold start at a small one ends far above the minimum."""
_EXACT = 1e-10
"""The last smoothing is this share of the loss of the null model."""
_FLAT = 1e-9
"""Share of the largest slope below which a slope is taken for the rounding of zero. Arbitrary."""
_UNFINISHED = (
    "the limit of steps from vertex to vertex of the pinball loss was reached; choose fewer features, or set smoothing"
)


class Smoothing(Nuisance):
    """The smoothing of the pinball loss: wide for the search, and none in the end."""

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile

    def start(self, problem: Problem) -> Loss:
        """Return the loss of the search, by the rule of He, Pan, Tan and Zhou (2023, *Journal of Econometrics* 232).

        It is wider where few rows would have curvature at the null model, as for extreme quantiles.
        """
        objective = problem.objective
        n, tau = number_of_examples(objective), self.quantile
        size = problem.constraint.k if problem.constraint.k else 0
        width = max(_LEAST_SMOOTHING, sqrt(tau * (1 - tau)) * ((size + log(max(n, 2.0))) / n) ** 0.4)
        least = 0.0 if problem.intercept else 1.0  # targets far from zero have curvature there all the same
        h = max(width, least) * spread(targets_of(objective), problem.intercept)
        return Quantile(tau, max(h, _BEYOND * self._enough(problem, _CURVED_PER_COEFFICIENT * (size + 1))))

    def of_fold(self, pilot: Problem, solve: Solve) -> Loss:
        """Return the loss of the search: nothing is estimated."""
        return self.start(pilot)

    def _enough(self, problem: Problem, rows: float) -> float:
        """Return the distance from their quantile within which so many targets less the offset are, or all of them.

        A target of weight 2 counts twice.
        """
        objective = problem.objective
        y, weights = double(objective.y), double(objective.weights)
        r = y if objective.offset is None else y - double(objective.offset)
        counted = weights > 0
        centre = weighted_quantile(r, weights, self.quantile) if problem.intercept else 0.0
        distances, count = np.abs(r[counted] - centre), weights[counted] * number_of_examples(objective)
        order = np.argsort(distances, kind="stable")
        within = int(np.searchsorted(np.cumsum(count[order]), rows * (1 - 1e-9)))  # 1e-9 is above the rounding of sums
        return float(distances[order[min(within, order.size - 1)]])

    def finish(self, problem: Problem, result: Result) -> Fit:
        """Return the fit of the pinball loss on the support of a result, and on more features if the budget has room.

        The search leaves out what does not lower the smoothed loss. What lowers the pinball loss is added, the steepest
        first, while the budget allows: with room for all features the minimum is that of all of them.
        """
        loss, budget = problem.objective.loss, coordinate_budget(problem.constraint, tuple(problem.objective.shape))
        assert isinstance(loss, Quantile)
        tried = to_numpy(problem.constraint.project(result.w).support.indices)
        best = self._minimum(problem, loss.smoothing, result.w, tried)
        rounding = value_rounding(problem.objective, problem.objective.evaluate(problem.objective.null_point()))
        while budget is not None and best.at.value > rounding and best.selected(budget) < budget.budget:
            added = _steepest(best.slope, tried, budget.bounds)
            if added is None:
                break
            tried = np.sort(np.append(tried, added))
            other = self._minimum(problem, loss.smoothing, best.at.point, tried)
            if other.selected(budget) > budget.budget or other.at.value > best.at.value + rounding:
                break
            best = other
        if not best.finished and result.converged:
            result = replace(result, status=Status.MAX_ITER, message=_UNFINISHED)
        exact = problem.with_loss(Quantile(self.quantile, 0.0))
        return Fit(exact, moved(exact, result, best.at), best.at.value)

    def _minimum(self, problem: Problem, width: float, w: Any, chosen: np.ndarray) -> _Minimum:
        """Return the minimum of the pinball loss on some coordinates.

        Without a ridge the descent goes from vertex to vertex, to the same minimiser from any start. Else the smoothing
        is narrowed with warm starts.
        """
        objective = problem.objective.with_loss(Quantile(self.quantile, 0.0))
        ridged = bool(np.any(double(objective.l2)))
        if not ridged:
            found = _at_vertex(objective, problem.constraint, w, chosen)
            if found is not None:
                return found
        bounds = (getattr(problem.constraint, side, None) for side in ("lower", "upper"))
        on_these = replace(problem, constraint=Sparsity(0, tuple(chosen.tolist()), *bounds))
        least = _EXACT * max(objective.value(0.0 * w), float(np.finfo(float).tiny))
        smoothed = problem.objective.evaluate(w)
        while width >= least:
            width /= _NARROWER
            smoothed = refitted(on_these.with_loss(Quantile(self.quantile, width)), w)
            w = smoothed.point
        return _Minimum(objective.evaluate(w), double(smoothed.gradient), ridged)


@dataclass(frozen=True, slots=True)
class _Minimum:
    """A minimum of the pinball loss on some coordinates: f there, a subgradient, and whether it was reached."""

    at: Evaluation
    slope: np.ndarray
    finished: bool

    def selected(self, budget: CoordinateBudget) -> int:
        """Return how many of the coordinates that count are not zero."""
        return np.setdiff1d(np.flatnonzero(to_numpy(self.at.point)), budget.free).size


def _at_vertex(objective: Any, constraint: Any, w: Any, chosen: np.ndarray) -> _Minimum | None:
    """Return the minimum without a ridge on some coordinates, at the minimiser that is nearest to the null model.

    None if the limit of steps was reached.
    """
    if not chosen.size:
        at = objective.evaluate(w)
        return _Minimum(at, double(at.gradient), True)
    budget, indices = coordinate_budget(constraint, tuple(objective.shape)), move(chosen, w)
    few = objective.columns(indices)
    y, _, weights = rows_of(few, few.evaluate(few.zeros()))
    y = y if few.offset is None else y - double(few.offset)
    loss, counted = few.loss, weights > 0
    assert isinstance(loss, Quantile)
    found = minimise_pinball(
        double(few.design.dense())[counted], y[counted], weights[counted], loss.quantile,
        double(gather(w, indices)), double(gather(objective.null_point(), indices)),
        None if budget is None or budget.bounds is None else budget.bounds[:, chosen],
    )  # fmt: skip
    if found is None:
        return None
    slope = np.zeros(y.size)
    slope[counted] = -weights[counted] * found.multiplier
    point, slope = (namespace(w).astype(move(values, w), w.dtype) for values in (found.point, slope))
    at = objective.evaluate(scatter(point, indices, w.shape[0]))
    return _Minimum(at, double(objective.design.pullback(slope)), True)


def _steepest(slope: np.ndarray, tried: np.ndarray, bounds: np.ndarray | None) -> int | None:
    """Return the coordinate, of those not tried yet, along which f falls most steeply; None if along none."""
    lower, upper = np.full((2, slope.size), [[-np.inf], [np.inf]]) if bounds is None else bounds
    fall = np.maximum(np.where(upper > 0, -slope, 0.0), np.where(lower < 0, slope, 0.0))
    fall[tried] = 0.0
    j = int(np.argmax(fall))
    return j if fall[j] > _FLAT * np.max(np.abs(slope)) else None


@dataclass(frozen=True)
class _Pinball(PointwisePrediction):
    """Predictions of fits with a smoothed loss, scored by the pinball loss itself."""

    def losses(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the pinball loss of each row."""
        return np.asarray(self._exact.value(y[:, None], u))

    def held_out_scores(
        self,
        y: np.ndarray,
        u: np.ndarray,
        sample_weight: np.ndarray,
        fold: np.ndarray,
        offset: np.ndarray | None = None,
    ) -> dict[str, float]:
        """Return the mean pinball loss, and its share that is removed. A line without curvature is no calibration."""
        scores = held_out_scores(self._exact, y, u, sample_weight, offset)
        return {key: value for key, value in scores.items() if not key.startswith("calibration")}

    def calibration(self, y: np.ndarray, u: np.ndarray, sample_weight: np.ndarray) -> None:
        """Return None: a quantile is not compared with the mean of the targets."""

    @property
    def _exact(self) -> Loss:
        assert isinstance(self.loss, Quantile)
        return Quantile(self.loss.quantile, 0.0)


@public_estimator("quantile_regression", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(quantile=0.5, smoothing="auto")
class SparseQuantileRegression(SparseRegressor):
    r"""Linear regression of a quantile with at most k features.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \, \pi_\tau(y_i - x_i^\top b - c - o_i)
              + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad \pi_\tau(r) = \max(\tau r, (\tau - 1) r),
              \quad \text{with at most } k \text{ non-zero } b_j

    with the pinball loss :math:`\pi_\tau`, weights s, offsets o, and :math:`\sigma_j` the standard deviation of column
    j (1 if not standardised).

    Parameters
    ----------
    quantile : float
        The level :math:`\tau` of the quantile, 0 < tau < 1: about this share of the targets lies below the prediction;
        0.5 is the median.
    smoothing : "auto" or float
        The bandwidth h > 0, in units of the target, with which the loss is smoothed at its kink (`losses.Quantile`).
        "auto" chooses a bandwidth for the search, and then minimises the pinball loss itself on the features that were
        found.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {attributes}

    See Also
    --------
    SparseQuantileRegressionCV : Chooses k by cross-validation.
    sklearn.linear_model.QuantileRegressor : The same loss, with a penalty on absolute coefficients.

    Notes
    -----
    The features are searched with the smoothed loss (heuristic). The pinball loss itself is then minimised on these
    features. Without a ridge, a minimum is attained at a vertex, where the prediction passes through as many targets as
    there are coefficients that are not at a bound. The algorithm descends from vertex to vertex; if the minimiser is
    not unique, it returns the one nearest to the model without features. With a ridge, the bandwidth is divided by 4
    repeatedly, with warm starts, until it is below 1e-10 times the loss of the model without features. If the search
    finds fewer than k features, as it may with bounds, features that lower the pinball loss are added although they do
    not lower the smoothed loss. So if k is the number of all features, the minimum is global.

    `score` is :math:`D^2` of the pinball loss, as in `sklearn.metrics.d2_pinball_score`. `objective_` is the mean
    pinball loss plus the ridge term; with a given `smoothing` it is the mean smoothed loss plus the ridge term.

    References
    ----------
    R. Koenker and G. Bassett (1978), *Regression quantiles*, Econometrica 46. M. Fernandes, E. Guerre and E. Horta
    (2021), *Smoothing quantile regressions*, Journal of Business and Economic Statistics 39.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseQuantileRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.exponential(size=300)
    >>> model = SparseQuantileRegression(n_nonzero_coefs=2, quantile=0.9).fit(X, y)
    >>> model.support_, round(float(np.mean(y <= model.predict(X))), 2)
    (array([ 4, 30]), 0.9)
    """

    _loss_type: ClassVar[type[Loss]] = Quantile
    _needs_all_rows: ClassVar[str] = "the loss has a kink, at which steps of one length do not settle; use fit"

    quantile: float
    smoothing: Any

    @property
    def _loss(self) -> Loss:
        return Quantile(self.quantile, 0.0 if isinstance(self.smoothing, str) else self.smoothing)

    def _check_settings(self) -> None:
        checked_number("quantile", self.quantile, above=0.0, below=1.0)
        if not isinstance(self.smoothing, str):
            checked_number("smoothing", self.smoothing, above=0.0)
        elif self.smoothing != "auto":
            raise InvalidInputError(f'smoothing must be "auto" or a number > 0, got {format_value(self.smoothing)}')
        super()._check_settings()

    def _check_blocks(self) -> None:
        if isinstance(self.smoothing, str):
            raise CapabilityError(
                f"{type(self).__name__} is not fitted to tables in blocks without a smoothing: the pinball loss has a "
                "kink, and passes through single rows; give smoothing, or rows that fit into memory"
            )

    def _nuisance(self) -> Nuisance | None:
        return Smoothing(self.quantile) if isinstance(self.smoothing, str) else None


@public_estimator("quantile_regression_cv", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(quantile=0.5, smoothing="auto")
class SparseQuantileRegressionCV(SparseLinearModelCV, SparseQuantileRegression):
    """Linear regression of a quantile with the number of features chosen by cross-validation.

    Parameters
    ----------
    quantile : float
        As in `SparseQuantileRegression`.
    smoothing : "auto" or float
        As in `SparseQuantileRegression`. The models of the folds minimise the smoothed loss, and are scored by the
        pinball loss.
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
    >>> from hardthresh import SparseQuantileRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.exponential(size=300)
    >>> model = SparseQuantileRegressionCV(
    ...     n_nonzero_coefs=range(1, 6), rule="one_standard_error", quantile=0.9
    ... ).fit(X, y)
    >>> model.support_
    array([ 4, 30])
    """

    _takes_blocks: ClassVar[bool] = False

    def _prediction_model(self, loss: Loss | VectorLoss, table: Table) -> PredictionModel:
        assert isinstance(loss, Quantile)
        return _Pinball(loss)
