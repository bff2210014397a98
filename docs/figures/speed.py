"""Draw and write what the page on speed shows: ``python -m docs.figures.speed`` reads benchmarks/results/*.json.

It writes docs/_static/speed_*.png, and the numbers and tables of the text as docs/guide/speed_*. Nothing is measured.
With another folder as its argument the page says that its figures are provisional.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

DOCS = Path(__file__).parents[1]
RESULTS = DOCS.parent / "benchmarks" / "results"

# seeds on which the settings of the search were chosen; never in a figure
TUNED_ON = {*range(100, 122), *range(200, 290), *range(300, 420)}
SAME = 1 + 1e-6  # an objective within a millionth is as good
TITLE = re.compile(r"(\d+)x(\d+) k(\d+) rho([\d.]+) (?:snr|scale)([\d.]+)")
BLACK, GREY = "#111111", "#8a8a8a"
STYLES = {  # readable without colour: by shape and by filling
    "hardthresh": {"marker": "o", "color": BLACK, "markerfacecolor": BLACK},
    "hardthresh thorough": {"marker": "s", "color": BLACK, "markerfacecolor": "white"},
    "hardthresh pursuit": {"marker": "+", "color": "#444444", "markerfacecolor": "none"},
    "abess": {"marker": "^", "color": GREY, "markerfacecolor": GREY},
    "scikit-learn OMP": {"marker": "D", "color": GREY, "markerfacecolor": "white"},
}
LABELS = {
    "hardthresh": "hardthresh (balanced, the default)",
    "hardthresh fast": "hardthresh, fast",
    "hardthresh thorough": "hardthresh, thorough",
    "hardthresh pursuit": "hardthresh, pursuit",
    "hardthresh estimator": "hardthresh, estimator",
}
TASKS = {
    "fixed": "least squares, k given",
    "logistic": "two classes, k given",
    "path": "k = 1 to 50, EBIC",
    "cv": "k = 1 to 50, cross-validation",
    "sparse": "sparse X, k given",
    "real": "real data",
    "recall": "AR(1) study",
}

Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]  # by instance, then by solver


def label(solver: str) -> str:
    """Return the name of a solver in pictures and tables."""
    return LABELS.get(solver, solver)


def load(folder: Path) -> tuple[list[dict[str, Any]], list[Row]]:
    """Return the machines and the rows of all results of an otherwise idle machine; of repeated rows the first."""
    machines, rows = [], {}
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["machine"]["contended"]:
            continue
        machines.append(report["machine"])
        for row in report["rows"]:
            if not row["variant"] and seed_of(row["instance"]) not in TUNED_ON:
                rows.setdefault((row["task"], row["question"], row["instance"], row["solver"]), row)
    return machines, list(rows.values())


def seed_of(instance: str) -> int:
    """Return the seed in the name of an instance; 0 is not written there."""
    found = re.search(r" seed(\d+)", instance)
    return int(found[1]) if found else 0


def numbers_of(instance: str) -> tuple[int, int, int, float, float]:
    """Return n, d, k, the correlation and the strength of the signal of a simulated instance."""
    n, d, k, rho, signal = TITLE.match(instance).groups()
    return int(n), int(d), int(k), float(rho), float(signal)


def of_task(rows: list[Row], task: str, question: str | None = None) -> Rows:
    """Return the finished rows of a task, by instance and solver."""
    found: Rows = {}
    for row in rows:
        if row["task"] == task and question in (None, row["question"]) and "cpu" in row:
            found.setdefault(row["instance"], {})[row["solver"]] = row
    return found


def best(found: dict[str, Row]) -> float:
    """Return the lowest objective that anybody found on an instance."""
    return min(row["value"] for row in found.values())


def excess(row: Row, found: dict[str, Row]) -> float:
    """Return by how many per cent an objective lies above the best one found; a millionth is nothing."""
    ratio = row["value"] / best(found) if best(found) > 0 else 1.0
    return 0.0 if ratio <= SAME else 100 * (ratio - 1)


def cpu(row: Row) -> float:
    """Return CPU time."""
    return row["cpu"]


def user(row: Row) -> float:
    """Return CPU time without what the system does for the process, such as clearing new memory."""
    return max(row["cpu"] - row["system"], 1e-6)


def ratios(rows: Rows, above: str, below: str, clock: Callable[[Row], float] = cpu) -> list[float]:
    """Return how many times longer one solver takes than another, on each instance that both finished."""
    return [clock(found[above]) / clock(found[below]) for found in rows.values() if above in found and below in found]


def spread(values: list[float]) -> str:
    """Return a median and its range."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.2g}"
    return f"{median(values):.2g} ({min(values):.2g} to {max(values):.2g})"


