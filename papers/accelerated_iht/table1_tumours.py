"""Table 1: groups of genes that overlap, l2-regularised logistic regression, greedy projection.

The paper's matrix cannot be had; this is the same study as obtained: 272 tumours with a known recurrence within five
years (77), 1,014 genes in 595 pathways, standardised. The rows are five-fold errors and iterations; beside them a
synthetic twin with 100 overlapping groups. Full has the paper's grid of 6 ridges by 8 numbers of groups (6 radii for
Frank-Wolfe) for the tumours, quick and the twin have 3 of the ridges by 4 of the numbers (3 of the radii).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, MUTED, label, legend, new_figure, remark

from hardthresh.baselines import FrankWolfe, GroupBall
from hardthresh.constraints import OverlappingGroupSparsity
from hardthresh.core import minimize
from hardthresh.core.solver import Solver
from hardthresh.datasets.files import DatasetError, local_folders
from hardthresh.objectives import LinearModel
from hardthresh.solvers import AcceleratedIHT
from hardthresh.solvers.accelerated import SmallMove
from hardthresh.steps import ExactLineSearch

from ._common import first, published

RIDGES = {False: [0.01, 0.1, 1.0], True: [1e-3, 0.01, 0.1, 1.0, 10.0, 100.0]}
GROUPS = {False: [2, 5, 10, 20], True: [2, 5, 10, 15, 20, 50, 75, 100]}
BALLS = {
    False: [1.0, 5.0, 10.0],
    True: [1e-4, 1.0, 5.0, 10.0, 50.0, 100.0],
}  # the least one is hard to read in our copy
MOVE, LIMIT, FW_LIMIT, FOLDS = 1e-4, 200, 100, 5
LEFT, STILL, LONG = 0.01, 1e-7, 1000  # of the runs to convergence
HARD: dict[str, Callable[[float], Solver]] = {
    "IHT 1/L": lambda step: published(0.0, step),
    "1/L .25": lambda step: published(0.25, step),
    "1/L .5": lambda step: published(0.5, step),
    "ls .25": lambda step: published(0.25, ExactLineSearch("direction")),
    "safe": lambda step: AcceleratedIHT(),
}
RIVALS = {"FW": "plain", "FW away": "away", "FW pairwise": "pairwise"}
NAMES = {
    "FW": "Frank-Wolfe",
    "FW away": "Frank-Wolfe, away",
    "FW pairwise": "Frank-Wolfe, pairwise",
    "IHT 1/L": "IHT, 1/L",
    "1/L .25": "AccIHT, 1/L, τ = 1/4",
    "1/L .5": "AccIHT, 1/L, τ = 1/2",
    "ls .25": "AccIHT, line search, τ = 1/4",
    "safe": "safeguarded",
}
MAJORITY = 77 / 272
PAPER = {"FW": 0.2938, "FW away": 0.2938, "FW pairwise": 0.2938, "IHT 1/L": 0.2825, "1/L .25": 0.2881}
SPEED = [("real", 1.0, 5), ("real", 0.01, 10), ("twin", 0.1, 2), ("twin", 0.1, 5), ("twin", 0.1, 10)]


@lru_cache(maxsize=2)
def data(kind: str, seed: int) -> tuple[Any, Any, list[Any]]:
    """Return the design, the labels 0 and 1, and the columns of each group; the real data whatever the seed."""
    if kind == "twin":
        return _twin(seed)
    arrays = np.load(_find("vandevijver295.npz"), allow_pickle=False)
    columns = np.unique(arrays["group_gene"])
    members, group = np.searchsorted(columns, arrays["group_gene"]), arrays["group"]
    known = arrays["recur5"] >= 0
    X = arrays["Xg"].astype(float)[:, columns][known]
    return X, (arrays["recur5"][known] == 1).astype(float), [members[group == g] for g in np.unique(group)]


def _twin(seed: int) -> tuple[Any, Any, list[Any]]:
    """Draw 295 x 1,000 with 100 groups of 15 that share 5 with the next, 5 of them active, logistic labels.

    Draw order: the design, the active groups, their coefficients, uniform numbers for the labels.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((295, 1000))
    groups = [np.arange(10 * g, min(10 * g + 15, 1000)) for g in range(100)]
    w = np.zeros(1000)
    for g in rng.choice(100, 5, replace=False):
        w[groups[g]] = rng.standard_normal(groups[g].size)
    y = rng.random(295) < 1.0 / (1.0 + np.exp(-X @ w))
    return X, y.astype(float), groups


def _find(name: str) -> Any:
    folders = local_folders()
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    looked = " and ".join(str(folder) for folder in folders) or "no folder, because HARDTHRESH_DATA is not set"
    raise DatasetError(f"{name} is not on this machine (looked in: {looked}); set HARDTHRESH_DATA to its folder")


