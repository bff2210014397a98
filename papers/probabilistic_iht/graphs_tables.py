"""Section 5.2 on graphs that are known: which edges are found, the authors' synthetic set, and choosing K.

The paper shows no truth; these are the tables of the specification, on the same data, batches being other draws. K is
the true number of entries, the diagonal included, except where K is the question. Quick has some of the sizes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, MUTED, label, legend, new_figure, remark, shared_legend

from hardthresh.datasets import make_graphical_model
from hardthresh.objectives import GraphicalModel

from ._common import mean, overlap
from ._graphs import fit, flat_edges, random_start, samples, table_row

SIZES = {
    (50, "chain"): [25, 50, 100, 250, 500],
    (50, "random"): [25, 50, 100, 250, 500],
    (100, "chain"): [50, 100, 200, 500, 1000],
    (100, "random"): [50, 100, 200, 500, 1000],
}
QUICK_SIZES = {
    (50, "chain"): [50, 250, 500],
    (50, "random"): [50, 100, 500],
    (100, "chain"): [200],
    (100, "random"): [500],
}
METHODS = ["paper", "stable", "authors", "norm test", "default", "lasso"]
NAMES = {
    "paper": "the paper, exact gradients",
    "stable": "stable clip, exact gradients",
    "authors": "the paper, the authors' batches",
    "norm test": "the paper, norm test",
    "default": "our default (pursuit)",
    "lasso": "graphical lasso, as many entries",
}
SYNTHETIC = {"paper": [0], "code": [0], "stable": [0], "default": [0], "authors": [0, 1, 2, 3, 4]}
BUDGETS = [100, 200, 0, 500, 700, 1000, 1500]  # 0 stands for the truth
QUICK_BUDGETS = [200, 0, 500, 700]


def synthetic(method: str, seed: int, data_seed: int) -> dict[str, Any]:
    """Fit the authors' synthetic set: a band of 100 variables, 50 samples as drawn, K = 500, lambda_2 = .01."""
    drawn = make_graphical_model(50, 100, graph="band", seed=data_seed)
    f = GraphicalModel(drawn.X, l2=0.02)
    result, said = fit(f, 500, method, 10, 100, seed=seed)
    edges = flat_edges(drawn.precision)
    return {
        "value": said["value"], "accepted": said["accepted"], "F1": overlap(flat_edges(result.w), edges),
        "identity": f.value(np.eye(100)), "truth": f.value(drawn.precision),
    }  # fmt: skip


