"""Figure 1: what every momentum does on a toy of 6 rows and 10 columns, k = 2.

Seed 409 is the toy of the caption (alpha = 0.63, beta = 10.8, xi = 0.94); other seeds have the next such toy after some
other number. Beyond the paper: the same on 150 toys, and the law of the rate once the support is found. Quick has 30
toys in place of 150.
"""

from __future__ import annotations

from itertools import count
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, label, legend, new_figure, remark

from hardthresh.constraints import Sparsity
from hardthresh.core import LowerBound, Status, minimize
from hardthresh.diagnostics import best_momentum, local_rate, momentum_range, restricted_constants
from hardthresh.objectives import LinearModel

from ._common import first, published
from ._data import Drawn, gaussian_design, toy

SEED, K = 409, 2
XI, NEAR = 0.94, 0.01  # of the caption; how near the xi of another seed has to be
STEPS = {"1/beta_k": "1/βₖ", "1/L": "1/L", "published, k": "2/(α+β), k columns", "published, 3k": "2/(α+β), 3k columns"}
TAUS = [-1.2, -1.1, -0.9, -0.6, -0.3, 0.0, 0.028, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 1.5]
FEW = [-0.9, -0.3, -0.03, 0.0, 0.1, 0.25, 0.5, 0.75]
MANY = [-1.3, -1.1, -0.9, -0.25, 0.03, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 1.5]
TOYS = {False: 30, True: 150}
GOAL, LIMIT = 1e-14, 1000
TOY_GOAL, TOY_LIMIT = 1e-12, {False: 500, True: 2000}
LAW, LAW_SEED, LAW_LIMIT = [0.0, 0.25, 0.5, 0.75], 7, 400
LAW_LEVELS = [1e-12, 1e-24]


def steps(X: Any) -> dict[str, float]:
    """Return the steps in the units of the mean loss."""
    m, few, many = len(X), restricted_constants(X, K), restricted_constants(X, 3 * K)
    return {
        "1/beta_k": m / few.smoothness,
        "1/L": m / float(np.linalg.norm(X, 2) ** 2),
        "published, k": 2.0 * m / (few.strong_convexity + few.smoothness),
        "published, 3k": 2.0 * m / (many.strong_convexity + many.smoothness),
    }


def like_the_caption(start: int) -> int:
    """Return the first seed from `start` of a toy with the xi of the caption on which plain IHT arrives."""
    for seed in count(start):
        drawn = toy(seed=seed)
        known = restricted_constants(drawn.X, K)
        near = abs(momentum_range(known.strong_convexity, known.smoothness).xi - XI) <= NEAR
        if near and _follow(drawn.X, drawn.y, 0.0, len(drawn.X) / known.smoothness, GOAL, LIMIT)[1]["reached"]:
            return seed
    raise AssertionError("count never ends")


def where_plain_arrives(start: int) -> int:
    """Return the first seed from `start` of a design of the law on which plain hard thresholding reaches 1e-24."""
    for seed in count(start):
        if _law_run(seed, 0.0, LAW_LIMIT)[2].min() <= LAW_LEVELS[1]:
            return seed
    raise AssertionError("count never ends")


def _follow(X: Any, y: Any, tau: float, step: float, goal: float, limit: int) -> tuple[Any, dict[str, Any]]:
    """Return f, as a sum and not a mean, at the iterates of a run, and what became of it."""
    with np.errstate(over="ignore", invalid="ignore"):
        stop = LowerBound(goal / (0.5 * float(y @ y)))
        run = minimize(LinearModel(X, y), Sparsity(K), published(tau, step), stop=stop, max_iter=limit)
        value = len(y) * np.asarray(run.history["value"], dtype=float)
    value = np.where(np.isfinite(value), np.minimum(value, 1e30), 1e30)
    reached = first(value, [goal])[0]
    return value, {
        "reached": None if reached == inf else reached,
        "arrived": reached < inf,
        "rises": int(np.sum(np.diff(value) > 0)),
        "diverged": run.status is Status.DIVERGED,
    }


