"""Models of survival times."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from .instance import Fn, Instance, correlated, instance, planted

Rng = np.random.Generator


def _partial_likelihood(X: np.ndarray, times: np.ndarray, events: np.ndarray, at_risk: np.ndarray) -> Fn:
    """Return Cox's negative log partial likelihood by a matrix of who is at risk at whose time."""
    died = events > 0

    def fn(w: Any) -> Any:
        u = X @ w
        risk = jnp.where(at_risk[died], u[None, :], -jnp.inf)
        top = jnp.max(risk, axis=1)
        return jnp.mean(top + jnp.log(jnp.sum(jnp.exp(risk - top[:, None]), axis=1)) - u[died])

    return fn


@instance("additive hazards", "reporting")
def additive(rng: Rng) -> Instance:
    n, d, k = 300, 100, 4
    w = 0.5 * np.abs(planted(rng, d, k))
    X = correlated(rng, 10 * n, d, 0.2)
    X = X[X @ w > -1][:n]
    times = -np.log(rng.random(n)) / (1 + X @ w)
    ends = rng.uniform(0, 5, n)
    events, times = (times <= ends).astype(float), np.minimum(times, ends)
    order = np.argsort(times)
    X, events, times = X[order], events[order], times[order]
    V, b = np.zeros((d, d)), np.zeros(d)
    for i, gap in enumerate(np.diff(times, prepend=0.0)):
        centred = X[i:] - X[i:].mean(0)
        V += gap * centred.T @ centred / n
        b += events[i] * (X[i] - X[i:].mean(0)) / n
    return Instance(lambda w: 0.5 * w @ V @ w - b @ w, d, k)


@instance("proportional hazards", "development")
def cox(rng: Rng) -> Instance:
    n, d, k = 250, 200, 6
    X = correlated(rng, n, d)
    times = rng.exponential(np.exp(-X @ planted(rng, d, k, 0.7)))
    ends = rng.exponential(np.quantile(times, 0.7), n)
    seen = np.minimum(times, ends)
    return Instance(_partial_likelihood(X, seen, times <= ends, seen[None, :] >= seen[:, None]), d, k)


@instance("several failure times", "reporting")
def failures(rng: Rng) -> Instance:
    n, d, k = 200, 150, 5
    w, parts = planted(rng, d, k, 0.7), []
    frailty = rng.gamma(2.0, 0.5, n)
    for _ in range(2):
        X = correlated(rng, n, d)
        times = rng.exponential(np.exp(-X @ w) / frailty)
        ends = rng.uniform(0, np.quantile(times, 0.9), n)
        seen = np.minimum(times, ends)
        parts.append(_partial_likelihood(X, seen, times <= ends, seen[None, :] >= seen[:, None]))
    return Instance(lambda w: parts[0](w) + parts[1](w), d, k)


@instance("competing risks", "development")
def competing(rng: Rng) -> Instance:
    n, d, k = 250, 150, 5
    X = correlated(rng, n, d)
    rate = np.exp(X @ planted(rng, d, k, 0.7))
    first = rng.random(n) < 1 - 0.5**rate
    inner = 1 - rng.random(n) * (1 - 0.5**rate)
    times = np.where(first, -np.log(np.clip(2.0 * inner ** (1 / rate) - 1.0, 1e-12, None)), rng.exponential(1 / rate))
    ends = rng.uniform(0, 10, n)
    seen, died = np.minimum(times, ends), times <= ends
    other = died & ~first  # those who died of something else stay at risk until the end of their observation
    at_risk = (seen[None, :] >= seen[:, None]) | (other[None, :] & (ends[None, :] >= seen[:, None]))
    return Instance(_partial_likelihood(X, seen, died & first, at_risk), d, k)


@instance("interval censoring", "reporting")
def interval(rng: Rng) -> Instance:
    n, d, k = 300, 150, 5
    X = correlated(rng, n, d, 0.2)
    times = -np.log(rng.random(n)) * np.exp(-X @ planted(rng, d, k, 0.5))
    visits = np.concatenate([[0.0], np.quantile(times, np.linspace(0.1, 0.9, 9)), [50.0 * times.max()]])
    place = np.searchsorted(visits, times)
    left, right = visits[place - 1], visits[place]

    def fn(w: Any) -> Any:
        rate = jnp.exp(X @ w)  # log(S(left) - S(right)) of an exponential time
        return jnp.mean(rate * left - jnp.log(-jnp.expm1(-rate * (right - left))))

    return Instance(fn, d, k)
