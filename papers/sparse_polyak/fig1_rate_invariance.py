"""Figure 1: does the number of iterations grow with the dimension?

Quick: s = 70, s* = 30 at d = 1000 ... 16000, where the whole family takes a minute or two. Full: the paper's s = 700,
s* = 300 at d = 5000, 10000, 20000 in float32. There the coefficients are scaled to one norm, since otherwise the
strength of the signal, which is drawn too, would be compared as well. Full also has both rules on the coefficients as
they are drawn, which is a table and no figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, curves, label, legend, new_figure, remark

from hardthresh.constraints import Sparsity

from ._common import RULES, example, first, follow, gaps, planted
from ._slopes import slope

SEEDS = {1000: 3, 2000: 2, 4000: 2, 8000: 1, 16000: 1}
GAPS = [0.1, 0.01]
FULL_GAPS, FULL_ERRORS = [0.5, 0.3, 0.2, 0.1, 0.05, 0.03], [0.7, 0.5, 0.4]
# d, number type, iterations of the rules on the coefficients as drawn, and what is asked of them
DRAWN = [
    (5000, "float64", {"SP5": 1000, "CP5": 1000, "SP1": 200, "CP1": 1000}),
    (20000, "float32", {"SP5": 300, "CP5": 300}),
]
DRAWN_GAPS, DRAWN_ERRORS = [0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.001], [0.5, 0.4, 0.3]
CLAIMED = {"linear": 0.01, "logistic": 0.1}
"""The gap at which the dimensions are compared."""
GROWTH = {"linear": [0.01], "logistic": [0.3, 0.1, 0.01]}
"""Gaps at which the growth with d is measured; all rules reach the first one at every d."""

RULES_HERE = ("SP5", "CP5", "SP1", "CP1")

ENDS = (
    "left: a line ends where the first of its data sets has .7 % of the gap left (logistic, classical: 7 %), its goal"
)
BANDS = "lines: medians over 3, 2, 2, 1, 1 data sets, from the smallest d to the largest; bands: their range"
NAMES = {"SP": "Sparse Polyak", "CP": "classical Polyak"}


def run(
    model: str, d: int, s: int, s_star: int, rule: str, seed: int, limit: int, until: float, norm: float, dtype: str
) -> dict[str, Any]:
    """Follow one rule on one problem; the squared norm of its coefficients is `norm`, or (0) what is drawn."""
    problem = planted(model, d, s, s_star, seed, coef_squared_norm=norm or None, dtype=dtype)
    return follow(problem, Sparsity(s), RULES[rule](problem.f_star), limit, until)


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, dimension, seed and rule."""
    settings: list[dict[str, Any]] = []
    if full:
        common: dict[str, Any] = {"model": "logistic", "s": 700, "s_star": 300, "seed": seed, "until": 0.0}
        for d in (5000, 10000, 20000):
            scaled = {**common, "d": d, "limit": 150, "norm": 300.0, "dtype": "float32"}
            settings += [{**scaled, "rule": rule} for rule in ("SP5", "CP5")]
        for d, dtype, limits in DRAWN:
            drawn = {**common, "d": d, "norm": 0.0, "dtype": dtype}
            settings += [{**drawn, "rule": rule, "limit": limit} for rule, limit in limits.items()]
    else:
        for model in ("linear", "logistic"):
            for d, number in SEEDS.items():
                for which in data_seeds(seed, number):
                    for rule in RULES_HERE:
                        # the classical step would need thousands of iterations to .01 on the logistic problems
                        until = 0.07 if model == "logistic" and rule[0] == "C" else 0.007
                        common = {"model": model, "d": d, "s": 70, "s_star": 30, "rule": rule, "seed": which}
                        settings.append({**common, "limit": 450, "until": until, "norm": 0.0, "dtype": "float64"})
    name = "{model} d={d} {dtype} norm={norm:g} seed={seed} {rule}"
    return [Cell(name.format(**setting), run, setting) for setting in settings]


def count(rows: list[Row], model: str, rule: str, d: int, gap: float) -> float:
    """Return the iterations of a rule until a share of the gap is left, the median over the data sets."""
    return float(np.median([first(gaps(row), [gap])[0] for row in pick(rows, model=model, rule=rule, d=d)]))


