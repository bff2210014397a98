"""Charts of a study: the error over time with its band, and what a plan found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number, percent

from .style import (
    AXIS,
    BAND,
    DARK,
    LEGEND,
    LIGHT,
    MUTED,
    TITLE,
    styled_axes,
    takes_axes,
    write_only,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@takes_axes
def plot_progress(progress: Any, ax: Axes | None = None) -> Axes:
    """Draw the error of the predictions of a study over its examples, with its band, and the error without attributes.

    At each point the error is a mean over the latest examples, which were predicted before they were learned from.

    Parameters
    ----------
    progress : hardthresh.study.Progress
        What ``hardthresh.study.progress`` returned.
    {axes}
    InvalidInputError
        If it is something else.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh.limited import AdaptiveHybrid, CostModel
    >>> from hardthresh.report import plot_progress
    >>> from hardthresh.study import progress
    >>> from hardthresh.study.simulation import simulate
    >>> X = np.random.default_rng(0).standard_normal((600, 12))
    >>> learned, _ = simulate(AdaptiveHybrid(2), CostModel.of(12, 6), X, X[:, 1] - X[:, 7], length=600)
    >>> plot_progress(progress(learned)).get_ylabel()
    'mean squared error\\nbefore learning'
    """
    curve = getattr(progress, "curve", None)
    if curve is None or not hasattr(curve, "null"):
        raise InvalidInputError(f"this chart shows the Progress of a study; got {type(progress).__name__}")
    ax = styled_axes(ax, height=3.8)
    if not len(curve.examples):
        return write_only(ax, "there is no error to be drawn yet")
    high = np.where(np.isfinite(curve.high), curve.high, np.nan)
    band = ax.fill_between(curve.examples, curve.low, high, color=BAND, linewidth=0.0, zorder=1)
    band.set_gid(f"{percent(progress.level)} intervals of the error")
    ax.plot(curve.examples, curve.null, color=LIGHT, linewidth=1.6, zorder=2, label="without attributes")
    ax.plot(curve.examples, curve.error, color=DARK, linewidth=1.9, zorder=3, label="predictions")
    (dot,) = ax.plot(curve.examples[-1], curve.error[-1], "o", color=DARK, markersize=5.0, zorder=4)
    dot.set_gid(f"{progress.errors[0].model} after {number(curve.examples[-1])} examples")
    ax.set_ylim(0.0, 1.15 * float(np.max([curve.error, curve.null])))
    ax.set_xlabel("examples")
    ax.set_ylabel(f"{progress.errors[0].name}\nbefore learning")
    ax.set_title(f"{percent(progress.level)} band, each over the latest examples", **TITLE)
    ax.legend(**LEGEND, loc="upper right")
    return ax


@takes_axes
def plot_plan(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw in what share of simulated studies all right columns were found, against the number of examples.

    Bars are 95 % intervals by Wilson. The dashed line shows tables of complete rows for the same money; the upper axis
    has the median cost. The dotted line is the share that is wanted.

    Parameters
    ----------
    plan : hardthresh.study.Plan
        What ``hardthresh.study.plan`` returned.
    {axes}
    InvalidInputError
        If it is something else.

    Examples
    --------
    >>> from hardthresh.report import plot_plan
    >>> from hardthresh.study import Terms, plan
    >>> terms = Terms.parse(
    ...     "n_nonzero_coefs = 1\\nbudget_per_example = 3\\n[target]\\nname = 'y'\\n"
    ...     + "".join(f"[attributes.a{j}]\\n" for j in range(6))
    ... )
    >>> plot_plan(plan(terms, examples=[50, 100], repeats=3)).get_xlabel()
    'examples'
    """
    sizes = getattr(plan, "sizes", None)
    if sizes is None or not hasattr(plan, "wanted"):
        raise InvalidInputError(f"this chart shows the Plan of a study; got {type(plan).__name__}")
    ax = styled_axes(ax, height=3.8)
    examples = np.array([size.examples for size in sizes], dtype=np.float64)
    cost = np.array([size.cost for size in sizes])
    study, complete = ([getattr(size, name) for size in sizes] for name in ("all_found", "complete_all_found"))
    for shares, color, style, marker, label, shift in (
        (study, DARK, "-", "o", "study", 1.0),
        (complete, LIGHT, "--", "s", "complete rows, same money", 1.02),  # beside the other bars
    ):
        value, low, high = (np.array([getattr(share, end) for share in shares]) for end in ("value", "low", "high"))
        ax.errorbar(
            *(examples * shift, value),
            yerr=np.clip([value - low, high - value], 0.0, None),
            color=color,
            linestyle=style,
            linewidth=1.6,
            elinewidth=0.9,
            capsize=2.0,
            marker=marker,
            markersize=4.5,
            zorder=2,
            label=label,
        )
    for size in sizes:
        (dot,) = ax.plot(size.examples, size.all_found.value, "o", color=DARK, markersize=4.5, zorder=3)
        dot.set_gid(
            f"{size.all_found} of {plan.repeats} studies of {size.examples:,} examples, for {number(size.cost)}"
        )
    ax.axhline(plan.wanted, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    if plan.allowed_examples is not None and examples[0] <= plan.allowed_examples <= examples[-1]:
        ax.axvline(plan.allowed_examples, color=AXIS, linewidth=1.0, zorder=1, label="what the terms allow")
    ax.set(xscale="log", ylim=(-0.03, 1.03), xlabel="examples", ylabel="all right columns found")
    shown = _spread(examples)
    ax.set_xticks(examples[shown], labels=[f"{int(n):,}" for n in examples[shown]])
    ax.yaxis.set_major_formatter(lambda share, _: percent(round(share, 6)))
    ax.minorticks_off()
    top = ax.secondary_xaxis("top")
    top.spines["top"].set_visible(False)
    top.tick_params(color=AXIS, labelcolor=MUTED)
    top.set_xticks(examples[shown], labels=[number(money) for money in cost[shown]])
    top.minorticks_off()
    top.set_xlabel(f"median cost{f' in {plan.terms.currency}' if plan.terms.currency else ''}", color=MUTED)
    ax.legend(**LEGEND, loc="best")
    return ax


def _spread(examples: np.ndarray) -> list[int]:
    """Return which sizes get a tick: those at least a third larger than the one before, and the first."""
    shown = [0]
    for i in range(1, len(examples)):
        if examples[i] >= examples[shown[-1]] * 4 / 3:
            shown.append(i)
    return shown
