"""Computations that runs of the working-set solver share in an iteration: working sets and screening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import inf
from typing import cast

import numpy as np

from hardthresh.arrays import double, gather, move, namespace, scatter
from hardthresh.core.choosing import ratio_if
from hardthresh.core.constraint import Constraint, CoordinateBudget
from hardthresh.core.lazy import scalar, to_host_together
from hardthresh.core.objective import Evaluation, LinearObjective
from hardthresh.core.support import Support
from hardthresh.core.typing import Array, is_numpy
from hardthresh.objectives import LinearModel
from hardthresh.solvers.exchange import rank_exchanges

from .effort import FEW, FEW_PER_CHOICE, LEAST_CAP, Effort
from .model import Gram, LocalModel, OnHost, above, difference, scores, screen, tolerances, union
from .refit_search import MOST_ENTRIES
from .search import Fit
from .state import Improvement, RunGroup, WorkingState, first_improvement, path_cap, recheck_threshold

_RANKED, _TRIED = 4, 10
"""How many exchanges are ranked for each column that may leave, and how many of all of them are refitted if f is not
quadratic. Arbitrary: from 1 to 8 and from 3 to 30 the answers to 64 problems are the same."""
_FEW_PRODUCTS = 4e5
"""A search by refits has all columns in its working set if the entries of the data times k are no more, as for 8 of 200
columns of 250 rows. On 80 classifiers of 100 x 200 it has the lowest f of {it, abess, forward selection, pursuit with
restarts} on 78, in 0.7 times the time of abess."""
_CHEAP_REFIT = 2e5
"""Limit of n k^2 for searches by refits: a refit of 14 columns of 1,000 rows takes 0.1 ms. With 1e6, where a doubtful
answer is not searched deeply, f is higher than without refits on about half of 100 classifiers of 300 rows with k from
25 to 30; with 1e5 it is 1 % higher on 20 of 150 rows with k = 25."""
_REFITTED, _REFITTED_PER_CHOICE = 256, 4
"""About how many columns a search by refits copies; with `MOST_ENTRIES` that limits its memory."""
_FLAT = 0.5
"""The quadratic model may not end a search below the budget if the losses of more than this share of the examples have
no curvature, as beyond the delta of the Huber loss. Arbitrary."""


@dataclass(slots=True)
class Runs:
    """Some runs on one objective whose sets differ in their budgets only; see `RunGroup`.

    Attributes
    ----------
    effort, tol :
        The settings.
    objective, constraints, selection, budgets :
        f, the set of each run, what these sets have in common, and the budget of each run.
    states : sequence of WorkingState
        The state of each run.
    gram : Gram
        The Hessian of the columns of all working sets, if f is quadratic; else empty.
    better : dict of int to Improvement
        The runs for which a better point was found so far.
    """

    effort: Effort
    tol: float
    objective: LinearObjective
    constraints: Sequence[Constraint]
    selection: CoordinateBudget
    budgets: Sequence[int]
    states: Sequence[WorkingState]
    gram: Gram
    better: dict[int, Improvement] = field(default_factory=dict)

    def ends_flat(self, run: int, support: Support, prediction: Array | None, point: Array) -> bool:
        """Return whether a run has fewer columns than it may have at a point where most losses have no curvature."""
        objective = self.objective
        if not isinstance(objective, LinearModel) or objective.traits.quadratic or objective.curvature_bound == inf:
            return False
        if self.selection.selected(support) >= min(self.budgets[run], self.selection.candidates):
            return False
        u = objective.predict(point) if prediction is None else prediction
        flat = double(objective.mean_loss.inner_hessian(u).diagonal) == 0.0
        return float(np.mean(flat[double(objective.weights) > 0.0])) > _FLAT

    def state_is_flat(self, run: int) -> bool:
        """Return whether the state of a run is such a point; see `ends_flat`."""
        state = self.states[run]
        return self.ends_flat(run, state.support, state.at.prediction, state.at.point)

    def screened_groups(self) -> list[RunGroup]:
        """Return the groups of the runs that continue, with the columns that screening adds to their working sets."""
        runs_at: dict[tuple[int, bool, bool, int | None], list[int]] = {}
        for run, state in enumerate(self.states):
            by_refits = self.searches_by_refits(state, self.budgets[run])
            whole = by_refits and self.takes_all_columns(self.budgets[run], by_refits)
            if state.checkpoint is not None:
                runs_at.setdefault((id(state.at), by_refits, whole, None), []).append(run)
            elif self.needs_search(state, self.constraints[run]):
                runs_at[id(state.at), by_refits, whole, run] = [run]
        groups = []
        for (_, by_refits, whole, _), runs in runs_at.items():
            state = self.states[runs[0]]
            budgets = {run: self.budgets[run] for run in runs}
            whole = whole or self.takes_all_columns(max(budgets.values()), by_refits=False)
            traits, last = self.objective.traits, None
            if traits.reading_is_dear and traits.quadratic and state.checkpoint is not None and not whole:
                last = max(budgets.values())
            if whole:
                here, working_set = OnHost.of(state)[0], np.arange(self.objective.shape[0])
            else:
                here, working_set = self.screened(state, by_refits, last)
            groups.append(RunGroup(state, here, budgets, working_set, whole, by_refits, last=last))
        return groups

    def takes_all_columns(self, budget: int, by_refits: bool) -> bool:
        """Return whether there are so few columns that to search them all takes less time than to screen them.

        In single precision the Gram matrix is too coarse: there the forward path computes the gradient at its
        checkpoints.
        """
        columns, w = self.objective.shape[0], self.states[0].w
        if by_refits:
            return self.n_examples * columns * budget <= _FEW_PRODUCTS
        few = columns <= FEW + FEW_PER_CHOICE * budget
        return few and self.objective.traits.quadratic and namespace(w).finfo(w.dtype).bits == 64

    def searches_by_refits(self, state: WorkingState, budget: int) -> bool:
        """Return whether the search of a run is one by refits from the start, because these are cheap.

        The first step from a w0 is not, as losses may be saturated there.
        """
        if self.effort.refits is None or not self.can_refit or (state.checkpoint is None and state.negligible == inf):
            return False
        entries = self.n_examples * (_REFITTED + _REFITTED_PER_CHOICE * budget)
        return entries <= MOST_ENTRIES and self.has_cheap_refits(budget)

    def has_cheap_refits(self, budget: int) -> bool:
        """Return whether refits of as many columns as a run may have are cheap."""
        return self.n_examples * (budget + len(self.selection.free)) ** 2 <= _CHEAP_REFIT

    def needs_search(self, state: WorkingState, constraint: Constraint) -> bool:
        """Return whether a run that has reached its budget must search once more (step 4)."""
        threshold = recheck_threshold(self.objective, state, self.effort.recheck_ratio, self.tol)
        if threshold is None:
            return True
        if not is_minimal(constraint, state, tolerances(state, self.tol)[1]):  # rounding has kept it from the minimum
            return True
        if state.working_set.size == state.at.point.shape[0]:
            return False
        score = scores(state.at.gradient, state.curvature, self.selection.bounds)
        chosen, score = to_host_together(state.support.indices, score)
        return above(score, union(state.working_set, chosen), threshold, 1).size > 0

    def screened(self, state: WorkingState, by_refits: bool, last: int | None = None) -> tuple[OnHost, np.ndarray]:
        """Return a state on the host, and its working set with the columns outside whose scores are high enough.

        As many may join as at the last size of a path without a stop; see `RunGroup`.
        """
        size = last or state.support.indices.shape[0]
        most = max(LEAST_CAP, size) if state.checkpoint is None else path_cap(size)
        curvature = state.curvature * change_of_curvature(self.objective, state)
        score = scores(state.at.gradient, curvature, self.selection.bounds)
        here, (score, *diagonal) = OnHost.of(state, score, *([curvature] if by_refits else []))
        inside = union(state.working_set, here.chosen)
        reference = self.score_inside(state, here, *diagonal) if by_refits else state.reference_score
        refits = self.effort.refits if by_refits else None
        ratio = self.effort.screening_ratio if refits is None else refits.screening_ratio
        threshold = max(ratio * reference, tolerances(state, self.tol)[0])
        return here, union(inside, above(score, inside, threshold, most))

    def score_inside(self, state: WorkingState, here: OnHost, curvature: np.ndarray) -> float:
        """Return the reference score of a run by refits, at a minimiser on its support.

        It is that of the best column of the working set that is not chosen, or, once the budget is used, that which the
        least useful chosen one would have if it were not, were the columns independent.
        """
        if state.checkpoint is None:
            counted = difference(here.chosen, np.asarray(self.selection.free, dtype=np.int64))
            point, diagonal = double(here.w[counted]), double(curvature[counted])
            scores = 0.5 * point * point * diagonal
            return float(scores.min()) if counted.size else 0.0
        others = difference(state.working_set, here.chosen)
        slope, diagonal = double(here.gradient[others]), double(curvature[others])
        return float(np.max(0.5 * slope * (slope / np.where(diagonal > 0.0, diagonal, inf)), initial=0.0))

    @property
    def can_refit(self) -> bool:
        """Whether a search by refits can have this objective and these sets."""
        return isinstance(self.objective, LinearModel) and not self.objective.traits.quadratic

    @property
    def n_examples(self) -> int:
        """How many examples a linear model has."""
        return int(cast(LinearModel, self.objective).y.shape[0])

    def try_all_exchanges(self, group: RunGroup, run: int) -> Improvement | None:
        """Return what exchanges of the least useful chosen columns for any column of the data lead to (step 4)."""
        objective, constraint, state = self.objective, self.constraints[run], group.state
        removals, budget = self.effort.final_exchanges, group.budgets[run]
        if removals == 0 or not constraint.is_full(state.support):
            return None
        count = _RANKED * removals
        ranked = rank_exchanges(objective, constraint, state.at, state.support, removals=removals, count=count)
        added = np.unique([exchange.added for exchange in ranked]).astype(np.int64)
        group.working_set = union(group.working_set, added)
        self.extend_gram([group])
        model = self.model(group)
        tableaus = [model.descend(model.tableau, budget)]
        if not objective.traits.quadratic:
            tried = (model.exchanged(exchange.removed, exchange.added) for exchange in ranked[:_TRIED])
            tableaus += [tableau for tableau in tried if tableau is not None]
        return first_improvement(objective, constraint, budget, state, model, [*map(Fit.of, tableaus)])

    def model(self, group: RunGroup) -> LocalModel:
        """Return the quadratic model around the state of a group, over its working set as it is now."""
        if group.model is None or group.model.columns is not group.working_set:
            group.model = LocalModel.around(
                self.objective, self.selection, group.state, group.here, self.gram, group.working_set, self.tol
            )
        return group.model

    def screen(self, gradient: Array, curvature: Array, inside: np.ndarray, threshold: float, most: int) -> np.ndarray:
        """Return the columns outside a working set whose scores are above a threshold; see `model.screen`."""
        return screen(gradient, curvature, inside, self.selection.bounds, threshold, most)

    def screened_nearby(self, at: Evaluation, chosen: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return a working set with the columns outside that have nearly the score of the least useful chosen one.

        All scores are those of the curvature at this point: one data pass.
        """
        curvature = self.objective.hessian_diag(at)
        counted = move(difference(chosen, np.asarray(self.selection.free, dtype=np.int64)), at.point)
        point = gather(at.point, counted)
        scores = 0.5 * point * point * gather(curvature, counted)  # once dropped, were the columns independent
        lowest = float(namespace(scores).min(scores)) if counted.shape[0] else 0.0
        threshold = self.effort.screening_ratio * lowest
        return union(inside, self.screen(at.gradient, curvature, inside, threshold, LEAST_CAP))

    def extend_gram(self, groups: Sequence[RunGroup]) -> None:
        """Compute what the Gram matrix lacks of the columns of some working sets."""
        if not self.objective.traits.quadratic:
            self.gram = Gram()
        elif groups:
            columns = reduce(union, (group.working_set for group in groups))
            self.gram = self.gram.including(self.objective, groups[0].state.at, columns)


