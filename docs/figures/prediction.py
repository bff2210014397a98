"""Draw and write what the page on prediction shows: ``python -m docs.figures.prediction``, in the root of the project.

It reads benchmarks/results/prediction/*.json (benchmarks/README.md has the command that makes them), and writes
docs/_static/prediction_*.png and docs/guide/prediction_*. Nothing is measured. Another folder may be its argument.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

DOCS = Path(__file__).parents[1]
RESULTS = DOCS.parent / "benchmarks" / "results" / "prediction"
SETTINGS = {
    "low": "100×10, s = 5",
    "medium": "500×100, s = 5",
    "high-5": "50×1000, s = 5",
    "high-10": "100×1000, s = 10",
}

BLACK, GREY = "#111111", "#8a8a8a"
STYLES: dict[str, dict[str, Any]] = {  # readable without colour: by shape and by filling
    "hardthresh": {"marker": "o", "color": BLACK, "markerfacecolor": BLACK, "markersize": 8},
    "relaxed lasso": {"marker": "s", "color": GREY, "markerfacecolor": "white"},
    "lasso": {"marker": "s", "color": GREY, "markerfacecolor": GREY},
    "elastic net": {"marker": "P", "color": GREY, "markerfacecolor": GREY},
    "relaxed l1 logistic": {"marker": "s", "color": GREY, "markerfacecolor": "white"},
    "l1 logistic": {"marker": "s", "color": GREY, "markerfacecolor": GREY},
    "abess CV": {"marker": "^", "color": GREY, "markerfacecolor": GREY},
    "abess GIC": {"marker": "^", "color": GREY, "markerfacecolor": "white"},
    "OMP": {"marker": "D", "color": GREY, "markerfacecolor": "white"},
    "ridge": {"marker": "x", "color": GREY},
    "random forest": {"marker": "*", "color": GREY, "markerfacecolor": GREY},
}
SCHEMES = {  # text on the page has a contrast of 4.5 or more
    "": {"page": "#ffffff", "text": "#333333", "other": "#767676", "ours": "#0a58a6"},
    "_dark": {"page": "#14181e", "text": "#d6d9de", "other": "#9a9fa8", "ours": "#6db3f2"},
}
PLACES = {  # of names that would cover others beside their mark: by panel and method, in points from the mark
    (0, "hardthresh"): (0, -14, "center"),
    (0, "abess CV"): (8, 4, "left"),
    (0, "ridge"): (-8, 0, "right"),
    (1, "hardthresh"): (0, -14, "center"),
    (1, "elastic net"): (0, -12, "center"),
    (1, "random forest"): (-8, 0, "right"),
    (1, "ridge"): (-8, 0, "right"),
    (2, "hardthresh"): (0, -14, "center"),
    (2, "relaxed l1 logistic"): (-8, 5, "right"),
    (2, "l1 logistic"): (8, -8, "left"),
    (2, "random forest"): (0, 12, "center"),
    (2, "ridge"): (0, -12, "center"),
}
LINES = ("hardthresh", "relaxed lasso", "lasso", "elastic net", "abess CV")

Outcome = dict[str, Any]


def load(folder: Path, task: str) -> tuple[list[Outcome], dict[str, Any]]:
    """Return the outcomes of a task in the reporting half, and the machine."""
    kept = json.loads((folder / f"{task}.json").read_text(encoding="utf-8"))
    return [outcome for outcome in kept["outcomes"] if outcome["half"] == "reporting"], kept["machine"]


def means(outcomes: list[Outcome], entrant: str, measure: str) -> list[float]:
    """Return the mean over repetitions on each instance that an entrant has finished."""
    return [float(np.mean(each["measures"][entrant][measure])) for each in outcomes if entrant in each["measures"]]


def draw_features(simulated: list[Outcome], real: list[Outcome], colours: dict[str, str]) -> plt.Figure:
    """Return the picture of held-out loss against the number of features, means over instances, by entrant."""
    panels = [
        ("{} simulated settings", "risk", simulated),
        ("{} real data sets, numbers", "loss", [each for each in real if each["loss"] == "squared"]),
        ("{} real data sets, two classes", "loss", [each for each in real if each["loss"] == "logistic"]),
    ]
    figure, axes = plt.subplots(1, len(panels), figsize=(10.5, 4.0), layout="constrained", facecolor=colours["page"])
    for panel, (ax, (title, measure, outcomes)) in enumerate(zip(axes, panels, strict=True)):
        for name in STYLES:
            losses = means(outcomes, name, measure)
            if losses:
                point = float(np.mean(means(outcomes, name, "features"))), float(np.mean(losses))
                mark_method(ax, name, point, PLACES.get((panel, name), (8, 0, "left")), colours)
        ax.set(xscale="log", yscale="log", facecolor=colours["page"])
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
            axis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)))
        ax.tick_params(which="both", colors=colours["text"])
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(colours["other"])
        ax.set_title(title.format(len(outcomes)), color=colours["text"], fontsize=11)
        ax.set_xlabel("number of features in the model", color=colours["text"])
        ax.margins(0.12)
    axes[0].set_ylabel("error on new rows (1 = no features)", color=colours["text"])
    arrow = {"arrowstyle": "->", "color": colours["text"]}
    axes[1].annotate(
        "better", (0.05, 0.75), (0.2, 0.9), xycoords="axes fraction", color=colours["text"], arrowprops=arrow
    )
    return figure


def mark_method(
    ax: plt.Axes, name: str, point: tuple[float, float], place: tuple[float, float, str], colours: dict[str, str]
) -> None:
    """Draw the mark of a method, and its name at a place relative to the mark."""
    ours = name == "hardthresh"
    ax.plot(
        *point, marker="o" if ours else "s", color=colours["ours" if ours else "other"], markersize=9 if ours else 6
    )
    ax.annotate(
        name,
        point,
        place[:2],
        textcoords="offset points",
        ha=place[2],
        va="center",
        color=colours["ours" if ours else "text"],
        fontweight="bold" if ours else "normal",
    )


def draw_risk(outcomes: list[Outcome]) -> plt.Figure:
    """Return the picture of mean relative risk against the signal-to-noise ratio, a panel for each setting."""
    figure, axes = plt.subplots(1, len(SETTINGS), figsize=(9.0, 3.6), sharey=True, layout="constrained")
    drawn = {}
    for ax, (setting, size) in zip(axes, SETTINGS.items(), strict=True):
        by_ratio: dict[float, list[Outcome]] = {}
        for outcome in outcomes:
            if outcome["title"].startswith(f"{setting} "):
                by_ratio.setdefault(float(outcome["title"].rpartition(" snr")[2]), []).append(outcome)
        for name in LINES:
            line = [(ratio, np.mean(means(here, name, "risk"))) for ratio, here in sorted(by_ratio.items())]
            (drawn[name],) = ax.plot(*zip(*line, strict=True), **{**STYLES[name], "linewidth": 1, "markersize": 5})
        ax.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        ax.set_xscale("log")
        ax.set_xticks([0.05, 0.25, 1.22, 6], ["0.05", "0.25", "1.22", "6"])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(f"{setting}: {size}", fontsize=9)
        ax.set_xlabel("signal-to-noise ratio")
    axes[0].set_ylim(0, min(axes[0].get_ylim()[1], 2.0))
    axes[0].set_ylabel("mean relative risk")
    figure.legend(drawn.values(), drawn, loc="outside lower center", ncols=len(drawn), frameon=False)
    return figure


def write_table(path: Path, table: dict[str, Any]) -> None:
    """Write a table as the page includes it."""
    rows = table["rows"] or [["none", *[""] * (len(table["header"]) - 1)]]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([table["header"], *rows])


def numbers(simulated: list[Outcome], real: list[Outcome], machine: dict[str, Any]) -> dict[str, str]:
    """Return what the text substitutes."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    repetitions = sorted({len(next(iter(each["measures"].values()))["features"]) for each in real})
    return {
        "prediction_source": f"{machine['date']}, Python {machine['python']}, {versions}",
        "prediction_cells": str(len(simulated)),
        "prediction_sets": str(len(real)),
        "prediction_splits": " to ".join(str(count) for count in dict.fromkeys((repetitions[0], repetitions[-1]))),
        "prediction_draws": str(len(next(iter(simulated[0]["measures"].values()))["features"])),
    }


def main(arguments: list[str]) -> None:
    """Write everything."""
    folder = Path(arguments[0]) if arguments else RESULTS
    simulated, machine = load(folder, "simulated")
    real, _ = load(folder, "real")
    plt.rcParams.update({"font.size": 9, "legend.fontsize": 8.5})
    figures = {f"features{scheme}": draw_features(simulated, real, colours) for scheme, colours in SCHEMES.items()}
    for name, figure in {**figures, "risk": draw_risk(simulated)}.items():
        figure.savefig(DOCS / "_static" / f"prediction_{name}.png", dpi=160, metadata={"Software": None})
        plt.close(figure)
    for name, table in json.loads((folder / "tables.json").read_text(encoding="utf-8")).items():
        write_table(DOCS / "guide" / f"prediction_{name}.csv", table)
    lines = [f".. |{name}| replace:: {value}" for name, value in numbers(simulated, real, machine).items()]
    text = ".. Written by docs/figures/prediction.py; do not edit.\n\n" + "\n".join(lines) + "\n"
    (DOCS / "guide" / "prediction_numbers.inc").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
