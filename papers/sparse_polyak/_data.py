"""The problems of section 6; the same seed always gives the same arrays, which published counts were measured on."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import expit


class Drawn(NamedTuple):
    """A design, a response, and the true coefficients with the increasing indices of their non-zeros."""

    X: NDArray[Any]
    y: NDArray[Any]
    coef: NDArray[Any]
    support: NDArray[np.int64]


def sample_size(alpha: float, sparsity: int, n_features: int) -> int:
    """Return n = ceil(alpha s log d)."""
    return math.ceil(alpha * sparsity * math.log(n_features))


def ar1_problem(
    n_features: int,
    sparsity: int,
    n_nonzero: int,
    *,
    model: str = "linear",
    alpha: float = 5.0,
    n_samples: int | None = None,
    correlation: float = 0.5,
    noise_variance: float = 0.25,
    coef_scale: float = 1.0,
    coef_squared_norm: float | None = None,
    dtype: DTypeLike = np.float64,
    seed: int = 0,
) -> Drawn:
    """Draw a regression problem whose features are an autoregressive process of order one.

    x_1 = e_1 / sqrt(1 - omega^2) and x_{t+1} = omega x_t + e_{t+1} with standard normal e, so that every feature has
    variance 1 / (1 - omega^2). With u = x' theta*, the response is u + N(0, noise_variance) for "linear", 1 with
    probability 1 / (1 + exp(-u)) and else 0 for "logistic", Poisson with mean exp(u) for "poisson". There are
    `sample_size` rows unless `n_samples` is given. `coef_scale` is the standard deviation of the coefficients; given
    `coef_squared_norm`, which is not in the paper, they are rescaled to it.

    Draw order: the innovations, feature by feature; the support, without replacement; the coefficients, assigned to
    the sorted support; the noise, or the uniform (logistic) or Poisson draws. The paper uses the same innovation for
    the first two features, which makes them collinear; here each has its own. X is Fortran-ordered; its features are
    computed in float64 and rounded to `dtype`.
    """
    if n_samples is None:
        n_samples = sample_size(alpha, sparsity, n_features)
    rng = np.random.default_rng(seed)
    features = np.empty((n_features, n_samples), dtype=dtype)
    feature = rng.standard_normal(n_samples) / math.sqrt(1.0 - correlation**2)
    features[0] = feature
    for j in range(1, n_features):  # one at a time: float32 problems need no float64 copy
        feature = correlation * feature + rng.standard_normal(n_samples)
        features[j] = feature

    support = np.sort(rng.choice(n_features, n_nonzero, replace=False))
    values = coef_scale * rng.standard_normal(n_nonzero)
    if coef_squared_norm is not None:
        values *= math.sqrt(coef_squared_norm / float(values @ values))
    mean = values @ features[support].astype(np.float64)
    if model == "linear":
        y = mean + math.sqrt(noise_variance) * rng.standard_normal(n_samples)
    elif model == "logistic":
        y = (rng.random(n_samples) < expit(mean)).astype(np.float64)
    elif model == "poisson":
        y = rng.poisson(np.exp(mean)).astype(np.float64)
    else:
        raise ValueError(f"unknown model {model!r}")
    coef = np.zeros(n_features)
    coef[support] = values
    return Drawn(features.T, y.astype(dtype), coef.astype(dtype), support)
