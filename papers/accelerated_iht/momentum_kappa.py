"""Beyond the paper, its open question: does momentum change the dependence on the condition number, or a constant?

800 x 100 designs whose ten planted columns have a given condition number, without noise, all methods with the step 1/L.
A run is divided where its support becomes the planted one for good. Three data sets. Quick and full are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import GUIDE, LINES, MORE_LINES, MUTED, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.core.solver import Solver
from hardthresh.diagnostics import best_momentum, local_rate
from hardthresh.objectives import LinearModel
from hardthresh.solvers import ExactMomentum, NesterovMomentum
from hardthresh.solvers.accelerated import SmallMove
from hardthresh.steps import Fixed

from ._common import first, published
from ._data import conditioned_design
from ._momenta import DoubleOverrelaxation, FreeMomentum, HeavyBall, heavy_ball_rate

M, D, K, SEEDS = 800, 100, 10, 3
CONDITIONS = [4, 8, 16, 32, 64]
GOAL, MOVE, LIMIT = 1e-6, 1e-10, 4000  # a run that moves by less than MOVE is at a wrong point
METHODS: dict[str, Callable[[float, float], Solver]] = {
    "plain": lambda step, q: published(0.0, step),
    "1/4": lambda step, q: published(0.25, step),
    "1/2": lambda step, q: published(0.5, step),
    "best": lambda step, q: published((1.0 - q) / (1.0 + q), step),
    "exact": lambda step, q: published(ExactMomentum(), step),
    "free": lambda step, q: published(FreeMomentum(), step),
    "Nesterov": lambda step, q: published(NesterovMomentum("gradient"), step),
    "heavy 1/2": lambda step, q: HeavyBall(0.5, Fixed(step)),
    "heavy best": lambda step, q: HeavyBall((1.0 - q) ** 2, Fixed(step)),
    "double": lambda step, q: DoubleOverrelaxation(Fixed(step)),
}
"""Of the step and of q = sqrt(step * the least eigenvalue on the planted columns), which only "best" may know."""
NAMES = {
    "plain": "no momentum",
    "1/4": "τ = 1/4 (the paper)",
    "1/2": "τ = 1/2",
    "best": "best constant τ, which depends on κ",
    "exact": "exact τ in [0, 1]",
    "free": "exact τ (ALPS)",
    "Nesterov": "Nesterov, restart by gradient",
    "heavy 1/2": "heavy ball, τ = 1/2",
    "heavy best": "heavy ball, best constant",
    "double": "double overrelaxation",
}


@lru_cache(maxsize=1)  # cells of one design stand side by side
def problem(condition: float, seed: int) -> tuple[LinearModel, Any, float, Any]:
    """Return the objective, the truth, the step 1/L and the eigenvalues on the planted columns."""
    drawn = conditioned_design(M, D, K, condition=condition, seed=seed)
    on = drawn.X[:, drawn.support]
    step = M / float(np.linalg.norm(drawn.X, 2) ** 2)
    return LinearModel(drawn.X, drawn.y), drawn.coef, step, np.linalg.eigvalsh(on.T @ on) / M


def run(method: str, condition: float, seed: int, limit: int) -> dict[str, Any]:
    """Return when the support is found for good, the iterations per factor e after that, and what the law says."""
    f, truth, step, eigenvalues = problem(condition, seed)
    q = sqrt(step * float(eigenvalues.min()))
    distances, whole = [], []

    def watch(state: Any) -> None:
        distances.append(float(np.linalg.norm(state.w - truth) / np.linalg.norm(truth)))
        whole.append(bool(np.all(state.w[truth != 0] != 0)))

    minimize(f, Sparsity(K), METHODS[method](step, q), stop=SmallMove(MOVE), max_iter=limit, callback=watch)
    end = first(distances, [GOAL])[0]
    found = np.flatnonzero(~np.array(whole))[-1] + 1
    arrived = end < len(distances) and found < end
    return {
        "kappa": 1.0 / q**2,
        "arrived": arrived,
        "found": int(found) if arrived else None,
        "total": int(end) if arrived else None,
        "per e": (end - found) / log(distances[found] / distances[int(end)]) if arrived else None,
        "law": law(method, eigenvalues, step, q),
    }


def law(method: str, eigenvalues: Any, step: float, q: float) -> float | None:
    """Return the iterations per factor e of a constant momentum on the planted support; None for other methods."""
    constant = {"plain": 0.0, "1/4": 0.25, "1/2": 0.5, "best": best_momentum(eigenvalues, step)}
    heavy = {"heavy 1/2": 0.5, "heavy best": (1.0 - q) ** 2}
    if method in constant:
        return -1.0 / log(local_rate(eigenvalues, step, constant[method]))
    return -1.0 / log(heavy_ball_rate(eigenvalues, step, heavy[method])) if method in heavy else None


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, condition number and method."""
    return [
        Cell(
            f"seed={which} kappa={condition} {method}",
            run,
            {"method": method, "condition": condition, "seed": which, "limit": LIMIT},
        )
        for which in data_seeds(seed, SEEDS)
        for condition in CONDITIONS
        for method in METHODS
    ]


