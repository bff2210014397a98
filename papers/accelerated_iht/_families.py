"""The families of problems on which momenta are compared, and when a run on them has converged."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from hardthresh.objectives import LinearModel

from ._data import correlated_split, gaussian_design, toy

SHARE = 1e-10
"""The share of f(0) at which a run on a noiseless problem has converged."""

# problem: (kind, arguments, budget, data sets, limit)
PROBLEMS: dict[str, tuple[str, list[Any], int, int, int]] = {
    "toy": ("toy", [], 2, 60, 400),
    "m300 k20": ("gaussian", [300, 1000, 20], 20, 6, 1000),
    "m300 k87": ("gaussian", [300, 1000, 20], 87, 6, 1000),
    "m200 k40": ("gaussian", [200, 1000, 40], 40, 6, 1000),
    "fig. 3 k20": ("correlated", [0.4], 20, 6, 1000),
    "fig. 3 k60": ("correlated", [0.4], 60, 6, 1000),
    "AR .95 k20": ("correlated", [0.95], 20, 6, 1500),
}

TITLES = {
    "m300 k20": "300 × 1,000, k = 20",
    "m300 k87": "the same, k = 87: overshot",
    "m200 k40": "200 × 1,000, k = 40: near the limit",
    "fig. 3 k20": "Figure 3's data, k = 20",
    "fig. 3 k60": "the same, k = 60",
    "AR .95 k20": "correlation .95, k = 20",
}


@lru_cache(maxsize=1)  # cells of one data set stand side by side
def problem(kind: str, arguments: tuple[Any, ...], seed: int) -> tuple[LinearModel, float]:
    """Return a problem, and the step 1/L in the units of the mean loss."""
    if kind == "toy":
        drawn = toy(seed=seed)
        X, y = drawn.X, drawn.y
    elif kind == "gaussian":
        drawn = gaussian_design(*arguments, seed=seed)
        X, y = drawn.X, drawn.y
    else:
        split = correlated_split(correlation=arguments[0], seed=seed)
        X, y = split.X[split.train], split.y[split.train]
    return LinearModel(X, y), len(y) / float(np.linalg.norm(X, 2) ** 2)
