"""Theorems 1 and 2, Corollary 1 and Lemmas 3 to 6, along runs.

The theorems need a budget of at least 57,600 times the number of non-zeros. The problems "uncoupled" have it: their
features do not overlap, so that the restricted constants are known and every assumption holds. The problems
"independent" and "correlated" are regressions of usual size; their constants are bounded from both sides, the worse
bounds are used, and the assumption on the budget does not hold. Quick and full are the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import INK, LINES, MUTED, curves, label, legend, new_figure, remark, shared_legend
from scipy import sparse

from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.diagnostics import (
    RestrictedBounds,
    SparsePolyakGuarantee,
    restricted_bounds,
    sparse_polyak_guarantee,
)
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import AdaptiveSparsePolyak, SparsePolyak

from ._common import Problem, first, follow
from ._common import example as drawn_up
from ._data import Drawn, ar1_problem

KAPPA, UNCOUPLED_STAR = 1.1, 2
"""The condition number and the non-zeros of the truth of "uncoupled", whose budget (240 kappa)^2 k* is then 139,392."""

D, N, S, S_STAR = 100, 2000, 12, 5
"""Features, examples, budget and non-zeros of the truth of the regressions; n is large enough for kappa to be small."""

OMEGA = {"independent": 0.0, "correlated": 0.5}
STRENGTHS = [1.01, 0.1, 0.01]
"""The smallest non-zero of the truth over that of the SNR condition."""

FAR = {"uncoupled": 100.0, "independent": 10.0, "correlated": 10.0}
"""The same where the run of Theorem 1 starts far from the truth; 0 in the other cells: as drawn."""

OFFSET = 10.0
"""For Theorem 2: added to f, in units of the accuracy that it promises, so that the first bound is far too low."""

NAMES = {
    "uncoupled": "all assumptions hold",
    "independent": "independent features",
    "correlated": "features with ω = 0.5",
}


class Setting(NamedTuple):
    """A problem, its budget, the number of non-zeros of its truth, and its restricted constants."""

    problem: Problem
    k: int
    k_star: int
    smoothness: float
    strong_convexity: float

    @property
    def gradient(self) -> Any:
        """The gradient at the truth."""
        return self.problem.objective.evaluate(self.problem.truth).gradient

    @property
    def size(self) -> float:
        """The norm of its k entries of largest magnitude."""
        return leading(self.gradient, self.k)

    def guarantee(self, **known: Any) -> SparsePolyakGuarantee:
        """Return what the paper guarantees for a run from 0."""
        distance = float(np.linalg.norm(self.problem.truth))
        return sparse_polyak_guarantee(
            self.smoothness,
            self.strong_convexity,
            self.size,
            k=self.k,
            k_star=self.k_star,
            distance=distance,
            **known,
        )


def leading(gradient: Any, size: int) -> float:
    """Return the norm of the entries of largest magnitude."""
    return float(np.linalg.norm(Sparsity(size).hard_threshold(gradient)))


def with_offset(X: Any, y: Any, truth: Any, offset: float) -> Problem:
    """Return least squares with one more example, which has no features and adds `offset` to f everywhere."""
    n, d = X.shape
    X = sparse.vstack([X, sparse.csc_array((1, d))]).tocsc() if sparse.issparse(X) else np.vstack([X, np.zeros(d)])
    objective = LinearModel(X, np.append(y, math.sqrt(2.0 * (n + 1) * offset)))
    return Problem(objective, truth, objective.value(truth))


def uncoupled(kappa: float, k_star: int, c: int, strength: float, seed: int, offset: float = 0.0) -> Setting:
    """Return least squares on features without overlap, with the budget (c kappa)^2 k* that a theorem needs.

    The curvatures lie between 1 and kappa, both included; the noise has variance 1. Every non-zero of the truth is
    between `strength` and 1.5 `strength` times the smallest one of the SNR condition. Draw order: the curvatures, the
    noise, the support, the magnitudes, the signs.
    """
    k = math.ceil((c * kappa) ** 2 * k_star)
    d = math.ceil(1.05 * k)
    rng = np.random.default_rng(seed)
    curvature = rng.uniform(1.0, kappa, d)
    curvature[:2] = 1.0, kappa
    noise = rng.standard_normal(d)
    X = sparse.diags_array(np.sqrt((d + 1) * curvature)).tocsc()
    smallest = strength * 7.0 * leading(np.sqrt(curvature / (d + 1)) * noise, k)
    truth = np.zeros(d)
    where = rng.choice(d, k_star, replace=False)
    truth[where] = smallest * rng.uniform(1.0, 1.5, k_star) * rng.choice([-1.0, 1.0], k_star)
    return Setting(with_offset(X, X @ truth + noise, truth, offset), k, k_star, kappa, 1.0)


@lru_cache(maxsize=1)
def design(kind: str, seed: int) -> tuple[Drawn, RestrictedBounds]:
    """Return the data of a regression of usual size, and bounds of its restricted constants on 3k features."""
    drawn = ar1_problem(D, S, S_STAR, n_samples=N, correlation=OMEGA[kind], seed=seed)
    return drawn, restricted_bounds(with_offset(drawn.X, drawn.y, drawn.coef, 0.0).objective, 3 * S)


def regression(kind: str, seed: int, strength: float = 0.0, offset: float = 0.0) -> Setting:
    """Return a regression of usual size, with the worse bounds of its restricted constants.

    Given a strength, every non-zero of the truth has that many times the magnitude of the SNR condition.
    """
    drawn, within = design(kind, seed)
    truth, smoothness, convexity = drawn.coef, within.smoothness[1], within.strong_convexity[0]
    noise = drawn.y - drawn.X @ truth
    if strength:
        size = leading(drawn.X.T @ noise / (N + 1), S)
        truth = strength * 7.0 * size / convexity * np.sign(truth)
    problem = with_offset(drawn.X, drawn.X @ truth + noise, truth, offset)
    return Setting(problem, S, S_STAR, smoothness, convexity)


def contraction(kind: str, strength: float, limit: int, seed: int) -> dict[str, Any]:
    """Follow Algorithm 1, and return the constants of Theorem 1 for the problem."""
    if kind == "uncoupled":
        setting = uncoupled(KAPPA, UNCOUPLED_STAR, 240, strength, seed)
    else:
        setting = regression(kind, seed, strength)
    promised = setting.guarantee()
    wider = leading(setting.gradient, setting.k + setting.k_star)
    followed = follow(setting.problem, Sparsity(setting.k), SparsePolyak(setting.problem.f_star), limit)
    assert promised.least_step is not None
    return {
        **followed,
        "rate": promised.rate,
        "radius": promised.radius**2,
        "final_radius": promised.final_radius**2,
        "lemma_6_radius": 18.0 * (wider / setting.strong_convexity) ** 2,
        "step_over_least": [step / promised.least_step for step in followed["step"]],
        "iterations": promised.iterations,
        "found": [count / setting.k_star for count in followed["found"]],
    }


def lemmas(kind: str, limit: int, seed: int) -> dict[str, Any]:
    """Return the left sides of Lemmas 3, 4 and 5 over their right sides, at each step of Algorithm 1.

    Lemma 3 is about all coordinates, and the vector with k* non-zeros that is nearest to z: there it is tightest.
    """
    problem, k, k_star, smoothness, convexity = regression(kind, seed)
    states: list[Any] = []
    rule = IHT(step=SparsePolyak(problem.f_star))
    minimize(problem.objective, Sparsity(k), rule, max_iter=limit, tol=0.0, callback=states.append)
    ratios: dict[str, list[float]] = {"lemma_3": [], "lemma_4": [], "lemma_5": []}
    truth = problem.objective.evaluate(problem.truth)
    expansion = (1.0 + math.sqrt(k_star / k)) ** 2
    for state, new in pairwise(states):
        at = problem.objective.evaluate(state.w)
        z = state.w - new.step * at.gradient
        squares = np.sort(z**2)[::-1]
        ratios["lemma_3"].append(squares[k:].mean() / squares[k_star:].mean())
        before, after = (float(np.sum((point - problem.truth) ** 2)) for point in (state.w, new.w))
        ratios["lemma_4"].append(after / before / (expansion * (1.0 - convexity * new.step)))
        excess = truth.value - at.value - at.gradient @ (problem.truth - state.w)
        ratios["lemma_5"].append(leading(truth.gradient - at.gradient, k) ** 2 / (2.0 * smoothness * excess))
    return ratios


def epochs(kind: str, seed: int) -> dict[str, Any]:
    """Follow Algorithm 2 with epochs of the length of Theorem 2, as long as it may need to."""

    def setting(offset: float) -> Setting:
        if kind == "uncoupled":
            return least_squares(uncoupled(1.0, 1, 480, 1.5, seed, offset))
        return least_squares(regression(kind, seed, offset=offset))

    accuracy = setting(0.0).guarantee(theorem="learned target").value_gap
    assert accuracy is not None
    given = setting(0.0 if kind == "uncoupled" else OFFSET * accuracy)  # one epoch of many features is enough
    promised = given.guarantee(theorem="learned target", gap=given.problem.f_star)  # the first bound is 0
    T, gradients = int(promised.iterations or 0), int(promised.gradients or 0)
    followed = follow(given.problem, Sparsity(given.k), AdaptiveSparsePolyak(0.0, epoch_length=T), gradients)
    return {
        **followed,
        "accuracy": accuracy,
        "final_radius": promised.final_radius**2,
        "gradients": gradients,
        "found": [count / given.k_star for count in followed["found"]],
    }


def least_squares(setting: Setting) -> Setting:
    """Return the setting whose truth is that of Theorem 2: the least-squares fit on the support of the truth."""
    objective, truth = setting.problem.objective, setting.problem.truth
    assert isinstance(objective, LinearModel)
    support = np.flatnonzero(truth)
    null = objective.evaluate(np.zeros_like(truth))
    best = np.zeros_like(truth)
    best[support] = np.linalg.solve(objective.columns(support).hessian(null), -null.gradient[support])
    return setting._replace(problem=Problem(objective, best, objective.value(best)))


def run(what: str, kind: str, strength: float, limit: int, seed: int) -> dict[str, Any]:
    """Follow an algorithm on one problem, or check the lemmas at its steps."""
    if what == "lemmas":
        return lemmas(kind, limit, seed)
    return contraction(kind, strength, limit, seed) if what == "algorithm 1" else epochs(kind, seed)


def example(what: str, kind: str, strength: float, limit: int, seed: int) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    if what == "lemmas":
        return {f"lemma_{number}": [0.5] * limit for number in (3, 4, 5)}
    result = {**drawn_up(limit, seed), "found": [min(1.0, t / 10) for t in range(limit + 1)]}
    if what == "algorithm 2":
        return {**result, "accuracy": 0.1, "final_radius": 0.1, "gradients": limit}
    constants = {"rate": 0.99, "step_over_least": [2.0] * limit, "iterations": 100.0}
    return {**result, **constants, "radius": 0.1, "final_radius": 0.101, "lemma_6_radius": 0.1}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each kind of problem, data set and strength of the truth, and for each algorithm."""
    settings: list[dict[str, Any]] = []
    for strength in (FAR["uncoupled"], STRENGTHS[0]):
        settings.append({"what": "algorithm 1", "kind": "uncoupled", "strength": strength, "limit": 150, "seed": seed})
    for kind in OMEGA:
        for which in data_seeds(seed, 6):
            settings.append({"what": "lemmas", "kind": kind, "strength": 0.0, "limit": 60, "seed": which})
        for which in data_seeds(seed, 3):
            common = {"what": "algorithm 1", "kind": kind, "limit": 150, "seed": which}
            settings += [{**common, "strength": strength} for strength in (FAR[kind], *STRENGTHS)]
    for kind in NAMES:  # the theorem says how long
        settings.append({"what": "algorithm 2", "kind": kind, "strength": 0.0, "limit": 100, "seed": seed})
    return [
        Cell("{what} {kind} strength={strength:g} seed={seed}".format(**setting), run, setting) for setting in settings
    ]


