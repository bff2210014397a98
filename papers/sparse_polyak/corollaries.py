"""Corollaries 2 to 5, Lemmas 1, 2 and 7, (14): how constants, the gradient and the final error scale with n, d and s.

Algorithm 1 with c = 5 and the target f(theta*). The corollaries bound its squared error by a constant times
s log(d) / n, or s d / n for matrices. Quick and full are the same.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, legend, medians, new_figure, remark
from scipy.special import expit

from hardthresh.constraints import Rank, Sparsity
from hardthresh.diagnostics import restricted_bounds, restricted_condition, statistical_constants
from hardthresh.objectives import LinearModel
from hardthresh.steps import SparsePolyak

from ._common import LOSS, Problem, first, follow, measured, planted
from ._common import example as drawn_up
from ._convexity import least_curvature, unit
from ._data import ar1_problem
from ._slopes import slope

# of n, d and s one is varied
SWEEPS: dict[str, dict[str, Any]] = {
    "linear over n": {"model": "linear", "n": [1000, 2000, 4000, 8000], "d": [300], "s": [20]},
    "linear over d": {"model": "linear", "n": [2000], "d": [100, 400, 1600], "s": [20]},
    "linear over s": {"model": "linear", "n": [4000], "d": [300], "s": [40, 80, 160]},
    "linear near s*": {"model": "linear", "n": [4000], "d": [300], "s": [20, 40]},
    "logistic over n": {"model": "logistic", "n": [2000, 4000, 8000, 16000], "d": [200], "s": [20]},
    "low rank over n": {"model": "low rank", "n": [1000, 2000, 4000, 8000], "d": [20], "s": [3]},
    "low rank over d": {"model": "low rank", "n": [4000], "d": [16, 32, 48], "s": [3]},
}
VARIED = {name: next(size for size in "nds" if len(sweep[size]) > 1) for name, sweep in SWEEPS.items()}
DATA_SETS = {"linear": 3, "logistic": 6, "low rank": 3}
"""Of each size: the errors of logistic regression differ most."""

S_STAR, RANK_STAR = 10, 2
COROLLARY = {"linear": "least squares", "logistic": "logistic"}
SQUARED_NORM = {"linear": 10.0, "logistic": 4.0}
"""Of the coefficients, the same for all sizes; features have variance 4/3."""

LIMITS = {"linear": (150, 0.0), "logistic": (500, 3e-4), "low rank": (150, 0.0)}
"""Iterations, and the share of the gap f - f(theta*) at which a run ends: the logistic ones are slow."""

DIMENSIONS = [500, 2000, 8000]
"""For the smoothness constants, with n = 2 s log d and s = 10."""

SIGNALS = [4.0, 16.0, 64.0, 256.0]
"""R = |theta*|^2 of Corollary 5."""

REACHED = SIGNALS[:2]
"""Those with which every run comes within 1 of the truth."""

CONVEXITY = {"over d": [(100, 10), (400, 10), (1600, 10)], "over n": [(400, 5), (400, 10), (400, 20), (400, 40)]}
"""d and s for (14), with n = 20 s log d, so that s log(d) / n is the same for all."""

DISTANCES = [0.1, 0.3, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0]
"""|y - x| in (14)."""

PLACES = ("convexity", "convexity elsewhere")
"""x in (14) is a multiple of the truth, or not."""

CENTRES = [4.0, 64.0, 1024.0]
"""|x|^2 in (14): that of the truth, and of its multiples."""

LARGEST, SMALLEST = 4.0, 4.0 / 9.0
"""Bounds of the eigenvalues of the covariance of features with correlation 1/2: (1 - 1/2)^-2 and (1 + 1/2)^-2."""


def radius(model: str, n: int, d: int, s: int, seed: int) -> dict[str, Any]:
    """Follow Algorithm 1, and return the gradient at the truth with its bound by the corollary."""
    limit, until = LIMITS[model]
    known: dict[str, Any] = {"n": n, "d": d, "k": s, "noise": 0.5}
    if model == "low rank":
        problem, constraint = measured(d, RANK_STAR, n, 0.0, seed), Rank(s)
        promised = statistical_constants("low rank", eigenvalues=(1.0, 1.0), **known)
    else:
        settings = {"model": model, "n_samples": n, "coef_squared_norm": SQUARED_NORM[model]}
        drawn, constraint = ar1_problem(d, s, S_STAR, seed=seed, **settings), Sparsity(s)
        objective = LinearModel(drawn.X, drawn.y, loss=LOSS[model])
        problem = Problem(objective, drawn.coef, objective.value(drawn.coef))
        known["column_norm"] = float(np.linalg.norm(drawn.X, axis=0).max()) / math.sqrt(n)
        promised = statistical_constants(COROLLARY[model], eigenvalues=(SMALLEST, LARGEST), **known)
    at_truth = constraint.hard_threshold(problem.objective.evaluate(problem.truth).gradient)
    gradient = float(np.sum(at_truth**2))
    return {
        **follow(problem, constraint, SparsePolyak(problem.f_star), limit, until),
        "gradient": gradient,
        "gradient_over_bound": gradient / promised.gradient_norm**2,
        "error_bound": 36.0 * (promised.gradient_norm / promised.strong_convexity) ** 2,  # with tau = 0
    }


def smoothness(d: int, seed: int) -> dict[str, Any]:
    """Return the Lipschitz constant of the gradient of least squares, and a lower estimate of the restricted one."""
    drawn = ar1_problem(d, 10, 5, alpha=2.0, seed=seed)
    X, n = drawn.X, len(drawn.y)
    found = restricted_condition(LinearModel(X, drawn.y), Sparsity(10), factor=3, trials=4)
    return {"full": float(np.linalg.eigvalsh(X @ X.T / n)[-1]), "restricted": found.smoothness}


def lemma(model: str, seed: int) -> dict[str, Any]:
    """Return bounds of the restricted constants on 3s features over L and mu of Lemma 1 or Appendix C.1.

    For logistic regression all examples are divided by the norm of the longest, as Lemma 1 needs, and the constants
    are those at the truth, whose norm is 1.
    """
    n, d, s = 2000, 100, 12
    drawn = ar1_problem(d, s, 5, n_samples=n, coef_squared_norm=1.0, seed=seed)
    longest = float(np.linalg.norm(drawn.X, axis=1).max()) if model == "logistic" else 1.0
    X, eigenvalues = drawn.X / longest, (SMALLEST / longest**2, LARGEST / longest**2)
    y = (np.random.default_rng(seed).random(n) < expit(X @ drawn.coef)).astype(float) if longest > 1.0 else drawn.y
    within = restricted_bounds(LinearModel(X, y, loss=LOSS[model]), 3 * s, drawn.coef)
    promised = statistical_constants(COROLLARY[model], n=n, d=d, k=s, eigenvalues=eigenvalues, signal=1.0)
    upper = promised.smoothness if model == "linear" else 1.0  # L + 3 tau s of Lemma 1
    return {
        "smoothness": within.smoothness[1] / upper,
        "strong_convexity": within.strong_convexity[0] / promised.strong_convexity,
    }


def signal(squared_norm: float, seed: int) -> dict[str, Any]:
    """Follow the algorithm of Corollary 5, with the norm of 2s entries, on a logistic problem with R as given."""
    problem = planted("logistic", 200, 10, 5, seed, n_samples=4000, coef_squared_norm=squared_norm)
    return follow(problem, Sparsity(10), SparsePolyak(problem.f_star, relax=2), 2000)


def convexity(d: int, s: int, squared_norm: float, elsewhere: bool, seed: int) -> dict[str, Any]:
    """Return the least left side of (14) over |y - x|^2, for y - x with 3s non-zeros, and logistic regression.

    x is the multiple of the truth, or of a random vector with s non-zeros, that has the squared norm.
    """
    drawn = ar1_problem(d, s, 5, model="logistic", alpha=20.0, coef_squared_norm=CENTRES[0], seed=seed)
    start = np.random.default_rng((seed, s)).standard_normal(d) if elsewhere else drawn.coef
    objective = LinearModel(drawn.X, drawn.y, loss="logistic")
    step = 4.0 / LARGEST  # the inverse of the largest curvature that is expected
    least = least_curvature(objective, math.sqrt(squared_norm) * unit(start, s), 3 * s, DISTANCES, step, seed)
    return {"least": least.tolist()}


def run(what: str, model: str, n: int, d: int, s: int, squared_norm: float, seed: int) -> dict[str, Any]:
    """Return what one problem says of a radius, of the constants, or of the strength of the signal."""
    if what == "radius":
        return radius(model, n, d, s, seed)
    if what == "smoothness":
        return smoothness(d, seed)
    if what in PLACES:
        return convexity(d, s, squared_norm, what == PLACES[1], seed)
    return lemma(model, seed) if what == "lemma" else signal(squared_norm, seed)


def example(what: str, model: str, n: int, d: int, s: int, squared_norm: float, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    if what == "radius":
        return {**drawn_up(20, seed), "gradient": s / n, "gradient_over_bound": 0.5, "error_bound": 2.0}
    if what == "smoothness":
        return {"full": float(d), "restricted": 5.0}
    if what == "lemma":
        return {"smoothness": 0.5, "strong_convexity": 2.0}
    if what in PLACES:
        return {"least": [0.02 / (1.0 + distance) / squared_norm for distance in DISTANCES]}
    return {**drawn_up(60, seed), "error": [squared_norm * 0.9**t for t in range(61)]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each problem."""
    blank = {"model": "", "n": 0, "d": 0, "s": 0, "squared_norm": 0.0}
    settings: list[dict[str, Any]] = []
    sizes: list[dict[str, Any]] = []  # some are in two sweeps
    for sweep in SWEEPS.values():
        for n, d, s in product(sweep["n"], sweep["d"], sweep["s"]):
            size = {**blank, "what": "radius", "model": sweep["model"], "n": n, "d": d, "s": s}
            settings += [
                {**size, "seed": which} for which in data_seeds(seed, DATA_SETS[sweep["model"]]) if size not in sizes
            ]
            sizes.append(size)
    settings += [{**blank, "what": "smoothness", "d": d, "seed": seed} for d in DIMENSIONS]
    settings += [{**blank, "what": "lemma", "model": model, "seed": seed} for model in SQUARED_NORM]
    for norm in SIGNALS:
        settings += [{**blank, "what": "signal", "squared_norm": norm, "seed": which} for which in data_seeds(seed, 2)]
    sizes_of_14 = list(dict.fromkeys(size for sweep in CONVEXITY.values() for size in sweep))
    places = [(what, d, s, CENTRES[0]) for what in PLACES for d, s in sizes_of_14]
    places += [(PLACES[0], *CONVEXITY["over d"][1], norm) for norm in CENTRES[1:]]
    for what, d, s, norm in places:
        settings.append({**blank, "what": what, "d": d, "s": s, "squared_norm": norm, "seed": seed})
    name = "{what} {model} n={n} d={d} s={s} R={squared_norm:g} seed={seed}"
    return [Cell(name.format(**setting), run, setting) for setting in settings]


