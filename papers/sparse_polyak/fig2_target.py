"""Figure 2, right: what the target fhat of Algorithm 1 does.

Quick: d = 1000, s = 60, s* = 30. Full: the paper's d = 5000, s = 700, s* = 300.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.steps import SparsePolyak

from ._common import example, first, follow, planted

MODELS = ("linear", "logistic")
LEVELS = {"linear": [0.1, 0.01, 0.001], "logistic": [0.4, 0.3, 0.2]}
ABOVE = [("logistic", 1.5), ("logistic", 2)]
"""Targets with which no level is reached, as the final error says."""


def run(model: str, d: int, s: int, s_star: int, factor: float, seed: int, limit: int) -> dict[str, Any]:
    """Follow Sparse Polyak with the target factor x f(theta*)."""
    problem = planted(model, d, s, s_star, seed)
    return follow(problem, Sparsity(s), SparsePolyak(factor * problem.f_star), limit)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model and target."""
    settings: list[dict[str, Any]] = []
    for model in MODELS:
        size = {"d": 5000, "s": 700, "s_star": 300} if full else {"d": 1000, "s": 60, "s_star": 30}
        factors = [0.5, 1.0, 1.5, 2.0, 4.0][: 5 if model == "linear" else 4] if full else [0, 0.5, 0.9, 1, 1.1, 1.5, 2]
        limit = (300 if model == "linear" else 120) if full else 600
        settings += [{"model": model, **size, "factor": factor, "seed": seed, "limit": limit} for factor in factors]
    return [Cell("{model} d={d} target={factor} f*".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return where each target ends, and how soon it gets there."""
    numbers: dict[str, Any] = {}
    for row in rows:
        name = f"{row['model']} {row['factor']:g}"
        relative = np.array(row["error"]) / row["size"]
        if not full:
            numbers[f"{name} end"] = [row["value"][-1] / row["f_star"], relative[-1], relative.min()]
            if (row["model"], row["factor"]) not in ABOVE:
                numbers[f"{name} first"] = first(relative, LEVELS[row["model"]])
        elif row["model"] == "linear":
            numbers[f"{name} after 90"] = [row["value"][90] / row["f_star"], row["error"][90]]
            numbers[f"{name} first error"] = first(row["error"], [1.0, 0.03])
        else:
            numbers[f"{name} squared error"] = [row["error"][-1]]
    return numbers if full else numbers | claimed(rows)


def claimed(rows: list[Row]) -> dict[str, float]:
    """Return how near f ends to its target, how the final errors compare, and how long the first level takes."""
    numbers: dict[str, float] = {}
    for model in MODELS:
        runs = {row["factor"]: row for row in pick(rows, model=model)}
        attainable = sorted(factor for factor in runs if factor >= 1)
        misses = [abs(runs[factor]["value"][-1] / runs[factor]["f_star"] / factor - 1.0) for factor in attainable]
        numbers[f"{model} distance to the target"] = max(misses)
        end = {factor: row["error"][-1] for factor, row in runs.items()}
        ratios = [end[higher] / end[lower] for lower, higher in pairwise(attainable)]
        numbers[f"{model} error of a higher target / lower"] = min(ratios)
        for factor in (0, 0.5, 0.9):
            numbers[f"{model} error of target {factor:g} / 1"] = end[factor] / end[1]
        level = LEVELS[model][0]
        counts = {
            factor: first(np.array(runs[factor]["error"]) / runs[factor]["size"], [level])[0] for factor in (0, 1)
        }
        numbers[f"{model} iterations of target 1 / 0"] = counts[1] / counts[0]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the squared error over the iterations, one line for each target."""
    title = "Too high a target caps the accuracy for good; too low a one lets a logistic model overfit in time"
    figure, panels = new_figure(1, 2, title, height=4.0)
    factors = sorted({row["factor"] for row in rows})
    for panel, model in zip(panels, MODELS, strict=True):
        for row in pick(rows, model=model):
            line = factors.index(row["factor"])
            name = f"target {row['factor']:g} f(θ*)" if row["factor"] else "target 0"
            curves(panel, [np.array(row["error"]) / row["size"]], name, line)
        panel.set_yscale("log")
        panel.set_xlim(0, 120 if model == "linear" or full else 600)
        label(
            panel,
            f"{model} regression, d = {rows[0]['d']:,}, s = {rows[0]['s']}",
            "iterations",
            "squared error ‖θ − θ*‖² / ‖θ*‖²",
        )
    shared_legend(figure)
    remark(figure, "one data set; f keeps falling where the logistic error rises again")
    return {"fig2_target": figure}


ITEM = Item(
    "Figure 2, right: the target of Algorithm 1 decides how accurate it becomes", cells, summarise, draw, example
)
