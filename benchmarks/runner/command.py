"""The command line: what is measured, in which order, and where it is written."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hardthresh
from hardthresh.core.files import write_file
from hardthresh.datasets import DatasetError

from . import completion, contest, files, goals, page, quality, smoke, startup, summaries, tables
from .tasks import OURS, Task, tasks, tiny
from .workers import Crew, Entrant

DEFAULT = ("startup", "fixed", "logistic", "path", "cv", "sparse", "real")
ALONE = ("startup", "completion")
"""Tasks without entrants: each runs its own processes."""

CHOOSING = (2000, 2001, 2002, 2003, 2004)
"""Seeds for choosing between variants of the code. Figures to report are of others, which nobody looks at before."""

CACHE = files.ROOT.parent / ".bench-cache"

BUSY = "import numpy as np; X, r = np.ones((2000, 4000)), np.ones(2000)\nwhile True: X.T @ r"


def main() -> int:
    """Run what the command line asks for and return the exit status."""
    parser = _parser()
    options = parser.parse_args()
    if unknown := set(options.task) - {*ALONE, *tasks()}:
        parser.error(f"no such task: {', '.join(sorted(unknown))}")
    if options.page:
        print(f"wrote {page.write()}")
        return 0
    began = time.perf_counter()
    with _contention(options.contended), contextlib.closing(Crew()) as crew:
        report: dict[str, Any] = {"machine": _machine(crew, options.contended)}
        print(tables.sentence(report["machine"]), flush=True)
        rows = report["rows"] = []
        status = 0
        if options.smoke:
            report["startup"] = _startup(startup.SIZES[:1], repeats=1, entries=("estimator",))
            judged = [
                entrant for name, entrant in crew.entrants.items() if name != "hardthresh restarts"
            ]  # ten pursuits
            _run("smoke", tiny(), judged, options, rows)
            status = _judge(rows, update=options.update)
        known = tasks(options.seeds or (0,))
        if options.table:
            _goals(options, crew, report)
        for name in () if options.smoke or options.table else options.task:
            if name == "startup":
                report["startup"] = _startup(startup.SIZES, repeats=5)
                continue
            if name == "completion":
                report["completion"] = _completion(repeats=5)
                continue
            _run(name, known[name], _entrants(known[name], crew, options), options, rows)
            mine = [row for row in rows if row["task"] == name]
            for table in summaries.of(name, known[name].title, mine) if mine else ():
                print(table.text(), flush=True)
        for stem, reason in crew.missing.items():
            print(f"not here: {stem}: {reason}")
    if options.json:
        report["seconds"] = time.perf_counter() - began
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_file(options.json, (json.dumps(_rounded(report), indent=1) + "\n").encode())
    print(f"\n{'failed' if status else 'done'} in {time.perf_counter() - began:.0f} s")
    return status


def _parser() -> argparse.ArgumentParser:
    def names(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(","))

    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    add = parser.add_argument
    known = ", ".join([*ALONE, *tasks()])
    add("--task", type=names, default=DEFAULT, metavar="A,B", help=f"of {known}; default {','.join(DEFAULT)}")
    add("--only", default="", metavar="TEXT", help="only the instances with TEXT in their name")
    add("--seeds", type=_seeds, metavar="0,3-5", help="default 0; with --table 2000-2004, 2000-2002 if quick")
    add("--peers", type=names, default=(), metavar="A,B", help="instead of the default ones; `all` for all, `none`")
    add("--ours", type=names, default=(), metavar="A,B", help="of ours, instead of the default ones")
    add("--seconds", type=float, metavar="S", help="spent on every solver and instance")
    add("--limit", type=float, metavar="S", help="after which a single run is ended")
    add("--contended", type=int, nargs="?", const=1, default=0, metavar="N", help="N busy processes beside it (1)")
    add("--table", nargs="?", const="all", choices=("all", "speed", "quality"), help="the goals and what is measured")
    add("--quick", action="store_true", help="with --table: fewer and smaller instances, in less than three minutes")
    add("--cache", type=Path, default=CACHE, metavar="FOLDER", help="with --table: where answers of peers are kept")
    add("--json", type=Path, metavar="FILE", help="write every row to FILE")
    add("--smoke", action="store_true", help="tiny instances, and the gate on passes and objective")
    add("--update", action="store_true", help="with --smoke: write expected.json instead of checking it")
    add("--page", action="store_true", help="write the tables of README.md from results/*.json, and measure nothing")
    return parser


def _seeds(text: str) -> tuple[int, ...]:
    """Return the numbers of a list in which "3-5" stands for 3, 4 and 5."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return tuple(seeds)


