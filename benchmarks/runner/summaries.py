"""What the rows of a task amount to."""

from __future__ import annotations

from statistics import mean, median
from typing import Any

from .tables import Table, figure, milliseconds

Row = dict[str, Any]
OURS = "hardthresh"
REFERENCES = ("abess", "scikit-learn OMP", "hardthresh thorough")
SAME = 1 + 1e-6


def of(task: str, title: str, rows: list[Row]) -> list[Table]:
    """Return the tables that sum up a task."""
    if task == "equivariance":
        return [_equivariance(title, rows)]
    if task == "precision":
        return [_precision(title, rows)]
    tables = [_by_instance(title, rows)]
    return tables if len(_instances(rows)) == 1 else [*tables, _by_solver(title, rows)]


def instance(title: str, rows: list[Row]) -> Table:
    """Return everything about one instance."""
    ours = next((row for row in rows if row["solver"] == OURS and "cpu" in row), None)
    header = ("", "CPU ms", "wall ms", "passes", "counted", "objective", "F1", "size", "runs", "x ours")
    body = []
    for row in rows:
        name = " ".join([row["solver"], *(f"{key} {value}" for key, value in row["variant"].items())])
        if "failed" in row:
            body.append((f"{name}: {row['failed']}", *[""] * 9))
            continue
        body.append(
            (
                name,
                milliseconds(row["cpu"]),
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
        body.append((name, milliseconds(next(iter(found.values()))["pass"]), *cells))
    note = "CPU ms / objective (`=`: the best of the line) / F1 where the truth is known."
    return Table(title, ("instance", "pass", *names), body, note)


def _cell(row: Row | None, best: float) -> str:
    if row is None:
        return ""
    if "failed" in row:
        return row["failed"] if row["failed"].startswith("not finished") else "fails"
    value = "=" if row["value"] <= best * SAME else f"{row['value']:.5f}"
    return " / ".join([milliseconds(row["cpu"]), value, *([f"{row['f1']:.2f}"] if "f1" in row else [])])


def _by_solver(title: str, rows: list[Row]) -> Table:
    """Return one line per solver: its time against ours, and how often its objective is as good as the references."""
    by_solver = {name: {row["instance"]: row for row in rows if row["solver"] == name} for name in _solvers(rows)}
    references = [name for name in REFERENCES if name in by_solver]
    total = len(_instances(rows))
    body = []
    for name, found in by_solver.items():
        finished = {i: row for i, row in found.items() if "cpu" in row}
        if not finished:
            body.append((name, f"0 of {total}", *[""] * 6))
            continue
        good = sum(row["value"] <= _best(by_solver, references, i) * SAME for i, row in finished.items())
        shares = [
            mean(row[key] for row in finished.values()) if _all_have(finished, key) else None
            for key in ("f1", "recall")
        ]
        body.append(
            (
                name,
                f"{len(finished)} of {total}",
                _ratios(finished, by_solver.get("abess", {}), inverse=True),
                _ratios(finished, by_solver.get(OURS, {}), inverse=False),
                f"{good} of {len(finished)}",
                *(figure(share, ".3f") for share in shares),
                figure(
                    median(row["passes"] for row in finished.values()) if _all_have(finished, "passes") else None, ".1f"
                ),
            )
        )
    header = (
        "",
        "finished",
        "abess / it: median (min-max)",
        f"it / {OURS}: median (min-max)",
        "objective best",
        "F1",
        "recall",
        "passes",
    )
    note = f"Ratios of CPU time. Objective best: not above {', '.join(references)} by more than a millionth."
    return Table(f"{title}: over the instances", header, body, note)


def _best(by_solver: dict[str, dict[str, Row]], references: list[str], instance: str) -> float:
    values = (by_solver[name].get(instance, {}).get("value") for name in references)
    return min((value for value in values if value is not None), default=float("inf"))


def _ratios(finished: dict[str, Row], others: dict[str, Row], *, inverse: bool) -> str:
    pairs = [(row["cpu"], others[i]["cpu"]) for i, row in finished.items() if "cpu" in others.get(i, {})]
    ratios = [other / own if inverse else own / other for own, other in pairs]
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else ""


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


def _all_have(rows: dict[str, Row], key: str) -> bool:
    return all(key in row for row in rows.values())


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
