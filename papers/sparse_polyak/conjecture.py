"""The conjecture at the end of Section 1.2: do other adaptive step rules, too, need more iterations in more dimensions?

The family of Figure 1 (s = 70, s* = 30, n = 5 s log d) at d = 1000 ... 16000 (logistic: 8000, since some rules need
hundreds of iterations there), one data set for each d and seed. The coefficients have the same norm everywhere, so that
the strength of the signal is not compared as well. Quick and full are the same. Each rule runs in the norm of its
source and with the norm restricted, see `_rules`. Three rules measure no gradient outside the supports and have one
version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, pick
from papers.runner.figures import LINES, MORE_LINES, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.core.solver import Solver
from hardthresh.core.step import StepRule
from hardthresh.solvers import IHT, AcceleratedIHT, NesterovMomentum
from hardthresh.steps import Backtracking, BarzilaiBorwein, Polyak, SparsePolyak

from ._common import planted
from ._rules import AdaptiveGradientDescent, AdaptiveProximalGradient, Level, ShortBarzilaiBorwein
from ._slopes import crossing, slope

DIMENSIONS = {"linear": [1000, 2000, 4000, 8000, 16000], "logistic": [1000, 2000, 4000, 8000]}
S, S_STAR = 70, 30
GOALS = {"linear": 0.01, "logistic": 0.1}
"""The share of the gap at which the dimensions are compared, as in Figure 1."""
LIMIT = 400

MEASURED: dict[str, Callable[[float], StepRule]] = {
    "Polyak full": lambda target: Polyak(target, scale=1.0),
    "Polyak leading": lambda target: SparsePolyak(target, scale=1.0),
    "level full": lambda target: Level("full"),
    "level leading": lambda target: Level("leading"),
    "short BB full": lambda target: ShortBarzilaiBorwein("full"),
    "short BB union": lambda target: ShortBarzilaiBorwein("union"),
    "short BB leading": lambda target: ShortBarzilaiBorwein("leading"),
    "Malitsky-Mishchenko full": lambda target: AdaptiveGradientDescent("full"),
    "Malitsky-Mishchenko union": lambda target: AdaptiveGradientDescent("union"),
    "Malitsky-Mishchenko leading": lambda target: AdaptiveGradientDescent("leading"),
    "adaPGM full": lambda target: AdaptiveProximalGradient("full"),
    "adaPGM union": lambda target: AdaptiveProximalGradient("union"),
    "adaPGM leading": lambda target: AdaptiveProximalGradient("leading"),
}
"""The rules with a norm, by their name and what they measure."""
OTHERS: dict[str, Callable[[], Solver]] = {
    "long BB": lambda: IHT(step=BarzilaiBorwein()),
    "backtracking": lambda: IHT(step=Backtracking()),
    "Nesterov": lambda: AcceleratedIHT(momentum=NesterovMomentum()),
}
RULES = [*MEASURED, *OTHERS]


def run(model: str, d: int, rule: str, seed: int) -> dict[str, Any]:
    """Return the iterations of one rule on one problem until the goal, in fractions; inf if it is not reached."""
    problem = planted(model, d, S, S_STAR, seed, coef_squared_norm=float(S_STAR))
    solver = IHT(step=MEASURED[rule](problem.f_star)) if rule in MEASURED else OTHERS[rule]()
    first = problem.objective.value(problem.objective.zeros()) - problem.f_star
    goal = problem.f_star + GOALS[model] * first

    def watch(state: Any) -> None:
        if state.value <= goal:
            raise StopIteration

    values = minimize(problem.objective, Sparsity(S), solver, max_iter=LIMIT, tol=0.0, callback=watch).history["value"]
    return {"iterations": crossing((values - problem.f_star) / first, GOALS[model])}


def example(model: str, d: int, rule: str, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    return {"iterations": 5.0 * (d / 1000.0) ** (0.4 if rule.endswith("full") else 0.0)}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each model, dimension and rule."""
    settings = [
        {"model": model, "d": d, "rule": rule, "seed": seed}
        for model in GOALS
        for d in DIMENSIONS[model]
        for rule in RULES
    ]
    return [Cell("{model} d={d} seed={seed} {rule}".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the slope of log iterations over log d, for each rule."""
    numbers: dict[str, list[float]] = {}
    for model in GOALS:
        for rule in RULES:
            counts = [pick(rows, model=model, rule=rule, d=d)[0]["iterations"] for d in DIMENSIONS[model]]
            numbers[f"{model} {rule} slope"] = [slope(DIMENSIONS[model], counts)]
    return numbers


STYLES = {"full": "-", "union": "--", "leading": ":"}
ALONE = [*LINES[5:], MORE_LINES[0]]
"""The rules with one version."""


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the iterations over the dimension."""
    title = "Which step rules need more iterations in more dimensions? Those that measure the full gradient"
    figure, panels = new_figure(1, 2, title, height=4.4)
    families = list(dict.fromkeys(rule.rpartition(" ")[0] for rule in MEASURED))
    for panel, model in zip(panels, GOALS, strict=True):
        for rule in RULES:
            counts = [pick(rows, model=model, rule=rule, d=d)[0]["iterations"] for d in DIMENSIONS[model]]
            family, _, measured = rule.rpartition(" ")
            if rule in MEASURED:
                style = {**LINES[families.index(family)], "linestyle": STYLES[measured]}
            else:
                style = {**ALONE[list(OTHERS).index(rule)], "linestyle": "-."}
            panel.plot(DIMENSIONS[model], counts, label=rule, linewidth=1.4, markersize=4.5, **style)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(DIMENSIONS[model], [f"{d:,}" for d in DIMENSIONS[model]])
        panel.minorticks_off()
        label(panel, f"{model} regression: to {GOALS[model]:.0%} of the gap", "number of features d", "iterations")
    shared_legend(figure)
    remark(figure, f"s = {S}, s* = {S_STAR}, n = 5 s log d; one data set for each d")
    return {"conjecture": figure}


TITLE = "The conjecture of Section 1.2: other step rules as the dimension grows, full and restricted"
ITEM = Item(TITLE, cells, summarise, draw, example)
