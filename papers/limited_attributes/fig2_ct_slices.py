"""Figure 2: real data, 20 attributes of each example.

The paper has the CT slices of UCI, 53,500 x 384, of which only the first 682 rows could be had, two patients: they are
run to see that the format works, and say nothing. Where ``hardthresh.datasets.fetch_ct_slices`` finds the file it is
run too; nothing is checked then. The substitute is BlogFeedback: 52,397 pages, 276 attributes that are not constant,
log(1 + comments), standardised with the training rows. Quick has two splits, one for RDA
and the Dantzig selector, full five.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, NOTE, label, new_figure, remark, shared_legend

from hardthresh.datasets import DatasetError, fetch_blogfeedback, fetch_ct_slices
from hardthresh.datasets.files import local_folders
from hardthresh.estimators import SparseLinearRegression
from hardthresh.limited import Exploration
from hardthresh.limited.learner import Algorithm

from ._common import METHODS, Method, dantzig, deviation, error, follow, hybrid, mean, rda

POINTS = [5000, 10_000, 20_000, 30_000]
BUDGETS, WIDTH = [5, 10], 20
STREAMS = {"blog": 47_157, "ct slices": 48_150}


def exploration(step: float) -> Method:
    """Return Algorithm 1 with the batches that were best on split 100."""
    return lambda s, seed: Exploration(step, 400, s)


LEARNERS: dict[str, Method] = {
    "adaptive": METHODS["adaptive"],
    "hybrid": hybrid(0.02),
    "exploration": exploration(0.05),
    "rda": rda(1000.0),
    "dantzig": dantzig(1.0),
}
"""With values tuned on split 100: see `tuning`."""
SLOW = ["rda", "dantzig"]
WHOLE = ["everything seen", "all attributes", "the mean"]
NAMES = {
    "adaptive": "AdaptiveHybrid (ours, nothing tuned)",
    "hybrid": "Hybrid, Algorithm 3, η = .02",
    "exploration": "Exploration, η = .05, batches of 400",
    "rda": "RDA, gradient at the predictor",
    "dantzig": "Dantzig selector",
    "everything seen": "SparseLinearRegression, everything seen",
    "all attributes": "least squares, all attributes",
    "the mean": "the mean",
}


@lru_cache(maxsize=1)
def table(name: str) -> tuple[Any, Any]:
    """Return a data set, whole, without its constant columns."""
    if name == "blog":
        X, y = fetch_blogfeedback(subset="train", return_X_y=True)
        y = np.log1p(y)
    elif name == "ct slices":
        X, y = fetch_ct_slices(return_X_y=True)
    else:
        with np.load(_fragment(), allow_pickle=False) as kept:
            X, y = kept["X"].astype(float), kept["y"]
    return X[:, np.ptp(X, axis=0) > 0], y


def _fragment() -> Any:
    """Return where the first rows of the CT slices are."""
    folders = local_folders()
    for folder in folders:
        if (folder / "ctslice_fragment.npz").is_file():
            return folder / "ctslice_fragment.npz"
    looked = " and ".join(str(folder) for folder in folders) or "no folder, because HARDTHRESH_DATA is not set"
    raise DatasetError(
        f"ctslice_fragment.npz is not on this machine (looked in: {looked}); set HARDTHRESH_DATA to its folder"
    )


@lru_cache(maxsize=1)  # cells of one split stand side by side
def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return nine tenths and the rest, standardised and centred with the former."""
    X, y = table(name)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = round(0.9 * len(y))
    train, test = order[:cut], order[cut:]
    middle, spread = X[train].mean(axis=0), X[train].std(axis=0)
    spread[spread == 0] = 1.0
    level = float(y[train].mean())
    return (X[train] - middle) / spread, y[train] - level, (X[test] - middle) / spread, y[test] - level


def run(name: str, method: str, s: int, seed: int, points: list[int], rows: int | None) -> dict[str, Any]:
    """Learn from one split, and measure on what was left out."""
    X, y, X_test, y_test = split(name, seed)
    X, y = X[:rows], y[:rows]
    if method in LEARNERS:
        return {"error": _learned(LEARNERS[method](s, seed), X, y, X_test, y_test, points)}
    if method == "everything seen":
        model = SparseLinearRegression(n_nonzero_coefs=s).fit(X, y)
        w, b = model.coef_, float(model.intercept_)
    elif method == "all attributes":
        w, b = np.linalg.lstsq(X, y, rcond=None)[0], 0.0
    else:
        w, b = np.zeros(X.shape[1]), 0.0
    return {"error": [error(X_test, y_test, w, b)]}


def _learned(solver: Algorithm, X: Any, y: Any, X_test: Any, y_test: Any, points: list[int]) -> list[float]:
    """Return the errors at the points and at the end."""

    def measure(w: Any, b: float) -> float:
        return error(X_test, y_test, w, b)

    found: list[float] = follow(solver, X, y, WIDTH, {"error": measure}, points=points)["error"]
    return found


