"""Figure 2, left and centre: Algorithm 1 against the fixed step 2/(3 L).

Quick: three problems with d = 1000, s = 30, s* = 15; also c = 1, and the best fixed step of a grid. Full: the paper's
d = 5000, s = 700, s* = 300.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import NOTE, curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.steps import Fixed

from ._common import RULES, example, first, fixed_step, follow, gaps, planted

MODELS = ("linear", "logistic")
NAMES = {"SP5": "Sparse Polyak, Algorithm 1", "fixed": "fixed step 2/(3L)"}
ERRORS = [100.0, 10.0, 1.0, 0.1, 0.05, 0.03]


MULTIPLES = 2.0 ** np.arange(0, 7.5, 0.5)
"""The grid of fixed steps, in units of 2/(3 L): the longest is slower than the best one, or diverges."""


def run(model: str, d: int, s: int, s_star: int, rule: str, seed: int, limit: int) -> dict[str, Any]:
    """Follow Sparse Polyak, the fixed step, or the one of a grid that first has 1 % of the gap left."""
    problem = planted(model, d, s, s_star, seed)
    theory = fixed_step(model, s, s_star)
    if rule == "best fixed":
        with np.errstate(over="ignore", invalid="ignore"):  # some steps are too long
            tried = [follow(problem, Sparsity(s), Fixed(theory.step * m), limit, until=0.01) for m in MULTIPLES]
        return min(tried, key=lambda found: first(gaps(found), [0.01]))
    return follow(problem, Sparsity(s), theory if rule == "fixed" else RULES[rule](problem.f_star), limit)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, seed and rule."""
    settings: list[dict[str, Any]] = []
    for model in MODELS:
        for which in data_seeds(seed, 1 if full else 3):
            for rule in ("SP5", "fixed") if full else ("SP5", "fixed", "SP1", "best fixed"):
                size = {"d": 5000, "s": 700, "s_star": 300} if full else {"d": 1000, "s": 30, "s_star": 15}
                limit = (1000 if model == "logistic" else 300 if rule == "SP5" else 500) if full else 400
                settings.append({"model": model, **size, "rule": rule, "seed": which, "limit": limit})
    return [Cell("{model} d={d} seed={seed} {rule}".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return first iterations for each gap, their ratios, and (full) what stands at the end."""
    levels = [0.1, 0.01, 0.001, 0.0001] if full else [0.1, 0.01, 0.001]
    numbers: dict[str, Any] = {}
    for row in [row for row in rows if row["rule"] in NAMES]:
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
    if not full:
        numbers |= claimed(rows)
    numbers["linear SP5 found"] = [row["found"][-1] for row in pick(rows, model="linear", rule="SP5")]
    return numbers


def claimed(rows: list[Row]) -> dict[str, float]:
    """Return medians over the data sets: iterations of other steps over those of Sparse Polyak, steps and errors."""
    numbers: dict[str, float] = {}
    for model in MODELS:
        table = {rule: pick(rows, model=model, rule=rule) for rule in ("SP5", "fixed", "SP1", "best fixed")}
        theory = fixed_step(model, rows[0]["s"], rows[0]["s_star"]).step

        def median(gap: float, upper: str, lower: str, table: dict[str, list[Row]] = table) -> float:
            pairs = zip(table[upper], table[lower], strict=True)
            counts = [[first(gaps(row), [gap])[0] for row in pair] for pair in pairs]
            return float(np.median([above / below if below < inf else 0.0 for above, below in counts]))

        for gap in (0.1, 0.01, 0.001):
            numbers[f"{model} fixed / SP5, gap {gap}"] = median(gap, "fixed", "SP5")
        numbers[f"{model} SP5 / best fixed"] = median(0.01, "SP5", "best fixed")
        numbers[f"{model} SP1 / best fixed"] = median(0.01, "SP1", "best fixed")
        numbers[f"{model} longest step / fixed"] = float(np.median([max(row["step"]) for row in table["SP5"]])) / theory
        last = zip(table["fixed"], table["SP5"], strict=True)
        numbers[f"{model} error of fixed / SP5"] = float(
            np.median([one["error"][-1] / of["error"][-1] for one, of in last])
        )
    numbers["logistic / linear speedup"] = (
        numbers["logistic fixed / SP5, gap 0.1"] / numbers["linear fixed / SP5, gap 0.1"]
    )
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
