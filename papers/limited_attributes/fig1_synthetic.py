"""Figure 1: synthetic data: the error over the number of examples, for the paper's methods, its rivals, and ours.

100,000 examples of 500 independent normal attributes, 25 of them active, of which 50 may be seen; nine tenths are the
stream. Quick has two data sets without the dense RDA, full the paper's five.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, label, new_figure, remark, shared_legend

from ._common import METHODS, NAMES, data, deviation, error, example_curve, excess, follow, least_squares, mean, number

POINTS = [2500, 5000, 7500, 10_000, 12_500, 15_000, 20_000, 30_000, 45_000, 60_000, 75_000]
FEW = [10_000, 30_000]  # of the Dantzig selector, which solves a linear program at each, in the quick size
SOME = [5000, 10_000, 20_000, 30_000, 45_000, 60_000]  # the same, full
STREAM = 90_000
SHOWN = ["adaptive", "hybrid", "exploration", "rda", "rda dense", "dantzig", "least squares"]
LEVEL = 0.1
MINIMAX = 25 / STREAM  # s* σ^2 / n


def run(method: str, seed: int, points: list[int], size: float) -> dict[str, Any]:
    """Learn from one data set, and measure the excess risk and the error on the test set."""
    X, y, X_test, y_test, truth = data("paper", seed, size)
    measures = {"excess": excess(truth), "error": lambda w, b: error(X_test, y_test, w, b)}
    if method != "least squares":
        solver = METHODS[method](25, seed)
        found = follow(solver, X, y, 50, measures, points=points, level=LEVEL)
        hits = len({*found.pop("support")} & {*range(25)})
        return {**found, "hits": hits}
    fits = [least_squares(X[:n], y[:n], np.arange(25), truth.size) for n in (*points, len(y))]
    rows = {name: [measure(w, 0.0) for w in fits] for name, measure in measures.items()}
    return {**rows, "first": None, "examples": len(y), "most": 25, "hits": 25}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set and method."""
    found = []
    for which in data_seeds(seed, 5 if full else 2):
        for method in shown(full):
            points = POINTS if method != "dantzig" else SOME if full else FEW
            found.append({"method": method, "seed": which, "points": points, "size": 1.0})
    return [Cell("seed={seed} {method}".format(**given), run, given) for given in found]


def shown(full: bool) -> list[str]:
    """Return the methods: without the dense RDA, which is as slow as it is poor, in the quick size."""
    return [method for method in SHOWN if full or method != "rda dense"]


def example(method: str, points: list[int], **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    curve = example_curve(points, 1.0 + 50.0 * SHOWN.index(method))
    return {
        "excess": curve, "error": [1.0 + value for value in curve], "first": 12_000, "examples": STREAM, "most": 50,
        "hits": 25,
    }  # fmt: skip


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return what is left of the error at the end, how soon it was small, and the ratios of the methods."""
    last = {method: mean([row["excess"][-1] for row in pick(rows, method=method)]) for method in shown(full)}
    numbers = {f"excess {method}": [value] for method, value in last.items()}
    numbers |= {f"test error {m}": [mean([r["error"][-1] for r in pick(rows, method=m)])] for m in last}
    numbers["hits"] = [min(row["hits"] for row in pick(rows, method="adaptive"))]
    first = {
        m: max(number(row["first"]) for row in pick(rows, method=m)) for m in ("adaptive", "hybrid", "exploration")
    }
    numbers |= {f"examples to {LEVEL} {method}": [value] for method, value in first.items()}
    for method in ("rda", "dantzig"):
        numbers[f"excess {method} at 10k, 30k"] = at(rows, method, FEW)
    numbers["most attributes of an example"] = [max(row["most"] for row in rows)]
    pairs = ["exploration / hybrid", "rda / exploration", "dantzig / exploration", "dantzig / rda", "hybrid / adaptive"]
    pairs += ["adaptive / least squares"] + ["rda dense / dantzig"] * full
    numbers |= {pair: [last[pair.split(" / ")[0]] / last[pair.split(" / ")[1]]] for pair in pairs}
    fall = [
        log(one / other)
        for one, other in zip(at(rows, "rda", [5000, 45_000]), at(rows, "rda", [15_000, 75_000]), strict=True)
    ]
    numbers["rda: late / early rate"] = [fall[1] / 30_000 / (fall[0] / 10_000)]
    numbers["examples: exploration / hybrid"] = [first["exploration"] / first["hybrid"]]
    numbers["hybrid / minimax"] = [last["hybrid"] / MINIMAX]
    return numbers


def at(rows: list[Row], method: str, points: list[int]) -> list[float]:
    """Return the mean excess after some numbers of examples."""
    runs = pick(rows, method=method)
    return [mean([row["excess"][row["points"].index(n)] for row in runs]) for n in points]


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the error on the test set with the paper's bands, and what of it could be avoided."""
    title = "50 of 500 attributes of each example: Hybrid first, as in the paper; without tuning it is better still"
    figure, panels = new_figure(1, 2, title, height=4.6)
    for line, method in enumerate(shown(full)):
        runs = pick(rows, method=method)
        grid = [*runs[0]["points"], STREAM]
        style = LINES[line] | ({"linestyle": "-", "marker": "", "color": MUTED} if method == "least squares" else {})
        for panel, measure in zip(panels, ("error", "excess"), strict=True):
            values = np.array([row[measure] for row in runs])
            middle = values.mean(axis=0)
            spread = 2.0 * np.array([deviation(column) for column in values.T])
            low = np.maximum(middle - spread, middle / 100.0)
            panel.fill_between(grid, low, middle + spread, color=style["color"], alpha=0.15, linewidth=0)
            panel.plot(grid, middle, label=NAMES[method], linewidth=1.6, markersize=4.5, **style)
    panels[0].set_yscale("log")
    panels[0].set_ylim(0.9, 40)
    panels[1].set_yscale("log")
    panels[1].set_ylim(1e-4, 60)
    label(panels[0], "Error on the test set", "examples", "mean squared error")
    label(panels[1], "What of it could be avoided", "examples", "excess risk, |w − θ*|²")
    shared_legend(figure)
    count = len({row["seed"] for row in rows})
    bands = "bands: two standard deviations, as in the paper"
    remark(figure, f"means of {count} data sets; {bands}; RDA and the Dantzig selector: as reconstructed")
    return {"fig1_synthetic": figure}


ITEM = Item("Figure 1: synthetic data, 50 of 500 attributes of each example", cells, summarise, draw, example)
