"""Is the classical Polyak step slower because of the dimension?

An open question; the page on it is docs/theory/full_norm.rst.

Both steps run on problems that differ in the dimension d at a fixed number of rows n, in n at a fixed d, in both at a
fixed d / n, and in the correlation. Along the run of Sparse Polyak the ratio r_t = |g|^2 / |HT_s g|^2 says how many
steps of the classical rule make one of its own, so that the sum of r_t predicts the iterations of the classical rule
without running it. Quick and full are the same.
"""

from __future__ import annotations

from itertools import islice
from math import inf, isfinite
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import GUIDE, LINES, label, new_figure, remark, shared_legend
from scipy.stats import norm

from hardthresh.constraints import Sparsity
from hardthresh.core import iterate
from hardthresh.core.step import StepRule
from hardthresh.solvers import IHT
from hardthresh.steps import Polyak, SparsePolyak

from ._common import Problem, planted
from ._slopes import crossing, slope

S, S_STAR = 30, 15
GOALS = {"linear": 0.01, "logistic": 0.1}
"""The share of the gap at which the rules are compared, as in Figure 1."""
LIMIT = 2000
SWEEPS: dict[str, list[tuple[int, int, float]]] = {
    "features": [(d, 1000, 0.5) for d in (500, 1000, 2000, 4000)],
    "rows": [(2000, n, 0.5) for n in (500, 1000, 2000, 4000)],
    "both": [(d, d // 2, 0.5) for d in (1000, 2000, 4000)],
    "correlation": [(2000, 1000, omega) for omega in (0.0, 0.25, 0.5, 0.75, 0.9)],
}
"""What varies: (d, n, correlation)."""
VARIED = {"features": 0, "rows": 1, "both": 0, "correlation": 2}
"""The number of a setting that is on the axis of a sweep."""


def path(problem: Problem, step: StepRule, goal: float) -> tuple[list[float], list[float]]:
    """Return the share of the gap that is left, and |g|^2 / |HT_s g|^2, at each iterate until the goal."""
    left: list[float] = []
    ratios: list[float] = []
    sparse = Sparsity(S)
    whole = problem.objective.value(problem.objective.zeros()) - problem.f_star
    for state in islice(iterate(problem.objective, sparse, IHT(step=step)), LIMIT + 1):
        left.append((state.value - problem.f_star) / whole)
        gradient = state.at.gradient
        ratios.append(float(np.sum(gradient**2) / np.sum(sparse.hard_threshold(gradient) ** 2)))
        if left[-1] <= goal:
            break
    return left, ratios


def classical_iterations(iterations: float, ratios: list[float]) -> float:
    """Return the sum of the ratios over the iterations, a fraction of the last included."""
    if not isfinite(iterations):
        return inf
    whole = int(iterations)
    return float(np.sum(ratios[:whole])) + (iterations - whole) * ratios[whole]


def noise_ratio(d: int, s: int) -> float:
    """Return |z|^2 / |HT_s z|^2 for d independent normal numbers, in the limit of many.

    The s largest in magnitude are those beyond the quantile q of the share s / d, where the mean of z^2 is
    1 + 2 q phi(q) d / s.
    """
    quantile = norm.isf(0.5 * s / d)
    return float(d / s / (1.0 + 2.0 * quantile * norm.pdf(quantile) * d / s))


def run(model: str, d: int, n: int, omega: float, scale: float, rule: str, seed: int) -> dict[str, Any]:
    """Run one of the steps on one problem; the coefficients have the same norm everywhere."""
    problem = planted(model, d, S, S_STAR, seed, n_samples=n, correlation=omega, coef_squared_norm=float(S_STAR))
    step = {"sparse": SparsePolyak, "classical": Polyak}[rule](problem.f_star, scale=scale)
    left, ratios = path(problem, step, GOALS[model])
    if rule == "classical":
        return {"left": left}
    gradient = problem.objective.evaluate(problem.truth).gradient
    return {
        "left": left,
        "predicted": classical_iterations(crossing(left, GOALS[model]), ratios),
        "ratio": float(np.mean(ratios)),
        "at the truth": float(np.sum(gradient**2) / np.sum(Sparsity(S).hard_threshold(gradient) ** 2)),
    }


def example(model: str, d: int, n: int, omega: float, scale: float, rule: str, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    ratio = 1.0 + 1.5 * d / n
    iterations = 21.0 * ratio if rule == "classical" else 20.0
    left = [GOALS[model] ** (t / iterations) for t in range(int(iterations) + 2)]
    if rule == "classical":
        return {"left": left}
    return {"left": left, "predicted": 20.0 * ratio, "ratio": ratio, "at the truth": noise_ratio(d, S)}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, problem, scale and rule."""
    problems = list(dict.fromkeys(setting for settings in SWEEPS.values() for setting in settings))
    settings = [
        {"model": model, "d": d, "n": n, "omega": omega, "scale": scale, "rule": rule, "seed": seed}
        for model in GOALS
        for d, n, omega in problems
        for scale in (5.0, 1.0)
        for rule in ("sparse", "classical")
    ]
    name = "{model} d={d} n={n} {omega} c={scale:g} {rule} seed={seed}"
    return [Cell(name.format(**one), run, one) for one in settings]


def pairs(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the cells of Sparse Polyak with these arguments, each with the iterations of both steps."""
    sparse, classical = (pick(rows, rule=rule, **wanted) for rule in ("sparse", "classical"))
    return [
        one
        | {name: crossing(row["left"], GOALS[one["model"]]) for name, row in (("iterations", one), ("classical", two))}
        for one, two in zip(sparse, classical, strict=True)
    ]


def along(rows: list[Row], model: str, sweep: str, scale: float) -> tuple[list[float], list[Row]]:
    """Return the values on the axis of a sweep, and its cells."""
    found = [pairs(rows, model=model, d=d, n=n, omega=omega, scale=scale)[0] for d, n, omega in SWEEPS[sweep]]
    return [setting[VARIED[sweep]] for setting in SWEEPS[sweep]], found


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return how many times as many iterations the classical step needs, with its slopes, and the predictions."""
    numbers: dict[str, list[float]] = {}
    for model in GOALS:
        for scale in (5.0, 1.0):
            name = f"{model} c={scale:g}"
            for sweep in ("features", "rows", "both"):
                axis, found = along(rows, model, sweep, scale)
                numbers[f"{name} {sweep}: slope"] = [
                    slope(axis, [row["classical"] / row["iterations"] for row in found])
                ]
            found = pairs(rows, model=model, scale=scale)
            times = np.log([row["classical"] / row["iterations"] for row in found])
            numbers[f"{name}: correlation with the norms"] = [
                float(np.corrcoef(times, np.log([row["ratio"] for row in found]))[0, 1])
            ]
            share = [row["classical"] / row["predicted"] for row in found]
            numbers[f"{name}: median measured / predicted"] = [float(np.median(share))]
        _, found = along(rows, model, "correlation", 5.0)
        times = [row["classical"] / row["iterations"] for row in found]
        numbers[f"{model} c=5 correlation: largest / smallest"] = [max(times) / min(times)]
        found = pick(rows, model=model, scale=5.0, omega=0.5, rule="sparse")
        share = [row["at the truth"] / noise_ratio(row["d"], S) for row in found]
        numbers[f"{model}: norms at theta* / those of noise"] = [float(np.median(share))]
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the factor over d, n and d at a fixed d / n, and the measured over the predicted iterations."""
    title = "The classical step needs more iterations when d / n grows, about as many as the gradient norms predict"
    figure, panels = new_figure(2, 2, title, height=3.8)
    names = {"features": "d, n = 1,000", "rows": "n, d = 2,000", "both": "d, n = d / 2"}
    for panel, (sweep, name) in zip(panels, names.items(), strict=False):
        for line, (model, scale) in enumerate((model, scale) for model in GOALS for scale in (5.0, 1.0)):
            axis, found = along(rows, model, sweep, scale)
            times = [row["classical"] / row["iterations"] for row in found]
            panel.plot(axis, times, label=f"{model}, c = {scale:g}", linewidth=1.6, markersize=5, **LINES[line])
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_ylim(1.0, 40.0)
        panel.set_xticks(axis, [f"{value:,}" for value in axis])
        panel.minorticks_off()
        label(panel, f"classical / Sparse Polyak, over {name}", name.partition(",")[0], "times as many iterations")
    last = panels[-1]
    for line, (model, scale) in enumerate((model, scale) for model in GOALS for scale in (5.0, 1.0)):
        found = pairs(rows, model=model, scale=scale)
        points = [row["predicted"] for row in found], [row["classical"] for row in found]
        last.plot(*points, **{**LINES[line], "linestyle": "none"}, markersize=5)
    ends = [5.0, 1000.0]
    last.plot(ends, ends, color=GUIDE, linewidth=1.2, label="as predicted")
    last.set_xscale("log")
    last.set_yscale("log")
    last.xaxis.set_major_formatter("{x:g}")
    label(last, "all problems", "predicted from the norms along Sparse Polyak", "iterations of the classical step")
    shared_legend(figure)
    remark(figure, f"iterations to {GOALS['linear']:.0%} (linear) or {GOALS['logistic']:.0%} (logistic) of the gap")
    return {"full_norm": figure}


ITEM = Item("Open question: is the classical step slower because of d?", cells, summarise, draw, example)
