"""The checks of the design beside what a run has measured, as a table in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]


class Found(NamedTuple):
    """What a run says of a check."""

    measured: str
    met: bool


class Check(NamedTuple):
    """A check of the design: its number, what it asks for, and what finds that in the rows of a run."""

    number: int
    asked: str
    look: Callable[[Sequence[Row]], Found]


ELSEWHERE = {
    1: "tests/objectives/test_blocked_model.py",
    2: "tests/objectives/test_blocked_model.py",
    6: "tests/designs/test_dask.py",
    10: "tests/objectives/test_readings.py",
    11: "benchmarks/genotypes.py and tests/designs/test_plink.py",
    12: "tests/solvers/test_host_waits.py",
    13: "benchmarks/gpu.py",
    14: "benchmarks/streams.py",
    15: "tests/designs/test_extras.py and tests/designs/test_dask.py",
    16: "make bench-smoke",
}
"""The checks that have no row here, and what shows them."""


def _of(rows: Sequence[Row], task: str, case: str = "", **more: Any) -> list[Row]:
    """Return the rows of a task whose case begins so; raises LookupError if there is none."""
    found = [
        row
        for row in rows
        if row["task"] == task
        and row.get("case", "").startswith(case)
        and all(row.get(name) == value for name, value in more.items())
        and not {"failed", "skipped"} & row.keys()
    ]
    if not found:
        raise LookupError(f"no row of {task}, {case}")
    return found


def _readings(rows: Sequence[Row]) -> Found:
    found = _of(rows, "readings", choice=None)
    median, most = max(row["median"] for row in found), max(row["most"] for row in found)
    certificate = max(row["certificate"] for row in found)
    said = f"{median:g} in the median, {most} at most; certificate {certificate}"
    return Found(said, median <= 4 and most <= 7 and certificate == 2)


def _paths(rows: Sequence[Row]) -> Found:
    most = {kind: max(row["most"] for row in _of(rows, "readings", choice=kind)) for kind in ("cv", "path")}
    return Found(f"folds {most['cv']}, paths {most['path']} at most", most["cv"] <= 6 and most["path"] <= 5)


def _bits(rows: Sequence[Row]) -> Found:
    said, met = [], True
    for loss in ("squared", "logistic"):
        found = [row["bits"] for row in _of(rows, "dask", f"fit, {loss}, ")]
        met &= len(set(found)) == 1 and len(found) > 1
        said.append(f"{loss}: {len(set(found))} of {len(found)} fits")
    return Found("distinct coefficients, " + "; ".join(said), met)


def _memory(rows: Sequence[Row]) -> Found:
    found = _of(rows, "disc", "fit, ")
    said = (
        f"{row['case'][5:]} {row['gb']:g} GB in {row['limit_mb']} MB: {row['anonymous_mb']:.0f} MB" for row in found
    )
    met = len(found) >= 2 and all(row["support_exact"] and row["anonymous_mb"] <= 200 for row in found)
    for row in found:
        twice = [
            other["anonymous_mb"] for other in found if other["case"] == row["case"] and other["gb"] >= 2 * row["gb"]
        ]
        met &= all(memory <= 1.2 * row["anonymous_mb"] for memory in twice)
    return Found("; ".join(said), met)


def _tasks(rows: Sequence[Row]) -> Found:
    row = _of(rows, "dask", "reading of 512 tiny blocks")[0]
    return Found(f"{row['best_s']:.2f} s, {row['tasks']} tasks", row["best_s"] <= 0.4 and row["tasks"] <= 1.2 * 64 + 16)


def _scaling(case: str, entry: str, share: float) -> Callable[[Sequence[Row]], Found]:
    """Return what compares one worker with the most that have a processor each."""

    def look(rows: Sequence[Row]) -> Found:
        processors = max(row["processors"] for row in rows if row["task"] == "machine")
        cases = ((re.fullmatch(rf"{case}, (\d+) workers", row["case"]), row) for row in _of(rows, "dask", case))
        times = {int(match[1]): row[entry] for match, row in cases if match is not None}
        most = max((size for size in times if size <= processors), default=1)
        if most == 1 or 1 not in times:
            raise LookupError("two numbers of workers are compared")
        found = times[1] / times[most] / most
        return Found(f"{found:.2f} with {most} ({times[1]:.2f} s and {times[most]:.2f} s)", found >= share)

    return look


def _disc(rows: Sequence[Row]) -> Found:
    ours = max(row["gb_per_s"] for row in _of(rows, "disc", "reading 2"))
    theirs = max(row["gb_per_s"] for row in _of(rows, "disc", "dd iflag=direct"))
    return Found(f"{ours / theirs:.2f} ({ours:.2f} and {theirs:.2f} GB/s)", ours >= 0.85 * theirs)


def _parquet(rows: Sequence[Row]) -> Found:
    row = _of(rows, "formats", "parquet plain", readers=4)[0]
    return Found(f"{row['gb_per_s']:.2f} GB/s, {row['gb_per_cpu_s']:.2f} GB per CPU s", row["gb_per_s"] >= 1.0)


def _others(rows: Sequence[Row]) -> Found:
    cpu = {
        name: row["cpu_s"] + row["workers_cpu_s"]
        for name in ("hardthresh", "xgboost.dask", "dask-ml")
        for row in rows
        if row.get("case", "").startswith(f"{name},") and "cpu_s" in row
    }
    if len(cpu) < 2:
        raise LookupError("no other package ran")
    said = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cpu.items())
    return Found(f"{said} CPU s", cpu["hardthresh"] <= min(cpu.values()))


CHECKS = (
    Check(3, "4 readings in the median, 7 at most; certificate 2", _readings),
    Check(3, "folds over 1..30 read 6 times at most, paths 5", _paths),
    Check(4, "the same bits in one process, on 1, 2, 4 workers, and with 2 killed", _bits),
    Check(5, "exact support, 200 MB of own memory at most, 1.2 x for twice the file", _memory),
    Check(7, "512 tiny blocks: 0.4 s (0.24 in the design), 1.2 x leaves + 16 tasks", _tasks),
    Check(8, "look by a worker for each processor: 0.8 x ideal (0.45 in the design)", _scaling("look", "best_s", 0.8)),
    Check(
        8,
        "fit by a worker for each processor: 0.65 x ideal (0.56 in the design)",
        _scaling("fit in memory", "wall_s", 0.65),
    ),
    Check(9, "second reading of a raw file: 0.85 of dd iflag=direct", _disc),
    Check(9, "Parquet with 4 readers: 1 GB/s", _parquet),
    Check(0, "logistic fit of 100,000 x 100 by 2 workers (1.9, 5.1 and 28.8 CPU s in the design)", _others),
)


def _machines(rows: Sequence[Row]) -> list[str]:
    """Return what each run has measured, where, and under which load; a later run replaces what it measures again."""
    machines = [row for row in rows if row["task"] == "machine"]
    said, later = [], set[str]()
    for machine in reversed(machines):
        tasks = [task for task in machine["measures"] if task not in later]
        later |= {*tasks}
        loads = [load for row in rows if row["task"] in tasks for load in row.get("load", ())]
        load = f"load {min(loads)} to {max(loads)}" if loads else "no load was taken"
        where = f"{machine['processor']}, {machine['processors']} processors, {machine['memory_gb']} GB"
        said.append(f"{', '.join(tasks)}: {where}; {load}")
    return said[::-1]


def table_of(rows: Sequence[Row]) -> str:
    """Return the checks with what was measured, and the rows that have failed."""
    lines = [*map("* {}".format, _machines(rows)), "", "| check | asked for | measured | met |", "|---|---|---|---|"]
    for number, asked, look in CHECKS:
        try:
            measured, met = look(rows)
            lines.append(f"| {number or 'others'} | {asked} | {measured} | {'yes' if met else 'no'} |")
        except LookupError:
            lines.append(f"| {number or 'others'} | {asked} | not measured | |")
    lines += [f"| {number} | | see {where} | |" for number, where in ELSEWHERE.items()]
    failed = [f"* {row['task']}, {row.get('case', '')}: {row['failed']}" for row in rows if "failed" in row]
    return "\n".join([*lines, *(["", "Failed:", "", *failed] if failed else []), ""])
