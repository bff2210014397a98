"""Chart of a stability selection: how often half-samples choose each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import double
from hardthresh.core.numbers import number, percent
from hardthresh.core.printed import one_line
from hardthresh.estimators.selectors.stability import StabilitySelection

from .style import (
    DARK,
    INK,
    LEGEND,
    LIGHT,
    PALE,
    SHOWN,
    check_drawn,
    line_break,
    shortened,
    styled_axes,
    takes_axes,
    write_only,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_SHOWN = 8
"""At least so many features are drawn, and twice as many as are selected: those that nearly were belong to it."""


def shown_features(selector: Any) -> np.ndarray:
    """Return the features that a chart of a stability selection shows: those of the highest frequencies, at most 40."""
    frequencies = double(selector.inclusion_frequencies_)
    order = np.lexsort((-double(selector.pair_frequencies_), -frequencies))
    most = min(SHOWN, max(_LEAST_SHOWN, 2 * len(selector.support_)))
    shown = order[:most]
    return np.asarray(shown[frequencies[shown] > 0])


def stability_height(selector: Any) -> float:
    """Return the height in inches that the chart of a stability selection needs."""
    return 1.8 + 0.26 * max(1, shown_features(selector).size)


@takes_axes
def plot_stability(selector: Any, ax: Axes | None = None) -> Axes:
    """Draw the inclusion frequency of each feature, the most frequent on top, with the threshold.

    Bars of selected features are dark. A diamond is the share of the pairs in which both halves choose the feature. The
    label of the threshold contains the bound on the expected number of selected features of low selection probability;
    ``print(selector.statement())`` explains it.

    Parameters
    ----------
    selector : fitted StabilitySelection
        The selection.
    {axes}

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import plot_stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 50))
    >>> y = 3 * X[:, 4] - 2 * X[:, 30] + rng.standard_normal(100)
    >>> selector = ht.StabilitySelection(ht.SparseLinearRegression(n_nonzero_coefs=3), n_pairs=10).fit(X, y)
    >>> len(plot_stability(selector).patches)
    8
    """
    check_drawn(selector, StabilitySelection, "a fitted StabilitySelection")
    check_is_fitted(selector)
    shown, statement = shown_features(selector), selector.statement()
    ax = styled_axes(ax, height=stability_height(selector))
    if not shown.size:
        return write_only(ax, "no half-sample chooses a feature")
    frequencies, pairs = double(selector.inclusion_frequencies_)[shown], double(selector.pair_frequencies_)[shown]
    given = getattr(selector, "feature_names_in_", None)
    names = [f"feature {j}" if given is None else one_line(str(given[j])) for j in shown.tolist()]
    selected = selector.get_support()[shown]
    bars = ax.barh(
        range(shown.size), frequencies, height=0.62, color=[DARK if one else PALE for one in selected], zorder=2
    )
    for bar, name, frequency, pair in zip(bars, names, frequencies.tolist(), pairs.tolist(), strict=True):
        bar.set_gid(f"{name}: {percent(frequency)} of the half-samples, {percent(pair)} of the pairs")
    ax.plot(
        *(pairs, range(shown.size)),
        *("D",),
        markersize=4.5,
        markerfacecolor="none",
        markeredgecolor=LIGHT,
        linestyle="none",
        zorder=3,
        label="both halves of a pair",
    )
    ax.axvline(
        statement.threshold,
        color=INK,
        linewidth=1.2,
        linestyle=(0, (4, 3)),
        zorder=2.5,
        label=f"threshold {number(statement.threshold)}: at most {number(statement.value)}"
        "\nof low probability expected",
    )
    ax.set_yticks(range(shown.size), labels=[shortened(name) for name in names], parse_math=False)
    ax.set_ylim(shown.size - 0.4, -0.6)
    ax.set_xlim(-0.02, 1.02)  # diamonds at 0 are whole
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.spines["left"].set_visible(False)
    rest = int(np.count_nonzero(double(selector.inclusion_frequencies_))) - shown.size
    others = f";{line_break(ax)}{rest:,} more features are chosen at least once" if rest > 0 else ""
    ax.set_xlabel(f"share of {2 * statement.n_pairs:,} half-samples{others}")
    ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0))
    return ax
