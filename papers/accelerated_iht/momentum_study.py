"""Which momentum and which step to ship: a study of the specification, beyond the paper.

Seven families of problems, six data sets each (60 toys). On noiseless problems a run has converged where
f / f(0) <= 1e-10, on the others where an iteration moves the point by 1e-7 of its norm. Quick and full are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, NOTE, label, new_figure, remark

from hardthresh.constraints import Sparsity
from hardthresh.core import LowerBound, minimize
from hardthresh.solvers.accelerated import SmallMove

from ._common import METHODS
from ._families import PROBLEMS, SHARE, TITLES, problem

MOVE = 1e-7
STUDIED = [
    "IHT 1/L", "1/L .25", "1/L .5", "IHT ls", "ls .25", "ls .5", "ls exact", "safe 0", "safe .5", "safe exact",
    "safe Nesterov",
]  # fmt: skip
RATIOS = [
    ("m300 k20", "1/L .25", "1/L .5"), ("m300 k20", "IHT 1/L", "1/L .25"), ("m300 k20", "IHT 1/L", "IHT ls"),
    ("m300 k87", "IHT 1/L", "1/L .25"), ("m300 k87", "IHT ls", "safe exact"), ("fig. 3 k20", "IHT 1/L", "1/L .25"),
    ("AR .95 k20", "safe 0", "safe exact"),
]  # fmt: skip


def run(name: str, kind: str, arguments: list[Any], k: int, method: str, seed: int, limit: int) -> dict[str, Any]:
    """Follow one method on one problem until it has converged."""
    f, step = problem(kind, tuple(arguments), seed)
    stop = SmallMove(MOVE) if kind == "correlated" else LowerBound(SHARE)
    with np.errstate(over="ignore", invalid="ignore"):
        result = minimize(f, Sparsity(k), METHODS[method](step), stop=stop, max_iter=limit)
    value = np.asarray(result.history["value"])
    rises = int(np.sum(np.diff(value) > 0))
    return {
        "iterations": result.n_iter,
        "converged": result.status.name in ("SMALL_DECREASE", "LOWER_BOUND")
        or (kind == "correlated" and result.converged),
        "share": float(value[-1] / value[0]),
        "rises": rises,
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem, data set and method."""
    found = []
    for name, (kind, arguments, k, seeds, limit) in PROBLEMS.items():
        for which in data_seeds(seed, seeds):
            for method in STUDIED:
                given = {
                    "name": name, "kind": kind, "arguments": arguments, "k": k, "method": method, "seed": which,
                    "limit": limit,
                }  # fmt: skip
                found.append(Cell(f"{name} seed={which} {method}", run, given))
    return found


def example(limit: int, **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    return {"iterations": min(limit, 50), "converged": True, "share": 0.08, "rises": 0}


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return for each problem and method: median iterations, share that converged, mean f / f(0)."""
    numbers: dict[str, list[float]] = {}
    for name, (kind, *_) in PROBLEMS.items():
        for method in STUDIED:
            runs = pick(rows, name=name, method=method)
            rate = float(np.mean([row["converged"] for row in runs]))
            if kind == "toy":
                numbers[f"{name} {method}"] = [rate]
                continue
            numbers[f"{name} {method}"] = [median(runs), rate]
            if kind == "correlated":
                numbers[f"{name} {method}"].append(float(np.mean([row["share"] for row in runs])))
    safe = [row for row in rows if row["method"].startswith("safe")]
    numbers["rises of the safeguarded"] = [sum(row["rises"] for row in safe)]
    return numbers | _claims(rows)


def _claims(rows: list[Row]) -> dict[str, list[float]]:
    """Return ratios of iterations, and the shares of data sets on which methods converge."""
    numbers = {
        f"{name}: {above} / {below}": [
            median(pick(rows, name=name, method=above)) / median(pick(rows, name=name, method=below))
        ]
        for name, above, below in RATIOS
    }
    safe = pick(rows, method="safe exact")
    lead = _converge(pick(safe, kind="toy")) - _converge(pick(rows, method="IHT 1/L", kind="toy"))
    return numbers | {
        "toys of safe exact less IHT 1/L": [lead],
        "line search cycles": [1.0 - _converge(pick(rows, name="fig. 3 k60", method="ls .25"))],
        "safe exact converges": [_converge([row for row in safe if row["kind"] != "toy"])],
    }


def _converge(runs: list[Row]) -> float:
    """Return the share of runs that converged."""
    return float(np.mean([row["converged"] for row in runs]))


def median(runs: list[Row]) -> float:
    """Return the median iterations; a run that did not converge counts with the limit."""
    return float(np.median([row["iterations"] if row["converged"] else row["limit"] for row in runs]))


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the iterations of every method on every problem."""
    figure, panels = new_figure(
        2, 3, "Which step and which momentum: the line search first, then exact momentum behind a safeguard", height=4.2
    )
    for panel, (name, title) in zip(panels, TITLES.items(), strict=True):
        limit = PROBLEMS[name][4]
        for place, method in enumerate(STUDIED):
            runs = pick(rows, name=name, method=method)
            counts = [row["iterations"] if row["converged"] else limit for row in runs]
            style = LINES[0 if "1/L" in method else 3 if method.startswith("safe") else 1]
            panel.plot(
                counts, [place] * len(counts), linestyle="", marker=style["marker"], color=style["color"], alpha=0.55
            )
            panel.plot([float(np.median(counts))] * 2, [place - 0.32, place + 0.32], color=style["color"], linewidth=2)
            missed = sum(not row["converged"] for row in runs)
            if missed:
                panel.text(limit * 2.4, place, f"{missed} not", verticalalignment="center", **NOTE)
        panel.axvline(limit, color=MUTED, linewidth=1, linestyle=":")
        panel.set_xscale("log")
        panel.minorticks_off()
        panel.set_xlim(10, limit * 2.5)
        panel.set_yticks(range(len(STUDIED)), STUDIED, fontsize=8)
        panel.invert_yaxis()
        label(panel, title, "iterations", "method")
    notes = (
        "points: data sets; bars: medians; 'not': of six, so many did not converge within the limit, the dotted line"
    )
    remark(figure, f"{notes}. 1/L: constant step; ls: line search; safe: safeguarded. The number is τ.")
    return {"momentum_study": figure}


TITLE = "Beyond the paper: which step and which momentum, on six families of problems"
ITEM = Item(TITLE, cells, summarise, draw, example)
