"""Draw the pictures of the page on structured sparsity: ``python -m docs.figures.structured``.

They go to docs/_static/structured_*.png; the numbers are printed. About three minutes on one core.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import hardthresh as ht
from hardthresh.constraints import DoubleSparsity, GroupSparsity, OverlappingGroupSparsity, Sparsity
from hardthresh.objectives import LinearModel
from hardthresh.solvers import AcceleratedIHT

STATIC = Path(__file__).parents[1] / "_static"
BLACK, GREY, PALE = "#111111", "#8a8a8a", "#e9e9e9"
plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False


def draw_sets():
    """What the projection on each set keeps of the same vector."""
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(6), 4)
    z = rng.standard_normal(24) * np.repeat([0.5, 1.6, 0.6, 0.5, 1.2, 0.7], 4)
    overlapping = [list(range(start, start + 6)) for start in range(0, 20, 3)]
    sets = {
        "Sparsity(8): any 8 coordinates": (Sparsity(8), None),
        "GroupSparsity(labels, 2): 2 whole groups": (GroupSparsity(labels, 2), None),
        "DoubleSparsity(labels, 3, 2): 3 groups, 2 in each": (DoubleSparsity(labels, 3, 2), None),
        "OverlappingGroupSparsity(groups, 2): covered by 2 groups": (
            OverlappingGroupSparsity(overlapping, 2),
            overlapping,
        ),
    }
    figure, axes = plt.subplots(4, 1, figsize=(8, 6.6), layout="constrained", sharex=True, sharey=True)
    for ax, (title, (constraint, groups)) in zip(axes, sets.items(), strict=True):
        projection = constraint.project(z)
        print(title, projection.support, np.flatnonzero(projection.point))
        for g in range(0, 6, 2):
            if groups is None:
                ax.axvspan(4 * g - 0.5, 4 * g + 3.5, color=PALE, zorder=0)
        if groups is not None:
            for number, group in enumerate(groups):
                taken = number in projection.support.numbers
                height = -3.1 - 0.5 * (number % 2)
                ax.plot(
                    [group[0] - 0.3, group[-1] + 0.3],
                    [height, height],
                    color=BLACK if taken else GREY,
                    linewidth=3.5 if taken else 1.2,
                    solid_capstyle="butt",
                )
        ax.bar(range(24), z, color="white", edgecolor=GREY, linewidth=0.8)
        ax.bar(range(24), projection.point, color=BLACK)
        ax.axhline(0.0, color=BLACK, linewidth=0.8)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(xlim=(-0.7, 23.7), ylim=(-4.0, 3.2))
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    axes[-1].set_xlabel("coordinate")
    figure.savefig(STATIC / "structured_sets.png", dpi=110)


def draw_rows():
    """How many rows each set needs, where whole groups matter and where two of each five do."""
    rows, draws = [20, 30, 40, 60, 80, 120, 160], 40
    labels = np.arange(200) % 40
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    for ax, inside in zip(axes, (5, 2), strict=True):
        sets = {
            "single columns": (Sparsity(4 * inside), {"color": GREY, "marker": "s", "markerfacecolor": "white"}),
            "whole groups": (GroupSparsity(labels, 4), {"color": GREY, "marker": "s"}),
            "2 inside of each group": (DoubleSparsity(labels, 4, 2), {"color": BLACK, "marker": "o"}),
        }
        if inside == 5:
            del sets["2 inside of each group"]
        errors = {name: [] for name in sets}
        for n in rows:
            found = {name: [] for name in sets}
            for seed in range(draws):
                rng = np.random.default_rng((seed, n))
                X, w = rng.standard_normal((n, 200)), np.zeros(200)
                for g in rng.choice(40, 4, replace=False):
                    w[rng.permutation(np.flatnonzero(labels == g))[:inside]] = rng.standard_normal(inside)
                f = LinearModel(X, X @ w + 0.5 * rng.standard_normal(n))
                for name, (constraint, _) in sets.items():
                    run = ht.minimize(f, constraint)
                    found[name].append(float(np.sum((run.w - w) ** 2) / np.sum(w**2)))
            for name in sets:
                errors[name].append(np.median(found[name]))
        print(inside, {name: np.round(e, 4).tolist() for name, e in errors.items()}, flush=True)
        for name, (_, style) in sets.items():
            ax.loglog(rows, errors[name], label=name, markersize=7, **style)
        ax.set(title=f"{inside} of the 5 columns of each true group matter", xlabel="rows")
        ax.xaxis.set_major_locator(FixedLocator(rows))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        ax.legend(frameon=False, loc="lower left")
    axes[0].set_ylabel("error of the coefficients, relative")
    figure.savefig(STATIC / "structured_rows.png", dpi=110)


def draw_size():
    """How large groups of noise drive out small groups, and what weights do about it, for which solver."""
    sizes, draws = [2, 5, 10, 20], 20
    true = {("small", 3), ("small", 11)}
    methods = {
        "default solver": (None, None, {"color": GREY, "marker": "s", "markerfacecolor": "white"}),
        "default solver, weights": (None, "size", {"color": GREY, "marker": "s"}),
        "AcceleratedIHT": (AcceleratedIHT(), None, {"color": BLACK, "marker": "o", "markerfacecolor": "white"}),
        "AcceleratedIHT, weights": (AcceleratedIHT(), "size", {"color": BLACK, "marker": "o"}),
    }
    shares = {name: [] for name in methods}
    for size in sizes:
        labels = [("small", g) for g in range(20) for _ in range(2)]
        labels += [("large", g) for g in range(20) for _ in range(size)]
        hits = dict.fromkeys(methods, 0)
        for seed in range(draws):
            rng = np.random.default_rng((seed, size))
            X = rng.standard_normal((150, len(labels)))
            w = np.array([0.3 if label in true else 0.0 for label in labels])
            f = LinearModel(X, X @ w + rng.standard_normal(150))
            for name, (solver, weights, _) in methods.items():
                constraint = GroupSparsity(labels, 2, weights=weights)
                hits[name] += len(true.intersection(constraint.groups_of(ht.minimize(f, constraint, solver).support)))
        for name in methods:
            shares[name].append(hits[name] / (2 * draws))
        print(size, {name: share[-1] for name, share in shares.items()}, flush=True)
    figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name, (_, _, style) in methods.items():
        ax.plot(sizes, shares[name], label=name, markersize=7, **style)
    ax.set(xlabel="columns in each of 20 large groups of noise", ylabel="small true groups found", ylim=(0, 1.05))
    ax.xaxis.set_major_locator(FixedLocator(sizes))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
    ax.legend(frameon=False, loc="lower left")
    figure.savefig(STATIC / "structured_size.png", dpi=110)


if __name__ == "__main__":
    draw_sets()
    draw_rows()
    draw_size()
