"""Table 1 and footnote 3: dual averaging as Algorithms 1, 2 and 3 of Ito et al. (2017), where d / s' is small or not.

5 of d independent normal attributes are active. Each has the best of three weights γ of its proximal
term, by its excess at the end. All three are reconstructions: see `_dual_averaging`. Quick has one data set, full five.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, label, new_figure, remark, shared_legend

from hardthresh.limited import Exploration, Geometric, RegularizedDualAveraging
from hardthresh.limited.learner import Algorithm

from ._common import example_curve, excess, follow, stream
from ._dual_averaging import ExploringDualAveraging

ACTIVE = 5  # also the excess at the start
SIZES = {"d / s' = 4 / 3": (20, 15), "d / s' = 8": (80, 10)}
GAMMAS = [100.0, 300.0, 1000.0]  # smaller ones diverge, or are worse, in all but RDA 1 at d / s' = 4 / 3
POINTS = [500, 1000]
STREAM = 2000
ALGORITHMS: dict[str, Callable[[float, int], Algorithm[Any]]] = {
    "rda1": lambda gamma, seed: RegularizedDualAveraging(ACTIVE, gamma, gradient="dense", seed=seed),
    "rda2": lambda gamma, seed: ExploringDualAveraging(ACTIVE, gamma, gradient="dense", seed=seed),
    "rda3": lambda gamma, seed: ExploringDualAveraging(ACTIVE, gamma, l1=0.1, gradient="dense", seed=seed),
    "exploration": lambda gamma, seed: Exploration(0.3, Geometric(20, 1.2), ACTIVE),
}
NAMES = {"rda1": "RDA 1", "rda2": "RDA 2", "rda3": "RDA 3", "exploration": "Exploration"}


def run(method: str, size: str, gamma: float, seed: int, n: int) -> dict[str, Any]:
    """Return the excess risk at the points and at the end."""
    d, n_observed = SIZES[size]
    X, y, _, _, truth = stream(n, d, ACTIVE, dtype=np.float64, seed=seed)
    algorithm = ALGORITHMS[method](gamma, seed)
    return {"excess": follow(algorithm, X, y, n_observed, {"excess": excess(truth)}, points=POINTS)["excess"]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, algorithm and weight."""
    found = [
        {"method": method, "size": size, "gamma": gamma, "seed": which, "n": STREAM}
        for which in data_seeds(seed, 5 if full else 1)
        for size in SIZES
        for method in NAMES
        for gamma in (GAMMAS if method != "exploration" else [0.0])
    ]
    return [Cell("seed={seed} {size} {method} gamma={gamma}".format(**given), run, given) for given in found]


def example(method: str, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    return {"excess": example_curve(POINTS, 1.0 + [*NAMES].index(method))}


def best(rows: list[Row], size: str, method: str) -> list[float]:
    """Return the mean curve over the data sets with the best weight on each."""
    found = []
    for seed in {row["seed"] for row in rows}:
        runs = [row["excess"] for row in pick(rows, size=size, method=method, seed=seed)]
        found.append(min(runs, key=lambda curve: curve[-1]))
    return np.mean(found, axis=0).tolist()


def summarise(rows: list[Row], full: bool) -> dict[str, float]:
    """Return the excess at the end over that of zero, and the ratios of the algorithms."""
    last = {(size, method): best(rows, size, method)[-1] for size in SIZES for method in NAMES}
    few, many = SIZES
    return {
        "RDA 1 / zero, d / s' = 8": last[many, "rda1"] / ACTIVE,
        "RDA 2 / zero, d / s' = 8": last[many, "rda2"] / ACTIVE,
        "RDA 3 / zero, d / s' = 8": last[many, "rda3"] / ACTIVE,
        "RDA 2 / zero, d / s' = 4 / 3": last[few, "rda2"] / ACTIVE,
        "RDA 3 / zero, d / s' = 4 / 3": last[few, "rda3"] / ACTIVE,
        "RDA 2 / RDA 1, d / s' = 8": last[many, "rda2"] / last[many, "rda1"],
        "RDA 2 / RDA 1, d / s' = 4 / 3": last[few, "rda2"] / last[few, "rda1"],
        "RDA 1 / Exploration, d / s' = 8": last[many, "rda1"] / last[many, "exploration"],
    }


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the excess over the examples."""
    figure, panels = new_figure(1, 2, "Dual averaging that explores in few rounds learns only where d / s' is small")
    for panel, size in zip(panels, SIZES, strict=True):
        for line, (method, name) in enumerate(NAMES.items()):
            panel.plot([*POINTS, STREAM], best(rows, size, method), label=name, linewidth=1.6, **LINES[line])
        panel.axhline(ACTIVE, color=MUTED, linestyle=":", label="zero")
        panel.set_yscale("log")
        label(panel, size, "examples", "excess risk")
    shared_legend(figure)
    number = len({row["seed"] for row in rows})
    of = "one data set" if number == 1 else f"means of {number} data sets"
    remark(figure, f"the best of three weights each; {of}")
    return {"table1_rivals": figure}


ITEM = Item("Table 1: dual averaging, Algorithms 1 to 3, for small and large d / s'", cells, summarise, draw, example)
