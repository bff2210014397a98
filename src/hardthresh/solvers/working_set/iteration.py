"""One iteration of the working-set solver, step by step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, sqrt
from typing import cast

from hardthresh.core.lazy import at_hand, to_host_together
from hardthresh.core.objective import Evaluation, value_rounding
from hardthresh.core.typing import Array
from hardthresh.objectives import LinearModel
from hardthresh.solvers.decrement import newton_decrement
from hardthresh.solvers.steepest import verdict

from .by_refits import RunsByRefits
from .effort import LEAST_CAP, PARTIAL_CAP, PREFETCH_CAP
from .model import Gram, LocalModel, Moves, OnHost, above, scores, tolerances, union
from .search import Fit
from .state import (
    CONVERGED,
    PATH_ENDED,
    Improvement,
    RunGroup,
    WorkingState,
    first_improvement,
    path_cap,
    refined_on_support,
    refit_without_curvature,
    with_fewer_columns,
)

_CLEARLY = 100.0
"""A run has not converged if by its derivatives f may still fall on the support by so many times what is negligible,
and some step lowers it: where none does the derivatives are rounding. Arbitrary."""
_WIDE, _LEAST_WIDE = 4, 1000
"""No column joins at the fits without a part if the working set has more than 4k + 1,000. Without this limit a Gram
matrix for 160 of 10,000 columns has 3,522 columns instead of 2,562. On 240 linear models f is the same without it,
and higher on 9 of them with 6k + 300, by up to 12 %."""


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
class Iteration(RunsByRefits):
    """One iteration of some runs; see `Runs`."""

    def next_states(self) -> list[WorkingState]:
        """Return the next state of each run, by the steps of `WorkingSet`.

        Step 1 moves the runs of a group whose budgets are larger than the next checkpoint. If f is quadratic, its other
        runs wait, with the state that they have, until no run continues along the forward path; then steps 2 and 3
        finish all of them, each from its own state, with the columns of all. Else they are finished at once, because
        each state has its own Hessian.
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
        self.screen_along_path(on_path)
        self.share_working_set(on_path)
        self.prefetch([*on_path, *past_it])  # step 2
        self.share_working_set(on_path)
        for group in on_path:
            self.reach_budgets(group)  # step 3
        for group in past_it:
            self.improve(group)  # step 4
        for run in range(len(self.states)):
            if run in self.better or run in waiting:
                continue
            better = self.improve_by_bound(run) if self.state_is_flat(run) else self.improve_on_support(run)
            if better is not None:
                self.better[run] = better
        return self.evaluate_and_finish(waiting)

    def improve_on_support(self, run: int) -> Improvement | None:
        """Return a lower point on the support of a run that nothing else improves, as where losses are saturated."""
        state = self.states[run]
        if self.is_lowest(run, state) or self.recedes(state):
            return None
        return self.falls_on_support(run, tolerances(state, self.tol)[1])

    def falls_on_support(self, run: int, negligible: float) -> Improvement | None:
        """Return a point on the support of a run where f is lower by more than a negligible amount."""
        state = self.states[run]
        columns = state.working_set
        return refined_on_support(self.objective, self.constraints[run], state, self.gram, columns, negligible)

    def recedes(self, state: WorkingState) -> bool:
        """Return whether f falls indefinitely on the support of a state, so that no point there is the lowest."""
        return self.objective.recession(state.at, state.support.indices) is not None

    def is_lowest(self, run: int, state: WorkingState, factor: float = 1.0) -> bool:
        """Return whether f may fall on the support of a state by no more than some times what is negligible.

        A quadratic is solved there, and any function has a verdict of its own.
        """
        traits = self.objective.traits
        if traits.quadratic or traits.arbitrary:
            return True
        rounding = value_rounding(self.objective, state.at)  # which comes over with the Hessian
        decrement = newton_decrement(self.objective, self.constraints[run], state)
        return decrement <= max(factor * tolerances(state, self.tol)[1], rounding)

    def improve_by_bound(self, run: int) -> Improvement | None:
        """Return a lower point by the quadratic model with the bound of the second derivatives of all losses.

        f is nowhere above that model, so that each column with a gradient lowers both.
        """
        objective, state = cast(LinearModel, self.objective).bounding_quadratic(), self.states[run]
        here, _ = OnHost.of(state)
        inside = union(state.working_set, here.chosen)
        curvature, most = objective.hessian_diag(state.at), max(LEAST_CAP, 2 * self.budgets[run])
        columns = union(inside, self.screen(state.at.gradient, curvature, inside, 0.0, most))
        gram = Gram().including(objective, state.at, columns)
        model = LocalModel.around(objective, self.selection, state, here, gram, columns, self.tol)
        grown = model.grown(self.budgets[run])
        fits = [Fit.of(model.descend(grown, self.budgets[run])), Fit.of(grown)]
        better = first_improvement(self.objective, self.constraints[run], self.budgets[run], state, model, fits)
        return None if better is None else replace(better, gram=self.gram, reference_score=0.0)

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

    def screen_along_path(self, groups: Sequence[RunGroup]) -> None:
        """Screen the columns at all marks of the paths without a stop: one reading instead of one for each mark.

        On 36 linear models of six shapes with correlated columns f is as low as with a stop at each checkpoint, with 4
        to 7 readings instead of 4 to 12; with a second such reading it is 0.3 % lower.
        """
        fits = []
        for group in groups:
            for size in group.marks:
                path = self.model(group).grown(size)
                threshold = max(self.effort.screening_ratio * path.highest_score(), self.model(group).rounding)
                point = self.model(group).point(Fit.of(path), self.states[0].w)
                fits.append(FitToScreen(group, point, threshold, path_cap(size)))
        self.screen_at(fits)

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
                group
                for group in groups
                if group.finishing and group.last is None and group.prefetched.get(share) is not group.working_set
            ]
            fits = []
            for group in stale:
                group.prefetched[share] = group.working_set
                fits.append(self.fit_to_prefetch(group, share))
            self.screen_at(fits)
        fits = [fit for group in groups for fit in self.partial_fits(group)]
        for group in groups:
            if group.last is not None and group.finishing:  # all fits in one reading
                fits += [self.fit_to_prefetch(group, share) for share in sorted({*self.effort.prefetch})]
        self.screen_at(fits)

    def fit_to_prefetch(self, group: RunGroup, share: float) -> FitToScreen:
        """Return the fit whose budget is a share of the next checkpoint."""
        budget = ceil(share * cast(int, group.next_checkpoint))
        fit, threshold = self.fit_and_threshold(group, budget)
        most = max(LEAST_CAP, ceil(PREFETCH_CAP * budget))
        return FitToScreen(group, self.model(group).point(fit, self.states[0].w), threshold, most)

    def partial_fits(self, group: RunGroup) -> list[FitToScreen]:
        """Return the fits without a part of the chosen columns; none if there are many columns to search already."""
        narrow = group.working_set.size < _WIDE * max(group.budgets.values()) + _LEAST_WIDE
        past_it = group.next_checkpoint is None and not self.objective.traits.reading_is_dear
        if not (self.effort.parts and narrow and (group.finishing or past_it)):
            return []
        whole, threshold = self.fit_and_threshold(group, group.next_checkpoint or max(group.budgets.values()))
        most = max(LEAST_CAP, ceil(PARTIAL_CAP * whole.size))
        points = self.model(group).partial_points(whole, self.effort.parts, self.states[0].w)
        return [FitToScreen(group, point, threshold, most) for point in points]

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
        bounds, at = self.selection.bounds, zip(fits, gradients, strict=True)
        scored = to_host_together(*(scores(gradient, one.group.state.curvature, bounds) for one, gradient in at))
        for one, score in zip(fits, scored, strict=True):
            inside = one.group.working_set
            one.group.working_set = union(inside, above(score, inside, one.threshold, one.most))
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
                continue
            there = None if found is None else state.improved(*found)
            lowest = None  # where the value is on a device it comes over with the Hessian
            if there is not None and there.settled and not at_hand(there.at.value):
                lowest = self.is_lowest(run, there)
            if there is None or not there.at.value < state.value:  # by rounding, only the model is lower
                after.append(self.ended(run))
            elif there.settled and not (self.is_lowest(run, there) if lowest is None else lowest):
                after.append(replace(there, settled=""))
            else:
                after.append(there)
        return after

    def ended(self, run: int) -> WorkingState:
        """Return the last state of a run: stalled if f is still steep there, or may fall on the support."""
        state, why = self.states[run], self.reason_to_end(run)
        if not self.objective.traits.arbitrary and not self.state_is_flat(run):
            if self.is_lowest(run, state, _CLEARLY) or self.recedes(state) or self.falls_on_support(run, 0.0) is None:
                return state.ended(why)  # where f recedes the verdict is that it has no minimiser
            return replace(state.ended(""), stalled=why)
        negligible = tolerances(state, self.tol)[1]
        return verdict(self.objective, self.constraints[run], state.ended(""), why, self.tol, negligible)

    def reason_to_end(self, run: int) -> str:
        """Return why a run that nothing improves ends: on the forward path only because `tol` says so."""
        state, most = self.states[run], min(self.budgets[run], self.selection.candidates)
        on_path = state.checkpoint is not None and self.selection.selected(state.support) < most
        return PATH_ENDED if on_path else CONVERGED

    def evaluations(self) -> dict[int, Evaluation]:
        """Return f at the distinct better points, by identity.

        One product serves all if no prediction is known, or to make these anew is cheaper than another reading.
        """
        distinct = {id(better): better for better in self.better.values()}
        dear = self.objective.traits.reading_is_dear
        known = {key: better.at for key, better in distinct.items() if better.at is not None and dear}
        fresh = {key: better for key, better in distinct.items() if key not in known}
        if len(fresh) < 2 or (not dear and any(better.prediction is not None for better in fresh.values())):
            evaluate = self.objective.evaluate
            return known | {
                key: better.at or evaluate(better.projection.point, better.prediction) for key, better in fresh.items()
            }
        points = [better.projection.point for better in fresh.values()]
        return known | dict(zip(fresh, self.objective.evaluate_many(points), strict=True))