def entry(row: Row) -> int:
    """Return the first iterate within the radius of Theorem 1; the number of iterates if there is none."""
    return int(min(first(row["error"], [row["radius"]])[0], len(row["error"])))


def worst_factor(row: Row, since: int, until: int) -> float:
    """Return the largest factor of the squared distance among these steps."""
    error = np.array(row["error"])[since : until + 1]
    return float(np.max(error[1:] / error[:-1], initial=0.0))


def least_step(row: Row) -> float:
    """Return the shortest step outside of the ball of Lemma 6, over what the lemma promises."""
    steps = zip(row["error"], row["value"], row["step_over_least"], strict=False)
    return min(step for error, value, step in steps if error >= row["lemma_6_radius"] and value > row["f_star"])


def of_theorem_1(runs: list[Row]) -> dict[str, float]:
    """Return the parts of Theorem 1, each over what is promised."""
    entries = [entry(row) for row in runs]
    pairs = [*zip(runs, entries, strict=True)]
    return {
        "contraction": max(worst_factor(row, 0, t0) / row["rate"] for row, t0 in pairs),
        "iterations": max(t0 / row["iterations"] for row, t0 in pairs),
        "ball": max(max(row["error"][t0:], default=inf) / row["final_radius"] for row, t0 in pairs),
        "least step": min(least_step(row) for row in runs),
    }


