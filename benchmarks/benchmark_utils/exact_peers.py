"""Proofs by OKRidge and L0BnB, in an environment of their own: ``python exact_peers.py NAME problem.npz``.

OKRidge solves the problem itself, with n alpha as its ridge. L0BnB solves a penalised one. It is given the penalty,
between what the last column of our answer brings and what one more would, our answer as its start, and the bound M on
coefficients, 1.2 times the largest of our answer. Nothing proves that bound: its problem is an easier one.

Prints the value and the lower bound in the units of our objective, and CPU seconds, without those of compiling.
"""

from __future__ import annotations

import contextlib
import io
import sys
from time import process_time, time
from typing import Any

import numpy as np


def okridge(problem: Any, limit: float) -> tuple[float, float]:
    """Return value and bound; OKRidge minimises the sum of squares without that of y."""
    from okridge.tree import BNBTree

    X, y = problem["X"], problem["y"]
    n = y.size
    tree = BNBTree(X, y, lambda2=n * float(problem["alpha"]))
    value, _, _, lower, _ = tree.solve(int(problem["k"]), gap_tol=1e-7, time_limit=limit)
    shift, scale = 0.5 * y @ y / n, 0.5 / n
    return shift + scale * value, shift + scale * lower


def l0bnb(problem: Any, limit: float) -> tuple[float, float]:
    """Return value and bound of the penalised problem, without the penalty of k columns."""
    from l0bnb import BNBTree

    X, y, w, penalty = (problem[name] for name in ("X", "y", "w", "penalty"))
    n, ridge = y.size, 0.5 * y.size * float(problem["alpha"])
    tree, began = BNBTree(X, y), time()
    found = tree.solve(
        l0=n * float(penalty), l2=ridge, m=1.2 * float(np.abs(w).max()), gap_tol=1e-7, warm_start=w, time_limit=limit
    )
    # its gap is that of the last level explored in full; before the limit it ends without one once no node is left
    ended = time() - began < limit and tree.bfs_queue.empty() and tree.dfs_queue.empty()
    lower = found.cost if ended else found.cost * (1.0 - found.gap)
    paid = int(problem["k"]) * float(penalty)
    return found.cost / n - paid, lower / n - paid


def small() -> dict[str, Any]:
    """Return a small problem, for which both compile what they need."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    y = X[:, 0] - X[:, 3] + rng.standard_normal(40)
    w = np.zeros(8)
    w[[0, 3]] = 1.0, -1.0
    return {"X": X, "y": y, "w": w, "k": 2, "alpha": 0.1, "penalty": 0.05}


if __name__ == "__main__":
    prove, problem = {"okridge": okridge, "l0bnb": l0bnb}[sys.argv[1]], np.load(sys.argv[2])
    with contextlib.redirect_stdout(io.StringIO()):
        prove(small(), 10.0)
        began = process_time()
        value, lower = prove(problem, float(problem["limit"]))
    print(value, lower, process_time() - began)
