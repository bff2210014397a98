"""Fits with bounds of the coefficients, beside fits without, and beside pursuit and the effort "thorough".

    python benchmarks/bounds.py --instances 10

prints for each loss, correlation and pair of bounds the CPU time of a default fit in units of the one without bounds,
that of pursuit in the same units, and by how much either objective is above the lowest of these two and "thorough".
Bounds are shares of the size of the planted coefficients.
"""

from __future__ import annotations

import argparse
import sys
from time import process_time

import numpy as np
from benchmark_utils.families import FAMILIES, Instance, draw
from run import limit_threads

import hardthresh as ht
from hardthresh.solvers import HardThresholdingPursuit, WorkingSet

N, D, K = 500, 1000, 10
RHOS = (0.5, 0.9)
MODELS = {
    "squared": ht.SparseLinearRegression,
    "logistic": ht.SparseLogisticRegression,
    "poisson": ht.SparsePoissonRegression,
}
BOUNDS = {
    "none": None,
    ">= 0": (0.0, np.inf),
    "-1 to 1": (-1.0, 1.0),
    "-0.5 to 0.5": (-0.5, 0.5),
    "-0.3 to 1": (-0.3, 1.0),
}
SOLVERS = {
    "default": "auto",
    "pursuit": HardThresholdingPursuit(exchanges=10),
    "thorough": WorkingSet(effort="thorough"),
}


def fitted(loss: str, shares: tuple[float, float] | None, solver: object, instance: Instance) -> tuple[float, float]:
    """Return the CPU time of a fit and its objective."""
    bounds = None if shares is None else (shares[0] * FAMILIES[loss].size, shares[1] * FAMILIES[loss].size)
    model = MODELS[loss](n_nonzero_coefs=K, bounds=bounds, solver=solver)
    began = process_time()
    model.fit(instance.X, instance.y)
    return process_time() - began, model.objective_


def main() -> int:
    """Print a row of a table for each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=10)
    n_instances = parser.parse_args().instances
    print("| loss | rho | bounds | time | of pursuit | above the lowest, % | of pursuit, % |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for loss in MODELS:
        for rho in RHOS:
            instances = [draw(loss, N, D, K, rho, seed) for seed in range(n_instances)]
            fitted(loss, None, "auto", instances[0])  # the first fit takes longer
            unit = 0.0
            for name, shares in BOUNDS.items():
                found = np.array(
                    [[fitted(loss, shares, solver, one) for solver in SOLVERS.values()] for one in instances]
                )
                times, values = np.median(found[..., 0], axis=0), found[..., 1]
                unit = times[0] if shares is None else unit
                above = 100 * (values / values.min(axis=1, keepdims=True) - 1).mean(axis=0)
                numbers = f"{times[0] / unit:.1f} | {times[1] / unit:.1f} | {above[0]:.2f} | {above[1]:.2f}"
                print(f"| {loss} | {rho} | {name} | {numbers} |", flush=True)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
