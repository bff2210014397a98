"""What fits nowhere else."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer

from .instance import Instance, instance

Rng = np.random.Generator


@instance("non-linear features, HSIC", "reporting")
def hsic(rng: Rng) -> Instance:
    n, d, k = 100, 300, 4
    X = rng.standard_normal((n, d))
    y = -2 * np.sin(2 * X[:, 10]) + X[:, 60] ** 2 + X[:, 150] + np.exp(-X[:, 290]) + rng.standard_normal(n)

    def kernel(x: np.ndarray) -> np.ndarray:
        K = np.exp(-0.7 * np.subtract.outer(x, x) ** 2)
        return (K - K.mean(0) - K.mean(1)[:, None] + K.mean()).ravel()

    target, kernels = kernel(y), np.stack([kernel(x) for x in X.T], axis=1)
    return Instance(lambda w: jnp.mean((target - kernels @ jnp.abs(w)) ** 2), d, k)


@instance("portfolio", "development")
def portfolio(rng: Rng) -> Instance:
    days, d, k = 361, 200, 20
    factors = 0.01 * rng.standard_normal((days, 5))
    returns = factors @ rng.uniform(0.2, 1.5, (5, d)) + rng.uniform(0.005, 0.03, d) * rng.standard_normal((days, d))
    mean, cov = returns.mean(0), np.cov(returns.T)

    def fn(w: Any) -> Any:
        share = w / jnp.sum(w)
        return 1e4 * (share @ cov @ share - 0.001 * mean @ share)

    return Instance(fn, d, k, start=rng.standard_normal(d))


@instance("compositional data", "reporting")
def compositional(rng: Rng) -> Instance:
    n, p = 500, 25
    distance = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    cov = np.where(distance <= 4, 0.6**distance, 0.0)
    Y = rng.multivariate_normal(np.zeros(p), cov, n, check_valid="ignore")
    logs = Y - np.log(np.exp(Y).sum(1, keepdims=True))
    S = np.cov(logs.T)
    F = np.eye(p) - 1 / p
    V = np.linalg.inv(F @ np.diag(np.diag(S)) @ F.T + 1e-8 * np.eye(p))
    rows, columns = np.triu_indices(p)

    def fn(w: Any) -> Any:
        A = jnp.zeros((p, p)).at[rows, columns].set(w)
        rest = F @ (A + jnp.triu(A, 1).T - S) @ F.T
        return jnp.sum(rest * (F @ V @ F @ rest))

    return Instance(fn, rows.size, 60)


@instance("focal loss", "development")
def focal(rng: Rng) -> Instance:
    X, y = load_breast_cancer(return_X_y=True)
    kept = np.concatenate([np.flatnonzero(y == 1), rng.choice(np.flatnonzero(y == 0), 40, replace=False)])
    X, y = X[kept], y[kept].astype(float)
    X = (X - X.mean(0)) / X.std(0)
    X = np.hstack([X, np.ones((len(y), 1))])

    def fn(w: Any) -> Any:
        u = X @ w
        log_p, log_q = -jnp.logaddexp(0.0, -u), -jnp.logaddexp(0.0, u)
        hit = -0.25 * jnp.exp(2.0 * log_q) * log_p
        miss = -0.75 * jnp.exp(2.0 * log_p) * log_q
        return jnp.mean(jnp.where(y > 0, hit, miss)) + 1e-3 * jnp.sum(w**2)

    return Instance(fn, X.shape[1], 5)


@instance("clustering by exemplars", "reporting")
def exemplars(rng: Rng) -> Instance:
    n, k = 200, 5
    centres = 4.0 * rng.standard_normal((k, 2))
    X = centres[rng.integers(0, k, n)] + rng.standard_normal((n, 2))
    near = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))

    def fn(w: Any) -> Any:
        share = jnp.abs(w) / jnp.sum(jnp.abs(w))
        return -jnp.mean(jnp.log(near @ share + 1e-12))

    return Instance(fn, n, k, start=np.ones(n))


@instance("non-negative matrix factorisation", "development")
def factorisation(rng: Rng) -> Instance:
    m, n, rank, k = 30, 20, 4, 25
    H = np.zeros((rank, n))
    H.flat[rng.choice(rank * n, k, replace=False)] = rng.uniform(0, 100, k)
    W = rng.random((m, rank))
    X = W / W.sum(1, keepdims=True) @ H

    def fn(w: Any) -> Any:
        return jnp.sum((X - w[: m * rank].reshape(m, rank) @ w[m * rank :].reshape(rank, n)) ** 2)

    start = np.concatenate([rng.random(m * rank), 50.0 * rng.random(rank * n)])
    return Instance(fn, rank * (m + n), k, free=tuple(range(m * rank)), positive=True, start=start)
