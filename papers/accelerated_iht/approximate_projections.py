"""Appendix B.3: is the linear rate kept if the projection is only an approximation?

The paper conjectures it. Three models: the completion of Figure 5 with randomised decompositions; groups that overlap,
where dynamic programming finds the nearest point that the greedy choice only approximates; and plain sparsity with the
worst supports that constants of head and tail approximations allow (Hegde, Indyk and Schmidt 2015). Quick: china.jpg,
64 x 96, with rank 4, where every method with an exact projection arrives, and with rank 7, which has as many
observations per degree of freedom as Figure 5. Full: kodim05, 512 x 768, rank 60. A seed draws the observed pixels, the
designs and the sketches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import GUIDE, LINES, MORE_LINES, MUTED, label, legend, new_figure, remark, shared_legend

from hardthresh.constraints import OverlappingGroupSparsity, Rank
from hardthresh.core.solver import Solver
from hardthresh.objectives import LinearModel, MatrixCompletion
from hardthresh.solvers import IHT
from hardthresh.steps import Fixed

from . import _common
from ._common import METHODS, first, follow, lipschitz, published
from ._data import gaussian_design
from ._images import low_rank_image
from ._projections import ChainGroups, SeparateGroups, SketchedRank, worst_head, worst_tail

LEVELS = [1e-4, 1e-10, 1e-20]
"""Shares of f(0). The rate is that between the last two, where the slowest direction is all that is left."""

ARRIVED = 1e-10
"""The share of f(0) at which the runs on vectors end."""

# name: image, height, width, rank, algorithms, projections, limit
Picture = tuple[str, int, int, int, list[str], list[str], int]
SKETCHED = ["q=0 p=0", "q=0 p=r", "q=0 p=2r", "q=1 p=5", "q=2 p=5", "warm"]
PICTURES: dict[str, Picture] = {
    "rank 4": ("china.jpg", 64, 96, 4, ["SVP", "AccIHT"], ["exact", *SKETCHED], 2000),
    "rank 7": ("china.jpg", 64, 96, 7, ["AccIHT"], ["exact", "q=0 p=r", "q=0 p=2r", "q=1 p=5"], 1000),
}
FULL_PICTURES: dict[str, Picture] = {
    "kodim05": ("kodim05.png", 512, 768, 60, ["AccIHT"], ["exact", *SKETCHED], 800),
}

ALGORITHMS: dict[str, Callable[[int], Solver]] = {
    "SVP": lambda n: IHT(step=Fixed(1.0 * n)),
    "AccIHT": lambda n: published(0.25, 1.5 * n, restricted=False),
}
SKETCHES: dict[str, tuple[int, Callable[[int], int]]] = {
    "q=0 p=0": (0, lambda r: 0),
    "q=0 p=r": (0, lambda r: r),
    "q=0 p=2r": (0, lambda r: 2 * r),
    "q=1 p=5": (1, lambda r: 5),
    "q=2 p=5": (2, lambda r: 5),
}
"""Power steps, and columns more than the rank."""
NAMES = {
    "exact": "exact",
    "q=0 p=0": "no power step, p = 0",
    "q=0 p=r": "no power step, p = r",
    "q=0 p=2r": "no power step, p = 2r",
    "q=1 p=5": "one power step, p = 5",
    "q=2 p=5": "two power steps, p = 5",
    "warm": "one step from the last bases",
}
GROUPINGS = {"exact": ChainGroups, "greedy": OverlappingGroupSparsity, "separate": SeparateGroups}
GROUPING_METHODS = ["1/L .25", "ls .25"]
GROUP_SEEDS = 4
CONSTANTS = [
    *((None, tail) for tail in (1.0, 1.05, 1.1, 1.2, 1.5)),
    *((1.0, tail) for tail in (1.0, 1.2, 1.5, 2.0)),
    *((head, 1.0) for head in (0.95, 0.9, 0.8, 0.7, 0.5)),
    (0.9, 1.2),
]
"""The constants of the head, where there is one, and of the tail."""


@lru_cache(maxsize=1)  # cells of one image stand side by side
def completion(image: str, height: int, width: int, rank: int, seed: int) -> MatrixCompletion:
    """Return the problem of the observed pixels."""
    truth, observed = low_rank_image(image, height, width, rank, seed)
    at = np.nonzero(observed)
    return MatrixCompletion(*at, truth[at], shape=truth.shape, storage="dense")


def projection_of(name: str, r: int, seed: int) -> Rank:
    """Return the projection of a name; the seed draws its sketches."""
    if name not in SKETCHES:
        return Rank(r, "subspace" if name == "warm" else "auto")
    power, oversampling = SKETCHES[name]
    return SketchedRank(r, power=power, oversampling=oversampling(r), rng=np.random.default_rng(seed))


def complete(
    model: str,
    picture: str,
    image: str,
    height: int,
    width: int,
    rank: int,
    algorithm: str,
    projection: str,
    limit: int,
    seed: int,
) -> dict[str, Any]:
    """Complete an image with one algorithm and one projection."""
    f = completion(image, height, width, rank, seed)
    constraint = projection_of(projection, rank, seed)
    return follow(f, constraint, ALGORITHMS[algorithm](f.y.size), limit, until=LEVELS[-1])


def constants(
    model: str, image: str, height: int, width: int, rank: int, projection: str, limit: int, seed: int
) -> dict[str, Any]:
    """Return the head and the tail constant of a projection at the points that a run of SVP projects."""
    f = completion(image, height, width, rank, seed)
    approximate = projection_of(projection, rank, seed)
    found: dict[str, list[float]] = {"head": [], "tail": []}
    at, support = f.evaluate(f.zeros()), None
    for _ in range(limit):
        z = at.point - f.y.size * at.gradient
        nearest, point = Rank(rank).project(z), approximate.project(z, support).point
        found["head"].append(float(np.linalg.norm(point) / np.linalg.norm(nearest.point)))
        found["tail"].append(float(np.linalg.norm(z - point) / np.linalg.norm(z - nearest.point)))
        at, support = f.evaluate(nearest.point), nearest.support
    return found


@lru_cache(maxsize=1)
def overlapping(seed: int) -> tuple[LinearModel, list[Any], float]:
    """Return a noiseless problem with 100 groups of 15 that share 7 with the next, 10 of them active; and its 1/L.

    Draw order: the design, 700 rows; the active groups; their coefficients.
    """
    rng = np.random.default_rng(seed)
    groups = [range(8 * g, 8 * g + 15) for g in range(100)]
    X, w = rng.standard_normal((700, 807)), np.zeros(807)
    for g in rng.choice(100, 10, replace=False):
        w[groups[g]] = rng.standard_normal(15)
    return LinearModel(X, X @ w), groups, 700 / lipschitz(X)


def group(model: str, method: str, projection: str, limit: int, seed: int) -> dict[str, Any]:
    """Follow one method with one projection on the groups."""
    f, groups, step = overlapping(seed)
    return follow(f, GROUPINGS[projection](groups, 10), METHODS[method](step), limit, until=ARRIVED)


def coverage(model: str, limit: int, seed: int) -> dict[str, Any]:
    """Return the share of the largest energy that the greedy choice keeps at the points that a run of IHT projects."""
    f, groups, step = overlapping(seed)
    best, greedy = ChainGroups(groups, 10), OverlappingGroupSparsity(groups, 10)
    found, at = [], f.evaluate(f.zeros())
    for _ in range(limit):
        z = at.point - step * at.gradient
        nearest = best.project(z).point
        found.append(float(np.sum(greedy.project(z).point ** 2) / np.sum(nearest**2)))
        at = f.evaluate(nearest)
    return {"energy": found}


def worst(
    model: str, head: float | None, tail: float, momentum: float, step: float, limit: int, seed: int
) -> dict[str, Any]:
    """Run IHT or AccIHT with the worst head and tail approximations of plain sparsity, on 400 x 1,000, k = 20."""
    drawn = gaussian_design(400, 1000, 20, seed=seed)
    return {"value": head_tail(drawn.X, drawn.y, 20, head, tail, momentum=momentum, step=step, limit=limit)}


def head_tail(
    X: Any, y: Any, k: int, head: float | None, tail: float, *, momentum: float, step: float, limit: int
) -> list[float]:
    """Return f / f(0) along x+ = T(u - step H(X'(Xu - y))), u = x+ + momentum (x+ - x), until it has arrived.

    H keeps 2k entries, because the difference of two k-sparse points has as many; without a head it is the identity.
    """
    x = u = np.zeros(X.shape[1])
    values = [float(y @ y)]
    while len(values) <= limit and values[-1] > ARRIVED * values[0]:
        gradient = X.T @ (X @ u - y)
        direction = gradient if head is None else worst_head(gradient, 2 * k, head)
        new = worst_tail(u - step * direction, k, tail)
        x, u = new, new + momentum * (new - x)
        values.append(float(np.sum((X @ x - y) ** 2)))
    return [value / values[0] for value in values]


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem, algorithm and projection; full has the large image only."""
    found = []
    for picture, (image, height, width, rank, algorithms, projections, limit) in (
        FULL_PICTURES if full else PICTURES
    ).items():
        common = {"image": image, "height": height, "width": width, "rank": rank, "seed": seed}
        for algorithm in algorithms:
            for projection in projections:
                given = {
                    "model": "matrix", "picture": picture, **common, "algorithm": algorithm, "projection": projection,
                    "limit": limit,
                }  # fmt: skip
                found.append(Cell(f"{picture} {algorithm} {projection}", complete, given))
        if picture == "rank 4":
            for projection in SKETCHED:
                given = {"model": "constants", **common, "projection": projection, "limit": 50}
                found.append(Cell(f"constants {projection}", constants, given))
    if full:
        return found
    for which in data_seeds(seed, GROUP_SEEDS):
        for method in GROUPING_METHODS:
            for projection in GROUPINGS:
                given = {"model": "groups", "method": method, "projection": projection, "limit": 300, "seed": which}
                found.append(Cell(f"groups seed={which} {method} {projection}", group, given))
        found.append(Cell(f"coverage seed={which}", coverage, {"model": "coverage", "limit": 50, "seed": which}))
    for momentum in (0.0, 0.25):
        for head, tail in CONSTANTS:
            given = {
                "model": "worst", "head": head, "tail": tail, "momentum": momentum, "step": 0.5, "limit": 300,
                "seed": seed,
            }  # fmt: skip
            found.append(Cell(f"{_worst_name(head, tail)} tau={momentum}", worst, given))
    return found


def example(model: str, limit: int, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    if model == "constants":
        return {"head": [0.99] * limit, "tail": [1.2] * limit}
    if model == "coverage":
        return {"energy": [0.99] * limit}
    if model == "worst":
        return {"value": [0.3**t for t in range(30)]}
    return _common.example(limit) | {"value": [0.7**t for t in range(200)]}


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return iterations to the levels, and how rates, iterations and operations compare with the exact projection."""
    numbers: dict[str, list[float]] = {}
    for picture in FULL_PICTURES if full else PICTURES:
        here = pick(rows, model="matrix", picture=picture)
        for row in here:
            numbers[f"{picture} {row['algorithm']} {row['projection']}"] = first(row["value"], LEVELS)
    if full:
        return numbers
    return numbers | _of_matrices(rows, numbers) | _of_vectors(rows)


def _of_matrices(rows: list[Row], reached: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return the comparisons of decompositions, and their constants."""
    numbers: dict[str, list[float]] = {}
    for algorithm in ALGORITHMS:
        exact = reached[f"rank 4 {algorithm} exact"]
        for projection in SKETCHED:
            ours = reached[f"rank 4 {algorithm} {projection}"]
            if projection == "q=0 p=0":
                [row] = pick(rows, model="matrix", picture="rank 4", algorithm=algorithm, projection=projection)
                numbers[f"least f, {algorithm} {projection}"] = [float(np.min(row["value"]))]
            else:
                numbers[f"rate, {algorithm} {projection}"] = [_rate(ours) / _rate(exact)]
    for projection in ("q=0 p=2r", "q=1 p=5"):
        ours = reached[f"rank 4 AccIHT {projection}"]
        numbers[f"SVP / AccIHT, {projection}"] = [reached[f"rank 4 SVP {projection}"][1] / ours[1]]
        work = [flops(name, 64, 96, 4) for name in ("exact", projection)]
        numbers[f"operations, exact / {projection}"] = [
            reached["rank 4 AccIHT exact"][1] * work[0] / (ours[1] * work[1])
        ]
    exact, ours = (reached[f"rank 7 AccIHT {name}"][0] for name in ("exact", "q=0 p=r"))
    numbers["plateau, exact / q=0 p=r"] = [_ratio(exact, ours) if ours < inf else 0.0]
    for row in pick(rows, model="constants"):
        head, tail = np.asarray(row["head"]), np.asarray(row["tail"])
        name = row["projection"]
        numbers[f"constants {name}"] = [float(np.median(head)), float(np.median(tail)), float(np.max(tail))]
        if name == "q=0 p=r":
            allowed = 2.0 + row["rank"] / (SKETCHES[name][1](row["rank"]) - 1.0)
            numbers[f"tail constant squared / bound, {name}"] = [float(np.mean(tail**2)) / allowed]
        if name in ("q=1 p=5", "q=2 p=5", "warm"):
            numbers[f"largest tail constant, {name}"] = [float(np.max(tail))]
    return numbers


def _of_vectors(rows: list[Row]) -> dict[str, list[float]]:
    """Return the comparisons on groups and on plain sparsity."""
    numbers: dict[str, list[float]] = {}
    for method in GROUPING_METHODS:
        runs = {name: pick(rows, model="groups", method=method, projection=name) for name in GROUPINGS}
        reached = {name: [first(row["value"], [ARRIVED])[0] for row in runs[name]] for name in runs}
        for name, counts in reached.items():
            numbers[f"groups {method} {name}"] = counts
        both = [(a, b) for a, b in zip(reached["greedy"], reached["exact"], strict=True) if b < inf]
        numbers[f"groups, greedy arrives, {method}"] = [float(np.mean([a < inf for a, _ in both]))]
        numbers[f"groups, greedy / exact, {method}"] = [float(np.mean([a / b for a, b in both if a < inf]))]
        numbers[f"groups, separate, {method}"] = [float(np.mean([a < inf for a in reached["separate"]]))]
    energies = [float(np.min(row["energy"])) for row in pick(rows, model="coverage")]
    numbers["groups, energy of greedy / exact"] = [min(energies)]
    for momentum in (0.0, 0.25):
        runs = {_worst_name(row["head"], row["tail"]): row for row in pick(rows, model="worst", momentum=momentum)}
        reached = {name: first(row["value"], [1e-5, ARRIVED]) for name, row in runs.items()}
        for name, counts in reached.items():
            numbers[f"{name}, tau={momentum}"] = counts
            if momentum and name not in (EXACT, *UNDECIDED):
                numbers[f"speed, {name}"] = [_ratio(reached[EXACT][1], counts[1])]
    return numbers


def _worst_name(head: float | None, tail: float) -> str:
    return f"tail {tail:g}" + ("" if head is None else f", head {head:g}")


EXACT = _worst_name(None, 1.0)
UNDECIDED = [_worst_name(0.8, 1.0)]
"""Constants with which the data set decides whether a run arrives: there is no claim about its speed."""


def _rate(reached: list[float]) -> float:
    """Return the digits of f per iteration between the last two levels; 0 if the last is not reached."""
    return float(np.log10(LEVELS[1] / LEVELS[2])) / max(reached[2] - reached[1], 1.0) if reached[2] < inf else 0.0


def _ratio(one: float, other: float) -> float:
    """Return the ratio of two numbers of iterations, infinite if the first is."""
    return inf if one == inf else one / other


def flops(projection: str, m: int, n: int, r: int) -> float:
    """Return the operations of a projection of an m x n matrix, m <= n.

    Golub and Van Loan (2013): 6 n m^2 + 20 m^3 for a decomposition (Figure 8.6.1), 4 a b^2 for an orthonormal basis
    of b vectors with a entries.
    """
    if projection == "exact":
        return 6.0 * n * m**2 + 20.0 * m**3
    power, oversampling = SKETCHES[projection]
    width = r + oversampling(r)
    products = (2 + 2 * power) * 2.0 * m * n * width
    bases = 4.0 * width**2 * ((1 + power) * m + power * n)
    return products + bases + 6.0 * n * width**2 + 20.0 * width**3 + 2.0 * r * (m * width + m * n)


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw f over the iterations for each projection; quick also the rates over the tail constants."""
    title = "Approximate projections: a power step or a wide sketch keeps the linear rate, a bare sketch does not"
    pictures = FULL_PICTURES if full else PICTURES
    figure, panels = new_figure(1, 1, title, height=4.2) if full else new_figure(2, 2, title, height=4.0)
    styles = dict(zip(NAMES, LINES, strict=True))
    for panel, picture in zip(panels, pictures, strict=False):
        _, height, width, rank, _, _, limit = pictures[picture]
        for row in pick(rows, model="matrix", picture=picture, algorithm="AccIHT"):
            name = row["projection"]
            value = np.maximum(np.asarray(row["value"], dtype=float), 1e-300)
            panel.plot(value, label=NAMES[name], linewidth=1.6, markersize=4.5, markevery=0.13, **styles[name])
        panel.set_yscale("log")
        panel.set_ylim(1e-21, 3)
        label(panel, f"AccIHT, {height} × {width}, rank {rank}", "iterations", "f / f(0)")
    if full:
        shared_legend(figure)
        remark(figure, f"lines end at 1e-20 or after {limit} iterations; p: columns of a sketch more than the rank")
        return {"approximate_projections": figure}
    panels[0].set_xlim(0, 700)
    runs = pick(rows, model="matrix", picture="rank 4")
    for algorithm, filled in (("SVP", "none"), ("AccIHT", None)):
        for name in SKETCHED:
            [row] = pick(rows, model="constants", projection=name)
            [run, exact] = (
                first(pick(runs, algorithm=algorithm, projection=way)[0]["value"], LEVELS) for way in (name, "exact")
            )
            style = {**styles[name], "linestyle": ""}
            rate = _rate(run) / _rate(exact)
            panels[2].plot(np.median(row["tail"]), rate, markerfacecolor=filled or style["color"], **style)
    panels[2].set_ylim(-0.05, 1.5)
    label(panels[2], "rank 4: rate (open: SVP)", "median tail constant of the projection", "rate / exact rate")
    shared_legend(figure)
    lines: list[tuple[str, list[tuple[float | None, float]]]] = [
        ("tail approximation alone", [pair for pair in CONSTANTS if pair[0] is None]),
        ("tail approximation, exact head", [pair for pair in CONSTANTS if pair[0] == 1.0]),
        ("head approximation, exact tail", [pair for pair in CONSTANTS if pair[0] is not None and pair[1] == 1.0]),
    ]
    for look, (name, pairs) in zip(MORE_LINES, lines, strict=True):
        runs = [pick(rows, model="worst", head=head, tail=tail, momentum=0.25)[0] for head, tail in pairs]
        at = [tail if tail > 1.0 or head is None else head for head, tail in pairs]
        counts = [min(first(run["value"], [ARRIVED])[0], run["limit"]) for run in runs]
        places = np.argsort(at)
        panels[3].plot(np.array(at)[places], np.array(counts)[places], label=name, linewidth=1.6, **look)
    limit = runs[0]["limit"]
    panels[3].axhline(limit, color=GUIDE, linewidth=0.9)
    text = f"not reached within {limit}"
    panels[3].annotate(text, (0.5, limit), (0, 4), textcoords="offset points", color=MUTED, fontsize=8.5)
    panels[3].set_yscale("log")
    panels[3].set_ylim(15, 3000)  # room for the legend
    label(panels[3], "the worst supports, 400 × 1,000, k = 20", "constant", "iterations to f / f(0) = 1e-10")
    legend(panels[3], loc="upper left")
    remark(figure, "one data set; p: columns of a sketch more than the rank")
    return {"approximate_projections": figure}


TITLE = "Appendix B.3: approximate projections, and whether the linear rate is kept"
ITEM = Item(TITLE, cells, summarise, draw, example)
