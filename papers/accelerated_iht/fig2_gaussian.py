"""Figure 2: compressed sensing without noise, the right k and one that overshoots, against Frank-Wolfe.

Quick: m = 750, n = 2,000, a tenth of the size at which the paper's numbers make sense: its k = 2,441 is the limit of l1
recovery for n = 2e4, not for the printed 2e5. Full: m = 7,500 and n = 2e4 in float32; m = 750 and n = 2e4, where the
step 1/L fails; and m = 7,500, n = 2e5 as printed, 6 GB in float32.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, new_figure, remark, shared_legend

from hardthresh.baselines import FrankWolfe, L1Ball
from hardthresh.constraints import Sparsity
from hardthresh.diagnostics import l1_phase_transition
from hardthresh.objectives import LinearModel

from . import _common
from ._common import METHODS, NAMES, first, follow, lipschitz, number
from ._data import Drawn, gaussian_design

EARLY = 1e-4  # the share of f(0) at which the plain method with an overshot budget still arrives
RADIUS = 40.0  # of the l1 ball, the paper's
SEEDS = 3
RIVALS = {
    "FW": ("plain", False),
    "FW away": ("away", False),
    "FW pairwise": ("pairwise", False),
    "FW corrective": ("plain", True),
    "FW pairwise corrective": ("pairwise", True),
}
RIVAL_NAMES = {
    "FW": "Frank-Wolfe",
    "FW away": "Frank-Wolfe, away steps",
    "FW pairwise": "Frank-Wolfe, pairwise",
    "FW corrective": "Frank-Wolfe + debias",
    "FW pairwise corrective": "Frank-Wolfe, pairwise + debias",
}
QUICK = [
    "IHT 1/L", "1/L .25", "1/L .5", "1/L .75", "1/L exact", "1/L value restart", "1/L gradient restart", "IHT ls",
    "ls .25", "ls .5", "ls exact", "support .25", "safe exact", "safe .5", "safe Nesterov",
]  # fmt: skip
# m, n, k planted, k allowed, number type, level, limit, methods
SIZES: dict[str, tuple[int, int, int, int, str, float, int, list[str]]] = {
    "k=50": (750, 2000, 50, 50, "float64", 1e-10, 400, [*QUICK, *RIVALS]),
    "k=244": (750, 2000, 50, 244, "float64", 1e-10, 900, QUICK),
    "k=500": (
        7500, 20_000, 500, 500, "float32", 1e-10, 300,
        ["IHT 1/L", "1/L .25", "1/L .5", "1/L gradient restart", "IHT ls", "ls .25", "ls exact", "support .25",
         "safe exact"],
    ),
    "k=2441": (
        7500, 20_000, 500, 2441, "float32", 1e-10, 300,
        ["IHT 1/L", "1/L .25", "1/L .5", "1/L gradient restart", "IHT ls", "ls .25", "ls .5", "ls exact",
         "support .25", "safe exact"],
    ),
    "m=750 k=50": (
        750, 20_000, 50, 50, "float64", 1e-12, 600,
        ["IHT 1/L", "1/L .25", "1/L .5", "1/L .75", "1/L .9", "1/L exact", "1/L gradient restart", "1/L value restart",
         "IHT ls", "ls 0", "ls .25", "ls .5", "ls exact", "ls gradient restart", "safe exact", "FW", "FW corrective"],
    ),
    "m=750 k=107": (
        750, 20_000, 50, 107, "float64", 1e-12, 600,
        ["IHT ls", "ls 0", "ls .25", "ls .5", "ls exact", "ls gradient restart", "safe exact"],
    ),
    "n=200000": (
        7500, 200_000, 500, 500, "float32", 1e-10, 300,
        ["IHT 1/L", "1/L .25", "IHT ls", "ls .25", "ls exact", "safe exact", "FW", "FW corrective"],
    ),
    "n=200000 k=2441": (
        7500, 200_000, 500, 2441, "float32", 1e-10, 300, ["IHT 1/L", "1/L .25", "IHT ls", "ls .25", "safe exact"],
    ),
}  # fmt: skip
L1 = {"size": "l1", "method": "threshold", "delta": [0.375, 0.0375, 0.1, 0.5]}
"""Rows per column: the paper's with n = 20,000 and with n = 200,000, and two more."""
QUICK_SIZES = ["k=50", "k=244"]
FULL_SIZES = ["m=750 k=50", "m=750 k=107", "k=500", "k=2441", "n=200000", "n=200000 k=2441"]
TITLES = {
    "k=50": "m = 750, n = 2,000: k = 50, the truth",
    "k=244": "the same, k = 244: overshot",
    "k=500": "m = 7,500, n = 20,000: k = 500, the truth",
    "k=2441": "the same, k = 2,441: overshot",
    "m=750 k=50": "m = 750, n = 20,000: k = 50",
    "m=750 k=107": "the same, k = 107: overshot",
    "n=200000": "m = 7,500, n = 200,000: k = 500",
    "n=200000 k=2441": "the same, k = 2,441: overshot",
}


