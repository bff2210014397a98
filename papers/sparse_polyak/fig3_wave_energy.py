"""Figure 3, left: linear regression on real data, without any oracle.

The paper takes 120 rows of the Large-scale Wave Energy Farm, raw, where the target is exactly the sum of 49 of the
features. Where ``hardthresh.datasets.fetch_wave_energy`` finds that file it is run too; nothing is checked then, since
nobody has seen numbers of it. Everywhere else three substitutes stand in, which say nothing about the wave farm:
`bloodbrain`, the nearest in size, `tecator`, whose features are all but equal, and `riboflavin`, with more columns than
rows. Quick and full are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.datasets import DatasetError, fetch, fetch_wave_energy
from hardthresh.objectives import LinearModel

from ._real import BUDGETS, NAMES, SOLVERS, example, medians, on_grid, race, ratios, search, subset

SUBSETS = 4
SUBSTITUTES = ["bloodbrain", "tecator", "riboflavin"]
SIZES = {"bloodbrain": 120, "tecator": 120, "riboflavin": 63, "wave_energy": 120}
TITLES = {
    "bloodbrain": "substitute: blood-brain barrier, 120 × 133",
    "tecator": "substitute: tecator (fat), 120 × 100",
    "riboflavin": "substitute: riboflavin, 63 × 4,088",
    "wave_energy": "wave farm, raw, 120 × 148",
}


@lru_cache(maxsize=1)
def problem(data: str, seed: int) -> LinearModel:
    """Return the problem of one subset; the wave farm raw as in the paper, the substitutes standardised."""
    raw = data == "wave_energy"
    X, y = fetch_wave_energy(return_X_y=True) if raw else fetch(data, return_X_y=True)
    return subset(X, y, seed, not raw, "squared", SIZES[data])


def run(data: str, rule: str, seed: int) -> dict[str, Any]:
    """Run one rule on one subset."""
    objective = problem(data, seed)
    grid = np.geomspace(1e-13, 9e-12, 12) if data == "wave_energy" else np.geomspace(0.005, 0.5, 12)
    return search(objective, grid) if rule == "fixed" else race(objective, SOLVERS[rule]())


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, subset and rule."""
    names = [*SUBSTITUTES]
    try:
        fetch_wave_energy()
        names.append("wave_energy")
    except DatasetError:
        pass  # neither the file nor a network: see the README
    settings = [
        {"data": data, "rule": rule, "seed": which}
        for data in names
        for which in data_seeds(seed, SUBSETS)
        for rule in NAMES
    ]
    return [Cell("{data} {seed} {rule}".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return medians of f / f(0) at 25, 100, 200 passes, and their ratios, for the substitutes."""
    numbers: dict[str, Any] = {}
    for data in SUBSTITUTES:
        here = pick(rows, data=data)
        numbers |= {f"{data} {rule}": medians(here, rule=rule) for rule in NAMES}
        for upper, lower in (("SP5", "fixed"), ("SP1", "fixed"), ("SP5", "CP5")):
            numbers |= {f"{data} {key}": ratio for key, ratio in ratios(here, upper, lower).items()}
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the best f / f(0) over the data passes."""
    names = [*dict.fromkeys(row["data"] for row in rows)]
    title = "Not the wave farm of the paper: the same comparison on data that can be had"
    if "wave_energy" in names:
        title = "The wave farm of the paper, and data of similar size"
    figure, panels = new_figure(1, len(names), title, height=4.0)
    passes = np.arange(max(BUDGETS) + 1)
    for panel, data in zip(panels, names, strict=True):
        for line, rule in enumerate(("SP5", "fixed", "CP5", "SP1", "working set")):
            curves(panel, on_grid(pick(rows, data=data, rule=rule), passes), NAMES[rule], line, band=line < 3)
        panel.set_yscale("log")
        label(panel, TITLES[data], "data passes", "best f so far / f(0)")
    shared_legend(figure)
    remark(figure, "lines: medians of four subsets; bands, of the first three: their range")
    return {"fig3_wave_energy": figure}


ITEM = Item(
    "Figure 3, left: real data and the squared loss (substitutes for the wave farm)", cells, summarise, draw, example
)
