"""Tables as text and as Markdown, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a header and rows of text."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def text(self) -> str:
        """Return it with aligned columns: the first to the left, the others to the right."""
        widths = [max(len(row[i]) for row in [self.header, *self.rows]) for i in range(len(self.header))]

        def line(row: Sequence[str]) -> str:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            return "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()

        return "\n".join(["", self.title, line(self.header), *map(line, self.rows), *filter(None, [self.note])])

    def markdown(self) -> str:
        """Return it as a Markdown table."""
        lines = [self.header, ["---", *["--:"] * (len(self.header) - 1)], *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join(filter(None, [f"**{self.title}**", body, self.note]))


def milliseconds(seconds: float) -> str:
    """Return seconds in milliseconds, with three or so significant digits."""
    ms = 1e3 * seconds
    return f"{ms:.3f}" if ms < 1 else f"{ms:.1f}" if ms < 1000 else f"{ms:.0f}"


def figure(value: float | None, form: str) -> str:
    """Return a number in some form, or nothing where there is none."""
    return "" if value is None else format(value, form)


def sentence(machine: dict[str, Any]) -> str:
    """Return where figures come from."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    busy = f", busy processes beside it: {machine['contended']}" if machine.get("contended") else ""
    return (
        f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, {machine['threads']} thread, "
        f"load {machine['load']:.1f} at the start{busy}; Python {machine['python']}, {versions}"
    )


def imports(figures: dict[str, Any]) -> Table:
    """Return the table of imports."""
    rows = [(name, f"{1e3 * seconds:.0f}") for name, seconds in figures["median"].items()]
    notes = []
    for name, seconds in figures["beyond"].items():
        under = "Python" if name == "hardthresh" else "NumPy, SciPy and scikit-learn"
        notes.append(f"{name} beyond {under}: {1e3 * seconds:.0f} ms (goal: below 300).")
    return Table("Import, CPU ms of a whole fresh process", ("", "CPU ms"), rows, "\n".join(notes))


def first_fits(rows: list[dict[str, Any]]) -> Table:
    """Return the table of first and second fits."""
    header = ("n x d, k", "", "first", "second", "ratio")
    body = [
        (
            "{}x{} k{}".format(*row["size"]),
            row["what"],
            milliseconds(row["first"]),
            milliseconds(row["second"]),
            f"{row['first'] / row['second']:.2f}",
        )
        for row in rows
    ]
    return Table("First fit against second, CPU ms in fresh processes (goal: ratio below 1.5)", header, body)


def completion(rows: list[dict[str, Any]]) -> Table:
    """Return the table of matrix completion, with the time of the last solver of each instance over everybody's."""
    slowest = {tuple(row["instance"]): row["seconds"] for row in rows}
    body = [
        (
            "{}x{} r{}, {:.0%}".format(*row["instance"]),
            row["solver"],
            str(row["iterations"]),
            milliseconds(row["seconds"] / row["iterations"]),
            milliseconds(row["seconds"]),
            f"{row['passes']:.0f}",
            f"{row['off']:.1e}",
            f"{slowest[tuple(row['instance'])] / row['seconds']:.1f}",
        )
        for row in rows
    ]
    header = ("p x q, rank, observed", "", "iterations", "ms each", "CPU ms", "passes", "error", "randomized SVP / it")
    return Table("Matrix completion to a training error of 1e-4", header, body, "*error*: of the whole matrix.")
