"""Draw the picture of the page on the theory of momentum: ``python -m docs.figures.accelerated_iht``.

It goes to docs/_static/accelerated_rate.png; the numbers are printed. Some seconds on one core.
"""

from itertools import islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from papers.accelerated_iht._data import gaussian_design, toy

from hardthresh.constraints import Sparsity
from hardthresh.core import iterate
from hardthresh.diagnostics import best_momentum, local_rate, momentum_range, restricted_constants
from hardthresh.objectives import LinearModel
from hardthresh.solvers import AcceleratedIHT, ConstantMomentum
from hardthresh.steps import Fixed

STATIC = Path(__file__).parents[1] / "_static"
BLACK, GREY, PALE = "#111111", "#8a8a8a", "#d9d9d9"
plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False


def measured_rate(f, k, step, momentum):
    """Return the factor by which the error shrank between 1e-8 and 1e-24 of f(0), nan if it never got there."""
    solver = AcceleratedIHT(variant="paper", momentum=ConstantMomentum(momentum), step=Fixed(step))
    with np.errstate(all="ignore"):  # some diverge
        values = np.array([state.value for state in islice(iterate(f, Sparsity(k), solver), 2000)])
    near, end = (np.flatnonzero(values <= share * values[0]) for share in (1e-8, 1e-24))
    if not end.size:
        return np.nan
    first, last = near[0], end[0]
    return float((values[last] / values[first]) ** (0.5 / (last - first)))


def draw_rate():
    """The local law against what runs did, and the range that the theorem allows."""
    small, wide = toy(seed=409), gaussian_design(120, 400, 8, seed=7)
    f_toy, f_wide = LinearModel(small.X, small.y), LinearModel(wide.X, wide.y)
    constants = restricted_constants(f_toy, 2)
    cases = [
        ("toy, 6 x 10, k = 2, step $1/\\beta$", small, f_toy, 2, 1.0 / constants.smoothness),
        ("120 x 400, k = 8, step 1/L", wide, f_wide, 8, 120 / np.linalg.norm(wide.X, 2) ** 2),
    ]
    allowed = momentum_range(constants.strong_convexity, constants.smoothness).without_golden_ratio
    taus = np.linspace(-1.3, 1.5, 281)
    tried = [-1.25, -1.1, -0.9, -0.6, -0.3, 0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.2, 1.3]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    for ax, (title, drawn, f, k, step) in zip(axes, cases, strict=True):
        S = drawn.support
        eigenvalues = np.linalg.eigvalsh(f.hessian(f.evaluate(f.zeros()))[np.ix_(S, S)])
        best = best_momentum(eigenvalues, step)
        rates = [measured_rate(f, k, step, tau) for tau in tried]
        law = [local_rate(eigenvalues, step, tau) for tau in tried]
        print(title, "best", best, local_rate(eigenvalues, step, best))
        print([(t, round(a, 4), round(b, 4)) for t, a, b in zip(tried, law, rates, strict=True)])
        ax.plot(taus, [local_rate(eigenvalues, step, tau) for tau in taus], color=BLACK, label="local law")
        ax.plot(tried, rates, "o", color=BLACK, markerfacecolor="white", label="measured")
        ax.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
        ax.axvline(best, color=GREY, linewidth=1.0, linestyle=":", label="best constant")
        if k == 2:
            ax.axvspan(-allowed, allowed, color=PALE, zorder=0, label="caption of Fig. 1")
        ax.set(title=title, xlabel="momentum $\\tau$", xlim=(-1.3, 1.5), ylim=(0.5, 1.1))
        ax.legend(frameon=False, loc="lower left")
    axes[0].set_ylabel("factor of the error per iteration")
    figure.savefig(STATIC / "accelerated_rate.png", dpi=110)


if __name__ == "__main__":
    draw_rate()
