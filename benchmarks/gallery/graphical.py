"""Graphs of dependence."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from .instance import Instance, instance

Rng = np.random.Generator


def _precision(rng: Rng, p: int, edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a positive definite matrix with few edges, and the places of its upper triangle."""
    rows, columns = np.triu_indices(p)
    A = np.zeros((p, p))
    off = np.flatnonzero(rows != columns)
    some = rng.choice(off, edges, replace=False)
    A[rows[some], columns[some]] = rng.choice([-1.0, 1.0], edges) * rng.uniform(0.3, 0.5, edges)
    A = A + A.T
    np.fill_diagonal(A, max(1.0, 0.2 - np.linalg.eigvalsh(A)[0]))
    return A, rows, columns


def _symmetric(w: Any, rows: np.ndarray, columns: np.ndarray, p: int) -> Any:
    A = jnp.zeros((p, p)).at[rows, columns].set(w)
    return A + jnp.triu(A, 1).T


def _determinant(A: Any) -> Any:
    """Return log det A, minus infinity if A is not positive definite."""
    logs = jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(A))))
    return jnp.where(jnp.isnan(logs), -jnp.inf, 2.0 * logs)


@instance("Ising model", "reporting")
def ising(rng: Rng) -> Instance:
    p, n, edges = 20, 400, 20
    rows, columns = np.triu_indices(p, 1)
    w = np.zeros(rows.size)
    w[rng.choice(rows.size, edges, replace=False)] = rng.choice([-1.0, 1.0], edges) * rng.uniform(0.4, 0.8, edges)
    theta = np.zeros((p, p))
    theta[rows, columns] = theta[columns, rows] = w
    X = rng.choice([-1.0, 1.0], (n, p))
    for _ in range(60):  # sweeps of Gibbs' sampler
        for j in range(p):
            X[:, j] = np.where(rng.random(n) < 1 / (1 + np.exp(-2.0 * X @ theta[:, j])), 1.0, -1.0)

    def fn(w: Any) -> Any:
        theta = jnp.zeros((p, p)).at[rows, columns].set(w)
        return jnp.mean(jnp.sum(jnp.logaddexp(0.0, -2.0 * X * (X @ (theta + theta.T))), axis=1))

    return Instance(fn, rows.size, edges)


@instance("Gaussian precision matrix", "development")
def gaussian(rng: Rng) -> Instance:
    p, n, edges = 25, 200, 25
    A, rows, columns = _precision(rng, p, edges)
    S = np.cov(rng.multivariate_normal(np.zeros(p), np.linalg.inv(A), n).T)

    def fn(w: Any) -> Any:
        A = _symmetric(w, rows, columns, p)
        return jnp.sum(S * A) - _determinant(A)

    diagonal = tuple(np.flatnonzero(rows == columns).tolist())
    return Instance(fn, rows.size, edges, free=diagonal, start=np.eye(p)[rows, columns])


@instance("two Gaussian precision matrices", "reporting")
def joint(rng: Rng) -> Instance:
    p, n, edges = 15, 150, 15
    A, rows, columns = _precision(rng, p, edges)
    B = np.where(np.eye(p) > 0, A, 0.7 * A)
    S = [np.cov(rng.multivariate_normal(np.zeros(p), np.linalg.inv(M), n).T) for M in (A, B)]
    free = np.flatnonzero(np.repeat(rows == columns, 2))

    def fn(w: Any) -> Any:
        pair = w.reshape(-1, 2)
        both = [_symmetric(pair[:, i], rows, columns, p) for i in range(2)]
        return sum(jnp.sum(S[i] * M) - _determinant(M) for i, M in enumerate(both))

    start = np.repeat(np.eye(p)[rows, columns], 2)
    return Instance(fn, 2 * rows.size, edges, 2, free=tuple(free.tolist()), start=start)


@instance("precision matrix, Frobenius norm", "development")
def frobenius(rng: Rng) -> Instance:
    p, n, edges = 30, 150, 30
    A, rows, columns = _precision(rng, p, edges)
    S = np.corrcoef(rng.multivariate_normal(np.zeros(p), np.linalg.inv(A), n).T)

    def fn(w: Any) -> Any:
        return jnp.sqrt(jnp.sum((S @ _symmetric(w, rows, columns, p) - jnp.eye(p)) ** 2))

    diagonal = tuple(np.flatnonzero(rows == columns).tolist())
    return Instance(fn, rows.size, edges, free=diagonal, start=np.eye(p)[rows, columns])
