"""How often 95 % intervals of chosen features cover: with the rows that chose them, and with others.

    python benchmarks/inference.py --runs 200

prints for each of five models the share of the intervals that cover the population coefficients of the chosen features,
of ``inference(kind="refit")`` and ``kind="split"``; the mean width of the latter over that of the former; and the share
of the true features that all rows and half of them choose. 200 rows, 200 columns of which neighbours have the
correlation .3, noise of variance 1; the seeds are (53, row of the table, run).
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from run import limit_threads

import hardthresh as ht

N = D = 200
RHO = 0.3
ROWS = {
    "pure noise, k = 3": (0, 0.0, 3),
    "5 true of .15, k = 5": (5, 0.15, 5),
    "5 true of .3, k = 5": (5, 0.3, 5),
    "5 true of .3, k = 10": (5, 0.3, 10),
    "5 true of 1, k = 5": (5, 1.0, 5),
}
"""The number of true features, their coefficients, of either sign, and k."""


def run(row: int, number: int) -> dict[str, tuple[int, int, float, float]]:
    """Return for each kind how many intervals cover, how many there are, their widths, and the share of true ones."""
    true, size, k = list(ROWS.values())[row]
    rng = np.random.default_rng((53, row, number))
    X = rng.standard_normal((N, D))
    for j in range(1, D):
        X[:, j] = RHO * X[:, j - 1] + np.sqrt(1 - RHO**2) * X[:, j]
    w = np.zeros(D)
    w[rng.permutation(D)[:true]] = size * rng.choice([-1.0, 1.0], true)
    y = X @ w + rng.standard_normal(N)
    covariance = RHO ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    model = ht.SparseLinearRegression(n_nonzero_coefs=k, random_state=number).fit(X, y)
    found = {}
    for kind in ("refit", "split"):
        intervals = model.inference(X, y, kind=kind).intervals
        chosen = [one.index for one in intervals]
        target = np.linalg.solve(covariance[np.ix_(chosen, chosen)], covariance[chosen] @ w)
        covered = sum(one.lower <= b <= one.upper for one, b in zip(intervals, target, strict=True))
        width = float(np.mean([one.upper - one.lower for one in intervals]))
        recall = float(np.mean(w[chosen] != 0) * k / true) if true else np.nan
        found[kind] = (covered, len(chosen), width, recall)
    return found


def main() -> int:
    """Print a row of the table for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print("| | refit covers | split covers | width, split / refit | found by all rows | by half |")
    print("|---|--:|--:|--:|--:|--:|")
    for row, name in enumerate(ROWS):
        results = [run(row, number) for number in range(runs)]
        refit, split = (np.array([result[kind] for result in results]) for kind in ("refit", "split"))
        cover = [f"{part[:, 0].sum() / part[:, 1].sum():.3f}" for part in (refit, split)]
        found = ["–" if np.isnan(part[0, 3]) else f"{part[:, 3].mean():.2f}" for part in (refit, split)]
        print(f"| {name} | {' | '.join(cover)} | {np.mean(split[:, 2] / refit[:, 2]):.2f} | {' | '.join(found)} |")
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
