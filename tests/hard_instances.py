"""Fixed problems on which a greedy choice is wrong, so that what a solver does beyond it can be seen in its value.

``python tests/hard_instances.py`` prints the table ``hard_instances.toml`` with the values that solvers reach today.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hardthresh.constraints import DoubleSparsity, GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.core import CapabilityError, minimize
from hardthresh.core.constraint import Constraint
from hardthresh.core.solver import Solver
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, AcceleratedIHT, ConjugateIHT, HardThresholdingPursuit, WorkingSet
from hardthresh.steps import BarzilaiBorwein, SparsePolyak


@dataclass(frozen=True)
class Columns:
    """How the columns of a problem are correlated, and how many of them there are.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    rho : float
        The correlation of neighbours, or of any two columns.
    neighbours : bool
        Whether it falls with the distance, as rho^|i - j|; else it is the same for all.
    """

    n: int
    d: int
    rho: float
    neighbours: bool = True

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return a design."""
        X = rng.standard_normal((self.n, self.d))
        if not self.neighbours:
            return np.sqrt(1 - self.rho) * X + np.sqrt(self.rho) * rng.standard_normal((self.n, 1))
        for j in range(1, self.d):
            X[:, j] = self.rho * X[:, j - 1] + np.sqrt(1 - self.rho**2) * X[:, j]
        return X


def linear(seed: int, columns: Columns, n_true: int, loss: str = "squared", noise: float = 0.5) -> LinearModel:
    """Return a model of targets that some columns make up, with effects of either sign between 1/2 and 3/2."""
    rng = np.random.default_rng(seed)
    X = columns.draw(rng)
    w = np.zeros(columns.d)
    w[rng.permutation(columns.d)[:n_true]] = rng.choice([-1, 1], n_true) * rng.uniform(0.5, 1.5, n_true)
    u = X @ w + noise * rng.standard_normal(columns.n)
    if loss == "logistic":
        return LinearModel(X, (u > np.median(u)).astype(float), loss=loss, l2=0.01)
    if loss == "poisson":
        return LinearModel(X, rng.poisson(np.exp(np.clip(0.5 * u, -4.0, 4.0))), loss=loss, l2=0.01)
    return LinearModel(X, u)


def unscaled(seed: int, columns: Columns, n_true: int) -> LinearModel:
    """Return a linear model whose columns are in units up to 30 times larger and smaller."""
    model = linear(seed, columns, n_true)
    units = 30.0 ** np.random.default_rng(seed).uniform(-1, 1, columns.d)
    return LinearModel(np.asarray(model.design.dense()) * units, model.y)


def suppressed(seed: int, n: int = 60, d: int = 60, pairs: int = 3) -> LinearModel:
    """Return a model of differences between columns that are nearly equal: neither of two has a high score alone."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    order = rng.permutation(d)
    first, second = order[:pairs], order[pairs : 2 * pairs]
    X[:, second] = X[:, first] + 0.3 * X[:, second]
    return LinearModel(X, (X[:, first] - X[:, second]).sum(axis=1) + 0.1 * rng.standard_normal(n))


def grouped(seed: int, n: int = 80, d: int = 60, size: int = 4, n_true: int = 4, rho: float = 0.9) -> LinearModel:
    """Return a model of whole groups of neighbouring columns, correlated beyond their groups."""
    rng = np.random.default_rng(seed)
    X = Columns(n, d, rho).draw(rng)
    w = np.zeros((d // size, size))
    w[rng.permutation(d // size)[:n_true]] = rng.standard_normal((n_true, size))
    return LinearModel(X, X @ w.ravel() + rng.standard_normal(n))


NEIGHBOURS = Columns(60, 120, 0.9)
EQUAL = Columns(60, 120, 0.8, neighbours=False)
WIDE = Columns(100, 500, 0.9)
FEW_ROWS = Columns(60, 800, 0.9)
LABELS = np.arange(60) // 4
CHAIN = tuple(tuple(range(start, start + 6)) for start in range(0, 56, 4))
PROBLEMS: dict[str, tuple[Any, int, Constraint]] = {
    "neighbours": (lambda seed: linear(seed, NEIGHBOURS, 10), 6, Sparsity(10)),
    "neighbours, classes": (lambda seed: linear(seed, NEIGHBOURS, 10, "logistic"), 3, Sparsity(10)),
    "neighbours, counts": (lambda seed: linear(seed, NEIGHBOURS, 6, "poisson"), 2, Sparsity(6)),
    "equal": (lambda seed: linear(seed, EQUAL, 10), 13, Sparsity(10)),
    "equal, classes": (lambda seed: linear(seed, EQUAL, 10, "logistic"), 6, Sparsity(10)),
    "overshot": (lambda seed: linear(seed, NEIGHBOURS, 5), 7, Sparsity(15)),
    "positive": (lambda seed: linear(seed, NEIGHBOURS, 10), 14, Sparsity(8, lower=0.0)),
    "unscaled": (lambda seed: unscaled(seed, NEIGHBOURS, 10), 19, Sparsity(10)),
    "suppressed": (suppressed, 8, Sparsity(6)),
    "wide": (lambda seed: linear(seed, WIDE, 10), 14, Sparsity(25)),
    "few rows": (lambda seed: linear(seed, FEW_ROWS, 12), 2, Sparsity(12)),
    "groups": (grouped, 10, GroupSparsity(LABELS, 4)),
    "double": (grouped, 17, DoubleSparsity(LABELS, 5, 2)),
    "overlapping groups": (grouped, 6, OverlappingGroupSparsity(CHAIN, 4)),
}
"""By name an objective, given its seed; the seed, on which the escapes from a bad support make the most difference; and
the set."""

SOLVERS: dict[str, Solver] = {
    "pursuit": HardThresholdingPursuit(),
    "pursuit with exchanges": HardThresholdingPursuit(exchanges=4),
    "fast working set": WorkingSet(effort="fast"),
    "balanced working set": WorkingSet(effort="balanced"),
    "thorough working set": WorkingSet(effort="thorough"),
    "backtracking": IHT(),
    "Barzilai-Borwein": IHT(step=BarzilaiBorwein()),
    "sparse Polyak": IHT(step=SparsePolyak()),
    "accelerated": AcceleratedIHT(),
    "conjugate": ConjugateIHT(),
}


def reached(problem: str, solver: str, rows: np.ndarray | None = None) -> float | None:
    """Return the value at which a run ends, on rows in another order if one is given; None if the solver cannot run."""
    make, seed, constraint = PROBLEMS[problem]
    objective = make(seed)
    if rows is not None:
        objective = objective.rows(rows)
    try:
        return float(minimize(objective, constraint, SOLVERS[solver], max_iter=500).value)
    except CapabilityError:
        return None


def steady(problem: str, solver: str) -> float | None:
    """Return the value at which runs end for any order of the rows; None if rounding decides which that is."""
    first = reached(problem, solver)
    if first is None:
        return None
    for seed in range(5):
        n = PROBLEMS[problem][0](PROBLEMS[problem][1]).y.size
        value = reached(problem, solver, np.random.default_rng(seed).permutation(n))
        if value is None or abs(value - first) > 1e-7 * first:
            return None
    return first


if __name__ == "__main__":
    for problem in PROBLEMS:
        print(f'["{problem}"]')
        for solver in SOLVERS:
            value = steady(problem, solver)
            if value is not None:
                print(f'"{solver}" = {value:.9g}')
        print()
