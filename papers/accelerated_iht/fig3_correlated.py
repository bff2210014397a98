"""Figure 3: correlated columns and noise: generalisation, recovery of the support, and fit, against other methods.

800 x 200, autoregressive columns, 20 planted, signal-to-noise ratio 10, half of the rows for training; ten data sets.
Quick and full are the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, label, new_figure, remark, shared_legend

from hardthresh.baselines import AdaptiveForwardBackward, ForwardGreedy, Oblivious
from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.objectives import LinearModel
from hardthresh.solvers import AcceleratedIHT
from hardthresh.solvers.accelerated import SmallMove
from hardthresh.steps import ExactLineSearch

from ._common import published
from ._data import correlated_split

LEVELS = [5, 10, 15, 20, 25, 30, 40, 60]
SEEDS, LIMIT = 10, 2000
TIE = 1e-6  # a difference that the tolerance of the runs, 1e-8, may leave
GREEDY = {
    "Oblivious": Oblivious(),
    "OMP": ForwardGreedy(),
    "Forward": ForwardGreedy("decrease"),
    "FoBa": AdaptiveForwardBackward(),
}
HARD: dict[str, Callable[[float], AcceleratedIHT]] = {
    "IHT 1/L": lambda step: published(0.0, step),
    "AccIHT 1/L": lambda step: published(0.25, step),
    "AccIHT ls + debias": lambda step: published(0.25, ExactLineSearch("direction"), debias="final"),
    "safe + debias": lambda step: AcceleratedIHT(debias="final"),
}
NAMES = {
    "AccIHT 1/L": "AccIHT, 1/L, τ = 1/4 (the paper)",
    "AccIHT ls + debias": "AccIHT, line search, debias",
    "safe + debias": "safeguarded, debias (ours)",
    "Lasso": "Lasso",
    "Lasso + refit": "Lasso, refitted",
    "Oblivious": "oblivious greedy",
    "OMP": "matching pursuit",
    "Forward": "forward greedy",
    "FoBa": "FoBa",
}
METHODS = [*NAMES, "IHT 1/L"]
MEASURES = {"r2": "R², test half", "auc": "AUC of the support", "loglik": "log-likelihood, training half"}


@lru_cache(maxsize=1)  # cells of one data set stand side by side
def split(seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return the two halves and the planted coefficients."""
    drawn = correlated_split(seed=seed)
    return drawn.X[drawn.train], drawn.y[drawn.train], drawn.X[drawn.test], drawn.y[drawn.test], drawn.coef


def _lasso(X: Any, y: Any, k: int) -> Any:
    """Return the point of the Lasso path with the least penalty among those with k non-zeros, or nearest below."""
    from sklearn.linear_model import lars_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, _, path = lars_path(X, y, method="lasso", max_iter=4 * k)
    sizes = np.count_nonzero(path, axis=0)
    return path[:, int(np.flatnonzero(sizes == sizes[sizes <= k].max())[-1])]


def _refit(X: Any, y: Any, w: Any) -> Any:
    """Return the least squares on the support of a point."""
    chosen, fitted = np.flatnonzero(w), np.zeros(w.shape)
    fitted[chosen] = np.linalg.lstsq(X[:, chosen], y, rcond=None)[0]
    return fitted


def run(method: str, k: int, seed: int, limit: int) -> dict[str, Any]:
    """Fit one method on the training half, and judge it."""
    X, y, X_test, y_test, truth = split(seed)
    f, iterations = LinearModel(X, y), 0
    if method in GREEDY:
        w = minimize(f, Sparsity(k), GREEDY[method]).w
    elif method.startswith("Lasso"):
        w = _lasso(X, y, k)
        w = _refit(X, y, w) if "refit" in method else w
    else:
        solver = HARD[method](len(y) / float(np.linalg.norm(X, 2) ** 2))
        result = minimize(f, Sparsity(k), solver, stop=SmallMove(1e-8), max_iter=limit)
        w, iterations = result.w, result.n_iter
    return {**judge(X, y, X_test, y_test, truth, w), "iterations": iterations}


