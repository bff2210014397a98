"""The simulation of Hastie, Tibshirani and Tibshirani: 360 cells.

Columns are normal with correlation rho^|i-j|, and y = X b + noise of variance b'Sb / SNR, where S is the covariance.
The measures are theirs, of the model chosen by cross-validation rather than on a separate validation set:

* ``risk``: (b^ - b)'S(b^ - b) / b'Sb, *relative risk*, without the intercept, so that it is 1 for the empty model;
* ``test_error``: (expected squared error of a prediction, with the intercept) / (variance of the noise).

Reference: T. Hastie, R. Tibshirani and R. J. Tibshirani (2020), *Best subset, forward stepwise or lasso? Analysis and
recommendations based on extensive comparisons*, Statistical Science 35, 579-592.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from . import halves
from .instance import SQUARED, Fit, Judge, Training

SETTINGS = {"low": (100, 10, 5), "medium": (500, 100, 5), "high-5": (50, 1000, 5), "high-10": (100, 1000, 10)}
"""n, d and the number s of large coefficients."""

RATIOS = (0.05, 0.09, 0.14, 0.25, 0.42, 0.71, 1.22, 2.07, 3.52, 6.0)
"""Signal-to-noise ratios: evenly spaced logarithms, rounded as in the paper."""

CORRELATIONS = (0.0, 0.35, 0.7)
TYPES = (1, 2, 5)
"""Kinds of coefficients, as numbered in the paper; see `coefficients`."""

SEED = 18


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting, ratio, correlation and type of coefficients."""

    setting: str
    snr: float
    rho: float
    kind: int

    loss = SQUARED
    real = False

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """The place on each axis, counted from 0."""
        return (
            list(SETTINGS).index(self.setting),
            RATIOS.index(self.snr),
            CORRELATIONS.index(self.rho),
            TYPES.index(self.kind),
        )

    @property
    def title(self) -> str:
        """The name of the cell in tables."""
        return f"{self.setting} beta{self.kind} rho{self.rho:g} snr{self.snr:g}"

    @property
    def half(self) -> str:
        """Whether the cell is for choosing or for reporting."""
        return halves.of_cell(self.numbers)

    def draw(self, repetition: int) -> tuple[Training, Judge]:
        """Return data of their own for each cell and repetition."""
        rng = np.random.default_rng((SEED, *self.numbers, repetition))
        n, d, s = SETTINGS[self.setting]
        beta = coefficients(self.kind, d, s)
        X = autoregressive(rng, n, d, self.rho)
        signal = beta @ covariance_times(beta, self.rho)
        noise = signal / self.snr
        y = X @ beta + np.sqrt(noise) * rng.standard_normal(n)

        def judge(fit: Fit) -> dict[str, float]:
            error = fit.coef - beta
            risk = float(error @ covariance_times(error, self.rho))
            return {"risk": risk / signal, "test_error": (risk + fit.intercept**2 + noise) / noise}

        return Training(X, y, SQUARED), judge


def cells() -> list[Cell]:
    """Return all cells."""
    return [Cell(*parts) for parts in product(SETTINGS, RATIOS, CORRELATIONS, TYPES)]


def coefficients(kind: int, d: int, s: int) -> np.ndarray:
    """Return s ones: evenly spaced (1), or the first s (2), the others 0 or, for kind 5, 1/2, 1/4, 1/8, ..."""
    beta = np.zeros(d)
    if kind == 1:
        beta[np.round(np.linspace(0, d - 1, s)).astype(int)] = 1.0
    else:
        beta[:s] = 1.0
    if kind == 5:
        beta[s:] = 0.5 ** np.arange(1, d - s + 1)
    return beta


def autoregressive(rng: np.random.Generator, n: int, d: int, rho: float) -> np.ndarray:
    """Return n rows of d standard normal columns with correlation rho^|i-j|."""
    X = rng.standard_normal((n, d))
    for j in range(1, d if rho else 0):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X


def covariance_times(v: np.ndarray, rho: float) -> np.ndarray:
    """Return the product of the matrix of entries rho^|i-j| and a vector, in two sweeps."""
    if rho == 0:
        return v.copy()
    ahead, behind = v.copy(), v.copy()
    for j in range(1, v.size):
        ahead[j] += rho * ahead[j - 1]
        behind[-1 - j] += rho * behind[-j]
    return ahead + behind - v
