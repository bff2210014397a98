"""The command line: what is measured, in which order, and where it is written."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import contest
import instances
import smoke
import startup
import tables

PACKAGES = ("hardthresh", "numpy", "scipy", "scikit-learn", "abess")


def main() -> int:
    """Run the benchmarks that the command line asks for and return the exit status."""
    options = _parser().parse_args()
    began = time.perf_counter()
    machine = _machine()
    print(tables.sentence(machine), flush=True)
    if options.smoke:
        report, complaints = smoke.run(update=options.update)
    else:
        report, complaints = _everything(options), []
    seconds = time.perf_counter() - began
    if options.json:
        content = {"machine": machine, "seconds": seconds, **report}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for complaint in complaints:
        print(f"WORSE: {complaint}")
    print(f"\n{'failed' if complaints else 'done'} in {seconds:.0f} s")
    return 1 if complaints else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, and the gate on passes and objective")
    parser.add_argument(
        "--update", action="store_true", help="with --smoke: write expected.json instead of checking it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every raw measurement to FILE")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only the instances with TEXT in their name; no start-up"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the simulated instances (default 0)")
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="spent on each instance beyond three rounds (default 4)"
    )
    return parser


def _everything(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {}
    if not options.only:
        report["imports"] = startup.imports(repeats=7)
        print(tables.imports(report["imports"]), flush=True)
        report["first_fits"] = startup.first_fits(startup.SIZES, repeats=5)
        print(tables.first_fits(report["first_fits"]), flush=True)
    chosen = [x for x in instances.simulated(options.seed) + instances.real() if options.only in x.name]
    report["contests"] = []
    for instance in chosen:
        outcome = contest.hold(instance, seconds=options.seconds)
        report["contests"].append(outcome)
        print(tables.contest(outcome), flush=True)
    print(tables.legend(report["contests"]))
    return report


def _machine() -> dict[str, Any]:
    """Return what figures depend on, without naming the machine."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "threads": 1,
        "versions": versions,
    }
