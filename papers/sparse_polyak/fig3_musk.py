"""Figure 3, right: logistic regression on the Musk data, without any oracle.

The paper does not say which version of the data, nor whether the features were scaled; its step range only makes sense
for the raw features of version 1. Here are both versions, raw and standardised, with eight random subsets each. Quick
and full are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.datasets import fetch
from hardthresh.objectives import LinearModel

from ._real import BUDGETS, NAMES, SOLVERS, example, medians, on_grid, race, ratios, search, subset

SUBSETS = 8
SETTINGS = [("musk1", False), ("musk1", True), ("musk2", False), ("musk2", True)]
GRIDS = {False: np.geomspace(3e-6, 4e-5, 12), True: np.geomspace(0.05, 5.0, 12)}  # raw: the paper's interval

PAPER_STEP = 1.9e-5
"""The best fixed step of the paper's grid."""


@lru_cache(maxsize=1)
def problem(data: str, standardised: bool, seed: int) -> LinearModel:
    """Return the problem of one subset."""
    return subset(*fetch(data, return_X_y=True), seed, standardised, "logistic")


def run(data: str, standardised: bool, rule: str, seed: int) -> dict[str, Any]:
    """Run one rule on one subset."""
    objective = problem(data, standardised, seed)
    return search(objective, GRIDS[standardised]) if rule == "fixed" else race(objective, SOLVERS[rule]())


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, scaling, subset and rule."""
    settings = [
        {"data": data, "standardised": standardised, "rule": rule, "seed": which}
        for data, standardised in SETTINGS
        for which in data_seeds(seed, SUBSETS)
        for rule in NAMES
    ]
    name = "{data} standardised={standardised} {seed} {rule}"
    return [Cell(name.format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return medians of f / f(0) at 25, 100, 200 passes, the best fixed steps, and what is claimed of them."""
    numbers: dict[str, Any] = {}
    for data, standardised in SETTINGS:
        here = pick(rows, data=data, standardised=standardised)
        name = f"{data} {'standardised' if standardised else 'raw'}"
        numbers |= {f"{name} {rule}": medians(here, rule=rule) for rule in NAMES}
        if not standardised:
            numbers[f"{name} steps"] = [row["chosen"] for row in pick(here, rule="fixed")]
    return numbers | claimed(rows)


def claimed(rows: list[Row]) -> dict[str, float]:
    """Return ratios of the medians of two rules, and the best fixed step over that of the paper."""
    numbers: dict[str, float] = {}
    for data, standardised in SETTINGS:
        here = pick(rows, data=data, standardised=standardised)
        name = f"{data} {'standardised' if standardised else 'raw'}"
        for upper, lower in (("SP5", "fixed"), ("SP5", "CP5"), ("CP1", "SP5")):
            numbers |= {f"{name} {key}": ratio for key, ratio in ratios(here, upper, lower).items()}
        if not standardised:
            steps = [row["chosen"] for row in pick(here, rule="fixed")]
            numbers[f"{name} median step / the paper's"] = float(np.median(steps)) / PAPER_STEP
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the best f / f(0) over the data passes."""
    title = "Musk: 120 random rows, 20 of 166 features, eight such subsets"
    figure, panels = new_figure(2, 2, title)
    passes = np.arange(max(BUDGETS) + 1)
    for panel, (data, standardised) in zip(panels, SETTINGS, strict=True):
        for line, rule in enumerate(("SP5", "fixed", "CP5", "Barzilai-Borwein", "working set")):
            runs = on_grid(pick(rows, data=data, standardised=standardised, rule=rule), passes)
            curves(panel, runs, NAMES[rule], line, band=line < 3)
        panel.set_yscale("log")
        panel.set_ylim(0.01, 1.2)
        title = f"{data}, {'standardised' if standardised else 'raw'} features"
        label(panel, title, "data passes", "best f so far / f(0)")
    shared_legend(figure)
    bands = "lines: medians; bands, of the first three: the middle half"
    remark(figure, f"{bands}. A line that leaves below has separated the classes: there f has no minimum but 0.")
    return {"fig3_musk": figure}


ITEM = Item("Figure 3, right: the Musk data, every rule without an oracle", cells, summarise, draw, example)
