"""Section 5.2: the penalised problem (48), from which the paper starts, against (49), which it solves instead.

The paper solves no penalised problem. Here coordinate descent solves (48), and Algorithm 1 solves (49) with as many
entries as each solution has; on five variables every graph is tried, which solves both. "ridge" asks whether lambda_2
can be left out, as the paper does. There is no full size: quick and full are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, legend, new_figure, remark

from hardthresh.objectives import GraphicalModel

from ._common import mean, overlap
from ._graphs import fit, flat_edges, samples
from ._penalised import largest_penalty, lowest, penalised, reachable

P, SETS = 30, 2
SMALL, SMALL_SETS = {"p": 5, "n": 20}, 5
METHODS = ["paper", "default"]
REFERENCE = "reference"  # the solutions of (48), or the least values of all graphs
PENALTIES = np.geomspace(0.5, 0.03, 4)  # shares of the largest; from some six edges to more than half of all
RIDGE = 0.01  # lambda_2 in the authors' synthetic set
LIMIT = 400


@lru_cache(maxsize=SETS)
def solutions(n: int, seed: int, graph_seed: int) -> tuple[GraphicalModel, Any]:
    """Return F_0 on a random graph of 30 variables, and its solutions of (48) for the penalties."""
    X, _, _ = samples(P, "random", n, seed, graph_seed)
    S = X.T @ X / n
    return GraphicalModel(X), penalised(S, largest_penalty(S) * PENALTIES, tol=1e-7)


def path(n: int, method: str, seeds: list[int], graph_seed: int) -> dict[str, Any]:
    """Return F_0 of the solutions of (48), or of a method for (49) with as many entries."""
    runs = []
    for seed in seeds:
        f, found = solutions(n, seed, graph_seed)
        budgets = [int(np.count_nonzero(W)) for W in found]
        if method == REFERENCE:
            edges = [(K - P) // 2 for K in budgets]
            runs.append({"edges": edges, "values": [f.value(W) for W in found], "diagonal": f.value(f.null_point())})
        else:
            runs.append({"values": [fit(f, K, method, 0, LIMIT)[1]["value"] for K in budgets]})
    return {"runs": runs}


def exact(method: str, seeds: list[int], graph_seed: int) -> dict[str, Any]:
    """Return the least F_0 of all graphs of five variables, or F_0 of a method, for each number of edges.

    A method gets all numbers of edges but the least and the most.
    """
    p, n, runs = SMALL["p"], SMALL["n"], []
    for seed in seeds:
        X, _, _ = samples(p, "random", n, seed, graph_seed)
        f = GraphicalModel(X)
        if method == REFERENCE:
            values = lowest(f, X.T @ X / n)
            runs.append({"reached": float(np.mean(reachable(values)[1:-1])), "values": values})
        else:
            budgets = range(p + 2, p * p, 2)
            runs.append({"values": [fit(f, K, method, 0, LIMIT)[1]["value"] for K in budgets]})
    return {"runs": runs}


def ridge(n: int, seeds: list[int], graph_seed: int) -> dict[str, Any]:
    """Solve (49) with the true number of entries, with lambda_2 and without."""
    runs = []
    for seed in seeds:
        X, truth, _ = samples(P, "random", n, seed, graph_seed)
        K = int(np.count_nonzero(truth))
        plain, ridged = (
            flat_edges(fit(GraphicalModel(X, l2=2.0 * weight), K, "paper", 0, LIMIT)[0].w) for weight in (0.0, RIDGE)
        )
        runs.append({"same": overlap(ridged, plain)})
    return {"runs": runs}


def run(part: str, **arguments: Any) -> dict[str, Any]:
    """Run a cell of a part."""
    return {"path": path, "exact": exact, "ridge": ridge}[part](**arguments)  # type: ignore[operator]


def example(part: str, seeds: list[int], method: str = "", **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    if part == "ridge":
        return {"runs": [{"same": 1.0} for _ in seeds]}
    length = len(PENALTIES) if part == "path" else 11 if method == REFERENCE else 9
    one: dict[str, Any] = {"values": [20.0 - step for step in range(length)]}
    if method == REFERENCE:
        one |= {"edges": [*range(5, 5 + length)], "diagonal": 30.0} if part == "path" else {"reached": 0.8}
    return {"runs": [one for _ in seeds]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each method and number of samples, and for each method on the small graphs."""
    seeds, four = list(data_seeds(seed, SETS)), list(data_seeds(seed, 4))
    found = []
    for n in (60, 300):
        for method in (REFERENCE, *METHODS):
            given = {"n": n, "method": method, "seeds": seeds, "graph_seed": seed}
            found.append(Cell(f"path n={n} {method}", run, {"part": "path", **given}))
        found.append(Cell(f"ridge n={n}", run, {"part": "ridge", "n": n, "seeds": four, "graph_seed": seed}))
    many = list(data_seeds(seed, SMALL_SETS))
    for method in (REFERENCE, *METHODS):
        given = {"method": method, "seeds": many, "graph_seed": seed}
        found.append(Cell(f"exact {method}", run, {"part": "exact", **given}))
    return found


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return how far solutions of (49) are above those of (48), and above the least values; and what a ridge changes.

    The unit of a distance is the decrease of F_0 from the diagonal to the solution of (48), or to the least value.
    """
    numbers: dict[str, float] = {}
    for n in dict.fromkeys(row["n"] for row in pick(rows, part="path")):
        for name in METHODS:
            excess = _above(pick(rows, part="path", n=n), name)
            numbers[f"n={n} {name} above the penalised solution"] = float(np.mean(excess))
    small = pick(rows, part="exact")
    for name in METHODS:
        numbers[f"small {name} above the least"] = float(np.mean(_above(small, name)))
    [least] = pick(small, method=REFERENCE)
    numbers["small share of budgets that a penalty reaches"] = mean(least["runs"], "reached")
    for row in pick(rows, part="ridge"):
        numbers[f"n={row['n']} share of edges that a ridge keeps"] = mean(row["runs"], "same")
    return {key: [number] for key, number in numbers.items()}


def _above(rows: list[Row], name: str) -> list[list[float]]:
    """Return how far the values of a method are above the references, a list for each data set."""
    [row], [reference] = pick(rows, method=name), pick(rows, method=REFERENCE)
    found = []
    for one, other in zip(row["runs"], reference["runs"], strict=True):
        if row["part"] == "path":
            diagonal, least = other["diagonal"], other["values"]
        else:
            diagonal, least = other["values"][0], other["values"][1:-1]
        pairs = zip(one["values"], least, strict=True)
        found.append([(value - below) / (diagonal - below) for value, below in pairs])
    return found


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the distance of the constrained solutions from the penalised ones over the edges, and the small graphs."""
    figure, panels = new_figure(1, 3, "The constrained problem (49) against the penalised one (48)")
    names = {"paper": "the paper, exact gradients", "default": "our default (pursuit)"}
    for panel, row in zip(panels, pick(rows, part="path", method=REFERENCE), strict=False):
        edges = [count for one in row["runs"] for count in one["edges"]]
        for place, (name, text) in enumerate(names.items()):
            above = 100.0 * np.ravel(_above(pick(rows, part="path", n=row["n"]), name))
            style = {**LINES[place], "linestyle": "none"}
            panel.plot(edges, above, label=text, markersize=5, **style)
        panel.axhline(0.0, color="black", linewidth=0.8)
        label(panel, f"p = {P}, n = {row['n']}", "edges of the penalised solution", "% of the decrease above it")
    legend(panels[0])
    for place, name in enumerate(names):
        above = 100.0 * np.mean(_above(pick(rows, part="exact"), name), axis=0)
        panels[2].plot(range(1, len(above) + 1), above, linewidth=1.6, markersize=5, **LINES[place])
    label(panels[2], "p = 5, n = 20: every graph tried", "edges", "% of the decrease above the least")
    remark(figure, f"a point is one penalty on one of {SETS} data sets; right: means over {SMALL_SETS} data sets")
    return {"penalised_form": figure}


ITEM = Item("Section 5.2: the penalised form (48) against the constrained form (49)", cells, summarise, draw, example)
