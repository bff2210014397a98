"""Is the constant 1/5 an artefact of the proof? (An open question; the page is docs/theory/one_fifth.rst.)

Sparse Polyak with c from 1/4 to 10 on five designs, both models and three targets; and with exact targets on thousands
of small random quadratics, in search of one that needs c = 5. Quick and full are the same.
"""

from __future__ import annotations

from itertools import islice
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, label, legend, new_figure, remark
from scipy.special import expit

from hardthresh.constraints import Sparsity
from hardthresh.core import iterate
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import SparsePolyak

from ._common import LOSS
from ._data import ar1_problem
from ._slopes import crossing
from ._small import are_solved, drawn_quadratics, sparse_polyak

SCALES = [10.0, 5.0, 3.0, 2.0, 1.5, 1.0, 0.75, 0.5, 0.25]
GOALS = {"linear": 0.01, "logistic": 0.1}
"""The share of the gap that is to be left, as in Figure 1."""
DESIGNS = ("AR(1) .5", "AR(1) .9", "scaled", "factor", "few rows")
TARGETS = ("exact", "zero", "high")
"""f(theta*), or 0, or a tenth of the gap f(0) - f(theta*) above f(theta*)."""
D, S, S_STAR, N = 400, 20, 10, 600
LIMIT, LAST = 400, 50
"""Iterations, and how many of them at the end say whether f has settled."""
DIVERGED = 1e6
"""A run is given up when f is this many times f(0)."""

SMALL = [(4, 1, 1), (6, 2, 2), (10, 3, 3), (20, 5, 5), (10, 5, 2), (20, 10, 3)]
"""d, s and s* of the small problems."""
CONDITIONS = [10.0, 100.0]
COUNT, SMALL_LIMIT, SOLVED = 100, 600, 1e-3
"""Problems of each kind, iterations for each, and the share of f(0) below which a problem is solved."""


def drawn(model: str, design: str, seed: int) -> tuple[Any, Any, Any]:
    """Return a design, a response and the coefficients, whose squared norm is s*."""
    if design == "factor":  # one latent factor: every two columns have the correlation 1/2
        rng = np.random.default_rng(seed)
        X = np.sqrt(0.5) * (rng.standard_normal((N, 1)) + rng.standard_normal((N, D)))
        coef = np.zeros(D)
        coef[rng.choice(D, S_STAR, replace=False)] = rng.standard_normal(S_STAR)
        coef *= np.sqrt(S_STAR / float(coef @ coef))
        noise, uniform = 0.5 * rng.standard_normal(N), rng.random(N)
        return X, X @ coef + noise if model == "linear" else (uniform < expit(X @ coef)).astype(float), coef
    rows, omega = 150 if design == "few rows" else N, 0.9 if design == "AR(1) .9" else 0.5
    data = ar1_problem(
        D, S, S_STAR, model=model, n_samples=rows, correlation=omega, coef_squared_norm=float(S_STAR), seed=seed
    )
    units = 10.0 ** np.random.default_rng(10_000 + seed).uniform(-0.5, 0.5, D) if design == "scaled" else np.ones(D)
    return data.X * units, data.y, data.coef / units


def run(model: str, design: str, target: str, seed: int) -> dict[str, Any]:
    """Return for each c when the goal was reached, and what is left of the gap to f(theta*), or to a higher target.

    `left` is at the end, `above` the highest of the last iterations less the lowest of all, and `rise` the largest rise
    of f in one step, as a share of f(0).
    """
    X, y, coef = drawn(model, design, seed)
    f = LinearModel(X, y, loss=LOSS[model])
    f_star, start = f.value(coef), f.value(f.zeros())
    goal = f_star + 0.1 * (start - f_star) if target == "high" else f_star
    aim = 0.0 if target == "zero" else goal
    iterations, left, above, rise = [], [], [], []
    for scale in SCALES:
        values = []
        with np.errstate(over="ignore", invalid="ignore"):
            for state in islice(iterate(f, Sparsity(S), IHT(step=SparsePolyak(aim, scale=scale))), LIMIT + 1):
                values.append(state.value)
                if not state.value < DIVERGED * start:
                    break
        gap = (np.array(values) - goal) / (start - goal)
        iterations.append(crossing(gap, GOALS[model]))
        rise.append(float(np.max(np.diff(values), initial=0.0)) / start)
        left.append(float(min(gap[-1], DIVERGED)))
        above.append(float(min(gap[-LAST:].max(), DIVERGED) - gap.min()))
    return {"iterations": iterations, "left": left, "above": above, "rise": rise}


def search(d: int, s: int, s_star: int, condition: float, seed: int) -> dict[str, Any]:
    """Return which c solves which of some small problems."""
    rng = np.random.default_rng((seed, d, s, int(condition)))
    problems = drawn_quadratics(COUNT, d, s_star, condition, rng)
    return {"solved": [are_solved(problems, s, sparse_polyak(s, scale), SMALL_LIMIT, SOLVED) for scale in SCALES]}


