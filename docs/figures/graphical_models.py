"""Measure and draw the page on graphical models: ``python -m docs.figures.graphical_models``.

It writes docs/guide/graphs_equal.csv, docs/guide/graphs_chosen.csv and docs/_static/graphs_recovered.png. Samples are
those of `hardthresh.datasets.make_graphical_model` with seeds 10, 11 and 12; scores are on 2,000 new ones, seed 99.
About twenty minutes on one core.
"""

import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.covariance import GraphicalLassoCV, graphical_lasso
from sklearn.exceptions import ConvergenceWarning

import hardthresh as ht
from hardthresh.datasets import make_graphical_model
from hardthresh.estimators.graph.covariance_selection import most_likely_precision

DOCS = Path(__file__).parents[1]
SEEDS = (10, 11, 12)
SIZES = {
    ("chain", 50): (25, 50, 100, 250, 500),
    ("random", 50): (25, 50, 100, 250, 500),
    ("chain", 100): (50, 100, 200, 500, 1000),
    ("random", 100): (50, 100, 200, 500, 1000),
}


class Sample:
    """Samples to learn from, standardised, and new ones in the same units."""

    def __init__(self, graph, p, n, seed):
        train = make_graphical_model(n, p, graph=graph, seed=seed)
        mean, deviation = train.X.mean(axis=0), train.X.std(axis=0)
        self.X = (train.X - mean) / deviation
        self.S = self.X.T @ self.X / n
        new = (make_graphical_model(2000, p, graph=graph, seed=99).X - mean) / deviation
        self.new = new.T @ new / 2000
        self.edges = {tuple(edge) for edge in train.edges.tolist()}

    def f1(self, precision):
        """Return the F1 score of the edges of a precision matrix."""
        found = {tuple(edge) for edge in np.argwhere(np.triu(np.abs(precision) > 1e-10, 1)).tolist()}
        return 2 * len(found & self.edges) / (len(found) + len(self.edges))

    def likelihood(self, precision):
        """Return the mean log-likelihood of the new samples, without its constant."""
        return 0.5 * (np.linalg.slogdet(precision)[1] - np.sum(self.new * precision))


def count(precision):
    """Return the number of edges."""
    return np.count_nonzero(np.triu(np.abs(precision) > 1e-10, 1))


def lasso_with(S, n_edges):
    """Return the graphical lasso's precision matrix whose number of edges is nearest to a given one."""
    low, high, best = 1e-3, float(np.max(np.abs(S - np.diag(np.diag(S))))), None
    for _ in range(22):
        middle = float(np.sqrt(low * high))
        try:
            precision = graphical_lasso(S, middle, max_iter=200)[1]
        except FloatingPointError:  # too little penalty for a singular S
            low = middle
            continue
        precision = 0.5 * (precision + precision.T)
        if best is None or abs(count(precision) - n_edges) < abs(count(best) - n_edges):
            best = precision
        if count(precision) == n_edges:
            break
        low, high = (middle, high) if count(precision) > n_edges else (low, middle)
    return best


def compare_equal():
    """Write what each method finds with as many edges as there are."""
    rows = []
    for (graph, p), sizes in SIZES.items():
        for n in sizes:
            found = []
            for seed in SEEDS:
                sample = Sample(graph, p, n, seed)
                ours = ht.SparseGaussianGraphicalModel(len(sample.edges)).fit(sample.X).precision_
                lasso = lasso_with(sample.S, len(sample.edges))
                refitted = most_likely_precision(sample.S, lasso, 0.01, 1e-8)[0]
                found.append([sample.f1(ours), sample.f1(lasso), *map(sample.likelihood, (ours, lasso, refitted))])
            f1, f1_lasso, *likelihoods = np.mean(found, axis=0)
            row = [graph, p, n, len(sample.edges), f"{f1:.3f}", f"{f1_lasso:.3f}", *(f"{x:.2f}" for x in likelihoods)]
            print(*row, flush=True)
            rows.append(row)
    write(
        "graphs_equal.csv",
        ["graph", "p", "n", "edges", "F1", "F1, lasso", "score", "score, lasso", "score, lasso refitted"],
        rows,
    )


def compare_chosen():
    """Write what each method finds when cross-validation chooses the number of edges."""
    rows = []
    for graph in ("chain", "random"):
        for n in (50, 100, 250):
            found = []
            for seed in SEEDS:
                sample = Sample(graph, 50, n, seed)
                chosen = ht.SparseGaussianGraphicalModelCV().fit(sample.X)
                modest = ht.SparseGaussianGraphicalModel(chosen.one_standard_error_, alpha=chosen.alpha_).fit(sample.X)
                lasso = GraphicalLassoCV(max_iter=200).fit(sample.X)
                found.append(
                    [
                        score(model.precision_)
                        for model in (chosen, modest, lasso)
                        for score in (count, sample.f1, sample.likelihood)
                    ]
                )
            means = np.mean(found, axis=0)
            row = [graph, 50, n, len(sample.edges)]
            row += [f"{x:.{digits}f}" for x, digits in zip(means, (0, 3, 2) * 3, strict=True)]
            print(*row, flush=True)
            rows.append(row)
    names = ["edges", "F1", "score"]
    head = ["graph", "p", "n", "true edges", *names, *(f"{x}, modest" for x in names), *(f"{x}, lasso" for x in names)]
    write("graphs_chosen.csv", head, rows)


def draw():
    """Draw the edges that each method finds among as many as there are: true ones black, missed ones dotted, wrong ones
    orange."""
    from matplotlib import pyplot as plt

    p, n = 50, 250
    sample = Sample("random", p, n, 10)
    ours = ht.SparseGaussianGraphicalModel(len(sample.edges)).fit(sample.X).precision_
    lasso = lasso_with(sample.S, len(sample.edges))
    angle = 2 * np.pi * np.arange(p) / p
    x, y = np.cos(angle), np.sin(angle)
    panels = {"hard thresholding": ours, "graphical lasso": lasso}
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.9), layout="constrained")
    for axis, (title, precision) in zip(axes, panels.items(), strict=True):
        found = {tuple(edge) for edge in np.argwhere(np.triu(np.abs(precision) > 1e-10, 1)).tolist()}
        styles = [
            ("found", found & sample.edges, {"color": "#111111", "lw": 1.1}),
            ("missed", sample.edges - found, {"color": "#111111", "lw": 1.1, "ls": (0, (1, 1.5))}),
            ("not there", found - sample.edges, {"color": "#e07b00", "lw": 1.6}),
        ]
        for name, edges, style in styles:
            for number, (i, j) in enumerate(sorted(edges)):
                axis.plot(x[[i, j]], y[[i, j]], label=f"{name}: {len(edges)}" if number == 0 else None, **style)
        axis.plot(x, y, "o", color="#8a8a8a", ms=4)
        axis.set(title=f"{title}, F1 {sample.f1(precision):.2f}", aspect="equal")
        axis.axis("off")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=3, frameon=False)
    figure.savefig(DOCS / "_static" / "graphs_recovered.png", dpi=130)


def write(name, head, rows):
    """Write a table."""
    with open(DOCS / "guide" / name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    for task in sys.argv[1:] or ("equal", "chosen", "draw"):
        {"equal": compare_equal, "chosen": compare_chosen, "draw": draw}[task]()
