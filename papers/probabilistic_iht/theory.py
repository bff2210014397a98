"""Section 4 along runs: the inequalities, lemmas and theorems of the convergence theory, and the accuracy of batches.

No experiment of the paper. Each statement of Sections 3 and 4 is evaluated in every iteration of runs of Algorithm 1 on
sparse regression, where f and its gradient are known exactly. "published" is Algorithm 1 with the settings of Section
5, apart from the two thresholds, which are larger: with 1e-4 most bounds are too loose to compare with. "stable" is the
clip of our default. There is no full size: quick and full are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import curves, label, new_figure, remark, shared_legend

from hardthresh.constraints import Sparsity
from hardthresh.core.objective import value_rounding
from hardthresh.diagnostics import model_accuracy, probabilistic_guarantee

from ._common import PUBLISHED, Problem, follow, mean, regression, solver
from ._process import POINTS, Process, falls_in_expectation

DATA = {"n": 1000, "d": 200, "k": 10, "noise": 0.5, "low": 0.5, "high": 1.5}
SETS = 4  # data sets for each seed
ETAS = {"eta1": 0.25, "eta2": 1.0}  # the largest pair for which the clip "stable" was found to work in the tables (eta)
LIMIT = 400
RUNS: dict[str, dict[str, Any]] = {
    "published, all rows": {"eta1": 0.1},
    "restricted, all rows": {"eta1": 0.1, "clip": "restricted"},
    "stable, all rows": {**ETAS, "clip": "stable"},
    "small start, all rows": {**ETAS, "clip": "stable", "delta0": 1e-4},  # begins in Case 1 of the proof of Theorem 3
    "published, fixed 50": {"batch": ["fixed", 50]},
    "published, authors 50": {"batch": ["authors", 50]},
    "stable, power 4": {**ETAS, "clip": "stable", "batch": ["power", 50, 4.0]},
    "stable, norm test": {**ETAS, "clip": "stable", "batch": ["norm test", 50]},
}


@dataclass(frozen=True, slots=True)
class Iteration:
    """Lines 4 to 10 of one iteration."""

    x: Any
    g: Any
    trial: Any
    index_set: Any
    delta: float
    step: float  # min(alpha, delta / |g|), or with the part of g on the index set
    ratio: float
    accepted: bool

    @property
    def move(self) -> Any:
        return self.trial - self.x

    @property
    def restricted(self) -> float:
        """The norm of g on the index set."""
        return float(np.linalg.norm(self.g[self.index_set]))

    @property
    def drops(self) -> bool:
        """Whether the trial leaves out an entry of x."""
        return bool(np.setdiff1d(np.flatnonzero(self.x), self.index_set).size)


def iterations(states: list[Any], clip: str) -> list[Iteration]:
    """Return the iterations between successive states, the trials computed anew."""
    found = []
    for before, after in pairwise(states):
        x, g, chosen = before.w, before.at.gradient, after.index_set.indices
        kept = clip == "restricted" or (clip == "stable" and np.isin(np.flatnonzero(x), chosen).all())
        length = np.linalg.norm(g[chosen] if kept else g)
        step = min(before.scale.alpha, before.delta / length)
        trial = np.zeros_like(x)
        trial[chosen] = (x - step * g)[chosen]
        found.append(Iteration(x, g, trial, chosen, before.delta, step, after.ratio, after.accepted))
    return found


def run(name: str, settings: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
    """Follow one method on some data sets; return for each what the theory says of it."""
    return {"runs": [_measure(regression(seed, **DATA), settings, seed) for seed in seeds]}


def _measure(drawn: Problem, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    budget, states = Sparsity(DATA["k"]), []
    result, _ = follow(drawn.objective, budget, settings, LIMIT, seed=seed, states=states)
    f, clip = drawn.objective, settings.get("clip", "full")
    given = {**PUBLISHED, **{name: settings[name] for name in settings if name in PUBLISHED}}
    made = iterations(states, clip)
    at = [f.evaluate(state.w) for state in states]
    values = [one.value for one in at]
    accuracy = model_accuracy(
        f, budget, solver(settings), states,
        kappa_g=drawn.L, kappa_f=drawn.L, epsilon_f=0.25 * given["eta1"] * given["eta2"],
    )  # fmt: skip
    promised = probabilistic_guarantee(
        k=DATA["k"], smoothness=drawn.L, kappa_f=drawn.L, kappa_g=drawn.L, epsilon_f=0.0, gap=values[0] - min(values),
        **given,
    )  # fmt: skip
    part = [float(np.linalg.norm(one.gradient[it.index_set])) for one, it in zip(at, made, strict=False)]
    norms = [float(np.linalg.norm(one.gradient)) for one in at[: len(made)]]
    falls = [before - after for before, after in pairwise(values)]
    process = Process.of(promised, given["gamma"])
    phi = [process.fall(fall, *levels) for fall, levels in zip(falls, pairwise(s.delta for s in states), strict=True)]
    cases = [_case(process, f, one, size, it) for one, size, it in zip(at, part, made, strict=False)]
    rises = [fall < 0.0 for it, fall in zip(made, falls, strict=True) if it.accepted]
    return {
        "delta": [it.delta for it in made],
        "part": part,
        "gap": [value - drawn.best for value in values],
        "bound": promised.squared_levels,
        "floor": part[-1] / norms[-1] / given["eta1"],
        "accepted above": min(
            inside / whole / given["eta1"] for it, inside, whole in zip(made, part, norms, strict=False) if it.accepted
        ),
        "rises": float(np.mean(rises)),
        "descent": min(_descent(it) for it in made),
        "lemma 2": max(_lemma_2(f, it, given) for it in made),
        "lemma 3": max(_lemma_3(it, one.gradient, promised.a, given) for it, one in zip(made, at, strict=False)),
        "lemma 4": _lemma_4(f, drawn.L, made, clip, given) if "batch" not in settings else inf,
        "C": given["eta1"] * given["eta2"] - 2.0 * accuracy.epsilon_f,
        "trusted": [
            it.accepted and bool(error <= accuracy.epsilon_f)
            for it, error in zip(made, accuracy.value_errors, strict=True)
        ],
        "accurate": accuracy.accurate_models,
        "models": (1.0 - accuracy.accurate_models) / promised.failure_rate,
        "values": (1.0 - accuracy.accurate_values) / promised.failure_rate,
        "stationarity": _smallest_L(result.w, at[-1].gradient) / drawn.L,
        "accepted in case 1": [it.accepted for it, case in zip(made, cases, strict=True) if case == "1"],
        "(35)": [phi[t] / process.by_gradient(norms[t], it.delta) for t, it in enumerate(made) if cases[t] == "1"],
        "(36)": [phi[t] / process.by_increase(it.delta) for t, it in enumerate(made) if cases[t] == "1"],
        "(38)": [phi[t] / process.by_reduction(it.delta) for t, it in enumerate(made) if cases[t] == "2"],
        "phi": sum(phi) / sum(process.by_reduction(it.delta) for it in made),
        "expected": []
        if "batch" not in settings
        else falls_in_expectation(process, f, budget, solver(settings), states, seed),
    }


def _case(process: Process, f: Any, at: Any, part: float, it: Iteration) -> str:
    """Return the case of the proof of Theorem 3; none if the trial changes f by no more than its rounding in Case 1."""
    if not process.is_first_case(part, it.delta):
        return "2"
    return "1" if abs(it.ratio) * it.restricted * it.delta > value_rounding(f, at) else "none"


def _descent(it: Iteration) -> float:
    """Return the decrease of the linear model over its bound in (11): at least 1 if (11) holds."""
    squared = float(it.move @ it.move)
    return -float(it.g @ it.move) * it.step / squared if squared > 0.0 else inf


def _lemma_2(f: Any, it: Iteration, given: dict[str, float]) -> float:
    """Return by how much an iteration meets (15), the condition of Lemma 2, with the least kappa_f: 1 is enough."""
    length = float(np.linalg.norm(it.move))
    error = abs(f.value(it.trial) - f.value(it.x) - float(it.g @ it.move))
    kappa = error / (length * it.delta**2) if length > 0.0 else inf
    return length / (2.0 * given["alpha"] * kappa * given["delta_max"] * it.delta) if kappa > 0.0 else inf


def _lemma_3(it: Iteration, gradient: Any, a: float, given: dict[str, float]) -> float:
    """Return by how much an iteration meets (18), the condition of Lemma 3: 1 is enough."""
    step = min(given["alpha"], it.delta / float(np.linalg.norm(gradient)))
    point = np.zeros_like(it.x)
    point[it.index_set] = (it.x - step * gradient)[it.index_set]
    return a * float(np.linalg.norm(it.x - point)) / it.delta


def _lemma_4(f: Any, L: float, made: list[Iteration], clip: str, given: dict[str, float]) -> float:
    """Return the least ratio over eta1 where Lemma 4 promises acceptance: at least 1 if it keeps its promise.

    The gradient is exact, so that the model errs by at most L |move|^2 / 2: with the published clip kappa_f = 2 L, as
    |move| <= 2 delta, and with the restricted one, for which the lemma is about moves that drop nothing, L / 2. Trials
    that change f by less than its rounding are left out.
    """
    ratios = [inf]
    for it in made:
        if clip == "full":
            level = min(1.0 / given["eta2"], (1.0 - given["eta1"]) / (2.0 * L))
        else:
            level = min(given["alpha"], 1.0 / given["eta2"], (1.0 - given["eta1"]) / (0.5 * L))
        rounding = value_rounding(f, f.evaluate(it.x))
        large = abs(it.ratio) * it.restricted * it.delta > rounding
        if it.delta <= level * it.restricted and large and (clip == "full" or not it.drops):
            ratios.append(it.ratio)
    return min(ratios) / given["eta1"]


def _lemma_5(one: dict[str, Any]) -> float:
    """Return the least decrease by accepted steps with accurate values over that of Lemma 5: at least 1 if it holds."""
    falls = [before - after for before, after in pairwise(one["gap"])]
    steps = zip(falls, one["delta"], one["trusted"], strict=True)
    return min((fall / (one["C"] * delta**2) for fall, delta, trusted in steps if trusted), default=inf)


def _smallest_L(w: Any, gradient: Any) -> float:
    """Return the least L for which a basic feasible point is L-stationary."""
    return float(np.max(np.abs(gradient[w == 0]))) / float(np.min(np.abs(w[w != 0])))


def example(name: str, settings: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
    """Return what `run` could have returned, at once."""
    falling = [2.0**-t for t in range(40)]
    numbers = (
        "bound",
        "floor",
        "accepted above",
        "rises",
        "descent",
        "lemma 2",
        "lemma 3",
        "lemma 4",
        "C",
        "models",
        "values",
        "accurate",
    )
    one = {**dict.fromkeys([*numbers, "stationarity"], 0.5), "delta": falling[1:], "part": falling, "gap": falling}
    one |= {"(35)": falling, "(36)": falling, "(38)": falling, "phi": 2.0}
    one |= {"trusted": [True] * 39, "accepted in case 1": [True] * 20, "expected": [True] * POINTS}
    return {"runs": [one for _ in seeds]}


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each method."""
    seeds = list(data_seeds(seed, SETS))
    return [Cell(name, run, {"name": name, "settings": given, "seeds": seeds}) for name, given in RUNS.items()]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return by how much each statement is met: the worst of the runs for inequalities, else a mean over data sets."""
    of = {row["name"]: row["runs"] for row in rows}
    on_batches = [one for name in RUNS if "all rows" not in name for one in of[name]]
    numbers: dict[str, float] = {
        "(11): least decrease of the model over the bound": min(one["descent"] for one in on_batches),
        "Lemma 2: largest share of (15)": max(one["lemma 2"] for one in of["published, all rows"]),
        "Lemma 3: largest share of (18)": max(one["lemma 3"] for runs in of.values() for one in runs),
        "Lemma 5: least decrease over the bound": min(_lemma_5(one) for one in of["stable, all rows"]),
        "Lemma 5 on batches: least decrease over the bound": min(
            _lemma_5(one) for name in ("stable, power 4", "stable, norm test") for one in of[name]
        ),
        "floor: at the end": max(one["floor"] for one in of["published, all rows"]),
        "floor: least at an accepted step": min(one["accepted above"] for one in of["published, all rows"]),
        "steps that raise f": mean(of["published, fixed 50"], "rises"),
        "smallest L over L(f)": max(one["stationarity"] for one in of["stable, all rows"]),
    }
    numbers["published, authors 50: accurate models"] = mean(of["published, authors 50"], "accurate")
    for name in ("published", "restricted", "stable"):
        numbers[f"Lemma 4, {name}: least ratio over eta1"] = min(one["lemma 4"] for one in of[f"{name}, all rows"])
    for name, runs in of.items():
        numbers[f"{name}: decades of the gradient"] = float(
            np.mean([np.log10(one["part"][0] / one["part"][-1]) for one in runs])
        )
    for name in ("published, all rows", "stable, all rows", "stable, power 4", "stable, norm test"):
        numbers[f"{name}: share of the iterations with 99 % of the squared levels"] = float(
            np.mean([_share_of_sum(one["delta"]) for one in of[name]])
        )
    levels = [np.median(one["delta"][len(one["delta"]) // 2 :]) / one["delta"][0] for one in of["published, fixed 50"]]
    numbers["published, fixed 50: later clipping levels over the first"] = float(np.mean(levels))
    for name in ("published, fixed 50", "stable, power 4"):
        numbers[f"{name}: inaccurate models over the allowed"] = mean(of[name], "models")
    for name in ("published, authors 50", "stable, power 4", "stable, norm test"):
        numbers[f"{name}: inaccurate values over the allowed"] = mean(of[name], "values")
    sums = [float(np.sum(np.square(one["delta"]))) / one["bound"] for one in of["stable, all rows"]]
    numbers["stable, all rows: squared levels over the bound"] = max(sums)
    numbers |= _of_the_process(of)
    return {key: [number] for key, number in numbers.items()}


def _of_the_process(of: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return how far the process of Theorem 3 falls, over what the proof says: exactly, in sum, and in expectation."""
    start, published = of["small start, all rows"], of["published, all rows"]
    numbers = {
        f"{which}, small start: least fall over the bound": _least_fall(start, which) for which in ("(35)", "(36)")
    }
    numbers["(36), published: least fall over the bound"] = _least_fall(published, "(36)")
    for name, runs in {"published": published, "small start": start}.items():
        numbers[f"case 1, {name}: accepted"] = float(
            np.mean(np.concatenate([one["accepted in case 1"] for one in runs]))
        )
    exact = [one for name in RUNS if "all rows" in name for one in of[name]]
    numbers["(38), all rows: least fall over the bound"] = _least_fall(exact, "(38)")
    for name in ("published, fixed 50", "published, authors 50", "stable, power 4", "stable, norm test"):
        numbers[f"Phi, {name}: share of iterations with the expected fall"] = float(
            np.mean([one["expected"] for one in of[name]])
        )
    for name in ("stable, power 4", "stable, norm test"):
        numbers[f"Phi, {name}: fall over the sum of (38)"] = min(one["phi"] for one in of[name])
    return numbers


