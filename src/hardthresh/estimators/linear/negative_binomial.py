"""Sparse negative binomial regression, for counts that vary more than Poisson counts."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import Any, ClassVar

import numpy as np

from hardthresh.core.checking import checked_number
from hardthresh.core.errors import InvalidInputError, format_value, warn
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.losses import Loss, NegativeBinomial
from hardthresh.losses.location import crossing
from hardthresh.objectives import BlockedModel
from hardthresh.objectives.readings import Sums

from ..documentation import public_estimator
from ..parameters import own_parameters
from ..soundness import check_numbers
from ..upgrades import CHOSEN_BY_EBIC, CHOSEN_BY_FOLDS
from .cross_validation import SparseLinearModelCV
from .nuisance import Nuisance, ScalarNuisance, rows_of
from .problem import Problem
from .regressor import SparseRegressor

_LEAST, _MOST = 1e-6, 1e6
"""The range of the shape theta. Beyond it the variance of a count is that of a Poisson count but for a millionth of its
mean, and the likelihood, a difference of large numbers, has no more digits to tell shapes apart."""
_MOST_LOG_MEAN = 300.0
"""A mean whose square is finite."""
_LARGE = 30.0
"""From which shape on the series of the slope of the likelihood is used. What it leaves out, theta^-7 / 30 of the
largest term that is left, is then as small as the rounding of the formula itself is below."""


class Shape(ScalarNuisance):
    """The shape theta of negative binomial counts of the largest likelihood."""

    setting: ClassVar[str] = "dispersion"
    rounds: ClassVar[int] = 20

    def start(self, problem: Problem) -> Loss:
        """Return the loss with the shape of the counts themselves, for one expected count."""
        objective: Any = problem.with_loss(NegativeBinomial()).objective
        w = 0.0 * objective.zeros()
        if isinstance(objective, BlockedModel):
            level = crossing(lambda c: float(objective.mean_of_rows(w, _sum_of_gradients, c)[0]), 0.0)
            return NegativeBinomial(_shape_of_blocks(objective, w, level))
        y, u, weights = rows_of(objective, objective.evaluate(w))
        u = u + NegativeBinomial().constant(y, weights, u)
        return NegativeBinomial(_shape_of_rows(y, u, weights))

    def parameter(self, loss: Loss) -> float:
        """Return theta."""
        assert isinstance(loss, NegativeBinomial)
        return loss.theta

    def loss(self, parameter: float) -> Loss:
        """Return the loss with a theta."""
        return NegativeBinomial(min(max(parameter, _LEAST), _MOST))

    def update(self, objective: Any, at: Evaluation) -> float:
        """Return the most likely theta for the predictions at a point."""
        if isinstance(objective, BlockedModel):
            return _shape_of_blocks(objective, at.point, 0.0)
        y, u, weights = rows_of(objective, at)
        return _shape_of_rows(y, np.minimum(u, _MOST_LOG_MEAN), weights)

    def merit(self, objective: Any, at: Evaluation) -> float:
        """Return minus the mean log-likelihood, and the ridge."""
        if isinstance(objective, BlockedModel):
            return at.value - objective.mean_saturated()
        y, u, weights = rows_of(objective, at)
        loss: Loss = objective.loss
        ridge = at.value - loss.weighted_mean(y, u, weights)
        return 0.5 * loss.minus_twice_log_likelihood(y, u, weights, 1.0) + ridge


def _shape_of_rows(y: np.ndarray, u: np.ndarray, weights: np.ndarray) -> float:
    """Return the most likely theta of counts in memory, given the logarithms of their means."""
    mean = np.exp(u)
    return _most_likely_shape(lambda theta: float(weights @ shape_slopes(y, mean, theta)))


def _shape_of_blocks(objective: BlockedModel, w: np.ndarray, shift: float) -> float:
    """Return the most likely theta of counts over blocks, for the predictions at a point plus a shift: no reading."""
    return _most_likely_shape(lambda theta: float(objective.mean_of_rows(w, _sum_of_slopes, shift, theta)[0]))


def _sum_of_slopes(y: np.ndarray, u: np.ndarray, weight: np.ndarray, shift: float, theta: float) -> Sums:
    """Return the sum of the slopes of the log-likelihoods of some counts in theta."""
    return (np.asarray(weight @ shape_slopes(y, np.exp(np.minimum(u + shift, _MOST_LOG_MEAN)), theta)),)


def _sum_of_gradients(y: np.ndarray, u: np.ndarray, weight: np.ndarray, shift: float) -> Sums:
    """Return the sum of the derivatives of the losses of a dispersion of 1 in their predictions plus a shift."""
    return (np.asarray(weight @ NegativeBinomial().gradient(y, u + shift)),)


def _most_likely_shape(slope_at: Callable[[float], float]) -> float:
    """Return the theta at which the slope of the log-likelihood, that of few examples from above, crosses zero."""
    from scipy.optimize import brentq

    def slope(place: float) -> float:
        return slope_at(exp(place))

    low, high = log(_LEAST), log(_MOST)
    if slope(high) >= 0.0:
        return _MOST
    return exp(brentq(slope, low, high, xtol=1e-14, rtol=1e-14)) if slope(low) > 0.0 else _LEAST


def shape_slopes(y: np.ndarray, mean: np.ndarray, theta: float) -> np.ndarray:
    r"""Return the derivative of the log-likelihood of each count in the shape theta.

    .. math:: \psi(y + \theta) - \psi(\theta) - \log(1 + \mu / \theta) + \frac{\mu - y}{\mu + \theta}

    Its terms are as large as y / theta and differ by as little as the square of that. For a large theta the logarithms
    of Stirling's series :math:`\psi(x) = \log x - 1 / 2x - 1 / 12x^2 + 1 / 120x^4 - 1 / 252 x^6 + \ldots` join the
    others as log(1 + d) - d with :math:`d = (y - \mu) / (\mu + \theta)`.
    """
    from scipy.special import digamma

    d = (y - mean) / (mean + theta)
    if theta < _LARGE:
        return np.asarray(digamma(y + theta) - digamma(theta) - np.log1p(mean / theta) - d)
    p, q = 1.0 / theta, 1.0 / (y + theta)
    p2, q2 = p * p, q * q
    series = 0.5 + (p + q) * (1.0 / 12.0 - (p2 + q2) / 120.0 + (p2 * p2 + p2 * q2 + q2 * q2) / 252.0)
    return np.asarray(_log1p_less(d) + y * p * q * series)  # y p q is p - q


def _log1p_less(d: np.ndarray) -> np.ndarray:
    """Return log(1 + d) - d, of small d by eight terms of its series."""
    small = np.abs(d) < 0.01  # the ninth term is below rounding
    series = np.zeros_like(d)
    for power in range(9, 1, -1):
        series = d * (series + (-1.0) ** (power + 1) / power)
    return np.asarray(np.where(small, d * series, np.log1p(d) - d))


@public_estimator("negative_binomial_regression", upgrades=[CHOSEN_BY_EBIC])
@own_parameters(dispersion="ml")
class SparseNegativeBinomialRegression(SparseRegressor):
    r"""Negative binomial regression with at most k features, for counts that vary more than Poisson counts.

    .. math:: \min_{b, c} \; \frac{1}{\sum_i s_i} \sum_i s_i \Bigl(y_i \log \frac{y_i}{\mu_i} - (y_i + \theta)
              \log \frac{y_i + \theta}{\mu_i + \theta}\Bigr) + \frac{\alpha}{2} \sum_j \sigma_j^2 b_j^2, \qquad
              \log \mu_i = x_i^\top b + c + o_i, \quad \text{with at most } k \text{ non-zero } b_j

    with counts :math:`y_i \ge 0`, weights s, offsets o, and :math:`\sigma_j` the standard deviation of column j (1 if
    not standardised). The expected count is :math:`\mu_i`, and its variance :math:`\mu_i + \mu_i^2 / \theta`; the
    dispersion is :math:`1 / \theta`.

    Parameters
    ----------
    dispersion : "ml" or float
        The dispersion > 0, or "ml" for its maximum likelihood estimate.
    {parameters}

    Attributes
    ----------
    {coefficients}
    dispersion_ : float
        The dispersion, as given or estimated, >= 1e-6.
    {attributes}

    See Also
    --------
    SparseNegativeBinomialRegressionCV : Chooses k by cross-validation.
    SparsePoissonRegression : The dispersion 0.

    Notes
    -----
    With "ml", the features are searched with a fixed dispersion, the dispersion and the coefficients of these features
    are then estimated together, and both steps are repeated until the same features are found: at most 20 searches, of
    which the model with the largest likelihood is kept (heuristic).

    `score` is :math:`D^2`, and `objective_` is the equation above, both with the dispersion of the model. `objective_`
    is not comparable between models with estimated dispersions, because a larger dispersion makes all losses smaller.
    Compare the likelihood, as ``n_nonzero_coefs="auto"`` does, or scores of held-out rows.

    References
    ----------
    J. M. Hilbe (2011), *Negative Binomial Regression*: the model NB2.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import SparseNegativeBinomialRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = rng.poisson(np.exp(1 + X[:, 4] - X[:, 30] / 2) * rng.gamma(2.0, 0.5, 300))
    >>> model = SparseNegativeBinomialRegression(n_nonzero_coefs=2).fit(X, y)
    >>> model.support_, round(model.dispersion_, 1)
    (array([ 4, 30]), 0.5)
    """

    _loss_type: ClassVar[type[Loss]] = NegativeBinomial

    dispersion: Any
    dispersion_: float

    @property
    def _loss(self) -> Loss:
        estimated = isinstance(self.dispersion, str)
        return NegativeBinomial(1.0 / (getattr(self, "dispersion_", 1.0) if estimated else self.dispersion))

    def _check_settings(self) -> None:
        super()._check_settings()
        if isinstance(self.dispersion, str):
            if self.dispersion != "ml":
                raise InvalidInputError(f'dispersion must be "ml" or a number > 0, got {format_value(self.dispersion)}')
        else:
            checked_number("dispersion", self.dispersion, least=1 / _MOST, most=1 / _LEAST)

    def _check_attributes(self) -> None:
        super()._check_attributes()
        check_numbers(self, dispersion_=())

    def _parameter_of(self, loss: Any) -> dict[str, Any]:
        return {"dispersion_": 1.0 / loss.theta}

    def _nuisance(self) -> Nuisance | None:
        return Shape() if isinstance(self.dispersion, str) else None

    def _diagnostics(self, problem: Problem, result: Result) -> dict[str, Any]:
        loss = problem.objective.loss
        assert isinstance(loss, NegativeBinomial)
        if self._nuisance() is not None and loss.theta >= (1 - 1e-9) * _MOST:
            warn(
                "the counts vary no more than Poisson counts, so that the dispersion is at its lower end, "
                f"{1 / _MOST:g}; SparsePoissonRegression is the model without a dispersion"
            )
        return {"dispersion_": 1.0 / loss.theta}


@public_estimator("negative_binomial_regression_cv", upgrades=[CHOSEN_BY_FOLDS])
@own_parameters(dispersion="ml")
class SparseNegativeBinomialRegressionCV(SparseLinearModelCV, SparseNegativeBinomialRegression):
    """Negative binomial regression with the number of features chosen by cross-validation.

    Parameters
    ----------
    dispersion : "ml" or float
        As in `SparseNegativeBinomialRegression`. With "ml", all models of a fold use one dispersion: that of a model
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
    >>> from hardthresh import SparseNegativeBinomialRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = rng.poisson(np.exp(1 + X[:, 4] - X[:, 30] / 2) * rng.gamma(2.0, 0.5, 300))
    >>> model = SparseNegativeBinomialRegressionCV(n_nonzero_coefs=range(1, 6), rule="one_standard_error").fit(X, y)
    >>> model.support_
    array([ 4, 30])
    """
