"""The simulated instances of the performance study, draw for draw: its tables and ours are about the same numbers.

`hardthresh.datasets` has simulators of the same designs for users. They draw in another order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

Drawn = tuple[Any, Any, Any]  # X, y and the planted support


def least_squares(n: int, d: int, k: int, rho: float, snr: float, seed: int) -> Drawn:
    """Return a regression: AR(1) columns of mean 0 and mean square 1, k coefficients of size 1 to 2, centred y.

    y keeps its natural scale, which favours abess: its stopping rule has an absolute threshold.
    """
    rng = np.random.default_rng(seed)
    X = _autoregressive(rng, n, d, rho)
    support, beta = _plant(rng, np.arange(d), k)
    f = X[:, support] @ beta
    y = f + rng.standard_normal(n) * math.sqrt(f.var() / snr)
    return X, y - y.mean(), support


def logistic(n: int, d: int, k: int, rho: float, scale: float, seed: int) -> Drawn:
    """Return two classes, 0 and 1, with a linear predictor of standard deviation `scale` in such columns."""
    rng = np.random.default_rng(seed)
    X = _autoregressive(rng, n, d, rho)
    support, beta = _plant(rng, np.arange(d), k)
    return X, _classes(rng, X[:, support] @ beta, scale), support


def several_outputs(n: int, d: int, k: int, rho: float, loss: str, seed: int) -> Drawn:
    """Return three outputs, or three classes, of AR(1) columns of variance 1: the draws of the specification of models.

    The coefficients of a planted column are normal, of standard deviation 0.35 for outputs with noise of variance 1,
    and 0.6 for classes.
    """
    rng = np.random.default_rng((seed, 6 if loss == "multi_task" else 5))
    Z = rng.standard_normal((n, d))
    X = Z.copy()
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + math.sqrt(1 - rho * rho) * Z[:, j]
    support = np.sort(rng.permutation(d)[:k])
    rng.uniform(0.8, 1.2, k)  # which models of one output use
    f = X[:, support] @ ((0.35 if loss == "multi_task" else 0.6) * rng.standard_normal((k, 3)))
    if loss == "multi_task":
        return X, 1.0 + f + rng.standard_normal((n, 3)), support
    return X, np.argmax(f + rng.gumbel(size=(n, 3)), axis=1).astype(float), support


def correlated(
    n: int, d: int, k: int, design: str, rho: float, snr: float, loss: str, seed: int, block: int = 10
) -> Drawn:
    """Return an instance of the study of quality: columns of mean square 1 that resemble one another.

    `design` is "ar1" (as in `least_squares`) or "blocks": `block` neighbours share a factor, so that each pair of them
    has correlation rho, and the blocks are independent. y is centred. For two classes `snr` is the variance of the
    linear predictor over that of the logistic distribution, pi^2 / 3, which is that of the noise of a classifier.
    Instances of one seed are independent of one another.
    """
    rng = np.random.default_rng((seed, n, d, round(1000 * rho), round(10 * snr)))
    X = _autoregressive(rng, n, d, rho) if design == "ar1" else _blocks(rng, n, d, rho, block)
    support, beta = _plant(rng, np.arange(d), k)
    f = X[:, support] @ beta
    if loss == "logistic":
        return X, _classes(rng, f, math.pi * math.sqrt(snr / 3.0)), support
    y = f + rng.standard_normal(n) * math.sqrt(f.var() / snr)
    return X, y - y.mean(), support


def sparse_text(n: int, d: int, density: float, k: int, loss: str, signal: float, seed: int) -> Drawn:
    """Return counts like those of words, by column: Zipf frequencies, positive values, nothing centred or scaled.

    `signal` is the signal-to-noise ratio of a regression, the standard deviation of the predictor of two classes.
    """
    rng = np.random.default_rng(seed)
    entries = int(n * d * density)
    frequency = 1.0 / np.arange(1, d + 1) ** 0.7
    columns = rng.choice(d, entries, p=frequency / frequency.sum())
    rows = rng.integers(0, n, entries)
    X = scipy.sparse.csc_matrix((np.abs(rng.standard_normal(entries)) + 0.1, (rows, columns)), shape=(n, d))
    X.sum_duplicates()
    X.sort_indices()
    frequent = np.flatnonzero(np.diff(X.indptr) >= 200)
    support, beta = _plant(rng, frequent, k)
    coefficients = np.zeros(d)
    coefficients[support] = beta
    f = X @ coefficients
    if loss == "logistic":
        return X, _classes(rng, f, signal), support
    return X, f + rng.standard_normal(n) * math.sqrt(f.var() / signal), support


def _autoregressive(rng: Any, n: int, d: int, rho: float) -> Any:
    X = np.empty((n, d), order="F")
    X[:, 0] = rng.standard_normal(n)
    innovation = math.sqrt(1 - rho * rho)
    for j in range(1, d):
        X[:, j] = rng.standard_normal(n) if rho == 0 else rho * X[:, j - 1] + innovation * rng.standard_normal(n)
    X -= X.mean(0)
    X /= np.sqrt((X * X).mean(0))
    return X


def _blocks(rng: Any, n: int, d: int, rho: float, block: int) -> Any:
    factors = rng.standard_normal((n, -(-d // block)))
    X = math.sqrt(rho) * np.repeat(factors, block, axis=1)[:, :d] + math.sqrt(1 - rho) * rng.standard_normal((n, d))
    X -= X.mean(0)
    X /= np.sqrt((X * X).mean(0))
    return np.asfortranarray(X)


def _plant(rng: Any, candidates: Any, k: int) -> tuple[Any, Any]:
    """Return a support and its coefficients: random signs, sizes between 1 and 2."""
    support = np.sort(rng.choice(candidates, k, replace=False))
    return support, rng.choice([-1.0, 1.0], k) * rng.uniform(1, 2, k)


def _classes(rng: Any, f: Any, scale: float) -> Any:
    return (rng.random(f.size) < 1 / (1 + np.exp(-f * (scale / f.std())))).astype(float)
