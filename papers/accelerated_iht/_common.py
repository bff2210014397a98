"""Algorithm 1 and its variants under the names of the tables, and what is read off a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from hardthresh.core import minimize
from hardthresh.core.constraint import Constraint
from hardthresh.core.objective import Objective
from hardthresh.core.solver import Solver
from hardthresh.core.step import StepRule
from hardthresh.core.stopping import LowerBound, StopRule
from hardthresh.solvers import AcceleratedIHT, ConstantMomentum, ExactMomentum, Momentum, NesterovMomentum
from hardthresh.steps import ExactLineSearch, Fixed


def published(momentum: float | Momentum, step: float | StepRule, **settings: Any) -> AcceleratedIHT:
    """Return Algorithm 1 exactly, with rules or a constant momentum and step."""
    rule = momentum if isinstance(momentum, Momentum) else ConstantMomentum(momentum)
    length = step if isinstance(step, StepRule) else Fixed(step)
    return AcceleratedIHT(variant="paper", momentum=rule, step=length, **settings)


METHODS: dict[str, Callable[[float], Solver]] = {
    "IHT 1/L": lambda step: published(0.0, step),
    "1/L .25": lambda step: published(0.25, step),
    "1/L .5": lambda step: published(0.5, step),
    "1/L .75": lambda step: published(0.75, step),
    "1/L .9": lambda step: published(0.9, step),
    "1/L exact": lambda step: published(ExactMomentum(), step),
    "1/L value restart": lambda step: published(NesterovMomentum(), step),
    "1/L gradient restart": lambda step: published(NesterovMomentum("gradient"), step),
    "IHT ls": lambda step: published(0.0, ExactLineSearch()),
    "ls 0": lambda step: published(0.0, ExactLineSearch("direction")),
    "ls .25": lambda step: published(0.25, ExactLineSearch("direction")),
    "ls .5": lambda step: published(0.5, ExactLineSearch("direction")),
    "ls exact": lambda step: published(ExactMomentum(), ExactLineSearch("direction")),
    "ls gradient restart": lambda step: published(NesterovMomentum("gradient"), ExactLineSearch("direction")),
    "support .25": lambda step: published(0.25, ExactLineSearch()),
    "safe 0": lambda step: AcceleratedIHT(momentum=ConstantMomentum(0.0)),
    "safe .5": lambda step: AcceleratedIHT(momentum=ConstantMomentum(0.5)),
    "safe exact": lambda step: AcceleratedIHT(),
    "safe Nesterov": lambda step: AcceleratedIHT(momentum=NesterovMomentum()),
}
"""The step 1/L is that of the mean loss; "ls" searches along the gradient on T_i, "support" on that of u_i."""

NAMES = {
    "IHT 1/L": "IHT, step 1/L",
    "1/L .25": "AccIHT 1/L, τ = 1/4 (the paper)",
    "1/L .5": "AccIHT 1/L, τ = 1/2",
    "1/L .75": "AccIHT 1/L, τ = 3/4",
    "1/L .9": "AccIHT 1/L, τ = .9",
    "1/L exact": "AccIHT 1/L, exact τ",
    "1/L value restart": "AccIHT 1/L, Nesterov, restart by value",
    "1/L gradient restart": "AccIHT 1/L, Nesterov + restart",
    "IHT ls": "IHT, line search",
    "ls 0": "AccIHT line search, τ = 0",
    "ls .25": "AccIHT line search, τ = 1/4",
    "ls .5": "AccIHT line search, τ = 1/2",
    "ls exact": "AccIHT line search, exact τ",
    "ls gradient restart": "AccIHT line search, Nesterov + restart",
    "support .25": "AccIHT, step on the support, τ = 1/4",
    "safe 0": "safeguarded, τ = 0",
    "safe .5": "safeguarded, τ = 1/2",
    "safe exact": "safeguarded, exact τ (our default)",
    "safe Nesterov": "safeguarded, Nesterov",
}
"""What the figures call them."""

DENSE = 10_000_000
"""Entries of a matrix up to which its norm is computed by LAPACK."""


def lipschitz(X: Any) -> float:
    """Return L = lambda_max(X' X), by the power method of ARPACK where a dense decomposition would take minutes."""
    if X.size < DENSE:
        return float(np.linalg.norm(X, 2) ** 2)
    from scipy.sparse.linalg import LinearOperator, eigsh

    size = X.shape[0]
    product = LinearOperator((size, size), matvec=lambda v: X @ (X.T @ v.astype(X.dtype)), dtype=np.float64)
    return float(eigsh(product, k=1, tol=1e-7, v0=np.ones(size), return_eigenvectors=False)[0])


def follow(
    objective: Objective,
    constraint: Constraint,
    solver: Solver,
    limit: int,
    *,
    until: float = 1e-300,
    truth: Any = None,
    stop: StopRule | None = None,
) -> dict[str, Any]:
    """Return f / f(0) along a run, its passes and seconds, and how it ended.

    It ends at the share `until` of f(0), by `stop`, or at the limit. With the planted indices `truth`, also the first
    iteration at which all of them are in the support.
    """
    found: list[int] = []

    def watch(state: Any) -> None:
        if truth is not None and not found and np.all(state.w[truth] != 0):
            found.append(state.iteration)

    rule = stop if stop is not None else LowerBound(until)
    with np.errstate(over="ignore", invalid="ignore"):
        result = minimize(objective, constraint, solver, stop=rule, max_iter=limit, callback=watch)
    value = np.asarray(result.history["value"], dtype=float)
    return {
        "value": value / value[0],
        "passes": result.history["passes"],
        "seconds": result.history["seconds"],
        "support": found[0] if found else None,
        "status": result.status.name,
    }


def example(limit: int, **_: Any) -> dict[str, Any]:
    """Return what `follow` could have returned, at once."""
    points = range(min(limit, 60) + 1)
    return {
        "value": [0.7**t for t in points],
        "passes": [float(t) for t in points],
        "seconds": [0.01 * t for t in points],
        "support": 7,
        "status": "LOWER_BOUND",
    }


def first(values: Any, levels: Sequence[float]) -> list[float]:
    """Return the first iterations at which the values are at most these levels; inf where they never are."""
    below = [np.flatnonzero(np.asarray(values) <= level) for level in levels]
    return [float(found[0]) if found.size else inf for found in below]


def number(value: float | None) -> float:
    """Return a number in which "not reached" is infinite."""
    return inf if value is None else float(value)
