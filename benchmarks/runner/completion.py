"""Completion of random matrices of low rank, noiseless, until the training error is a ten-thousandth of the targets."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import Any

INSTANCES = ((512, 768, 60, 0.5), (2000, 2000, 20, 0.15))

SOLVERS = {
    "conjugate IHT": "Rank(r), ConjugateIHT()",
    "pursuit": "Rank(r), HardThresholdingPursuit()",
    "SVP, warm subspace": 'Rank(r, "subspace"), IHT(step=Fixed(p * q))',
    "SVP, randomized": 'Rank(r, "randomized"), IHT(step=Fixed(p * q))',
}
"""SVP is IHT with the step of its paper, 1 / share, which is p q for the mean over the observed entries."""

_RUN = """
import json, time
import numpy as np
from hardthresh.constraints import Rank
from hardthresh.objectives import MatrixCompletion
from hardthresh.solvers import IHT, ConjugateIHT, HardThresholdingPursuit, iterate
from hardthresh.steps import Fixed
p, q, r, share = {instance!r}
rng = np.random.default_rng({seed})
truth = rng.standard_normal((p, r)) @ rng.standard_normal((q, r)).T
rows, cols = np.nonzero(rng.random((p, q)) < share)
objective = MatrixCompletion(rows, cols, truth[rows, cols], shape=(p, q))
size = np.mean(objective.y**2)
def run(most):
    start = time.process_time()
    for state in iterate(objective, {arguments}):
        if 2.0 * state.value <= 1e-8 * size or state.settled or state.iteration == most:
            break
    return state, time.process_time() - start
run(1)
state, seconds = run(1000)
U, s, Vt = state.support
off = float(np.linalg.norm((U * s) @ Vt - truth) / np.linalg.norm(truth))
error = float(np.sqrt(2.0 * state.value / size))
print(json.dumps(dict(iterations=state.iteration, passes=state.passes, seconds=seconds, error=error, off=off)))
"""


def measure(repeats: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return, for each instance and solver, the iterations, passes, medians of CPU seconds, and the errors."""
    rows: list[dict[str, Any]] = []
    for instance in INSTANCES:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in SOLVERS}
        for _ in range(repeats):  # interleaved
            for name, arguments in SOLVERS.items():
                found[name].append(_run(_RUN.format(instance=instance, seed=seed, arguments=arguments)))
        for name, runs in found.items():
            seconds = [run["seconds"] for run in runs]
            rows.append({**runs[0], "instance": instance, "solver": name, "all": seconds, "seconds": median(seconds)})
    return rows


def _run(script: str) -> dict[str, Any]:
    found = subprocess.run([sys.executable, "-c", script], check=True, text=True, capture_output=True)
    return dict(json.loads(found.stdout))