def run(what: str, seed: int, step: str, tau: float, limit: int) -> dict[str, Any]:
    """Follow the toy with one momentum."""
    drawn = toy(seed=seed)
    value, outcome = _follow(drawn.X, drawn.y, tau, steps(drawn.X)[step], GOAL, limit)
    return {"value": value[:301], **outcome}


def population(what: str, seed: int, limit: int) -> dict[str, Any]:
    """Return what becomes of every momentum on one toy, if plain hard thresholding arrives on it."""
    drawn = toy(seed=seed)
    known, step = restricted_constants(drawn.X, K), steps(drawn.X)["1/beta_k"]
    _, plain = _follow(drawn.X, drawn.y, 0.0, step, TOY_GOAL, limit)
    taus = MANY if plain["reached"] is not None else []
    bound = momentum_range(known.strong_convexity, known.smoothness).without_golden_ratio
    runs = [_follow(drawn.X, drawn.y, tau, step, TOY_GOAL, limit)[1] for tau in taus]
    return {"runs": runs, "plain": plain["reached"], "bound": bound}


def constants(what: str, seed: int) -> dict[str, Any]:
    """Return the numbers of the caption, and what tau = -1 comes to."""
    drawn = toy(seed=seed)
    known = restricted_constants(drawn.X, K)
    allowed = momentum_range(known.strong_convexity, known.smoothness)
    points: list[Any] = []
    result = minimize(
        LinearModel(drawn.X, drawn.y),
        Sparsity(K),
        published(-1.0, steps(drawn.X)["1/beta_k"]),
        max_iter=50,
        tol=1e-7,
        callback=lambda state: points.append(state.w),
    )
    return {
        "constants": [known.strong_convexity, known.smoothness, allowed.xi],
        "ranges": [allowed.published, allowed.without_golden_ratio],
        "still": [float(np.abs(points[2] - points[1]).max()), float(result.converged)],
    }


def _law_run(seed: int, tau: float, limit: int) -> tuple[Drawn, float, Any]:
    """Return a Gaussian design, the step 1/L, and f / f(0) along a run."""
    drawn = gaussian_design(120, 400, 8, seed=seed)
    step = 120 / float(np.linalg.norm(drawn.X, 2) ** 2)
    run = minimize(LinearModel(drawn.X, drawn.y), Sparsity(8), published(tau, step), max_iter=limit, tol=0.0)
    return drawn, step, np.asarray(run.history["value"]) / run.history["value"][0]


