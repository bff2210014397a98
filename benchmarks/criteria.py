"""What chooses k: information criteria and cross-validation, on simulated and on real tables.

    python benchmarks/criteria.py                       # the simulated cells: three minutes
    python benchmarks/criteria.py --classes             # two classes: a minute
    python benchmarks/criteria.py --real                # the real tables, of the folder that HARDTHRESH_DATA names

Simulated are n = 200, d = 500 and n = 100, d = 2000 with five features (`make_sparse_regression`), correlations .3 and
.8 of neighbouring columns, and signal-to-noise ratios .5, 2 and 8; seeds 4000, 4001, .... Printed are the mean excess
risk over the variance of the noise in each pair of a shape and a correlation, the mean F1 of the features over all
cells, the mean number chosen, and the mean CPU time of a fit, its choice included.

Classes are those of n = 300, d = 300 with six features, correlation .3 and linear predictors of standard deviation 1
and 3; printed is the mean log-loss of 10,000 fresh rows above that of the true probabilities. Of real tables it prints
the mean squared error on the held-out third, relative to that of the mean: splits 0, 1, ... by seeds (4000, split), at
most 300 rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from prediction import real
from run import limit_threads
from scipy.special import expit

import hardthresh as ht
from hardthresh.datasets import make_sparse_regression

K = 5
SHAPES = ((200, 500), (100, 2000))
CORRELATIONS = (0.3, 0.8)
SNRS = (0.5, 2.0, 8.0)
SEED = 4000
ROWS = 300
TITLES = ("bloodbrain", "communities_crime", "riboflavin", "wheat 1")
UP_TO_25 = range(26)  # as the prototypes of the specification compare
RIDGES = (0.0, 0.03, 0.1, 0.3, 1.0)

new = ht.SparseLinearRegressionCV
by_folds = partial(new, cv=10, averaging="none", alphas=0.0, n_nonzero_coefs=UP_TO_25)
METHODS: dict[str, Callable[[], Any]] = {
    "aic, k <= 25": partial(new, criterion="aic", n_nonzero_coefs=UP_TO_25),
    "bic, k <= 25": partial(new, criterion="bic", n_nonzero_coefs=UP_TO_25),
    "gic, k <= 25": partial(new, criterion="gic", n_nonzero_coefs=UP_TO_25),
    "ebic, k <= 25": partial(new, criterion="ebic", n_nonzero_coefs=UP_TO_25),
    "aic": partial(new, criterion="aic"),
    "bic": partial(new, criterion="bic"),
    "gic": partial(new, criterion="gic"),
    "ebic, gamma .5": partial(new, criterion="ebic", ebic_gamma=0.5),
    "ebic": partial(new, criterion="ebic"),
    "ebic, five ridges": partial(new, criterion="ebic", alphas=RIDGES),
    "ebic, k <= 50": partial(new, criterion="ebic", n_nonzero_coefs=50),
    "ebic, search": partial(new, criterion="ebic", n_nonzero_coefs="search"),
    "cv, ten folds": by_folds,
    "cv, one SE": partial(by_folds, rule="one_standard_error"),
    "cv, as by default": new,
}


def simulated(n_seeds: int) -> None:
    """Print a row of the table for each method."""
    cells = [(n, d, rho) for n, d in SHAPES for rho in CORRELATIONS]
    names = " | ".join(f"{n} x {d}, rho {rho}" for n, d, rho in cells)
    print(f"| | {names} | F1 | k | seconds |\n|---|{'--:|' * (len(cells) + 3)}")
    for name, method in METHODS.items():
        found = np.array(
            [
                [_of_draw(method, n, d, rho, snr, SEED + seed) for snr in SNRS for seed in range(n_seeds)]
                for n, d, rho in cells
            ]
        )
        risks = " | ".join(f"{risk:.3f}" for risk in found[:, :, 0].mean(axis=1))
        f1, k, seconds = found[:, :, 1:].mean(axis=(0, 1))
        print(f"| {name} | {risks} | {f1:.2f} | {k:.1f} | {seconds:.2f} |", flush=True)


def _of_draw(method: Callable[[], Any], n: int, d: int, rho: float, snr: float, seed: int) -> tuple[float, ...]:
    """Return the excess risk of a fit, its F1, the number of features, and the seconds."""
    drawn = make_sparse_regression(n, d, K, correlation=rho, snr=snr, seed=seed)
    began = process_time()
    model = method().fit(drawn.X, drawn.y)
    seconds = process_time() - began
    error = model.coef_ - drawn.coef
    covariance = rho ** abs(np.subtract.outer(np.arange(d), np.arange(d)))
    right = np.intersect1d(model.support_, drawn.support).size
    f1 = 2 * right / (model.support_.size + K)
    return float(error @ covariance @ error / drawn.noise_variance), f1, model.support_.size, seconds


def of_classes(n_seeds: int) -> None:
    """Print a row of the table for each method, with ridges around the default one of the model, 0.01."""
    print("| | scale 1 | scale 3 |\n|---|--:|--:|")
    for name, method in METHODS.items():
        settings = dict(method.keywords) if isinstance(method, partial) else {}
        if "alphas" in settings:
            settings["alphas"] = (0.001, 0.01, 0.1) if "criterion" in settings else 0.01
        model = partial(ht.SparseLogisticRegressionCV, **settings)
        excess = [
            np.mean([_of_two_classes(model, scale, SEED + seed) for seed in range(n_seeds)]) for scale in (1.0, 3.0)
        ]
        print(f"| {name} | {excess[0]:.3f} | {excess[1]:.3f} |", flush=True)


def _of_two_classes(method: Callable[[], Any], scale: float, seed: int) -> float:
    """Return the log-loss of a fit on fresh rows above that of the true probabilities."""
    drawn = make_sparse_regression(300, 300, 6, model="logistic", correlation=0.3, scale=scale, seed=seed)
    model = method().fit(drawn.X, drawn.y)
    rng = np.random.default_rng((SEED, seed))
    Z = rng.standard_normal((10_000, 300))
    for j in range(1, 300):
        Z[:, j] = 0.3 * Z[:, j - 1] + np.sqrt(1 - 0.3**2) * Z[:, j]
    u, v = Z @ drawn.coef, model.decision_function(Z)
    p = expit(u)
    losses = [np.mean(np.logaddexp(0.0, w) - p * w) for w in (v, u)]
    return float(losses[0] - losses[1])


def on_real_tables(n_splits: int) -> None:
    """Print a row of the table for each method."""
    print(f"| | {' | '.join(TITLES)} | mean |\n|---|{'--:|' * (len(TITLES) + 1)}")
    tables = {title: real.find(title).table() for title in TITLES}
    for name, method in METHODS.items():
        errors = [
            np.mean([_of_split(method, *table, (SEED, split)) for split in range(n_splits)])
            for table in tables.values()
        ]
        print(f"| {name} | {' | '.join(f'{error:.3f}' for error in errors)} | {np.mean(errors):.3f} |", flush=True)


def _of_split(method: Callable[[], Any], X: np.ndarray, y: np.ndarray, seed: tuple[int, int]) -> float:
    """Return the error on the held-out third of at most so many rows, relative to that of the mean."""
    rows = np.random.default_rng(seed).permutation(y.size)[:ROWS]
    train, test = rows[rows.size // 3 :], rows[: rows.size // 3]
    varies = np.ptp(X[train], axis=0) > 0
    model = method().fit(X[train][:, varies], y[train])
    error = np.mean((y[test] - model.predict(X[test][:, varies])) ** 2)
    return float(error / np.mean((y[test] - y[train].mean()) ** 2))


def main() -> int:
    """Print the table that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6, help="seeds of each cell, or splits of each table")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--classes", action="store_true")
    what.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = on_real_tables if arguments.real else of_classes if arguments.classes else simulated
        table(arguments.seeds)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