def example(method: str, condition: float, seed: int, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    slow = condition if method in ("plain", "1/4", "1/2", "free", "heavy 1/2") else 2.0 * sqrt(condition)
    known = None if method in ("exact", "free", "Nesterov", "double") else 1.7 * slow
    counts = {"found": int(slow), "total": int(15.0 * slow), "per e": 1.7 * slow}
    return {"kappa": 1.7 * condition, "arrived": True, **counts, "law": known}


def slope(rows: list[Row], method: str, field: str) -> float:
    """Return the exponent of kappa in a count: the median over data sets of the slope on log axes."""
    found = []
    for seed in sorted({row["seed"] for row in rows}):
        here = [row for row in pick(rows, method=method, seed=seed) if row["arrived"]]
        at, counts = [log(row["kappa"]) for row in here], [log(max(row[field], 0.5)) for row in here]
        if len(here) > 1:
            found.append(float(np.polyfit(at, counts, 1)[0]))
    return float(np.median(found))


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the exponents of kappa before and after the support is found, and how far the law is from the runs."""
    slopes = {method: slope(rows, method, "per e") for method in METHODS}
    numbers = {"slopes after": [*slopes.values()]}
    numbers |= {f"slope after {method}": [found] for method, found in slopes.items()}
    for method in ("best", "Nesterov", "double"):
        numbers[f"slope before {method}"] = [slope(rows, method, "found")]
    for method in ("1/4", "heavy 1/2"):
        here = [row for row in pick(rows, method=method) if row["arrived"]]
        numbers[f"law {method}"] = [float(np.median([row["per e"] / row["law"] for row in here]))]
    for method, field in (("1/4", "per e"), ("1/2", "per e"), ("1/4", "found")):
        numbers[f"gain {method} {'before' if field == 'found' else 'after'}"] = [_gain(rows, method, field)]
    numbers["arrived"] = [float(np.mean([row["arrived"] for row in rows]))]
    return numbers


def _gain(rows: list[Row], method: str, field: str) -> float:
    """Return the median share of the iterations without momentum at the largest condition number."""
    pairs = zip(
        pick(rows, method=method, condition=CONDITIONS[-1]),
        pick(rows, method="plain", condition=CONDITIONS[-1]),
        strict=True,
    )
    return float(np.median([a[field] / b[field] for a, b in pairs if a["arrived"] and b["arrived"]]))


PANELS = {"found": "until the support is found", "per e": "then: per factor e of the error", "total": "in all"}


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the iterations of every method over the condition number, before and after the support is found."""
    title = "A constant τ changes the constant; one that adapts to κ, or double overrelaxation, changes the power"
    figure, panels = new_figure(1, 3, title, height=4.4)
    for panel, (field, name) in zip(panels, PANELS.items(), strict=True):
        for look, method in zip(LINES + MORE_LINES, METHODS, strict=True):
            points = []
            for condition in CONDITIONS:
                here = [row for row in pick(rows, method=method, condition=condition) if row["arrived"]]
                if here:
                    points.append([float(np.median([row[key] for row in here])) for key in ("kappa", field)])
            panel.plot(*zip(*points, strict=True), label=NAMES[method], linewidth=1.5, markersize=4.5, **look)
        panel.set_xscale("log")
        panel.set_yscale("log")
        low, high = panel.get_ylim()
        ends = np.array(panel.get_xlim())
        for power, name_of_power in ((0.5, "√κ"), (1.0, "κ")):
            guide = 0.8 * low * (ends / ends[0]) ** power
            panel.plot(ends, guide, color=GUIDE, linewidth=0.9)
            panel.annotate(name_of_power, (ends[1], guide[1]), (3, 0), textcoords="offset points", color=MUTED)
        panel.set_xlim(*ends)
        panel.set_ylim(0.7 * low, high)
        label(panel, name, "condition number κ = L / λ on the planted columns", "iterations")
    shared_legend(figure)
    remark(figure, "medians of the data sets on which a method arrives")
    return {"momentum_kappa": figure}


TITLE = "Beyond the paper: does momentum change the dependence on the condition number, or only the constant?"
ITEM = Item(TITLE, cells, summarise, draw, example)
