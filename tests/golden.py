"""Data and best values of the models, computed once by slow and simple code: `golden_models.json`.

Each model has a data set of 200 rows and 12 columns, made by `data`. The file holds, with an intercept (thresholds for
"ordinal", nothing for Cox's models) as the first entries of ``theta``: the minimiser on all columns without a ridge
("full"), with one ("ridge"), and with weights ("weighted"); and the lowest value of all supports of 1, 2, 3 and 4
columns without a ridge ("best"). The ridge is on the coefficients of the columns as they are.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.special import expit

GOLDEN = json.loads(Path(__file__).with_name("golden_models.json").read_text())
MODELS = {model["model"]: model for model in GOLDEN["models"]}
SIZES = dict.fromkeys(MODELS, 0.8) | dict.fromkeys(("poisson", "gamma", "tweedie", "negative_binomial"), 0.4)


def weights(model: str) -> np.ndarray:
    """The weights of the fit "weighted"."""
    return np.random.default_rng((MODELS[model]["seed"], 77)).integers(0, 4, GOLDEN["n"]).astype(float)


def correlated(rng: np.random.Generator, n: int, d: int, rho: float) -> np.ndarray:
    """Normal columns of unit variance, each correlated with the one before."""
    Z = rng.standard_normal((n, d))
    X = Z.copy()
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * Z[:, j]
    return X


def data(
    model: str, seed: int | None = None, n: int = 0, d: int = 0, k: int = 3, rho: float = 0.3, size: float = 0.0
) -> dict:
    """X, y, the support and the coefficients of a model (and event or offset): by default those of the file.

    `size` is the mean size of the coefficients.
    """
    seed, n, d, size = seed or MODELS[model]["seed"], n or GOLDEN["n"], d or GOLDEN["d"], size or SIZES[model]
    rng = np.random.default_rng((seed, sorted(MODELS).index(model)))
    X = correlated(rng, n, d, rho)
    support = np.sort(rng.permutation(d)[:k])
    coef = np.zeros(d)
    coef[support] = size * np.where(np.arange(k) % 2 == 0, 1.0, -1.0) * rng.uniform(0.8, 1.2, k)
    u = X @ coef
    made = {"X": X, "support": support}
    if model in ("multinomial", "multitask"):
        coef = np.zeros((d, 3))
        coef[support] = size * rng.standard_normal((k, 3))
        u = X @ coef
    if model == "poisson":
        made["offset"] = np.log(rng.uniform(0.5, 2.0, n))
        u = u + made["offset"]
    if model.startswith("cox"):
        times, censored = rng.exponential(np.exp(-u)), rng.exponential(2.0, n)
        made["event"], observed = (times <= censored).astype(float), np.minimum(times, censored)
        y = np.ceil(observed * 8) / 8 if model == "cox_efron" else observed
    else:
        y = TARGETS[model](u, rng)
    return made | {"y": y, "coef": coef}


def _tweedie(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mean, p = np.exp(0.5 + u), 1.5
    counts = rng.poisson(mean ** (2 - p) / (2 - p))
    sizes = rng.gamma(np.maximum(counts, 1) * (2 - p) / (p - 1), (p - 1) * mean ** (p - 1))
    return np.where(counts > 0, sizes, 0.0)


TARGETS = {
    "squared": lambda u, rng: 1.0 + u + rng.standard_normal(u.shape),
    "multitask": lambda u, rng: 1.0 + u + rng.standard_normal(u.shape),
    "logistic": lambda u, rng: (rng.uniform(size=u.size) < expit(0.3 + u)).astype(float),
    "multinomial": lambda u, rng: np.argmax(u + rng.gumbel(size=u.shape), axis=1).astype(float),
    "ordinal": lambda u, rng: np.searchsorted([-1.5, 0.0, 1.0], u + rng.logistic(size=u.size)).astype(float),
    "poisson": lambda u, rng: rng.poisson(np.exp(0.5 + u)).astype(float),
    "negative_binomial": lambda u, rng: rng.poisson(np.exp(1.0 + u) * rng.gamma(2.0, 0.5, u.size)).astype(float),
    "gamma": lambda u, rng: np.exp(0.5 + u) * rng.gamma(2.0, 0.5, u.size),
    "tweedie": _tweedie,
    "huber": lambda u, rng: 1.0 + u + rng.standard_t(2.5, u.size),
    "quantile": lambda u, rng: 1.0 + u + rng.standard_t(2.5, u.size),
    "squared_hinge": lambda u, rng: np.where(u + 0.7 * rng.logistic(size=u.size) > 0, 1.0, -1.0),
}
"""Targets around linear predictors; their theta is 2 (negative binomial), their power 1.5 (Tweedie)."""
