"""Section 5: low-rank matrix regression, with the gradient measured on its s leading singular values.

The paper states the method and shows no experiment; the set-up is that of an independent implementation. Quick and full
are the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Rank
from hardthresh.objectives import MatrixRegression

from ._common import RULES, Problem, example, first, follow, gaps

# (s, n, omega, number of seeds)
PROBLEMS = [(3, 1200, 0.0, 2), (6, 1200, 0.0, 2), (6, 1200, 0.5, 1), (6, 600, 0.0, 1)]
NAMES = {"SP5": "Sparse Polyak, c = 5", "SP1": "Sparse Polyak, c = 1"}
NAMES |= {"CP5": "classical Polyak, c = 5", "CP1": "classical Polyak, c = 1"}
GAPS = [0.1, 0.01, 0.001, 1e-6]


@lru_cache(maxsize=1)
def measured(d: int, rank: int, n: int, omega: float, seed: int) -> Problem:
    """Draw n measurements of a d x d matrix of some rank; the entries of a measurement are an AR(1) process.

    Draw order: the innovations of all measurements, the two factors, the noise (variance 1/4).
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d * d))
    if omega:
        A[:, 0] /= math.sqrt(1.0 - omega**2)
        for j in range(1, d * d):
            A[:, j] += omega * A[:, j - 1]
    U, V = rng.standard_normal((d, rank)), rng.standard_normal((d, rank))
    truth = U @ V.T / math.sqrt(d)
    y = A @ truth.ravel() + 0.5 * rng.standard_normal(n)
    objective = MatrixRegression(A.reshape(n, d, d), y)
    return Problem(objective, truth, objective.value(truth))


def run(d: int, rank: int, s: int, n: int, omega: float, rule: str, seed: int, limit: int) -> dict[str, Any]:
    """Follow one rule on one problem."""
    problem = measured(d, rank, n, omega, seed)
    return follow(problem, Rank(s), RULES[rule](problem.f_star), limit)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem and rule."""
    settings = [
        {"d": 30, "rank": 3, "s": s, "n": n, "omega": omega, "rule": rule, "seed": which, "limit": 300}
        for s, n, omega, seeds in PROBLEMS
        for which in range(seed, seed + seeds)
        for rule in NAMES
    ]
    return [
        Cell("s={s} n={n} omega={omega} seed={seed} {rule}".format(**setting), run, setting) for setting in settings
    ]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return first iterations for each gap, and the final error of Sparse Polyak."""
    numbers: dict[str, list[float]] = {}
    for row in rows:
        name = f"s={row['s']} n={row['n']} omega={row['omega']} seed {row['seed']} {row['rule']}"
        numbers[name] = first(gaps(row), GAPS)
        if row["rule"] == "SP5":
            numbers[f"{name} error"] = [row["error"][-1] / row["size"]]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the gap over the iterations for each problem."""
    title = "30 × 30 matrices of rank 3: the same rule, with the gradient measured on its s leading singular values"
    figure, panels = new_figure(2, 2, title)
    for panel, (s, n, omega, _) in zip(panels, PROBLEMS, strict=True):
        for line, (rule, name) in enumerate(NAMES.items()):
            runs = [gaps(row) for row in pick(rows, s=s, n=n, omega=omega, rule=rule)]
            curves(panel, [np.where(run > 0, run, np.nan) for run in runs], name, line)
        panel.set_yscale("log")
        panel.set_ylim(1e-6, 1.5)
        correlated = f", ω = {omega:g}" if omega else ""
        label(
            panel,
            f"s = {s}, {n:,} measurements{correlated}",
            "iterations",
            "share of the gap f − f(Θ*) that is left",
        )
    shared_legend(figure)
    remark(figure, "above: medians of two data sets, bands their range; below: one data set")
    return {"matrix": figure}


ITEM = Item("Section 5: low-rank matrix regression", cells, summarise, draw, example)
