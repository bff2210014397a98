"""The chart of the sets of features that fit nearly as well as a model."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from hardthresh.certificates import Alternatives
from hardthresh.core.errors import plural
from hardthresh.core.numbers import number, percent, signed_percent

from .style import DARK, LIGHT, check_drawn, is_narrow, matrix_axes, styled_axes, takes_axes, write_only

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SETS = 30
"""Most sets that are drawn: more rows are not legible."""
_FEATURES, _NARROW = 24, 10
"""Most features that are drawn, and those on a telephone."""


def _labels_apart(ax: Axes, labels: list[str]) -> None:
    """Label as many of the rows of a matrix as its height has room for, which a layout may change until it is drawn."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    class Apart(FixedLocator):
        def __call__(self) -> Any:
            points = 72 * ax.bbox.height / ax.figure.dpi / len(labels)
            return range(0, len(labels), max(1, ceil(1.05 * float(ax.yaxis.label.get_fontsize()) / points)))

    ax.yaxis.set_major_locator(Apart(range(len(labels))))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda place, _: labels[round(place)]))


def alternatives_height(found: Alternatives) -> float:
    """Return the height in inches that the chart of alternatives needs."""
    return 1.7 + 0.2 * min(len(found.supports), _SETS)


@takes_axes
def plot_alternatives(found: Alternatives, ax: Axes | None = None) -> Axes:
    """Draw the features of the sets that fit nearly as well as a model: one row for each set, the best on top.

    Features of the model are dark, others light. A column that is dark in all rows is a feature that is hard to
    replace. Rows are labelled with the increase of the objective, if there is room. At most 30 sets are drawn, and if
    there are many features, those of the model and then the most frequent ones. If there is no other set, a text says
    so.

    Parameters
    ----------
    found : Alternatives
        What ``alternatives()`` of a model returned.
    {axes}
    InvalidInputError
        If it is not what `alternatives` returns.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from hardthresh.datasets import load_colon
    >>> from hardthresh.report import plot_alternatives
    >>> colon = load_colon()
    >>> model = ht.SparseLogisticRegression(n_nonzero_coefs=3).fit(colon.data, colon.target)
    >>> len(plot_alternatives(model.alternatives(tolerance=0.05, most=5)).patches)
    15
    """
    check_drawn(found, Alternatives, "the Alternatives that model.alternatives() returns")
    ax = styled_axes(ax, alternatives_height(found))
    from matplotlib.patches import Rectangle

    own, shares = found.own, found.shares
    order = [*(name for name in shares if name in own), *(name for name in shares if name not in own)]
    if not order:
        return write_only(ax, f"no {found.unit} is chosen")
    if len(found.supports) == 1:
        size = plural(len(own), found.unit)
        return write_only(
            ax, f"no other set of {size} was found\nto fit within {number(100 * found.tolerance)} % of the model"
        )
    shown = order[: max(_NARROW if is_narrow(ax) else _FEATURES, len(own))]
    supports = found.supports[:_SETS]
    labels = ["the model" if not one.added else signed_percent(one.excess) for one in supports]
    for i, support in enumerate(supports):
        for j, name in enumerate(shown):
            if name in support.names:
                cell = Rectangle((j - 0.45, i - 0.4), 0.9, 0.8, facecolor=DARK if name in own else LIGHT)
                cell.set_gid(f"{name}, {labels[i]}: in {percent(shares[name])} of the sets")
                ax.add_patch(cell)
    left_out = len(order) - len(shown)
    if left_out:
        ax.set_title(f"{left_out} more {found.unit}s in fewer sets", loc="left", fontsize="small")
    matrix_axes(ax, labels, shown)
    _labels_apart(ax, labels)
    return ax
