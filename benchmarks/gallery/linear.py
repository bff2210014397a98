"""Linear models and their variants."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from .instance import Instance, correlated, instance, planted

Rng = np.random.Generator


def _regression(rng: Rng, n: int, d: int, k: int, noise: float = 1.0, rho: float = 0.5) -> tuple[np.ndarray, ...]:
    X = correlated(rng, n, d, rho)
    return X, X @ planted(rng, d, k) + noise * rng.standard_normal(n)


@instance("linear regression", "development")
def linear(rng: Rng) -> Instance:
    X, y = _regression(rng, 500, 500, 10)
    return Instance(lambda w: jnp.mean((y - X @ w) ** 2), 500, 10)


@instance("square-root loss", "reporting")
def square_root(rng: Rng) -> Instance:
    X, y = _regression(rng, 300, 500, 8)
    return Instance(lambda w: jnp.sqrt(jnp.mean((y - X @ w) ** 2)), 500, 8)


@instance("robust regression, exponential squared loss", "development")
def robust(rng: Rng) -> Instance:
    X, y = _regression(rng, 500, 200, 8, 0.5)
    y[rng.choice(500, 75, replace=False)] += 30.0 * rng.standard_normal(75)
    return Instance(lambda w: jnp.mean(1.0 - jnp.exp(-((y - X @ w) ** 2) / 20.0)), 200, 8)


@instance("Huber loss with outliers", "reporting")
def huber(rng: Rng) -> Instance:
    X, y = _regression(rng, 500, 300, 8)
    y[rng.choice(500, 75, replace=False)] += 30.0 * rng.standard_normal(75)

    def fn(w: Any) -> Any:
        r = jnp.abs(y - X @ w)
        return jnp.mean(jnp.where(r <= 1.35, 0.5 * r**2, 1.35 * r - 0.5 * 1.35**2))

    return Instance(fn, 300, 8)


@instance("least absolute deviations", "development")
def absolute(rng: Rng) -> Instance:
    X, y = _regression(rng, 300, 200, 6)
    y += rng.standard_t(2, 300)
    return Instance(lambda w: jnp.mean(jnp.abs(y - X @ w)), 200, 6)


@instance("quantile regression", "reporting")
def quantile(rng: Rng) -> Instance:
    X, y = _regression(rng, 300, 200, 6)

    def fn(w: Any) -> Any:
        r = y - X @ w
        return jnp.mean(jnp.where(r < 0, -0.2 * r, 0.8 * r))

    return Instance(fn, 200, 6)


@instance("expectile regression", "development")
def expectile(rng: Rng) -> Instance:
    X, y = _regression(rng, 300, 400, 8)

    def fn(w: Any) -> Any:
        r = y - X @ w
        return jnp.mean(jnp.where(r < 0, 0.2, 0.8) * r**2)

    return Instance(fn, 400, 8)


@instance("linear mixed model", "reporting")
def mixed(rng: Rng) -> Instance:
    clusters, size, q, d = 15, 8, 4, 200
    X = correlated(rng, clusters * size, d, 0.2)
    Z = rng.standard_normal((clusters, size, q))
    cov = 0.56 ** np.abs(np.subtract.outer(np.arange(q), np.arange(q)))
    random = np.einsum("cij,cj->ci", Z, rng.multivariate_normal(np.zeros(q), cov, clusters)).ravel()
    y = X @ planted(rng, d, 3) + random + 0.25 * rng.standard_normal(clusters * size)
    halves = []
    for z in Z:  # by the proxy covariance of Li, Cai and Li (2022), a Z Z' + I with a = 3
        values, vectors = np.linalg.eigh(3.0 * z @ z.T + np.eye(size))
        halves.append((vectors / np.sqrt(values)) @ vectors.T)
    whiten = np.zeros((clusters * size, clusters * size))
    for c, half in enumerate(halves):
        whiten[c * size : (c + 1) * size, c * size : (c + 1) * size] = half
    Xa, ya = whiten @ X, whiten @ y
    return Instance(lambda w: jnp.mean((ya - Xa @ w) ** 2), d, 3)


@instance("non-negative least squares", "development")
def non_negative(rng: Rng) -> Instance:
    X = correlated(rng, 200, 400, 0.7)
    y = X @ np.abs(planted(rng, 400, 15, 0.5)) + rng.standard_normal(200)
    return Instance(lambda w: jnp.mean((y - X @ w) ** 2), 400, 15, positive=True)


@instance("isotonic regression", "reporting")
def isotonic(rng: Rng) -> Instance:
    y = 2.0 * np.log1p(np.arange(500)) + rng.standard_normal(500)
    return Instance(lambda w: jnp.mean((y - jnp.cumsum(w)) ** 2), 500, 10, positive=True)
