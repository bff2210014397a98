"""Beyond the paper: every rule of the library on eight families of problems, counted in data passes.

Medians over three data sets of each family; quick and full are the same. The rules in the upper part need a number that
nobody has in practice: f(theta*), or the smoothness constant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import INK, MUTED, label, new_figure, remark

from hardthresh.constraints import Sparsity
from hardthresh.core import Passes, minimize
from hardthresh.core.solver import Solver
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, AcceleratedIHT, HardThresholdingPursuit, NesterovMomentum, WorkingSet
from hardthresh.steps import (
    AdaptiveSparsePolyak,
    Backtracking,
    BarzilaiBorwein,
    ExactLineSearch,
    Polyak,
    SparsePolyak,
)

from ._common import LOSS, Problem, fixed_step, quiet
from ._data import ar1_problem
from ._rules import AdaptiveGradientDescent, AdaptiveProximalGradient, Level, ShortBarzilaiBorwein

LIMIT = 300
"""Data passes after which a run is given up."""

PROBLEMS: dict[str, dict[str, Any]] = {
    "A": {"what": "linear"},
    "B": {"what": "logistic", "model": "logistic"},
    "C": {"what": "linear, few rows", "d": 5000, "s_star": 20, "alpha": 1.5},
    "D": {"what": "logistic, weak", "model": "logistic", "d": 5000, "s_star": 20, "alpha": 3.0, "coef_scale": 0.5},
    "E": {"what": "correlation .9", "correlation": 0.9},
    "F": {"what": "columns scaled"},
    "G": {"what": "Poisson", "model": "poisson", "coef_scale": 0.15},
    "H": {"what": "s = s*", "s": 20, "s_star": 20, "alpha": 3.0},
}
DEFAULTS = {"model": "linear", "d": 2000, "s": 30, "s_star": 15, "alpha": 5.0, "correlation": 0.5, "coef_scale": 1.0}

# with f(theta*) as the target: such a rule stops there, and only the way to 1 % counts
ORACLES: dict[str, Callable[[float], Solver]] = {
    "SP5": lambda f_star: IHT(step=SparsePolyak(f_star)),
    "SP2": lambda f_star: IHT(step=SparsePolyak(f_star, scale=2.0)),
    "SP1": lambda f_star: IHT(step=SparsePolyak(f_star, scale=1.0)),
    "SP1 2s": lambda f_star: IHT(step=SparsePolyak(f_star, scale=1.0, relax=2)),
    "CP1": lambda f_star: IHT(step=Polyak(f_star, scale=1.0)),
}
SOLVERS: dict[str, Callable[[], Solver]] = {
    "SP1 target 0": lambda: IHT(step=SparsePolyak(0.0, scale=1.0)),
    "algorithm 2 c=10": lambda: IHT(step=AdaptiveSparsePolyak(0.0, epoch_length=20)),
    "algorithm 2 c=2": lambda: IHT(step=AdaptiveSparsePolyak(0.0, epoch_length=20, scale=2.0)),
    "backtracking": lambda: IHT(step=Backtracking()),
    "exact line search": lambda: IHT(step=ExactLineSearch()),
    "Barzilai-Borwein long": lambda: IHT(step=BarzilaiBorwein()),
    "Barzilai-Borwein short": lambda: IHT(step=BarzilaiBorwein(kind="short")),
    "Barzilai-Borwein short full": lambda: IHT(step=ShortBarzilaiBorwein("full")),
    "Malitsky-Mishchenko": lambda: IHT(step=AdaptiveGradientDescent("union")),
    "adaPGM": lambda: IHT(step=AdaptiveProximalGradient("union")),
    "adaptive level": lambda: IHT(step=Level("leading")),
    "Nesterov": lambda: AcceleratedIHT(momentum=NesterovMomentum()),
    "pursuit": lambda: HardThresholdingPursuit(),
    "working set": lambda: WorkingSet(),
}
RULES = ["fixed", *ORACLES, *SOLVERS]
NAMES = {
    "fixed": "fixed step 2/(3L)",
    "SP5": "Sparse Polyak, c = 5, f(θ*)",
    "SP2": "Sparse Polyak, c = 2, f(θ*)",
    "SP1": "Sparse Polyak, c = 1, f(θ*)",
    "SP1 2s": "Sparse Polyak, c = 1, HT of 2s, f(θ*)",
    "CP1": "classical Polyak, c = 1, f(θ*)",
    "SP1 target 0": "Sparse Polyak, c = 1, target 0",
    "algorithm 2 c=10": "Algorithm 2, c = 10, T = 20",
    "algorithm 2 c=2": "Algorithm 2, c = 2, T = 20",
    "Barzilai-Borwein long": "Barzilai-Borwein, long",
    "Barzilai-Borwein short": "Barzilai-Borwein, short, restricted",
    "Barzilai-Borwein short full": "Barzilai-Borwein, short, full norm",
    "Malitsky-Mishchenko": "Malitsky-Mishchenko, restricted",
    "adaPGM": "adaPGM, restricted",
    "adaptive level": "adaptive level, HT of s",
    "Nesterov": "Nesterov with backtracking",
    "pursuit": "hard thresholding pursuit",
    "working set": "working set, our default",
}


def applies(rule: str, problem: str) -> bool:
    """Return whether a rule is run: the loss of the Poisson model has no smoothness constant and no comparable zero."""
    return problem != "G" or not (rule in ("fixed", "SP1 target 0", "adaptive level") or rule.startswith("algorithm"))


@lru_cache(maxsize=1)
def drawn(name: str, seed: int) -> tuple[Problem, dict[str, Any]]:
    """Return a problem and its settings."""
    settings = DEFAULTS | PROBLEMS[name]
    more = {key: settings[key] for key in ("model", "alpha", "correlation", "coef_scale")}
    data = ar1_problem(settings["d"], settings["s"], settings["s_star"], seed=seed, **more)
    X, truth = data.X, data.coef
    if name == "F":
        units = 10.0 ** np.random.default_rng(10_000 + seed).uniform(-0.5, 0.5, settings["d"])
        X, truth = X * units, truth / units
    objective = LinearModel(X, data.y, loss=LOSS[settings["model"]])
    return Problem(objective, truth, objective.value(truth)), settings


def run(problem: str, rule: str, seed: int) -> dict[str, Any]:
    """Return the data passes until 1 % of the gap is left, and until f(theta*) is reached; inf where they were not."""
    given, settings = drawn(problem, seed)
    if rule == "fixed":
        model, omega = settings["model"], settings["correlation"]
        solver: Solver = IHT(step=fixed_step(model, settings["s"], settings["s_star"], settings["alpha"], omega))
    else:
        solver = ORACLES[rule](given.f_star) if rule in ORACLES else SOLVERS[rule]()
    start = given.objective.value(given.objective.zeros())
    one_per_cent = given.f_star + 0.01 * (start - given.f_star)
    goal = one_per_cent if rule in ORACLES else given.f_star

    def watch(state: Any) -> None:
        if state.value <= goal:
            raise StopIteration

    with quiet():
        stop = Passes(LIMIT + 1)
        history = minimize(
            given.objective, Sparsity(settings["s"]), solver, stop=stop, max_iter=10_000, callback=watch
        ).history
    value = np.array(history["value"])
    passes = np.array(history["passes"]) - 1.0  # f at an iterate is known before its gradient
    reached = [passes[value <= level] for level in (one_per_cent, given.f_star)]
    near, there = (float(found[0]) if found.size and found[0] <= LIMIT else inf for found in reached)
    return {"near": near, "there": there}


def example(problem: str, rule: str, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    return {"near": 5.0, "there": 9.0 if rule != "fixed" else inf}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem, seed and rule."""
    settings = [
        {"problem": problem, "rule": rule, "seed": which}
        for problem in PROBLEMS
        for which in data_seeds(seed, 3)
        for rule in RULES
        if applies(rule, problem)
    ]
    return [Cell("{problem} seed={seed} {rule}".format(**setting), run, setting) for setting in settings]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the medians of each rule over the problems, and the sums of the rules that need no oracle."""
    numbers: dict[str, list[float]] = {}
    for rule in RULES:
        here = [pick(rows, rule=rule, problem=problem) for problem in PROBLEMS if applies(rule, problem)]
        numbers[f"{rule} near"] = [float(np.median([row["near"] for row in found])) for found in here]
        if rule not in ORACLES:
            numbers[f"{rule} there"] = [float(np.median([row["there"] for row in found])) for found in here]
    best = np.min([numbers[f"{rule} there"] for rule in ("backtracking", "exact line search")], axis=0)
    full, restricted = (np.array(numbers[f"Barzilai-Borwein short{norm} near"]) for norm in (" full", ""))
    reached = np.isfinite(full)  # on F the full norm takes more passes than the limit
    numbers["Barzilai-Borwein short: full / restricted"] = [float(np.median(full[reached] / restricted[reached]))]
    on_f = {
        rule: float(np.median([row["near"] for row in pick(rows, rule=rule, problem="F")]))
        for rule in SOLVERS
        if rule not in ("pursuit", "working set")
    }
    numbers["Nesterov / the best other rule on F"] = [on_f.pop("Nesterov") / min(on_f.values())]
    numbers["pursuit / line search"] = (np.array(numbers["pursuit there"]) / best).tolist()
    return numbers


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw two tables of data passes, the darker the more."""
    title = "Which rule? Data passes on eight families of problems: pale is good"
    figure, panels = new_figure(1, 2, title, height=5.2)
    numbers = summarise(rows, full)
    for panel, what in zip(panels, ("near", "there"), strict=True):
        panel.grid(False)
        table = np.full((len(RULES), len(PROBLEMS)), np.nan)
        for row, rule in enumerate(RULES):
            columns = [column for column, problem in enumerate(PROBLEMS) if applies(rule, problem)]
            if what == "near" or rule not in ORACLES:
                table[row, columns] = numbers[f"{rule} {what}"]
            else:
                panel.text(3.5, row, "stops at f(θ*) by design", fontsize=8, color=MUTED, ha="center", va="center")
        capped = np.minimum(table, 2 * LIMIT)
        panel.imshow(capped, cmap="Blues", norm=LogNorm(0.7, 6 * LIMIT), aspect="auto", origin="upper")
        for (row, column), passes in np.ndenumerate(table):
            if not np.isnan(passes):
                text = "–" if passes == inf else f"{passes:.0f}" if passes >= 10 else f"{passes:.1f}"
                colour = "white" if passes > 60 else INK
                panel.text(column, row, text, fontsize=8, color=colour, ha="center", va="center")
            elif what == "near" or RULES[row] not in ORACLES:
                panel.text(column, row, "n/a", fontsize=8, color=MUTED, ha="center", va="center")
        for line in (0.5, len(ORACLES) + 0.5):
            panel.axhline(line, color="white", linewidth=3)
        panel.set_xticks(range(len(PROBLEMS)), [*PROBLEMS])
        panel.set_yticks([])
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        label(panel, "until 1 % of the gap f − f(θ*) is left" if what == "near" else "until f ≤ f(θ*)", "", "")
    panels[0].set_yticks(range(len(RULES)), [NAMES.get(rule, rule) for rule in RULES], color=INK)
    families = "   ".join(f"{name}: {settings['what']}" for name, settings in PROBLEMS.items())
    missing = "n/a: not run; the Poisson loss has no smoothness constant, and no zero comparable to that of the others"
    remark(figure, f"{families}\n–: not within 300 passes\n{missing}")
    figure.set_figwidth(figure.get_figwidth() + 2.2)
    return {"which_rule": figure}


ITEM = Item("Beyond the paper: which rule needs the fewest data passes?", cells, summarise, draw, example)
