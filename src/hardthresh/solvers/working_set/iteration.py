"""One iteration of the working-set solver, step by step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import ceil, inf, sqrt
from typing import cast

import numpy as np

from hardthresh.arrays import double, gather, move, namespace, scatter, to_numpy
from hardthresh.core.constraint import Constraint, CoordinateBudget
from hardthresh.core.objective import Evaluation, LinearObjective
from hardthresh.core.support import Support
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel
from hardthresh.solvers.exchange import rank_exchanges
from hardthresh.solvers.steepest import verdict
from hardthresh.solvers.subspace import FULL_SOLVE

from .model import REFIT_TOL, Gram, LocalModel, Moves, difference, screen, tolerances, union
from .refits import MOST_ENTRIES, Refit, RefitSearch, Refitting, refit_to_the_end
from .search import Fit
from .state import (
    CONVERGED,
    PATH_ENDED,
    STRIDE,
    Improvement,
    RunGroup,
    WorkingState,
    first_improvement,
    path_cap,
    recheck_threshold,
    refined_on_support,
    refit_without_curvature,
    with_fewer_columns,
)

_RANKED, _TRIED = 4, 10
"""How many exchanges are ranked for each column that may leave, and how many of all of them are refitted if f is not
quadratic. Arbitrary: from 1 to 8 and from 3 to 30 the answers to 64 problems are the same."""
LEAST_CAP = 32
"""The cap on new columns, in a prefetch and after the forward path, is never below this. On 160 linear models f is at
most 0.5 % higher with 8 or 16, and lower by 0.5 % with 64 and 0.9 % with 128, at the price of a larger Gram matrix."""
PREFETCH_CAP = STRIDE - 1
"""The cap on new columns of a prefetch, as a multiple of its budget: as many as the forward path adds for each of its
columns on the way to the next checkpoint."""
FEW, FEW_PER_CHOICE = 250, 10
"""A quadratic of up to 250 + 10k columns has all of them in its working set. Of 51 shapes from 50 x 700 to 20,000 x 200
with k from 2 to 40, those of more columns take 0.9 to 6 times as long with all of them as with screening, and those of
fewer 0.4 to 1.5 times; f is the same on average."""
_FEW_PRODUCTS, _DEEP_COLUMNS = 4e5, 750
"""A search by refits has all columns in its working set if the entries of the data times k are no more than the first,
as for 8 of 200 columns of 250 rows, and a deep one if the columns are no more than the second. On 80 classifiers of
100 x 200 the first search has the lowest f of {it, abess, forward selection, pursuit with restarts} on 78, in 0.7 times
the time of abess. On 40 of 300 x 600 f is lowest on 38 with all columns in deep searches, and on 36 with screening."""
_CHEAP_REFIT = 2e5
"""Limit of n k^2 for searches by refits: a refit of 14 columns of 1,000 rows takes 0.1 ms. With 1e6, where a doubtful
answer is not searched deeply, f is higher than without refits on about half of 100 classifiers of 300 rows with k from
25 to 30; with 1e5 it is 1 % higher on 20 of 150 rows with k = 25."""
_REFITTED, _REFITTED_PER_CHOICE = 256, 4
"""About how many columns a search by refits copies; with `MOST_ENTRIES` that limits its memory."""
_WIDE, _LEAST_WIDE = 4, 1000
"""No column joins at the fits without a part if the working set has more than 4k + 1,000. Without this limit a Gram
matrix for 160 of 10,000 columns has 3,522 columns in the place of 2,562. On 240 linear models f is the same without it,
and higher on 9 of them with 6k + 300, by up to 12 %."""
_SEPARATED = 1e-5
"""There is no search by refits if f is nearer to its lower bound than this share of the distance of the null model: the
chosen columns separate two classes, and each refit would take many steps towards infinity. Arbitrary."""
_FLAT = 0.5
"""The quadratic model may not end a search below the budget if the losses of more than this share of the examples have
no curvature, as beyond the delta of the Huber loss. Arbitrary."""
PARTIAL_CAP = 0.5
"""The cap on new columns at a fit without a part, as a multiple of the size of the whole fit. With 1, f is the same on
240 linear models, and a fit of 50 of 5,000 columns takes a quarter longer."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search.

    Attributes
    ----------
    screening_ratio : float
        A column joins the working set if its score is more than this share of the reference score.
    moves : Moves
        The moves of the search; for another objective only how many columns the add-drop moves add and drop.
    prefetch : tuple of float
        The budgets at which the columns are screened before runs reach their own, as shares of the next checkpoint of
        the forward path; for a quadratic only.
    parts : int
        In how many parts the chosen columns are divided to screen the others at the fits without each part, where the
        columns that could replace it have high scores; for a quadratic only, none if 0.
    final_exchanges : int
        For how many chosen columns the exchange with every column of the data is considered in the end.
    recheck_ratio : float
        A run on a quadratic that has reached its budget goes on if the score of a column outside its working set is
        more than this share of the reference score: always if 0. Other runs always go on.
    refits : Refitting or None
        How to search by refits if f is not quadratic; None: not at all.
    """

    screening_ratio: float
    moves: Moves
    prefetch: tuple[float, ...] = ()
    parts: int = 0
    final_exchanges: int = 0
    recheck_ratio: float = 0.0
    refits: Refitting | None = None


# Chosen on 240 linear models of eight sizes, 60 x 120 to 500 x 1,000 and 150 x 3,000, with correlated columns. By how
# much f exceeds the lowest value of these ten settings, on average; the share of models with the lowest value; and the
# CPU time relative to "fast":
#
#   "fast"                              1.73 %  56 %  1.0
#   "balanced"                          0.20 %  85 %  1.9
#   "balanced", no partial fits         1.12 %  70 %  1.3
#   "balanced", no replacements         0.26 %  80 %  1.8
#   "balanced", no nearby numbers       0.28 %  82 %  1.8
#   "balanced", add_drop=(0.05,)        0.46 %  77 %  1.6
#   "balanced", recheck ratio 0.8       0.25 %  82 %  1.7
#   "balanced", recheck ratio 0         0.19 %  87 %  2.3
#   "balanced", prefetch=(1.0, 0.64)    0.32 %  85 %  1.9
#   "thorough"                          0.09 %  92 %  6.2
#
# Ratio of refits: of 200 classifiers f was not above abess, forward selection and pursuit on 189 with 2, 192 with 1.5
# and 196 with 1, and without refits on 169, where that alone called for a deep search. With 0 every search is a deep
# one, which takes 1.0 times as long as with 2 on 12 classifiers of 200 to 500 rows, and 1.8, 3.1 and 3.4 times for
# ordered classes, counts and censored times. With 2, Cox's model of 3 of 1,554 genes of 272
# patients is 0.5 % above that of abess and that of 5 is 4 % above that with 0, which is not above abess on either.
EFFORTS = {
    "fast": Effort(screening_ratio=0.35, moves=Moves(nearby=1.4), prefetch=(1.0, 0.64), recheck_ratio=0.8),
    "balanced": Effort(
        screening_ratio=0.2,
        moves=Moves(nearby=1.6, add_drop=(0.1, 0.25, 0.5, 1.0, 2.0), replaced=16),
        prefetch=(1.0,),
        parts=4,
        recheck_ratio=0.4,
        refits=Refitting(ratio=0.0, nearby=1.6, add_drop=(0.5, 1.0), only_cheap=True),
    ),
    "thorough": Effort(
        screening_ratio=0.1,
        prefetch=(1.0, 0.64, 1.0),
        parts=8,
        moves=Moves(nearby=2.0, add_drop=(0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0), replaced=64),
        final_exchanges=16,
        recheck_ratio=0.0,
        refits=Refitting(ratio=0.0, nearby=2.0, add_drop=(0.25, 0.5, 1.0, 2.0)),
    ),
}


@dataclass(frozen=True, slots=True)
class FitToScreen:
    """A fit on the working set of a group at which the other columns are to be screened.

    Attributes
    ----------
    group : RunGroup
        The group.
    point : array, shape (d,)
        The fit as a point.
    threshold : float
        The score above which a column joins the working set.
    most : int
        How many columns may join.
    """

    group: RunGroup
    point: Array
    threshold: float
    most: int


@dataclass(slots=True)
class Iteration:
    """One iteration of some runs on one objective whose sets differ in their budgets only; see `RunGroup`.

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

    def next_states(self) -> list[WorkingState]:
        """Return the next state of each run, by the steps of `WorkingSet`.

        Step 1 moves the runs of a group whose budgets are larger than the next checkpoint. If f is quadratic, its other
        runs wait, with the state that they have, until no run goes on along the forward path; then steps 2 and 3 finish
        all of them, each from its own state, with the columns of all. Else they are finished at once, because each
        state has its own Hessian.
        """
        groups = self.screened_groups()  # steps 1 and 4
        self.extend_gram(groups)
        on_path = [group for group in groups if not group.by_refits and group.next_checkpoint is not None]
        past_it = [group for group in groups if not group.by_refits and group.next_checkpoint is None]
        for group in groups:
            if group.by_refits:
                self.advance_by_refits(group)
        for group in on_path:
            self.follow_forward_path(group)  # step 1
        waiting: set[int] = set()
        if self.objective.traits.quadratic and any(group.continuing for group in on_path):
            waiting.update(run for group in on_path for runs in group.finishing.values() for run in runs)
            on_path = []
        self.share_working_set(on_path)
        self.prefetch([*on_path, *past_it])  # step 2
        self.share_working_set(on_path)
        for group in on_path:
            self.reach_budgets(group)  # step 3
        for group in past_it:
            self.improve(group)  # step 4
        for run in range(len(self.states)):
            if run not in self.better and run not in waiting and self.state_is_flat(run):
                better = self.improve_by_bound(run)
                if better is not None:
                    self.better[run] = better
        return self.evaluate_and_finish(waiting)

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

    def improve_by_bound(self, run: int) -> Improvement | None:
        """Return a lower point by the quadratic model with the bound of the second derivatives of all losses.

        f is nowhere above that model, so that each column with a gradient lowers both.
        """
        objective, state = cast(LinearModel, self.objective).bounding_quadratic(), self.states[run]
        inside = union(state.working_set, to_numpy(state.support.indices))
        curvature, most = objective.hessian_diag(state.at), max(LEAST_CAP, 2 * self.budgets[run])
        columns = union(inside, self.screen(state.at.gradient, curvature, inside, 0.0, most))
        gram = Gram().including(objective, state.at, columns)
        model = LocalModel.around(objective, self.selection, state, gram, columns, self.tol)
        grown = model.grown(self.budgets[run])
        fits = [Fit.of(model.descend(grown, self.budgets[run])), Fit.of(grown)]
        better = first_improvement(self.objective, self.constraints[run], self.budgets[run], state, model, fits)
        return None if better is None else replace(better, gram=self.gram, reference_score=0.0)

    def screened_groups(self) -> list[RunGroup]:
        """Return the groups of the runs that go on, with the columns that screening adds to their working sets."""
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
            working_set = np.arange(self.objective.shape[0]) if whole else self.screened(state, by_refits)
            groups.append(RunGroup(state, budgets, working_set, whole, by_refits))
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
        inside = union(state.working_set, to_numpy(state.support.indices))
        if inside.size == state.at.point.shape[0]:
            return False
        return self.screen(state.at.gradient, state.curvature, inside, threshold, 1).size > 0

    def screened(self, state: WorkingState, by_refits: bool) -> np.ndarray:
        """Return the working set of a state with the columns outside whose scores are high enough."""
        inside = union(state.working_set, to_numpy(state.support.indices))
        size = state.support.indices.shape[0]
        most = max(LEAST_CAP, size) if state.checkpoint is None else path_cap(size)
        curvature = state.curvature * _change_of_curvature(self.objective, state)
        reference = self.score_inside(state, curvature) if by_refits else state.reference_score
        refits = self.effort.refits if by_refits else None
        ratio = self.effort.screening_ratio if refits is None else refits.screening_ratio
        threshold = max(ratio * reference, tolerances(state, self.tol)[0])
        return union(inside, self.screen(state.at.gradient, curvature, inside, threshold, most))

    def score_inside(self, state: WorkingState, curvature: Array) -> float:
        """Return the reference score of a run by refits, at a minimiser on its support.

        It is that of the best column of the working set that is not chosen, or, once the budget is used, that which the
        least useful chosen one would have if it were not, were the columns independent.
        """
        chosen = to_numpy(state.support.indices)
        if state.checkpoint is None:
            counted = difference(chosen, np.asarray(self.selection.free, dtype=np.int64))
            indices = move(counted, state.w)
            point = double(gather(state.w, indices))
            scores = 0.5 * point * point * double(gather(curvature, indices))
            return float(scores.min()) if counted.size else 0.0
        indices = move(difference(state.working_set, chosen), state.w)
        slope, diagonal = double(gather(state.at.gradient, indices)), double(gather(curvature, indices))
        return float(np.max(0.5 * slope * (slope / np.where(diagonal > 0.0, diagonal, inf)), initial=0.0))

    def follow_forward_path(self, group: RunGroup) -> None:
        """Move the runs whose budgets are larger than the next checkpoint to this checkpoint (step 1)."""
        runs, checkpoint = group.continuing, group.next_checkpoint
        if not runs or checkpoint is None:
            return
        model = self.model(group)
        path = model.grown(checkpoint)
        widest = max(runs, key=lambda run: self.budgets[run])
        fits = [Fit.of(path)]
        better = first_improvement(self.objective, self.constraints[widest], checkpoint, group.state, model, fits)
        if better is not None:
            better = replace(better, checkpoint=checkpoint, reference_score=path.highest_score())
            self.better |= dict.fromkeys(runs, better)

    def prefetch(self, groups: Sequence[RunGroup]) -> None:
        """Screen the columns at fits whose budgets are shares of the next checkpoint, and at partial fits (step 2).

        The gradients for one share, also those of groups at other checkpoints, are one product with the data.
        """
        if not self.objective.traits.quadratic:
            return
        groups = [group for group in groups if not group.whole]
        for share in self.effort.prefetch:
            # Only "thorough" repeats a share. That is of use if columns were added since; else `union` has returned the
            # same array.
            stale = [
                group for group in groups if group.finishing and group.prefetched.get(share) is not group.working_set
            ]
            fits = []
            for group in stale:
                group.prefetched[share] = group.working_set
                budget = ceil(share * cast(int, group.next_checkpoint))
                fit, threshold = self.fit_and_threshold(group, budget)
                most = max(LEAST_CAP, ceil(PREFETCH_CAP * budget))
                fits.append(FitToScreen(group, self.model(group).point(fit, self.states[0].w), threshold, most))
            self.screen_at(fits)
        fits = []
        for group in groups:
            narrow = group.working_set.size < _WIDE * max(group.budgets.values()) + _LEAST_WIDE
            if self.effort.parts and narrow and (group.finishing or group.next_checkpoint is None):
                budget = group.next_checkpoint or max(group.budgets.values())
                whole, threshold = self.fit_and_threshold(group, budget)
                most = max(LEAST_CAP, ceil(PARTIAL_CAP * whole.size))
                points = self.model(group).partial_points(whole, self.effort.parts, self.states[0].w)
                fits += [FitToScreen(group, point, threshold, most) for point in points]
        self.screen_at(fits)

    def share_working_set(self, groups: Sequence[RunGroup]) -> None:
        """Give each of some groups the columns of all of them, whose Gram matrix is known; for a quadratic only."""
        if groups and self.objective.traits.quadratic and not any(group.whole for group in groups):
            columns = reduce(union, (group.working_set for group in groups))
            for group in groups:
                group.working_set = columns

    def fit_and_threshold(self, group: RunGroup, budget: int) -> tuple[Fit, float]:
        """Return the forward path at a budget, improved by exchanges, and the score that counts as high there."""
        model = self.model(group)
        fit = model.best(budget)
        return fit, max(self.effort.screening_ratio * model.lowest_chosen_score(fit, budget), model.rounding)

    def screen_at(self, fits: Sequence[FitToScreen]) -> None:
        """Add columns to the working sets by the gradients at some fits, which are one product with the data."""
        if not fits:
            return
        gradients = self.objective.screening_gradients([one.point for one in fits])
        for one, gradient in zip(fits, gradients, strict=True):
            group = one.group
            new = self.screen(gradient, group.state.curvature, group.working_set, one.threshold, one.most)
            group.working_set = union(group.working_set, new)
        self.extend_gram([one.group for one in fits])

    def reach_budgets(self, group: RunGroup) -> None:
        """Find the points of the runs that reach their budgets, by sweeps and the other moves (step 3)."""
        runs_at = group.finishing
        if not runs_at:
            return
        quadratic, model = self.objective.traits.quadratic, self.model(group)
        moves = self.effort.moves if quadratic else Moves(nearby=self.effort.moves.nearby)
        together = [[*runs_at]] if quadratic else [[budget] for budget in runs_at]  # the model is of one point
        found = {k: fit for budgets in together for k, fit in model.forward_backward(budgets, moves).items()}
        for budget, best in found.items():
            fits = [best]
            if not quadratic:  # f may rise where the model falls; it does not rise when columns are only added
                fits.append(Fit.of(model.grown(budget)))
            runs = runs_at[budget]
            constraint = self.constraints[runs[0]]
            better = first_improvement(self.objective, constraint, budget, group.state, model, fits)
            if better is not None:
                self.better |= dict.fromkeys(runs, better)  # these runs leave the forward path
        group.model = None  # it takes much memory

    def improve(self, group: RunGroup) -> None:
        """Improve the point of a run that has reached its budget, by the moves of step 3 (step 4)."""
        ((run, budget),) = group.budgets.items()
        objective, constraint, state = self.objective, self.constraints[run], group.state
        model, quadratic = self.model(group), objective.traits.quadratic
        if quadratic:
            moves = replace(self.effort.moves, nearby=sqrt(self.effort.moves.nearby))  # see `Moves.nearby`
            fits = [model.best(budget, moves)]
        else:  # f may fall where the model rises a little
            grown = model.grown(budget)
            tableaus = [
                model.descend(grown, budget, self.effort.moves.add_drop),
                model.descend(grown, budget),
                grown,
                model.tableau,
                *model.close_exchanges(grown),
            ]
            fits = [*map(Fit.of, tableaus)]
        better = first_improvement(objective, constraint, budget, state, model, fits)
        better = better or refit_without_curvature(objective, constraint, state, model)
        better = better or self.search_by_refits(group, run)
        better = better or self.try_all_exchanges(group, run)
        if better is not None:
            self.better[run] = better
        group.model = None  # it takes much memory

    def advance_by_refits(self, group: RunGroup) -> None:
        """Move runs by refits: along the forward path, to their budgets, or on from there (all steps)."""
        state, columns = group.state, group.working_set
        is_searched = state.reference_score == inf and tolerances(state, self.tol)[1] >= 0.5 * state.negligible
        if is_searched and columns.size == state.working_set.size:
            for run in group.budgets:
                better = self.try_all_exchanges(group, run) or self.refined(group, run)
                if better is not None:
                    self.better[run] = better
            return
        search = self.refit_search(columns)
        chosen, coef = to_numpy(state.support.indices), double(gather(state.w, state.support.indices))
        start = search.started(np.searchsorted(columns, chosen), coef)
        runs = group.continuing
        if runs:
            checkpoint = cast(int, group.next_checkpoint)
            path, _ = search.reached(start, checkpoint, ratio=inf)
            better = self.refitted(path, columns, runs[0], checkpoint)
            if better is not None:
                self.better |= dict.fromkeys(runs, better)
        for run in group.budgets:
            if run in runs:
                continue
            better = self.found_by_refits(search, start, group, run) or self.refined(group, run)
            if better is not None:
                self.better[run] = better

    def found_by_refits(self, search: RefitSearch, start: Refit, group: RunGroup, run: int) -> Improvement | None:
        """Return what a search by refits leads to, a deep one if all columns are searched or the answer is doubtful."""
        refits, budget, state = cast(Refitting, self.effort.refits), self.budgets[run], group.state
        columns = group.working_set
        if budget == 0:
            return None
        if group.whole:
            return self.refitted(search.lowest(start, budget, refits.nearby, refits.add_drop), columns, run)
        fit, doubtful = search.reached(start, budget, refits.ratio)
        lower = fit.value < state.value - tolerances(state, self.tol)[1]
        if doubtful and (lower or state.checkpoint is not None):
            chosen, columns = columns[list(fit.chosen)], self.columns_of_deep_search(search, fit, group)
            search = self.refit_search(columns)
            start = search.started(np.searchsorted(columns, chosen), fit.coef)
            fit = search.lowest(start, budget, refits.nearby, refits.add_drop)
        return self.refitted(fit, columns, run)

    def refit_search(self, columns: np.ndarray) -> RefitSearch:
        """Return the search by refits on some columns."""
        state = self.states[0]
        few = cast(LinearModel, self.objective.columns(move(columns, state.w)))
        fixed = np.searchsorted(columns, np.asarray(self.selection.free, dtype=np.int64))
        bounds = None if self.selection.bounds is None else self.selection.bounds[:, columns]
        return RefitSearch(few, fixed, tolerances(state, self.tol)[1], self.separated_value(state), bounds)

    def refitted(self, fit: Refit, columns: np.ndarray, run: int, checkpoint: int | None = None) -> Improvement | None:
        """Return a refit on some columns as an improvement; None if it is not lower than the state of the run."""
        objective, constraint, state = self.objective, self.constraints[run], self.states[run]
        negligible = tolerances(state, self.tol)[1]
        if not fit.value < state.value - negligible:
            return None
        start = constraint.project(coefficients(columns[list(fit.chosen)], fit.coef, state.w))
        if checkpoint is not None:  # the path goes on from there: nearly the minimum will do
            return Improvement(start, None, self.gram, columns, 0.0, negligible, checkpoint)
        found = refit_to_the_end(objective, constraint, start, rounds=FULL_SOLVE, tol=REFIT_TOL * negligible)
        is_last = state.checkpoint is not None and columns.size == objective.shape[0] and found.minimal
        is_last = is_last and self.effort.final_exchanges == 0
        there = found.projection
        is_last = is_last and not self.ends_flat(run, there.support, found.prediction, there.point)
        return Improvement(there, found.prediction, self.gram, columns, inf, negligible, is_last=is_last)

    def refined(self, group: RunGroup, run: int) -> Improvement | None:
        """Return a lower point on the support, where losses were so saturated that refits did not find the minimum."""
        state, constraint = group.state, self.constraints[run]
        negligible = tolerances(state, self.tol)[1]
        if (
            is_minimal(constraint, state, negligible)
            or self.objective.recession(state.at, state.support.indices) is not None
        ):
            return None
        return refined_on_support(self.objective, constraint, state, self.gram, group.working_set, negligible)

    def columns_of_deep_search(self, search: RefitSearch, fit: Refit, group: RunGroup) -> np.ndarray:
        """Return all columns, if they are few, or also those with high scores at fits without a part: see step 2."""
        state, columns, parts = group.state, group.working_set, self.effort.parts
        if self.objective.shape[0] <= _DEEP_COLUMNS:
            return np.arange(self.objective.shape[0])
        counted = np.flatnonzero(~search.stay(fit))
        points = []
        for part in range(min(parts, counted.size)):
            rest = search.fit(np.delete(fit.chosen, counted[part::parts]).tolist(), fit)
            points.append(coefficients(columns[list(rest.chosen)], rest.coef, state.w))
        curvature = state.curvature * _change_of_curvature(self.objective, state)
        diagonal = double(gather(curvature, move(columns[list(fit.chosen)], state.w)))
        scores = 0.5 * fit.coef * fit.coef * diagonal
        threshold = cast(Refitting, self.effort.refits).screening_ratio * float(scores[counted].min(initial=inf))
        most = max(LEAST_CAP, ceil(PARTIAL_CAP * len(fit.chosen)))
        for at in self.objective.evaluate_many(points):
            columns = union(columns, self.screen(at.gradient, curvature, columns, threshold, most))
        return columns

    def search_by_refits(self, group: RunGroup, run: int) -> Improvement | None:
        """Return what refits of many supports lead to if the quadratic model misleads at the point of a run (step 4).

        It misleads if f rises far more than the model says when half of the columns are dropped. Columns are then
        screened at both points, by the curvature there. The run ends at the point that is found in the end if no column
        is new there. There is no such search for a quadratic, near the lower bound of f, for columns of too many
        entries, and where refits take so long that no other search is a deep one.
        """
        objective, state, refits = self.objective, group.state, self.effort.refits
        if refits is None or not self.can_refit or self.selection.selected(state.support) == 0:
            return None
        if refits.only_cheap and not self.has_cheap_refits(self.budgets[run]):
            return None
        entries = self.n_examples * (group.working_set.size + 2 * LEAST_CAP)
        if entries > MOST_ENTRIES or state.value <= self.separated_value(state):
            return None
        chosen = to_numpy(state.support.indices)
        search = self.refit_search(chosen)
        here = search.fit(range(chosen.size))
        rest, modelled = search.without_half(here)
        if not rest.value - here.value > refits.ratio * modelled:
            return None
        columns = self.screened_nearby(state.at, chosen, group.working_set)
        there = objective.evaluate(coefficients(chosen[list(rest.chosen)], rest.coef, state.w))
        columns = self.screened_nearby(there, chosen[list(rest.chosen)], columns)
        search = self.refit_search(columns)
        start = search.started(np.searchsorted(columns, chosen), here.coef)
        found = self.refitted(search.lowest(start, self.budgets[run], refits.nearby, refits.add_drop), columns, run)
        if found is None:
            return None
        at = objective.evaluate(found.projection.point, found.prediction)
        working_set = self.screened_nearby(at, to_numpy(found.projection.support.indices), columns)
        is_last = working_set is columns and self.effort.final_exchanges == 0
        is_last = is_last and not self.ends_flat(run, found.projection.support, at.prediction, at.point)
        return replace(found, working_set=working_set, reference_score=0.0, is_last=is_last, at=at)

    @property
    def can_refit(self) -> bool:
        """Whether a search by refits can have this objective and these sets."""
        return isinstance(self.objective, LinearModel) and not self.objective.traits.quadratic

    @property
    def n_examples(self) -> int:
        """How many examples a linear model has."""
        return int(cast(LinearModel, self.objective).y.shape[0])

    def separated_value(self, state: WorkingState) -> float:
        """Return the value of f up to which the chosen columns count as separating the classes."""
        bound = self.objective.lower_bound
        return bound + _SEPARATED * abs(state.trace.null_value - bound)

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

    def evaluate_and_finish(self, waiting: Collection[int]) -> list[WorkingState]:
        """Return the next states: at the better points, evaluated, or with fewer columns; other runs wait or end."""
        evaluations = self.evaluations()
        reached: dict[int, tuple[Improvement, Evaluation]] = {}  # by identity: runs may share a point
        for run, better in self.better.items():
            if id(better) not in reached:
                reached[id(better)] = with_fewer_columns(
                    self.objective, self.constraints[run], self.states[run], better, evaluations[id(better)]
                )
        after = []
        for run, state in enumerate(self.states):
            found = reached[id(self.better[run])] if run in self.better else None
            if run in waiting:
                after.append(state)
            elif found is None or not found[1].value < state.value:  # by rounding, only the model is lower
                after.append(self.ended(run))
            else:
                after.append(state.improved(*found))
        return after

    def ended(self, run: int) -> WorkingState:
        """Return the last state of a run: stalled if f is any function, or flat losses, and still steep there."""
        state, why = self.states[run], self.reason_to_end(run)
        if not self.objective.traits.arbitrary and not self.state_is_flat(run):
            return state.ended(why)
        negligible = tolerances(state, self.tol)[1]
        return verdict(self.objective, self.constraints[run], state.ended(""), why, self.tol, negligible)

    def reason_to_end(self, run: int) -> str:
        """Return why a run that nothing improves ends: on the forward path only because `tol` says so."""
        state, most = self.states[run], min(self.budgets[run], self.selection.candidates)
        on_path = state.checkpoint is not None and self.selection.selected(state.support) < most
        return PATH_ENDED if on_path else CONVERGED

    def evaluations(self) -> dict[int, Evaluation]:
        """Return f at the distinct better points, by identity; by one product for all if no prediction is known."""
        distinct = {id(better): better for better in self.better.values()}
        if len(distinct) == 1 or any(better.prediction is not None for better in distinct.values()):
            evaluate = self.objective.evaluate
            return {
                key: better.at or evaluate(better.projection.point, better.prediction)
                for key, better in distinct.items()
            }
        points = [better.projection.point for better in distinct.values()]
        return dict(zip(distinct, self.objective.evaluate_many(points), strict=True))

    def model(self, group: RunGroup) -> LocalModel:
        """Return the quadratic model around the state of a group, over its working set as it is now."""
        if group.model is None or group.model.columns is not group.working_set:
            group.model = LocalModel.around(
                self.objective, self.selection, group.state, self.gram, group.working_set, self.tol
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


def _change_of_curvature(objective: LinearObjective, state: WorkingState) -> float:
    """Return how the curvature has changed since the start, on average over the support."""
    support = state.support.indices
    if objective.traits.quadratic or support.shape[0] == 0:
        return 1.0
    xp = namespace(state.curvature)
    now = objective.columns(support).hessian_diag(state.at)
    before = float(xp.mean(gather(state.curvature, support)))
    return float(xp.mean(now)) / before if before > 0.0 else 1.0
