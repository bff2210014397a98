"""Section 5.2: the penalised problem (48), from which the paper starts, against (49), which it solves instead.

The paper solves no penalised problem. Here coordinate descent solves (48), and Algorithm 1 solves (49) with as many
entries as each solution has; on five variables every graph is tried, which solves both. "ridge" asks whether lambda_2
can be left out, as the paper does. There is no full size: quick and full are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, label, legend, new_figure, remark

from hardthresh.objectives import GraphicalModel

from ._common import overlap
from ._graphs import fit, flat_edges, samples
from ._penalised import largest_penalty, lowest, penalised, reachable

P, SETS = 30, 2
SMALL, SMALL_SETS = {"p": 5, "n": 20}, 5
METHODS = ["paper", "default"]
PENALTIES = np.geomspace(0.5, 0.03, 4)  # shares of the largest; from some six edges to more than half of all
RIDGE = 0.01  # lambda_2 in the authors' synthetic set
LIMIT = 400


def path(n: int, seeds: list[int], graph_seed: int) -> dict[str, Any]:
    """Solve (48) for some penalties, and (49) with as many entries; on random graphs of 30 variables."""
    runs = []
    for seed in seeds:
        X, _, _ = samples(P, "random", n, seed, graph_seed)
        f, S = GraphicalModel(X), X.T @ X / n
        solutions = penalised(S, largest_penalty(S) * PENALTIES, tol=1e-7)
        budgets = [int(np.count_nonzero(W)) for W in solutions]
        runs.append(
            {
                "edges": [(K - P) // 2 for K in budgets],
                "penalised": [f.value(W) for W in solutions],
                "diagonal": f.value(f.null_point()),
                **{name: [fit(f, K, name, 0, LIMIT)[1]["value"] for K in budgets] for name in METHODS},
            }
        )
    return {"runs": runs}


def exact(seeds: list[int], graph_seed: int) -> dict[str, Any]:
    """Try all graphs of five variables; solve (49) for each number of edges but the least and the most."""
    runs = []
    for seed in seeds:
        X, _, _ = samples(SMALL["p"], "random", SMALL["n"], seed, graph_seed)
        f = GraphicalModel(X)
        values = lowest(f, X.T @ X / SMALL["n"])
        budgets = [SMALL["p"] + 2 * edges for edges in range(1, len(values) - 1)]
        runs.append(
            {
                "reached": float(np.mean(reachable(values)[1:-1])),
                "lowest": values,
                **{name: [fit(f, K, name, 0, LIMIT)[1]["value"] for K in budgets] for name in METHODS},
            }
        )
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


def example(part: str, seeds: list[int], **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    falling = [20.0 - step for step in range(len(PENALTIES))]
    one: dict[str, Any] = {"same": 1.0}
    if part == "path":
        one = {"edges": [*range(5, 5 + len(falling))], "penalised": falling, "diagonal": 30.0}
    elif part == "exact":
        falling = [5.0 - 0.5 * edges for edges in range(11)]
        one = {"reached": 0.8, "lowest": falling}
    if part != "ridge":
        one |= dict.fromkeys(METHODS, falling if part == "path" else falling[1:-1])
    return {"runs": [one for _ in seeds]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each number of samples, and one for the small graphs."""
    seeds = list(range(SETS * seed, SETS * (seed + 1)))
    found = []
    for n in (60, 300):
        given = {"n": n, "seeds": seeds, "graph_seed": seed}
        found.append(Cell(f"path n={n}", run, {"part": "path", **given}))
        many = list(range(4 * seed, 4 * (seed + 1)))
        found.append(Cell(f"ridge n={n}", run, {"part": "ridge", **given, "seeds": many}))
    many = list(range(SMALL_SETS * seed, SMALL_SETS * (seed + 1)))
    return [*found, Cell("exact", run, {"part": "exact", "seeds": many, "graph_seed": seed})]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return how far solutions of (49) are above those of (48), and above the least values; and what a ridge changes.

    The unit of a distance is the decrease of F_0 from the diagonal to the solution of (48), or to the least value.
    """
    numbers: dict[str, float] = {}
    for row in pick(rows, part="path"):
        for name in METHODS:
            numbers[f"n={row['n']} {name} above the penalised solution"] = float(
                np.mean([excess for one in row["runs"] for excess in _above(one, name)])
            )
    [small] = pick(rows, part="exact")
    for name in METHODS:
        numbers[f"small {name} above the least"] = float(
            np.mean([excess for one in small["runs"] for excess in _above_least(one, name)])
        )
    numbers["small share of budgets that a penalty reaches"] = float(np.mean([one["reached"] for one in small["runs"]]))
    for row in pick(rows, part="ridge"):
        numbers[f"n={row['n']} share of edges that a ridge keeps"] = float(
            np.mean([one["same"] for one in row["runs"]])
        )
    return {key: [number] for key, number in numbers.items()}


def _above(one: Row, name: str) -> list[float]:
    """Return how far the values of a method are above those of the penalised solutions."""
    pairs = zip(one[name], one["penalised"], strict=True)
    return [(value - other) / (one["diagonal"] - other) for value, other in pairs]


def _above_least(one: Row, name: str) -> list[float]:
    """Return how far the values of a method are above the least with as many edges."""
    pairs = zip(one[name], one["lowest"][1:-1], strict=True)
    return [(value - least) / (one["lowest"][0] - least) for value, least in pairs]


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the distance of the constrained solutions from the penalised ones over the edges, and the small graphs."""
    figure, panels = new_figure(1, 3, "The constrained problem (49) against the penalised one (48)")
    names = {"paper": "the paper, exact gradients", "default": "our default (pursuit)"}
    for panel, row in zip(panels, pick(rows, part="path"), strict=False):
        for place, (name, text) in enumerate(names.items()):
            edges = [count for one in row["runs"] for count in one["edges"]]
            above = [100.0 * excess for one in row["runs"] for excess in _above(one, name)]
            style = {**LINES[place], "linestyle": "none"}
            panel.plot(edges, above, label=text, markersize=5, **style)
        panel.axhline(0.0, color="black", linewidth=0.8)
        label(panel, f"p = {P}, n = {row['n']}", "edges of the penalised solution", "% of the decrease above it")
    legend(panels[0])
    [small] = pick(rows, part="exact")
    for place, name in enumerate(names):
        above = 100.0 * np.mean([_above_least(one, name) for one in small["runs"]], axis=0)
        panels[2].plot(range(1, len(above) + 1), above, linewidth=1.6, markersize=5, **LINES[place])
    label(panels[2], "p = 5, n = 20: every graph tried", "edges", "% of the decrease above the least")
    remark(figure, f"a point is one penalty on one of {SETS} data sets; right: means over {SMALL_SETS} data sets")
    return {"penalised_form": figure}


ITEM = Item("Section 5.2: the penalised form (48) against the constrained form (49)", cells, summarise, draw, example)