def elbow(graph: str, n: int, K: int, method: str, starts: int, seed: int) -> dict[str, Any]:
    """Fit with a budget from random starts; return training and validation value, F1, and accepted iterations."""
    X, truth, edges = samples(100, graph, n, seed)
    fresh, _, _ = samples(100, graph, 2000, seed + 89)
    f, validation = GraphicalModel(X), GraphicalModel(fresh)
    budget, runs = K or int(np.count_nonzero(truth)), []
    for start in range(starts):
        result, said = fit(f, budget, method, n // 5, 300, start=random_start(100, budget, start), seed=start)
        runs.append(
            {
                "value": said["value"], "validation": validation.value(result.w), "accepted": said["accepted"],
                "F1": overlap(flat_edges(result.w), edges),
            }
        )  # fmt: skip
    return {"runs": runs, "budget": budget}


def run(part: str, **arguments: Any) -> dict[str, Any]:
    """Run a cell of a part."""
    return {"table": table_row, "synthetic": synthetic, "elbow": elbow}[part](**arguments)  # type: ignore[operator]


def example(part: str, **arguments: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    one = {"value": 50.0, "accepted": 100.0, "F1": 0.9}
    if part == "synthetic":
        return {**one, "identity": 100.0, "truth": 55.0}
    if part == "elbow":
        return {
            "runs": [{**one, "validation": 60.0}],
            "budget": arguments["K"] or {"chain": 298, "random": 408}[arguments["graph"]],
        }
    return {"runs": [{**one, "iterations": 300.0, "inside": 1e-3}]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each size and method, each run on the synthetic set, each budget."""
    found = []
    seeds = list(range(10 + seed, 13 + seed))
    for (p, graph), sizes in (SIZES if full else QUICK_SIZES).items():
        for n in sizes:
            for method in METHODS:
                given = {"p": p, "graph": graph, "n": n, "method": method, "seeds": seeds, "limit": 400}
                found.append(Cell(f"{graph} p={p} n={n} {method}", run, {"part": "table", **given}))
    for method, draws in SYNTHETIC.items():
        for draw_ in draws:
            given = {"method": method, "seed": draw_, "data_seed": seed}
            found.append(Cell(f"synthetic {method} {draw_}", run, {"part": "synthetic", **given}))
    for graph, n in [("chain", 500), ("chain", 100), ("random", 100), ("random", 500)] if full else [("chain", 500)]:
        for K in BUDGETS if full else QUICK_BUDGETS:
            for method in ("stable norm test", "authors"):
                given = {"graph": graph, "n": n, "K": K, "method": method, "starts": 3 if full else 1}
                given["seed"] = 10 + seed
                found.append(Cell(f"elbow {graph} n={n} K={K} {method}", run, {"part": "elbow", **given}))
    return found


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return F1 and F_0 of each method, the synthetic set, and training, validation, F1 and accepted over K."""
    numbers: dict[str, list[float]] = {}
    table = pick(rows, part="table")
    for p, graph, n in dict.fromkeys((row["p"], row["graph"], row["n"]) for row in table):
        here = pick(table, p=p, graph=graph, n=n)
        of = {method: pick(here, method=method)[0]["runs"] for method in METHODS}
        key = f"{graph} p={p} n={n}"
        numbers[f"{key} F1"] = [mean(of[method], "F1") for method in METHODS]
        numbers[f"{key} F_0"] = [mean(of[method], "value") for method in METHODS]
        numbers[f"{key} accepted"] = [mean(of[method], "accepted") for method in ("paper", "authors")]
        numbers[f"{key} gradient"] = [mean(of[method], "inside") for method in ("paper", "stable", "authors")]
    made = pick(rows, part="synthetic")
    numbers["synthetic identity, truth"] = [made[0]["identity"], made[0]["truth"]]
    for method in SYNTHETIC:
        runs = pick(made, method=method)
        numbers[f"synthetic {method}"] = [mean(runs, "value"), mean(runs, "accepted"), mean(runs, "F1")]
    curve = pick(rows, part="elbow")
    for graph, n in dict.fromkeys((row["graph"], row["n"]) for row in curve):
        here = pick(curve, graph=graph, n=n)
        good, published = pick(here, method="stable norm test"), pick(here, method="authors")
        for row in good:
            numbers[f"elbow {graph} n={n} K={row['budget']}"] = [
                mean(row["runs"], field) for field in ("value", "validation", "F1")
            ]
        lowest = min(good, key=lambda row: mean(row["runs"], "validation"))
        numbers[f"elbow {graph} n={n} best K"] = [float(lowest["budget"])]
        counts = [mean(row["runs"], "accepted") for row in published if row["budget"] > 100]
        numbers[f"elbow {graph} n={n} accepted"] = [min(counts), max(counts)]
        values = [mean(row["runs"], "value") for row in good]
        falls = [before - after for before, after in pairwise(values)]
        numbers[f"elbow {graph} n={n} least fall"] = [min(falls)]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw F1 over the samples for each graph, and the objectives and accepted iterations over K."""
    table, sizes = pick(rows, part="table"), SIZES if full else QUICK_SIZES
    drawn = [key for key in sizes if len(sizes[key]) > 1]
    figure, panels = new_figure(
        len(drawn) // 2, 2, "Which edges are found, with as many entries as the truth has", height=3.8
    )
    for panel, (p, graph) in zip(panels, drawn, strict=True):
        for place, method in enumerate(METHODS):
            found = pick(table, p=p, graph=graph, method=method)
            x, y = [row["n"] for row in found], [mean(row["runs"], "F1") for row in found]
            panel.plot(x, y, label=NAMES[method], linewidth=1.6, markersize=5, **LINES[place])
        panel.set_xscale("log")
        panel.set_xticks(sizes[p, graph], [str(n) for n in sizes[p, graph]])
        panel.minorticks_off()
        label(panel, f"{graph}, p = {p}", "samples n", "F1 of the edges")
    shared_legend(figure)
    remark(figure, "means over three data sets; K is the true number of entries")
    figures = {"graphs_tables": figure}
    curve = pick(rows, part="elbow")
    kinds = list(dict.fromkeys((row["graph"], row["n"]) for row in curve))
    figure, panels = new_figure(
        len(kinds), 2, "Validation shows K, given samples enough; training and accepted iterations do not"
    )
    for (graph, n), left, right in zip(kinds, panels[::2], panels[1::2], strict=True):
        good = sorted(pick(curve, graph=graph, n=n, method="stable norm test"), key=lambda row: row["budget"])
        budgets = [row["budget"] for row in good]
        for place, (field, name) in enumerate((("value", "training"), ("validation", "validation, 2,000 samples"))):
            values = [mean(row["runs"], field) for row in good]
            left.plot(budgets, values, label=name, linewidth=1.6, markersize=5, **LINES[place])
        true = next(row["budget"] for row in good if row["K"] == 0)
        left.axvline(true, color=MUTED, linewidth=0.9)
        label(left, f"{graph}, p = 100, n = {n}; line: the true K", "K", "F₀, mean over starts")
        legend(left)
        pairs = {"authors": "the paper, the authors' batches", "stable norm test": "stable clip, norm test"}
        for place, (method, name) in enumerate(pairs.items()):
            found = sorted(pick(curve, graph=graph, n=n, method=method), key=lambda row: row["budget"])
            values = [mean(row["runs"], "accepted") for row in found]
            right.plot(budgets, values, label=name, linewidth=1.6, markersize=5, **LINES[place])
        right.set_ylim(0, 300)
        label(right, "accepted iterations of at most 300", "K", "accepted")
        legend(right)
    return {**figures, "graphs_tables_elbow": figure}


ITEM = Item(
    "Section 5.2 where the graph is known: edges, the authors' synthetic set, choosing K",
    cells,
    summarise,
    draw,
    example,
)