def _least_fall(runs: list[dict[str, Any]], which: str) -> float:
    """Return the least fall of the process over its bound, among the iterations of the case that the bound is about."""
    return min((ratio for one in runs for ratio in one[which]), default=inf)


def _share_of_sum(levels: list[float]) -> float:
    """Return the share of the iterations after which 99 % of the sum of the squared levels is reached."""
    sums = np.cumsum(np.square(levels))
    return float(np.searchsorted(sums, 0.99 * sums[-1]) + 1) / len(levels)


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the clipping level, the gradient on the index set, and f over the iterations."""
    figure, panels = new_figure(1, 3, "Theorems 3 and 4: does the clipping level vanish, and the gradient with it?")
    fields = {
        "delta": ("Clipping level", "δ"),
        "part": ("Gradient on the index set", "norm of the gradient"),
        "gap": ("Distance from the minimum", "f − f*, at least 1e-16"),
    }
    names = ["published, all rows", "stable, all rows", "published, fixed 50", "stable, power 4", "stable, norm test"]
    for panel, (field, (title, quantity)) in zip(panels, fields.items(), strict=True):
        for place, name in enumerate(names):
            [row] = pick(rows, name=name)
            curves(panel, [[max(value, 1e-16) for value in one[field]][:120] for one in row["runs"]], name, place)
        panel.set_yscale("log")
        label(panel, title, "iteration", quantity)
    shared_legend(figure)
    remark(
        figure, f"medians and ranges of {SETS} data sets; a run ends where δ < 1e-9; first 120 of {LIMIT} iterations"
    )
    return {"theory": figure}


ITEM = Item("Section 4: inequalities, lemmas and theorems along runs", cells, summarise, draw, example)
