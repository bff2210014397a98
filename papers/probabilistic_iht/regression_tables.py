"""Sparse regression on exact gradients and on batches: the floor, the settings, the batches, votes.

No experiment of the paper: tables D1 to D5 of the specification, an independent implementation. The data are the same;
batches are other draws, so what is measured on batches agrees in size and not in digits. Quick has the first seeds and
the rows that decide something, full has all.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import INK, LINES, label, legend, new_figure, remark

from hardthresh.constraints import Sparsity
from hardthresh.core import Status, minimize
from hardthresh.solvers import IHT, FixedBatch, StochasticIHT
from hardthresh.steps import Fixed, Polyak, SparsePolyak

from ._common import Problem, follow, mean, median, overlap, regression
from ._stoiht_polyak import polyak_stochastic_iht

FLOOR = {"n": 200, "d": 400, "k": 10}
BATCH = {"n": 2000, "d": 500, "k": 20, "noise": 1.0, "low": 0.2, "high": 1.0}
LOGISTIC = {**FLOOR, "n": 800, "loss": "logistic"}
BETWEEN = {**FLOOR, "rho": 0.7}

# --- D1: how far the published test goes ---

VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "code": {"ratio": "full"},
    "model": {"ratio": "model"},
    "restricted": {"clip": "restricted"},
}
ETAS = [1e-1, 1e-2, 1e-4, 1e-6]
ETAS2 = [1.0, 10.0]

# --- D2: alpha in units of 1 / L ---

ALPHAS = [0.01, 0.1, 1.0, 1.9, 2.5, 10.0, 100.0, 1e4]
QUICK_ALPHAS = [0.1, 1.0, 10.0, 1e4]
STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "IHT rho=0": (FLOOR, "IHT"),
    "PIHT rho=0": (FLOOR, "paper"),
    "IHT rho=.7": (BETWEEN, "IHT"),
    "PIHT rho=.7": (BETWEEN, "paper"),
    "restricted rho=.7": (BETWEEN, "restricted"),
    "IHT logistic": (LOGISTIC, "IHT"),
    "PIHT logistic": (LOGISTIC, "paper"),
}

# --- D3: batches ---

RULES: dict[str, list[Any]] = {
    "full": ["full"],
    "fixed 50": ["fixed", 50],
    "fixed 200": ["fixed", 200],
    "authors 50": ["authors", 50],
    "power 2": ["power", 50, 2.0],
    "power 4": ["power", 50, 4.0],
    "norm test": ["norm test", 50],
}
QUICK_RULES = ["full", "fixed 50", "authors 50", "norm test"]
METHODS: dict[str, dict[str, Any]] = {
    "paper": {},
    "code": {"ratio": "full"},
    "restricted": {"clip": "restricted"},
    "stable": {"clip": "stable"},
    "same batch": {"clip": "restricted", "value_batch": "same"},
    "separate batches": {"clip": "restricted", "value_batch": "separate"},
}
QUICK_METHODS = ["paper", "stable", "same batch"]
POLYAK = {"whole": Polyak(scale=1.0), "restricted": SparsePolyak(scale=1.0)}
"""The norm that Polyak's step divides by: that of Li et al. (2024) and that of Sparse Polyak, which has c = 5 or 10.
With 5 the steps are five times as short, and no run is at its end after as many samples."""
RIVALS = [(50, 0.1), (50, 0.3), (50, 1.0), (200, 0.1), (200, 0.3), (200, 1.0)]

NONE = 1e-16
"""A gap that counts as none, in decades: the rounding of f, which is about .5."""

# --- D4: the clipping level ---

LEVELS: dict[str, dict[str, Any]] = {
    "delta0=.001": {"delta0": 1e-3},
    "delta0=1": {},
    "delta0=10000": {"delta0": 1e4, "delta_max": 1e5},
    "gamma=1.2": {"gamma": 1.2},
    "gamma=10": {"gamma": 10.0},
    "delta_max=.1": {"delta0": 0.1, "delta_max": 0.1},
    "delta_max=.1 restricted": {"delta0": 0.1, "delta_max": 0.1, "clip": "restricted"},
    "automatic": {"automatic": True, "clip": "stable"},
}
UNITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "target x 1024": ({**FLOOR, "scale": 1024.0}, {}),
    "target x 1024, rho=.7": ({**BETWEEN, "scale": 1024.0}, {}),
    "target x 1024, automatic": ({**FLOOR, "scale": 1024.0}, {"automatic": True, "clip": "stable"}),
    "logistic, columns / 100": ({**LOGISTIC, "columns": 0.01}, {}),
    "logistic, columns / 100, automatic": ({**LOGISTIC, "columns": 0.01}, {"automatic": True, "clip": "stable"}),
}

# --- D5: votes ---

VOTES: dict[str, list[Any] | None] = {
    "none": None,
    "set .3": ["set", 0.3],
    "coordinate .3": ["coordinate", 0.3],
    "coordinate .1": ["coordinate", 0.1],
}
TEST_ETAS = [(1e-4, 1e-4), (0.25, 1e-4), (1e-4, 1.0), (0.25, 1.0)]
PAPER_ETAS = [(0.1, 1e-4), (0.25, 1e-4), (1e-4, 1.0)]


@lru_cache(maxsize=12)
def problem(**data: Any) -> Problem:
    """Return a problem; cells of the same ones stand side by side."""
    return regression(**data)


def run(
    data: dict[str, Any], settings: dict[str, Any], seeds: list[int], limit: int, least: float = 1e-9, **names: Any
) -> dict[str, Any]:
    """Follow one method on the problems of some seeds; alpha in units of 1 / L if "steps" has it."""
    runs = []
    for seed in seeds:
        drawn, given = problem(seed=seed, **data), dict(settings)
        budget = Sparsity(data["k"])
        if "norm" in given:
            runs.append(_polyak(drawn, budget, given, limit, seed))
        elif "rival" in given:
            runs.append(_stochastic(drawn, budget, given, limit, seed))
        elif "IHT" in given:
            runs.append(_plain(drawn, budget, given["IHT"], limit, data["n"]))
        else:
            if "steps" in given:
                given["alpha"] = given.pop("steps") / drawn.L
            result, said = follow(drawn.objective, budget, given, limit, seed=7000 + seed, least=least)
            runs.append({**said, "gap": said["value"] - drawn.best, "F1": overlap(result.support.indices, drawn.truth)})
    return {"runs": runs}


def _plain(drawn: Problem, budget: Sparsity, steps: float, limit: int, n: int) -> dict[str, float]:
    """Run IHT with a fixed step, in units of 1 / L."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = minimize(drawn.objective, budget, IHT(step=Fixed(steps / drawn.L)), max_iter=limit, tol=0.0)
    gap = inf if result.status is Status.DIVERGED else result.value - drawn.best
    return _said(gap, overlap(result.support.indices, drawn.truth), limit, limit * n)


