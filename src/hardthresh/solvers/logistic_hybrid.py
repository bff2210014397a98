"""Limited attributes and two classes: the tuning-free hybrid with the logistic loss, where no theory reaches."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import log
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from hardthresh.attributes import Market
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.registry import register
from hardthresh.core.typing import Array

from .adaptive_hybrid import AdaptiveHybrid, AdaptiveState
from .moments import Moments
from .observation import ObservationState, places
from .support_repair import least_squares

STEPS = 3  # Newton steps on each part of the stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogisticState(AdaptiveState):
    """The state of `LogisticHybrid`.

    Attributes
    ----------
    centre, scale : array, shape (s,)
        The units in which the coefficients of `chosen` are kept, fixed while the support stays.
    logit : array, shape (s + 1,)
        Coefficients in these units, and the intercept.
    information : array, shape (s + 1, s + 1)
        The Hessians of all examples so far, each where the coefficients were when it came.
    """

    centre: Array
    scale: Array
    logit: Array
    information: Array


@register("observation", "logistic_adaptive", lambda: [LogisticHybrid(n_nonzero=3)])
@dataclass(frozen=True)
class LogisticHybrid(AdaptiveHybrid):
    """`AdaptiveHybrid` for two classes, coded 0 and 1: a heuristic.

    The support is chosen as for the squared loss, by least squares on the classes. On it the coefficients are those of
    logistic regression, learned part by part of the stream: each part moves them to the minimiser of its own loss plus
    the quadratic model of everything before,

    .. math:: θ \\leftarrow \\arg\\min_t \\; \\tfrac12 (t - θ)^T A (t - θ) + \\sum_b \\log(1 + e^{u_b}) - y_b u_b,
              \\qquad A \\leftarrow A + \\sum_b p_b (1 - p_b) z_b z_b^T

    which starts anew where the support changes. Explorations correlate attributes with y - p.

    Parameters
    ----------
    n_nonzero, prediction_budget
        As in `AdaptiveHybrid`.

    Notes
    -----
    Cost and memory as `AdaptiveHybrid`. No guarantee of any kind: the paper's theory is about the squared loss.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.attributes import ArraySource
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((8000, 40))
    >>> y = rng.random(8000) < 1 / (1 + np.exp(2 * X[:, 7] - 2 * X[:, 1]))
    >>> result = LogisticHybrid(n_nonzero=2).run(ArraySource(X, y, n_observed=6))
    >>> result.support, result.w[[1, 7]].round()
    (array([1, 7]), array([ 2., -2.]))
    """

    target: ClassVar[Literal["number", "class"]] = "class"

    def start(self, market: Market, w0: Array | None = None, length: int | None = None) -> LogisticState:
        """Return the null model, about to explore."""
        state = super().start(market, w0, length)
        parts = {field.name: getattr(state, field.name) for field in fields(AdaptiveState)}
        none = np.zeros(0)
        return LogisticState(**parts, centre=none, scale=none, logit=np.zeros(1), information=np.eye(1))

    def check_targets(self, y: Array) -> None:
        """Raise InvalidInputError for targets other than 0 and 1."""
        for label in np.setdiff1d(y, (0.0, 1.0))[:1]:
            raise InvalidInputError(f"targets must be 0 or 1, got {label:g}")

    def absorb(self, market: Market, state: ObservationState, indices: Array, x: Array, y: Array) -> AdaptiveState:
        """Learn the coefficients of the support, then as `AdaptiveHybrid`."""
        assert isinstance(state, LogisticState)
        self.check_targets(y)
        z = (x[:, places(indices, state.chosen)] - state.centre) / state.scale
        return super().absorb(market, _moved(state, np.column_stack([z, np.ones(len(y))]), y), indices, x, y)

    def conclude(self, market: Market, state: ObservationState) -> AdaptiveState:
        """Return the coefficients as they are: on another support they would have to be learned first."""
        assert isinstance(state, LogisticState)
        return self._refitted(state) if state.fitted else super().conclude(market, state)

    def response(self, linear: Array) -> Array:
        """Return probabilities of class 1."""
        probability: Array = expit(linear)
        return probability

    def _with_support(self, state: AdaptiveState, support: Array, own: Moments) -> AdaptiveState:
        changed = super()._with_support(state, support, own)
        assert isinstance(changed, LogisticState)
        return _afresh(changed)

    def _refitted(self, state: AdaptiveState) -> AdaptiveState:
        """Return the state with the coefficients on the scale of the data."""
        assert isinstance(state, LogisticState)
        w = np.zeros(state.w.size)
        if not state.fitted:
            return replace(state, intercept=_log_odds(float(state.own.mean[-1])))
        w[state.chosen] = state.logit[:-1] / state.scale
        intercept = float(state.logit[-1] - w[state.chosen] @ state.centre)
        return replace(state, w=w, intercept=intercept, updates=state.updates + 1)


def _moved(state: LogisticState, z: Array, y: Array) -> LogisticState:
    """Return the state with coefficients that minimise the loss of some examples plus the model of all before."""
    logit, information = state.logit, state.information
    for _ in range(STEPS):
        p = expit(z @ logit)
        information = state.information + (z * (p * (1 - p))[:, None]).T @ z
        pull = state.information @ (state.logit - logit) + z.T @ (y - p)
        logit = logit + np.linalg.solve(information, pull)
    return replace(state, logit=logit, information=information)


def _afresh(state: LogisticState) -> LogisticState:
    """Return the state with coefficients to be learned anew, in the direction of least squares where that is known."""
    own, s = state.own, state.chosen.size
    if own.count > s + 1:
        centre, scale = own.mean[:-1], np.sqrt(own.comoment.diagonal()[:-1] / own.count)
    else:
        centre, scale = state.scales.mean[state.chosen], state.scales.deviation()[state.chosen]
    scale = np.where(scale > 0, scale, 1.0)
    logit = np.zeros(s + 1)
    if own.count > s + 1:
        fit, share = least_squares(own), _inner(float(own.mean[-1]))
        logit[fit.chosen] = fit.coef * scale[fit.chosen] / (share * (1 - share))
        logit[-1] = _log_odds(share)
    return replace(state, centre=centre, scale=scale, logit=logit, information=np.eye(s + 1))


def _inner(share: float) -> float:
    """Return a share, away from 0 and 1."""
    return min(max(share, 0.01), 0.99)


def _log_odds(share: float) -> float:
    return log(_inner(share) / (1 - _inner(share)))
