"""Section 5 and footnote 1: the momenta of others against Algorithm 1, on the problems of the momentum study.

Heavy ball, double overrelaxation (Blumensath), ALPS (Kyrillidis and Cevher) and a constant momentum that is skipped
where it increases f, with the step 1/L and with a line search. Three data sets. Quick and full are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, NOTE, label, new_figure, remark

from hardthresh.constraints import Sparsity
from hardthresh.core import LowerBound, minimize
from hardthresh.core.solver import Solver
from hardthresh.steps import ExactLineSearch, Fixed

from ._common import METHODS, published
from ._families import PROBLEMS, SHARE, TITLES, problem
from ._momenta import DoubleOverrelaxation, FreeMomentum, HeavyBall, SkippedMomentum

SEEDS = 3
STUDIED = ["m300 k20", "m300 k87", "m200 k40"]
OTHERS: dict[str, Callable[[float], Solver]] = {
    "1/L skipped .25": lambda step: published(SkippedMomentum(0.25), step),
    "1/L skipped .5": lambda step: published(SkippedMomentum(0.5), step),
    "1/L free": lambda step: published(FreeMomentum(), step),
    "1/L heavy .25": lambda step: HeavyBall(0.25, Fixed(step)),
    "1/L heavy .5": lambda step: HeavyBall(0.5, Fixed(step)),
    "1/L double": lambda step: DoubleOverrelaxation(Fixed(step)),
    "ls skipped .5": lambda step: published(SkippedMomentum(0.5), ExactLineSearch("direction")),
    "ls heavy .25": lambda step: HeavyBall(0.25),
    "ls heavy .5": lambda step: HeavyBall(0.5),
    "ls ALPS": lambda step: published(FreeMomentum(), ExactLineSearch("direction")),
    "ls double": lambda step: DoubleOverrelaxation(),
}
NAMES = {
    "IHT 1/L": "no momentum",
    "1/L .25": "AccIHT, τ = 1/4",
    "1/L skipped .25": "the same, skipped where f rises",
    "1/L heavy .25": "heavy ball, τ = 1/4",
    "1/L .5": "AccIHT, τ = 1/2",
    "1/L skipped .5": "the same, skipped where f rises",
    "1/L heavy .5": "heavy ball, τ = 1/2",
    "1/L exact": "exact τ in [0, 1]",
    "1/L free": "exact τ",
    "1/L gradient restart": "Nesterov, restart by gradient",
    "1/L double": "double overrelaxation",
    "IHT ls": "line search: no momentum",
    "ls .25": "AccIHT, τ = 1/4",
    "ls heavy .25": "heavy ball, τ = 1/4",
    "ls .5": "AccIHT, τ = 1/2",
    "ls skipped .5": "the same, skipped where f rises",
    "ls heavy .5": "heavy ball, τ = 1/2",
    "ls exact": "exact τ in [0, 1]",
    "ls ALPS": "ALPS: exact τ",
    "ls double": "double overrelaxation",
}


def run(name: str, method: str, seed: int, limit: int) -> dict[str, Any]:
    """Follow one method on one problem to f / f(0) = 1e-10, and return the share of iterations with momentum."""
    kind, arguments, k, _, _ = PROBLEMS[name]
    f, step = problem(kind, tuple(arguments), seed)
    solver = (OTHERS | METHODS)[method](step)
    with np.errstate(over="ignore", invalid="ignore"):
        result = minimize(f, Sparsity(k), solver, stop=LowerBound(SHARE), max_iter=limit)
    return {
        "iterations": result.n_iter,
        "converged": result.status.name == "LOWER_BOUND",
        "used": float(np.mean(np.asarray(result.history["momentum"][1:]) != 0.0)),
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem, data set and method."""
    return [
        Cell(
            f"{name} seed={which} {method}",
            run,
            {"name": name, "method": method, "seed": which, "limit": PROBLEMS[name][4]},
        )
        for name in STUDIED
        for which in data_seeds(seed, SEEDS)
        for method in NAMES
    ]


