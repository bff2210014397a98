"""Lemma 1 and Theorem 1: the recursion of the error along runs, where its assumptions hold and where they do not.

Gaussian designs with 16 columns, two of which count, so that the restricted constants can be enumerated: 2,000 rows,
where Theorem 1 applies, 400 where the recursion of Lemma 1 shrinks, 60 where it grows, and the toy of 6 rows. Three
data sets. Quick and full are the same.
"""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.diagnostics import RestrictedConstants, accelerated_guarantee, restricted_constants
from hardthresh.objectives import LinearModel

from ._common import first, published
from ._data import toy

D, K, SEEDS, LIMIT = 16, 2, 3, 300
ROWS = [2000, 400, 60, 6]
COLUMNS = {"k": K, "4k": 4 * K}
TAUS = {2000: [-0.05, 0.0, 0.05], 400: [-0.5, 0.0, 0.25, 0.5], 60: [-0.5, 0.0, 0.25, 0.5], 6: [0.0, 0.25]}
GOAL, FLOOR = 1e-6, 1e-10
"""The precision in Theorem 1, and the distance below which rounding decides the ratios."""
SNR = 10.0
PRINTED = 0.5  # of the term that the proof gives; see the errata in docs/theory/accelerated_iht.rst


@lru_cache(maxsize=1)  # cells of one design stand side by side
def problem(n: int, seed: int) -> tuple[Any, Any, dict[str, RestrictedConstants]]:
    """Return the design, the truth, and the constants of the mean loss over k and over 4k columns."""
    drawn = toy(n, D, K, seed=seed)
    f = LinearModel(drawn.X, drawn.y)
    sizes = {name: size for name, size in COLUMNS.items() if size <= n}
    return drawn.X, drawn.coef, {name: restricted_constants(f, size) for name, size in sizes.items()}


def run(n: int, columns: str, tau: float, snr: float | None, seed: int, limit: int) -> dict[str, Any]:
    """Return the distances to the truth along a run, the recursion of Lemma 1, and what the theorem says."""
    X, truth, known = problem(n, seed)
    y = X @ truth
    noise = np.zeros(n)
    if snr is not None:
        noise = np.random.default_rng((seed, 1)).standard_normal(n)
        noise *= np.linalg.norm(y) / np.linalg.norm(noise) / np.sqrt(snr)
    alpha, beta = known[columns].strong_convexity, known[columns].smoothness
    size = float(np.linalg.norm(noise) / np.sqrt(n))
    bound = accelerated_guarantee(alpha, beta, tau, noise=size, precision=GOAL)
    distances: list[float] = []
    with np.errstate(over="ignore", invalid="ignore"):
        minimize(
            LinearModel(X, y + noise),
            Sparsity(K),
            published(tau, bound.step),
            max_iter=limit,
            tol=0.0,
            callback=lambda state: distances.append(float(np.linalg.norm(state.w - truth))),
        )
    return {
        "distances": distances,
        "matrix": list(bound.matrix[0]),
        "noise": bound.noise_per_step,
        "eigenvalue": bound.eigenvalues[0],
        "iterations": bound.iterations,
        "in range": bound.in_published_range,
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, number of rows, momentum, and the variants without the assumptions."""
    found = []
    for which in data_seeds(seed, SEEDS):
        for n in ROWS:
            columns = "4k" if n > 4 * K else "k"
            for tau in TAUS[n]:
                given = {"n": n, "columns": columns, "tau": tau, "snr": None, "seed": which, "limit": LIMIT}
                found.append(Cell(f"seed={which} n={n} tau={tau}", run, given))
                if n == 400:
                    found.append(Cell(f"seed={which} n={n} tau={tau} noise", run, given | {"snr": SNR}))
    return found


def example(limit: int, **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    bound = {"matrix": [0.5, 0.1], "noise": 0.01, "eigenvalue": 0.6, "iterations": 60, "in range": True}
    return {"distances": [0.5**t for t in range(min(limit, 40))], **bound}


def ratios(row: Row, noise: float = 1.0) -> np.ndarray:
    """Return each distance over its bound from the last two; `noise` multiplies the term of the noise."""
    distances = np.array([row["distances"][0], *row["distances"]])  # Algorithm 1 begins as if it had stood there before
    now, before = row["matrix"]
    bound = now * distances[1:-1] + before * distances[:-2] + noise * row["noise"]
    kept = distances[1:-1] > FLOOR
    found: np.ndarray = distances[2:][kept] / bound[kept]
    return found


def factor(row: Row) -> float:
    """Return the factor by which the distance shrank per iteration, until it was `GOAL`; 1 if it never was."""
    end = first(row["distances"], [GOAL])[0]
    if not 0.0 < end < len(row["distances"]):
        return 1.0
    return float((row["distances"][int(end)] / row["distances"][0]) ** (1.0 / end))


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the theorem's iterations and those of the runs; as claims, the largest ratios to the bounds."""
    silent = pick(rows, snr=None, columns="4k")
    noisy = pick(rows, snr=SNR)
    theorem = [row for row in pick(silent, n=2000) if row["in range"]]
    grows = pick(silent, n=60)
    reached = [first(row["distances"], [GOAL])[0] for row in theorem]
    numbers = {"theorem": [row["iterations"] for row in theorem], "iterations": reached}
    return numbers | {
        "largest ratio": [max(float(ratios(row).max()) for row in silent)],
        "largest ratio, noise": [max(float(ratios(row).max()) for row in noisy)],
        "largest ratio, noise as printed": [max(float(ratios(row, PRINTED).max()) for row in noisy)],
        "largest ratio, toy": [max(float(ratios(row).max()) for row in pick(rows, n=6))],
        "iterations over T": [max(its / row["iterations"] for its, row in zip(reached, theorem, strict=True))],
        "rate over eigenvalue": [max(log(row["eigenvalue"]) / log(factor(row)) for row in theorem)],
        "least eigenvalue, 60 rows": [min(row["eigenvalue"] for row in grows)],
        "largest factor, 60 rows": [max(factor(row) for row in grows)],
    }


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the ratio of each distance to its bound along runs, in four settings."""
    title = "Lemma 1: each distance over its bound from the last two, with τ = 0 and 1/4"
    figure, panels = new_figure(1, 4, title, height=4.0)
    settings = [
        ("400 rows", {"n": 400, "snr": None}),
        ("400 rows, noise", {"n": 400, "snr": SNR}),
        ("60 rows, where the bound grows", {"n": 60}),
        ("the toy, constants over k columns", {"n": 6}),
    ]
    for panel, (name, wanted) in zip(panels, settings, strict=True):
        for line, tau in enumerate((0.0, 0.25)):
            for place, row in enumerate(pick(rows, tau=tau, **wanted)):
                shown = f"τ = {tau:g}" if not place else None
                panel.plot(ratios(row)[:40], label=shown, linewidth=1.2, markersize=3, markevery=4, **LINES[line])
        panel.axhline(1.0, color=LINES[5]["color"], linewidth=1.2, label="the bound of Lemma 1")
        panel.set_yscale("log")
        label(panel, name, "iterations", "distance / bound")
    shared_legend(figure)
    remark(figure, "each line is a data set; a line ends where the distance is rounding")
    return {"lemma1_recursion": figure}


TITLE = "Lemma 1 and Theorem 1: the recursion of the error along runs"
ITEM = Item(TITLE, cells, summarise, draw, example)
