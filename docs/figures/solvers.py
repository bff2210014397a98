"""Draw the picture of the page on solvers, and count: ``python -m docs.figures.solvers``.

The picture goes to docs/_static/solvers_momentum.png. Printing the tables of iterations takes most of
its three minutes on one core.
"""

from itertools import islice
from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt
import numpy as np
from papers.accelerated_iht._data import correlated_split, gaussian_design

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import StepRule, iterate
from hardthresh.objectives import LinearModel
from hardthresh.solvers import (
    IHT,
    AcceleratedIHT,
    ConjugateIHT,
    ConstantMomentum,
    ExactMomentum,
    HardThresholdingPursuit,
    Momentum,
    NesterovMomentum,
    WorkingSet,
)
from hardthresh.steps import ExactLineSearch, Fixed

STATIC = Path(__file__).parents[1] / "_static"
BLACK, GREY = "#111111", "#8a8a8a"
plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False


def published(momentum, step=ExactLineSearch()):  # noqa: B008 - frozen
    """Return Algorithm 1 without any safeguard."""
    rule = momentum if isinstance(momentum, Momentum) else ConstantMomentum(momentum)
    length = step if isinstance(step, StepRule) else Fixed(step)
    return AcceleratedIHT(variant="paper", momentum=rule, step=length)


def smooth_step(X):
    """Return 1 / L, the step of the paper's experiments, for the gradient of the mean loss."""
    return X.shape[0] / np.linalg.norm(X, 2) ** 2


def values(f, k, solver, iterations):
    """Return f at every iterate, relative to f at zero."""
    with np.errstate(all="ignore"):  # one run diverges on purpose
        run = ht.minimize(f, Sparsity(k), solver, max_iter=iterations, tol=0.0)
    print(solver, run.status.name, run.n_iter, run.history["value"][-1] / run.history["value"][0])
    return run.history["value"] / run.history["value"][0]


