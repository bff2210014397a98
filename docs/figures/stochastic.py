"""Draw the picture of the page on stochastic solvers, and count: ``python -m docs.figures.stochastic``.

The picture goes to docs/_static/stochastic_batches.png. Drawing and printing the table take a minute on one core.
"""

from itertools import islice
from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt
import numpy as np

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import iterate
from hardthresh.datasets import make_sparse_regression
from hardthresh.objectives import LinearModel
from hardthresh.solvers import (
    IHT,
    ExponentialBatch,
    FixedBatch,
    HardThresholdingPursuit,
    NormTest,
    ProbabilisticIHT,
    StochasticIHT,
    WorkingSet,
)

STATIC = Path(__file__).parents[1] / "_static"
BLACK, GREY = "#111111", "#8a8a8a"
plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False
LEAST = 1e-16
K = 20


def problem(n, seed=0):
    """Return f of n rows of 500 columns, what is best on the planted support, and the largest curvature."""
    drawn = make_sparse_regression(n, 500, K, snr=8.0, seed=seed)
    best = np.zeros(500)
    best[drawn.support] = np.linalg.lstsq(drawn.X[:, drawn.support], drawn.y)[0]
    f = LinearModel(drawn.X, drawn.y)
    return f, f.value(best), np.linalg.norm(drawn.X, 2) ** 2 / n


def draw_batches():
    """What becomes of the gap, of the batches and of the trust, over the examples that were looked at."""
    f, best, largest = problem(2000)
    scale = f.value(f.zeros()) - best
    runs = {
        "as published, the authors' batches": (
            ProbabilisticIHT(variant="paper", batch=ExponentialBatch(50), full_value_every=1),
            {"color": GREY, "linewidth": 0.8},
        ),
        "published numbers, values on the gradient's batch": (
            ProbabilisticIHT(
                variant="paper", clip="restricted", batch=ExponentialBatch(50), value_batch="same", full_value_every=1
            ),
            {"color": GREY, "linewidth": 1.5, "linestyle": "--"},
        ),
        "default, but batches of 50": (
            ProbabilisticIHT(batch=FixedBatch(50), refit=False, full_value_every=1),
            {"color": BLACK, "linewidth": 1.0, "linestyle": ":"},
        ),
        "as published, norm test": (
            ProbabilisticIHT(variant="paper", batch=NormTest(), full_value_every=1),
            {"color": GREY, "linewidth": 3.0},
        ),
        "default, before its refit": (
            ProbabilisticIHT(refit=False, full_value_every=1),
            {"color": BLACK, "linewidth": 1.5, "marker": "o", "markersize": 3},
        ),
        "stochastic IHT, 50, step .3/L": (
            StochasticIHT(0.3 / largest, FixedBatch(50), full_value_every=1),
            {"color": BLACK, "linewidth": 0.6},
        ),
    }
    figure, (gap, size, trust) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    for name, (solver, style) in runs.items():
        run = ht.minimize(f, Sparsity(K), solver, max_iter=4000 if isinstance(solver, StochasticIHT) else 500)
        seen = run.history["samples"]
        gaps = np.maximum((run.history["value"] - best) / scale, LEAST)
        print(f"{name}: {run.status.name}, {run.n_iter} iterations, {seen[-1]:.0f} examples, gap {gaps[-1]:.2g}")
        gap.loglog(seen[1:], gaps[1:], label=name, **style)
        if isinstance(solver, ProbabilisticIHT):
            size.loglog(seen[1:], run.history["batch_size"], **style)
            trust.loglog(seen[1:], run.history["delta"][1:] / run.history["delta"][0], **style)
    gap.set(title="how far from the best", ylabel="(f - best) / (f(0) - best)", ylim=(3e-17, 30))
    size.set(title="size of the batches, of 2,000", ylabel="rows")
    trust.set(title="clipping level", ylabel="$\\delta / \\delta_0$")
    for panel in (gap, size, trust):
        panel.set_xlabel("examples looked at")
    figure.legend(*gap.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(STATIC / "stochastic_batches.png", dpi=100)


SOLVERS = {
    "published, authors' batches": lambda _: ProbabilisticIHT(variant="paper", batch=ExponentialBatch(50)),
    "published, norm test": lambda _: ProbabilisticIHT(variant="paper", batch=NormTest()),
    "ProbabilisticIHT, default": lambda _: ProbabilisticIHT(),
    "StochasticIHT, 50 rows, .3 / L": lambda largest: StochasticIHT(0.3 / largest, FixedBatch(50)),
    "IHT": lambda _: IHT(),
    "HardThresholdingPursuit": lambda _: HardThresholdingPursuit(),
    'WorkingSet, effort="fast"': lambda _: WorkingSet(effort="fast"),
    "WorkingSet": lambda _: WorkingSet(),
}
GOALS = (1e-1, 1e-2, 1e-3, 1e-5)


def passes_to_goals(f, best, solver):
    """Return for each goal the data passes of the first of 300 iterates whose relative gap is below it."""
    scale, found = f.value(f.zeros()) - best, {}
    for state in islice(iterate(f, Sparsity(K), solver), 301):
        gap = (f.value(state.w) - best) / scale
        found |= {goal: state.passes for goal in GOALS if goal not in found and gap <= goal}
        if len(found) == len(GOALS):
            break
    return [found.get(goal, float("inf")) for goal in GOALS]


def count():
    """Print data passes, the start included, to each goal: the median of three data sets."""
    for n in (2000, 20000):
        drawn = [problem(n, seed) for seed in range(3)]
        for name, make in SOLVERS.items():
            found = [passes_to_goals(f, best, make(largest)) for f, best, largest in drawn]
            print(n, name, [f"{median(run[place] for run in found):.1f}" for place in range(len(GOALS))], flush=True)


if __name__ == "__main__":
    draw_batches()
    count()