def tried(s: int) -> list[str]:
    """Return the methods for a budget: the slow ones for the larger one only."""
    return [m for m in (*LEARNERS, WHOLE[0]) if s == BUDGETS[-1] or m not in SLOW]


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each split, method and budget; the CT slices only where they are."""
    names = ["blog", "ct fragment"]
    try:
        fetch_ct_slices()
        names.append("ct slices")
    except DatasetError:
        pass  # neither the file nor a network: see the README
    found: list[dict[str, Any]] = []
    for name in names:
        points = [] if name == "ct fragment" else POINTS
        splits = data_seeds(seed, 5 if full else 2)
        for which in splits:
            for s in BUDGETS:
                methods = ["adaptive", "everything seen"] if name == "ct fragment" else tried(s)
                methods = [m for m in methods if full or which == splits[0] or m not in SLOW]
                found += [{"name": name, "method": m, "s": s, "seed": which, "points": points} for m in methods]
            for m in WHOLE[1:]:
                found.append({"name": name, "method": m, "s": 0, "seed": which, "points": []})
    label = "{name} split={seed} {method} s={s}"
    return [Cell(label.format(**given), run, {**given, "rows": None}) for given in found]


def example(method: str, points: list[int], **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    return {"error": [0.8 + 1000.0 / n for n in points] * (method in LEARNERS) + [0.8]}


def last(rows: list[Row], **wanted: Any) -> list[float]:
    """Return the errors at the end of some runs."""
    return [row["error"][-1] for row in pick(rows, **wanted)]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the mean errors on the substitute, and of the fragment that ours is no worse than the mean."""
    numbers = {
        f"{method}, s = {s}": [mean(last(rows, name="blog", method=method, s=s))]
        for s in BUDGETS
        for method in tried(s)
    }
    numbers |= {method: [mean(last(rows, name="blog", method=method))] for method in WHOLE[1:]}
    ours = last(rows, name="ct fragment", method="adaptive")
    numbers["fragment / the mean"] = [mean(ours) / mean(last(rows, name="ct fragment", method="the mean"))]
    numbers |= {
        f"{one} / {other}, s = 10": [ratio(rows, one, other)]
        for one, other in (
            ("exploration", "hybrid"),
            ("rda", "exploration"),
            ("dantzig", "exploration"),
            ("hybrid", "adaptive"),
            ("adaptive", "everything seen"),
        )
    }
    return numbers


def ratio(rows: list[Row], one: str, other: str) -> float:
    """Return the ratio of the mean errors of two methods on the splits that both were run on, s = 10."""
    runs = {m: {row["seed"]: row["error"][-1] for row in pick(rows, name="blog", method=m, s=10)} for m in (one, other)}
    both = runs[one].keys() & runs[other].keys()
    return mean([runs[one][seed] for seed in both]) / mean([runs[other][seed] for seed in both])


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the error on what was left out, over the examples."""
    shown = [name for name in ("blog", "ct slices") if pick(rows, name=name)]
    title = "Not the CT slices of the paper: 20 of 276 attributes of pages of blogs"
    if len(shown) > 1:
        title = "The CT slices of the paper, and pages of blogs; 20 attributes of each example"
    figure, panels = new_figure(len(shown), 2, title, height=4.4)
    for place, (name, s) in enumerate((name, s) for name in shown for s in BUDGETS):
        panel = panels[place]
        nothing = mean(last(rows, name=name, method="the mean"))
        for line, method in enumerate(LEARNERS):
            if method not in tried(s):
                continue
            values = np.array([row["error"] for row in pick(rows, name=name, method=method, s=s)])
            values = np.minimum(values, 100.0 * nothing)
            grid = [*POINTS, STREAMS[name]]
            middle, spread = values.mean(axis=0), 2.0 * np.array([deviation(column) for column in values.T])
            panel.fill_between(
                grid, middle - spread, middle + spread, color=LINES[line]["color"], alpha=0.15, linewidth=0
            )
            panel.plot(grid, middle, label=NAMES[method], linewidth=1.6, markersize=4.5, **LINES[line])
        for method, style in zip(WHOLE, ("-", "--", ":"), strict=True):
            level = mean(last(rows, name=name, method=method, s=s if method == WHOLE[0] else 0))
            panel.axhline(level, color=MUTED, linestyle=style, linewidth=1.2, label=NAMES[method])
        panel.set_ylim(0.92 * mean(last(rows, name=name, method=WHOLE[1])), 1.3 * nothing)
        panel.text(
            STREAMS[name], 1.26 * nothing, "what is not seen is above, or diverged", verticalalignment="top", **NOTE
        )
        label(panel, f"{s} attributes in the predictor", "examples", "mean squared error, test")
    shared_legend(figure)
    count = len({row["seed"] for row in rows})
    remark(figure, f"lines: means of {count} splits; bands: two standard deviations, as in the paper")
    return {"fig2_ct_slices": figure}


ITEM = Item(
    "Figure 2: real data, 20 attributes of each example (a substitute for CT slices)", cells, summarise, draw, example
)
