"""Beyond the paper: how much is lost by seeing few attributes, over the number of examples and of attributes seen.

The paper's data on data sets that nobody looked at while the method was made (200, 201, ...). Full information is least
squares on the true support, and `SparseLinearRegression`, which sees everything and finds it. Quick has two data sets,
full five.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, legend, new_figure, remark

from hardthresh.estimators import SparseLinearRegression

from ._common import METHODS, NAMES, data, excess, follow, least_squares, mean, number, slope

STREAMS = [10_000, 20_000, 45_000, 90_000]
WIDTHS = [30, 50, 100, 500]
FRESH = 200


def run(method: str, seed: int, n: int, n_observed: int, size: float) -> dict[str, Any]:
    """Learn from the first n examples of one data set."""
    X, y, _, _, truth = data("paper", seed, size)
    X, y, measure = X[:n], y[:n], excess(truth)
    if method == "adaptive":
        found = follow(METHODS[method](25, seed), X, y, n_observed, {"excess": measure}, level=0.1)
        hits = len({*found["support"]} & {*range(25)})
        return {"excess": found["excess"][-1], "hits": hits, "first": found["first"]}
    if method == "everything seen":
        model = SparseLinearRegression(n_nonzero_coefs=25).fit(X, y)
        hits = int(np.count_nonzero(model.coef_[:25]))
        return {"excess": measure(model.coef_, float(model.intercept_)), "hits": hits, "first": None}
    return {"excess": measure(least_squares(X, y, np.arange(25), truth.size), 0.0), "hits": 25, "first": None}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, number of examples, and number of attributes."""
    found: list[dict[str, Any]] = []
    for drawn in data_seeds(seed, 5 if full else 2):
        which = FRESH + drawn
        sizes = [(n, 50) for n in STREAMS] + [(STREAMS[-1], width) for width in WIDTHS if width != 50]
        found += [{"method": "adaptive", "seed": which, "n": n, "n_observed": width} for n, width in sizes]
        found += [{"method": "least squares", "seed": which, "n": n, "n_observed": 25} for n in STREAMS]
        found.append({"method": "everything seen", "seed": which, "n": STREAMS[-1], "n_observed": 500})
    name = "seed={seed} {method} n={n} of {n_observed}"
    return [Cell(name.format(**given), run, {**given, "size": 1.0}) for given in found]


def example(n: int, n_observed: int, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    return {"excess": 25.0 / n * (1.0 + 5.0 / n_observed), "hits": 25, "first": 9000}


def values(rows: list[Row], **wanted: Any) -> list[float]:
    """Return the excess of some runs."""
    return [row["excess"] for row in pick(rows, **wanted)]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the excess of ours over that of least squares on the true support, exponents, and what was found."""
    best = {n: mean(values(rows, method="least squares", n=n)) for n in STREAMS}
    ours = {n: mean(values(rows, method="adaptive", n=n, n_observed=50)) for n in STREAMS}
    wide = {width: mean(values(rows, method="adaptive", n=STREAMS[-1], n_observed=width)) for width in WIDTHS}
    fresh = pick(rows, method="adaptive", n=STREAMS[-1], n_observed=50)
    everything = pick(rows, method="everything seen")
    numbers = {"least squares": [best[n] for n in STREAMS]}
    numbers |= {f"ratio, n = {n:,}": [ours[n] / best[n]] for n in STREAMS}
    numbers |= {f"ratio, s' = {width}": [wide[width] / best[STREAMS[-1]]] for width in WIDTHS if width != 50}
    numbers["exponent of n"] = [slope(STREAMS[1:], [ours[n] for n in STREAMS[1:]])]
    numbers["s' = 30 / s' = 100"] = [wide[30] / wide[100]]
    numbers["hits"] = [sum(row["hits"] for row in pick(rows, method="adaptive")) / len(pick(rows, method="adaptive"))]
    numbers["examples to 0.1"] = [max(number(row["first"]) for row in fresh)]
    numbers["everything seen"] = [mean([row["excess"] for row in everything]) / best[STREAMS[-1]]]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the excess over examples, and over the attributes seen."""
    figure, panels = new_figure(1, 2, "Once the support is found, a tenth of the attributes costs next to nothing")
    for line, method in enumerate(("adaptive", "least squares")):
        width = 50 if method == "adaptive" else 25
        runs = [values(rows, method=method, n=n, n_observed=width) for n in STREAMS]
        _band(panels[0], STREAMS, runs, NAMES[method], line)
    panels[0].set_xscale("log")
    panels[0].set_xticks(STREAMS, [f"{n:,}" for n in STREAMS])
    panels[0].minorticks_off()
    runs = [values(rows, method="adaptive", n=STREAMS[-1], n_observed=width) for width in WIDTHS]
    _band(panels[1], WIDTHS, runs, NAMES["adaptive"], 0)
    best = values(rows, method="least squares", n=STREAMS[-1])
    _band(panels[1], WIDTHS, [best] * len(WIDTHS), NAMES["least squares"], 1)
    panels[1].set_xscale("log")
    panels[1].set_xticks(WIDTHS, [str(width) for width in WIDTHS])
    panels[1].minorticks_off()
    for panel in panels:
        panel.set_yscale("log")
    label(panels[0], "50 of 500 attributes seen", "examples", "excess risk, |w − θ*|²")
    label(panels[1], "90,000 examples", "attributes seen of each, s'", "excess risk, |w − θ*|²")
    legend(panels[0])
    remark(figure, f"means of {len(best)} data sets that were not looked at before; bands: their range")
    return {"excess": figure}


def _band(panel: Any, at: list[int], runs: list[list[float]], name: str, line: int) -> None:
    """Draw means, and the range around them."""
    low, high = [min(run) for run in runs], [max(run) for run in runs]
    panel.fill_between(at, low, high, color=LINES[line]["color"], alpha=0.15, linewidth=0)
    panel.plot(at, [mean(run) for run in runs], label=name, linewidth=1.6, markersize=4.5, **LINES[line])


ITEM = Item("Beyond the paper: the excess over full information, on fresh data", cells, summarise, draw, example)
