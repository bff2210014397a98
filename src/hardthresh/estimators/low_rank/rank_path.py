"""Completions of increasing rank: the fit of each rank starts from that of a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from hardthresh.core.result import Result
from hardthresh.core.stationarity import norm
from hardthresh.core.typing import Array

from .completion import Cells, Columns, CompletionProblem, Factors

_EQUAL = 1e-5
"""Difference of objectives, as a share of that at the start, up to which fits are equally good: the order of rows and
columns changed it by up to 8e-7 in 4,745 small tables."""
_APART = 0.01  # of the norm of a table: fits that differ by more are different; arbitrary, minima lie 0.1 to 2 apart

Solve = Callable[[CompletionProblem, Array | None], Result]
"""Runs a solver on a problem from a point."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A table completed by a matrix of low rank.

    Attributes
    ----------
    factors : Factors
        The matrix.
    objective : float
        The objective of the completion.
    values, ranks : list
        The objective after each iteration, and the rank allowed in it.
    converged, reason :
        Whether the last fit did, and why it stopped.
    """

    factors: Factors
    objective: float
    values: list[float]
    ranks: list[int]
    converged: bool
    reason: str

    @classmethod
    def of_means(cls, cells: Cells, columns: Columns) -> Completion:
        """Return the completion by the means of the columns: that of rank 0."""
        varying = cells.take(np.flatnonzero(columns.varies[cells.cols]))
        value = 0.5 * float(np.sum(columns.standardized(varying) ** 2)) / max(1, varying.values.size)
        left, right = (np.zeros((side, 0), dtype=cells.values.dtype) for side in cells.shape)
        factors = Factors(left, np.zeros(0, dtype=cells.values.dtype), right)
        return cls(factors, value, [value], [0], True, "rank 0: nothing to fit but the means of the columns")


def rank_schedule(most: int) -> Iterator[int]:
    """Yield 1, 2, ..., 8, 10, 12, 14, 16, 20, 24, ... up to a rank: each is fitted from the last one.

    Several directions added at once often end in a poor local minimum, where one of them fits a single column.
    """
    rank = 1
    while rank <= most:
        yield rank
        rank += max(1, (1 << (rank.bit_length() - 1)) // 4)


def ranks_to(rank: int) -> list[int]:
    """Return the scheduled ranks below one, and that one."""
    return [*takewhile(lambda smaller: smaller < rank, rank_schedule(rank)), rank]


def complete(rank: int, problem: CompletionProblem, solve: Solve, seed: int) -> tuple[Completion, int]:
    """Return the completion of a rank >= 1, and the number of first directions that `fit_first` returns."""
    first, ties = fit_first(problem, solve, seed)
    results = [first]
    for smaller in ranks_to(rank)[1:]:
        results.append(solve(problem.with_budget(smaller), results[-1].w))
    factors = problem.with_budget(rank).factors(results[-1].w)
    objective, means = problem.value(factors), Completion.of_means(problem.cells, problem.columns)
    values, ranks = means.values, means.ranks
    for result, allowed in zip(results, ranks_to(rank), strict=True):
        values += result.history["value"][1:].tolist()
        ranks += [allowed] * (len(values) - len(ranks))
    last = results[-1]
    return Completion(factors, objective, [*values, objective], [*ranks, rank], last.converged, last.message), ties


def fit_first(problem: CompletionProblem, solve: Solve, seed: int) -> tuple[Result, int]:
    """Return the best fit of rank 1 from tied directions, and their number if equally good fits differ; else 1."""
    problem = problem.with_budget(1)
    fits = [solve(problem, start) for start in problem.first_points(seed)]
    best = min(fits, key=lambda fit: fit.value)
    equal = [fit for fit in fits if fit.value - best.value <= _EQUAL * best.history["value"][0]]
    apart = any(norm(fit.w - best.w) > _APART * norm(best.w) for fit in equal)
    return best, len(fits) if apart else 1