def law(what: str, seed: int, tau: float, limit: int) -> dict[str, Any]:
    """Return the measured rate of the error and the predicted one."""
    drawn, step, share = _law_run(seed, tau, limit)
    early, late = first(share, LAW_LEVELS)
    on = drawn.X[:, drawn.support]
    eigenvalues = np.linalg.eigvalsh(on.T @ on) / 120
    grid = np.linspace(-0.95, 0.99, 98)
    best = best_momentum(eigenvalues, step)
    return {
        "reached": early,
        "measured": float((share[int(late)] / share[int(early)]) ** (0.5 / (late - early))),
        "predicted": local_rate(eigenvalues, step, tau),
        "grid": grid,
        "curve": [local_rate(eigenvalues, step, float(at)) for at in grid],
        "best": [best, local_rate(eigenvalues, step, best)],
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each momentum on the toy of the caption, for each other toy, and for each rate."""
    shown = like_the_caption(SEED + 1000 * seed)
    found = [Cell("constants", constants, {"what": "constants", "seed": shown})]
    for step in STEPS:
        for tau in FEW if "published" in step else TAUS:
            given = {"what": "toy", "seed": shown, "step": step, "tau": tau, "limit": LIMIT}
            found.append(Cell(f"toy {step} tau={tau}", run, given))
    for which in data_seeds(seed, TOYS[full]):
        found.append(Cell(f"seed {which}", population, {"what": "population", "seed": which, "limit": TOY_LIMIT[full]}))
    drawn = where_plain_arrives(LAW_SEED + 1000 * seed)
    for tau in LAW:
        found.append(Cell(f"rate tau={tau}", law, {"what": "law", "seed": drawn, "tau": tau, "limit": LAW_LIMIT}))
    return found


def example(what: str, **given: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    if what == "constants":
        return {"constants": [0.6, 10.0, 0.94], "ranges": [-0.36, 0.03], "still": [0.0, 0.0]}
    if what == "toy":
        value = [0.8**t for t in range(100)]
        return {"value": value, "rises": 0, "reached": 90.0, "arrived": True, "diverged": False}
    if what == "population":
        return {
            "runs": [{"reached": 50.0, "arrived": True, "rises": 0, "diverged": False}] * len(MANY),
            "plain": 40.0,
            "bound": 0.01,
        }
    grid = np.linspace(-0.95, 0.99, 98).tolist()
    rates = {"measured": 0.9, "predicted": 0.9, "best": [0.5, 0.7]}
    return {"reached": 100.0, **rates, "grid": grid, "curve": [0.9] * len(grid)}


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the counts of the toy, the shares of the population, and the rates."""
    [known] = pick(rows, what="constants")
    numbers: dict[str, list[float]] = {name: list(known[name]) for name in ("constants", "ranges", "still")}
    for step in STEPS:
        here = pick(rows, what="toy", step=step)
        numbers[f"{step} its"] = [inf if row["reached"] is None else row["reached"] for row in here]
        numbers[f"{step} diverged"] = [float(row["diverged"]) for row in here]
        if "published" not in step:
            numbers[f"{step} rises"] = [row["rises"] for row in here if -1.0 < row["tau"] < 1.1]
    counted = _counted(rows)
    numbers["median bound"] = [float(np.median([row["bound"] for row in counted]))] if counted else [inf]
    numbers |= _shares(counted)
    rates = pick(rows, what="law")
    numbers["law its"] = [row["reached"] for row in rates]
    numbers["law measured"] = [row["measured"] for row in rates]
    numbers["law predicted"] = [row["predicted"] for row in rates]
    numbers["law best"] = list(rates[0]["best"])
    return numbers if full else numbers | _claims(rows)


def _claims(rows: list[Row]) -> dict[str, list[float]]:
    """Return what the caption and Section 4 claim of the toy and of its population, as numbers."""
    [known] = pick(rows, what="constants")
    here = {row["tau"]: row for row in pick(rows, what="toy", step="1/beta_k")}
    arrive = [tau for tau, row in here.items() if row["reached"] is not None]
    shares = _shares(_counted(rows))
    at_9 = [row["runs"][MANY.index(0.9)] for row in _counted(rows)]
    rates = pick(rows, what="law")
    return {
        "published range": [known["ranges"][0]],
        "largest tau / range": [max(arrive) / known["ranges"][1]],
        "least tau / range": [min(arrive) / known["ranges"][1]],
        "its .25 / its 0": [here[0.25]["reached"] / here[0.0]["reached"]],
        "rises at .25": [here[0.25]["rises"]],
        "rises at .9": [here[0.9]["rises"]],
        "diverged at -1.3": [shares["diverged"][MANY.index(-1.3)]],
        "diverged at 1.5": [shares["diverged"][MANY.index(1.5)]],
        "median rises at .9": [float(np.median([run["rises"] for run in at_9]))],
        "arrive at .9": [float(np.mean([run["arrived"] for run in at_9]))],
        "law, its .25 / its 0": [rates[LAW.index(0.25)]["reached"] / rates[0]["reached"]],
        "law, its .5 / its 0": [rates[LAW.index(0.5)]["reached"] / rates[0]["reached"]],
    }


def _counted(rows: list[Row]) -> list[Row]:
    """Return the toys on which plain hard thresholding arrives."""
    return [row for row in pick(rows, what="population") if row["runs"]]


def _shares(rows: list[Row]) -> dict[str, list[float]]:
    """Return for each momentum the shares with success, divergence, three rises, and the iterations over tau = 0."""
    shares: dict[str, list[float]] = {"success": [], "diverged": [], "ripples": [], "its ratio": []}
    for place, _ in enumerate(MANY):
        runs = [row["runs"][place] for row in rows]
        ratios = [
            run["reached"] / row["plain"] for run, row in zip(runs, rows, strict=True) if run["reached"] is not None
        ]
        shares["success"].append(len(ratios) / len(rows))
        shares["diverged"].append(float(np.mean([run["diverged"] for run in runs])))
        shares["ripples"].append(float(np.mean([run["rises"] >= 3 for run in runs])))
        shares["its ratio"].append(float(np.median(ratios)) if ratios else inf)
    return shares


PANELS = [
    ("negative momentum: slower, then divergence", [-1.2, -1.1, -0.9, -0.3, 0.0]),
    ("0 to 1/2: faster and faster, hardly a ripple", [0.0, 0.1, 0.25, 0.5]),
    ("beyond 1/2: ripples, then divergence", [0.5, 0.75, 1.0, 1.1, 1.3]),
]


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw f over the iterations in the three regimes, the counts and shares over tau, and the law of the rate."""
    title = "A toy (6 × 10, k = 2): the momentum may be far outside the published range, which ends at 0.03"
    figure, panels = new_figure(2, 3, title)
    for panel, (name, taus) in zip(panels, PANELS, strict=False):
        for line, tau in enumerate(taus):
            [row] = pick(rows, what="toy", step="1/beta_k", tau=tau)
            style = LINES[line]
            at = np.arange(len(row["value"]))
            panel.plot(at, row["value"], label=f"τ = {tau:g}", linewidth=1.5, markersize=4, markevery=0.12, **style)
        panel.set_yscale("log")
        panel.set_ylim(1e-14, 1e9)
        panel.set_xlim(0, 160)
        label(panel, name, "iterations", "f(x)")
        legend(panel, loc="upper right", ncols=2)
    bound = pick(rows, what="constants")[0]["ranges"][1]
    for line, step in enumerate(("1/beta_k", "1/L")):
        here = [row for row in pick(rows, what="toy", step=step) if row["reached"] is not None]
        panels[3].plot(
            [row["tau"] for row in here],
            [row["reached"] for row in here],
            label=f"step {STEPS[step]}",
            linewidth=1.6,
            markersize=5,
            **LINES[line],
        )
    panels[3].axvspan(-bound, bound, color=MUTED, alpha=0.35, linewidth=0)
    panels[3].set_yscale("log")
    panels[3].set_xlim(-1.35, 1.55)
    label(panels[3], "the same toy: iterations to f = 10⁻¹⁴", "momentum τ", "iterations")
    legend(panels[3], loc="lower left")
    counted = _counted(rows)
    names = {"success": "arrives", "diverged": "diverges", "ripples": "f rises ≥ 3 times"}
    for line, (key, name) in enumerate(names.items()):
        panels[4].plot(MANY, _shares(counted)[key], label=name, linewidth=1.6, markersize=5, **LINES[line])
    panels[4].axvspan(-bound, bound, color=MUTED, alpha=0.35, linewidth=0)
    label(panels[4], f"{len(counted)} toys on which plain IHT arrives", "momentum τ", "share of the toys")
    legend(panels[4], loc="center", bbox_to_anchor=(0.36, 0.5))
    rates = pick(rows, what="law")
    panels[5].plot(rates[0]["grid"], rates[0]["curve"], color=LINES[0]["color"], linewidth=1.6, label="predicted")
    panels[5].plot(
        [row["tau"] for row in rates],
        [row["measured"] for row in rates],
        "s",
        color=LINES[1]["color"],
        label="measured",
    )
    label(panels[5], "120 × 400, k = 8: error per iteration", "momentum τ", "factor, once the support is found")
    legend(panels[5], loc="lower left")
    panels[5].set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    notes = "grey band: the range of τ in the caption, which leaves out φ; with φ, as in the theorem, no τ is allowed"
    remark(figure, f"{notes}. Above: step 1/βₖ. In the middle below: those of {TOYS[full]} toys, step 1/βₖ.")
    return {"fig1_toy": figure}


TITLE = "Figure 1: the toy under every momentum, the same on 150 toys, and the law of the rate"
ITEM = Item(TITLE, cells, summarise, draw, example)
