"""How the figures look: the same lines for the same things, told apart without colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

INK, MUTED, GRID = "#1b2430", "#5a6675", "#e4e8ed"

LINES: list[dict[str, Any]] = [
    {"color": "#17568f", "linestyle": "-", "marker": "o"},
    {"color": "#e08a2e", "linestyle": "--", "marker": "s"},
    {"color": "#3a8f5c", "linestyle": "-.", "marker": "^"},
    {"color": "#8c3b7a", "linestyle": ":", "marker": "D"},
    {"color": "#5a6675", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#b3372f", "linestyle": (0, (1, 1)), "marker": "X"},
    {"color": "#1b2430", "linestyle": (0, (8, 2)), "marker": "P"},
]
"""Colour, dashes and marker of the first line, the second line, ..."""

MORE_LINES: list[dict[str, Any]] = [
    {"color": "#2a9da0", "linestyle": (0, (3, 1, 1, 1)), "marker": "*"},
    {"color": "#a0744a", "linestyle": (0, (5, 3)), "marker": "<"},
    {"color": "#d6679c", "linestyle": (0, (1, 2)), "marker": ">"},
]
"""Three lines more, for a panel in which seven are too few."""

GUIDE = "#9aa5b1"
"""Colour of lines to compare with, such as a power or a diagonal; no method has it."""

NOTE: dict[str, Any] = {"fontsize": 8.5, "color": MUTED, "horizontalalignment": "right"}
"""For a remark in a panel."""


def new_figure(rows: int, columns: int, title: str, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """Return a figure with a title, and its panels row by row."""
    figure = Figure(figsize=(4.4 * columns + 0.4, height * rows + 0.5), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)  # type: ignore[union-attr]
    figure.suptitle(title, fontsize=12, color=INK)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for panel in panels:
        panel.grid(True, color=GRID, linewidth=0.8)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(MUTED)
        panel.tick_params(colors=MUTED, which="both", labelsize=9)
    return figure, panels


def label(panel: Axes, title: str, x: str, y: str) -> None:
    """Write what a panel shows, and the numbers of a logarithmic axis: in full, or as powers if they are very small."""
    if panel.get_yscale() == "log":
        low, high = panel.get_ylim()
        marks = (1, 1.5, 2, 3, 5, 7) if high / low < 8 else (1, 2, 5) if high / low < 500 else (1,)
        panel.yaxis.set_major_locator(LogLocator(subs=marks))
        panel.yaxis.set_major_formatter(FuncFormatter(_power if low < 1e-4 else lambda value, _: f"{value:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_title(title, fontsize=10.5, color=INK)
    panel.set_xlabel(x, fontsize=9.5, color=INK)
    panel.set_ylabel(y, fontsize=9.5, color=INK)


def curves(
    panel: Axes, runs: Sequence[Sequence[float]], name: str | None, line: int | dict[str, Any], *, band: bool = True
) -> None:
    """Draw the median of runs, and a band: the range of all, of more than four runs the middle half.

    Drawn as far as every run goes. The markers are few, and not at the same place for different lines.
    """
    style = LINES[line] if isinstance(line, int) else line
    length = min(len(run) for run in runs)
    values = np.array([run[:length] for run in runs], dtype=float)
    at = np.arange(length)
    if band:
        _band(panel, at, values, style["color"])
    every = (0.02 * (LINES.index(style) if style in LINES else 0), 0.14)
    panel.plot(at, np.median(values, axis=0), label=name, linewidth=1.6, markersize=4.5, markevery=every, **style)


def medians(
    panel: Axes, at: Sequence[float], runs: Sequence[Sequence[float]], name: str | None, line: int | dict[str, Any]
) -> None:
    """Draw the median of the numbers of each run over an axis, with a marker at each, and a band as `curves` does."""
    style = LINES[line] if isinstance(line, int) else line
    values = np.array(runs, dtype=float)
    _band(panel, at, values, style["color"])
    panel.plot(at, np.median(values, axis=0), label=name, linewidth=1.6, markersize=5, **style)


def _band(panel: Axes, at: Any, values: np.ndarray, color: str) -> None:
    """Shade the range of several runs, of more than four the middle half."""
    if len(values) > 1:
        low, high = np.quantile(values, (0.25, 0.75) if len(values) > 4 else (0.0, 1.0), axis=0)
        panel.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)


def remark(figure: Figure, text: str) -> None:
    """Write below all panels what the bands are, and whatever else a reader would ask."""
    figure.supxlabel(text, fontsize=8.5, color=MUTED)


def legend(panel: Axes, **settings: Any) -> None:
    """Add a legend that does not shout."""
    panel.legend(fontsize=8.5, frameon=False, labelcolor=INK, handlelength=3.2, **settings)


def shared_legend(figure: Figure) -> None:
    """Add one legend for all panels, beside them; a name that is in several panels is listed once."""
    entries: dict[str, Any] = {}
    for panel in figure.axes:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    settings = {"fontsize": 8.5, "frameon": False, "labelcolor": INK, "handlelength": 3.2}
    figure.legend(entries.values(), entries.keys(), loc="outside right center", **settings)
    figure.set_figwidth(figure.get_figwidth() + 1.8)


def _power(value: float, _: int) -> str:
    return f"$10^{{{math.log10(value):.0f}}}$"
