"""Tables larger than memory: files, threads, workers and genotypes. One row of JSON for each thing that is measured.

    python benchmarks/scale.py --task formats --rows 250000       # how fast rows come from each kind of file
    python benchmarks/scale.py --task disc --gb 20                # a raw file beside dd, and fits in 1500 MB
    python benchmarks/scale.py --task dask --workers 1,2,4        # a cluster: tasks, scaling, lost workers, others
    python benchmarks/scale.py --task readings --seeds 20         # how often a fit reads its table; fails if too often
    python benchmarks/scale.py --task formats,disc --json FILE    # appends the rows to a file
    make bench-scale                                              # all tasks, beside the checks of the design
    python benchmarks/scale.py --task disc --gb 20 --table benchmarks/results/scale   # one of them again, in its table

Each row has the wall time, the CPU time of all processes, the load of the machine before and after, and the memory of
the process in MB. Files are written into the temporary folder (`--folder`), and removed afterwards.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from run import limit_threads
from scaling.checks import table_of
from scaling.rows import machine, say

TASKS = {
    "formats": "scaling.formats",
    "disc": "scaling.disc",
    "dask": "scaling.cluster",
    "readings": "scaling.readings",
}
"""The tasks, with the modules that have `add_arguments(parser)` and `rows(options)`."""


def main() -> int:
    """Print the rows of some tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="formats", help=f"some of {', '.join(TASKS)}")
    parser.add_argument("--json", type=Path, help="append the rows to this file")
    parser.add_argument(
        "--table",
        type=Path,
        help="write the rows to this name with .jsonl, in place of those of the same tasks, and the checks with .md",
    )
    parser.add_argument("--folder", type=Path, help="where files are written; default: the temporary folder")
    modules = {name: import_module(module) for name, module in TASKS.items()}
    for name, module in modules.items():
        module.add_arguments(parser.add_argument_group(f"--task {name}"))
    options = parser.parse_args()
    wanted = options.task.split(",")
    unknown = [name for name in wanted if name not in TASKS]
    if unknown:
        parser.error(f"no task is called {unknown[0]}; known: {', '.join(TASKS)}")
    found: list[dict[str, Any]] = []
    if options.table is not None:
        options.json = options.table.with_suffix(".jsonl")
        found = others(options.json, wanted)
        options.json.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    for row in chain([machine(wanted)], *(modules[name].rows(options) for name in wanted)):
        say(row, options.json)
        found.append(row)
        if options.table is not None:  # after each row, as a later one may end the run
            options.table.with_suffix(".md").write_text(table_of(found), encoding="utf-8")
    return 0


def others(path: Path, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a file that other tasks have measured."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return [row for row in rows if not {*row.get("measures", [row["task"]])} <= {*wanted}]


if __name__ == "__main__":
    limit_threads()
    raise SystemExit(main())
