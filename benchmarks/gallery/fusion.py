"""Signals that are constant or linear in pieces."""

import jax.numpy as jnp
import numpy as np

from .instance import Instance, instance

Rng = np.random.Generator


@instance("trend filtering, constant pieces", "development")
def constant(rng: Rng) -> Instance:
    n, k = 1000, 20
    jumps = np.zeros(n)
    jumps[0], jumps[rng.choice(n, k - 1, replace=False)] = 10.0, rng.normal(0, 4, k - 1)
    y = np.cumsum(jumps) + 0.5 * rng.standard_normal(n)
    return Instance(lambda w: jnp.mean((y - jnp.cumsum(w)) ** 2), n, k)


@instance("trend filtering, linear pieces", "reporting")
def linear(rng: Rng) -> Instance:
    n, k = 300, 12
    bends = np.zeros(n)
    bends[rng.choice(n, k, replace=False)] = rng.normal(0, 0.5, k)
    y = np.cumsum(np.cumsum(bends)) + 0.5 * rng.standard_normal(n)
    return Instance(lambda w: jnp.mean((y - jnp.cumsum(jnp.cumsum(w))) ** 2), n, k)


@instance("trend filtering on a surface", "reporting")
def surface(rng: Rng) -> Instance:
    m, k = 25, 6
    bends = np.zeros((m, m))
    bends.flat[rng.choice(m * m, k, replace=False)] = rng.choice([-0.5, 0.5], k)
    s = np.arange(m)
    distance = np.maximum(np.subtract.outer(s, s), -1)  # i - s; -1 where s is beyond i
    both = distance[:, None, :, None] + distance[None, :, None, :]
    inside = (distance[:, None, :, None] >= 0) & (distance[None, :, None, :] >= 0)
    C = np.where(inside, np.maximum(both, 1), 0).reshape(m * m, m * m).astype(float)
    C[:, 0] = 1.0
    y = C @ bends.ravel() + 2.0 * rng.standard_normal(m * m)
    return Instance(lambda w: jnp.mean((y - C @ w) ** 2), m * m, k)


@instance("trend filtering on a graph", "development")
def graph(rng: Rng) -> Instance:
    m = 50
    signal = np.full((m, m), 1.0)
    signal[25:, :25], signal[25:, 25:] = 10.0, 20.0
    data = signal + rng.standard_normal((m, m))
    data[1::2] = data[1::2, ::-1]  # a depth-first walk through the grid
    y = data.ravel()
    return Instance(lambda w: jnp.sum((y - jnp.cumsum(w)) ** 2), m * m, 40)


@instance("trend filtering with a period", "development")
def periodic(rng: Rng) -> Instance:
    n, period, k = 480, 24, 16
    w = np.zeros(n + period)
    w[rng.choice(n, 8, replace=False)] = rng.normal(0, 3, 8)
    w[n + rng.choice(period, 8, replace=False)] = rng.normal(0, 3, 8)
    phase = np.arange(n) % period
    y = np.cumsum(w[:n]) + w[n:][phase] + 0.5 * rng.standard_normal(n)
    return Instance(lambda w: jnp.mean((y - jnp.cumsum(w[:n]) - w[n:][phase]) ** 2), n + period, k)
