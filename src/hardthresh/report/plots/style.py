"""What all charts share: colours that differ in grey, axes without decoration, and the words about `ax`.

The group id of an artist is its description in words and numbers, which the HTML report shows as a tooltip.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

from hardthresh.core.errors import InvalidInputError
from hardthresh.core.numbers import number

from ..optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, PALE, GRID, AXIS = "#1b2430", "#5a6675", "#c8cfd7", "#e4e8ed", "#9aa5b1"
DARK, LIGHT, BAND = "#17568f", "#e08a2e", "#d5e3f0"  # which differ in grey, too
SHOWN = 40
"""Largest number of bars; more are not legible."""

_AX = """ax : matplotlib Axes, optional
    The axes to draw on. Default: a new figure of `matplotlib.pyplot`."""
_RETURNS = """Returns
-------
matplotlib Axes

Raises
------
MissingDependencyError
    If matplotlib is not installed."""
_Plot = TypeVar("_Plot", bound=Callable[..., Any])
LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": "small",
    "labelcolor": INK,
    "borderaxespad": 0.2,
    "handlelength": 1.6,
}
TITLE: dict[str, Any] = {"loc": "left", "fontsize": "small", "color": MUTED}


def takes_axes(plot: _Plot) -> _Plot:
    """Decorator: replace ``{ax}`` in a docstring by that parameter, ``{returns}`` by Returns and the start of Raises.

    ``{axes}`` is both.
    """
    words = cleandoc(plot.__doc__ or "").replace("{axes}", "{ax}\n\n{returns}")
    plot.__doc__ = words.replace("{ax}", _AX).replace("{returns}", _RETURNS) + "\n"
    return plot


def check_drawn(given: Any, kind: type, what: str) -> None:
    """Raise an error that says what a chart is of, if it was given something else."""
    if not isinstance(given, kind):
        raise InvalidInputError(f"this chart shows {what}; got {type(given).__name__}")


def shortened(name: str, length: int = 28) -> str:
    """Return the beginning and the end of a name that is too long for a label."""
    return name if len(name) <= length else f"{name[: length // 2]}…{name[-(length - length // 2 - 1) :]}"


def styled_axes(ax: Axes | None, height: float) -> Axes:
    """Return the given axes, or those of a new figure, without lines that carry no information."""
    if ax is None:
        pyplot = import_optional("matplotlib.pyplot", "charts need", extra="plot")
        ax = pyplot.subplots(figsize=(7.2, height), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(AXIS)
    ax.tick_params(color=AXIS, labelcolor=MUTED)
    ax.xaxis.label.set_color(MUTED)
    ax.yaxis.label.set_color(MUTED)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def write_only(ax: Axes, sentence: str) -> Axes:
    ax.text(0.5, 0.5, sentence, transform=ax.transAxes, ha="center", va="center", color=MUTED)
    ax.set_axis_off()
    return ax


def is_narrow(ax: Axes) -> bool:
    return bool(ax.bbox.width < 4.5 * ax.figure.dpi)


def line_break(ax: Axes) -> str:
    return "\n" if is_narrow(ax) else " "


def wrapped(label: str, letters: int) -> str:
    """Return a label in lines of at most so many letters, but for longer words: about 32 fit the axes of reports."""
    return fill(label, letters, break_long_words=False)


def logarithmic(ax: Axes) -> None:
    """Make both axes logarithmic, with labels at 1, 2 and 5 times the powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def shade(ax: Axes, x: float, y: float, size: float, text: str, tip: str) -> None:
    """Draw a cell of a matrix, the darker the larger its size (at most 1), with its number."""
    from matplotlib.patches import Rectangle

    cell = Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=DARK, alpha=min(max(0.04 + 0.5 * size, 0.04), 0.54))
    cell.set_gid(tip)
    ax.add_patch(cell)
    ax.text(x, y, text, ha="center", va="center", color=INK, fontsize="small", parse_math=False)


def matrix_axes(ax: Axes, rows: list[str], columns: list[str]) -> Axes:
    """Label the rows and columns of a matrix of cells, the first row on top."""
    narrow = is_narrow(ax)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    names = [[shortened(name, 12 if narrow else 20) for name in labels] for labels in (columns, rows)]
    points = 72 * ax.bbox.width / ax.figure.dpi / len(columns)
    letters = points / (0.6 * float(ax.xaxis.label.get_fontsize()))  # a letter is 0.6 of its height wide
    tilt: dict[str, Any] = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names[0])) >= letters else {}
    )
    ax.set_xticks(range(len(columns)), labels=names[0], parse_math=False, **tilt)
    ax.set_yticks(range(len(rows)), labels=names[1], parse_math=False)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    return ax
