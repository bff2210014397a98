"""What the parts of exact search bring: nodes and time without each of them, and the size of a whole search tree.

    python benchmarks/exact_parts.py --limit 120            # nodes and CPU seconds of the search without each part
    python benchmarks/exact_parts.py --dives 200 --rows 10  # the nodes that a search will have
    python benchmarks/exact_parts.py --searches "the whole" --problem 500,1000,5,.01,.5,2  # n, d, k, alpha, rho, SNR

The problems are those of `exact.py`. The number of nodes of a tree is estimated as Knuth does (1975, *Estimating the
efficiency of backtrack programs*, Mathematics of Computation 29, 121-136): by walks from the root to random children,
each node counted by the product of the numbers of children above it. The estimate has no bias, but few large terms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from exact import ROWS, Row
from run import limit_threads

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import WorkingSet
from hardthresh.solvers.branch_and_bound import search
from hardthresh.solvers.branch_and_bound.quadratic import Quadratic, Reduced
from hardthresh.solvers.branch_and_bound.relaxation import Relaxed, relax
from hardthresh.solvers.branch_and_bound.rows import Rows

TOL = 1e-9


class RidgeAlone(search.Search):
    """D is the ridge."""

    def _has_own_diagonal(self, others: np.ndarray, n_chosen: int) -> bool:
        return False


class UnmovedDiagonal(search.Search):
    """D is a multiple of the diagonal of M."""

    def _bound(self, work: search._Work, steps: int) -> None:
        super()._bound(work, 0)


class NothingFixed(search.Search):
    """No column is in or out for good."""

    def _fixed(self, found: Relaxed, k: int) -> tuple[np.ndarray, np.ndarray]:
        none = np.zeros(found.worth.size, dtype=bool)
        return none, none


class MostFractional(search.Search):
    """The column is decided that the relaxation chooses most nearly by half."""

    def _tighten(self, work: search._Work, reduced: Reduced, k: int, move: bool) -> bool:
        solved: list[Relaxed] = []

        def kept(*arguments: Any) -> Relaxed:
            solved.append(relax(*arguments))
            return solved[-1]

        with patch.object(search, "relax", kept):
            changed = super()._tighten(work, reduced, k, move)
        undecided = np.isin(work.active, work.others)
        if solved and undecided.any() and work.lower < self.upper - self.slack:
            half = np.where(undecided, np.abs(solved[-1].shares - 0.5), np.inf)
            work.branch = int(work.active[np.argmin(half)])
        return changed


WITHOUT: dict[str, tuple[type[search.Search], dict[str, int]]] = {
    "the whole": (search.Search, {}),
    "D the ridge alone": (RidgeAlone, {}),
    "D a multiple of the diagonal": (UnmovedDiagonal, {}),
    "no pairs": (search.Search, {"_PAIRED": 0}),
    "nothing fixed": (NothingFixed, {}),
    "most fractional branching": (MostFractional, {}),
}
"""Kinds of searches, and what they replace in its module."""


class Walk(search.Search):
    """A search whose best value stays that of the start."""

    def _round(self, work: search._Work, k: int) -> None:
        pass


def begun(kind: type[search.Search], row: Row, seed: int) -> search.Search:
    """Return a search that has bounded its root, at the best support of a thorough local search."""
    X, y = row.draw(seed)
    f = LinearModel(X, y, l2=row.alpha)
    none = np.empty(0, dtype=np.int64)
    rows = Rows.of(f, none)
    problem = Quadratic.of(f, f.evaluate(np.zeros(row.d)), none, rows)
    found = minimize(f, Sparsity(row.k), WorkingSet(effort="thorough"))
    this = kind(problem, rows, row.k, TOL, problem.constant, none)
    this.improve(found.support.indices)
    this.begin()
    return this


def walks(row: Row, seed: int, count: int) -> Iterator[float]:
    """Estimate the nodes of the search tree, once for each walk."""
    walk, rng = begun(Walk, row, seed), np.random.default_rng(seed)
    root = list(walk.frontier)
    for _ in range(count):
        nodes, weight, open_nodes = 1.0, 1.0, root
        while open_nodes:
            weight *= len(open_nodes)
            walk.frontier = [open_nodes[rng.integers(len(open_nodes))]]
            walk.run(2)
            nodes += 2.0 * weight
            open_nodes = [node for node in walk.frontier if node.lower < walk.upper - walk.slack]
        yield nodes


@dataclass(frozen=True)
class Run:
    """A search that has ended: its nodes, CPU seconds, and what is left to prove."""

    nodes: int
    seconds: float
    root_gap: float
    gap: float


def run(name: str, row: Row, seed: int, limit: float) -> Run:
    """Search until the best support is proved, or for so many CPU seconds."""
    kind, replaced = WITHOUT[name]
    with ExitStack() as stack:
        for attribute, value in replaced.items():
            stack.enter_context(patch.object(search, attribute, value))
        began = process_time()
        this = begun(kind, row, seed)
        root_gap = 1.0 - this.lower / this.upper
        while not this.is_done and process_time() - began < limit:
            this.run(10)
        gap = 0.0 if this.is_done else 1.0 - this.lower / this.upper
        return Run(this.n_nodes, process_time() - began, root_gap, gap)


def problem(text: str) -> Row:
    """Return the row of a table that is written with commas."""
    n, d, k, *others = text.split(",")
    return Row(int(n), int(d), int(k), *map(float, others))


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="2,4,6,7,9,11")
    parser.add_argument("--problem", action="append", type=problem, help="instead of rows: n,d,k,alpha,rho,SNR")
    parser.add_argument("--searches", default=",".join(WITHOUT))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--dives", type=int, default=0)
    arguments = parser.parse_args()
    rows = arguments.problem or [ROWS[int(place)] for place in arguments.rows.split(",")]
    if arguments.dives:
        print("| n, d, k, alpha, rho, SNR | nodes, estimated | standard error | median of a walk |\n|---|--:|--:|--:|")
    else:
        print("| n, d, k, alpha, rho, SNR | search | root gap | nodes | CPU s | gap |\n|---|---|--:|--:|--:|--:|")
    for row in rows:
        size = f"{row.n}, {row.d}, {row.k}, {row.alpha:g}, {row.rho:g}, {row.snr:g}"
        if arguments.dives:
            found = np.array(list(walks(row, arguments.seed, arguments.dives)))
            error = found.std() / np.sqrt(found.size)
            print(f"| {size} | {found.mean():.2g} | {error:.2g} | {np.median(found):.2g} |", flush=True)
            continue
        for name in arguments.searches.split(","):
            it = run(name, row, arguments.seed, arguments.limit)
            print(f"| {size} | {name} | {it.root_gap:.3f} | {it.nodes} | {it.seconds:.1f} | {it.gap:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    limit_threads()
    sys.exit(main())