def points(rows: list[Row], sweep: dict[str, Any], varied: str, what: str) -> list[float]:
    """Return the geometric means, over the data sets, of the final errors or another number at each size."""
    numbers = np.array(by_data_set(rows, sweep, varied, what))
    return [float(mean) for mean in np.exp(np.mean(np.log(numbers), axis=0))]


def by_data_set(rows: list[Row], sweep: dict[str, Any], varied: str, what: str) -> list[list[float]]:
    """Return the final errors or another number at each size, one list for each data set."""
    found = []
    for value in sweep[varied]:
        size = {name: value if name == varied else sweep[name][0] for name in ("n", "d", "s")}
        chosen = pick(rows, what="radius", model=sweep["model"], **size)
        found.append([row["error"][-1] if what == "error" else row[what] for row in chosen])
    return [list(numbers) for numbers in zip(*found, strict=True)]


def within_1(rows: list[Row], squared_norm: float) -> list[float]:
    """Return the first iterations at which the distance to the truth is at most 1, for one R; or inf."""
    return [first(row["error"], [1.0])[0] for row in pick(rows, what="signal", squared_norm=squared_norm)]


def of_corollary_5(rows: list[Row]) -> dict[str, float]:
    """Return how the iterations to a distance of 1 grow with log R, and how many runs with a larger R come so near."""
    means = [float(np.mean(within_1(rows, R))) for R in REACHED]
    strong = [count for R in SIGNALS[len(REACHED) :] for count in within_1(rows, R)]
    return {
        "corollary 5 growth over log R": means[1] / means[0] / (math.log(REACHED[1]) / math.log(REACHED[0])),
        "corollary 5 share within 1, R >= 64": float(np.mean(np.isfinite(strong))),
    }


