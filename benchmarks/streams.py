"""Streams: how many rows `partial_fit` needs to find the features that a fit to all rows finds (check 14 of scale.md).

    python benchmarks/streams.py --seeds 20

prints for each loss, and for two correlations of neighbouring columns, on how many of the seeds 0, 1, ... the features
of a stream are those of `fit` to 100,000 rows, after 10,000 to 100,000 rows in batches of 2,000; how far coefficients
are from those of `fit` at the end, relative to their norm (median of seeds); on how many seeds a stream that is pickled
after half of the rows ends with the same bits; and CPU seconds of all batches and of `fit`.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterator
from time import process_time

import numpy as np
from run import limit_threads

import hardthresh as ht

D, K, BATCH, ROWS = 500, 15, 2000, 100_000
SHOWN = (10_000, 20_000, 50_000, 100_000)
MODELS = {
    "squared": ht.SparseLinearRegression,
    "logistic": ht.SparseLogisticRegression,
    "poisson": ht.SparsePoissonRegression,
}
RHOS = (0.5, 0.9)


def batches(loss: str, rho: float, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of rows and targets: with rho 0.5 the rows of the prototype of the specification."""
    truth = np.random.default_rng(seed)
    planted = np.sort(truth.choice(D, K, replace=False))
    coef = truth.choice([-1.0, 1.0], K) * (0.3 + truth.random(K))
    for start in range(0, ROWS, BATCH):
        rng = np.random.default_rng((seed, start))
        X = rng.standard_normal((BATCH, D), dtype=np.float32)
        if rho == 0.5:
            X[:, 1:] += np.float32(0.5) * X[:, :-1]  # correlation 0.4
        else:
            for j in range(1, D):
                X[:, j] = np.float32(rho) * X[:, j - 1] + np.float32(np.sqrt(1 - rho**2)) * X[:, j]
        u = X[:, planted] @ coef
        if loss == "squared":
            y = u + rng.standard_normal(BATCH)
        elif loss == "logistic":
            y = (u + rng.logistic(size=BATCH) > 0).astype(float)
        else:
            y = rng.poisson(np.exp(u / 4)).astype(float)
        yield X, y


def stream(loss: str, rho: float, seed: int, pickled: bool) -> tuple[dict[int, list[int]], np.ndarray, float]:
    """Return the features after some numbers of rows, the coefficients at the end, and CPU seconds."""
    model = MODELS[loss](n_nonzero_coefs=K)
    more = {"classes": [0, 1]} if loss == "logistic" else {}
    found, seconds = {}, 0.0
    for X, y in batches(loss, rho, seed):
        begun = process_time()
        model.partial_fit(X, y, **more)
        seconds += process_time() - begun
        if model.n_samples_seen_ in SHOWN:
            found[model.n_samples_seen_] = model.support_.tolist()
        if pickled and model.n_samples_seen_ == ROWS // 2:
            model = pickle.loads(pickle.dumps(model))
    return found, model.coef_.ravel(), seconds


def row(loss: str, rho: float, seeds: int) -> str:
    """Return a row of the table."""
    hits = dict.fromkeys(SHOWN, 0)
    same, gaps, ours, theirs = 0, [], 0.0, 0.0
    for seed in range(seeds):
        found, coef, seconds = stream(loss, rho, seed, pickled=False)
        same += np.array_equal(coef, stream(loss, rho, seed, pickled=True)[1])
        parts = list(batches(loss, rho, seed))
        X, y = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        begun = process_time()
        whole = MODELS[loss](n_nonzero_coefs=K).fit(X, y)
        theirs += process_time() - begun
        ours += seconds
        for rows, support in found.items():
            hits[rows] += support == whole.support_.tolist()
        true = whole.coef_.ravel()
        gaps.append(float(np.linalg.norm(coef - true) / np.linalg.norm(true)))
    counts = " | ".join(f"{hits[rows]} of {seeds}" for rows in SHOWN)
    return (
        f"| {loss} | {rho} | {counts} | {np.median(gaps):.3f} | {same} of {seeds} | {ours / seeds:.2f} | "
        f"{theirs / seeds:.2f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--loss", choices=[*MODELS], nargs="*", default=[*MODELS])
    parser.add_argument("--rho", type=float, nargs="*", default=[*RHOS])
    arguments = parser.parse_args()
    rows = " | ".join(f"{rows:,} rows" for rows in SHOWN)
    print(f"| loss | rho | {rows} | relative error | same bits | CPU s stream | CPU s fit |")
    print("|---|---|" + "---|" * (len(SHOWN) + 4))
    for loss in arguments.loss:
        for rho in arguments.rho:
            print(row(loss, rho, arguments.seeds), flush=True)


if __name__ == "__main__":
    limit_threads()
    main()
