"""Section 3.1: estimators that fail with s' of d attributes, and the one that does not.

1. Moments. Neighbouring attributes are correlated, .5. Least squares on examples whose unobserved attributes are 0 uses
   products of pairs without the correction for how seldom a pair is seen; with the correction it is unbiased.
2. Variance. The gradient of one example from products of pairs, and from an observed support, over d / s'.
3. Algorithm. A hard-thresholded step after each example, with constant and with decreasing steps, and Exploration.

Quick has one data set of each, full five.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from papers.runner import Cell, Item, Row, data_seeds, pick
from papers.runner.figures import LINES, MUTED, label, legend, new_figure, remark

from hardthresh.limited import Exploration, Geometric

from ._common import excess, follow, mean, slope, stream
from ._estimators import (
    SingleExamples,
    autoregressive,
    from_pairs,
    from_support,
    limit,
    moments,
    zero_filled,
)

SIZES = [6250, 12_500, 25_000, 50_000, 100_000]
ESTIMATES = {"zero-filled": "unobserved attributes set to 0", "corrected": "pairs corrected"}
WIDTHS = [8, 16, 32, 64]  # s', of 128 attributes
GRADIENTS = {"pairs": "from products of pairs", "support": "from the observed support"}
POINTS = [5000, 10_000]
STREAM = 20_000
STEPS = {"constant": (0.001, 0.0), "1/sqrt(t)": (0.03, 0.5), "1/t": (0.1, 1.0)}  # the best of .001, .003, ..., 1
ALGORITHMS = ["exploration", *STEPS]


def run(method: str, seed: int, size: float) -> dict[str, Any]:
    """Return the excess over the number of examples, or the variance over the number of attributes."""
    if method in ESTIMATES:
        return _moments(method, seed, size)
    if method in GRADIENTS:
        return {"variance": [_variance(method, seed, width, int(20_000 * size)) for width in WIDTHS]}
    X, y, _, _, truth = stream(int(STREAM * size), 60, 5, dtype=np.float64, seed=seed)
    if method == "exploration":
        algorithm: Any = Exploration(0.3, Geometric(40, 1.2), 5)
    else:
        step, power = STEPS[method]
        algorithm = SingleExamples(step, power, 5, seed)
    return {"excess": follow(algorithm, X, y, 15, {"excess": excess(truth)}, points=POINTS)["excess"]}


def _moments(method: str, seed: int, size: float) -> dict[str, Any]:
    """Return the excess of least squares on estimated moments, and that of its limit if unobserved attributes are 0."""
    d, n_nonzero, n_observed = 40, 5, 16
    rng = np.random.default_rng((seed, 0))
    covariance = autoregressive(d, 0.5)
    sizes = [int(n * size) for n in SIZES]
    X = rng.standard_normal((sizes[-1], d)) @ np.linalg.cholesky(covariance).T
    truth = np.zeros(d)
    truth[rng.choice(d, n_nonzero, replace=False)] = rng.choice([-1.0, 1.0], n_nonzero)
    y = X @ truth + rng.standard_normal(sizes[-1])
    filled = zero_filled(X, n_observed, rng)

    def risk(w: Any) -> float:
        return float((w - truth) @ covariance @ (w - truth))

    fits = [moments(filled[:n], y[:n], n_observed, corrected=method == "corrected") for n in sizes]
    return {
        "excess": [risk(np.linalg.solve(second, first)) for second, first in fits],
        "limit": risk(limit(covariance, truth, n_observed)),
    }


def _variance(method: str, seed: int, n_observed: int, n: int) -> float:
    """Return the mean squared error of the gradient of one example, at a sparse point far from the truth."""
    d, n_nonzero = 2 * WIDTHS[-1], 4
    rng = np.random.default_rng((seed, n_observed))
    truth, w = np.zeros(d), np.zeros(d)
    truth[:n_nonzero], w[n_nonzero : 2 * n_nonzero] = 1.0, 1.0
    X = rng.standard_normal((n, d))
    y = X @ truth + rng.standard_normal(n)
    if method == "pairs":
        gradients = from_pairs(zero_filled(X, n_observed, rng), y, w, n_observed)
    else:
        gradients = from_support(X, y, w, n_observed, rng)
    return float(np.mean(np.sum((gradients - 2.0 * (w - truth)) ** 2, axis=1)))


def cells(full: bool, seed: int) -> list[Cell]:
    """Return a cell for each data set and method."""
    return [
        Cell(f"seed={which} {method}", run, {"method": method, "seed": which, "size": 1.0})
        for which in data_seeds(seed, 5 if full else 1)
        for method in (*ESTIMATES, *GRADIENTS, *ALGORITHMS)
    ]


def example(method: str, **_: Any) -> dict[str, Any]:
    """Return what a cell could have returned, at once."""
    if method in GRADIENTS:
        return {"variance": [1e5 / width for width in WIDTHS]}
    if method in ESTIMATES:
        return {"excess": [1e3 / n for n in SIZES], "limit": 1.0}
    return {"excess": [1e2 / n for n in (*POINTS, STREAM)]}


def summarise(rows: list[Row], full: bool) -> dict[str, float]:
    """Return exponents in the number of examples and of attributes, and ratios of methods."""
    curves = {m: _mean_curve(rows, m) for m in (*ESTIMATES, *GRADIENTS, *ALGORITHMS)}
    widths = np.array(WIDTHS)
    last = {method: curve[-1] for method, curve in curves.items()}
    return {
        "zero-filled: exponent of n": slope(SIZES[-3:], curves["zero-filled"][-3:]),
        "zero-filled / its limit": mean([row["excess"][-1] / row["limit"] for row in pick(rows, method="zero-filled")]),
        "corrected: exponent of n": slope(SIZES[-3:], curves["corrected"][-3:]),
        "zero-filled / corrected": last["zero-filled"] / last["corrected"],
        "pairs: exponent of d / s'": slope(1.0 / widths, curves["pairs"]),
        "support: exponent of d / (s' - s)": slope(1.0 / (widths - 4), curves["support"]),
        "variance: pairs / support": curves["pairs"][0] / curves["support"][0],
        "1/t steps: excess / start": last["1/t"] / 5.0,
        "best single steps / Exploration": min(last[method] for method in STEPS) / last["exploration"],
    }


def _mean_curve(rows: list[Row], method: str) -> list[float]:
    """Return the geometric mean of a method's curves over the data sets."""
    field = "variance" if method in GRADIENTS else "excess"
    return np.exp(np.mean([np.log(row[field]) for row in pick(rows, method=method)], axis=0)).tolist()


