"""Fits every entrant to every repetition of every instance, but for results that are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

from .entrants import Entrant
from .instance import Instance
from .store import Row, Store, key


@dataclass(frozen=True, slots=True)
class Task:
    """One repetition of an instance, who takes part, and the checksums of the data of kept results, by entrant."""

    instance: Instance
    repetition: int
    entrants: tuple[Entrant, ...]
    kept: dict[str, str]


def run(
    instances: list[Instance], entrants: list[Entrant], repetitions: Iterable[int], store: Store, jobs: int = 1
) -> None:
    """Add the rows that the store lacks: all instances of the first repetition, then of the second, and so on."""
    kept = {key(row): row["data"] for row in store.rows()}
    tasks = [_task(instance, repetition, entrants, kept) for repetition, instance in product(repetitions, instances)]
    for done, rows in enumerate(_answers(tasks, jobs), start=1):
        if rows:
            store.add(rows)
        for row in rows:
            if "error" in row:
                print(f"{row['instance']}, {row['entrant']}: {row['error']}", file=sys.stderr)
        _progress(done, len(tasks), tasks[done - 1])


def _task(instance: Instance, repetition: int, entrants: list[Entrant], kept: dict[Any, str]) -> Task:
    here = tuple(each for each in entrants if instance.loss in each.fitters and (instance.real or not each.only_real))
    keys = {entrant.label: (instance.title, repetition, entrant.label, entrant.edition) for entrant in here}
    return Task(instance, repetition, here, {label: kept[name] for label, name in keys.items() if name in kept})


def _answers(tasks: list[Task], jobs: int) -> Iterator[list[Row]]:
    if jobs == 1:
        yield from map(_answer, tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_answer, tasks)


def _answer(task: Task) -> list[Row]:
    """Return the rows of entrants without a kept result for these very data."""
    training, judge = task.instance.draw(task.repetition)
    checksum = training.checksum
    rows = []
    for entrant in task.entrants:
        if task.kept.get(entrant.label) == checksum:
            continue
        row: Row = {
            "instance": task.instance.title,
            "repetition": task.repetition,
            "entrant": entrant.label,
            "edition": entrant.edition,
            "data": checksum,
        }
        try:
            fit, seconds = entrant.fit(training)
            row |= {"seconds": round(seconds, 6), "features": fit.features, **_rounded(judge(fit))}
        except Exception as error:  # an entrant that fails has no result here, and the others go on
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        rows.append(row)
    return rows


def _rounded(measures: dict[str, float]) -> dict[str, float]:
    """Return measures with the six digits that tables can need."""
    return {name: float(f"{value:.6g}") for name, value in measures.items()}


def _progress(done: int, total: int, task: Task) -> None:
    if os.isatty(2):
        title = f"{task.instance.title}, repetition {task.repetition}"
        print(f"\r{done} of {total}: {title:<60}", end="\n" if done == total else "", file=sys.stderr, flush=True)