def row_of_panels(count: int) -> tuple[plt.Figure, Any]:
    """Return a figure as wide as the text of the page, with panels that share the vertical axis."""
    width = 1.1 + 2.3 * max(count, 1.5)
    return plt.subplots(1, count, figsize=(width, 3.9), sharey=True, squeeze=False, layout="constrained")


def draw_objective(rows: list[Row]) -> plt.Figure | None:
    """Return the picture of time against objective, one mark for each solver and instance."""
    panels = [
        (title, found)
        for title, found in (
            ("least squares", of_task(rows, "fixed")),
            ("two classes", of_task(rows, "logistic")),
            ("real data, k given", of_task(rows, "real", "fixed")),
        )
        if any("abess" in by_solver for by_solver in found.values())
    ]
    if not panels:
        return None
    figure, axes = row_of_panels(len(panels))
    drawn = {}
    for ax, (title, found) in zip(axes[0], panels, strict=True):
        for place, (solver, style) in enumerate(STYLES.items()):
            lane = -0.02 * (
                place + 0.5
            )  # those who found the best one stand below zero, each solver in a row of its own
            points = [
                (by[solver]["cpu"] / by["abess"]["cpu"], excess(by[solver], by) or lane)
                for by in found.values()
                if solver in by and "abess" in by
            ]
            if points:
                (drawn[solver],) = ax.plot(*zip(*points, strict=True), linestyle="", markersize=5, alpha=0.75, **style)
        ax.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=0)
        ax.set_xscale("log")
        ax.set_yscale("symlog", linthresh=0.1, linscale=1.0)
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(axis="x", labelsize=8)
        count = sum("abess" in by for by in found.values())
        ax.set_title(f"{title}, {count} instance{'s' * (count != 1)}", fontsize=9)
        ax.set_xlabel("CPU time / that of abess")
    top = axes[0, 0].get_ylim()[1]
    powers = [10.0**power for power in range(-1, 7) if 10.0**power <= top]
    axes[0, 0].set_yticks([-0.05, *powers], ["the best", *(f"{power:g} %" for power in powers)])
    axes[0, 0].set_ylim(-0.1, max(top, 0.2))
    axes[0, 0].set_ylabel("objective above the best found")
    figure.legend(drawn.values(), map(label, drawn), loc="outside lower center", ncols=3, frameon=False)
    return figure


def draw_recall(rows: list[Row]) -> plt.Figure | None:
    """Return the picture of mean recall against correlation, over the same instances at each correlation."""
    shown = ("hardthresh", "hardthresh thorough", "abess", "scikit-learn OMP")
    panels = [(f"{title}, {SIGNAL[task]}", by_correlation(rows, task)) for task, title in PLANTED.items()]
    panels = [(title, table) for title, table in panels if table]
    study = of_task(rows, "recall")
    width = len(panels) + bool(study)
    if not width:
        return None
    figure, axes = row_of_panels(width)
    drawn = {}
    for ax, (title, table) in zip(axes[0], panels, strict=False):
        for place, solver in enumerate(shown):
            aside = 0.02 * (place - 1.5)  # so that marks at the same height stay apart
            line = [(rho + aside, by[solver]) for rho, by in sorted(table.items()) if solver in by]
            if line:
                style = STYLES[solver]
                dash = "--" if solver == "hardthresh thorough" else "-"
                (drawn[solver],) = ax.plot(*zip(*line, strict=True), linestyle=dash, linewidth=1, markersize=6, **style)
        ax.set_title(title, fontsize=9)
        ax.set_xticks(sorted(table), [f"{rho:g}" for rho in sorted(table)])
        ax.set_xlabel("correlation of neighbours")
    if study:
        ax = axes[0, -1]
        names = [solver for solver in shown if any(solver in by for by in study.values())]
        for place, solver in enumerate(names):
            every = [by[solver]["recall"] for by in study.values() if solver in by]
            style = {key: value for key, value in STYLES[solver].items() if key != "marker"}
            ax.plot([place] * len(every), every, linestyle="", marker="_", markersize=11, color=style["color"])
            (drawn[solver],) = ax.plot([place], [mean(every)], linestyle="", markersize=8, **STYLES[solver])
        ax.set_xticks(range(len(names)), [SHORT[solver] for solver in names], fontsize=8)
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_xlabel("dashes: seeds; marks: their means")
        ax.set_title("AR(1) study, correlation 0.9", fontsize=9)
    axes[0, 0].set_ylabel("mean share of planted columns found")
    axes[0, 0].set_ylim(top=1.03)
    figure.legend(drawn.values(), map(label, drawn), loc="outside lower center", ncols=2, frameon=False)
    return figure