def of_corollary_1(runs: list[Row]) -> dict[str, float]:
    """Return the parts of Corollary 1, from the radius to the end: the support, and the largest factor of a step.

    With that factor at most 1 the distance stays below the radius, as Corollary 1 says too.
    """
    pairs = [(row, entry(row)) for row in runs]
    return {
        "support": min(min(row["found"][t0:], default=0.0) for row, t0 in pairs),
        "factor": max(worst_factor(row, t0, len(row["error"])) for row, t0 in pairs),
    }


def best_so_far(row: Row) -> Any:
    """Return the iterate with the lowest f up to each iterate."""
    value = np.array(row["value"])
    return np.maximum.accumulate(np.where(value <= np.minimum.accumulate(value), np.arange(len(value)), 0))


def of_theorem_2(row: Row) -> dict[str, float]:
    """Return the parts of Theorem 2 over its bounds: gradients until both accuracies, and the distance at the end."""
    value, error, best = np.array(row["value"]), np.array(row["error"]), best_so_far(row)
    there = (value[best] - row["f_star"] <= row["accuracy"]) & (error[best] <= row["final_radius"])
    return {
        "gradients": (float(np.argmax(there)) if there.any() else inf) / row["gradients"],
        "distance": error[best[-1]] / row["final_radius"],
    }