def draw(rows: list[Row], full: bool) -> dict[str, Figure]:
    """Draw the excess of the estimators, the variances of the gradients, and the algorithms."""
    figure, panels = new_figure(
        1, 3, "Missing values set to 0 are biased, pairs are noisy, and steps like 1/t do not converge"
    )
    for line, (method, name) in enumerate(ESTIMATES.items()):
        panels[0].plot(SIZES, _mean_curve(rows, method), label=name, linewidth=1.6, **LINES[line])
    panels[0].axhline(
        mean([row["limit"] for row in pick(rows, method="zero-filled")]), color=MUTED, linestyle=":", label="its limit"
    )
    for line, (method, name) in enumerate(GRADIENTS.items()):
        panels[1].plot(WIDTHS, _mean_curve(rows, method), label=name, linewidth=1.6, **LINES[line])
    for line, method in enumerate(ALGORITHMS):
        name = "Exploration" if method == "exploration" else f"single examples, {method} steps"
        panels[2].plot([*POINTS, STREAM], _mean_curve(rows, method), label=name, linewidth=1.6, **LINES[line])
    for panel, ticks in zip(panels, (SIZES, WIDTHS, [*POINTS, STREAM]), strict=True):
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panel.minorticks_off()
    label(panels[0], "Least squares on moments", "examples", "excess risk")
    label(panels[1], "Gradient of one example", "attributes seen, of 128", "variance")
    label(panels[2], "Algorithms", "examples", "excess risk")
    for panel in panels:
        legend(panel)
    number = len({row["seed"] for row in rows})
    remark(figure, "one data set" if number == 1 else f"geometric means of {number} data sets")
    return {"naive": figure}


ITEM = Item(
    "Section 3.1: estimators that fail with few attributes, and the unbiased one", cells, summarise, draw, example
)