def _fit(
    X: Any, y: Any, groups: list[Any], method: str, ridge: float, size: float, limit: int, tol: float = MOVE
) -> Any:
    """Return a run on standardised columns; the size is the number of groups, or the radius of the ball."""
    if method in RIVALS:  # the groups overlap: each has its own copy of a gene
        copies = np.concatenate(groups)
        labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        f = LinearModel(X[:, copies], y, loss="logistic", l2=ridge)
        ball = GroupBall(labels.tolist(), size)
        return minimize(f, ball, FrankWolfe(RIVALS[method]), max_iter=limit, tol=tol)  # type: ignore[arg-type]
    f = LinearModel(X, y, loss="logistic", l2=ridge)
    step = 1.0 / (float(np.linalg.norm(X, 2)) ** 2 / (4.0 * len(y)) + ridge)
    constraint = OverlappingGroupSparsity(groups, int(size))
    return minimize(f, constraint, HARD[method](step), stop=SmallMove(tol), max_iter=limit)


def errors(
    what: str, kind: str, method: str, ridge: float, sizes: list[float], seed: int, limit: int
) -> dict[str, Any]:
    """Return the five-fold error and the mean iterations for each size, at one ridge."""
    error, iterations = _errors(kind, method, ridge, tuple(sizes), seed, limit)
    return {"error": error, "iterations": iterations}


@cache  # `convergence` asks again for what the cells before it have computed
def _errors(
    kind: str, method: str, ridge: float, sizes: tuple[float, ...], seed: int, limit: int
) -> tuple[list[float], list[float]]:
    X, y, groups = data(kind, seed)
    order = np.random.default_rng((seed, 5)).permutation(len(y))
    error, iterations = [], []
    for size in sizes:
        wrong, its = 0, []
        for fold in range(FOLDS):
            test = order[fold::FOLDS]
            train = np.setdiff1d(order, test)
            mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
            result = _fit((X[train] - mean) / spread, y[train], groups, method, ridge, size, limit)
            w = result.w
            if method in RIVALS:
                copies = np.concatenate(groups)
                w = np.bincount(copies, weights=w, minlength=X.shape[1])
            wrong += int(np.sum(((X[test] - mean) / spread @ w > 0) != (y[test] == 1)))
            its.append(result.n_iter)
        error.append(wrong / len(y))
        iterations.append(float(np.mean(its)))
    return error, iterations


def convergence(
    what: str, kind: str, method: str, ridges: list[float], sizes: list[float], seed: int, grid_limit: int, limit: int
) -> dict[str, Any]:
    """Return the iterations on all examples with the ridge and the size of the least five-fold error.

    They are those until f is above its lowest value by at most the share `LEFT` of what it falls.
    """
    tried = [(ridge, _errors(kind, method, ridge, tuple(sizes), seed, grid_limit)[0]) for ridge in ridges]
    _, ridge, size = min((error, ridge, size) for ridge, row in tried for error, size in zip(row, sizes, strict=True))
    X, y, groups = data(kind, seed)
    result = _fit((X - X.mean(axis=0)) / X.std(axis=0), y, groups, method, ridge, size, limit, STILL)
    value = np.asarray(result.history["value"])
    its = first(value, [value.min() + LEFT * (value[0] - value.min())])[0]
    return {"ridge": ridge, "size": size, "iterations": int(its)}


