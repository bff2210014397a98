"""Chart of a comparison of methods: held-out loss against the number of features."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from hardthresh.comparison import MethodComparison
from hardthresh.comparison.entries import Entry
from hardthresh.comparison.verdict import with_error
from hardthresh.core.numbers import number

from .style import (
    AXIS,
    DARK,
    INK,
    LEGEND,
    LIGHT,
    MUTED,
    check_drawn,
    is_narrow,
    styled_axes,
    takes_axes,
    wrapped,
    write_only,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "os^vDP<>pXh*"
"""The marks of methods by their place; more methods begin again."""


@takes_axes
def plot_comparison(comparison: MethodComparison, ax: Axes | None = None) -> Axes:
    """Draw the held-out loss of each method against the number of its features, on a logarithmic scale.

    Lower is better, and models further to the left have fewer features. Vertical bars are one standard error of the
    mean over outer folds, horizontal bars the range of the number of features. Hollow markers are methods that use all
    features. The dotted line is the model without features.

    Parameters
    ----------
    comparison : MethodComparison
        The comparison.
    {axes}

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import plot_comparison
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> found = ht.compare(X, X[:, 2] + rng.standard_normal(60), entrants=["hardthresh", "ridge"], folds=3)
    >>> plot_comparison(found).get_xlabel()
    'number of features'
    """
    check_drawn(comparison, MethodComparison, "a comparison of methods, which hardthresh.compare returns")
    ax = styled_axes(ax, height=4.6)
    entries = comparison.ranked
    if not entries:
        return write_only(ax, "no method could be fitted")
    seen: Counter[float] = Counter()
    for place, entry in enumerate(entries):
        x = float(median(entry.counts))
        _draw(ax, comparison, entry, MARKS[place % len(MARKS)], x * (1.0 + _APART * seen[x]))
        seen[x] += 1
    null = ax.axhline(1.0, color=INK, linewidth=1.3, linestyle=(0, (1, 2)), zorder=1.5, label="no features: 1")
    null.set_gid("no features: 1")
    most = max(max(entry.counts) for entry in entries)
    ax.set_xscale("symlog", linthresh=1.0, linscale=0.4)
    steps = (1, 2, 5) if most < 200 and not is_narrow(ax) else (1,)
    shown = [0, *(step * 10**power for power in range(7) for step in steps if step * 10**power <= 1.3 * most)]
    ax.set_xticks(shown, labels=[f"{tick:,}" for tick in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlim(-0.2, 1.8 * most + 0.2)
    low = min(min(entry.relative_loss, _HIGHEST) - _error(comparison, entry) for entry in entries)
    high = max(min(entry.relative_loss, _HIGHEST) + min(_error(comparison, entry), _HIGHEST) for entry in entries)
    if high > _NEAR:
        low, high = min(low, 1.0), max(high, 1.0)
    room = 0.06 * (high - low if high > low else 1.0)  # of the axis, above and below the marks
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel("number of features")
    ax.set_ylabel(f"{wrapped(f'held-out {comparison.target.measure}', 26)}\n(1 is no features; lower is better)")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2 if is_narrow(ax) else 4)
    return ax


_APART = 0.06
"""Share of the number of features by which marks at the same number are moved apart, so that all can be seen."""
_NEAR = 0.6
"""If all losses are below, the axis ends there, and the line of no features is above it: else marks are too close."""
_HIGHEST = 2.0
"""The largest loss that is drawn: a method that is worse than twice no features would hide what the others do."""


def _draw(ax: Axes, comparison: MethodComparison, entry: Entry, mark: str, x: float) -> None:
    ours = entry.name == "hardthresh"
    colour = DARK if ours else MUTED if entry.uses_all else LIGHT
    error, counts = _error(comparison, entry), entry.counts
    y = min(entry.relative_loss, _HIGHEST)
    ax.errorbar(
        x,
        y,
        xerr=[[max(x - min(counts), 0.0)], [max(max(counts) - x, 0.0)]],
        yerr=error or None,
        color=colour,
        ecolor=AXIS,
        elinewidth=1.1,
        marker=mark,
        markersize=9.0 if ours else 7.5,
        markerfacecolor="none" if entry.uses_all else colour,
        markeredgecolor=colour,
        markeredgewidth=1.6,
        linestyle="none",
        zorder=4 if ours else 3,
        label=entry.name,
    )
    how_many = "all features" if entry.uses_all else f"{median(entry.counts):g} features"
    (dot,) = ax.plot(x, y, marker=mark, markersize=9.0, alpha=0.0, linestyle="none", zorder=5)
    loss = with_error(entry.relative_loss, comparison.difference(entry.name).error)
    dot.set_gid(f"{entry.name}: {loss} with {how_many}")


def _error(comparison: MethodComparison, entry: Entry) -> float:
    error = comparison.difference(entry.name).error
    return error if error == error else 0.0  # of one fold it is NaN


def loss_words(entry: Entry) -> str:
    """Return the loss of an entrant, for a description of the chart."""
    return f"{entry.name} {number(entry.relative_loss)}"
