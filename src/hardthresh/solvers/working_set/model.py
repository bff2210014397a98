"""The quadratic model of an objective around a state, over the columns that are worth looking at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Self

import numpy as np

from hardthresh.arrays import double, gather, mask_of, move, namespace, scatter, to_numpy, top_k
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.objective import Evaluation, LinearObjective
from hardthresh.core.schema import stored
from hardthresh.core.state import State
from hardthresh.core.typing import Array
from hardthresh.solvers.subspace import Refined, refine

from .search import descend, out_and_back, swings
from .tableau import Tableau

_EXCHANGES, _CLOSE = 10, 0.3
"""How many exchanges are tried on f that the model advises against, and how far: it expects to lose this share."""
_ROUNDS = 50
"""Limit of rounds of swings; 2,000 searches of correlated and nearly collinear columns took 7 at most."""


def without(these: np.ndarray, those: np.ndarray) -> np.ndarray:
    """Return the entries of one increasing array that are not in another."""
    if these.size == 0 or those.size == 0:
        return these
    places = np.minimum(np.searchsorted(those, these), those.size - 1)
    rest: np.ndarray = these[those[places] != these]
    return rest


def promising(
    gradient: Array, bend: Array, inside: np.ndarray, signs: np.ndarray | None, bar: float, most: int
) -> np.ndarray:
    """Return the columns outside a working set that alone would gain more than a bar, the best if they are too many.

    Column j gains :math:`g_j^2 / 2H_{jj}`, for the gradient g and the diagonal `bend` of the Hessian H, if its
    coefficient may have the sign that the gradient asks for.
    """
    xp = namespace(gradient)
    eligible = (bend > 0) & ~mask_of(move(inside, gradient), gradient.shape[0])
    if signs is not None:
        wanted = move(signs, gradient)
        eligible = eligible & ((wanted == 0) | ((gradient < 0) == (wanted > 0)))
    gain = 0.5 * gradient * (gradient / xp.where(eligible, bend, xp.ones_like(bend)))  # no square that overflows
    gain = xp.where(eligible & (gain > bar), gain, xp.zeros_like(gain))
    return to_numpy(top_k(gain, min(most, int(xp.count_nonzero(gain)))))


def thresholds(state: State, tol: float) -> tuple[float, float]:
    """Return `rounding_and_progress` for a run: in units of its value and of its progress so far."""
    eps = float(namespace(state.at.point).finfo(state.at.point.dtype).eps)
    return rounding_and_progress(eps, tol, max(abs(state.value), abs(state.trace.null_value - state.value)))


def rounding_and_progress(eps: float, tol: float, scale: float) -> tuple[float, float]:
    """Return what a column must gain to be more than rounding, and what an exchange must gain to count."""
    return 4 * eps * scale, max(tol, 4 * eps) * scale


def union(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the increasing union of two increasing index arrays."""
    new = without(b, a)
    return np.sort(np.concatenate([a, new])) if new.size else a