def speed(what: str, kind: str, method: str, ridge: float, k: int, seed: int, limit: int) -> dict[str, Any]:
    """Return f along a run on all examples; the tumours are the same for all seeds."""
    X, y, groups = data(kind, seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    result = _fit(Z, y, groups, method, ridge, k, limit)
    return {"value": result.history["value"], "its": result.n_iter}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, method and ridge, for each run to convergence, and for the speed of methods."""
    found = []
    for kind in ("real", "twin"):
        whole = full and kind == "real"
        for method in NAMES:
            sizes = BALLS[whole] if method in RIVALS else GROUPS[whole]
            limit = FW_LIMIT if method in RIVALS else LIMIT
            shared = {"kind": kind, "method": method, "sizes": sizes, "seed": seed}
            for ridge in RIDGES[whole]:
                given = {"what": "error", **shared, "ridge": ridge, "limit": limit}
                found.append(Cell(f"{kind} split={seed} {method} ridge={ridge}", errors, given))
            if kind == "real":
                given = {"what": "convergence", **shared, "ridges": RIDGES[whole], "grid_limit": limit, "limit": LONG}
                found.append(Cell(f"{kind} split={seed} {method} convergence", convergence, given))
    for kind, ridge, k in SPEED:
        for method in HARD:
            given = {"what": "speed", "kind": kind, "method": method, "ridge": ridge, "k": k, "seed": seed}
            found.append(Cell(f"speed {kind} ridge={ridge} k={k} {method}", speed, given | {"limit": LIMIT}))
    return found


def example(what: str, **given: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    if what == "speed":
        return {"value": [0.7 * 0.95**t + 0.1 for t in range(51)], "its": 50}
    if what == "convergence":
        return {"ridge": 1.0, "size": 5, "iterations": 60}
    count = len(given["sizes"])
    return {"error": [0.3] * count, "iterations": [50.0] * count}


def best(rows: list[Row], kind: str, method: str) -> tuple[float, float]:
    """Return the least error of the grid, and the iterations that it took."""
    found = [
        pair
        for row in pick(rows, what="error", kind=kind, method=method)
        for pair in zip(row["error"], row["iterations"], strict=True)
    ]
    return min(found)


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the least errors with their iterations, those to convergence, and the comparisons of speed."""
    numbers: dict[str, list[float]] = {}
    for kind in ("real", "twin"):
        for method in NAMES:
            numbers[f"{kind} {method}"] = list(best(rows, kind, method))
    converged = {row["method"]: row["iterations"] for row in pick(rows, what="convergence")}
    numbers["iterations to convergence"] = [converged[method] for method in NAMES]
    for kind, ridge, k in SPEED:
        here = pick(rows, what="speed", kind=kind, ridge=ridge, k=k)
        numbers[f"{kind} ridge {ridge} k={k} its"] = [row["its"] for row in here]
        numbers[f"{kind} ridge {ridge} k={k} f"] = [row["value"][-1] for row in here]
    return numbers if full else numbers | _claims(rows, converged)


def _claims(rows: list[Row], converged: dict[str, int]) -> dict[str, list[float]]:
    """Return what Table 1 claims, as numbers; `converged` has the iterations to convergence."""
    least = {method: best(rows, "real", method)[0] for method in NAMES}
    numbers = {
        "least error less majority": [min(least.values()) - MAJORITY],
        "IHT less AccIHT": [least["IHT 1/L"] - least["1/L .25"]],
        "best Frank-Wolfe less AccIHT": [min(least[method] for method in RIVALS) - least["1/L .25"]],
    }
    for kind in ("real", "twin"):
        numbers[f"{kind} IHT / AccIHT"] = [_at(rows, kind, "IHT 1/L") / _at(rows, kind, "1/L .25")]
        numbers[f"{kind} AccIHT / safe"] = [_at(rows, kind, "1/L .25") / _at(rows, kind, "safe")]
    return numbers | {"FW / AccIHT": [converged["FW"] / converged["1/L .25"]]}


def _at(rows: list[Row], kind: str, method: str) -> float:
    """Return the mean iterations over the folds, with ridge 1 and 5 groups."""
    [row] = pick(rows, what="error", kind=kind, method=method, ridge=1.0)
    return float(row["iterations"][row["sizes"].index(5)])


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the errors against that of majority voting, and f over the iterations."""
    title = "272 of 295 tumours, pathways of genes: nothing beats majority voting, so this compares optimisers only"
    figure, panels = new_figure(1, 3, title, height=4.0)
    names = [*NAMES]
    for place, method in enumerate(names):
        panels[0].plot(
            best(rows, "real", method)[0], place, "o", color=LINES[0]["color"], label="ours" if not place else None
        )
        if method in PAPER:
            shown = "the paper, its own matrix" if not place else None
            panels[0].plot(PAPER[method], place, "s", color=LINES[1]["color"], markerfacecolor="none", label=shown)
    panels[0].axvline(MAJORITY, color=LINES[0]["color"], linestyle="--", linewidth=1.2, label="majority: ours .283")
    panels[0].axvline(
        78 / 295, color=LINES[1]["color"], linestyle=":", linewidth=1.5, label="majority: the paper's .264"
    )
    panels[0].set_yticks(range(len(names)), [NAMES[name] for name in names], fontsize=8)
    panels[0].set_ylim(len(names) + 1.6, -0.5)
    label(panels[0], "best five-fold error of the grid", "share misclassified", "method")
    legend(panels[0], loc="lower right")
    for panel, (kind, ridge, k) in zip(panels[1:], SPEED[:2], strict=True):
        for line, method in enumerate(HARD):
            [row] = pick(rows, what="speed", kind=kind, ridge=ridge, k=k, method=method)
            panel.plot(row["value"], label=NAMES[method], linewidth=1.6, markersize=4.5, markevery=0.13, **LINES[line])
        panel.set_yscale("log")
        label(panel, f"all 272 tumours, ridge {ridge:g}, {k} groups", "iterations", "f")
        panel.tick_params(colors=MUTED)
    legend(panels[2], loc="upper right")
    remark(figure, f"a run ends where an iteration moves the point by 1e-4 of its norm, or after {LIMIT} iterations")
    return {"table1_tumours": figure}


TITLE = "Table 1: overlapping groups of genes, logistic regression, greedy projection"
ITEM = Item(TITLE, cells, summarise, draw, example)
