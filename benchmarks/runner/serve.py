"""A process that runs solvers when asked: one line of JSON in, one line out. It needs NumPy and SciPy only."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_utils.bases import grid
from benchmark_utils.problem import Problem

from .files import load


class Server:
    """The problem at hand, and what has been warmed up."""

    def __init__(self) -> None:
        self.problem: Problem | None = None
        self.varied: tuple[str, Problem] | None = None
        self.warm: set[tuple[Any, ...]] = set()

    def offer(self, stems: list[str]) -> dict[str, Any]:
        """Return what every solver file is called here, or why it cannot be imported."""
        return {stem: _card(stem) for stem in stems}

    def read(self, folder: str) -> dict[str, Any]:
        """Read a problem."""
        self.problem, self.varied = Problem.read(Path(folder)), None
        return {}

    def time_pass(self) -> dict[str, Any]:
        """Return the CPU time of one product X'r, from a batch that is long enough for the clock."""
        X, r = self.problem.X, np.ones(self.problem.X.shape[0])
        count, spent = 0, 0.0
        start = time.process_time()
        while spent < 0.02 or count < 3:
            X.T @ r
            count, spent = count + 1, time.process_time() - start
        return {"cpu": spent / count}

    def run(self, stem: str, parameters: dict[str, Any], variant: dict[str, Any]) -> dict[str, Any]:
        """Solve the problem, or a variant of it, and return the answer and what it cost."""
        problem = self._variant(variant)
        solver = load("solver", stem).get_instance(**parameters)
        skip, reason = solver.skip(problem)
        if skip:
            return {"refused": reason}
        solver.set_objective(problem)
        kind = (stem, *parameters.values(), problem.question, problem.loss, problem.is_sparse, *variant.values())
        if kind not in self.warm:
            solver.warm_up()
            self.warm.add(kind)
        before = _clocks()
        solver.run(None)
        times = {name: after - before[name] for name, after in _clocks().items()}
        result = solver.get_result()
        return {"support": result["support"].tolist(), "passes": result["passes"], **times}

    def _variant(self, variant: dict[str, Any]) -> Problem:
        if not variant:
            return self.problem
        key = json.dumps(variant)
        if self.varied is None or self.varied[0] != key:
            self.varied = (key, self.problem.varied(**variant))
        return self.varied[1]


def serve() -> int:
    """Answer requests until there are no more. What solvers print is no answer, so it goes to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    server = Server()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer = getattr(server, request.pop("do"))(**request)
        except Exception as error:  # a peer's failure is a finding, not ours to repair
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        channel.write(json.dumps(answer) + "\n")
        channel.flush()
    return 0


def _clocks() -> dict[str, float]:
    """Return CPU and wall time, and the CPU time in the system: mostly that of memory which is touched first."""
    system = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    return {"cpu": time.process_time(), "wall": time.perf_counter(), "system": system}


def _card(stem: str) -> dict[str, Any]:
    try:
        solver = load("solver", stem)
        return {"name": solver.name, "version": version(solver.distribution), "grid": list(grid(solver.parameters))}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
