"""Chart of a selection by knockoffs: the statistics of all features, with the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hardthresh.core.checking import checked_integer
from hardthresh.core.numbers import number
from hardthresh.estimators.selectors.knockoffs import Knockoffs

from .style import DARK, INK, LEGEND, LIGHT, MUTED, PALE, TITLE, check_drawn, styled_axes, takes_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED = 20
"""With more selected features than that, their names would cover one another."""


@takes_axes
def plot_knockoffs(selector: Any, ax: Axes | None = None, *, draw: int | None = None) -> Axes:
    """Draw the knockoff statistic W of each feature and the threshold of the selection.

    W is positive if a feature is more important than its knockoff. Features above the threshold are selected, and named
    if there are at most 20. The number of features below minus the threshold estimates the number of false selections,
    because a null feature is equally likely on both sides. With several draws, the default is to draw the mean
    e-values, with the smallest value that is selected.

    Parameters
    ----------
    selector : fitted Knockoffs
        The selection.
    {ax}
    draw : int, optional
        The draw of the knockoffs whose statistics are shown, counted from 0.

    {returns}
    InvalidInputError
        If it is not a Knockoffs, or there is no such draw.

    Examples
    --------
    >>> import numpy as np
    >>> import hardthresh as ht
    >>> from hardthresh.report import plot_knockoffs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 40))
    >>> y = X[:, :8].sum(axis=1) + rng.standard_normal(300)
    >>> selector = ht.Knockoffs(ht.SparseLinearRegression(), fdr=0.2, random_state=1).fit(X, y)
    >>> plot_knockoffs(selector).get_ylabel()
    'W, column against knockoff'
    """
    check_drawn(selector, Knockoffs, "a fitted Knockoffs")
    check_is_fitted(selector)
    draws = len(selector.statistics_)
    if draw is not None or draws == 1:
        row = checked_integer("draw", draw or 0, 0, draws - 1, "the last draw")
        values, threshold = selector.statistics_[row], float(selector.threshold_[row])
        selected, label, what = np.flatnonzero(values >= threshold), "W, column against knockoff", "W"
    else:
        values, selected = selector.e_values_, selector.support_
        needed = selector.tested_.size / (selector.fdr * max(selected.size, 1))
        threshold, label, what = needed if selected.size else np.inf, "mean e-value", "e"
    ax = styled_axes(ax, height=3.8)
    others = np.setdiff1d(selector.tested_, selected)
    against = others[values[others] <= -threshold]
    ax.plot(others, values[others], "o", color=PALE, markersize=3.5, linestyle="none", zorder=2)
    if against.size:
        ax.plot(against, values[against], "s", color=LIGHT, markersize=4.5, linestyle="none", zorder=3)
    names = getattr(selector, "feature_names_in_", None)
    for j in selected.tolist():
        (dot,) = ax.plot(j, values[j], "o", color=DARK, markersize=5.0, linestyle="none", zorder=4)
        name = f"feature {j}" if names is None else names[j]
        dot.set_gid(f"{name}: {what} = {number(float(values[j]))}")
        if names is not None and selected.size <= _NAMED:
            ax.annotate(
                name,
                (j, values[j]),
                xytext=(5, 2),
                textcoords="offset points",
                color=INK,
                fontsize="small",
                parse_math=False,
            )
    if np.isfinite(threshold):
        ax.axhline(threshold, color=INK, linewidth=1.2, zorder=1.5, label=f"threshold: {number(threshold)}")
        if what == "W":
            beyond = f"minus the threshold: {against.size} below"
            ax.axhline(-threshold, color=LIGHT, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1.5, label=beyond)
        ax.legend(**LEGEND, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2)
    else:
        ax.set_title("nothing is selected", **TITLE)
    ax.axhline(0.0, color=MUTED, linewidth=0.8, zorder=1)
    ax.set_xlabel("feature, counted from 0")
    ax.set_ylabel(label)
    return ax
