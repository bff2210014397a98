"""Stability selection: false and true features at each threshold, and what half-samples cost.

    python benchmarks/stability.py                  # both tables: ten minutes
    python benchmarks/stability.py --only choices --instances 12
    python benchmarks/stability.py --only cost

*Choices*: 200 x 1,000 with neighbouring columns that correlate by rho, 8 features of equal size and random sign that
explain half of the variance, or none at all. For each number q of features that a half-sample chooses and each
threshold, the mean numbers of false and of true features that stability selection takes, over the instances, beside the
two bounds; and how many of the 8 features of highest frequency are true, beside those of one fit of 8 features.

*Cost*: the CPU time of stability selection with 100 half-samples in units of one fit to all rows, in the same run, with
and without sharing their work, and by how much the frequencies of both differ. For other losses, which fit each half
alone, 20 half-samples are timed and counted five times.

Seeds are (20261123, table, instance): they were not used to choose anything.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from benchmark_utils.families import draw
from run import limit_threads

import hardthresh as ht
from hardthresh.selection import low_probability_bound

SEED = 20261123
N, D, TRUE, PAIRS = 200, 1000, 8, 50
RHOS = (0.0, 0.5, 0.9)
SIZES = (5, 10, 20)
THRESHOLDS = (0.6, 0.75, 0.9)


def table(
    n: int, d: int, k: int, rho: float, ratio: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return correlated columns, targets with a ratio of signal to noise, and the columns that make the signal."""
    noise = rng.standard_normal((n, d))
    X = np.empty((n, d))
    X[:, 0] = noise[:, 0]
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * noise[:, j]
    chosen = np.sort(rng.permutation(d)[:k])
    signal = X[:, chosen] @ rng.choice([-1.0, 1.0], k)
    error = rng.standard_normal(n)
    return X, error if ratio == 0 else signal + error * signal.std() / np.sqrt(ratio), chosen


def choices(instances: int) -> None:
    """Print a row for each kind of data, number of features and threshold."""
    print("| data | q | threshold | false | true of 8 | bound, unimodal | worst case | top 8 | one fit of 8 |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    kinds = [(f"rho {rho:g}", rho, 1.0) for rho in RHOS] + [("noise", 0.5, 0.0)]
    for number, (name, rho, ratio) in enumerate(kinds):
        rngs = [np.random.default_rng((SEED, number, instance)) for instance in range(instances)]
        data = [table(N, D, TRUE, rho, ratio, rng) for rng in rngs]
        true = [chosen if ratio else np.empty(0, dtype=int) for *_, chosen in data]
        alone = [ht.SparseLinearRegression(n_nonzero_coefs=TRUE).fit(X, y).support_ for X, y, _ in data]
        found = np.mean([np.isin(one, own).sum() for one, own in zip(alone, true, strict=True)])
        for q in SIZES:
            selectors = [
                ht.StabilitySelection(ht.SparseLinearRegression(), n_nonzero_coefs=q, n_pairs=PAIRS).fit(X, y)
                for X, y, _ in data
            ]
            frequencies = [selector.inclusion_frequencies_ for selector in selectors]
            tops = [np.argsort(-one, kind="stable")[:TRUE] for one in frequencies]
            top = np.mean([np.isin(one, own).sum() for one, own in zip(tops, true, strict=True)])
            for threshold in THRESHOLDS:
                taken = [np.flatnonzero(one >= threshold - 1e-9) for one in frequencies]
                right = np.mean([np.isin(one, own).sum() for one, own in zip(taken, true, strict=True)])
                wrong = np.mean([(~np.isin(one, own)).sum() for one, own in zip(taken, true, strict=True)])
                bounds = [
                    low_probability_bound(q, D, PAIRS, threshold, kind).value for kind in ("unimodal", "worst_case")
                ]
                print(
                    f"| {name} | {q} | {threshold:g} | {wrong:.2f} | {right:.2f} | {bounds[0]:.3f} | {bounds[1]:.3f} "
                    f"| {top:.2f} | {found:.2f} |",
                    flush=True,
                )


def timed(run: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the CPU time of a function, and what it returns."""
    began = process_time()
    result = run(*arguments)
    return process_time() - began, result


def cost(instances: int) -> None:
    """Print the cost of half-samples in units of single fits."""
    print("| data | instances | single fit, s | 100 halves, fits | one by one, fits | largest gap of frequencies |")
    print("|---|--:|--:|--:|--:|--:|")
    for number, (n, d, k, rho) in enumerate(
        [(500, 5000, 10, 0.5), (500, 5000, 10, 0.9), (200, 1000, 10, 0.5), (2000, 200, 10, 0.5)]
    ):
        rows = []
        for instance in range(instances):
            rng = np.random.default_rng((SEED, 100 + number, instance))
            X, y, _ = table(n, d, k, rho, 2.0, rng)
            model = ht.SparseLinearRegression(n_nonzero_coefs=k)
            single = np.median([timed(model.fit, X, y)[0] for _ in range(7)][1:])
            together, one = timed(ht.StabilitySelection(model, n_pairs=PAIRS).fit, X, y)
            alone = ht.SparseLinearRegression(n_nonzero_coefs=k, solver="working_set")
            apart, other = timed(ht.StabilitySelection(alone, n_pairs=PAIRS).fit, X, y)
            gap = np.abs(one.inclusion_frequencies_ - other.inclusion_frequencies_).max()
            rows.append((single, together / single, apart / single, gap))
        single, together, apart, gap = np.median(rows, axis=0)
        gap = max(row[3] for row in rows)
        print(
            f"| squared, {n} x {d}, k = {k}, rho {rho:g} | {instances} | {single:.4f} | {together:.1f} | {apart:.1f} "
            f"| {gap:.2f} |",
            flush=True,
        )
    models = {
        "logistic": ht.SparseLogisticRegression,
        "poisson": ht.SparsePoissonRegression,
        "cox": ht.SparseCoxRegression,
    }
    for loss, kind in models.items():
        rows = []
        for instance in range(min(instances, 3)):
            one = draw(loss, 500, 1000, 10, 0.5, SEED + instance)
            model = kind(n_nonzero_coefs=10)
            single = np.median([timed(model.fit, one.X, one.y)[0] for _ in range(4)][1:])
            halves = timed(ht.StabilitySelection(model, n_pairs=10).fit, one.X, one.y)[0]
            rows.append((single, 5 * (halves - single) / single))
        single, apart = np.median(rows, axis=0)
        print(f"| {loss}, 500 x 1000, k = 10, rho 0.5 | {len(rows)} | {single:.4f} | - | {apart:.1f} | - |", flush=True)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=12)
    parser.add_argument("--only", choices=("choices", "cost"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ht.core.NothingFoundWarning)
    if arguments.only != "cost":
        choices(arguments.instances)
        print()
    if arguments.only != "choices":
        cost(min(arguments.instances, 5))
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
