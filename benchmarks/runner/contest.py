"""One instance, every solver: rounds in which all of them run once, in rotating order, and medians over the rounds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any
from zlib import crc32

import numpy as np
from objective import Objective

from .workers import Entrant

MOST = 15  # rounds that count


def hold(dataset: Any, question: str, entrants: list[Entrant], *, seconds: float, limit: float) -> list[dict[str, Any]]:
    """Return one row for every solver that can be asked: what it found, and what it cost.

    The first run of a solver is not counted, unless it takes more than a third of `seconds`. More follow until its next
    run would take it beyond `seconds`. A run that takes longer than `limit` is ended, and so is what failed once.
    """
    objective = Objective.get_instance(question=question)
    objective.set_data(**dataset.get_data())
    problem = objective.get_objective()["problem"]
    if problem.loss == "logistic":  # classes have no units
        entrants = [entrant for entrant in entrants if "y" not in entrant.variant]
    workers = list(dict.fromkeys(entrant.worker for entrant in entrants))
    runs: list[list[dict[str, Any]]] = [[] for _ in entrants]
    counted = [0] * len(entrants)
    passes: dict[Any, list[float]] = {worker: [] for worker in workers}
    with tempfile.TemporaryDirectory() as folder:
        problem.save(Path(folder))
        for worker in workers:
            worker.ask("read", folder=folder)
        for round_ in range(1 + MOST):
            live = [i for i, done in enumerate(runs) if _goes_on(done, seconds)]
            if not live:
                break
            for worker in dict.fromkeys(entrants[i].worker for i in live):
                passes[worker].append(worker.ask("time_pass")["cpu"])
            shift = round_ % len(live)
            for i in live[shift:] + live[:shift]:
                answer = entrants[i].run(limit)
                runs[i].append(answer)
                counted[i] += round_ > 0 or answer.get("wall", 0.0) > seconds / 3
    return [
        _row(objective, entrant, done, count, median(passes[entrant.worker]))
        for entrant, done, count in zip(entrants, runs, counted, strict=True)
        if "refused" not in done[0]
    ]


def _goes_on(runs: list[dict[str, Any]], seconds: float) -> bool:
    if not runs:
        return True
    return "wall" in runs[-1] and sum(run["wall"] for run in runs) + runs[-1]["wall"] <= seconds


def _row(
    objective: Objective, entrant: Entrant, runs: list[dict[str, Any]], counted: int, unit: float
) -> dict[str, Any]:
    row = {"solver": entrant.label, "version": entrant.version, "variant": entrant.variant, "pass": unit}
    if "failed" in runs[-1]:
        return {**row, "failed": runs[-1]["failed"]}
    support = np.asarray(runs[-1]["support"], dtype=np.int64)
    kept = runs[-max(1, counted) :]
    times = {clock: median(run[clock] for run in kept) for clock in ("cpu", "wall", "system")}
    found = objective.evaluate_result(support, runs[-1]["passes"])
    return {**row, "rounds": len(kept), **times, "choice": crc32(np.sort(support)), **found}
