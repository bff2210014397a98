"""The problems: name, data, number of non-zeros, and the truth where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.datasets import DatasetError, fetch, load_colon, make_sparse_classification, make_sparse_regression


@dataclass(frozen=True, slots=True)
class Problem:
    """Data as every solver gets them: X Fortran-ordered, columns of mean 0 and mean square 1.

    `truth` is the planted support, None for real data; `intercept` whether the model has one. Simulated problems need
    none: their columns, and the targets of a regression, are centred.
    """

    X: Any
    y: Any
    loss: str
    k: int
    truth: Any = None
    intercept: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """A named problem that is made when it is needed; `make` raises `DatasetError` where its file is not at hand."""

    name: str
    make: Callable[[], Problem]


def simulated(seed: int) -> list[Instance]:
    """Return the four least-squares instances (signal-to-noise ratio 10) and a logistic one."""
    return [
        _least_squares(500, 1000, 10, 0.5, seed),
        _least_squares(1000, 5000, 50, 0.5, seed),
        _least_squares(1000, 5000, 50, 0.9, seed),
        _least_squares(2000, 20000, 100, 0.9, seed),
        _logistic(1000, 5000, 20, 0.5, seed),
    ]


def tiny() -> list[Instance]:
    """Return two instances that take milliseconds, well-conditioned enough for the same path on every machine."""
    return [_least_squares(200, 400, 5, 0.5, 0), _logistic(300, 400, 4, 0.3, 0)]


def real() -> list[Instance]:
    """Return the real sets; only colon comes with the package, the others need HARDTHRESH_DATA."""
    return [
        Instance("colon 62x2000 k3 logistic", lambda: _real(load_colon(), "logistic", 3)),
        Instance("leukemia 72x7129 k3 logistic", lambda: _real(fetch("leukemia"), "logistic", 3)),
        Instance("riboflavin 71x4088 k10", lambda: _real(fetch("riboflavin"), "squared", 10)),
        Instance("arcene 200x10000 k10 logistic", lambda: _real(fetch("arcene"), "logistic", 10)),
        Instance("madelon 2600x500 k20 logistic", lambda: _real(fetch("madelon"), "logistic", 20)),
    ]


def available(instance: Instance) -> Problem | str:
    """Return the problem, or why there is none."""
    try:
        return instance.make()
    except DatasetError:
        return "not measured: set HARDTHRESH_DATA to the folder of the data sets"


def _least_squares(n: int, d: int, k: int, correlation: float, seed: int) -> Instance:
    def make() -> Problem:
        made = make_sparse_regression(n, d, k, correlation=correlation, snr=10.0, seed=seed)
        return Problem(made.X, made.y, "squared", k, made.support)

    return Instance(f"{n}x{d} k{k} rho{correlation:g}", make)


def _logistic(n: int, d: int, k: int, correlation: float, seed: int) -> Instance:
    def make() -> Problem:
        made = make_sparse_classification(n, d, k, correlation=correlation, scale=3.0, seed=seed)
        return Problem(made.X, made.y, "logistic", k, made.support)

    return Instance(f"{n}x{d} k{k} rho{correlation:g} logistic", make)


def _real(data: Any, loss: str, k: int) -> Problem:
    X = np.asfortranarray(data.data, dtype=np.float64)
    X = X[:, X.std(axis=0) > 0]
    X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    y = np.asarray(data.target, dtype=np.float64)
    return Problem(X, y - y.mean() if loss == "squared" else y, loss, k, intercept=loss == "logistic")