def summarise(rows: list[Row], full: bool) -> dict[str, float]:
    """Return exponents, ratios of measured constants to those of the lemmas, and how iterations grow with log R."""
    numbers: dict[str, float] = {}
    for name, sweep in SWEEPS.items():
        varied = VARIED[name]
        numbers[f"{name}: error"] = slope(sweep[varied], points(rows, sweep, varied, "error"))
        if varied == "n":
            numbers[f"{name}: gradient"] = slope(sweep["n"], points(rows, sweep, "n", "gradient"))
            here = pick(rows, what="radius", model=sweep["model"])
            numbers[f"{sweep['model']} gradient / bound"] = max(row["gradient_over_bound"] for row in here)
            if sweep["model"] != "logistic":  # that of its curvature needs examples of norm 1 at most
                worst = max(row["error"][-1] / row["error_bound"] for row in here)
                numbers[f"{sweep['model']} error / bound"] = worst
    for model in SQUARED_NORM:
        sweep = SWEEPS[f"{model} over n"]
        numbers[f"{model} f(theta*) over n"] = slope(sweep["n"], points(rows, sweep, "n", "f_star"))
        [row] = pick(rows, what="lemma", model=model)
        numbers |= {f"{model} {what} / lemma": row[what] for what in ("smoothness", "strong_convexity")}
    for what in ("full", "restricted"):
        constants = [row[what] for d in DIMENSIONS for row in pick(rows, what="smoothness", d=d)]
        numbers[f"{what} smoothness over d"] = slope(DIMENSIONS, constants)
    return numbers | of_corollary_5(rows) | of_weak_convexity(rows)


