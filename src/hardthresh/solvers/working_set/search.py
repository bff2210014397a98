"""Local search on a tableau: by the compiled kernel, or by the functions of `local_search`, which document the moves.

Each function is one call of the kernel, whatever the number of moves and of budgets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hardthresh.core.compiled import kernel
from hardthresh.solvers import local_search
from hardthresh.solvers.local_search import ROUNDS

from .tableau import Tableau

_SIZE, _N_FREE, _DECREASE, _LOWEST_SCORE, _LOWEST_COST, _, _FACTS = range(7)
"""The places of numbers in an answer of the kernel."""
_MOST_MOVED = 64
"""Limit of the columns that an add-drop move adds and drops, so that the time grows less than with the square of k: a
fit of 160 of 10,000 columns takes 0.6 s instead of 1.8, and one of 250 takes 3.2 s instead of 11."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is to be known of a tableau once the search has ended.

    Attributes
    ----------
    chosen : array, shape (s,)
        The chosen columns.
    coef : array, shape (s,) or (s, r)
        Their coefficients.
    n_free : int
        How many of them are free.
    decrease : float
        By how much q is lower than at the start.
    lowest_chosen_score, lowest_cost : float
        As the methods of `Tableau`.
    """

    chosen: np.ndarray
    coef: np.ndarray
    n_free: int
    decrease: float
    lowest_chosen_score: float
    lowest_cost: float

    @classmethod
    def of(cls, tableau: Tableau) -> Fit:
        """Return the fit of a tableau."""
        return cls(
            np.array(tableau.chosen, dtype=np.int64), tableau.coef, tableau.n_free, tableau.decrease,
            tableau.lowest_chosen_score(), float(np.min(tableau.costs(), initial=np.inf)),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """How many columns are chosen."""
        return self.chosen.size


def grow(tableau: Tableau, size: int, rounding: float) -> None:
    """Add columns to a tableau; see `local_search.grow`."""
    compiled = kernel()
    if compiled is None:
        local_search.grow(tableau, size, rounding)
        return
    tableau.reserve(min(size, tableau.n_columns))
    tableau.take(compiled.grow(tableau.arrays, *tableau.numbers, size, rounding))


def shrink(tableau: Tableau, size: int) -> None:
    """Drop columns from a tableau; see `local_search.shrink`."""
    compiled = kernel()
    if compiled is None:
        local_search.shrink(tableau, size)
        return
    tableau.take(compiled.shrink(tableau.arrays, *tableau.numbers, size))


def descend(tableau: Tableau, size: int, rounding: float, negligible: float, add_drop: Sequence[float] = ()) -> Tableau:
    """Return a tableau after exchanges and then add-drop moves by shares of the budget; see `local_search`."""
    counts = add_drop_counts(size - tableau.n_free, add_drop)
    compiled = kernel()
    if compiled is None:
        exchanged = local_search.descend(tableau, size, rounding, negligible)
        return local_search.add_drop(exchanged, size, counts, rounding, negligible)
    after = tableau.copy()
    after.reserve(min(size, tableau.n_columns))
    moves = np.array(counts, dtype=np.int64)
    numbers = compiled.descend(after.arrays, *after.numbers, size, moves, ROUNDS, rounding, negligible)
    after.take(numbers)
    return after


def forward_backward(
    tableau: Tableau,
    sizes: Collection[int],
    rounding: float,
    negligible: float,
    counts: Mapping[int, Sequence[int]] | None = None,
    replaced: int = 0,
) -> dict[int, Fit]:
    """Return a fit of each size, by sweeps over the sizes and other moves; see `local_search.forward_backward`."""
    if not sizes:
        return {}
    compiled, increasing, counts = kernel(), sorted(sizes), counts or {}
    if compiled is None:
        found = local_search.forward_backward(tableau, increasing, rounding, negligible, counts, replaced)
        return {size: Fit.of(best) for size, best in found.items()}
    moves = np.zeros((len(increasing), max(map(len, counts.values()), default=0)), np.int64)
    for place, size in enumerate(increasing):
        few = sorted(counts.get(size, ()))
        moves[place, : len(few)] = few
    width = max(tableau.n_free, min(increasing[-1], tableau.n_columns))  # free columns do not leave
    most = max(increasing[-1], *(size + max(few, default=0) for size, few in counts.items()), 0)
    chosen = np.empty((len(increasing), width), np.int64)
    coef = np.empty((len(increasing), *tableau.slope.shape[1:], width))  # one row for each right-hand side
    facts = np.empty((len(increasing), _FACTS))
    compiled.forward_backward(
        tableau.arrays, *tableau.numbers, np.array(increasing, dtype=np.int64), most, moves, replaced,
        ROUNDS, rounding, negligible, chosen, coef, facts,
    )  # fmt: skip
    return {
        size: Fit(
            chosen[i, : int(row[_SIZE])], coef[i, ..., : int(row[_SIZE])].T, int(row[_N_FREE]), row[_DECREASE],
            row[_LOWEST_SCORE], row[_LOWEST_COST],
        )
        for i, (size, row) in enumerate(zip(increasing, facts.tolist(), strict=True))
    }  # fmt: skip


def add_drop_counts(budget: int, shares: Sequence[float]) -> list[int]:
    """Return how many columns each of the add-drop moves adds and drops, not decreasing."""
    return sorted(min(_MOST_MOVED, max(1, round(share * budget))) for share in shares)
