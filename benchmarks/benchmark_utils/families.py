"""Simulated instances of every model that abess has too: correlated columns and a few planted coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

N_OUTPUTS = 3
"""The number of responses, and of classes without an order."""
_CUTS = (-1.5, 0.0, 1.0)
"""The thresholds of ordered classes, of which there are four."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A table with its planted columns.

    Attributes
    ----------
    X : array, shape (n, d)
        AR(1) Gaussian columns of variance 1.
    y : array, shape (n,) or (n, q)
        Responses, class numbers, or a column of times and one of events.
    support : array, shape (k,)
        The planted columns.
    """

    X: np.ndarray
    y: np.ndarray
    support: np.ndarray


def _squared(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 1.0 + u[:, 0] + rng.standard_normal(u.shape[0])


def _logistic(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.logistic(size=u.shape[0]) < 0.3 + u[:, 0]).astype(float)


def _poisson(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(np.exp(0.5 + u[:, 0])).astype(float)


def _multitask(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 1.0 + u + rng.standard_normal(u.shape)


def _multinomial(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.argmax(u + rng.gumbel(size=u.shape), axis=1)


def _ordinal(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.searchsorted(_CUTS, u[:, 0] + rng.logistic(size=u.shape[0]))


def _cox(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    death, end = rng.exponential(np.exp(-u[:, 0])), rng.exponential(2.0, u.shape[0])
    return np.column_stack([np.minimum(death, end), death <= end])


@dataclass(frozen=True, slots=True)
class Family:
    """How a response is drawn around linear predictors.

    Attributes
    ----------
    draw : callable
        From predictors, shape (n, q), and a generator to the response.
    size : float
        The size of the planted coefficients: large enough that most of them can be found among correlated columns.
    n_outputs : int
        q.
    """

    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    size: float
    n_outputs: int = 1


FAMILIES = {
    "squared": Family(_squared, 0.35),
    "logistic": Family(_logistic, 0.8),
    "poisson": Family(_poisson, 0.35),
    "multitask": Family(_multitask, 0.35, N_OUTPUTS),
    "multinomial": Family(_multinomial, 0.6, N_OUTPUTS),
    "ordinal": Family(_ordinal, 0.6),
    "cox": Family(_cox, 0.35),
}


def draw(name: str, n: int, d: int, k: int, rho: float, seed: int) -> Instance:
    """Return an instance of a family with k planted columns."""
    family = FAMILIES[name]
    rng = np.random.default_rng((seed, list(FAMILIES).index(name)))
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    support = np.sort(rng.permutation(d)[:k])
    if family.n_outputs == 1:
        signs = np.where(np.arange(k) % 2 == 0, 1.0, -1.0)
        coef = (family.size * signs * rng.uniform(0.8, 1.2, k))[:, None]
    else:
        coef = family.size * rng.standard_normal((k, family.n_outputs))
    return Instance(X, family.draw(X[:, support] @ coef, rng), support)
