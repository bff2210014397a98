"""Section 6, "tuned the hyper-parameters": the values of Figures 1 and 2 beside smaller and larger ones.

On data sets that the figures do not have: 100 for Figure 1, split 100 of BlogFeedback for Figure 2. Quick has the
steps of Exploration and Hybrid, full also γ of RDA and c of the Dantzig selector.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, label, new_figure, remark

from . import fig2_ct_slices
from ._common import Method, dantzig, data, error, excess, exploration, follow, hybrid, rda

HELD_OUT = 100
TRIED: dict[str, dict[str, tuple[Callable[[float], Method], list[float]]]] = {
    "synthetic": {
        "hybrid": (hybrid, [0.2, 0.3, 0.4]),
        "exploration": (exploration, [0.2, 0.3, 0.4]),
        "rda": (rda, [50.0, 110.0, 220.0]),
        "dantzig": (dantzig, [0.7, 1.0, 1.4]),
    },
    "blog": {
        "hybrid": (hybrid, [0.01, 0.02, 0.04]),
        "exploration": (fig2_ct_slices.exploration, [0.025, 0.05, 0.1]),
        "rda": (rda, [300.0, 1000.0, 3000.0]),
        "dantzig": (dantzig, [0.5, 1.0, 2.0]),
    },
}
"""What was tried; the figures have the second value of each list."""


def run(name: str, method: str, value: float, seed: int, size: float) -> dict[str, Any]:
    """Return the excess, or the error on the test rows, at the end."""
    algorithm = TRIED[name][method][0](value)
    if name == "synthetic":
        X, y, _, _, truth = data("paper", seed, size)
        found = follow(algorithm(25, seed), X, y, 50, {"end": excess(truth)})
    else:
        X, y, X_test, y_test = fig2_ct_slices.split("blog", seed)
        rows = int(size * len(y))
        found = follow(algorithm(10, seed), X[:rows], y[:rows], 20, {"end": lambda w, b: error(X_test, y_test, w, b)})
    return {"end": found["end"][-1]}


def tried(full: bool) -> list[tuple[str, str, float]]:
    """Return the data, methods and values."""
    return [
        (name, method, value)
        for name, methods in TRIED.items()
        for method, (_, values) in methods.items()
        if full or method not in fig2_ct_slices.SLOW
        for value in values
    ]


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each value."""
    return [
        Cell(
            f"{name} seed={HELD_OUT + seed} {method} {value}",
            run,
            {"name": name, "method": method, "value": value, "seed": HELD_OUT + seed, "size": 1.0},
        )
        for name, method, value in tried(full)
    ]


def example(name: str, method: str, value: float, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    return {"end": 1.0 + abs(np.log(value / TRIED[name][method][1][1]))}


def ends(rows: list[Row], name: str, method: str) -> list[float]:
    """Return the result of each value."""
    return [pick(rows, name=name, method=method, value=value)[0]["end"] for value in TRIED[name][method][1]]


def summarise(rows: list[Row], full: bool) -> dict[str, float]:
    """Return the better result of the smaller and the larger value over that of the value of the figures."""
    pairs = dict.fromkeys((name, method) for name, method, _ in tried(full))
    found = {pair: ends(rows, *pair) for pair in pairs}
    return {
        f"{name} {method}: others / used": min(runs[0], runs[2]) / runs[1] for (name, method), runs in found.items()
    }


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the results over the values."""
    figure, panels = new_figure(1, 2, "The values of the figures, and twice or half of them")
    for panel, (name, methods) in zip(panels, TRIED.items(), strict=True):
        for line, (method, (_, values)) in enumerate(methods.items()):
            if pick(rows, name=name, method=method):
                shown = [end if end < inf else np.nan for end in ends(rows, name, method)]
                panel.plot(np.array(values) / values[1], shown, label=method, linewidth=1.6, **LINES[line])
        panel.set_xscale("log")
        panel.set_xticks([0.5, 1, 2], ["1/2", "1", "2"])
        panel.minorticks_off()
        panel.set_yscale("log")
        if name == "synthetic":
            panel.set_ylim(top=100)  # beside a run that diverges to 1e14 all others look alike
        measure = "excess risk" if name == "synthetic" else "mean squared error, test"
        label(panel, name, "value / that of the figure", measure)
        panel.legend(fontsize=8.5, frameon=False)
    remark(figure, "one data set; a line that leaves the panel, or a point that is missing, diverged")
    return {"tuning": figure}


ITEM = Item("Section 6: the values of Figures 1 and 2 beside others, on other data", cells, summarise, draw, example)
