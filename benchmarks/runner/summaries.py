"""What the rows of a task amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean, median
from typing import Any

from .tables import Table, figure, milliseconds

Row = dict[str, Any]
OURS = ("hardthresh", "hardthresh estimator")
REFERENCES = ("abess", "scikit-learn OMP", "hardthresh thorough")
SAME = 1 + 1e-6


def of(task: str, title: str, rows: list[Row]) -> list[Table]:
    """Return the tables that sum up a task."""
    if task == "equivariance":
        return [_equivariance(title, rows)]
    if task == "precision":
        return [_precision(title, rows)]
    tables = []
    for question in _distinct(row["question"] for row in rows):
        group = [row for row in rows if row["question"] == question]
        tables.append(_by_instance(title, group))
        if len(_instances(group)) > 1:
            tables.append(_by_solver(title, group))
        tables += _lost(title, group)
    return tables


def instance(title: str, rows: list[Row]) -> Table:
    """Return everything about one instance."""
    ours = next((row for name in OURS for row in rows if row["solver"] == name and "cpu" in row), None)
    header = ("", "CPU ms", "system", "wall ms", "passes", "counted", "objective", "F1", "size", "runs", "x ours")
    body = []
    for row in rows:
        name = " ".join([row["solver"], *(f"{key} {value}" for key, value in row["variant"].items())])
        if "failed" in row:
            body.append((f"{name}: {row['failed']}", *[""] * 10))
            continue
        body.append(
            (
                name,
                milliseconds(row["cpu"]),
                milliseconds(row["system"]),
                milliseconds(row["wall"]),
                f"{row['cpu'] / row['pass']:.1f}",
                figure(row.get("passes"), ".1f"),
                f"{row['value']:.6g}",
                figure(row.get("f1"), ".2f"),
                str(row["size"]),
                str(row["rounds"]),
                "" if ours is None else f"{row['cpu'] / ours['cpu']:.2f}",
            )
        )
    unit = next((milliseconds(row["pass"]) for row in rows), "?")
    return Table(f"{title} (a pass is {unit} ms)", header, body)


def _by_instance(title: str, rows: list[Row]) -> Table:
    """Return one line per instance: CPU ms and objective of everybody."""
    names = _solvers(rows)
    body = []
    for name in _instances(rows):
        found = {row["solver"]: row for row in rows if row["instance"] == name}
        best = min((row["value"] for row in found.values() if "value" in row), default=0.0)
        cells = [_cell(found.get(solver), best) for solver in names]
        ratio = _ratio(found.get("abess"), next((found[own] for own in OURS if own in found), None))
        body.append((name, milliseconds(next(iter(found.values()))["pass"]), *cells, figure(ratio, ".1f")))
    what = "objective (`=`: the best of the line)" if rows[0]["question"] == "fixed" else "number of columns"
    note = f"CPU ms / {what} / F1 where the truth is known."
    return Table(title, ("instance", "pass", *names, "abess / ours"), body, note)


def _cell(row: Row | None, best: float) -> str:
    if row is None:
        return ""
    if "failed" in row:
        return row["failed"] if row["failed"].startswith("not finished") else "fails"
    value = "=" if row["value"] <= best * SAME else f"{row['value']:.5f}"
    if row["question"] != "fixed":
        value = str(row["size"])
    return " / ".join([milliseconds(row["cpu"]), value, *([f"{row['f1']:.2f}"] if "f1" in row else [])])


def _by_solver(title: str, rows: list[Row]) -> Table:
    """Return one line per solver: its time against the others, and how often its objective is as good as theirs."""
    by_solver = {name: {row["instance"]: row for row in rows if row["solver"] == name} for name in _solvers(rows)}
    ours = next((name for name in OURS if name in by_solver), "")
    references = {name: by_solver[name] for name in REFERENCES if name in by_solver}
    abess = {name: found for name, found in references.items() if name == "abess"}
    fixed = rows[0]["question"] == "fixed"
    body = []
    for name, every in by_solver.items():
        found = {where: row for where, row in every.items() if "cpu" in row}
        body.append(
            (
                name,
                f"{len(found)} of {len(_instances(rows))}",
                _spread(_ratio(by_solver.get("abess", {}).get(where), row) for where, row in found.items()),
                _spread(_ratio(by_solver.get("abess", {}).get(where), row, _user) for where, row in found.items()),
                _spread(_ratio(row, by_solver.get(ours, {}).get(where)) for where, row in found.items()),
                _as_good(found, abess) if fixed else "",
                _as_good(found, references) if fixed else "",
                figure(_over(mean, found, "f1"), ".3f"),
                figure(_over(mean, found, "recall"), ".3f"),
                figure(_over(median, found, "passes"), ".1f"),
                f"{median(row['wall'] / row['cpu'] for row in found.values()):.2f}" if found else "",
            )
        )
    ratios = ("abess / it: median (min-max)", "the same, user time", f"it / {ours}: median (min-max)" if ours else "")
    header = ("", "finished", *ratios, "as abess", "as the best", "F1", "recall", "passes", "wall / CPU")
    note = "Ratios of CPU time; user time is without what the system does for the process, such as clearing new memory."
    if fixed:
        note += f" As good as: not above it by more than a millionth; the best of {', '.join(references)}."
    return Table(f"{title}: over the instances", header, body, note)


def _lost(title: str, rows: list[Row]) -> list[Table]:
    """Return where a peer is faster than ours, or finds a lower objective; no table where none is."""
    body = []
    for name in _instances(rows):
        here = [row for row in rows if row["instance"] == name and "cpu" in row]
        ours = next((row for own in OURS for row in here if row["solver"] == own), None)
        peers = [row for row in here if not row["solver"].startswith("hardthresh")] if ours else []
        faster = [f"{p['solver']} {ours['cpu'] / p['cpu']:.2f}x" for p in peers if p["cpu"] < ours["cpu"]]
        lower = [
            f"{p['solver']} by {100 * (1 - p['value'] / ours['value']):.2g} %"
            for p in peers
            if p["question"] == "fixed" and p["value"] * SAME < ours["value"]
        ]
        if faster or lower:
            body.append((name, ", ".join(faster), ", ".join(lower)))
    return [Table(f"{title}: where a peer wins", ("instance", "faster", "lower objective"), body)] if body else []


def _as_good(found: dict[str, Row], references: dict[str, dict[str, Row]]) -> str:
    """Return on how many instances no reference has a lower objective, of those where a reference has one."""
    verdicts = []
    for where, row in found.items():
        values = [rows[where]["value"] for rows in references.values() if "value" in rows.get(where, {})]
        verdicts += [row["value"] <= SAME * min(values)] if values else []
    return f"{sum(verdicts)} of {len(verdicts)}" if verdicts else ""


def _cpu(row: Row) -> float:
    return row["cpu"]


def _user(row: Row) -> float:
    return max(row["cpu"] - row["system"], 1e-6)


def _ratio(above: Row | None, below: Row | None, clock: Callable[[Row], float] = _cpu) -> float | None:
    """Return the ratio of two times where both are known."""
    if above is None or below is None or "cpu" not in above or "cpu" not in below:
        return None
    return clock(above) / clock(below)


def _spread(ratios: Iterable[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{median(known):.2f} ({min(known):.2f}-{max(known):.2f})" if known else ""


def _over(average: Callable[[Iterable[float]], float], found: dict[str, Row], key: str) -> float | None:
    """Return the average of a figure that all rows have."""
    values = [row[key] for row in found.values() if key in row]
    return average(values) if values and len(values) == len(found) else None


def _equivariance(title: str, rows: list[Row]) -> Table:
    body = []
    for solver in _solvers(rows):
        own = [row for row in rows if row["solver"] == solver]
        plain = {row["instance"]: row.get("choice") for row in own if not row["variant"]}
        for variant in _distinct(row["variant"] for row in own if row["variant"]):
            scaled = [row for row in own if row["variant"] == variant]
            moved = [row["instance"] for row in scaled if row.get("choice") != plain[row["instance"]]]
            what = " ".join(f"{key} x {value:g}" for key, value in variant.items())
            same = f"{len(scaled) - len(moved)} of {len(scaled)}"
            body.append((solver, what, same, "; ".join(moved) if len(moved) <= 3 else f"{len(moved)} instances"))
    return Table(title, ("", "units", "same columns", "others"), body)


def _precision(title: str, rows: list[Row]) -> Table:
    body = []
    for name in _instances(rows):
        pair = [row for row in rows if row["instance"] == name]
        double, single = (next(r for r in pair if bool(r["variant"]) == narrow) for narrow in (False, True))
        if "failed" in double or "failed" in single:
            body.append((name, *(row.get("failed", "") for row in (double, single)), "", ""))
            continue
        same = "same" if double["choice"] == single["choice"] else f"{single['value'] / double['value'] - 1:+.1e}"
        times = (milliseconds(double["cpu"]), milliseconds(single["cpu"]))
        body.append((name, *times, f"{single['cpu'] / double['cpu']:.2f}", same))
    ratios = [float(row[3]) for row in body if row[3]]
    note = f"Median of the ratios: {median(ratios):.2f}." if ratios else ""
    return Table(
        title, ("instance", "float64, CPU ms", "float32, CPU ms", "ratio", "columns, or objective"), body, note
    )


def _instances(rows: list[Row]) -> list[str]:
    return _distinct(row["instance"] for row in rows)


def _solvers(rows: list[Row]) -> list[str]:
    return _distinct(row["solver"] for row in rows)


def _distinct(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
