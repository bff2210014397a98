"""Proofs of the best k columns: nodes, time and what is left to prove, beside OKRidge and L0BnB.

    python benchmarks/exact.py                                # the table of the specification: five minutes
    python benchmarks/exact.py --rows 0,4 --seeds 1,2,3       # some of its rows, on other draws
    python benchmarks/exact.py --peers okridge,l0bnb --peer-python ENVIRONMENT/bin/python

The columns are AR(1) of correlation rho, k of them have coefficients of 1 or -1, and X and y have unit variance; seed 1
is that of the specification. The objective is that of ``LinearModel(X, y, l2=alpha)``. OKRidge and L0BnB (``pip install
okridge l0bnb``) need NumPy 1, and so an environment of their own; see `benchmark_utils/exact_peers.py` for the problem
that each of them gets.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
from run import limit_threads

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.core.stopping import Seconds
from hardthresh.objectives import LinearModel
from hardthresh.solvers import BranchAndBound, WorkingSet

PEERS = Path(__file__).parent / "benchmark_utils" / "exact_peers.py"


@dataclass(frozen=True)
class Row:
    """A row of the table: the size of a problem, its ridge, correlation and signal-to-noise ratio."""

    n: int
    d: int
    k: int
    alpha: float
    rho: float
    snr: float

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return X and y."""
        rng = np.random.default_rng((seed, self.n, self.d, self.k))
        X = rng.standard_normal((self.n, self.d))
        for j in range(1, self.d):
            X[:, j] = self.rho * X[:, j - 1] + np.sqrt(1 - self.rho**2) * X[:, j]
        support = np.sort(rng.permutation(self.d)[: self.k])
        signal = X[:, support] @ rng.choice([-1.0, 1.0], self.k)
        y = signal + rng.standard_normal(self.n) * np.sqrt(signal.var() / self.snr)
        return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


ROWS = [
    Row(500, 100, 5, 0.01, 0.5, 1.0),
    Row(500, 200, 10, 0.01, 0.5, 2.0),
    Row(500, 200, 10, 0.01, 0.8, 2.0),
    Row(1000, 200, 10, 0.001, 0.8, 2.0),
    Row(250, 200, 10, 0.01, 0.5, 2.0),
    Row(100, 200, 5, 0.1, 0.5, 5.0),
    Row(100, 200, 10, 0.1, 0.5, 5.0),
    Row(200, 50, 10, 0.01, 0.8, 1.0),
    Row(100, 30, 8, 0.001, 0.8, 1.0),
    Row(100, 50, 10, 0.01, 0.9, 0.5),
    Row(100, 200, 10, 0.01, 0.5, 5.0),
    Row(500, 1000, 10, 0.01, 0.5, 5.0),
    Row(2000, 1000, 10, 0.01, 0.5, 2.0),
]
"""The table of the specification, its goal, and a larger problem with more examples than columns."""


def peer_says(python: str, name: str, row: Row, X: np.ndarray, y: np.ndarray, w: np.ndarray, limit: float) -> str:
    """Return the time of a package in its own environment, and what it leaves to prove; or why it ended."""
    f, sizes = LinearModel(X, y, l2=row.alpha), (row.k - 1, row.k, row.k + 1)
    fewer, ours, more = (minimize(f, Sparsity(k), WorkingSet(effort="thorough")).value for k in sizes)
    penalty = float(np.sqrt((fewer - ours) * (ours - more)))
    with TemporaryDirectory() as folder:
        np.savez(f"{folder}/problem.npz", X=X, y=y, w=w, k=row.k, alpha=row.alpha, penalty=penalty, limit=limit)
        command = [python, str(PEERS), name, f"{folder}/problem.npz"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:60]
    value, lower, seconds = map(float, done.stdout.splitlines()[-1].split())
    gap = max(value - lower, 0.0) / abs(value)
    return f"{seconds:.2f} s, {'proved' if gap <= 1e-4 else f'gap {gap:.3f}'}"


def main() -> int:
    """Print a row of the table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(map(str, range(len(ROWS)))))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--peers", default="")
    parser.add_argument("--peer-python", default=sys.executable)
    arguments = parser.parse_args()
    peers = [name for name in arguments.peers.split(",") if name]
    print("| n, d, k, alpha, rho, SNR | seed | root gap | first above the best | nodes | CPU s | gap |", end="")
    print("".join(f" {name} |" for name in peers))
    print("|---" * (7 + len(peers)) + "|")
    for place in map(int, arguments.rows.split(",")):
        row = ROWS[place]
        for seed in map(int, arguments.seeds.split(",")):
            X, y = row.draw(seed)
            f, began = LinearModel(X, y, l2=row.alpha), process_time()
            run = minimize(f, Sparsity(row.k), BranchAndBound(), stop=Seconds(arguments.limit), max_iter=10**6)
            seconds, state, history = process_time() - began, run.state, run.history
            first = history["value"][1]
            root = (first - history["lower_bound"][1]) / first
            size = f"{row.n}, {row.d}, {row.k}, {row.alpha:g}, {row.rho:g}, {row.snr:g}"
            numbers = f"{root:.3f} | {100 * (first / run.value - 1):.2g} % | {state.n_nodes} | {seconds:.2f}"
            print(
                f"| {size} | {seed} | {numbers} | {'0' if run.converged else f'{state.gap:.2f}'} |", end="", flush=True
            )
            for name in peers:
                said = peer_says(arguments.peer_python, name, row, X, y, run.w, arguments.limit)
                print(f" {said} |", end="", flush=True)
            print(flush=True)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