def example(limit: int, **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    return {"iterations": min(limit, 50), "converged": True, "used": 0.9}


def ratio(rows: list[Row], name: str, above: str, below: str) -> float:
    """Return the iterations of one method over those of another: the median over data sets; the limit if not done."""
    pairs = zip(pick(rows, name=name, method=above), pick(rows, name=name, method=below), strict=True)
    return float(np.median([a["iterations"] / b["iterations"] for a, b in pairs]))


RATIOS = [
    ("m300 k20", "1/L .25", "1/L heavy .25"), ("m300 k20", "1/L .5", "1/L heavy .5"),
    ("m300 k20", "1/L exact", "1/L free"), ("m300 k20", "1/L .25", "1/L double"),
    ("m300 k20", "1/L gradient restart", "1/L double"), ("m300 k20", "ls exact", "ls double"),
    ("m300 k20", "ls exact", "ls ALPS"), ("m300 k20", "ls .5", "ls skipped .5"),
    ("m300 k20", "ls heavy .5", "ls heavy .25"), ("m300 k87", "1/L .25", "1/L double"),
    ("m300 k87", "1/L gradient restart", "1/L double"), ("m300 k87", "ls exact", "ls double"),
    ("m300 k87", "ls exact", "ls ALPS"), ("m200 k40", "ls exact", "ls double"), ("m200 k40", "ls .25", "ls heavy .25"),
]  # fmt: skip


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the median iterations of every method, and the claims."""
    counts = {
        name: [[row["iterations"] for row in pick(rows, name=name, method=method)] for method in NAMES]
        for name in STUDIED
    }
    numbers = {f"{name} iterations": [float(np.median(here)) for here in found] for name, found in counts.items()}
    return numbers | _claims(rows)


def _claims(rows: list[Row]) -> dict[str, list[float]]:
    """Return ratios of iterations, and the shares of iterations that use the momentum."""
    numbers = {f"{name}: {above} / {below}": [ratio(rows, name, above, below)] for name, above, below in RATIOS}
    for name, method in (("m300 k20", "1/L skipped .5"), ("m300 k20", "ls skipped .5"), ("m300 k87", "1/L double")):
        here = pick(rows, name=name, method=method)
        numbers[f"{name} {method}: share used"] = [float(np.mean([row["used"] for row in here]))]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the iterations of every method on every problem."""
    title = "The momenta of others: double overrelaxation needs the fewest iterations with the step 1/L"
    figure, panels = new_figure(1, 3, title, height=5.2)
    for panel, name in zip(panels, STUDIED, strict=True):
        limit = PROBLEMS[name][4]
        for place, method in enumerate(NAMES):
            runs = pick(rows, name=name, method=method)
            counts = [row["iterations"] for row in runs]
            look = LINES[0 if "1/L" in method else 1]
            settings = {"linestyle": "", "marker": look["marker"], "color": look["color"], "alpha": 0.6}
            panel.plot(counts, [place] * len(counts), **settings)
            missed = sum(not row["converged"] for row in runs)
            if missed:
                panel.text(limit * 2.4, place, f"{missed} not", verticalalignment="center", **NOTE)
        panel.axvline(limit, color=MUTED, linewidth=1, linestyle=":")
        panel.set_xscale("log")
        panel.set_xlim(8, limit * 2.5)
        panel.set_yticks(range(len(NAMES)), NAMES.values(), fontsize=8)
        panel.invert_yaxis()
        label(panel, TITLES[name], "iterations to f / f(0) = 1e-10", "momentum")
    remark(
        figure, "points: data sets; blue: step 1/L; orange: line search; 'not': not within the limit, the dotted line"
    )
    return {"momenta": figure}


TITLE = "Section 5 and footnote 1: heavy ball, double overrelaxation, ALPS and a skipped momentum"
ITEM = Item(TITLE, cells, summarise, draw, example)