@lru_cache(maxsize=1)  # cells of one design stand side by side
def design(m: int, n: int, planted: int, dtype: str, seed: int) -> Drawn:
    """Return the design, the response and the planted indices."""
    return gaussian_design(m, n, planted, dtype=dtype, seed=seed)


@lru_cache(maxsize=1)
def constant_step(m: int, n: int, planted: int, dtype: str, seed: int) -> float:
    """Return the step 1/L in the units of the mean loss."""
    return m / lipschitz(design(m, n, planted, dtype, seed).X)


def run(
    size: str, m: int, n: int, planted: int, k: int, dtype: str, level: float, limit: int, method: str, seed: int
) -> dict[str, Any]:
    """Follow one method on one problem until f has fallen to the level."""
    drawn = design(m, n, planted, dtype, seed)
    f = LinearModel(drawn.X, drawn.y)
    if method not in RIVALS:
        step = constant_step(m, n, planted, dtype, seed) if "1/L" in method else 1.0  # line searches do not use it
        return follow(f, Sparsity(k), METHODS[method](step), limit, until=level, truth=drawn.support)
    variant, corrective = RIVALS[method]
    rival = FrankWolfe(variant, corrective)  # type: ignore[arg-type]
    return follow(f, L1Ball(RADIUS), rival, limit, until=level, truth=drawn.support)


