"""The quadratic model of f around a state, over the columns of a working set, and how columns are screened for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf
from typing import Self

import numpy as np

from hardthresh.arrays import double, move, namespace, scatter, top_k
from hardthresh.core.constraint import Constraint, CoordinateBudget, Projection
from hardthresh.core.lazy import to_host_together
from hardthresh.core.objective import Evaluation, LinearObjective
from hardthresh.core.schema import renames, stored
from hardthresh.core.state import State
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel
from hardthresh.steps.line_search import Candidate

from .refits import refit_to_the_end
from .search import Fit, add_drop_counts, descend, forward_backward, grow
from .tableau import Tableau

_CLOSE_EXCHANGES, _CLOSE = 10, 0.3
"""How many exchanges are tried although the model rises, and by which share of the cost of the dropped column at most.
Of 48 logistic and Poisson fits, 3 have a higher f with a share of 0, 1 with 0.1 or 0.2, and all have the same with 0.3
to 0.8, and with 3 to 40 exchanges."""
_MOST_NEIGHBOURS = 10
"""About how many nearby budgets are searched, evenly spaced. On 45 linear models with k from 20 to 30 f is 0.02 %
higher with 3, and the same with 6, 20 and 40."""
_REFIT_ROUNDS = 8
"""Limit of Newton steps of a refit: 2 of these 48 fits have a higher f with 4, and all have the same with 6 to 25."""
REFIT_TOL = 1e-3
"""The decrease at which a refit ends, as a share of the negligible one: these 48 fits are the same with 1e-4 to 0.1."""
_COPIED, _ENTRIES = 96, 1 << 19
"""Columns of a Gram matrix that are copied at once for products with new ones, and up to how many entries that pays.
For 386 columns in six steps, of 500 examples, it takes 5.2 ms with 128 columns or more, whose memory is given back and
asked for again each time, 3.0 with 96, 3.2 with 64 and 3.5 with 32; of 2,000 examples 9.5 instead of 11.2, and of
20,000 145 instead of 116."""


def _neighbours(budget: int, ratio: float) -> set[int]:
    """Return a budget and some others, up to `ratio` times smaller or larger."""
    few, many = ceil(budget / ratio), floor(budget * ratio)
    step = max(1, (many - few) // _MOST_NEIGHBOURS)
    return {*range(budget, few - 1, -step), *range(budget, many + 1, step)}


def with_neighbours(budgets: Collection[int], ratio: float) -> set[int]:
    """Return budgets and their neighbours, of those above all budgets only the neighbours of the largest."""
    most = max(budgets)
    neighbours = {other for budget in budgets for other in _neighbours(budget, ratio) if other <= most}
    return neighbours | _neighbours(most, ratio)


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the entries of one increasing index array that are not in another."""
    if a.size == 0 or b.size == 0:
        return a
    places = np.minimum(b.searchsorted(a), b.size - 1)
    rest: np.ndarray = a[b[places] != a]
    return rest


