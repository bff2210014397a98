"""Section D: 120 random rows of a real data set, s = 20, and every rule that needs no oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from papers.runner import Row, pick

from hardthresh.constraints import Sparsity
from hardthresh.core import Passes, minimize
from hardthresh.core.solver import Solver
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, HardThresholdingPursuit, WorkingSet
from hardthresh.steps import (
    AdaptiveSparsePolyak,
    Backtracking,
    BarzilaiBorwein,
    ExactLineSearch,
    Fixed,
    Polyak,
    SparsePolyak,
)

from ._common import quiet

ROWS, S = 120, 20
BUDGETS = [25, 100, 200]
"""Data passes after which the rules are compared."""

SOLVERS: dict[str, Callable[[], Solver]] = {
    "SP5": lambda: IHT(step=SparsePolyak(0.0)),
    "CP5": lambda: IHT(step=Polyak(0.0)),
    "SP1": lambda: IHT(step=SparsePolyak(0.0, scale=1.0)),
    "CP1": lambda: IHT(step=Polyak(0.0, scale=1.0)),
    "algorithm 2": lambda: IHT(step=AdaptiveSparsePolyak(0.0, epoch_length=20)),
    "backtracking": lambda: IHT(step=Backtracking()),
    "exact line search": lambda: IHT(step=ExactLineSearch()),
    "Barzilai-Borwein": lambda: IHT(step=BarzilaiBorwein()),
    "pursuit": lambda: HardThresholdingPursuit(),
    "working set": lambda: WorkingSet(),
}
NAMES = {
    "fixed": "best fixed step of a grid",
    "SP5": "Sparse Polyak, c = 5, target 0",
    "CP5": "classical Polyak, c = 5, target 0",
    "SP1": "Sparse Polyak, c = 1, target 0",
    "CP1": "classical Polyak, c = 1, target 0",
    "algorithm 2": "Algorithm 2, c = 10, T = 20",
    "backtracking": "backtracking",
    "exact line search": "exact line search (NIHT)",
    "Barzilai-Borwein": "Barzilai-Borwein",
    "pursuit": "hard thresholding pursuit",
    "working set": "working set, our default",
}


def subset(X: Any, y: Any, seed: int, standardised: bool, loss: str, size: int = ROWS) -> LinearModel:
    """Return the problem of some random rows; standardised columns have mean 0 and mean square 1, constant ones go."""
    rows = np.random.default_rng(seed).choice(len(y), size, replace=False)
    X, y = np.asarray(X, dtype=float)[rows], np.asarray(y, dtype=float)[rows]
    if standardised:
        X = X[:, X.std(axis=0) > 0]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        y = y - y.mean() if loss == "squared" else y
    return LinearModel(X, y, loss=loss)


def race(objective: LinearModel, solver: Solver) -> dict[str, Any]:
    """Return the best f / f(0) seen so far at each iterate, and the data passes spent until it was known.

    The pass for the gradient at an iterate is that of the next step: f was known before.
    """
    stop = Passes(max(BUDGETS) + 1)
    with quiet(), np.errstate(over="ignore", invalid="ignore"):  # some rules overshoot; their best value counts
        result = minimize(objective, Sparsity(S), solver, stop=stop, max_iter=10_000)
    value = np.array(result.history["value"])
    value[~np.isfinite(value)] = np.inf
    return {"passes": np.array(result.history["passes"]) - 1.0, "best": np.minimum.accumulate(value / value[0])}


def search(objective: LinearModel, grid: Any, iterations: int = 200) -> dict[str, Any]:
    """Return the race of the fixed step whose last f is the lowest of the grid."""
    last = {}
    for step in grid:
        with np.errstate(over="ignore", invalid="ignore"):  # some steps are too long
            result = minimize(objective, Sparsity(S), IHT(step=Fixed(float(step))), max_iter=iterations, tol=0.0)
        last[float(step)] = result.history["value"][-1]
    chosen = min(last, key=lambda step: last[step] if np.isfinite(last[step]) else np.inf)
    return {**race(objective, IHT(step=Fixed(chosen))), "chosen": chosen}


def example(rule: str, seed: int, **_: Any) -> dict[str, Any]:
    """Return what `race` or `search` could have returned, at once."""
    known = range(max(BUDGETS) + 1)
    result = {"passes": [float(passes) for passes in known], "best": [(1.0 + seed) / (1.0 + seed + t) for t in known]}
    return {**result, "chosen": 0.1} if rule == "fixed" else result


def at(row: Row, passes: float) -> float:
    """Return the best f / f(0) that a run saw within so many passes."""
    known = int(np.searchsorted(row["passes"], passes, side="right"))
    return float(row["best"][known - 1]) if known else 1.0


def medians(rows: list[Row], **which: Any) -> list[float]:
    """Return the medians over the subsets at the budgets."""
    return [float(np.median([at(row, passes) for row in pick(rows, **which)])) for passes in BUDGETS]


def ratios(rows: list[Row], upper: str, lower: str, **which: Any) -> dict[str, float]:
    """Return, for each budget, the median of one rule over that of another, under the text of a key."""
    pairs = zip(BUDGETS, medians(rows, rule=upper, **which), medians(rows, rule=lower, **which), strict=True)
    return {f"{upper} / {lower}, {passes} passes": above / below for passes, above, below in pairs}


def on_grid(rows: list[Row], passes: Any) -> list[list[float]]:
    """Return the runs at given numbers of passes, so that runs with different steps can be drawn as one line."""
    return [[at(row, number) for number in passes] for row in rows]
