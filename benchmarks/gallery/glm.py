"""Generalised linear models."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from .instance import Instance, correlated, instance, planted

Rng = np.random.Generator


@instance("logistic regression", "reporting")
def logistic(rng: Rng) -> Instance:
    X = correlated(rng, 500, 500)
    y = (rng.random(500) < 1 / (1 + np.exp(-X @ planted(rng, 500, 8)))).astype(float)

    def fn(w: Any) -> Any:
        u = X @ w
        return jnp.mean(jnp.logaddexp(0.0, u) - y * u)

    return Instance(fn, 500, 8)


@instance("Poisson regression", "development")
def poisson(rng: Rng) -> Instance:
    X = correlated(rng, 400, 300)
    y = rng.poisson(np.exp(X @ planted(rng, 300, 6, 0.2) + 0.5)).astype(float)

    def fn(w: Any) -> Any:
        u = X @ w
        return jnp.mean(jnp.exp(u) - y * u)

    return Instance(fn, 300, 6)


@instance("Poisson regression, identity link, several outputs", "development")
def poisson_identity(rng: Rng) -> Instance:
    times, peaks, outputs, k = np.arange(150.0), 100, 3, 8
    centres = np.linspace(0, 149, peaks)
    X = np.exp(-0.5 * ((times[:, None] - centres) / 3.0) ** 2)
    heights = np.zeros((peaks, outputs))
    heights[rng.choice(peaks, k, replace=False)] = rng.uniform(50, 500, (k, outputs))
    Y = rng.poisson(X @ heights).astype(float)

    def fn(w: Any) -> Any:
        mu = X @ jnp.abs(w).reshape(peaks, outputs) + 1e-3  # what the detector counts without a signal
        return jnp.sum(mu - Y * jnp.log(mu))

    return Instance(fn, peaks * outputs, k, outputs, start=np.ones(peaks * outputs))


@instance("gamma regression", "reporting")
def gamma(rng: Rng) -> Instance:
    X = correlated(rng, 400, 300)
    y = rng.gamma(2.0, np.exp(X @ planted(rng, 300, 6, 0.3)) / 2.0)

    def fn(w: Any) -> Any:
        u = X @ w
        return jnp.mean(y * jnp.exp(-u) + u)

    return Instance(fn, 300, 6)


@instance("inverse Gaussian regression", "development")
def inverse_gaussian(rng: Rng) -> Instance:
    X = correlated(rng, 400, 200)
    y = rng.wald(np.exp(X @ planted(rng, 200, 5, 0.3)), 2.0)

    def fn(w: Any) -> Any:
        u = X @ w
        return jnp.mean(0.5 * y * jnp.exp(-2.0 * u) - jnp.exp(-u))

    return Instance(fn, 200, 5)


@instance("multinomial logistic regression", "reporting")
def multinomial(rng: Rng) -> Instance:
    n, d, classes, k = 400, 150, 3, 5
    X = correlated(rng, n, d)
    u = X @ planted(rng, d, k, 1.0, classes)
    label = np.argmax(u + rng.gumbel(size=u.shape), axis=1)
    Y = np.eye(classes)[label]

    def fn(w: Any) -> Any:
        u = X @ w.reshape(d, classes)
        top = jnp.max(u, axis=1, keepdims=True)
        return jnp.mean(top[:, 0] + jnp.log(jnp.sum(jnp.exp(u - top), axis=1)) - jnp.sum(Y * u, axis=1))

    return Instance(fn, d * classes, k, classes)


@instance("several outputs, least squares", "development")
def several(rng: Rng) -> Instance:
    n, d, outputs, k = 200, 300, 4, 8
    X = correlated(rng, n, d)
    W = planted(rng, d, k, 1.0, outputs)
    Y = X @ W  # without noise: the minimum is 0

    def fn(w: Any) -> Any:
        return jnp.mean((Y - X @ w.reshape(d, outputs)) ** 2)

    return Instance(fn, d * outputs, k, outputs)
