"""One instance, every solver: rounds in which all of them run once, in rotating order, and medians over the rounds."""

from __future__ import annotations

import time
import warnings
from statistics import median
from typing import Any

import numpy as np
import refit
from competitors import Competitor, competitors
from instances import Instance, Problem, available

FEWEST, MOST = 3, 15  # rounds


def hold(instance: Instance, *, seconds: float, fewest: int = FEWEST) -> dict[str, Any]:
    """Return what every solver found on an instance and what it cost.

    The first run of each solver warms it up and is not counted. Then `fewest` rounds follow, or as many as fit into
    `seconds`, at most `MOST`. A solver that fails is left out, with the reason.
    """
    problem = available(instance)
    if isinstance(problem, str):
        return {"instance": instance.name, "missing": problem}
    there, absent = competitors(problem)
    found: dict[str, dict[str, Any]] = {}
    began = time.perf_counter()
    for name, competitor in list(there.items()):
        try:
            found[name] = _answer(problem, competitor)
        except Exception as error:  # a peer's failure is a finding, not ours to repair
            absent[name] = f"failed: {type(error).__name__}: {error}"
            del there[name]
    rounds = int(np.clip(seconds / (time.perf_counter() - began), fewest, MOST))
    passes: list[float] = []
    for round_ in range(rounds):
        passes.append(_pass(problem))
        names = list(there)
        shift = round_ % len(names)
        for name in names[shift:] + names[:shift]:
            cpu, wall = _timed(problem, there[name])
            found[name]["cpu"].append(cpu)
            found[name]["wall"].append(wall)
    unit = median(passes)
    for figures in found.values():
        figures["median_cpu"], figures["median_wall"] = median(figures["cpu"]), median(figures["wall"])
        figures["passes_by_clock"] = figures["median_cpu"] / unit
    return {
        "instance": instance.name,
        "loss": problem.loss,
        "rounds": rounds,
        "pass_cpu": unit,
        "solvers": found,
        "absent": absent,
    }


def _answer(problem: Problem, competitor: Competitor) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        support, passes = competitor(problem)
    recall = None if problem.truth is None else float(np.isin(problem.truth, support).mean())
    return {
        "support": np.asarray(support).tolist(),
        "passes": passes,
        "objective": refit.objective(problem, support),
        "recall": recall,
        "cpu": [],
        "wall": [],
    }


def _timed(problem: Problem, competitor: Competitor) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wall, cpu = time.perf_counter(), time.process_time()
        competitor(problem)
        return time.process_time() - cpu, time.perf_counter() - wall


def _pass(problem: Problem) -> float:
    """Return the CPU time of one product X'r, from a batch that is long enough for the clock."""
    r = np.ones(problem.X.shape[0])
    count, spent = 0, 0.0
    start = time.process_time()
    while spent < 0.02 or count < 3:
        problem.X.T @ r
        count, spent = count + 1, time.process_time() - start
    return spent / count
