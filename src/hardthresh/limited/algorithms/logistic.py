"""The default algorithm for two classes: `AdaptiveHybrid` with the logistic loss, which no theory covers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import log
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.schema import renames, stored
from hardthresh.core.typing import Array
from hardthresh.limited.contract import AlgorithmState, positions
from hardthresh.limited.cost_model import CostModel

from .adaptive import AdaptiveHybrid, AdaptiveState
from .moments import Moments
from .support_choice import least_squares

_STEPS = 50  # Newton steps for each batch; arbitrary: 3 to 200 give the same errors. So do the ranges below
_HALVINGS = 40  # halvings of a step, until it is a rounding error (2^-40 = 1e-12)
_DECREASE = 1e-4  # the usual constant of Armijo's rule (Nocedal and Wright, section 3.1); 1e-8 to 0.3 are equal
_TOLERANCE = 1e-10  # nats; the predicted decrease of the loss of a batch that ends it; 1e-14 to 1e-3 are equal
_RIDGE = 1e-12  # relative to the diagonal; makes the system of collinear attributes regular; 1e-15 to 1e-6 are equal


@stored("state/logistic_adaptive")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogisticState(AdaptiveState):
    """The state of `LogisticHybrid`.

    Attributes
    ----------
    centre, scale : array, shape (s,)
        The shift and the scale of the attributes `chosen` for which `logit` is stored; fixed for a support.
    logit : array, shape (s + 1,)
        The coefficients of the shifted and scaled attributes, and the intercept.
    information : array, shape (s + 1, s + 1)
        A, the discounted sum of the Hessians of all batches so far, each at the coefficients after its batch.
    """

    centre: Array = field(default_factory=lambda: np.zeros(0))
    scale: Array = field(default_factory=lambda: np.zeros(0))
    logit: Array = field(default_factory=lambda: np.zeros(1))
    information: Array = field(default_factory=lambda: np.eye(1))


@register(
    "algorithm",
    "logistic_adaptive",
    lambda: [LogisticHybrid(n_nonzero_coefs=3)],
    upgrades=[renames(n_nonzero="n_nonzero_coefs")],
)
@dataclass(frozen=True)
class LogisticHybrid(AdaptiveHybrid):
    """`AdaptiveHybrid` for two classes, coded 0 and 1: a heuristic.

    The support is chosen as for the squared loss, by least squares on the classes. The coefficients θ of the support,
    intercept included, are learned by logistic regression, batch by batch. After n examples, a batch of m examples
    z_b (with an entry 1 for the intercept) and labels y_b moves θ to the minimiser of its loss plus a quadratic model
    of the loss of all earlier batches,

    .. math:: A \\leftarrow \\frac{n + 1}{n + m + 1} A, \\qquad
              θ \\leftarrow \\arg\\min_t \\; \\tfrac12 (t - θ)^T A (t - θ) + \\sum_b \\log(1 + e^{u_b}) - y_b u_b,
              \\qquad A \\leftarrow A + \\sum_b p_b (1 - p_b) z_b z_b^T

    where u_b = t^T z_b and p_b = 1 / (1 + e^{-u_b}) at the new θ. The minimiser is computed by damped Newton steps.
    When the support changes, θ starts again from a least-squares estimate. The Hessians in A belong to earlier
    coefficients, so A is discounted and older examples have a smaller weight; the variance is a third larger than with
    equal weights. Explorations correlate attributes with y - p.

    Parameters
    ----------
    n_nonzero_coefs, prediction_budget
        As in `AdaptiveHybrid`.

    Raises
    ------
    InvalidInputError
        As in `AdaptiveHybrid`, and for targets other than 0 and 1.

    Notes
    -----
    Cost: one pass over the examples; operations and memory as in `AdaptiveHybrid`, and at most 50 Newton steps of
    O(m s^2 + s^3) operations for each batch of m examples. Guarantee: no example costs more than the budget. The
    coefficients have none (heuristic): the theory of Murata and Suzuki (2018) is about the squared loss.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import ArraySource, learn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((8000, 40))
    >>> y = rng.random(8000) < 1 / (1 + np.exp(2 * X[:, 7] - 2 * X[:, 1]))
    >>> result = learn(LogisticHybrid(n_nonzero_coefs=2), ArraySource(X, y, n_observed=6))
    >>> result.support, result.w[[1, 7]].round()
    (array([1, 7]), array([ 2., -2.]))
    """

    state_type = LogisticState

    target: ClassVar[Literal["number", "class"]] = "class"

    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError for targets other than 0 and 1."""
        for label in np.setdiff1d(y, (0.0, 1.0))[:1]:
            raise InvalidInputError(f"targets must be 0 or 1, got {label:g}")

    def absorb(self, cost_model: CostModel, state: AlgorithmState, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Update the coefficients of the support; then continue as `AdaptiveHybrid`."""
        assert isinstance(state, LogisticState)
        z = (x[:, positions(indices, state.chosen)] - state.centre) / state.scale
        moved = _moved(_discounted(state, len(y)), np.column_stack([z, np.ones(len(y))]), y)
        return super().absorb(cost_model, moved, indices, x, y)

    def finalize(self, cost_model: CostModel, state: AlgorithmState) -> AdaptiveState:
        """Return the state with its present support, because the coefficients of another one are not learned yet."""
        assert isinstance(state, LogisticState)
        return self._refitted(state) if state.fitted else super().finalize(cost_model, state)

    def failure_reason(self, state: AlgorithmState) -> str:
        """Return a reason if all targets are of one class, or that of `AdaptiveHybrid`; otherwise an empty string."""
        assert isinstance(state, AdaptiveState)
        if state.seen and state.own.count and float(state.own.mean[-1]) in (0.0, 1.0):
            return "all targets are of one class; examples of two are needed"
        return super().failure_reason(state)

    def response(self, linear: Array) -> Array:
        """Return probabilities of class 1."""
        probability: Array = expit(linear)
        return probability

    def _with_support(self, state: AdaptiveState, support: Array, own: Moments) -> AdaptiveState:
        changed = super()._with_support(state, support, own)
        assert isinstance(changed, LogisticState)
        return _restarted(changed)

    def _refitted(self, state: AdaptiveState) -> AdaptiveState:
        """Return the state with the coefficients of the original attributes."""
        assert isinstance(state, LogisticState)
        w = np.zeros(state.w.size)
        if not state.fitted:
            return replace(state, intercept=_log_odds(_share(state.own)))
        w[state.chosen] = state.logit[:-1] / state.scale
        intercept = float(state.logit[-1] - w[state.chosen] @ state.centre)
        return replace(state, w=w, intercept=intercept, updates=state.updates + 1)


def _discounted(state: LogisticState, more: int) -> LogisticState:
    """Return the state with the weight of the examples so far reduced for `more` new ones."""
    n = state.own.count + 1
    return replace(state, information=state.information * (n / (n + more)))


def _moved(state: LogisticState, z: Array, y: Array) -> LogisticState:
    """Return the state at the minimiser of the loss of a batch plus the quadratic model of all batches before.

    It takes damped Newton steps. If numbers overflow, the state is returned unchanged.
    """
    logit = state.logit
    value = _loss(state, z, y, logit)
    for _ in range(_STEPS):
        residual = y - expit(z @ logit)
        descent = state.information @ (state.logit - logit) + z.T @ residual
        hessian = _hessian(state, z, logit)
        if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(descent))):
            return state
        move = np.linalg.solve(hessian + _RIDGE * np.diag(hessian.diagonal()), descent)
        predicted = float(move @ descent)
        length = 1.0
        moved = _loss(state, z, y, logit + move)
        for _ in range(_HALVINGS):
            if moved <= value - _DECREASE * length * predicted:
                break
            length /= 2
            moved = _loss(state, z, y, logit + length * move)
        if not moved < value:
            break
        logit, value = logit + length * move, moved
        if predicted <= _TOLERANCE:
            break
    return replace(state, logit=logit, information=_hessian(state, z, logit))


def _loss(state: LogisticState, z: Array, y: Array, logit: Array) -> float:
    """Return the loss of a batch plus the quadratic model of all batches before."""
    away, linear = logit - state.logit, z @ logit
    return float(away @ state.information @ away / 2 + np.sum(np.logaddexp(0.0, linear) - y * linear))


def _hessian(state: LogisticState, z: Array, logit: Array) -> Array:
    """Return the Hessian of `_loss`."""
    p = expit(z @ logit)
    hessian: Array = state.information + (z * (p * (1 - p))[:, None]).T @ z
    return hessian


def _restarted(state: LogisticState) -> LogisticState:
    """Return the state with starting coefficients for a new support: from least squares if known, otherwise 0."""
    own, s = state.own, state.chosen.size
    if own.count > s + 1:
        centre, scale = own.mean[:-1], np.sqrt(own.comoment.diagonal()[:-1] / own.count)
    else:
        centre, scale = state.scales.mean[state.chosen], state.scales.deviation()[state.chosen]
    scale = np.where(scale > 0, scale, 1.0)
    logit = np.zeros(s + 1)
    if own.count > s + 1:
        fit, share = least_squares(own), _share(own)
        logit[fit.chosen] = fit.coef * scale[fit.chosen] / (share * (1 - share))
        logit[-1] = _log_odds(share)
    return replace(state, centre=centre, scale=scale, logit=logit, information=np.eye(s + 1))


def _share(own: Moments) -> float:
    """Return the share of class 1, with half an example of each class added."""
    return (own.count * float(own.mean[-1]) + 0.5) / (own.count + 1)


def _log_odds(share: float) -> float:
    return log(share / (1 - share))
