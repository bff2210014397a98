"""How long the search for sets of features that fit nearly as well takes, beside the fit of the model.

    python benchmarks/alternatives.py

prints for n = 500, d = 5000, k = 10, each correlation of neighbours and signal-to-noise ratio, and two losses, the CPU
time of the fit and of ``alternatives(tolerance=0.02, most=100)``, how many sets it returns, from how many it went on,
how many features they have together, and the largest excess. The seed is 0.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np
from run import limit_threads

from hardthresh.certificates import alternative_supports
from hardthresh.constraints import Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import minimize

N, D, K = 500, 5000, 10
DESIGNS = ((0.0, 5.0), (0.5, 1.0), (0.9, 2.0), (0.9, 0.3), (0.0, 0.01))
"""Correlation of neighbours, and signal-to-noise ratio; the last is next to noise."""
RIDGES = {"squared": 0.0, "logistic": 0.01}


def main() -> int:
    """Print a row of the table for each design and loss."""
    print("| rho | SNR | loss | fit, s | sets, s | sets | more | went on from | features | largest excess, % |")
    print("|--:|--:|---|--:|--:|--:|---|--:|--:|--:|")
    for rho, snr in DESIGNS:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((N, D))
        for j in range(1, D):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
        signal = X[:, rng.permutation(D)[:K]].sum(axis=1)
        y = signal + rng.standard_normal(N) * signal.std() / np.sqrt(snr)
        design = np.column_stack([X - X.mean(axis=0), np.ones(N)])
        for loss, ridge in RIDGES.items():
            targets = y if loss == "squared" else (y > 0).astype(float)
            f = LinearModel(design, targets, loss, l2=np.append(np.full(D, ridge), 0.0))
            constraint = Sparsity(K, free=(D,))
            began = process_time()
            w = minimize(f, constraint).w
            fitted = process_time()
            found = alternative_supports(f, constraint, w)
            ended = process_time()
            more = "yes" if found.more else "no"
            row = (
                f"{fitted - began:.3f} | {ended - fitted:.2f} | {len(found.supports)} | {more} | {found.examined} |"
                f" {len(found.shares)} | {100 * found.supports[-1].excess:.2f}"
            )
            print(f"| {rho} | {snr:g} | {loss} | {row} |", flush=True)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
