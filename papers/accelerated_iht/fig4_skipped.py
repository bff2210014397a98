"""Figure 4 (Appendix D): a rule that uses the momentum only where f does not rise may skip it again and again.

The published example of two rows and three columns, and beyond it 120 x 400 designs with eight planted columns, with
steps from half to one and a half times 1 / beta, the largest eigenvalue on the planted columns. Quick and full are the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import INK, LINES, MUTED, label, legend, medians, new_figure, remark

from hardthresh.constraints import Sparsity
from hardthresh.core import LowerBound, Status, minimize
from hardthresh.core.solver import Solver
from hardthresh.objectives import LinearModel

from ._common import published
from ._data import gaussian_design
from ._momenta import FreeMomentum, SkippedMomentum, minimiser_along

PHI = np.array([[0.3816, -0.2726, 0.0077], [-0.1598, 1.9364, -0.3908]])
B = np.array([0.3870, -0.1514])
BEFORE, NOW = np.array([-1.7338, 0.0, 0.0]), np.array([1.5415, 0.0, 0.0])  # Appendix D
TAUS = [0.0, 0.25, 0.5, 0.75, 1.0]
M, N, K, SEEDS = 120, 400, 8, 3
STEPS = [0.5, 1.0, 1.25, 1.5]
GOAL, LIMIT = 1e-16, 300
METHODS: dict[str, Callable[[float], Solver]] = {
    "never": lambda step: published(0.0, step),
    "always": lambda step: published(0.25, step),
    "skipped": lambda step: published(SkippedMomentum(0.25), step),
    "free": lambda step: published(FreeMomentum(), step),
}
NAMES = {
    "never": "no momentum",
    "always": "τ = 1/4",
    "skipped": "τ = 1/4, skipped where f rises",
    "free": "exact τ of either sign",
}


def example_of_the_paper(what: str) -> dict[str, Any]:
    """Return |b - Phi v| over tau, and the tau that minimises it."""
    f, moved = LinearModel(PHI, B), NOW - BEFORE
    at = [float(np.linalg.norm(B - PHI @ (NOW + tau * moved))) for tau in TAUS]
    return {"residuals": at, "best": minimiser_along(f, f.evaluate(NOW), moved)}


@lru_cache(maxsize=1)  # cells of one design stand side by side
def problem(seed: int) -> tuple[LinearModel, float]:
    """Return the objective, and 1 / beta of the planted columns in the units of the mean loss."""
    drawn = gaussian_design(M, N, K, seed=seed)
    return LinearModel(drawn.X, drawn.y), M / float(np.linalg.norm(drawn.X[:, drawn.support], 2) ** 2)


def run(what: str, method: str, step: float, seed: int, limit: int) -> dict[str, Any]:
    """Return the iterations, the share with momentum, and that of the others where every tau > 0 increases f."""
    f, unit = problem(seed)
    states: list[Any] = []
    with np.errstate(over="ignore", invalid="ignore"):
        result = minimize(
            f,
            Sparsity(K),
            METHODS[method](step * unit),
            stop=LowerBound(GOAL),
            max_iter=limit,
            callback=states.append,
        )
        skipped = [(old, new) for old, new in pairwise(states) if new.momentum == 0.0]
        uphill = sum(float(new.at.gradient @ (new.w - old.w)) >= 0.0 for old, new in skipped)
    return {
        "iterations": result.n_iter,
        "arrived": result.status is Status.LOWER_BOUND,
        "used": 1.0 - len(skipped) / result.n_iter,
        "uphill": uphill / max(len(skipped), 1),
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for the published example, and one for each data set, step and method."""
    found = [Cell("the published example", example_of_the_paper, {"what": "paper"})]
    for which in data_seeds(seed, SEEDS):
        for step in STEPS:
            for method in METHODS:
                given = {"what": "run", "method": method, "step": step, "seed": which, "limit": LIMIT}
                found.append(Cell(f"seed={which} step={step} {method}", run, given))
    return found


