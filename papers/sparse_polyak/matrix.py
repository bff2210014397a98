"""Section 5: low-rank matrix regression, with the gradient measured on its s leading singular values.

The paper states the method and shows no experiment; the set-up is that of an independent implementation. Quick and full
are the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Rank

from ._common import RULES, example, first, follow, gaps, measured

# (s, n, omega, number of seeds)
PROBLEMS = [(3, 1200, 0.0, 2), (6, 1200, 0.0, 2), (6, 1200, 0.5, 1), (6, 600, 0.0, 1)]
NAMES = {"SP5": "Sparse Polyak, c = 5", "SP1": "Sparse Polyak, c = 1"}
NAMES |= {"CP5": "classical Polyak, c = 5", "CP1": "classical Polyak, c = 1"}
GAPS = [0.1, 0.01, 0.001, 1e-6]


def run(d: int, rank: int, s: int, n: int, omega: float, rule: str, seed: int, limit: int) -> dict[str, Any]:
    """Follow one rule on one problem."""
    problem = measured(d, rank, n, omega, seed)
    return follow(problem, Rank(s), RULES[rule](problem.f_star), limit)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem and rule."""
    settings = [
        {"d": 30, "rank": 3, "s": s, "n": n, "omega": omega, "rule": rule, "seed": which, "limit": 300}
        for s, n, omega, seeds in PROBLEMS
        for which in data_seeds(seed, seeds)
        for rule in NAMES
    ]
    return [
        Cell("s={s} n={n} omega={omega} seed={seed} {rule}".format(**setting), run, setting) for setting in settings
    ]


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return first iterations for each gap, their ratios, and the final error of Sparse Polyak."""
    numbers: dict[str, Any] = {}
    for row in rows:
        name = f"s={row['s']} n={row['n']} omega={row['omega']} seed {row['seed']} {row['rule']}"
        numbers[name] = first(gaps(row), GAPS)
        if row["rule"] == "SP5":
            numbers[f"{name} error"] = [row["error"][-1] / row["size"]]
    return numbers | claimed(rows)


def claimed(rows: list[Row]) -> dict[str, float]:
    """Return the iterations of the classical step over those of Sparse Polyak, and the largest factor of the error."""
    numbers: dict[str, float] = {}
    for s, n, omega, _ in PROBLEMS:
        for c in (5, 1):
            runs = [pick(rows, s=s, n=n, omega=omega, rule=f"{rule}{c}") for rule in ("CP", "SP")]
            counts = [[first(gaps(row), [0.001])[0] for row in chosen] for chosen in runs]
            numbers[f"s={s} n={n} omega={omega} CP{c} / SP{c}"] = float(np.median(np.divide(*counts)))
    factors = [factor for row in pick(rows, rule="SP5") for factor in far_factors(row)]
    numbers["SP5 largest factor"] = max(factors)
    return numbers


def far_factors(row: Row) -> list[float]:
    """Return the factors of the squared error of the steps that begin with at least 1 % of the gap."""
    steps = zip(gaps(row), pairwise(row["error"]), strict=False)
    return [after / before for gap, (before, after) in steps if gap >= 0.01]


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