def union(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the increasing union of two increasing index arrays: `a` itself if there is nothing new in `b`."""
    new = difference(b, a)
    return np.sort(np.concatenate([a, new])) if new.size else a


def screen(
    gradient: Array, curvature: Array, inside: np.ndarray, bounds: np.ndarray | None, threshold: float, most: int
) -> np.ndarray:
    """Return the columns outside a working set whose score is above a threshold: see `scores` and `above`."""
    (score,) = to_host_together(scores(gradient, curvature, bounds))
    return above(score, inside, threshold, most)


def scores(gradient: Array, curvature: Array, bounds: np.ndarray | None) -> Array:
    """Return the score of each column, shape (d,), where the data live.

    The score of column j is :math:`g_j^2 / 2H_{jj}`, for the gradient g and the diagonal `curvature` of the Hessian H:
    the decrease of the quadratic model when column j alone is added, up to its bound if it meets one. With several
    right-hand sides the gradient has shape (d, r), and the score is the
    sum over these.
    """
    xp = namespace(gradient)
    divisor = xp.where(curvature > 0, curvature, inf)
    score = 0.5 * gradient * (gradient / (divisor if gradient.ndim == 1 else divisor[:, None]))  # no overflow
    score = score if gradient.ndim == 1 else xp.sum(score, axis=1)
    if bounds is not None:
        lower, upper = (xp.astype(move(bound, gradient), gradient.dtype) for bound in bounds)
        step = -gradient / divisor
        inside_it = xp.minimum(xp.maximum(step, lower), upper)
        part = -inside_it * (gradient + 0.5 * xp.where(curvature > 0, curvature, 0.0) * inside_it)
        score = xp.where(inside_it == step, score, part)
    return score


def above(score: np.ndarray, inside: np.ndarray, threshold: float, most: int) -> np.ndarray:
    """Return the columns outside a working set whose score is above a threshold: the best ones, if many."""
    new = difference((score > threshold).nonzero()[0], inside)
    return new if new.size <= most else new[top_k(score[new], most)]


def tolerances(state: State, tol: float) -> tuple[float, float]:
    """Return `tolerances_at_scale` for a run: the scale is its value, or its progress so far."""
    eps = float(namespace(state.at.point).finfo(state.at.point.dtype).eps)
    return tolerances_at_scale(eps, tol, max(abs(state.value), abs(state.trace.null_value - state.value)))


def tolerances_at_scale(eps: float, tol: float, scale: float) -> tuple[float, float]:
    """Return the decreases of f that are rounding (four units of the scale) and that are negligible for an exchange."""
    return 4 * eps * scale, max(tol, 4 * eps) * scale


@dataclass(frozen=True, slots=True, eq=False)
class OnHost:
    """What the host works with of a state, brought over in one transfer.

    Attributes
    ----------
    w, gradient : ndarray, shape (d,)
        The point, and the gradient there.
    chosen : ndarray of int
        The coordinates of the support.
    """

    w: np.ndarray
    gradient: np.ndarray
    chosen: np.ndarray

    @classmethod
    def of(cls, state: State, *others: Array) -> tuple[Self, list[np.ndarray]]:
        """Return that of a state, and other arrays that come with it."""
        w, gradient, chosen, *rest = to_host_together(state.at.point, state.at.gradient, state.support.indices, *others)
        return cls(w, gradient, chosen), rest


@stored("state/working_set_gram", upgrades=[renames(gram="matrix")])
@dataclass(frozen=True, slots=True)
class Gram:
    """The Hessian of a quadratic for some columns, in the order in which they came; empty for other objectives."""

    columns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    matrix: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def including(self, objective: LinearObjective, at: Evaluation, wanted: np.ndarray) -> Gram:
        """Return the Hessian for more columns, increasing ones, of which only the new blocks are computed."""
        new = difference(wanted, np.sort(self.columns))
        if new.size == 0:
            return self
        known = self.columns.size
        added = objective.columns(move(new, at.point))
        if not known:
            return Gram(new, double(added.hessian(at)))
        order, width = np.argsort(self.columns), known
        # other objectives may multiply the Hessian with each new column for each part of those before
        if isinstance(objective, LinearModel) and objective.y.shape[0] * _COPIED <= _ENTRIES:
            width = _COPIED
        parts = [order[first : first + width] for first in range(0, known, width)]
        before = (objective.columns(move(self.columns[some], at.point)) for some in parts)
        block, *crossed = to_host_together(added.hessian(at), *(few.cross_hessian(at, added) for few in before))
        matrix = np.empty((known + new.size, known + new.size))
        matrix[:known, :known], matrix[known:, known:] = self.matrix, block
        for some, part in zip(parts, crossed, strict=True):
            matrix[some, known:], matrix[known:, some] = part, part.T
        return Gram(np.concatenate([self.columns, new]), matrix)

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """Return the row of the matrix for each of some of its columns."""
        order = np.argsort(self.columns)
        rows: np.ndarray = order[self.columns.searchsorted(wanted, sorter=order)]
        return rows


@dataclass(frozen=True, slots=True)
class Moves:
    """What a search does besides additions, removals and exchanges.

    Attributes
    ----------
    nearby : float
        Up to which ratio of k the fits with fewer and with more columns are searched together with that with k. At a
        recheck it is the square root of the effort's: with 1.2 instead of 1.6 f is as low on 110 models, and they
        take 6 to 9 % less time.
    add_drop : tuple of float
        How many columns the add-drop moves add and drop, as shares of k.
    replaced : int
        How many columns are left out, each in turn, if add-drop moves are made.
    """

    nearby: float = 1.0
    add_drop: tuple[float, ...] = ()
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The quadratic model of f around a state, over a working set.

    Attributes
    ----------
    columns : array of int
        The working set, by increasing index.
    gram : Gram
        Where its Hessian comes from if f is quadratic; else empty.
    tableau : Tableau
        The model's minimiser on the state's support; its `decrease` is from the state's point.
    rounding, negligible : float
        The decreases that are no more than rounding, and that do not count as progress; see `tolerances`.
    """

    columns: np.ndarray
    gram: Gram
    tableau: Tableau
    rounding: float
    negligible: float

    @classmethod
    def around(
        cls,
        objective: LinearObjective,
        selection: CoordinateBudget,
        state: State,
        here: OnHost,
        gram: Gram,
        columns: np.ndarray,
        tol: float,
    ) -> Self:
        """Return the model around a state; `gram` has all its columns if the objective is quadratic."""
        if objective.traits.quadratic:
            matrix, rows = gram.matrix, gram.rows(columns)
        else:
            indices = move(columns, state.at.point)
            matrix, rows = double(objective.columns(indices).hessian(state.at)), np.arange(columns.size)
        w, slope = double(here.w[columns]), -double(here.gradient[columns])
        free = np.asarray(selection.free, dtype=np.int64)
        chosen = columns.searchsorted(np.concatenate([free, difference(here.chosen, free)]))
        bounds = None if selection.bounds is None else selection.bounds[:, columns]
        tableau = Tableau(matrix, slope, chosen.tolist(), w[chosen], n_free=free.size, gram_rows=rows, bounds=bounds)
        return cls(columns, gram, tableau, *tolerances(state, tol))

    def grown(self, budget: int) -> Tableau:
        """Return the tableau of the state with the best columns added until the budget is used; see `search`."""
        tableau = self.tableau.copy()
        grow(tableau, tableau.n_free + budget, self.rounding)
        return tableau

    def forward_backward(self, budgets: Collection[int], moves: Moves | None = None) -> dict[int, Fit]:
        """Return a fit for each budget; see `search`.

        Nearby budgets are searched as well, but none above all of several. Add-drop moves and replacements are made at
        the budgets that are wanted.
        """
        moves, free = moves or Moves(), self.tableau.n_free
        sizes = {free + k for k in with_neighbours(budgets, moves.nearby)}
        counts = {free + k: add_drop_counts(k, moves.add_drop) for k in budgets}
        found = forward_backward(self.tableau, sizes, self.rounding, self.negligible, counts, replaced=moves.replaced)
        return {k: found[free + k] for k in budgets}

    def best(self, budget: int, moves: Moves | None = None) -> Fit:
        """Return the fit for one budget."""
        return self.forward_backward({budget}, moves)[budget]

    def descend(self, tableau: Tableau, budget: int, add_drop: Sequence[float] = ()) -> Tableau:
        """Return the tableau after exchanges and add-drop moves; see `search`."""
        return descend(tableau, tableau.n_free + budget, self.rounding, self.negligible, add_drop)

    def partial_points(self, fit: Fit, parts: int, like: Array) -> list[Array]:
        """Return the minimisers without each of some parts of the chosen columns, of which no two are neighbours."""
        free, rest = fit.chosen[is_free := self.tableau.are_free(fit.chosen)], np.sort(fit.chosen[~is_free])
        part = np.arange(rest.size) % parts
        kept = (np.concatenate([free, rest[part != left_out]]) for left_out in range(min(parts, rest.size)))
        return [self._full(*self.tableau.minimiser(chosen), like) for chosen in kept]

    def close_exchanges(self, tableau: Tableau) -> Iterator[Tableau]:
        """Yield the best exchanges of which the model says that they gain nearly as much as they lose."""
        costs = tableau.costs()
        for slot, j, fall in tableau.exchanges(_CLOSE_EXCHANGES) if tableau.size > tableau.n_free else []:
            if fall > -_CLOSE * costs[slot]:
                exchanged = tableau.copy()
                exchanged.drop(slot)
                exchanged.add(j)
                yield exchanged

    def exchanged(self, removed: int, added: int) -> Tableau | None:
        """Return the tableau after one column has replaced another; None if that was not chosen, being dependent."""
        i, j = (int(np.searchsorted(self.columns, column)) for column in (removed, added))
        if i not in self.tableau.chosen:
            return None
        tableau = self.tableau.copy()
        tableau.drop(tableau.chosen.index(i))
        tableau.add(j)
        return tableau

    def lowest_chosen_score(self, fit: Fit, budget: int) -> float:
        """Return the score that the least useful chosen column would have outside: 0 while the budget is not used."""
        return fit.lowest_chosen_score if 0 < budget <= fit.size - fit.n_free else 0.0

    def point(self, fit: Fit, like: Array) -> Array:
        """Return a fit as a full point."""
        return self._full(fit.chosen, fit.coef, like)

    def _full(self, chosen: np.ndarray | list[int], coef: np.ndarray, like: Array) -> Array:
        """Return the full point with the coefficients of some columns of the working set."""
        indices = self.columns[chosen]
        order = np.argsort(indices)
        return scatter(
            namespace(like).astype(move(coef[order], like), like.dtype), move(indices[order], like), like.shape[0]
        )

    def refit(self, objective: LinearObjective, constraint: Constraint, state: State, fit: Fit) -> Candidate:
        """Return the point after Newton steps on f from a fit; if f is not lower there, from the state.

        The steps stop early once they cannot beat the state, and then there is no second start. This test is left out
        if the support contains the state's, because then a lower f exists. If neither start has led to a lower f, the
        last point is returned.
        """
        lower = state.value - self.negligible
        below = inf if set(fit.chosen.tolist()) >= set(self.tableau.chosen) else lower
        at_model_minimum = constraint.project(self.point(fit, state.at.point))
        support = at_model_minimum.support
        at_state = Projection(support.restrict(state.at.point), support)
        for start in (at_model_minimum, at_state):
            fitted = refit_to_the_end(
                objective, constraint, start, rounds=_REFIT_ROUNDS, tol=REFIT_TOL * self.negligible, below=below
            )
            if fitted.value < lower or fitted.abandoned:
                break
        return fitted
