"""Algorithm 2: Sparse Polyak without a known target, starting from the lower bound 0.

Quick: three problems with d = 1000, s = 30, s* = 15. Full: d = 5000, s = 700, s* = 300. The paper shows no such
experiment, and leaves the length T of an epoch open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.steps import AdaptiveSparsePolyak

from ._common import RULES, example, first, follow, planted

MODELS = ("linear", "logistic")
# (c, T): T = 0 is Algorithm 1 with the target f(theta*)
QUICK = {
    "linear": [(10, 10), (10, 20), (10, 50), (10, 100), (2, 100), (5, 0), (1, 0)],
    "logistic": [(10, 10), (10, 20), (10, 100), (2, 100), (5, 0), (1, 0)],
}
FULL = [("linear", 75, 4), ("linear", 20, 15), ("logistic", 60, 4)]


def run(model: str, d: int, s: int, s_star: int, c: int, T: int, seed: int, limit: int) -> dict[str, Any]:
    """Follow Algorithm 2 with epochs of T steps, or Algorithm 1."""
    problem = planted(model, d, s, s_star, seed)
    rule = AdaptiveSparsePolyak(0.0, epoch_length=T, scale=c) if T else RULES[f"SP{c}"](problem.f_star)
    return follow(problem, Sparsity(s), rule, limit)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, seed and setting of the algorithm."""
    settings: list[dict[str, Any]] = []
    if full:
        common: dict[str, Any] = {"d": 5000, "s": 700, "s_star": 300, "c": 10, "seed": seed}
        settings += [{"model": model, **common, "T": T, "limit": T * K} for model, T, K in FULL]
    else:
        for model in MODELS:
            for which in data_seeds(seed, 3):
                common = {"model": model, "d": 1000, "s": 30, "s_star": 15, "seed": which, "limit": 600}
                settings += [{**common, "c": c, "T": T} for c, T in QUICK[model]]
    return [Cell("{model} d={d} seed={seed} c={c} T={T}".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return, over the seeds, first iterations, bounds and errors; in full mode the course of the one run."""
    numbers: dict[str, Any] = {}
    for model, c, T in dict.fromkeys((row["model"], row["c"], row["T"]) for row in rows):
        name, chosen = f"{model} c={c} T={T}", pick(rows, model=model, c=c, T=T)
        values = [np.array(row["value"]) / row["f_star"] for row in chosen]
        best = [int(np.argmin(value)) for value in values]
        numbers[f"{name} value"] = [value.min() for value in values]
        if full:
            numbers[f"{name} squared error"] = [row["error"][t] for row, t in zip(chosen, best, strict=True)]
        else:
            numbers[f"{name} first"] = [first(value, [1.01])[0] for value in values]
            numbers[f"{name} error"] = [row["error"][t] / row["size"] for row, t in zip(chosen, best, strict=True)]
            if T:
                numbers[f"{name} second bound"] = [row["bound"][T + 1] / row["f_star"] for row in chosen]
        if full and T == 75:  # the one that reaches f(theta*), epoch by epoch
            numbers[f"{name} reached"] = first(values[0], [1.0])
            epochs = range(chosen[0]["limit"] // T)
            numbers[f"{name} bounds"] = [chosen[0]["bound"][k * T + 1] / chosen[0]["f_star"] for k in epochs]
            numbers[f"{name} best"] = [values[0][: (k + 1) * T + 1].min() for k in epochs]
        if full and T == 20:  # the one that stalls
            numbers[f"{name} found"] = [row["found"][-1] for row in chosen]
    return numbers if full else numbers | claimed(numbers)


def claimed(numbers: dict[str, Any]) -> dict[str, float]:
    """Return medians over the data sets: against Algorithm 1, and where the runs and their second bounds are."""
    medians = {key: float(np.median(values)) for key, values in numbers.items()}
    found: dict[str, float] = {}
    for model in MODELS:
        one, two = f"{model} c=5 T=0", f"{model} c=10 T=100"
        for what in ("first", "error"):
            found[f"{model} {what}, Algorithm 2 / 1"] = medians[f"{two} {what}"] / medians[f"{one} {what}"]
        for T in (10, 20, 100):
            for what in ("value", "second bound"):
                found[f"{model} T={T} {what} / f(theta*)"] = medians[f"{model} c=10 T={T} {what}"]
    found["linear T=50 value / f(theta*)"] = max(numbers["linear c=10 T=50 value"])
    return found


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw f over the iterations, one line for each setting of the algorithm."""
    title = "Without knowing f(θ*): long epochs get below it; short ones stall, least squares far above it"
    figure, panels = new_figure(1, 2, title, height=4.0)
    pairs = [*dict.fromkeys((row["c"], row["T"]) for row in rows)]  # one line means the same in both panels
    for panel, model in zip(panels, MODELS, strict=True):
        for c, T in dict.fromkeys((row["c"], row["T"]) for row in pick(rows, model=model)):
            line = pairs.index((c, T))
            name = f"Algorithm 2, c = {c}, T = {T}" if T else f"Algorithm 1, c = {c}, knows f(θ*)"
            chosen = pick(rows, model=model, c=c, T=T)
            curves(panel, [np.array(row["value"]) / row["f_star"] for row in chosen], name, line)
        panel.axhline(1.0, color="#5a6675", linewidth=0.8)
        panel.set_yscale("log")
        panel.set_xlim(0, 300 if full else 200)
        top = max(row["value"][0] / row["f_star"] for row in pick(rows, model=model))
        panel.set_ylim(0.6, 1.3 * top)
        label(panel, f"{model} regression, d = {rows[0]['d']:,}, s = {rows[0]['s']}", "iterations", "f / f(θ*)")
    shared_legend(figure)
    remark(figure, "one data set" if full else "lines: medians of three data sets; bands: their range")
    return {"algorithm2": figure}


ITEM = Item("Algorithm 2: no known target, and how long its epochs must be", cells, summarise, draw, example)
