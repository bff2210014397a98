"""Lower bounds over all sets of k features: the gap that is left for each model, and what it costs.

    python benchmarks/lower_bounds.py                # both tables: a minute
    python benchmarks/lower_bounds.py --only gaps --seeds 30-34

*Gaps*: how far the bound of `certificate()` is below the objective of the fit, as a share of how far that is above the
least value of the objective: 0 is a proof, 1 says nothing. Correlated columns (rho .3) of the families of families.py,
k planted columns, the mean over the seeds. A dash: no bound is known.

*Cost*: CPU seconds of a fit, of its certificate and of the bound within it, on one thread; the data passes of the
bound, and the gap.

The seeds, 20 to 24, were not used to choose anything.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from statistics import mean
from time import process_time
from typing import Any

import numpy as np
from benchmark_utils.families import FAMILIES, draw
from run import limit_threads

import hardthresh as ht
from hardthresh.certificates import certify_model, lower_bound
from hardthresh.constraints import Sparsity
from hardthresh.core.meter import Meter
from hardthresh.objectives import LinearModel

SHAPES = ((2000, 200, 5), (300, 200, 5), (62, 2000, 5))
RIDGES = (0.1, 0.01, 0.0)
ESTIMATORS = {
    "squared": ht.SparseLinearRegression,
    "logistic": ht.SparseLogisticRegression,
    "poisson": ht.SparsePoissonRegression,
    "multitask": ht.SparseLinearRegression,
    "multinomial": ht.SparseLogisticRegression,
    "ordinal": ht.SparseOrdinalRegression,
    "cox": ht.SparseCoxRegression,
}
TABLES = (
    ("squared", 100_000, 300, 10, 0.0),
    ("squared", 500, 5_000, 10, 0.01),
    ("logistic", 100_000, 1_000, 10, 0.01),
    ("logistic", 1_000, 20_000, 10, 0.01),
    ("logistic", 20_000, 5_000, 20, 0.001),
    ("poisson", 20_000, 300, 10, 0.0),
)


def gaps(seeds: range) -> None:
    """Print a row for each model, and a column for each shape and ridge."""
    heads = [f"{n} x {d}, {alpha:g}" for n, d, _ in SHAPES for alpha in RIDGES]
    print("| n x d, alpha | " + " | ".join(heads) + " |")
    print("|---|" + "--:|" * len(heads))
    for family in FAMILIES:
        cells = []
        for n, d, k in SHAPES:
            instances = [draw(family, n, d, k, 0.3, seed) for seed in seeds]
            for alpha in RIDGES:
                estimator = ESTIMATORS[family](n_nonzero_coefs=k, alpha=alpha)
                found = [estimator.fit(one.X, one.y).certificate().gap for one in instances]
                known = [gap for gap in found if gap is not None]
                cells.append(f"{mean(known):.3f}" if len(known) == len(found) else "–")
        print(f"| {family} | " + " | ".join(cells) + " |", flush=True)


def cost(seed: int) -> None:
    """Print a row for each table."""
    print("| model | n x d, k, alpha | fit, s | certificate, s | of it the bound, s | passes | gap |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for family, n, d, k, alpha in TABLES:
        instance = draw(family, n, d, k, 0.3, seed)
        f, constraint = LinearModel(instance.X, instance.y, loss=family, l2=alpha), Sparsity(k)
        began = process_time()
        result = ht.minimize(f, constraint)
        fitted = process_time()
        certificate: Any = certify_model(f, constraint, result.w, result.support, trace=result.state.trace)
        certified, meter = process_time(), Meter()
        lower_bound(f.metered(meter), constraint, f.evaluate(result.w))
        seconds = (fitted - began, certified - fitted, process_time() - certified)
        gap = "–" if certificate.gap is None else f"{certificate.gap:.3f}"
        times = " | ".join(f"{one:.2f}" for one in seconds)
        print(f"| {family} | {n} x {d}, {k}, {alpha:g} | {times} | {meter.passes:.1f} | {gap} |", flush=True)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["gaps", "cost"], help="one of the tables")
    parser.add_argument("--seeds", default="20-24", help="first and last seed")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split("-"))
    warnings.simplefilter("ignore")
    np.seterr(over="ignore")
    if args.only != "cost":
        gaps(range(first, last + 1))
    if args.only != "gaps":
        cost(first)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
