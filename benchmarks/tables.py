"""The measurements as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def sentence(machine: dict[str, Any]) -> str:
    """Return the line that says where the figures come from."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    line = (
        f"Python {machine['python']}, {machine['system']} {machine['processor']}, {machine['cores']} cores; {versions}"
    )
    if machine["load"] is not None:
        busy = machine["load"] > 0.5
        line += f"\nload {machine['load']:.1f} when started" + (
            ": a busy machine, so trust CPU, not wall" if busy else ""
        )
    return line


def imports(figures: dict[str, Any]) -> str:
    """Return the table of imports."""
    rows = [(name, f"{1e3 * seconds:.0f}") for name, seconds in figures["median"].items()]
    lines = [_table("Import, CPU ms of a whole fresh process", ("", "CPU ms"), rows)]
    for name, seconds in figures["beyond"].items():
        under = "Python" if name == "hardthresh" else "NumPy, SciPy and scikit-learn"
        lines.append(f"{name} beyond {under}: {1e3 * seconds:.0f} ms (goal: below 300)")
    return "\n".join(lines)


def first_fits(rows: list[dict[str, Any]]) -> str:
    """Return the table of first and second fits."""
    header = ("n x d, k", "", "first", "second", "ratio")
    body = [
        (
            "{}x{} k{}".format(*row["size"]),
            row["what"],
            _ms(row["first"]),
            _ms(row["second"]),
            f"{row['first'] / row['second']:.2f}",
        )
        for row in rows
    ]
    return _table("First fit against second, CPU ms in fresh processes (goal: ratio below 1.5)", header, body)


def contest(outcome: dict[str, Any]) -> str:
    """Return the table of one instance."""
    if "missing" in outcome:
        return f"\n{outcome['instance']}: {outcome['missing']}"
    solvers = outcome["solvers"]
    header = ("", "CPU ms", "wall ms", "passes", "counted", "objective", "recall", "x minimize", "x estimator")
    rows = []
    for name, found in solvers.items():
        ratios = [_ratio(found, solvers.get(ours)) for ours in ("hardthresh.minimize", "hardthresh estimator")]
        counted = "" if found["passes"] is None else f"{found['passes']:.1f}"
        recall = "" if found["recall"] is None else f"{found['recall']:.2f}"
        times = (_ms(found["median_cpu"]), _ms(found["median_wall"]), f"{found['passes_by_clock']:.1f}")
        rows.append((name, *times, counted, f"{found['objective']:.5g}", recall, *ratios))
    title = f"{outcome['instance']} ({outcome['rounds']} rounds, a pass is {_ms(outcome['pass_cpu'])} ms)"
    return _table(title, header, rows)


def legend(outcomes: list[dict[str, Any]]) -> str:
    """Return what the columns mean, and who did not take part."""
    lines = [
        "",
        "passes: CPU time in units of one X'r in the same process; counted: data passes as the solver counts them;",
        "objective: after a common refit on the chosen columns; x: CPU time as a multiple of ours (above 1: slower).",
    ]
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        for name, why in outcome.get("absent", {}).items():
            reasons.setdefault(f"{name}: {why}", []).append(outcome["instance"])
    lines += [f"left out: {reason} [{'; '.join(where)}]" for reason, where in reasons.items()]
    return "\n".join(lines)


def _ratio(found: dict[str, Any], ours: dict[str, Any] | None) -> str:
    return "" if ours is None else f"{found['median_cpu'] / ours['median_cpu']:.2f}"


def _ms(seconds: float) -> str:
    milliseconds = 1e3 * seconds
    return f"{milliseconds:.3f}" if milliseconds < 1 else f"{milliseconds:.1f}"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()

    return "\n".join(["", title, line(header), *map(line, rows)])
