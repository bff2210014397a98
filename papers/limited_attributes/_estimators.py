"""Estimators of moments and gradients from s' of d attributes, and the algorithm that Section 3.1 calls naive."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hardthresh.core.typing import Array
from hardthresh.limited import CostModel
from hardthresh.limited.contract import Algorithm, AlgorithmState, Query, hard_threshold, positions

_EXPLORED = 2  # the purpose of random numbers


def autoregressive(d: int, correlation: float) -> Array:
    """Return the covariance of attributes of which neighbours are correlated."""
    distance = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    covariance: Array = correlation**distance
    return covariance


def chances(d: int, n_observed: int) -> tuple[float, float]:
    """Return the probabilities that an attribute, and a pair, is among n_observed of d drawn uniformly."""
    single = n_observed / d
    return single, single * (n_observed - 1) / (d - 1)


def zero_filled(X: Array, n_observed: int, rng: np.random.Generator) -> Array:
    """Return a copy of X in which all but n_observed random attributes of each row are 0."""
    ranks = np.argsort(rng.random(X.shape), axis=1)
    filled = X.copy()
    np.put_along_axis(filled, ranks[:, n_observed:], 0.0, axis=1)
    return filled


def moments(filled: Array, y: Array, n_observed: int, *, corrected: bool) -> tuple[Array, Array]:
    """Return estimates of E x x^T and E x y from zero-filled examples.

    Both are divided by the probability of seeing an attribute. Corrected, pairs are divided by the probability of
    seeing both instead; the estimates are then unbiased.
    """
    n, d = filled.shape
    single, pair = chances(d, n_observed)
    second = filled.T @ filled / n
    weights = np.full((d, d), 1.0 / (pair if corrected else single))
    np.fill_diagonal(weights, 1.0 / single)
    return weights * second, filled.T @ y / (n * single)


def limit(covariance: Array, truth: Array, n_observed: int) -> Array:
    """Return what least squares on zero-filled examples converges to."""
    single, pair = chances(truth.size, n_observed)
    weights = np.full_like(covariance, pair / single)
    np.fill_diagonal(weights, 1.0)
    return np.linalg.solve(weights * covariance, covariance @ truth)


def from_pairs(filled: Array, y: Array, w: Array, n_observed: int) -> Array:
    """Return unbiased gradients of (w^T x - y)^2, one row for each zero-filled example, from products of pairs."""
    single, pair = chances(w.size, n_observed)
    predicted = (filled @ w)[:, None] - filled * w
    return 2.0 * filled * (predicted / pair + (filled * w - y[:, None]) / single)


def from_support(X: Array, y: Array, w: Array, n_observed: int, rng: np.random.Generator) -> Array:
    """Return unbiased gradients of (w^T x - y)^2, from the support of w and random attributes up to n_observed."""
    explored = n_observed - np.count_nonzero(w)
    return 2.0 * (X @ w - y)[:, None] * zero_filled(X, explored, rng) * (w.size / explored)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SingleState(AlgorithmState):
    """The state of `SingleExamples`: the random attributes of the next example."""

    explored: Array


@dataclass(frozen=True)
class SingleExamples(Algorithm[SingleState]):
    """The naive algorithm of Section 3.1: a hard-thresholded gradient step after each example.

    Of each example the support and s' - s random attributes are observed; the gradient at the latter is multiplied by
    d / (s' - s). Step t has length step / t^power.
    """

    step: float
    power: float
    n_nonzero_coefs: int
    seed: int = 0

    def start(self, cost_model: CostModel, w0: Array | None = None, length: int | None = None) -> SingleState:
        w = np.zeros(cost_model.n_features) if w0 is None else hard_threshold(np.asarray(w0), self.n_nonzero_coefs)
        return SingleState(w=w, length=length, explored=self._draw(cost_model, 0))

    def query(self, cost_model: CostModel, state: SingleState) -> Query | None:
        return Query(np.union1d(state.support, state.explored), 1)

    def absorb(self, cost_model: CostModel, state: SingleState, indices: Array, x: Array, y: Array) -> SingleState:
        scale = cost_model.n_features / state.explored.size
        residual = float(x[0, positions(indices, state.support)] @ state.w[state.support] - y[0])
        t = state.seen + 1
        z = state.w.copy()
        z[state.explored] -= self.step / t**self.power * 2 * residual * scale * x[0, positions(indices, state.explored)]
        w = hard_threshold(z, self.n_nonzero_coefs)
        return replace(state, w=w, updates=t, seen=t, explored=self._draw(cost_model, t))

    def _draw(self, cost_model: CostModel, example: int) -> Array:
        rng = np.random.default_rng((self.seed, example, _EXPLORED))
        return np.sort(rng.choice(cost_model.n_features, cost_model.n_observed - self.n_nonzero_coefs, replace=False))
