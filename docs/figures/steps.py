"""Draw the pictures of the page on step sizes: ``python -m docs.figures.steps`` writes docs/_static/steps_*.png.

Every problem is drawn from the family of section 6 of Sparse Polyak with seed 0. About four minutes on one core.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from papers.sparse_polyak._data import ar1_problem

import hardthresh as ht
from hardthresh.constraints import Sparsity
from hardthresh.core import StallWarning
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT
from hardthresh.steps import AdaptiveSparsePolyak, Polyak, SparsePolyak

STATIC = Path(__file__).parents[1] / "_static"
BLACK, GREY = "#111111", "#8a8a8a"
LOSS = {"linear": "squared", "logistic": "logistic"}
plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False


def problem(model, d, s=30, s_star=15):
    """Return an objective of the paper's family, and its value at the true coefficients."""
    drawn = ar1_problem(d, s, s_star, model=model, seed=0)
    f = LinearModel(drawn.X, drawn.y, loss=LOSS[model])
    return f, f.value(drawn.coef)


def values(f, rule, iterations, s=30):
    """Return f at every iterate of hard thresholding from zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StallWarning)  # the pictures show stalls on purpose
        return ht.minimize(f, Sparsity(s), IHT(step=rule), max_iter=iterations, tol=0.0).history["value"]


def first_below(run, level):
    """Return the first iteration whose value is at most a level, nan if there is none."""
    below = np.flatnonzero(run <= level)
    return below[0] if below.size else np.nan


def draw_dimension():
    """How many iterations each norm needs when only the dimension grows."""
    dimensions = [500, 1000, 2000, 4000, 8000]
    rules = {
        "Polyak, c = 5": (Polyak, 5.0, {"color": GREY, "marker": "s", "linestyle": "-"}),
        "Polyak, c = 1": (Polyak, 1.0, {"color": GREY, "marker": "s", "linestyle": "--", "markerfacecolor": "white"}),
        "Sparse Polyak, c = 5": (SparsePolyak, 5.0, {"color": BLACK, "marker": "o", "linestyle": "-"}),
        "Sparse Polyak, c = 1": (
            SparsePolyak,
            1.0,
            {"color": BLACK, "marker": "o", "linestyle": "--", "markerfacecolor": "white"},
        ),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for ax, (model, share) in zip(axes, (("linear", 0.01), ("logistic", 0.1)), strict=True):
        counts = {name: [] for name in rules}
        for d in dimensions:
            f, f_star = problem(model, d)
            level = f_star + share * (f.value(f.zeros()) - f_star)
            for name, (rule, scale, _) in rules.items():
                counts[name].append(first_below(values(f, rule(target=f_star, scale=scale), 700), level))
        print(model, counts)
        for name, (_, _, style) in rules.items():
            ax.loglog(dimensions, counts[name], label=name, markersize=7, **style)
        ax.set(
            title=f"{'least squares' if model == 'linear' else 'logistic regression'}, to {share:.0%} of the gap",
            xlabel="number of features d",
            ylabel="iterations" if model == "linear" else "",
            ylim=(1.5, 1000),
        )
        ax.xaxis.set_major_locator(FixedLocator(dimensions))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes[0].legend(frameon=False, loc="upper left")
    figure.savefig(STATIC / "steps_dimension.png", dpi=110)


def draw_target():
    """What a target that is too high or too low does, with c = 5 and with c = 1."""
    f, f_star = problem("linear", 1000)
    styles = {
        2.0: {"color": GREY, "linestyle": "-", "linewidth": 2.5},
        1.0: {"color": BLACK, "linestyle": "-", "linewidth": 1.5},
        0.5: {"color": BLACK, "linestyle": "--", "linewidth": 1.5},
        0.0: {"color": GREY, "linestyle": "-", "linewidth": 0.8, "marker": ".", "markersize": 5},
    }
    names = {2.0: "2 f(w*)", 1.0: "f(w*)", 0.5: "f(w*) / 2", 0.0: "0"}
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    for ax, scale in zip(axes, (5.0, 1.0), strict=True):
        for ratio, style in styles.items():
            run = values(f, SparsePolyak(target=ratio * f_star, scale=scale), 120) / f_star
            print("c", scale, "target", ratio, "first", first_below(run, 1.0), "end", run[-1], "best", run.min())
            ax.semilogy(run, label=names[ratio], **style)
        ax.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
        ax.set(title=f"c = {scale:g}", xlabel="iteration", xlim=(0, 80))
        ax.yaxis.set_major_locator(FixedLocator([1, 1.5, 2, 3, 5]))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        ax.set_ylim(0.85, 7)
    axes[0].set_ylabel("f(w) / f(w*)")
    axes[1].legend(frameon=False, title="target", loc="upper right")
    figure.savefig(STATIC / "steps_target.png", dpi=110)


def draw_epochs():
    """Where Algorithm 2 goes with epochs of several lengths."""
    styles = {
        10: {"color": GREY, "linestyle": "-", "linewidth": 2.5},
        20: {"color": GREY, "linestyle": "--", "linewidth": 2.5},
        50: {"color": BLACK, "linestyle": "--", "linewidth": 1.5},
        100: {"color": BLACK, "linestyle": "-", "linewidth": 1.5},
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for ax, model in zip(axes, ("linear", "logistic"), strict=True):
        f, f_star = problem(model, 1000)
        for length, style in styles.items():
            run = values(f, AdaptiveSparsePolyak(epoch_length=length), 300) / f_star
            print(model, length, first_below(run, 1.01), run[-1], run.min())
            ax.semilogy(run, label=f"T = {length}", **style)
        ax.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
        ax.set(title="least squares" if model == "linear" else "logistic regression", xlabel="iteration", xlim=(0, 300))
        ax.yaxis.set_major_locator(FixedLocator([0.8, 1, 1.5, 2, 5, 10, 20, 50, 100]))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes[0].set_ylabel("f(w) / f(w*)")
    axes[1].legend(frameon=False, title="length of an epoch")
    figure.savefig(STATIC / "steps_epochs.png", dpi=110)


if __name__ == "__main__":
    draw_target()
    draw_epochs()
    draw_dimension()