def _goals(options: argparse.Namespace, crew: Crew, report: dict[str, Any]) -> None:
    """Measure what the table of goals needs, print it, and add everything to the report."""
    seeds = options.seeds or (CHOOSING[:3] if options.quick else CHOOSING)
    findings, shown = goals.Findings(), []

    def show(*made: tables.Table) -> None:
        shown.extend(made)
        print(*(table.text() for table in made), sep="\n", flush=True)

    if options.table != "speed":
        instances = [*quality.real(), *quality.simulated(seeds)]
        findings.objectives = quality.compare(instances, quality.Cache(options.cache))
        findings.optima = quality.compare_with_optimum(seeds)
        show(*quality.summary(findings.objectives), quality.optimum_summary(findings.optima))
    if options.table != "quality":
        races = [race for race in goals.races(seeds) if not (options.quick and race.slow)]
        if options.quick:
            races = [replace(race, seconds=race.seconds / 2) for race in races]
        limit = 60.0 if options.limit is None else options.limit
        findings.times = goals.run(races, crew, limit=limit, only=options.only)
        show(goals.slowest(findings))
    show(goals.table(findings))
    after = os.getloadavg()[0]
    print(f"\n{report['machine']['build']} build; load {report['machine']['load']:.1f} before and {after:.1f} after")
    settings = {"seeds": seeds, "quick": options.quick, "load_after": after}
    report["goals"] = {**settings, "tables": [asdict(table) for table in shown], **asdict(findings)}


def _entrants(task: Task, crew: Crew, options: argparse.Namespace) -> list[Entrant]:
    """Return who takes part, in every variant of the data."""
    ours = options.ours or tuple(name for name in task.entrants if name in OURS)
    peers = options.peers or tuple(name for name in task.entrants if name not in OURS)
    everybody = [name for name in crew.entrants if name not in OURS]
    chosen = (*ours, *(everybody if peers == ("all",) else () if peers == ("none",) else peers))
    there = [crew.entrants[name] for name in chosen if name in crew.entrants]
    return [replace(entrant, variant=variant) for variant in task.variants for entrant in there]


def _run(name: str, task: Task, entrants: list[Entrant], options: argparse.Namespace, rows: list[Any]) -> None:
    """Measure a task, print every instance when it is done, and add its rows to the others."""
    seconds = task.seconds if options.seconds is None else options.seconds
    limit = task.limit if options.limit is None else options.limit
    print(f"\n=== {task.title}: {seconds:g} s per solver and instance, at most {limit:g} s per run", flush=True)
    for instance in task.instances:
        title = instance.title + (f" seed{seed}" if (seed := instance.parameters.get("seed", 0)) else "")
        if options.only not in title:
            continue
        try:
            found = contest.hold(instance.dataset(), instance.question, entrants, seconds=seconds, limit=limit)
        except DatasetError:
            print(f"\n{title}: not measured: set HARDTHRESH_DATA to the folder of the data sets")
            continue
        rows += [{"task": name, "question": instance.question, "instance": title, **row} for row in found]
        print(summaries.instance(title, found).text(), flush=True)


def _judge(rows: list[dict[str, Any]], *, update: bool) -> int:
    print()
    if update:
        smoke.write(rows)
        print(f"wrote {smoke.EXPECTED.name}")
        return 0
    worse = smoke.complaints(rows)
    print("\n".join(f"WORSE: {line}" for line in worse) or "Passes and objectives are not worse than in expected.json.")
    return 1 if worse else 0


def _startup(sizes: tuple[tuple[int, int, int], ...], repeats: int, **settings: Any) -> dict[str, Any]:
    found = {"imports": startup.imports(repeats), "first_fits": startup.first_fits(sizes, repeats, **settings)}
    print(tables.imports(found["imports"]).text(), flush=True)
    print(tables.first_fits(found["first_fits"]).text(), flush=True)
    return found


def _completion(repeats: int) -> list[dict[str, Any]]:
    found = completion.measure(repeats)
    print(tables.completion(found).text(), flush=True)
    return found


@contextlib.contextmanager
def _contention(count: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _machine(crew: Crew, contended: int) -> dict[str, Any]:
    """Return what figures depend on, without naming the machine."""
    versions = {package: version(package) for package in ("numpy", "scipy")}
    versions |= {entrant.label.split()[0]: entrant.version for entrant in crew.entrants.values()}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan"),
        "threads": 1,
        "build": _build(),
        "contended": contended,
        "versions": versions,
    }


def _processor() -> str:
    """Return the kind of processor where the system tells it."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return platform.machine()


def _build() -> str:
    """Return whether hardthresh runs compiled code."""
    if os.environ.get("HARDTHRESH_PURE", "0") not in ("", "0"):
        return "pure"
    package = Path(hardthresh.__file__).parent
    return "compiled" if any(next(package.rglob(f"*{end}"), None) for end in (".so", ".pyd")) else "pure"


def _rounded(value: Any) -> Any:
    """Return the same with numbers of six digits, times of microseconds; objectives need more and keep them."""
    if isinstance(value, dict):
        return {key: item if key == "value" else _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