def draw_momentum():
    """What momentum does with a constant step, and where a constant step fails with any momentum."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    drawn = gaussian_design(120, 400, 8, seed=7)
    f, step = LinearModel(drawn.X, drawn.y), smooth_step(drawn.X)
    styles = {
        0.0: {"color": GREY, "linestyle": "-", "linewidth": 2.5},
        0.25: {"color": GREY, "linestyle": "--", "linewidth": 2.0},
        0.5: {"color": BLACK, "linestyle": "-", "linewidth": 1.5},
        0.9: {"color": BLACK, "linestyle": "-", "linewidth": 0.8},
        1.4: {"color": BLACK, "linestyle": ":", "linewidth": 1.5},
    }
    for tau, style in styles.items():
        left.semilogy(values(f, 8, published(tau, step), 160), label=f"{tau:g}", **style)
    safe = values(f, 8, AcceleratedIHT(), 60)
    left.semilogy(safe, color=BLACK, marker="o", markersize=4, linewidth=1.0, label="safeguarded")
    left.set(title="constant step 1/L: momentum", xlabel="iteration", xlim=(0, 160), ylim=(1e-13, 1e2))
    left.set_ylabel("f(w) / f(0)")
    left.legend(frameon=False, title="$\\tau$", loc="upper right", ncols=2)

    drawn = gaussian_design(150, 4000, 10, seed=0)
    f, step = LinearModel(drawn.X, drawn.y), smooth_step(drawn.X)
    few = {
        "1/L": (published(0.0, step), {"color": GREY, "linewidth": 2.5}),
        "1/L, momentum 1/2": (published(0.5, step), {"color": BLACK, "linewidth": 1.0, "linestyle": "--"}),
        "step on the support": (published(0.0), {"color": GREY, "linewidth": 1.5, "linestyle": ":"}),
        "safeguarded": (AcceleratedIHT(), {"color": BLACK, "marker": "o", "markersize": 4, "linewidth": 1.0}),
        "default (working set)": (None, {"color": GREY, "marker": "s", "markersize": 5, "linewidth": 1.0}),
    }
    for name, (solver, style) in few.items():
        right.semilogy(values(f, 10, solver, 100), label=name, **style)
    right.set(title="150 rows, 4,000 columns: the step", xlabel="iteration", xlim=(0, 100), ylim=(1e-13, 1e2))
    right.legend(frameon=False, loc="center right")
    figure.savefig(STATIC / "solvers_momentum.png", dpi=110)


SOLVERS = {
    "IHT, 1/L": lambda step: published(0.0, step),
    "published, 1/L, 1/4": lambda step: published(0.25, step),
    "published, 1/L, 1/2": lambda step: published(0.5, step),
    "published, 1/L, 3/4": lambda step: published(0.75, step),
    "published, 1/L, exact": lambda step: published(ExactMomentum(), step),
    "published, 1/L, Nesterov, restart by value": lambda step: published(NesterovMomentum(), step),
    "published, 1/L, Nesterov, restart by gradient": lambda step: published(NesterovMomentum("gradient"), step),
    "IHT, step on the support": lambda _: published(0.0),
    "published, line search, 1/4": lambda _: published(0.25, ExactLineSearch("direction")),
    "published, line search, 1/2": lambda _: published(0.5, ExactLineSearch("direction")),
    "published, line search, exact": lambda _: published(ExactMomentum(), ExactLineSearch("direction")),
    "published, step on the support, 1/4": lambda _: published(0.25),
    "safeguarded, none": lambda _: AcceleratedIHT(momentum=ConstantMomentum(0.0)),
    "safeguarded, 1/2": lambda _: AcceleratedIHT(momentum=ConstantMomentum(0.5)),
    "safeguarded, Nesterov": lambda _: AcceleratedIHT(momentum=NesterovMomentum()),
    "safeguarded, exact (default)": lambda _: AcceleratedIHT(),
    "safeguarded, solved on every support": lambda _: AcceleratedIHT(debias="every"),
    "IHT, backtracking": lambda _: IHT(),
    "ConjugateIHT": lambda _: ConjugateIHT(),
    "HardThresholdingPursuit": lambda _: HardThresholdingPursuit(),
    "WorkingSet": lambda _: WorkingSet(),
}


def count():
    """Print iterations and data passes to 1e-10 of f(0), for the true number of non-zeros and for 244 instead of 50."""
    for k in (50, 244):
        for name, make in SOLVERS.items():
            iterations, passes = [], []
            for seed in range(3):
                drawn = gaussian_design(750, 2000, 50, seed=seed)
                f = LinearModel(drawn.X, drawn.y)
                first = f.value(f.zeros())
                states = islice(iterate(f, Sparsity(k), make(smooth_step(drawn.X))), 1001)
                reached = next((state for state in states if state.value <= 1e-10 * first), None)
                iterations.append(reached.iteration if reached else None)
                passes.append(reached.passes if reached else float("inf"))
            print(k, name, iterations, f"{median(passes):.1f} passes", flush=True)


def count_correlated():
    """Print how runs end on noisy, correlated columns: iterations, how many converged, and the value they end at."""
    for correlation, k in ((0.4, 20), (0.4, 60), (0.95, 20)):
        for name, make in SOLVERS.items():
            ends = []
            for seed in range(6):
                split = correlated_split(correlation=correlation, seed=seed)
                X, y = split.X[split.train], split.y[split.train]
                f = LinearModel(X, y)
                run = ht.minimize(f, Sparsity(k), make(smooth_step(X)), max_iter=1000, tol=1e-7)
                ends.append((run.n_iter, run.passes, run.converged, run.value / f.value(f.zeros())))
            iterations, passes, converged, shares = zip(*ends, strict=True)
            end = f"{sum(converged)} of 6 converged, f/f0 {sum(shares) / 6:.4f}"
            print(
                correlation,
                k,
                name,
                f"{median(iterations):g} iterations, {median(passes):.0f} passes, {end}",
                flush=True,
            )


if __name__ == "__main__":
    draw_momentum()
    count()
    count_correlated()
