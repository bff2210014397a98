"""Section 5.2 on graphs that are known: which edges are found, the authors' synthetic set, and choosing K.

The paper shows no truth; these are the tables of the specification, on the same data, batches being other draws. K is
the true number of entries, the diagonal included, except where K is the question. Quick has some of the sizes.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
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
TRUTH = 0  # stands for the true number of entries
BUDGETS = [100, 200, TRUTH, 500, 700, 1000, 1500]
QUICK_BUDGETS = [200, TRUTH, 500, 700]
NEAR = [260, 280, 320, 340]  # 6 to 14 % from the truth of the chain, 298
ELBOWS = [("chain", 500), ("chain", 100), ("random", 100), ("random", 500)]


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


def elbow(graph: str, n: int, K: int, method: str, starts: list[int], seed: int, graph_seed: int) -> dict[str, Any]:
    """Fit with a budget from random starts; return training and validation value, F1, and accepted iterations."""
    X, truth, edges = samples(100, graph, n, seed, graph_seed)
    fresh, _, _ = samples(100, graph, 2000, seed + 89, graph_seed)
    f, validation = GraphicalModel(X), GraphicalModel(fresh)
    budget, runs = K or int(np.count_nonzero(truth)), []
    for start in starts:
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
    return {"table": table_row, "synthetic": synthetic, "elbow": elbow, "near": elbow}[part](**arguments)  # type: ignore[operator]


def example(part: str, **arguments: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    one = {"value": 50.0, "accepted": 100.0, "F1": 0.9}
    if part == "synthetic":
        return {**one, "identity": 100.0, "truth": 55.0}
    if part in ("elbow", "near"):
        budget = arguments["K"] or {"chain": 298, "random": 408}[arguments["graph"]]
        return {"runs": [{**one, "value": 10.0 + 1e4 / budget, "validation": 60.0}], "budget": budget}
    return {"runs": [{**one, "iterations": 300.0, "inside": 1e-3}]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each size and method, each run on the synthetic set, each budget."""
    found = []
    seeds = list(range(10 + 3 * seed, 13 + 3 * seed))
    for (p, graph), sizes in (SIZES if full else QUICK_SIZES).items():
        for n in sizes:
            for method in METHODS:
                given = {"p": p, "graph": graph, "n": n, "method": method, "seeds": seeds, "limit": 400}
                given["graph_seed"] = seed
                found.append(Cell(f"{graph} p={p} n={n} {method}", run, {"part": "table", **given}))
    for method, draws in SYNTHETIC.items():
        for draw_ in draws:
            given = {"method": method, "seed": draw_ + 5 * seed, "data_seed": seed}
            found.append(Cell(f"synthetic {method} {draw_}", run, {"part": "synthetic", **given}))
    for graph, n in ELBOWS if full else ELBOWS[:2]:
        given = {"graph": graph, "n": n, "seed": 10 + 3 * seed, "graph_seed": seed}
        given |= {"starts": list(range(3 * seed, 3 * seed + (3 if full else 1)))}
        for K in BUDGETS if full else QUICK_BUDGETS:
            for method in ("stable norm test", "authors"):
                arguments = {"part": "elbow", "K": K, "method": method, **given}
                found.append(Cell(f"elbow {graph} n={n} K={K} {method}", run, arguments))
        for K in NEAR if graph == "chain" else []:
            arguments = {"part": "near", "K": K, "method": "stable norm test", **given}
            found.append(Cell(f"near {graph} n={n} K={K}", run, arguments))
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
    for graph, n in ELBOWS if full else ELBOWS[:1]:
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
    return numbers | {key: [number] for key, number in _claims(rows).items()}


def _claims(rows: list[Row]) -> dict[str, float]:
    """Return the numbers that claims are about: ratios of methods, and of budgets."""
    table, made = pick(rows, part="table"), pick(rows, part="synthetic")

    def of(method: str, field: str, most: float = inf, **size: Any) -> float:
        found = [row for row in pick(table, method=method, **size) if row["n"] <= most]
        return float(np.mean([mean(row["runs"], field) for row in found]))

    numbers = {
        "F1: the authors' batches over exact gradients": of("authors", "F1") / of("paper", "F1"),
        "F1: norm test over the authors' batches, n=p and n=2p": of("norm test", "F1", most=100)
        / of("authors", "F1", most=100),
        "F1: our default over the paper": of("default", "F1") / of("paper", "F1"),
        "F1 over the lasso's: random, n=p": of("paper", "F1", graph="random", p=50, n=50)
        / of("lasso", "F1", graph="random", p=50, n=50),
        "F1 over the lasso's: chain, n=p": of("paper", "F1", graph="chain", n=50)
        / of("lasso", "F1", graph="chain", n=50),
        "F1 over the lasso's: random, n=5p": of("paper", "F1", p=100, n=500) / of("lasso", "F1", p=100, n=500),
        "F1 over the lasso's: random, n=10p": of("paper", "F1", graph="random", p=50, n=500)
        / of("lasso", "F1", graph="random", p=50, n=500),
        "gradient at the end: stable clip over the paper's": float(np.median(_gradients(table, "stable")))
        / float(np.median(_gradients(table, "paper"))),
        "gradient at the end: the authors' batches": of("authors", "inside"),
        "share accepted: the authors' batches": of("authors", "accepted") / table[0]["limit"],
        "synthetic: F_0 over that of the truth": _synthetic(made, "paper", "value")
        / _synthetic(made, "authors", "truth"),
        "synthetic: F_0, the authors' batches over exact gradients": _synthetic(made, "authors", "value")
        / _synthetic(made, "paper", "value"),
    }
    for n in (500, 100):
        curve = pick(rows, part="elbow", graph="chain", n=n)
        good = {row["K"]: row["runs"] for row in pick(curve, method="stable norm test")}
        published = {row["K"]: row["runs"] for row in pick(curve, method="authors")}
        [truth] = [row["budget"] for row in pick(curve, method="authors", K=TRUTH)]
        candidates = good | {row["K"]: row["runs"] for row in pick(rows, part="near", n=n)}
        best = min(candidates, key=lambda K: mean(candidates[K], "validation"))
        slopes = [
            (mean(good[low], "value") - mean(good[high], "value")) / ((high or truth) - (low or truth))
            for low, high in ((200, TRUTH), (TRUTH, 500), (500, 700))
        ]
        numbers |= {
            f"elbow n={n}: K that validates best over the truth": (best or truth) / truth,
            f"elbow n={n}: training slope beyond the truth over that before": slopes[1] / slopes[0],
            f"elbow n={n}: training slope, 500 to 700 over the truth to 500": slopes[2] / slopes[1],
            f"elbow n={n}: accepted at the truth over those at K=200": mean(published[TRUTH], "accepted")
            / mean(published[200], "accepted"),
            f"elbow n={n}: validation at K=700 over that at the truth": mean(good[700], "validation")
            / mean(good[TRUTH], "validation"),
        }
    return numbers


def _gradients(table: list[Row], method: str) -> list[float]:
    return [one["inside"] for row in pick(table, method=method) for one in row["runs"]]


def _synthetic(made: list[Row], method: str, field: str) -> float:
    return mean(pick(made, method=method), field)


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
        true = next(row["budget"] for row in good if row["K"] == TRUTH)
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
