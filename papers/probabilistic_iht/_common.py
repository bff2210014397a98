"""Probabilistic IHT under settings that a file can keep, the data of the specification, and what is read off a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from hardthresh.arrays import to_numpy
from hardthresh.constraints import Sparsity
from hardthresh.core import minimize
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Objective
from hardthresh.core.stationarity import norm
from hardthresh.objectives import LinearModel
from hardthresh.solvers import (
    BatchRule,
    CoordinateVote,
    ExponentialBatch,
    FixedBatch,
    FullBatch,
    HardThresholdingPursuit,
    NormTest,
    PowerBatch,
    ProbabilisticIHT,
    SetVote,
)

BATCHES: dict[str, Callable[..., BatchRule]] = {
    "full": FullBatch,
    "fixed": FixedBatch,
    "authors": ExponentialBatch,
    "power": PowerBatch,
    "norm test": NormTest,
}
PUBLISHED = {"alpha": 1.0, "eta1": 1e-4, "eta2": 1e-4, "delta0": 1.0, "delta_max": 10.0, "gamma": 2.0}
"""Section 5 of the paper, which does not give alpha."""

LEAST = 1e-9
"""The clipping level at which the specification ends a run."""


def solver(settings: dict[str, Any]) -> ProbabilisticIHT:
    """Return the method of some settings: published numbers, unless "automatic" is asked for, and no refit."""
    given = dict(settings)
    rule = given.pop("batch", ["full"])
    vote = given.pop("vote", None)
    if vote is not None:
        given["vote"] = {"set": SetVote, "coordinate": CoordinateVote}[vote[0]](vote[1])
    numbers = {} if given.pop("automatic", False) else PUBLISHED
    given = {"clip": "full", "refit": False, **numbers, **given}
    return ProbabilisticIHT(batch=BATCHES[rule[0]](*rule[1:]), **given)


@dataclass(frozen=True, slots=True)
class Problem:
    """Regression data, and what is best on the planted support."""

    objective: LinearModel
    truth: Any
    solution: Any  # the minimiser on the planted support
    best: float  # its value
    L: float


def regression(
    seed: int,
    n: int,
    d: int,
    k: int,
    noise: float = 0.1,
    rho: float = 0.0,
    low: float = 1.0,
    high: float = 2.0,
    loss: str = "squared",
    scale: float = 1.0,
    columns: float = 1.0,
) -> Problem:
    """Draw the specification's `sparse_regression_data`, and minimise on the planted support.

    Draw order: the design, a permutation whose first k are planted, magnitudes, a uniform number for each sign, and
    the noise, or a uniform number for each label. `scale` multiplies the target, `columns` the design.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    if rho:
        for j in range(1, d):
            A[:, j] = rho * A[:, j - 1] + np.sqrt(1.0 - rho**2) * A[:, j]
    coef = np.zeros(d)
    planted = rng.permutation(d)[:k]
    coef[planted] = rng.uniform(low, high, k) * np.where(rng.random(k) < 0.5, -1, 1)
    if loss == "squared":
        y = scale * (A @ coef + noise * rng.standard_normal(n))
    else:
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-(A @ coef)))).astype(float)
    A = columns * A
    f = LinearModel(A, y, loss=loss)
    own = LinearModel(A[:, planted], y, loss=loss)
    solution = np.zeros(d)
    solution[planted] = np.linalg.lstsq(A[:, planted], y)[0] if loss == "squared" else _logistic_minimiser(own, k)
    bound = 1.0 if loss == "squared" else 0.25
    best = own.value(solution[planted])
    return Problem(f, np.sort(planted), solution, float(best), bound * float(np.linalg.norm(A, 2)) ** 2 / n)


def _logistic_minimiser(objective: LinearModel, k: int) -> Any:
    """Return the minimiser of a logistic model, by pursuit on all of its columns."""
    return minimize(objective, Sparsity(k), HardThresholdingPursuit(), max_iter=500, tol=1e-12).w


def overlap(found: Any, truth: Any) -> float:
    """Return the F1 score of one set of indices against another."""
    hits = np.intersect1d(to_numpy(found), truth).size
    return 2.0 * hits / max(1, np.size(found) + np.size(truth))


def follow(
    objective: Objective,
    constraint: Constraint,
    settings: dict[str, Any],
    limit: int,
    *,
    start: Any = None,
    seed: int = 0,
    least: float = LEAST,
    states: list[Any] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Run the method to its limit, or to the least clipping level; return its result and what the tables say of it.

    All states are added to the list `states`, if it is given.
    """

    def watch(state: Any) -> None:
        if states is not None:
            states.append(state)
        if state.delta < least:
            raise StopIteration

    with np.errstate(over="ignore", invalid="ignore"):
        run = minimize(
            objective, constraint, solver(settings), start, seed=seed, max_iter=limit, tol=0.0, stop=None,
            callback=watch,
        )  # fmt: skip
        at = objective.evaluate(run.w)
    inside, whole = norm(run.support.restrict(at.gradient)), norm(at.gradient)
    said = {
        "value": float(at.value) if isfinite(at.value) else inf,
        "accepted": float(np.sum(run.history["accepted"])),
        "iterations": float(run.n_iter),
        "samples": float(run.history["samples"][-1]),
        "inside": inside,
        "floor": inside / whole if whole > 0.0 else 0.0,
    }
    return run, said


def mean(rows: list[dict[str, Any]], field: str) -> float:
    """Return a mean over runs."""
    return float(np.mean([row[field] for row in rows]))


def median(rows: list[dict[str, Any]], field: str) -> float:
    """Return a median over runs."""
    return float(np.median([row[field] for row in rows]))