def example(what: str, **given: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    if what == "paper":
        return {"residuals": [0.2 + tau for tau in TAUS], "best": -0.2}
    return {"iterations": int(40 / given["step"]), "arrived": True, "used": 0.6, "uphill": 0.5}


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the published example, and the claims."""
    [paper] = pick(rows, what="paper")
    numbers = {"residuals": list(paper["residuals"]), "best tau": [paper["best"]]}
    return numbers | _claims(rows)


def _claims(rows: list[Row]) -> dict[str, list[float]]:
    """Return the shares of iterations with momentum, and what skipping costs and saves."""
    numbers: dict[str, list[float]] = {}
    for step in (0.5, 1.25):
        here = pick(rows, what="run", method="skipped", step=step)
        numbers[f"used {step}"] = [_mean(here, "used")]
        numbers[f"iterations {step}"] = [
            _mean(here, "iterations") / _mean(pick(rows, what="run", method="never", step=step), "iterations")
        ]
    numbers["uphill 1.25"] = [_mean(here, "uphill")]
    arrived = {
        (method, step): _mean(pick(rows, what="run", method=method, step=step), "arrived")
        for method in METHODS
        for step in STEPS
    }
    for method, step in (("always", 1.25), ("skipped", 1.5), ("free", 1.5)):
        numbers[f"arrived {method} {step}"] = [arrived[method, step]]
    numbers["arrived skipped less always 1.25"] = [arrived["skipped", 1.25] - arrived["always", 1.25]]
    return numbers


def _mean(rows: list[Row], field: str) -> float:
    """Return the mean of a number over data sets."""
    return float(np.mean([row[field] for row in rows]))


def _by_data_set(groups: Iterable[list[Row]], field: str) -> list[list[float]]:
    """Return a number of each group of runs, one list for each data set."""
    return [[row[field] for row in runs] for runs in zip(*groups, strict=True)]


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the residual of the example over tau, and iterations and skipped iterations over the step."""
    title = (
        "Figure 4: at the published point every τ > 0 increases f; with long steps a monotone rule skips most momenta"
    )
    figure, panels = new_figure(1, 3, title, height=4.0)
    moved = NOW - BEFORE
    grid = np.linspace(-1.0, 1.0, 101)
    curve = [np.linalg.norm(B - PHI @ (NOW + tau * moved)) for tau in grid]
    panels[0].plot(grid, curve, color=INK, linewidth=1.6)
    [paper] = pick(rows, what="paper")
    panels[0].plot(TAUS, paper["residuals"], "o", color=INK)
    panels[0].axvline(paper["best"], color=MUTED, linestyle="--", label=f"best τ = {paper['best']:.2f}")
    panels[0].set_ylim(0.0)
    label(panels[0], "the published example", "momentum τ", "‖b − Φv‖")
    legend(panels[0], loc="upper left")
    for line, method in enumerate(METHODS):
        runs = {step: pick(rows, what="run", method=method, step=step) for step in STEPS}
        done = {step: here for step, here in runs.items() if all(row["arrived"] for row in here)}
        medians(panels[1], [*done], _by_data_set(done.values(), "iterations"), NAMES[method], line)
    panels[1].set_ylim(0.0)
    label(panels[1], "120 × 400, k = 8: iterations", "step, in units of 1/β", "iterations")
    legend(panels[1], loc="upper right")
    skipped = {step: pick(rows, what="run", method="skipped", step=step) for step in STEPS}
    shares = 1.0 - np.array(_by_data_set(skipped.values(), "used"))
    medians(panels[2], STEPS, shares.tolist(), None, LINES[2])
    panels[2].set_ylim(0.0, 1.05)
    label(panels[2], "iterations without momentum, of the monotone rule", "step, in units of 1/β", "share")
    arrived = f"a line in the middle has only the steps with which all of them arrive at f / f(0) = {GOAL:g}"
    remark(figure, f"medians of {SEEDS} data sets, bands their range; {arrived}")
    return {"fig4_skipped": figure}


TITLE = "Figure 4: skipped momentum, on the published example and beyond"
ITEM = Item(TITLE, cells, summarise, draw, example)
