"""Compare the default search with abess, for docs/guide/survival.rst: ``python -m docs.figures.survival``.

It needs abess, and nki272.npz in the folder $HARDTHRESH_DATA: the genes and the survival of 272 patients. The table
goes to docs/guide/survival_genes.csv; the lines about simulated data are printed. A minute on one core.
"""

import csv
import os
from pathlib import Path
from time import perf_counter

import numpy as np
from abess.linear import CoxPHSurvivalAnalysis, LogisticRegression, OrdinalRegression, PoissonRegression

from hardthresh import minimize
from hardthresh.constraints import Sparsity
from hardthresh.losses import Cox
from hardthresh.objectives import LinearModel, OrdinalModel

GUIDE = Path(__file__).parents[1] / "guide"
RIDGE, SEEDS = 1e-3, range(1, 6)


def compared(f, free, X, y, k, peer):
    """Return the value and the seconds of the default search, and those of the support that a peer finds."""
    start = perf_counter()
    ours = minimize(f, Sparsity(k, free=free))
    middle = perf_counter()
    coef = np.asarray(peer(support_size=k).fit(X, y).coef_)
    found = np.flatnonzero(np.any(coef.reshape(-1, X.shape[1]), axis=0))
    end = perf_counter()
    theirs = minimize(f, Sparsity(0, free=(*found.tolist(), *free)))
    return ours, middle - start, theirs.value, end - middle


def genes():
    """Write the table of the genes of 272 patients."""
    data = np.load(Path(os.environ["HARDTHRESH_DATA"]) / "nki272.npz")
    X = (data["X"] - data["X"].mean(axis=0)) / data["X"].std(axis=0)
    y = np.column_stack([data["survival"], data["y"]])
    f = LinearModel(X, y, Cox("efron"), l2=RIDGE)
    with (GUIDE / "survival_genes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["genes", "f, default search", "f, genes that abess chooses"])
        for k in (3, 5, 8):
            ours, time, theirs, slow = compared(f, (), X, y, k, CoxPHSurvivalAnalysis)
            rows.writerow([k, f"{ours.value:.5f}", f"{theirs:.5f}"])
            print(k, ours.value, theirs, time, slow)


def simulated(model, seed, rho, n=500, d=1000, k=10):
    """Return a model of simulated data, its free coordinates, the data, and abess's estimator."""
    rng = np.random.default_rng((seed, round(10 * rho)))
    Z = rng.standard_normal((n, d))
    X = Z.copy()
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * Z[:, j]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    size = {"logistic": 0.8, "ordinal": 0.6}.get(model, 0.35)
    coef = np.zeros(d)
    coef[rng.permutation(d)[:k]] = size * rng.choice([-1.0, 1.0], k)
    u = X @ coef
    if model == "cox":
        time, limit = rng.exponential(np.exp(-u)), rng.exponential(2.0, n)
        y = np.column_stack([np.minimum(time, limit), time <= limit])
        return LinearModel(X, y, Cox(), l2=RIDGE), (), X, y, CoxPHSurvivalAnalysis
    if model == "ordinal":
        y = np.searchsorted([-1.5, 0.0, 1.0], u + rng.logistic(size=n)).astype(float)
        f = OrdinalModel(X, y, l2=RIDGE)
        return f, tuple(range(d, f.shape[0])), X, y, OrdinalRegression
    y = rng.poisson(np.exp(0.5 + u)) if model == "poisson" else rng.uniform(size=n) < 1 / (1 + np.exp(-u))
    ridge = np.append(np.full(d, RIDGE), 0.0)
    f = LinearModel(np.column_stack([X, np.ones(n)]), y.astype(float), model, l2=ridge)
    return f, (d,), X, y.astype(float), PoissonRegression if model == "poisson" else LogisticRegression


def main():
    """Write the table and print the comparison."""
    genes()
    for model in ("cox", "logistic", "poisson", "ordinal"):
        for rho in (0.5, 0.9):
            found = [compared(f, free, X, y, 10, peer) for f, free, X, y, peer in
                     (simulated(model, seed, rho) for seed in SEEDS)]  # fmt: skip
            gaps = np.array([ours.value - theirs for ours, _, theirs, _ in found])
            seconds = np.median([(time, slow) for _, time, _, slow in found], axis=0)
            print(model, rho, "lower", int(np.sum(gaps < -1e-9)), "equal", int(np.sum(np.abs(gaps) <= 1e-9)),
                  "higher", int(np.sum(gaps > 1e-9)), "median seconds", seconds.round(3))  # fmt: skip


if __name__ == "__main__":
    main()