@stored("state/working_set_gram")
@dataclass(frozen=True, slots=True)
class Pool:
    """Columns by increasing index, and their block of the Hessian, which grows by need."""

    columns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    gram: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def including(self, objective: LinearObjective, at: Evaluation, wanted: np.ndarray) -> Pool:
        """Return the pool with more columns, of which only the new blocks are computed."""
        new = without(wanted, self.columns)
        if new.size == 0:
            return self
        columns = np.sort(np.concatenate([self.columns, new]))
        old_places, new_places = np.searchsorted(columns, self.columns), np.searchsorted(columns, new)
        newcomers = objective.columns(move(new, at.point))
        gram = np.empty((columns.size, columns.size))
        gram[np.ix_(old_places, old_places)] = self.gram
        gram[np.ix_(new_places, new_places)] = to_numpy(newcomers.hessian(at))
        if self.columns.size:
            known = objective.columns(move(self.columns, at.point))
            cross = to_numpy(known.cross_hessian(at, newcomers))
            gram[np.ix_(old_places, new_places)] = cross
            gram[np.ix_(new_places, old_places)] = cross.T
        return Pool(columns, gram)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The quadratic model of f around a state, over a working set.

    Attributes
    ----------
    members : array of int
        The working set, by increasing index.
    pool : Pool
        Where its Gram matrix comes from; empty for an objective that is not quadratic.
    tableau : Tableau
        The model's minimiser on the state's support; its `decrease` is from the state's point.
    least, negligible : float
        What is more than rounding; what counts as progress.
    """

    members: np.ndarray
    pool: Pool
    tableau: Tableau
    least: float
    negligible: float

    @classmethod
    def around(
        cls,
        objective: LinearObjective,
        selection: CoordinateBudget,
        state: State,
        pool: Pool,
        members: np.ndarray,
        tol: float,
    ) -> Self:
        """Return the model around a state."""
        at = state.at
        columns = move(members, at.point)
        if objective.traits.quadratic:
            gram, places = pool.gram, np.searchsorted(pool.columns, members)
        else:
            gram, places = double(objective.columns(columns).hessian(at)), np.arange(members.size)
        w = double(gather(at.point, columns))
        free = np.asarray(selection.free, dtype=np.int64)
        chosen = np.searchsorted(members, np.concatenate([free, without(to_numpy(state.support.indices), free)]))
        slope = -double(gather(at.gradient, columns))
        signs = None if selection.signs is None else selection.signs[members]
        least, negligible = thresholds(state, tol)
        return cls(
            members=members,
            pool=pool,
            tableau=Tableau(gram, slope, chosen.tolist(), w[chosen], free=free.size, columns=places, signs=signs),
            least=least,
            negligible=negligible,
        )

    def ways(self, budgets: Collection[int], furthest: int) -> Iterator[tuple[int, Tableau]]:
        """Yield budgets with what the ways out and back lead to; see `local_search.out_and_back`."""
        free = self.tableau.free
        sizes = {free + k for k in budgets}
        for size, way in out_and_back(self.tableau, sizes, free + furthest, self.least, self.negligible):
            yield size - free, way

    def best(self, budget: int, furthest: int) -> Tableau:
        """Return what the ways out and back lead to at one budget."""
        return next(self.ways({budget}, furthest))[1]

    def descend(self, tableau: Tableau, budget: int) -> Tableau:
        """Return where exchanges lead; see `local_search.descend`."""
        return descend(tableau, tableau.free + budget, self.least, self.negligible)

    def swings(self, tableau: Tableau, budget: int, shares: Sequence[float]) -> Tableau:
        """Return where swings by shares of the budget lead, made as long as one helps; see `local_search.swings`."""
        for _ in range(_ROUNDS):
            before = tableau
            for share in shares:
                reach = max(1, round(share * budget))
                for swung in swings(tableau, tableau.free + budget, reach, self.least, self.negligible):
                    if swung.decrease > tableau.decrease + self.negligible:
                        tableau = swung
            if tableau is before:
                break
        return tableau

    def close_exchanges(self, tableau: Tableau) -> Iterator[Tableau]:
        """Yield the most promising exchanges of which the model says that they gain nearly what they lose."""
        costs = tableau.costs()
        for place, j, fall in tableau.exchanges(_EXCHANGES) if tableau.size > tableau.free else []:
            if fall > -_CLOSE * costs[place]:
                exchanged = tableau.copy()
                exchanged.drop(place)
                exchanged.add(j)
                yield exchanged

    def exchanged(self, removed: int, added: int) -> Tableau | None:
        """Return the tableau after a coordinate made room for another; None if it was not chosen, being dependent."""
        place = int(np.searchsorted(self.members, removed))
        if place not in self.tableau.chosen:
            return None
        tableau = self.tableau.copy()
        tableau.drop(tableau.chosen.index(place))
        tableau.add(int(np.searchsorted(self.members, added)))
        return tableau

    def bar(self, tableau: Tableau, budget: int) -> float:
        """Return what the least useful chosen column would promise if it were outside: 0 if there is room for more."""
        full = 0 < budget <= tableau.size - tableau.free
        return tableau.least_missed() if full else 0.0

    def holds(self, tableau: Tableau) -> bool:
        """Return whether a tableau has all the columns of the state."""
        return set(tableau.chosen) >= set(self.tableau.chosen)

    def point(self, tableau: Tableau, like: Array) -> Array:
        """Return a tableau's minimiser as a full point."""
        indices = self.members[tableau.chosen]
        order = np.argsort(indices)
        coef = namespace(like).astype(move(tableau.coef[order], like), like.dtype)
        return scatter(coef, move(indices[order], like), like.shape[0])

    def refit(self, objective: LinearObjective, constraint: Constraint, state: State, tableau: Tableau) -> Refined:
        """Return where Newton steps on f lead from a tableau's minimiser, or if that is no better, from the state.

        They are given up where they are foreseen not to come below the state, which cannot be said of more columns.
        """
        enough = 1e-3 * self.negligible
        lower = state.value - self.negligible
        below = inf if self.holds(tableau) else lower
        reached = constraint.project(self.point(tableau, state.at.point))
        here = Projection(reached.support.restrict(state.at.point), reached.support)
        for start in (reached, here):
            fitted = refine(objective, constraint, start, cg_iterations=0, rounds=8, tol=enough, below=below)
            if fitted.value < lower or fitted.hopeless:
                break
        return fitted