def _stochastic(drawn: Problem, budget: Sparsity, given: dict[str, Any], limit: int, seed: int) -> dict[str, float]:
    """Run stochastic IHT on batches of a fixed size, with a step in units of 1 / L."""
    rival = StochasticIHT(step=given["steps"] / drawn.L, batch=FixedBatch(given["rival"]))
    result = minimize(drawn.objective, budget, rival, seed=seed, max_iter=limit, tol=0.0)
    f1 = overlap(result.support.indices, drawn.truth)
    return _said(result.value - drawn.best, f1, limit, result.history["samples"][-1])


def _polyak(drawn: Problem, budget: Sparsity, given: dict[str, Any], limit: int, seed: int) -> dict[str, Any]:
    """Run stochastic IHT with Polyak's step; its target is 0, or f on the batch at the solution, which nobody knows."""
    reference = drawn.solution if given["target"] == "solution" else None
    points = polyak_stochastic_iht(
        drawn.objective, budget, POLYAK[given["norm"]], FixedBatch(given["rival"]), limit, seed,
        reference=reference, every=limit // 10,
    )  # fmt: skip
    gaps = [drawn.objective.value(w) - drawn.best for w in points]
    f1 = overlap(np.flatnonzero(points[-1]), drawn.truth)
    return _said(gaps[-1], f1, limit, limit * given["rival"]) | {"gaps": gaps}


def _said(gap: float, f1: float, iterations: float, samples: float) -> dict[str, float]:
    numbers = {"value": 0.0, "accepted": float(iterations), "inside": 0.0, "floor": 0.0}
    return {
        **numbers, "iterations": float(iterations), "samples": float(samples), "gap": float(gap), "F1": f1,
    }  # fmt: skip