def of_weak_convexity(rows: list[Row]) -> dict[str, float]:
    """Return how the constant of (14) depends on d, n, x, and where the quadratic form (2) fails."""
    numbers: dict[str, float] = {}
    for what, name in zip(PLACES, ("truth", "elsewhere"), strict=True):
        for varied, sweep in CONVEXITY.items():
            constants = [constant_of_14(rows, what, d, s, CENTRES[0]) for d, s in sweep]
            sizes = [d if varied == "over d" else s for d, s in sweep]  # n is a multiple of s
            numbers[f"(14a) {varied}, {name}"] = slope(sizes, constants)
    curves = [np.array(row["least"]) for what in PLACES for row in pick(rows, what=what, squared_norm=CENTRES[0])]
    near = sum(distance <= 1.0 for distance in DISTANCES)
    beyond = np.array(DISTANCES[near:])
    ratios = [np.min(curve[near:] * beyond) / np.min(curve[:near]) for curve in curves]
    numbers["(14b) over (14a)"] = float(np.mean(ratios))
    numbers["quadratic form beyond 1"] = max(slope(DISTANCES[-3:], list(curve[-3:])) for curve in curves)
    d, s = CONVEXITY["over d"][1]
    numbers["(14a) over |x|"] = slope(
        [math.sqrt(norm) for norm in CENTRES], [constant_of_14(rows, PLACES[0], d, s, norm) for norm in CENTRES]
    )
    return numbers


def constant_of_14(rows: list[Row], what: str, d: int, s: int, norm: float) -> float:
    """Return half of mu in (14a), up to the term with tau: the least over distances of at most 1."""
    [row] = pick(rows, what=what, d=d, s=s, squared_norm=norm)
    return min(row["least"][: sum(distance <= 1.0 for distance in DISTANCES)])


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the final errors over n, d and s, and the smoothness constants over d."""
    figure, panels = new_figure(2, 2, "The error that Sparse Polyak ends with, and the constants of its theory")
    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
    models = list(DATA_SETS)
    for panel, varied in zip(panels, "nds", strict=False):
        for name, sweep in SWEEPS.items():
            if VARIED[name] == varied and " near " not in name:
                model = sweep["model"]
                medians(panel, sweep[varied], by_data_set(rows, sweep, varied, "error"), model, models.index(model))
        label(panel, f"error over {varied}", varied, "squared error at the end")
    for line, what in enumerate(("full", "restricted"), start=len(models)):
        constants = [row[what] for d in DIMENSIONS for row in pick(rows, what="smoothness", d=d)]
        name = "all directions" if what == "full" else "sparse directions"
        panels[3].plot(DIMENSIONS, constants, label=name, linewidth=1.6, markersize=5, **LINES[line])
    label(panels[3], "smoothness constant over d", "d", "largest curvature")
    for panel in panels:
        legend(panel)
    errors = "errors: medians of three data sets, bands their range (logistic: of six, the middle half)"
    remark(figure, f"{errors}; constants: one data set")
    return {"corollaries": figure}


ITEM = Item(
    "Corollaries 2 to 5, Lemmas 1, 2 and 7, (14): errors and constants over n, d and s", cells, summarise, draw, example
)
