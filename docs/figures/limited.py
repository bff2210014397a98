"""Draw the picture, and measure the table, of the page on limited attributes: ``python -m docs.figures.limited``.

They go to docs/_static/limited_curve.png and docs/guide/limited_examples.csv. About ten minutes on one core.
"""

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import hardthresh as ht
from hardthresh.datasets import make_clinic
from hardthresh.limited import AdaptiveHybrid, ArraySource, Learner
from hardthresh.report import plot_learning_curve

DOCS = Path(__file__).parents[1]
SEEDS = range(5)
ROWS = 40_000
CASES = [  # d, s, s'
    (50, 5, 8),
    (50, 5, 10),
    (50, 5, 20),
    (200, 5, 10),
    (200, 5, 20),
    (200, 5, 50),
    (500, 10, 15),
    (500, 10, 20),
    (500, 10, 50),
    (500, 25, 50),
    (500, 25, 100),
]


def draw_curve():
    """How the error falls with the patients of the clinic, with a number of values and with a budget in money."""
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.0), layout="constrained", sharey=True)
    clinic = make_clinic(6000)
    X, y = clinic.to_pandas(), clinic.y
    settings = {
        "20 of 51 values of each patient": {"n_observed": 20},
        "panels for 90 of 218 of each patient": {"costs": clinic.prices, "panels": clinic.panels, "budget": 90.0},
    }
    for ax, (title, terms) in zip(axes, settings.items(), strict=True):
        model = ht.LimitedAttributeRegression(n_nonzero_coefs=7, **terms).fit(X, y)
        plot_learning_curve(model, ax)
        ax.axhline(clinic.noise**2, color="#111111", linewidth=1.0, linestyle=(0, (2, 2)))
        ax.set_title(title, loc="left", fontsize=10)
        print(title, model.budget_, model.required_features_)
    figure.savefig(DOCS / "_static" / "limited_curve.png", dpi=110)


def problem(d, s, share, seed, n):
    """Independent standard normal attributes, s coefficients of 1 or -1; `share` of the variance can be predicted."""
    rng = np.random.default_rng((seed, d, s))
    X = rng.standard_normal((n, d), dtype=np.float32)
    w = np.zeros(d)
    w[rng.choice(d, s, replace=False)] = rng.choice([-1.0, 1.0], s)
    return X, X @ w + np.sqrt(s * (1 / share - 1)) * rng.standard_normal(n), w


def needed(d, s, observed, share, seed):
    """How many examples it takes until the support is the truth, for good; None if that takes too many."""
    X, y, w = problem(d, s, share, seed, ROWS)
    since = None
    source = ArraySource(X, y, n_observed=observed, seed=seed)
    for state in Learner.for_source(AdaptiveHybrid(s), source).iterate(source):
        if not np.array_equal(state.support, np.flatnonzero(w)):
            since = None
        elif since is None:
            since = state.seen
    return since


def needed_complete(d, s, share, seed):
    """How many complete rows SparseLinearRegression takes."""
    X, y, w = problem(d, s, share, seed, ROWS)
    sizes = np.unique((s + 5) * 1.15 ** np.arange(40) // 1).astype(int)
    right = [
        np.array_equal(
            ht.SparseLinearRegression(n_nonzero_coefs=s).fit(X[:n].astype(float), y[:n]).support_, np.flatnonzero(w)
        )
        for n in sizes[sizes <= 3000]
    ]
    last_wrong = max((i for i, found in enumerate(right) if not found), default=-1)
    return int(sizes[last_wrong + 1]) if last_wrong + 1 < len(right) else None


def in_words(counts):
    """The median of some counts, rounded to two digits; None counts as infinite."""
    middle = float(np.median([np.inf if count is None else count for count in counts]))
    return f"> {ROWS:,}" if not np.isfinite(middle) else f"{float(f'{middle:.2g}'):,.0f}"


def measure_table():
    """Write how many examples it takes to find the truth."""
    complete = {}
    for d, s, _ in CASES:
        for share in (0.9, 0.5):
            if (d, s, share) not in complete:
                complete[d, s, share] = in_words([needed_complete(d, s, share, seed) for seed in SEEDS])
    with (DOCS / "guide" / "limited_examples.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["d", "s", "s'", *(f"{what}, {share} %" for share in (90, 50) for what in ("examples", "complete rows"))]
        )
        for d, s, observed in CASES:
            row = [d, s, observed]
            for share in (0.9, 0.5):
                row.append(in_words([needed(d, s, observed, share, seed) for seed in SEEDS]))
                row.append(complete[d, s, share])
            writer.writerow(row)
            file.flush()
            print(row, flush=True)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["curve", "table"]
    if "curve" in wanted:
        draw_curve()
    if "table" in wanted:
        measure_table()