def example(data: dict[str, Any], settings: dict[str, Any], seeds: list[int], limit: int, **_: Any) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    one = {**_said(1e-3, 0.9, limit, 3.0 * limit), "floor": 1e-4, "inside": 1e-5}
    return {"runs": [one | ({"gaps": [1.0, 1e-3]} if "norm" in settings else {}) for _ in seeds]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each row of each table."""
    found: list[Cell] = []

    def add(table: str, row: str, data: dict[str, Any], settings: dict[str, Any], seeds: list[int], limit: int) -> None:
        given = {"table": table, "row": row, "data": data, "settings": settings, "seeds": seeds, "limit": limit}
        found.append(Cell(f"{table} {row}", run, given | ({"least": 1e-12} if table == "D1" else {})))

    one = [1 + seed]
    for variant, settings in VARIANTS.items():
        for eta in ETAS:
            add("D1", f"{variant} eta1={eta:g}", FLOOR, {**settings, "eta1": eta}, one, 1500)
    for variant in ("paper", "restricted"):
        for eta in ETAS2:
            add("D1", f"{variant} eta2={eta:g}", FLOOR, {**VARIANTS[variant], "eta2": eta}, one, 1500)
    many = list(range(100 + 10 * seed, 100 + 10 * seed + (10 if full else 4)))
    for steps in ALPHAS if full else QUICK_ALPHAS:
        for name, (data, method) in STEPS.items():
            settings = {"IHT": steps} if method == "IHT" else {**VARIANTS[method], "steps": steps}
            add("D2", f"{name} alpha={steps:g}", data, settings, many, 300)
    five = list(range(200 + 10 * seed, 200 + 10 * seed + (5 if full else 3)))
    for rule in RULES if full else QUICK_RULES:
        for method in METHODS if full else QUICK_METHODS:
            settings = {**METHODS[method], "batch": RULES[rule]}
            add("D3", f"{rule} {method}", BATCH, settings, five, 1500)
    add("D3", "ours", BATCH, {"automatic": True, "clip": "stable", "batch": ["norm test", 50]}, five, 1500)
    for size, steps in RIVALS:
        samples = 200_000 if size == 50 else 400_000
        add("D3", f"stochastic {size} step {steps:g}", BATCH, {"rival": size, "steps": steps}, five, samples // size)
    for norm in POLYAK:
        for target in ("zero", "solution"):
            settings = {"rival": 50, "norm": norm, "target": target}
            add("D3", f"stochastic 50 Polyak {norm} {target}", BATCH, settings, five, 200_000 // 50)
    for variant, pairs in (("stable", TEST_ETAS), ("paper", PAPER_ETAS)):
        for eta1, eta2 in pairs:
            settings = {**METHODS[variant], "eta1": eta1, "eta2": eta2, "batch": RULES["norm test"]}
            add("eta", f"{variant} eta1={eta1:g} eta2={eta2:g}", BATCH, settings, five, 400)
    for name, settings in LEVELS.items():
        add("D4", name, BETWEEN, settings, many, 300)
    for name, (data, settings) in UNITS.items():
        add("D4", name, data, settings, many, 300)
    ten = list(range(200 + 10 * seed, 200 + 10 * seed + (10 if full else 4)))
    for size in (20, 50, 200):
        for name, vote in VOTES.items():
            add("D5", f"b={size} {name}", BATCH, {"batch": ["fixed", size], "vote": vote}, ten, 600)
    if full:
        for name in ("none", "coordinate .1"):
            settings = {"clip": "restricted", "batch": ["fixed", 20], "vote": VOTES[name]}
            add("D5", f"b=20 restricted {name}", BATCH, settings, ten, 600)
    return found


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the numbers of each row: D1 floor; D2, D4 gap and F1; D3 and eta with iterations and samples; D5 F1."""
    numbers: dict[str, list[float]] = {}
    for row in rows:
        runs, key = row["runs"], f"{row['table']} {row['row']}"
        gap, f1 = median(runs, "gap"), mean(runs, "F1")
        if row["table"] == "D1":
            numbers[key] = [runs[0]["floor"], gap, runs[0]["accepted"], f1]
        elif row["table"] in ("D3", "eta"):
            numbers[key] = [gap, f1, mean(runs, "iterations"), mean(runs, "samples") / 1000.0]
            if row["table"] == "D3" and not row["row"].startswith("stochastic"):
                numbers[key].append(mean(runs, "accepted"))
        elif row["table"] == "D5":
            numbers[key] = [f1]
        else:
            numbers[key] = [gap / row["data"].get("scale", 1.0) ** 2, f1]
    return numbers | {key: [number] for key, number in _claims(rows).items()}


def _claims(rows: list[Row]) -> dict[str, float]:
    """Return the numbers that claims are about: ratios of methods and settings."""

    def of(key: str, field: str) -> float:
        table, _, name = key.partition(" ")
        [row] = pick(rows, table=table, row=name)
        return (median if field == "gap" else mean)(row["runs"], field)

    best_fixed = min(of(f"D3 stochastic 50 step {steps:g}", "gap") for size, steps in RIVALS if size == 50)
    [polyak] = pick(rows, table="D3", row="stochastic 50 Polyak restricted solution")
    fallen = [np.log10(best_fixed / max(one["gaps"][-1], NONE)) for one in polyak["runs"]]
    levels = [of(f"D4 {name}", "F1") for name in ("delta0=.001", "delta0=1", "delta0=10000", "gamma=1.2", "gamma=10")]
    return {
        "D1 floor over eta1": max(of(f"D1 paper eta1={eta:g}", "floor") / eta for eta in (0.1, 0.01)),
        "D1 floor of the code over root of eta1": max(
            of(f"D1 code eta1={eta:g}", "floor") / eta**0.5 for eta in (0.1, 0.01, 1e-4)
        ),
        "D1 F1 with eta2=10": of("D1 paper eta2=10", "F1"),
        "D2 F1: alpha=10000 over alpha=10": of("D2 PIHT rho=0 alpha=10000", "F1") / of("D2 PIHT rho=0 alpha=10", "F1"),
        "D2 F1: alpha=0.1 over alpha=10, rho=.7": of("D2 PIHT rho=.7 alpha=0.1", "F1")
        / of("D2 PIHT rho=.7 alpha=10", "F1"),
        "D3 values on the same batch: gap": of("D3 authors 50 same batch", "gap"),
        "D3 values on the same batch: share accepted": of("D3 authors 50 same batch", "accepted")
        / pick(rows, table="D3", row="authors 50 same batch")[0]["limit"],
        "D3 fixed 50: best fixed step over stable, gap": best_fixed / of("D3 fixed 50 stable", "gap"),
        "D3 samples: the authors' batches, paper over stable clip": of("D3 authors 50 paper", "samples")
        / of("D3 authors 50 stable", "samples"),
        "D3 samples: the authors' batches over all rows": of("D3 authors 50 stable", "samples")
        / of("D3 full stable", "samples"),
        "D3 samples: the authors' batches over all rows, paper": of("D3 authors 50 paper", "samples")
        / of("D3 full paper", "samples"),
        "D3 samples: norm test over all rows": of("D3 norm test stable", "samples") / of("D3 full stable", "samples"),
        "D3 ours: F1": of("D3 ours", "F1"),
        "D3 ours: iterations": of("D3 ours", "iterations"),
        "D3 Polyak over the best fixed step: whole, target 0": of("D3 stochastic 50 Polyak whole zero", "gap")
        / best_fixed,
        "D3 Polyak over the best fixed step: restricted, target 0": of("D3 stochastic 50 Polyak restricted zero", "gap")
        / best_fixed,
        "D3 Polyak, restricted, own target: decades below the best fixed step": float(np.mean(fallen)),
        "D3 Polyak: restricted over whole, own target, F1": of("D3 stochastic 50 Polyak restricted solution", "F1")
        / of("D3 stochastic 50 Polyak whole solution", "F1"),
        "eta iterations: stable, .25 and 1 over 1e-4": of("eta stable eta1=0.25 eta2=1", "iterations")
        / of("eta stable eta1=0.0001 eta2=0.0001", "iterations"),
        "D4 F1: worst over best of delta0 and gamma": min(levels) / max(levels),
        "D4 F1: delta_max=.1 over 10": of("D4 delta_max=.1", "F1") / of("D4 delta0=1", "F1"),
        "D4 F1: target x 1024, published over automatic": of("D4 target x 1024", "F1")
        / of("D4 target x 1024, automatic", "F1"),
        "D5 F1 over no vote: b=20 set .3": of("D5 b=20 set .3", "F1") / of("D5 b=20 none", "F1"),
        "D5 F1 over no vote: b=20 coordinate .1": of("D5 b=20 coordinate .1", "F1") / of("D5 b=20 none", "F1"),
        "D5 F1 over no vote: b=20 coordinate .3": of("D5 b=20 coordinate .3", "F1") / of("D5 b=20 none", "F1"),
    }


def _line(place: int) -> dict[str, Any]:
    return {**LINES[place % len(LINES)], "linewidth": 1.6, "markersize": 5}


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the floor over eta1, the share of the support over alpha, the gap over samples, and F1 over the batch."""
    figure, panels = new_figure(2, 2, "Where the published test ends, and what settings and batches matter", height=4.0)
    names = {
        "paper": "the paper: full clip, restricted ratio", "code": "its code: full ratio",
        "model": "ratio of the model's decrease", "restricted": "restricted clip",
    }  # fmt: skip
    panel = panels[0]
    for place, variant in enumerate(VARIANTS):
        found = [pick(rows, table="D1", row=f"{variant} eta1={eta:g}")[0]["runs"][0] for eta in ETAS]
        panel.plot(ETAS, [max(one["floor"], 1e-12) for one in found], label=names[variant], **_line(place))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(1e-10, 1e6)
    label(panel, "exact gradients: where runs end", "η₁", "‖g on the support‖ / ‖g‖")
    legend(panel, loc="upper left")
    panel = panels[1]
    alphas = ALPHAS if full else QUICK_ALPHAS
    for place, name in enumerate(STEPS):
        found = [pick(rows, table="D2", row=f"{name} alpha={steps:g}")[0]["runs"] for steps in alphas]
        pairs = zip(alphas, found, strict=True)
        kept = [(steps, mean(runs, "F1")) for steps, runs in pairs if median(runs, "gap") < inf]
        panel.plot(*zip(*kept, strict=True), label=name, **_line(place))
    panel.set_xscale("log")
    panel.set_ylim(0.0, 1.03)
    label(panel, "how long a step α; lines end where IHT diverges", "α L", "F1 of the support, mean")
    legend(panel, loc="lower right")
    panel = panels[2]
    for place, method in enumerate(name for name in METHODS if full or name in QUICK_METHODS):
        found = [pick(rows, table="D3", row=f"{rule} {method}")[0]["runs"] for rule in (RULES if full else QUICK_RULES)]
        x, y = [mean(runs, "samples") for runs in found], [max(median(runs, "gap"), NONE) for runs in found]
        panel.plot(x, y, label=method, **{**_line(place), "linestyle": "none"})
    found = [pick(rows, table="D3", row=f"stochastic {size} step {steps:g}")[0]["runs"] for size, steps in RIVALS]
    x, y = [mean(runs, "samples") for runs in found], [median(runs, "gap") for runs in found]
    panel.plot(x, y, linestyle="none", marker="*", color=INK, label="stochastic IHT, six settings")
    [ours] = pick(rows, table="D3", row="ours")
    at = [mean(ours["runs"], "samples")], [max(median(ours["runs"], "gap"), NONE)]
    circle = {"linestyle": "none", "marker": "o", "markersize": 11, "fillstyle": "none", "color": INK}
    panel.plot(*at, label="ProbabilisticIHT(), no refit", **circle)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks([2e5, 5e5, 1e6, 3e6], ["200,000", "500,000", "1,000,000", "3,000,000"])
    panel.minorticks_off()
    label(panel, "batches: a point is a rule for their size", "samples, mean", "gap, median (at least 1e-16)")
    legend(panel, loc="center right", bbox_to_anchor=(1.0, 0.36))
    panel = panels[3]
    for place, name in enumerate(VOTES):
        values = [mean(pick(rows, table="D5", row=f"b={size} {name}")[0]["runs"], "F1") for size in (20, 50, 200)]
        panel.plot([20, 50, 200], values, label=name, **_line(place))
    panel.set_xscale("log")
    panel.set_xticks([20, 50, 200], ["20", "50", "200"])
    panel.minorticks_off()
    label(panel, "votes on the index set", "rows in a batch, fixed", "F1 of the support, mean")
    legend(panel, loc="lower right")
    note = "top: n = 200, d = 400, k = 10 (logistic n = 800); bottom: n = 2,000, d = 500, k = 20, noise 1"
    remark(figure, note)
    return {"regression_tables": figure}


ITEM = Item("Sparse regression: the floor, the settings, the batches, votes", cells, summarise, draw, example)