def summarise(rows: list[Row], full: bool) -> dict[str, float]:
    """Return the measured part of each statement over its bound, the worst over the data sets."""
    numbers: dict[str, float] = {}
    for kind in NAMES:
        far = pick(rows, what="algorithm 1", kind=kind, strength=FAR[kind])
        numbers |= {f"{kind} theorem 1 {what}": number for what, number in of_theorem_1(far).items()}
        near = pick(rows, what="algorithm 1", kind=kind, strength=STRENGTHS[0])
        numbers |= {f"{kind} corollary 1 {what}": number for what, number in of_corollary_1(near).items()}
        [row] = pick(rows, what="algorithm 2", kind=kind)
        reached = of_theorem_2(row)
        numbers[f"{kind} theorem 2 distance"] = reached["distance"]
        if kind != "correlated":  # the gradients promised there differ tenfold between data sets
            numbers[f"{kind} theorem 2 gradients"] = reached["gradients"]
        if kind == "uncoupled":  # the others are not drawn to satisfy the SNR condition
            numbers[f"{kind} remark 2 support"] = row["found"][-1]
    for kind in OMEGA:
        [row] = pick(rows, what="algorithm 2", kind=kind)
        numbers[f"{kind} theorem 2 bound"] = float(np.nanmax(row["bound"])) / row["f_star"]
        tested = pick(rows, what="lemmas", kind=kind)
        for number in (3, 4, 5):
            numbers[f"{kind} lemma {number}"] = max(max(row[f"lemma_{number}"]) for row in tested)
        for strength in STRENGTHS[1:]:
            runs = pick(rows, what="algorithm 1", kind=kind, strength=strength)
            share = float(np.mean([row["found"][-1] for row in runs]))
            numbers[f"{kind} support at {strength:g}"] = share
    return numbers


DASHES = dict(zip(STRENGTHS, ("-", "--", ":"), strict=True))


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the squared distances of both algorithms over what is promised, and the share of the support."""
    figure, panels = new_figure(1, 3, "Runs of Sparse Polyak and what its theorems promise", height=4.0)
    for line, (kind, name) in enumerate(NAMES.items()):
        far = pick(rows, what="algorithm 1", kind=kind, strength=FAR[kind])
        curves(panels[0], [np.array(row["error"]) / row["radius"] for row in far], name, line)
        [row] = pick(rows, what="algorithm 2", kind=kind)
        curves(panels[2], [np.array(row["error"])[best_so_far(row)][:150] / row["final_radius"]], name, line)
    for line, kind in enumerate(OMEGA, start=1):
        for strength, dash in DASHES.items():
            chosen = pick(rows, what="algorithm 1", kind=kind, strength=strength)
            curves(panels[1], [row["found"][:60] for row in chosen], None, {**LINES[line], "linestyle": dash})
    for panel in (panels[0], panels[2]):
        panel.axhline(1.0, color=MUTED, linewidth=0.8)
        panel.set_yscale("log")
    label(panels[0], "Algorithm 1", "iterations", "squared distance / radius² of Theorem 1")
    label(panels[1], "Corollary 1", "iterations", "share of the non-zeros that is found")
    label(panels[2], "Algorithm 2, best f so far", "iterations", "squared distance / radius² of Theorem 2")
    shared_legend(figure)
    dashes = [Line2D([], [], color=INK, linestyle=dash, label=f"{strength:g}") for strength, dash in DASHES.items()]
    place = {"loc": "upper right", "bbox_to_anchor": (1.0, 0.93)}  # between the lines
    legend(panels[1], handles=dashes, title="smallest non-zero / SNR", title_fontsize=8.5, **place)
    bands = "left and centre: medians of three data sets, bands their range (all assumptions hold: one data set)"
    remark(figure, f"{bands}; right: one data set, the first 150 iterations")
    return {"theorems": figure}


ITEM = Item("Theorems 1 and 2, Corollary 1, Lemmas 3 to 6: runs over what is promised", cells, summarise, draw, example)
