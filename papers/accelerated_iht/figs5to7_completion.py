"""Figures 5 to 7: an image of low rank from 35 % of its pixels.

Quick: china.jpg of scikit-learn, 128 x 192, rank 15, which has the same number of observations per degree of freedom as
the paper's "bikes"; a seed draws the pixels that are seen. Full: the paper's image (very likely kodim05 of the Kodak
set), 512 x 768, rank 60. No noise: the image itself is cut to the rank. The paper's mu multiplies a sum; here a step is
mu times the number of observed pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import INK, LINES, label, new_figure, remark, shared_legend

from hardthresh.baselines import BFGD, FrankWolfe, NuclearBall
from hardthresh.constraints import Rank
from hardthresh.core import LowerBound, Status, minimize
from hardthresh.core.constraint import Constraint
from hardthresh.core.solver import Solver
from hardthresh.objectives import MatrixCompletion
from hardthresh.solvers import IHT, AcceleratedIHT, ConjugateIHT, ExactMomentum, NesterovMomentum
from hardthresh.steps import ExactLineSearch, Fixed

from ._common import first, published
from ._images import low_rank_image, packed, psnr, unpacked

Make = Callable[[int], Solver]
SOLVERS: dict[str, Make] = {
    "SVP 1": lambda n: IHT(step=Fixed(1.0 * n)),
    "SVP 2": lambda n: IHT(step=Fixed(2.0 * n)),
    "SVP ls": lambda n: published(0.0, ExactLineSearch(), restricted=False),
    "full 1 .25": lambda n: published(0.25, 1.0 * n, restricted=False),
    "full 1 .5": lambda n: published(0.5, 1.0 * n, restricted=False),
    "full 1 .75": lambda n: published(0.75, 1.0 * n, restricted=False),
    "full 1.5 .25": lambda n: published(0.25, 1.5 * n, restricted=False),
    "full 1.5 .5": lambda n: published(0.5, 1.5 * n, restricted=False),
    "tangent ls .25": lambda n: published(0.25, ExactLineSearch("direction")),
    "tangent ls .5": lambda n: published(0.5, ExactLineSearch("direction")),
    "tangent support .25": lambda n: published(0.25, ExactLineSearch()),
    "tangent support .5": lambda n: published(0.5, ExactLineSearch()),
    "safe": lambda n: AcceleratedIHT(),
    "conjugate": lambda n: ConjugateIHT(tol=1e-14),
    "SVP 2.857": lambda n: IHT(step=Fixed(n / 0.35)),
    "full 2 .25": lambda n: published(0.25, 2.0 * n, restricted=False),
    "exact": lambda n: published(ExactMomentum(), 1.0 * n, restricted=False),
    "Nesterov": lambda n: published(NesterovMomentum(), 1.0 * n, restricted=False),
    "full ls": lambda n: published(0.0, ExactLineSearch("direction"), restricted=False),
    "BFGD": lambda n: BFGD(smoothness=1.0 / n),
    "FW": lambda n: FrankWolfe(),
}
NAMES = {
    "SVP 1": "SVP, μ = 1",
    "SVP 2": "SVP, μ = 2",
    "full 1 .25": "AccIHT, μ = 1, τ = 1/4",
    "full 1.5 .25": "AccIHT, μ = 1.5, τ = 1/4",
    "full 1.5 .5": "AccIHT, μ = 1.5, τ = 1/2",
    "safe": "safeguarded, τ = 1/2",
    "conjugate": "conjugate IHT (our default)",
    "BFGD": "BFGD, step of the theory",
    "FW": "Frank-Wolfe, nuclear ball",
}
# image: (height, width, rank)
IMAGES = {"china.jpg": (128, 192, 15), "kodim05.png": (512, 768, 60)}
GOAL, MOVE = {"china.jpg": 1e-8, "kodim05.png": 1e-15}, {"china.jpg": 0.0, "kodim05.png": 1e-6}
"""The runs end at this share of f(0), or where an iteration moves the point by this share of its norm."""
# method: limit
QUICK = {
    "SVP 1": 1600, "SVP 2": 1600, "SVP ls": 1600, "full 1 .25": 1600, "full 1 .5": 1600, "full 1 .75": 1600,
    "full 1.5 .25": 1600, "full 1.5 .5": 1600, "tangent ls .25": 1600, "tangent ls .5": 1600,
    "tangent support .25": 1600, "tangent support .5": 1600, "safe": 1600, "conjugate": 1600,
    "SVP 2.857": 30, "full 2 .25": 300, "exact": 600, "Nesterov": 600, "full ls": 3, "BFGD": 600, "FW": 600,
}  # fmt: skip
FULL = {
    "SVP 1": 800, "full 1 .25": 600, "full 1.5 .25": 600, "full 1 .5": 600, "full 1.5 .5": 600, "safe": 400,
    "conjugate": 200, "BFGD": 300, "FW": 100,
}  # fmt: skip
FAILING = ["SVP 2.857", "full 2 .25", "exact", "Nesterov"]
EARLY = 1e-3
"""The share of f(0) of the ratios of iterations: runs may then stay on a plateau for longer than their limit."""

SHOWN = ["SVP 1", "full 1.5 .25", "conjugate", "BFGD", "FW"]
SNAPSHOT = {"china.jpg": 250, "kodim05.png": 100}
"""Iterations after which the pictures are shown."""


def run(
    image: str, height: int, width: int, rank: int, method: str, limit: int, snapshot: int, seed: int
) -> dict[str, Any]:
    """Complete the image with one method; the paper's image until an iteration moves it by 1e-6 of its norm."""
    truth, observed = low_rank_image(image, height, width, rank, seed)
    at = np.nonzero(observed)
    f = MatrixCompletion(*at, truth[at], shape=truth.shape, storage="dense" if image == "china.jpg" else "auto")
    solver = SOLVERS[method](len(at[0]))
    constraint: Constraint = Rank(rank)
    if method == "FW":
        constraint = NuclearBall(float(np.linalg.svd(truth, compute_uv=False).sum()))
    quality: list[float] = []
    pictures: list[Any] = []  # the last, and the one to show
    wanted = min(limit, snapshot)

    def watch(state: Any) -> None:
        W = np.asarray(state.w)
        quality.append(psnr(W, truth))
        moved = float(np.linalg.norm(W - pictures[0])) if pictures else inf
        pictures[:1] = [W]
        if state.iteration == wanted:
            pictures.append(W)
        if moved <= MOVE[image] * float(np.linalg.norm(W)):
            raise StopIteration

    with np.errstate(over="ignore", invalid="ignore"):
        result = minimize(f, constraint, solver, stop=LowerBound(GOAL[image]), max_iter=limit, callback=watch)
    picture = pictures[-1]
    value = np.asarray(result.history["value"])
    keep = method in SHOWN
    return {
        "value": value / float(0.5 * np.mean(truth[at] ** 2)),
        "psnr": quality,
        "step": float(result.history["step"][0]) / len(at[0]) if result.n_iter else 0.0,
        "seconds": result.history["seconds"],
        "diverged": result.status is Status.DIVERGED,
        "picture": packed(picture) if keep else None,
        "error": packed(128.0 + 16.0 * np.log2(np.maximum(np.abs(picture - truth), 2.0**-8))) if keep else None,
        "picture_psnr": psnr(picture, truth) if keep else None,
        "truth": packed(truth) if method == SHOWN[0] else None,
        "observed": packed(np.where(observed, truth, 255.0)) if method == SHOWN[0] else None,
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each method."""
    image = "kodim05.png" if full else "china.jpg"
    height, width, rank = IMAGES[image]
    common = {"image": image, "height": height, "width": width, "rank": rank, "snapshot": SNAPSHOT[image], "seed": seed}
    return [
        Cell(f"{image} {method}", run, {**common, "method": method, "limit": limit})
        for method, limit in (FULL if full else QUICK).items()
    ]


def example(method: str, height: int, width: int, limit: int, **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    blank, keep = packed(np.full((height, width), 128.0)), method in SHOWN
    points = range(min(limit, 300) + 1)
    return {
        "value": [0.9**t for t in points],
        "psnr": [10.0 + t / 2 for t in points],
        "step": 1.0,
        "seconds": [0.01 * t for t in points],
        "diverged": False,
        "picture": blank if keep else None,
        "error": blank if keep else None,
        "picture_psnr": 50.0 if keep else None,
        "truth": blank if method == SHOWN[0] else None,
        "observed": blank if method == SHOWN[0] else None,
    }


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return first iterations at shares of f(0) and at a quality in dB; of the failing methods how they fail."""
    numbers: dict[str, list[float]] = {}
    for row in rows:
        method, quality = row["method"], np.nan_to_num(np.asarray(row["psnr"]), nan=-inf)
        if method == "full ls":
            numbers["line search along the whole gradient"] = [row["step"]]
        elif method in FAILING:
            numbers[f"{method} fails"] = [float(row["diverged"]), float(quality[-1])]
        elif method in ("BFGD", "FW"):
            numbers[method] = [float(row["value"][-1]), float(quality[-1])]
        elif full:
            reached = first(row["value"], [1e-4, 1e-6, 1e-8]) + first(-quality, [-40.0, -60.0])
            numbers[method] = [*reached, len(quality) - 1, float(quality[-1])]
        else:
            numbers[method] = first(row["value"], [1e-4, 1e-8]) + first(-quality, [-60.0])
    return numbers if full else numbers | _comparisons(rows)


def _comparisons(rows: list[Row]) -> dict[str, list[float]]:
    """Return ratios of iterations to the level before the plateau, and how f and the pictures compare."""
    by_name = {row["method"]: row for row in rows}
    early = {method: first(row["value"], [EARLY])[0] for method, row in by_name.items()}
    ours = by_name["full 1.5 .25"]
    then = ours["snapshot"]
    numbers = {
        "SVP / AccIHT": early["SVP 1"] / early["full 1.5 .25"],
        "SVP / AccIHT, equal steps": early["SVP 1"] / early["full 1 .25"],
        "AccIHT / conjugate, early": early["full 1.5 .25"] / early["conjugate"],
        "BFGD / AccIHT, f": _at(by_name["BFGD"]["value"], then) / _at(ours["value"], then),
        "FW / AccIHT, f": _at(by_name["FW"]["value"], then) / _at(ours["value"], then),
        "PSNR, AccIHT - SVP": _at(ours["psnr"], then) - _at(by_name["SVP 1"]["psnr"], then),
        "PSNR, AccIHT - FW": _at(ours["psnr"], then) - _at(by_name["FW"]["psnr"], then),
    }
    for better, worse in (("FW", "BFGD"), ("exact", "FW"), ("Nesterov", "FW")):
        difference = by_name[better]["psnr"][-1] - by_name[worse]["psnr"][-1]
        numbers[f"PSNR at the end, {better} - {worse}"] = difference
    return {key: [float(number)] for key, number in numbers.items()}


def _at(values: list[float], iteration: int) -> float:
    """Return the value after some iterations, or where the run ended before that."""
    return values[min(iteration, len(values) - 1)]


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw f and the quality over the iterations, and the pictures side by side."""
    name = "figs5to7_completion"
    height, width, rank = IMAGES["kodim05.png" if full else "china.jpg"]
    title = (
        f"35 % of the pixels of a {height} × {width} image of rank {rank}: momentum and a longer step, then conjugacy"
    )
    figure, panels = new_figure(1, 2, title, height=4.2)
    grey = {"color": "#8a95a3", "linestyle": "-", "marker": "*"}
    styles = dict(zip(NAMES, [LINES[0], LINES[4], LINES[2], LINES[1], LINES[3], LINES[5], LINES[6]], strict=False))
    styles |= {"BFGD": grey, "FW": {**grey, "linestyle": ":", "marker": "x"}}
    for row in rows:
        if row["method"] not in NAMES:
            continue
        for panel, field in zip(panels, ("value", "psnr"), strict=True):
            panel.plot(
                np.asarray(row[field], dtype=float),
                label=NAMES[row["method"]],
                linewidth=1.6,
                markersize=4.5,
                markevery=0.13,
                **styles[row["method"]],
            )
    panels[0].set_yscale("log")
    panels[0].set_ylim(1e-9, 2)
    panels[1].set_ylim(0, 100)
    for panel in panels:
        panel.set_xlim(0, 600 if full else 1500)
    label(panels[0], "Figure 5: how far f has fallen", "iterations", "f / f(0)")
    label(panels[1], "quality on all pixels", "iterations", "PSNR in dB")
    shared_legend(figure)
    ends = "an iteration moves the image by 1e-6 of its norm" if full else "f / f(0) = 1e-8"
    remark(figure, f"lines end where {ends}, or at the limit of iterations; one image, one mask")
    return {name: figure, f"{name}_pictures": _pictures(rows)}


def _pictures(rows: list[Row]) -> Figure:
    """Return the image, what is seen of it, and below what the methods make of that, with the errors."""
    shown = [pick(rows, method=method)[0] for method in SHOWN]
    height, width = shown[0]["height"], shown[0]["width"]
    after = shown[0]["snapshot"]
    columns = len(SHOWN) + 1
    figure = Figure(figsize=(2.9 * columns, 4.4), layout="constrained")
    figure.suptitle(f"Figure 6: what 35 % of the pixels become in {after} iterations", fontsize=12, color=INK)
    panels = figure.subplots(2, columns)
    for place, row in enumerate(shown, start=1):
        name = NAMES[row["method"]].partition(",")[0].partition(" (")[0]
        steps = min(after, len(row["psnr"]) - 1)
        early = f", {steps} its" if steps < after else ""
        panels[0, place].imshow(unpacked(row["picture"], height, width), cmap="gray", vmin=0, vmax=255)
        panels[0, place].set_title(f"{name}{early}: {row['picture_psnr']:.1f} dB", fontsize=9.5, color=INK)
        error = 2.0 ** ((unpacked(row["error"], height, width) - 128.0) / 16.0)
        panels[1, place].imshow(np.log10(error), cmap="gray_r", vmin=-2, vmax=2)
        panels[1, place].set_title("its error", fontsize=9.5, color=INK)
    for panel, field, title in zip(
        panels[:, 0], ("truth", "observed"), ("the image, cut to its rank", "observed (white: not)"), strict=True
    ):
        panel.imshow(unpacked(shown[0][field], height, width), cmap="gray", vmin=0, vmax=255)
        panel.set_title(title, fontsize=9.5, color=INK)
    for panel in panels.ravel():
        panel.set_axis_off()
    remark(figure, "errors: white up to .01 grey levels of 255, black from 100, logarithmic")
    return figure


TITLE = "Figures 5 to 7: an image of low rank from 35 % of its pixels"
ITEM = Item(TITLE, cells, summarise, draw, example)