def threshold(size: str, method: str, delta: list[float]) -> dict[str, Any]:
    """Return the share of rows up to which l1 recovers non-zeros, for numbers of rows per column."""
    return {"rho": [l1_phase_transition(rows) for rows in delta]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each design, budget and method, and one for the l1 thresholds."""
    found = [] if full else [Cell("l1 threshold", threshold, L1)]
    sizes = FULL_SIZES if full else QUICK_SIZES
    for which in data_seeds(seed, 1 if full else SEEDS):
        for size in sizes:
            m, n, planted, k, dtype, level, limit, methods = SIZES[size]
            for method in methods:
                given = {
                    "size": size, "m": m, "n": n, "planted": planted, "k": k, "dtype": dtype, "level": level,
                    "limit": limit, "method": method, "seed": which,
                }  # fmt: skip
                found.append(Cell(f"{size} seed={which} {method}", run, given))
    return found


def example(limit: int | None = None, delta: list[float] | None = None, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    return {"rho": [0.3] * len(delta)} if delta else _common.example(limit or 0)


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the iterations to the levels, and until the planted indices are all in the support; ratios of methods."""
    numbers: dict[str, list[float]] = {}
    for size in FULL_SIZES if full else QUICK_SIZES:
        here = pick(rows, size=size)
        for method in dict.fromkeys(row["method"] for row in here):
            runs = pick(here, method=method)
            if full:
                [row] = runs
                numbers[f"{size} {method}"] = [*first(row["value"], [EARLY, row["level"]]), number(row["support"])]
            else:
                numbers[f"{size} {method}"] = [first(row["value"], [row["level"]])[0] for row in runs]
    if full:
        return numbers
    [l1] = pick(rows, size="l1")
    numbers["l1 threshold"] = l1["rho"]
    numbers["overshot k"] = [7500 * l1["rho"][0], 750 * l1["rho"][0], 7500 * l1["rho"][1]]

    def ratio(size: str, slow: str, fast: str, level: float | None = None) -> list[float]:
        """Return the median over the data sets of the iterations of one method over those of another."""
        pairs = zip(pick(rows, size=size, method=slow), pick(rows, size=size, method=fast), strict=True)
        counts = [
            [number(row["support"]) if level is None else first(row["value"], [level])[0] for row in pair]
            for pair in pairs
        ]
        return [float(np.median([a / b for a, b in counts]))]

    for name, slow, fast in (
        ("IHT / AccIHT .25", "IHT 1/L", "1/L .25"),
        ("IHT / AccIHT .5", "IHT 1/L", "1/L .5"),
        ("AccIHT .5 / IHT ls", "1/L .5", "IHT ls"),
        ("FW / AccIHT .25", "FW", "1/L .25"),
        ("FW / AccIHT ls .25", "FW", "ls .25"),
        ("FW + debias / AccIHT .25", "FW corrective", "1/L .25"),
        ("FW + debias / AccIHT ls .25", "FW corrective", "ls .25"),
    ):
        numbers[name] = ratio("k=50", slow, fast, 1e-10)
    away, pairwise = (pick(rows, size="k=50", method=f"FW {variant}") for variant in ("away", "pairwise"))
    gained = [
        np.log10(np.divide(*[run["value"][min(len(a["value"]), len(b["value"])) - 1] for run in (a, b)]))
        for a, b in zip(away, pairwise, strict=True)
    ]
    numbers["FW pairwise, digits more than FW away"] = [float(np.mean(gained))]
    for name, fast in (("AccIHT .25", "1/L .25"), ("AccIHT .5", "1/L .5"), ("safe", "safe exact")):
        numbers[f"overshot, IHT / {name}"] = ratio("k=244", "IHT 1/L", fast, EARLY)
    for name, size in (("", "k=50"), ("overshot, ", "k=244")):
        numbers[f"{name}support, IHT / AccIHT .25"] = ratio(size, "IHT 1/L", "1/L .25")
    return numbers


DRAWN = [
    "IHT 1/L", "1/L .25", "1/L .5", "1/L gradient restart", "IHT ls", "ls .25", "safe exact",
]  # fmt: skip


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw f over data passes and over seconds, for each budget."""
    sizes = FULL_SIZES if full else QUICK_SIZES
    figure, panels = new_figure(
        len(sizes), 2, "Noiseless Gaussian designs: the line search matters most, then the momentum where k is overshot"
    )
    for place, size in enumerate(sizes):
        for axis, panel in zip(("passes", "seconds"), panels[2 * place : 2 * place + 2], strict=True):
            drawn = [*DRAWN, *RIVALS]
            for line, method in enumerate(drawn):
                runs = pick(rows, size=size, method=method)
                if not runs or method in ("FW away", "FW pairwise corrective"):
                    continue
                style = LINES[line % len(LINES)] if method in DRAWN else _rival_style(method)
                names = {**NAMES, **RIVAL_NAMES}
                row = runs[0]
                value = np.maximum(np.asarray(row["value"]), 1e-300)
                panel.plot(
                    np.maximum(row[axis], 1e-3),
                    value,
                    label=names[method],
                    linewidth=1.6,
                    markersize=4.5,
                    markevery=(0.03 * (line % 5), 0.2),
                    **style,
                )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_ylim(1e-11, 2)
            label(panel, TITLES[size], "data passes" if axis == "passes" else "seconds", "f / f(0)")
    shared_legend(figure)
    notes = "the first data set; lines end where f / f(0) = 1e-10 (m = 750, n = 20,000: 1e-12), or at the limit"
    remark(figure, f"{notes}. Seconds without those for L. Frank-Wolfe adds one column per iteration.")
    return {"fig2_gaussian": figure}


def _rival_style(method: str) -> dict[str, Any]:
    looks = {"FW": ("-", "x"), "FW pairwise": ("--", "+"), "FW corrective": (":", "*")}
    return {"color": "#8a95a3", "linestyle": looks[method][0], "marker": looks[method][1]}


TITLE = "Figure 2: noiseless Gaussian designs, k exact and overshot, against Frank-Wolfe"
ITEM = Item(TITLE, cells, summarise, draw, example)
