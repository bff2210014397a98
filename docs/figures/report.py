"""Draw the pictures of the page on reports: ``python -m docs.figures.report``.

Writes docs/_static/report_substitutes.png, report_rows.png and report_survival.png. The colon data, and simulated times
until an event; seconds on one core.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import hardthresh as ht
from hardthresh.datasets import load_colon
from hardthresh.report import (
    plot_confusion,
    plot_correlations,
    plot_precision_recall,
    plot_roc,
    plot_rootogram,
    plot_survival,
)

PICTURES = Path(__file__).parents[1] / "_static"


def substitutes() -> None:
    """Draw the correlations of four chosen genes and their closest substitutes."""
    colon = load_colon(as_frame=True)
    model = ht.SparseLogisticRegression(n_nonzero_coefs=4).fit(np.log2(colon.data), colon.target)
    found = model.summary().correlations
    _, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    plot_correlations(found.values, found.rows, ax, columns=found.columns)
    plt.savefig(PICTURES / "report_substitutes.png", dpi=110)


def rows() -> None:
    """Draw classes that a model has not seen, and counts, as the page does."""
    colon = load_colon()
    X, held_out = np.log2(colon.data), np.arange(62) % 3 == 0
    model = ht.SparseLogisticRegression(n_nonzero_coefs=4).fit(X[~held_out], colon.target[~held_out])
    y, score = colon.target[held_out], model.decision_function(X[held_out])
    _, axes = plt.subplots(2, 2, figsize=(9.0, 7.4), layout="constrained")
    plot_roc(y, score, axes[0, 0])
    plot_precision_recall(y, score, axes[0, 1])
    names = np.array(colon.target_names)
    plot_confusion(names[y], names[model.predict(X[held_out])], axes[1, 0], classes=names)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 40))
    mean = np.exp(0.5 * X[:, 3] - 0.4 * X[:, 17])
    counts = np.where(rng.random(500) < 0.25, 0, rng.poisson(1.5 * mean))  # a quarter of the rows is never counted
    plot_rootogram(counts, ht.SparsePoissonRegression(n_nonzero_coefs=2).fit(X, counts).predict(X), axes[1, 1])
    plt.savefig(PICTURES / "report_rows.png", dpi=110)


def survival() -> None:
    """Draw the survival of three groups of simulated patients by their predicted risk."""
    rng = np.random.default_rng(0)
    risk = rng.standard_normal(300)
    time, censored = rng.exponential(np.exp(-risk)), rng.exponential(2.0, 300)
    _, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    plot_survival(np.minimum(time, censored), time <= censored, risk, ax)
    plt.savefig(PICTURES / "report_survival.png", dpi=110)


if __name__ == "__main__":
    substitutes()
    rows()
    survival()
