"""Figure 2, left and centre: Algorithm 1 against the fixed step 2/(3 L).

Quick: three problems with d = 1000, s = 30, s* = 15. Full: the paper's d = 5000, s = 700, s* = 300.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import NOTE, curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity

from ._common import RULES, example, first, fixed_step, follow, gaps, planted

MODELS = ("linear", "logistic")
NAMES = {"SP5": "Sparse Polyak, Algorithm 1", "fixed": "fixed step 2/(3L)"}
ERRORS = [100.0, 10.0, 1.0, 0.1, 0.05, 0.03]


def run(model: str, d: int, s: int, s_star: int, rule: str, seed: int, limit: int) -> dict[str, Any]:
    """Follow Sparse Polyak or the fixed step on one problem."""
    problem = planted(model, d, s, s_star, seed)
    step = fixed_step(model, s, s_star) if rule == "fixed" else RULES[rule](problem.f_star)
    return follow(problem, Sparsity(s), step, limit)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, seed and rule."""
    settings: list[dict[str, Any]] = []
    for model in MODELS:
        for which in range(seed, seed + (1 if full else 3)):
            for rule in ("SP5", "fixed"):
                size = {"d": 5000, "s": 700, "s_star": 300} if full else {"d": 1000, "s": 30, "s_star": 15}
                limit = (1000 if model == "logistic" else 300 if rule == "SP5" else 500) if full else 400
                settings.append({"model": model, **size, "rule": rule, "seed": which, "limit": limit})
    return [Cell("{model} d={d} seed={seed} {rule}".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return first iterations for each gap, their ratios, and (full) what stands at the end."""
    levels = [0.1, 0.01, 0.001, 0.0001] if full else [0.1, 0.01, 0.001]
    numbers: dict[str, list[float]] = {}
    for row in rows:
        name = f"{row['model']} {row['rule']} seed {row['seed']}"
        numbers[f"{name} gaps"] = first(gaps(row), levels)
        if full:
            numbers[f"{name} errors"] = first(row["error"], ERRORS)
            numbers[f"{name} end"] = [row["error"][-1], min(row["error"]), row["value"][-1] / row["f_star"]]
    for model in MODELS:
        sparse, fixed = (pick(rows, model=model, rule=rule) for rule in ("SP5", "fixed"))
        counts = [[first(gaps(row), [0.1])[0] for row in chosen] for chosen in (sparse, fixed)]
        numbers[f"{model} speedup"] = [slow / fast for fast, slow in zip(*counts, strict=True)]
        if full:
            theory = fixed_step(model, sparse[0]["s"], sparse[0]["s_star"]).step
            numbers[f"{model} longest step"] = [max(sparse[0]["step"]) / theory]
    numbers["linear SP5 found"] = [row["found"] for row in pick(rows, model="linear", rule="SP5")]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the gap (above) and the squared error (below) over the iterations."""
    title = "A step that follows the problem against the step 2/(3L) that the theory allows everywhere"
    figure, panels = new_figure(2, 2, title)
    for column, model in enumerate(MODELS):
        for row, what in enumerate(("gap", "error")):
            panel = panels[2 * row + column]
            for line, (rule, name) in enumerate(NAMES.items()):
                chosen = pick(rows, model=model, rule=rule)
                runs = [gaps(run) if what == "gap" else np.array(run["error"]) / run["size"] for run in chosen]
                # below f(θ*) the gap is negative, which a logarithm cannot show: the line ends there
                curves(panel, [np.where(np.asarray(run) > 0, run, np.nan) for run in runs], name, line)
            panel.set_yscale("log")
            if what == "gap":
                panel.set_ylim(1e-4, 1.5)
                if any(gaps(run).min() < 0 for run in pick(rows, model=model)):
                    panel.text(
                        0.98, 0.93, "a line ends where a run falls below f(θ*)", transform=panel.transAxes, **NOTE
                    )
            y = "share of the gap f − f(θ*) that is left" if what == "gap" else "squared error ‖θ − θ*‖² / ‖θ*‖²"
            label(panel, f"{model} regression, d = {rows[0]['d']:,}, s = {rows[0]['s']}", "iterations", y)
    shared_legend(figure)
    if not full:
        remark(figure, "lines: medians of three data sets; bands: their range")
    return {"fig2_fixed_step": figure}


ITEM = Item("Figure 2, left and centre: Algorithm 1 against a fixed step", cells, summarise, draw, example)
