"""The problems of section 6 and the rules that are compared on them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import inf, nan
from typing import Any

import numpy as np

from hardthresh.core import Status, minimize
from hardthresh.core.constraint import Constraint
from hardthresh.core.errors import StallWarning
from hardthresh.core.objective import Objective
from hardthresh.core.step import StepRule
from hardthresh.objectives import LinearModel, MatrixRegression
from hardthresh.solvers import IHT
from hardthresh.steps import AdaptiveSparsePolyak, Fixed, Polyak, SparsePolyak, restricted_smoothness_ar1

from ._data import ar1_problem

LOSS = {"linear": "squared", "logistic": "logistic", "poisson": "poisson"}


@dataclass(frozen=True, slots=True)
class Problem:
    """An objective, the coefficients behind its data, and their value."""

    objective: Objective
    truth: Any
    f_star: float


@lru_cache(maxsize=1)  # cells of one problem stand side by side
def planted(model: str, d: int, s: int, s_star: int, seed: int, **settings: Any) -> Problem:
    """Return a problem of the paper's family, drawn with a seed."""
    drawn = ar1_problem(d, s, s_star, model=model, seed=seed, **settings)
    objective = LinearModel(drawn.X, drawn.y, loss=LOSS[model])
    return Problem(objective, drawn.coef, objective.value(drawn.coef))


@lru_cache(maxsize=1)
def measured(d: int, rank: int, n: int, omega: float, seed: int) -> Problem:
    """Draw n measurements of a d x d matrix of some rank; the entries of a measurement are an AR(1) process.

    Draw order: the innovations of all measurements, the two factors, the noise (variance 1/4).
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d * d))
    if omega:
        A[:, 0] /= math.sqrt(1.0 - omega**2)
        for j in range(1, d * d):
            A[:, j] += omega * A[:, j - 1]
    U, V = rng.standard_normal((d, rank)), rng.standard_normal((d, rank))
    truth = U @ V.T / math.sqrt(d)
    y = A @ truth.ravel() + 0.5 * rng.standard_normal(n)
    objective = MatrixRegression(A.reshape(n, d, d), y)
    return Problem(objective, truth, objective.value(truth))


RULES: dict[str, Callable[[float], StepRule]] = {
    "SP5": lambda target: SparsePolyak(target),
    "SP2": lambda target: SparsePolyak(target, scale=2.0),
    "SP1": lambda target: SparsePolyak(target, scale=1.0),
    "CP5": lambda target: Polyak(target),
    "CP1": lambda target: Polyak(target, scale=1.0),
}
"""Sparse Polyak and the classical Polyak step; the number is c of gamma = (f - target) / (c |g|^2)."""


def fixed_step(model: str, s: int, s_star: int, alpha: float = 5.0, omega: float = 0.5) -> Fixed:
    """Return the step 2/(3 L) of the paper."""
    return Fixed.from_smoothness(restricted_smoothness_ar1(s, s_star, alpha=alpha, omega=omega, loss=LOSS[model]))


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the warnings that Algorithm 2 stalls: the figures and tables show it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StallWarning)
        yield


def follow(
    problem: Problem, constraint: Constraint, step: StepRule, iterations: int, until: float = 0.0
) -> dict[str, Any]:
    """Return f, the squared error, the step, the non-zeros of the truth that were found and (Algorithm 2) the bound.

    All are lists over the iterates of hard thresholding. The run ends early where the share `until` of the first gap
    f - f(theta*) is left.
    """
    errors: list[float] = []
    bounds: list[float] = []
    found: list[int] = []
    support = problem.truth != 0
    goal = problem.f_star + until * (problem.objective.value(problem.objective.zeros()) - problem.f_star)

    def watch(state: Any) -> None:
        errors.append(float(np.sum((state.w - problem.truth) ** 2, dtype=np.float64)))
        bounds.append(getattr(state.memory, "bound", nan))
        found.append(int(np.count_nonzero(state.w[support])))
        if until and state.value <= goal:
            raise StopIteration

    with quiet():
        result = minimize(problem.objective, constraint, IHT(step=step), max_iter=iterations, tol=0.0, callback=watch)
    value, steps = result.history["value"].tolist(), result.history["step"].tolist()
    if result.status is Status.SETTLED:  # a step of length zero: it would stand still for ever
        rest = iterations + 1 - len(value)
        value, errors, bounds, found = (column + column[-1:] * rest for column in (value, errors, bounds, found))
        steps = steps + [0.0] * rest
    return {
        "value": value,
        "error": errors,
        "step": steps,
        "bound": bounds if isinstance(step, AdaptiveSparsePolyak) else None,
        "f_star": problem.f_star,
        "size": float(np.sum(problem.truth**2, dtype=np.float64)),
        "found": found if problem.truth.ndim == 1 else None,
    }


def example(limit: int, seed: int, **_: Any) -> dict[str, Any]:
    """Return what `follow` could have returned, at once; f falls below f(theta*) late, as that of a fixed step does."""
    left = [(1.0 + 0.01 * seed) * 0.95**t for t in range(limit + 1)]
    return {
        "value": [0.9 + 9.1 * share for share in left],
        "error": left,
        "step": [0.1] * limit,
        "bound": [0.1 * share for share in left],
        "f_star": 1.0,
        "size": 1.0,
        "found": [min(10, t) for t in range(limit + 1)],
    }


def gaps(row: dict[str, Any]) -> Any:
    """Return the share of the first gap f - f(theta*) that is left at each iterate."""
    value = np.asarray(row["value"])
    return (value - row["f_star"]) / (value[0] - row["f_star"])


def first(values: Any, levels: Sequence[float]) -> list[float]:
    """Return the first iterations at which the values are at most these levels; inf where they never are."""
    below = [np.flatnonzero(np.asarray(values) <= level) for level in levels]
    return [float(found[0]) if found.size else inf for found in below]