def example(**arguments: Any) -> dict[str, Any]:
    """Return what `run` or `search` could have returned, at once."""
    if "d" in arguments:
        return {"solved": [[scale > 0.25, scale < 5.0] for scale in SCALES]}
    left = [DIVERGED if scale < 0.5 else 1e-4 for scale in SCALES]
    iterations, rise = [5.0 * scale for scale in SCALES], [0.0 for _ in SCALES]
    return {"iterations": iterations, "left": left, "above": left, "rise": rise}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, design and target, and for each kind of small problem."""
    designs = [
        {"model": model, "design": design, "target": target, "seed": seed}
        for model in GOALS
        for design in DESIGNS
        for target in TARGETS
    ]
    small = [
        {"d": d, "s": s, "s_star": s_star, "condition": condition, "seed": seed}
        for d, s, s_star in SMALL
        for condition in CONDITIONS
    ]
    return [Cell("{model} {design} {target} seed={seed}".format(**one), run, one) for one in designs] + [
        Cell("d={d} s={s} s*={s_star} condition={condition:g} seed={seed}".format(**one), search, one) for one in small
    ]


def column(rows: list[Row], what: str, scale: float) -> Any:
    """Return one number of each row, that of a c."""
    return np.array([row[what][SCALES.index(scale)] for row in rows])


def on_designs(rows: list[Row]) -> list[Row]:
    """Return the cells on the designs, without the search."""
    return [row for row in rows if "design" in row]


def kinds(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the cells of the search: with s = s*, and with s of at least twice s*."""
    small = [row for row in rows if "design" not in row]
    return {
        "s = s*": [row for row in small if row["s"] == row["s_star"]],
        "s > s*": [row for row in small if row["s"] > row["s_star"]],
    }


def solved_by(rows: list[Row]) -> dict[float, Any]:
    """Return for each c which of the small problems of some cells it solves."""
    return {scale: np.concatenate([row["solved"][i] for row in rows]) for i, scale in enumerate(SCALES)}


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return what c costs with an exact target, which c fail with which target, and the shares of the search."""
    numbers: dict[str, list[float]] = {}
    for model, goal in GOALS.items():
        exact, zero, high = (pick(on_designs(rows), model=model, target=target) for target in TARGETS)
        reached = [row for row in exact if isfinite(row["iterations"][SCALES.index(1.0)])]
        times = column(reached, "iterations", 5.0) / column(reached, "iterations", 1.0)
        numbers[f"{model} exact: c = 5 / c = 1"] = [float(np.median(times))]
        for scale in (0.25, 0.5, 1.0, 5.0):
            failed = column(exact, "left", scale) > goal
            numbers[f"{model} exact: designs that fail, c = {scale:g}"] = [float(np.mean(failed))]
        for scale in (1.0, 5.0):
            numbers[f"{model} exact: largest rise, c = {scale:g}"] = [float(column(exact, "rise", scale).max())]
        for scale in (1.0, 2.0, 3.0, 5.0):
            unsettled = column(zero, "above", scale) > goal
            numbers[f"{model} zero: designs that do not settle, c = {scale:g}"] = [float(np.mean(unsettled))]
        numbers[f"{model} high: designs that fail, c = 5"] = [float(np.mean(column(high, "left", 5.0) > goal))]
    for name, found in kinds(rows).items():
        solved = solved_by(found)
        one, five, below = (
            solved[1.0],
            solved[5.0],
            np.any([solved[scale] for scale in SCALES if 0.5 <= scale < 5.0], axis=0),
        )
        numbers[f"{name}: solved by 1, less by 5"] = [float(one.mean() - five.mean())]
        numbers[f"{name}: solved by 5, not by 1"] = [float(np.mean(five & ~one))]
        numbers[f"{name}: solved by 5, by no smaller c"] = [float(np.mean(five & ~below))]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw iterations and what is left at the end over c, and the share of the small problems that is solved."""
    title = "The constant c: about 1 is the fastest for an exact target, 5 is the safest for the target 0"
    figure, panels = new_figure(2, 2, title, height=3.8)
    for panel, model in zip(panels, GOALS, strict=False):
        for line, design in enumerate(DESIGNS):
            row = pick(on_designs(rows), model=model, design=design, target="exact")[0]
            panel.plot(SCALES, row["iterations"], label=design, linewidth=1.6, markersize=5, **LINES[line])
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES])
        panel.minorticks_off()
        label(panel, f"{model}, exact target: to {GOALS[model]:.0%} of the gap", "c", "iterations")
    legend(panels[0], loc="lower right")
    for line, model in enumerate(GOALS):
        zero = pick(on_designs(rows), model=model, target="zero")
        unsettled = [int(np.sum(column(zero, "above", scale) > GOALS[model])) for scale in SCALES]
        panels[2].plot(SCALES, unsettled, label=model, linewidth=1.6, markersize=5, **LINES[line])
    for line, (name, found) in enumerate(kinds(rows).items()):
        shares = [solved.mean() for solved in solved_by(found).values()]
        panels[3].plot(SCALES, shares, label=name, linewidth=1.6, markersize=5, **LINES[line])
    for panel in panels[2:]:
        panel.set_xscale("log")
        panel.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES])
        panel.minorticks_off()
        legend(panel)
    label(panels[2], f"target 0: f goes up and down after {LIMIT} iterations", "c", f"designs, of {len(DESIGNS)}")
    label(panels[3], "small noise-free quadratics, exact target", "c", "share solved")
    remark(figure, f"d = {D}, s = {S}, s* = {S_STAR}; a point that is missing did not reach the goal within {LIMIT}")
    return {"one_fifth": figure}


ITEM = Item("Open question: is the constant 1/5 an artefact of the proof?", cells, summarise, draw, example)