def judge(X: Any, y: Any, X_test: Any, y_test: Any, truth: Any, w: Any) -> dict[str, float]:
    """Return R2 on the test half, AUC of the 0/1 support, log-likelihood of the training half at the best variance."""
    left, spread = y_test - X_test @ w, y_test - y_test.mean()
    chosen, planted = w != 0, truth != 0
    hits, false = chosen[planted].mean(), chosen[~planted].mean()
    variance = np.mean((y - X @ w) ** 2)
    return {
        "r2": float(1.0 - left @ left / (spread @ spread)),
        "auc": float(0.5 * (1.0 + hits - false)),
        "loglik": float(-0.5 * len(y) * (np.log(2.0 * np.pi * variance) + 1.0)),
    }


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set, method and budget."""
    return [
        Cell(
            f"seed={which} {method} k={k}",
            run,
            {"method": method, "k": k, "seed": which, "limit": LIMIT},
        )
        for which in data_seeds(seed, SEEDS)
        for method in METHODS
        for k in (LEVELS if method != "IHT 1/L" else [20])
    ]


def example(k: int, seed: int, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    return {"r2": 0.5 + k / 1000, "auc": 0.9, "loglik": 900.0 + k + seed, "iterations": 50}


def means(rows: list[Row], measure: str, method: str) -> list[float]:
    """Return the means over the data sets, for each budget."""
    return [float(np.mean([row[measure] for row in pick(rows, method=method, k=k)])) for k in LEVELS]


def summarise(rows: list[Row], full: bool) -> dict[str, list[float]]:
    """Return the means over the data sets, and the worst comparison with matching pursuit."""
    numbers = {f"{measure} {method}": means(rows, measure, method) for measure in MEASURES for method in NAMES}
    numbers["R2 of ours less OMP"] = [_least(rows, "safe + debias", "OMP", LEVELS)]
    pairs = [("IHT 1/L", 20), ("AccIHT 1/L", 20)]
    numbers["its at k = 20"] = [
        float(np.mean([row["iterations"] for row in pick(rows, method=method, k=k)])) for method, k in pairs
    ]
    cycling = pick(rows, method="AccIHT ls + debias", k=60)
    numbers["cycles at k = 60"] = [sum(row["iterations"] >= LIMIT for row in cycling)]
    longest = max(row["iterations"] for row in pick(rows, method="safe + debias"))
    numbers["safe, most its"] = [longest]
    return numbers | _claims(rows, *numbers["its at k = 20"])


def _claims(rows: list[Row], plain: float, accelerated: float) -> dict[str, list[float]]:
    """Return what Section 6.1 and Figure 3 claim, as numbers; the last two are the iterations at k = 20."""
    shares = {f"{measure} better or equal": [_better_or_equal(rows, measure)] for measure in MEASURES}
    return shares | {
        "R2 less Lasso, k <= 20": [_least(rows, "AccIHT 1/L", "Lasso", [5, 10, 15, 20])],
        "R2 less Lasso, k = 60": [_least(rows, "AccIHT 1/L", "Lasso", [60])],
        "R2 less oblivious, k <= 30": [_least(rows, "AccIHT 1/L", "Oblivious", LEVELS[:6])],
        "R2 less forward, k <= 15": [_least(rows, "AccIHT 1/L", "Forward", [5, 10, 15])],
        "same R2 as IHT": [_same_point(rows)],
        "its IHT / AccIHT": [plain / accelerated],
    }


def _least(rows: list[Row], method: str, other: str, levels: list[int]) -> float:
    """Return the least lead of a method in the mean R2 over another, over some budgets."""
    pairs = zip(LEVELS, means(rows, "r2", method), means(rows, "r2", other), strict=True)
    return min(a - b for k, a, b in pairs if k in levels)


def _better_or_equal(rows: list[Row], measure: str) -> float:
    """Return the share of the paper's rivals and budgets at which AccIHT is at least as good in the mean."""
    ours = means(rows, measure, "AccIHT 1/L")
    theirs = [means(rows, measure, method) for method in ("Lasso", "Oblivious", "Forward", "FoBa")]
    return float(np.mean([a >= b - TIE for other in theirs for a, b in zip(ours, other, strict=True)]))


def _same_point(rows: list[Row]) -> float:
    """Return the share of data sets on which IHT and AccIHT have the same R2 at k = 20."""
    pairs = zip(pick(rows, method="IHT 1/L"), pick(rows, method="AccIHT 1/L", k=20), strict=True)
    return float(np.mean([abs(a["r2"] - b["r2"]) <= TIE for a, b in pairs]))


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the three measures over the budget, and what hard thresholding lacks to forward greedy."""
    title = (
        "Correlated columns, 20 of 200 planted: better than the Lasso up to k = 20; equal to greedy with a line search"
    )
    figure, panels = new_figure(2, 2, title)
    shown = [method for method in NAMES if method != "FoBa"]
    for panel, (measure, name) in zip(panels, MEASURES.items(), strict=False):
        for line, method in enumerate(shown):
            panel.plot(
                LEVELS, means(rows, measure, method), label=NAMES[method], linewidth=1.5, markersize=4, **style(line)
            )
        panel.axvline(20, color="#9aa5b1", linewidth=1, linestyle=":")
        label(panel, name, "features allowed, k", name.partition(",")[0])
    panels[0].set_ylim(0.5, 0.92)
    best = means(rows, "r2", "Forward")
    for line, method in enumerate(shown):
        lacking = [a - b for a, b in zip(means(rows, "r2", method), best, strict=True)]
        panels[3].plot(LEVELS, lacking, label=NAMES[method], linewidth=1.5, markersize=4, **style(line))
    panels[3].set_ylim(-0.06, 0.03)
    panels[3].axvline(20, color="#9aa5b1", linewidth=1, linestyle=":")
    label(panels[3], "R² less that of forward greedy", "features allowed, k", "difference")
    shared_legend(figure)
    remark(
        figure, "means of ten data sets; the dotted line is the planted number of features; FoBa is as forward greedy"
    )
    return {"fig3_correlated": figure}


def style(line: int) -> dict[str, Any]:
    """Return the style of a line; there is one more than the house has."""
    return LINES[line] if line < len(LINES) else {"color": "#9aa5b1", "linestyle": "-", "marker": "*"}


TITLE = "Figure 3: correlated columns: generalisation, support and fit against the Lasso and greedy methods"
ITEM = Item(TITLE, cells, summarise, draw, example)