def is_minimal(constraint: Constraint, state: WorkingState, negligible: float) -> bool:
    """Return whether no coefficient of the support alone lowers f by more than a negligible amount."""
    xp = namespace(state.curvature)
    support = constraint.free_part(state.at.point, state.at.gradient, state.support).indices
    slope, curvature = gather(state.at.gradient, support), gather(state.curvature, support)
    return not bool(xp.any(0.5 * slope * slope > negligible * curvature))


def coefficients(chosen: np.ndarray, coef: np.ndarray, like: Array) -> Array:
    """Return the full point with the coefficients of some columns, by increasing index."""
    return scatter(namespace(like).astype(move(coef, like), like.dtype), move(chosen, like), like.shape[0])


def change_of_curvature(objective: LinearObjective, state: WorkingState) -> float:
    """Return how the curvature has changed since the start, on average over the support."""
    support = state.support.indices
    if objective.traits.quadratic or support.shape[0] == 0:
        return 1.0
    xp = namespace(state.curvature)
    few = objective.columns(support)
    # `hessian_diag` checks the squares, which it has done for all columns at the start: the host would wait for that
    now = few.hessian_diag(state.at) if is_numpy(support) else xp.linalg.diagonal(few.hessian(state.at))
    after, before = scalar(xp.mean(now)), scalar(xp.mean(gather(state.curvature, support)))
    ratio = ratio_if(before > 0.0, after, before, 1.0)
    return ratio
