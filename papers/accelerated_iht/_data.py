"""The problems of the paper; the same seed always gives the same arrays, which published counts were measured on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

ROWS = 64
"""Rows that are drawn at a time: they fill the cache lines of a column. Arbitrary from 16 up."""


class Drawn(NamedTuple):
    """A design, a response, and the true coefficients with the increasing indices of their non-zeros."""

    X: NDArray[Any]
    y: NDArray[Any]
    coef: NDArray[Any]
    support: NDArray[np.int64]


class Split(NamedTuple):
    """A problem with the rows of its training and of its test half."""

    X: NDArray[Any]
    y: NDArray[Any]
    coef: NDArray[Any]
    support: NDArray[np.int64]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


def gaussian_design(
    n_samples: int, n_features: int, n_nonzero: int, *, dtype: DTypeLike = np.float64, seed: int = 0
) -> Drawn:
    """Draw Phi with entries N(0, 1/m) and b = Phi x* with x* of unit norm (Figure 2).

    Draw order: Phi, row by row, in `dtype`; the support, without replacement; the values, normal, assigned in the
    order drawn. Phi is Fortran-ordered, x* float64. Beside Phi itself only `ROWS` rows are kept in memory.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((n_samples, n_features), dtype=dtype, order="F")
    for start in range(0, n_samples, ROWS):
        block = X[start : start + ROWS]
        block[:] = rng.standard_normal(block.shape, dtype=X.dtype.type) / np.sqrt(n_samples).astype(dtype)
    drawn, coef = _unit_normal_coef(rng, n_features, n_nonzero)
    y = X[:, drawn] @ coef[drawn].astype(dtype)
    return Drawn(X, y, coef, np.sort(drawn))


def toy(n_samples: int = 6, n_features: int = 10, n_nonzero: int = 2, *, seed: int = 0) -> Drawn:
    """Draw Phi with entries N(0, 1) and b = Phi x* with x* of unit norm (Figure 1).

    Draw order: as `gaussian_design`.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    drawn, coef = _unit_normal_coef(rng, n_features, n_nonzero)
    return Drawn(X, X @ coef, coef, np.sort(drawn))


def correlated_split(
    n_samples: int = 800,
    n_features: int = 200,
    n_nonzero: int = 20,
    *,
    correlation: float = 0.4,
    snr: float = 10.0,
    seed: int = 0,
) -> Split:
    """Draw y = Phi x* + e with |Phi x*|^2 / |e|^2 = snr, and a random half of the rows for training (Figure 3).

    The rows of Phi are AR(1) across the features with unit variance, and its columns are then scaled to unit norm.
    Draw order: the innovations, row by row; the support and the values, as in `gaussian_design`; the noise; the
    permutation of the rows, whose first half is `train`.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 1:] *= np.sqrt(1 - correlation**2)
    for j in range(1, n_features):
        X[:, j] += correlation * X[:, j - 1]
    X /= np.linalg.norm(X, axis=0)
    drawn, coef = _unit_normal_coef(rng, n_features, n_nonzero)
    signal = X @ coef
    noise = rng.standard_normal(n_samples)
    noise *= np.linalg.norm(signal) / np.linalg.norm(noise) / np.sqrt(snr)
    order = rng.permutation(n_samples)
    train, test = order[: n_samples // 2], order[n_samples // 2 :]
    return Split(X, signal + noise, coef, np.sort(drawn), train, test)


def conditioned_design(n_samples: int, n_features: int, n_nonzero: int, *, condition: float, seed: int = 0) -> Drawn:
    """Draw a design whose planted columns have a given condition number, and y = X w with w of entries 1 and -1.

    The eigenvalues of X'X / n on the planted columns are a geometric sequence from 1 / `condition` to 1, with random
    singular vectors; each other column is normal with mean square 1. Draw order: the design, row by row; the
    support, without replacement; the left and the right singular vectors; the signs. Designs of one seed and different
    condition numbers share everything but the eigenvalues.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X *= np.sqrt(n_samples) / np.linalg.norm(X, axis=0)
    support = np.sort(rng.choice(n_features, n_nonzero, replace=False))
    left, _ = np.linalg.qr(rng.standard_normal((n_samples, n_nonzero)))
    right, _ = np.linalg.qr(rng.standard_normal((n_nonzero, n_nonzero)))
    eigenvalues = np.geomspace(1.0, 1.0 / condition, n_nonzero)
    X[:, support] = np.sqrt(n_samples) * (left * np.sqrt(eigenvalues)) @ right.T
    coef = np.zeros(n_features)
    coef[support] = rng.choice([-1.0, 1.0], n_nonzero)
    return Drawn(X, X @ coef, coef, support)


def _unit_normal_coef(
    rng: np.random.Generator, n_features: int, n_nonzero: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw a support (in the order drawn) and normal coefficients, scaled to unit norm."""
    drawn = rng.choice(n_features, n_nonzero, replace=False)
    coef = np.zeros(n_features)
    coef[drawn] = rng.standard_normal(n_nonzero)
    return drawn, coef / np.linalg.norm(coef)
