"""The command line of the benchmark of prediction."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from runner.tables import Table

from . import contest, entrants, halves, nothing, real, simulation, summaries
from .instance import LOSSES, Instance
from .results import Results, gather
from .store import Store

ROOT = Path(__file__).parents[2]
PACKAGES = {"hardthresh": "hardthresh", "numpy": "numpy", "scikit-learn": "sklearn", "abess": "abess"}
"""The packages whose versions are reported, and the modules that show whether they are here."""

REPETITIONS = {"simulated": 10, "real": 20, "nothing": 10}
TASKS = {"simulated": simulation.cells, "real": real.sets, "nothing": nothing.sources}


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, and print the tables."""
    options = parser().parse_args(arguments)
    taking_part = chosen_entrants(options)
    shown = [*(each for each in taking_part if each.ours), *entrants.peers()]
    by_task = {}
    for task in options.task:
        store = Store(options.cache, task)
        instances = chosen_instances(task, options)
        repetitions = options.repetitions or range(REPETITIONS[task])
        if not options.tables:
            contest.run(instances, taking_part, repetitions, store, options.jobs)
        by_task[task] = gather(store.rows(), instances, shown, repetitions)
        for table in tables(by_task[task], task, options.all):
            print(table.text())
        if options.write:
            options.write.mkdir(parents=True, exist_ok=True)
            by_task[task].write(options.write / f"{task}.json", machine())
    if options.write and set(by_task) == set(TASKS):
        found = {name: asdict(table) for name, table in summaries.for_page(by_task).items()}
        (options.write / "tables.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if len(by_task) > 1:
        for half, name in product(halves.HALVES, next(iter(by_task.values())).ours):
            print(summaries.goals(by_task, name, half).text())
    return 0


def tables(results: Results, task: str, everything: bool) -> Iterator[Table]:
    """Yield the tables of a task, for each half; with everything also each instance."""
    for half in halves.HALVES:
        part = results.of(half=half)
        if not part.outcomes:
            continue
        counts = sorted({each.repetitions for each in part.outcomes})
        about = f"{task}, {half}, repetitions: {counts[0]} to {counts[-1]}"
        if task == "nothing":
            yield summaries.nothing_found(part, about)
            continue
        for loss in LOSSES:
            alike = part.of(loss=loss)
            if not alike.outcomes:
                continue
            yield summaries.overview(alike, f"{about}, {loss} loss")
            if task == "simulated":
                for group in summaries.GROUPS:
                    yield summaries.by_group(alike, f"mean relative risk, {half}", group)
            for name in alike.ours:
                yield summaries.losing(alike, name, f"{half}, {loss} loss: where {name} loses")
            if everything:
                yield summaries.by_instance(alike, f"{half}, {loss} loss")


def machine() -> dict[str, Any]:
    """Return when and where results were gathered."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES if find_spec(PACKAGES[name])},
    }


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--task", type=_tasks, default=["simulated"], help="simulated, real, nothing, or several of them")
    made.add_argument("--half", choices=halves.HALVES, help="only this half of the instances")
    made.add_argument("--settings", type=_names, help="of simulated cells, such as low,high-5")
    made.add_argument("--loss", choices=LOSSES, help="only instances with this loss")
    made.add_argument("--only", type=_names, help="only instances with one of these in their title: colon,snr0.25")
    made.add_argument("--repetitions", type=_range, help="such as 0-4, or 3; by default 0-9, and 0-19 of real sets")
    made.add_argument(
        "--entrants", type=_names, default=["ours", "peers"], help="ours, peers, or labels such as lasso,abess CV"
    )
    made.add_argument("--variants", type=Path, help="a JSON file of variants of ours, like the table OURS")
    made.add_argument("--tables", action="store_true", help="fit nothing, and only print tables of what is there")
    made.add_argument("--cache", type=Path, default=ROOT / ".bench-cache" / "prediction", help="folder of results")
    made.add_argument("--all", action="store_true", help="also print a line for each instance")
    made.add_argument("--write", type=Path, help="folder for a file of results of each task, for the documentation")
    made.add_argument("--jobs", type=int, default=1, help="processes")
    return made


def chosen_instances(task: str, options: argparse.Namespace) -> list[Instance]:
    """Return the instances that the command line asks for."""
    everything: list[Instance] = TASKS[task]()
    return [
        instance
        for instance in everything
        if options.half in (None, instance.half)
        and options.loss in (None, instance.loss)
        and (options.settings is None or instance.title.split()[0] in options.settings)
        and (options.only is None or any(part in instance.title for part in options.only))
    ]


def chosen_entrants(options: argparse.Namespace) -> list[entrants.Entrant]:
    """Return the entrants that the command line asks for, ours first."""
    variants = entrants.read_variants(options.variants) if options.variants else entrants.OURS
    everybody = entrants.ours(variants) + entrants.peers()
    known = {"ours", "peers", *(each.label for each in everybody)}
    if unknown := set(options.entrants) - known:
        raise SystemExit(f"no entrant {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return [each for each in everybody if {each.label, "ours" if each.ours else "peers"} & set(options.entrants)]


def _names(text: str) -> list[str]:
    return text.split(",")


def _tasks(text: str) -> list[str]:
    if unknown := set(_names(text)) - set(TASKS):
        raise argparse.ArgumentTypeError(f"no task {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}")
    return _names(text)


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