def summarise(rows: list[Row], full: bool) -> dict[str, Any]:
    """Return first iterations: over d for each gap, with their growth, or (full) over the gaps for each d."""
    numbers: dict[str, Any] = {}
    if full:
        for row in rows:
            drawn = not row["norm"]
            name = f"{'drawn ' if drawn else ''}{row['rule']} d={row['d']}"
            errors = np.array(row["error"]) / row["size"]
            numbers[f"{name} gaps"] = first(gaps(row), DRAWN_GAPS if drawn else FULL_GAPS)
            numbers[f"{name} errors"] = first(errors, DRAWN_ERRORS if drawn else FULL_ERRORS)
            if drawn:
                numbers[f"{name} end"] = [errors[-1]]
        for rule in ("SP5", "CP5"):
            small, large = (numbers[f"{rule} d={d} gaps"] for d in (5000, 20000))
            numbers[f"{rule} ratio"] = [large[i] / small[i] for i in (1, 3)]
        return numbers
    for model in CLAIMED:
        for rule in RULES_HERE:
            for gap in GAPS if model == "linear" or rule[0] == "S" else GAPS[:1]:
                numbers[f"{model} {rule} gap {gap}"] = [count(rows, model, rule, d, gap) for d in SEEDS]
        numbers |= claimed(rows, model)
    return numbers


def claimed(rows: list[Row], model: str) -> dict[str, float]:
    """Return the growth of the iterations over all d, by a power law, and those of CP5 over those of SP5."""
    dimensions = [*SEEDS]
    numbers: dict[str, float] = {}
    reached, *further = GROWTH[model]
    for rule, gap in [*((rule, reached) for rule in RULES_HERE), *(("SP5", gap) for gap in further)]:
        exponent = slope(dimensions, [count(rows, model, rule, d, gap) for d in dimensions])
        numbers[f"{model} {rule} growth, gap {gap}"] = (dimensions[-1] / dimensions[0]) ** exponent
    ratios = [count(rows, model, "CP5", d, reached) / count(rows, model, "SP5", d, reached) for d in dimensions]
    numbers[f"{model} CP5 / SP5, smallest"] = min(ratios)
    numbers[f"{model} CP5 / SP5, d = 16000"] = ratios[-1]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the gap over the iterations, and the iterations over the dimension."""
    models = ["logistic"] if full else ["linear", "logistic"]
    rows = [row for row in rows if row["norm"] or not full]  # one norm at every dimension
    title = "Does the number of iterations grow with the dimension d? Sparse Polyak: hardly. Classical Polyak: yes."
    figure, panels = new_figure(len(models), 2, title)
    dimensions = sorted({row["d"] for row in rows})
    late: list[str] = []
    for number, model in enumerate(models):
        left, right = panels[2 * number : 2 * number + 2]
        for rule, dash in (("SP5", "-"), ("CP5", "--")):
            for line, d in enumerate(dimensions):
                runs = [gaps(row) for row in pick(rows, model=model, rule=rule, d=d)]
                style = {**LINES[line], "linestyle": dash}
                curves(left, runs, f"d = {d:,}" if rule == "SP5" else None, style)
        left.set_yscale("log")
        left.set_ylim(0.02 if full else 0.009 if model == "linear" else 0.08, 1.1)
        left.set_xlim(0, 150 if model == "logistic" else 120)
        label(
            left,
            f"{model} regression: solid Sparse Polyak, dashed classical",
            "iterations",
            "share of the gap f − f(θ*) that is left",
        )
        legend(left, loc="upper right")
        level = CLAIMED[model]
        for line, rule in enumerate(("SP5", "CP5") if full else ("SP5", "CP5", "SP1", "CP1")):
            points = [
                [first(gaps(row), [level])[0] for row in pick(rows, model=model, rule=rule, d=d)] for d in dimensions
            ]
            right.plot(
                dimensions,
                [np.median(point) for point in points],
                label=f"{NAMES[rule[:2]]}, c = {rule[2:]}",
                linewidth=1.6,
                markersize=5,
                **LINES[line],
            )
            right.fill_between(
                dimensions, [min(p) for p in points], [max(p) for p in points], color=LINES[line]["color"], alpha=0.18
            )
            for d, point in zip(dimensions, points, strict=True):
                if np.isinf(np.median(point)):  # a line that just ends would look like a plot that was cut
                    limit = max(row["limit"] for row in pick(rows, model=model, rule=rule, d=d))
                    late.append(f"{model}, {NAMES[rule[:2]]}, c = {rule[2:]}, d = {d:,}: not within {limit} iterations")
        right.set_xscale("log", base=2)
        right.set_yscale("log")
        right.set_xticks(dimensions, [f"{d:,}" for d in dimensions])
        right.minorticks_off()
        right.set_ylim(top=1500 if not full else 400)
        label(
            right,
            f"{model} regression: iterations until {100 * level:.0f} % is left",
            "number of features d",
            "iterations",
        )
        legend(right, loc="upper left")
    remark(figure, "\n".join([*late, "one data set for each d" if full else f"{BANDS}\n{ENDS}"]))
    return {"fig1_rate_invariance": figure}


TITLE = "Figure 1: iterations of Sparse Polyak and of classical Polyak as the dimension grows"
ITEM = Item(TITLE, cells, summarise, draw, example)
