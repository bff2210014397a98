"""The methods under their names, the data of the specification, and what is read off a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, log, sqrt
from typing import Any

import numpy as np

from hardthresh.limited import (
    AdaptiveHybrid,
    ArraySource,
    DantzigSelector,
    Exploration,
    Geometric,
    Hybrid,
    RegularizedDualAveraging,
)
from hardthresh.limited.learner import Algorithm, Learner

Method = Callable[[int, int], Algorithm]
"""An algorithm by s and the seed of its random subsets."""


def hybrid(step: float) -> Method:
    """Return Algorithm 3 with the batches that were tuned on data set 100, and three explorations per round."""
    return lambda s, seed: Hybrid(step, Geometric(200, 2), Geometric(2000, 2), 3, 5, n_nonzero_coefs=s)


def exploration(step: float) -> Method:
    """Return Algorithm 1 with the batches that were tuned on data set 100."""
    return lambda s, seed: Exploration(step, Geometric(100, 1.2), s)


def rda(gamma: float) -> Method:
    """Return dual averaging with gradients at the predictor."""
    return lambda s, seed: RegularizedDualAveraging(s, gamma=gamma, seed=seed)


def dantzig(c: float) -> Method:
    """Return the Dantzig selector."""
    return lambda s, seed: DantzigSelector(s, c=c, seed=seed)


METHODS: dict[str, Method] = {
    "adaptive": lambda s, seed: AdaptiveHybrid(s),
    "hybrid": hybrid(0.3),
    "hybrid .1": hybrid(0.1),
    "exploration": exploration(0.3),
    "rda": rda(110.0),
    "rda dense": lambda s, seed: RegularizedDualAveraging(s, gamma=650.0, gradient="dense", seed=seed),
    "dantzig": dantzig(1.0),
}
"""With the values that the specification tuned on data set 100; in AdaptiveHybrid there is nothing to tune."""

NAMES = {
    "adaptive": "AdaptiveHybrid (ours, nothing tuned)",
    "hybrid": "Hybrid, Algorithm 3",
    "hybrid .1": "Hybrid, Algorithm 3, η = .1",
    "exploration": "Exploration, Algorithm 1",
    "rda": "RDA, gradient at the predictor",
    "rda dense": "RDA, gradient at the dense point",
    "dantzig": "Dantzig selector",
    "least squares": "least squares on the true support, all seen",
}
"""What the figures call them."""

KINDS = {
    "ar5": "neighbours correlated, .5",
    "equi3": "all correlated, .3",
    "normal": "coefficients normal, some tiny",
    "sigma5": "noise of deviation 5",
    "scales": "scales from .3 to 3",
    "d1000": "1,000 attributes, 54,000 examples",
    "n27": "27,000 examples",
}
"""The data sets of the robustness table, and what the figures call them."""

Measure = Callable[[Any, float], float]


@lru_cache(maxsize=1)  # cells of one data set stand side by side
def data(kind: str, seed: int, size: float = 1.0) -> tuple[Any, Any, Any, Any, Any]:
    """Return the training stream, the test set, and the coefficients; a `size` below 1 is for tests."""
    if kind == "paper":
        X, y, train, test, truth = stream(int(100_000 * size), seed=seed)
    else:
        X, y, train, test, truth = _robustness(kind, seed, size)
    return X[train], y[train], X[test].astype(float), y[test], truth


def stream(
    n_samples: int,
    n_features: int = 500,
    n_nonzero: int = 25,
    *,
    noise_variance: float = 1.0,
    dtype: Any = np.float32,
    seed: int = 0,
) -> tuple[Any, Any, Any, Any, Any]:
    """Draw the paper's stream: independent normal attributes, and coefficients 1, ..., 1, -1, ..., -1, 0, ..., 0.

    Draw order: the design, row by row, in `dtype`; the noise; a permutation whose first nine tenths are the stream.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features), dtype=dtype)
    truth = np.zeros(n_features)
    truth[:n_nonzero] = np.where(np.arange(n_nonzero) < (n_nonzero + 1) // 2, 1.0, -1.0)
    y = X[:, :n_nonzero].astype(float) @ truth[:n_nonzero] + sqrt(noise_variance) * rng.standard_normal(n_samples)
    order = rng.permutation(n_samples)
    cut = round(0.9 * n_samples)
    return X, y, order[:cut], order[cut:], truth


def _robustness(kind: str, seed: int, size: float) -> tuple[Any, Any, Any, Any, Any]:
    """Draw `gen(kind, seed)` of the specification.

    Draw order: the design, a common part (all correlated), the support, the coefficients, the scales, the noise, a
    permutation whose first nine tenths are the stream.
    """
    rng = np.random.default_rng(1000 + seed)
    n = int({"d1000": 60_000, "n27": 30_000}.get(kind, 100_000) * size)
    d, s = (1000, 10) if kind == "d1000" else (500, 25)
    X = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "ar5":
        for j in range(1, d):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    if kind == "equi3":
        X = (np.sqrt(0.7) * X + np.sqrt(0.3) * rng.standard_normal((n, 1))).astype(np.float32)
    support, truth = rng.choice(d, s, False), np.zeros(d)
    truth[support] = rng.standard_normal(s) if kind == "normal" else rng.choice([-1, 1], s)
    if kind == "scales":
        scale = np.exp(rng.uniform(log(0.3), log(3), d))
        X, truth = (X * scale).astype(np.float32), truth / scale
    y = X[:, support].astype(float) @ truth[support] + (5.0 if kind == "sigma5" else 1.0) * rng.standard_normal(n)
    order = rng.permutation(n)
    cut = round(0.9 * n)
    return X, y, order[:cut], order[cut:], truth


def budget(kind: str) -> tuple[int, int]:
    """Return s* and s' of a kind of data."""
    return (10, 40) if kind == "d1000" else (25, 50)


def excess(truth: Any) -> Measure:
    """Return the excess risk for independent standard normal attributes: that of the coefficients and the intercept."""
    return lambda w, b: float(np.sum((w - truth) ** 2) + b**2)


def test_excess(X: Any, y: Any, truth: Any) -> Measure:
    """Return the mean squared error on a test set, less that of the true coefficients."""
    least = error(X, y, truth, 0.0)
    return lambda w, b: error(X, y, w, b) - least


def error(X: Any, y: Any, w: Any, b: float) -> float:
    """Return the mean squared error."""
    chosen = np.flatnonzero(w)
    return float(np.mean((y - X[:, chosen] @ w[chosen] - b) ** 2))


def follow(
    solver: Algorithm,
    X: Any,
    y: Any,
    n_observed: int,
    measures: dict[str, Measure],
    *,
    points: Sequence[int] = (),
    level: float | None = None,
) -> dict[str, Any]:
    """Learn from a stream, once, and measure.

    Returns the measures of what could be concluded when each of the `points` had just been passed, and at the end; the
    examples used until the first measure was below the `level`, None if it never was; and the non-zeros of the end. Of
    a run that diverged the measures are infinite from there on.
    """
    source = ArraySource(X, y, n_observed=n_observed, shuffle=False)
    learner = Learner.of(solver, source.cost_model, None, source.remaining)
    watched = next(iter(measures.values()))
    due = [*points]
    rows: dict[str, list[float]] = {name: [] for name in measures}
    first, updates = None, 0
    while learner.step(source):
        used, state = source.meter.examples, learner.state
        if level is not None and first is None and state.updates != updates:
            first = used if watched(state.w, state.intercept) < level else None
        updates = state.updates
        while due and used >= due[0]:
            due.pop(0)
            _add(rows, measures, learner)
    if learner.diverged:
        rows = {name: values + [inf] * (len(due) + 1) for name, values in rows.items()}
    else:
        for _ in range(len(due) + 1):
            _add(rows, measures, learner)
    return {
        **rows,
        "first": first,
        "examples": source.meter.examples,
        "most": source.meter.max_per_example,
        "support": learner.final_state().support.tolist(),
    }


def _add(rows: dict[str, list[float]], measures: dict[str, Measure], learner: Learner) -> None:
    state = learner.final_state()
    for name, measure in measures.items():
        rows[name].append(measure(state.w, state.intercept))


def least_squares(X: Any, y: Any, support: Any, d: int) -> Any:
    """Return the coefficients of least squares on some attributes, without an intercept."""
    w = np.zeros(d)
    w[support] = np.linalg.lstsq(X[:, support].astype(float), y, rcond=None)[0]
    return w


def number(value: float | None) -> float:
    """Return a number in which "not reached" is infinite."""
    return inf if value is None else float(value)


def mean(values: Sequence[float]) -> float:
    """Return the mean; infinite if one is."""
    return float(np.mean(values))


def slope(at: Sequence[float], values: Sequence[float]) -> float:
    """Return the exponent of a power law, fitted by least squares to logarithms."""
    return float(np.polyfit(np.log(at), np.log(values), 1)[0])


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation, 0 of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def example_curve(points: Sequence[int], rate: float = 1.0) -> list[float]:
    """Return a made-up curve at the points, and once more at the end."""
    falling = [25.0 / sqrt(1.0 + rate * n / 1000.0) for n in points]
    return [*falling, falling[-1] if falling else 0.001]