PLANTED = {"fixed": "least squares", "logistic": "two classes"}
SIGNAL = {"fixed": "SNR 10", "logistic": "predictor of s.d. 3"}
SHORT = {"hardthresh": "default", "hardthresh thorough": "thorough", "abess": "abess", "scikit-learn OMP": "OMP"}


def by_correlation(rows: list[Row], task: str) -> dict[float, dict[str, float]]:
    """Return the mean recall of each solver at each correlation, where a size and a seed have all correlations."""
    groups: dict[Any, dict[float, dict[str, Row]]] = {}
    for instance, found in of_task(rows, task).items():
        n, d, k, rho, signal = numbers_of(instance)
        if signal == (10 if task == "fixed" else 3):
            groups.setdefault((n, d, k, seed_of(instance)), {})[rho] = found
    correlations = sorted({rho for group in groups.values() for rho in group})
    whole = [group for group in groups.values() if sorted(group) == correlations]
    if len(correlations) < 2 or not whole:
        return {}
    solvers = [name for name in STYLES if all(name in found for group in whole for found in group.values())]
    return {
        rho: {solver: mean(group[rho][solver]["recall"] for group in whole) for solver in solvers}
        for rho in correlations
    }


def draw_scaling(rows: list[Row]) -> plt.Figure | None:
    """Return the picture of CPU time against the size of the data, and of the same in data passes against d."""
    sizes: dict[tuple[int, int, int], list[dict[str, Row]]] = {}
    for instance, found in of_task(rows, "fixed").items():
        sizes.setdefault(numbers_of(instance)[:3], []).append(found)
    if len(sizes) < 2:
        return None
    lines: list[tuple[str, str, Callable[[Row], float], dict[str, Any]]] = [
        ("hardthresh", label("hardthresh"), cpu, {"linestyle": "-"}),
        ("hardthresh thorough", label("hardthresh thorough"), cpu, {"linestyle": "--"}),
        ("abess", "abess", cpu, {"linestyle": "-"}),
        ("abess", "abess, user time alone", user, {"linestyle": "--", "markerfacecolor": "white"}),
        ("scikit-learn OMP", "scikit-learn OMP", cpu, {"linestyle": "-"}),
    ]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
    drawn = {}
    for solver, name, clock, own in lines:
        times, passes = [], []
        for (n, d, _), group in sizes.items():
            here = [found[solver] for found in group if solver in found]
            if here:
                times.append((n * d, median(clock(row) for row in here)))
                passes.append((d, median(clock(row) / row["pass"] for row in here)))
        if times:
            style = {"linewidth": 1, "markersize": 6, **STYLES[solver], **own}
            (drawn[name],) = left.plot(*zip(*sorted(times), strict=True), **style)
            right.plot(*zip(*sorted(passes), strict=True), **style)
    one = [(n * d, median(row["pass"] for by in group for row in by.values())) for (n, d, _), group in sizes.items()]
    (line,) = left.plot(*zip(*sorted(one), strict=True), color=GREY, linestyle=":", linewidth=1.2)
    right.axhline(1.0, color=GREY, linestyle=":", linewidth=1.2)
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
    by_entries = sorted(sizes, key=lambda size: size[0] * size[1])
    names = [f"{n}×{d}, k {k}" for n, d, k in by_entries]
    left.set_xticks(
        [n * d for n, d, _ in by_entries], names, fontsize=8, rotation=35, ha="right", rotation_mode="anchor"
    )
    by_columns = sorted(sizes, key=lambda size: size[1])
    right.set_xticks([d for _, d, _ in by_columns], [f"{d}" for _, d, _ in by_columns], fontsize=8)
    left.tick_params(axis="x", which="minor", length=0)
    right.tick_params(axis="x", which="minor", length=0)
    left.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{1e3 * y:g}"))
    right.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    left.set_xlabel("n × d, the number of entries")
    left.set_ylabel("median CPU time, ms")
    right.set_xlabel("d")
    right.set_ylabel("median CPU time, in data passes")
    figure.legend(
        [*drawn.values(), line],
        [*drawn, "one data pass"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure


def table_of_solvers(rows: list[Row]) -> list[list[str]]:
    """Return who took how long and how good the answers were, task by task."""
    body = []
    for task, title in TASKS.items():
        for question in dict.fromkeys(row["question"] for row in rows if row["task"] == task):
            found = of_task(rows, task, question)
            asked = {row["instance"] for row in rows if row["task"] == task and row["question"] == question}
            name = f"{title}, {question}" if task == "real" and question != "fixed" else title
            for solver in dict.fromkeys(row["solver"] for row in rows if row["task"] == task):
                mine = {where: by for where, by in found.items() if solver in by}
                if not mine:
                    continue
                recalls = [by[solver]["recall"] for by in mine.values() if "recall" in by[solver]]
                good = [excess(by[solver], by) for by in mine.values()]
                fixed = question == "fixed"
                body.append(
                    [
                        name,
                        label(solver),
                        f"{len(mine)} of {len(asked)}",
                        spread(ratios(mine, solver, "abess")) if solver != "abess" else "1",
                        spread(ratios(mine, solver, "abess", user)) if solver != "abess" else "1",
                        f"{sum(value == 0 for value in good)} of {len(good)}" if fixed else "–",
                        f"{max(good):.2g} %" if fixed else "–",
                        f"{mean(recalls):.3f}" if len(recalls) == len(mine) else "–",
                    ]
                )
    header = ["task", "solver", "finished", "CPU / abess", "user / abess", "best found", "worst excess", "recall"]
    return [header, *body]


def table_of_losses(rows: list[Row]) -> list[list[str]]:
    """Return where a peer finds a lower objective than the default, or the same or a lower one in less time."""
    body = []
    for task in ("fixed", "logistic", "sparse", "real", "recall"):
        for instance, found in of_task(rows, task, "fixed").items():
            ours = found.get("hardthresh")
            if ours is None:
                continue
            peers = [row for row in found.values() if not row["solver"].startswith("hardthresh")]
            lower = [
                f"{row['solver']} by {100 * (1 - row['value'] / ours['value']):.2g} % "
                f"in {row['cpu'] / ours['cpu']:.2g} of our time"
                for row in peers
                if row["value"] * SAME < ours["value"]
            ]
            faster = [
                f"{row['solver']} {ours['cpu'] / row['cpu']:.2g} times"
                for row in peers
                if row["cpu"] < ours["cpu"] and row["value"] <= SAME * ours["value"]
            ]
            if lower or faster:
                body.append([instance, "; ".join(lower) or "–", "; ".join(faster) or "–"])
    return [["instance", "lower objective", "faster, and not worse"], *(body or [["none", "–", "–"]])]


def table_of_goals(folder: Path) -> list[list[str]]:
    """Return what was measured before, the goals, and what each build reaches, from the results of ``--table``."""
    header, lines = ["", "before", "goal"], {}
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        found = report.get("goals")
        if found is None:
            continue
        machine, seeds = report["machine"], found["seeds"]
        loads = f"load {machine['load']:.1f} to {found['load_after']:.1f}"
        instances = ", fewer instances" if found["quick"] else ""
        header.append(f"{machine['build']} build, seeds {seeds[0]} to {seeds[-1]}{instances}, {loads}")
        table = next(table for table in found["tables"] if table["title"] == "Goals")
        for title, before, goal, measured, _ in table["rows"]:
            lines.setdefault(title, [title, before, goal]).append(measured or "–")
    if not lines:
        return [[*header, "measured"], ["not measured yet", "–", "–", "–"]]
    return [header, *([*line, *["–"] * (len(header) - len(line))] for line in lines.values())]


def numbers(rows: list[Row]) -> dict[str, str]:
    """Return what the text substitutes."""
    found = {}
    for task in ("fixed", "logistic", "path", "cv"):
        instances = of_task(rows, task)
        ours = "hardthresh estimator" if task == "cv" else "hardthresh"
        pairs = [by for by in instances.values() if ours in by and "abess" in by]
        found[f"{task}_count"] = str(len(instances))
        found[f"{task}_faster"] = spread(ratios(instances, "abess", ours))
        found[f"{task}_faster_user"] = spread(ratios(instances, "abess", ours, user))
        if task in ("fixed", "logistic"):
            good = sum(by[ours]["value"] <= SAME * by["abess"]["value"] for by in pairs)
            found[f"{task}_as_good"] = f"{good} of {len(pairs)}" if pairs else "–"
    for solver, name in (("hardthresh", "ours"), ("abess", "abess"), ("scikit-learn OMP", "omp")):
        at = by_correlation(rows, "fixed").get(0.9, {})
        found[f"recall_{name}"] = f"{at[solver]:.2f}" if solver in at else "–"
    seeds = sorted({seed_of(row["instance"]) for row in rows})
    found["seeds"] = ", ".join(map(str, seeds))
    return found


def source(machines: list[dict[str, Any]]) -> str:
    """Return where and when the figures were measured."""
    every = {
        f"{m['date']}, {m['processor']}, {m['cores']} cores, {m['threads']} thread, Python {m['python']}, "
        + ", ".join(f"{name} {version}" for name, version in m["versions"].items())
        for m in machines
    }
    loads = sorted(m["load"] for m in machines)
    return "; ".join(sorted(every)) + f"; load at the start {loads[0]:.1f} to {loads[-1]:.1f}"


def main(arguments: list[str]) -> str | None:
    """Write everything; return what is wrong, or nothing."""
    folder = Path(arguments[0]) if arguments else RESULTS
    machines, rows = load(folder)
    if not rows:
        return f"{folder.name} holds no results of an idle machine: see benchmarks/README.md for how to make them"
    plt.rcParams.update({"font.size": 9, "legend.fontsize": 8.5})
    for name, draw in (("objective", draw_objective), ("recall", draw_recall), ("scaling", draw_scaling)):
        figure = draw(rows)
        if figure is None:
            print(f"speed_{name}.png is left as it is: its instances are not among the results")
            continue
        figure.savefig(DOCS / "_static" / f"speed_{name}.png", dpi=160, metadata={"Software": None})
        plt.close(figure)
    for name, table in (("solvers", table_of_solvers), ("losses", table_of_losses)):
        write_table(DOCS / "guide" / f"speed_{name}.csv", table(rows))
    write_table(DOCS / "guide" / "speed_goals.csv", table_of_goals(folder))
    values = {**numbers(rows), "source": source(machines)}
    lines = [f".. |{name}| replace:: {value}" for name, value in values.items()]
    if folder.resolve() != RESULTS.resolve():
        lines.insert(0, ".. note:: Provisional: these figures come from short runs on some of the instances.\n")
    text = ".. Written by docs/figures/speed.py; do not edit.\n\n" + "\n".join(lines) + "\n"
    (DOCS / "guide" / "speed_numbers.inc").write_text(text, encoding="utf-8")
    return None


def write_table(path: Path, table: list[list[str]]) -> None:
    """Write a table as the page includes it, without saying twice in a row what the first column says."""
    shown = [["" if row[0] == above[0] else row[0], *row[1:]] for above, row in pairwise([[""], *table])]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(shown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
