"""The steps of the working-set solver by refits, where these are cheap or the quadratic model misleads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import cast

import numpy as np

from hardthresh.arrays import double, gather, move, to_numpy
from hardthresh.constraints import Coordinates, Sparsity
from hardthresh.core.constraint import Projection
from hardthresh.core.few import predict_few
from hardthresh.core.typing import is_numpy
from hardthresh.objectives import LinearModel
from hardthresh.solvers.refinement import FULL_SOLVE
from hardthresh.steps.line_search import Candidate

from .effort import LEAST_CAP, PARTIAL_CAP, Refitting
from .local_scores import Refit
from .model import REFIT_TOL, tolerances, union
from .refit_search import MOST_ENTRIES, RefitSearch
from .refits import refit_to_the_end
from .runs import Runs, change_of_curvature, coefficients, is_minimal
from .state import Improvement, RunGroup, WorkingState, refined_on_support

_DEEP_COLUMNS = 750
"""A deep search has all columns in its working set if they are no more. On 40 classifiers of 300 x 600 f is lowest on
38 with all columns, and on 36 with screening."""
_SEPARATED = 1e-5
"""There is no search by refits if f is nearer to its lower bound than this share of the distance of the null model: the
chosen columns separate two classes, and each refit would take many steps towards infinity. Arbitrary."""


@dataclass(slots=True)
class RunsByRefits(Runs):
    """The same runs, with the steps of a search by refits; see `RefitSearch`.

    Attributes
    ----------
    every_column : LinearModel or None
        The objective on the host, if that is not where it lives and a deep search of all columns may follow.
    """

    every_column: LinearModel | None = None

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
        if not is_numpy(state.w) and group.finishing and self.objective.shape[0] <= _DEEP_COLUMNS:
            self.every_column = cast(LinearModel, self.objective).on_host()  # the host waits once, not for each search
        search = self.refit_search(columns)
        chosen = group.here.chosen
        start = search.started(np.searchsorted(columns, chosen), double(group.here.w[chosen]))
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
        few = self.on_host(columns)
        fixed = np.searchsorted(columns, np.asarray(self.selection.free, dtype=np.int64))
        bounds = None if self.selection.bounds is None else self.selection.bounds[:, columns]
        return RefitSearch(few, fixed, tolerances(state, self.tol)[1], self.separated_value(state), bounds)

    def on_host(self, columns: np.ndarray) -> LinearModel:
        """Return the model of some columns on the host."""
        every = self.every_column
        if every is not None:
            return every.columns(move(columns, every.y))
        return cast(LinearModel, self.objective.columns(move(columns, self.states[0].w))).on_host()

    def refitted(self, fit: Refit, columns: np.ndarray, run: int, checkpoint: int | None = None) -> Improvement | None:
        """Return a refit on some columns as an improvement; None if it is not lower than the state of the run."""
        objective, constraint, state = self.objective, self.constraints[run], self.states[run]
        negligible = tolerances(state, self.tol)[1]
        if not fit.value < state.value - negligible:
            return None
        chosen = columns[list(fit.chosen)]
        if checkpoint is not None:  # the path continues from there: nearly the minimum will do
            start = constraint.project(coefficients(chosen, fit.coef, state.w))
            prediction = None if is_numpy(state.w) else predict_few(objective, constraint, start.point)
            return Improvement(start, prediction, self.gram, columns, 0.0, negligible, checkpoint)
        found = self.refitted_to_the_end(chosen, fit.coef, run, REFIT_TOL * negligible)
        is_last = state.checkpoint is not None and columns.size == objective.shape[0] and found.minimal
        is_last = is_last and self.effort.final_exchanges == 0
        there = found.projection
        is_last = is_last and not self.ends_flat(run, there.support, found.prediction, there.point)
        return Improvement(there, found.prediction, self.gram, columns, inf, negligible, is_last=is_last)

    def refitted_to_the_end(self, chosen: np.ndarray, coef: np.ndarray, run: int, tol: float) -> Candidate:
        """Return the minimiser on some columns; of a model on a device, whose columns come over at once, on the host.

        There each Newton step would make the host wait.
        """
        objective, constraint, like = self.objective, self.constraints[run], self.states[run].w
        few = None if is_numpy(like) else self.on_host(chosen)
        if few is None or not is_numpy(few.y):
            start = constraint.project(coefficients(chosen, coef, like))
            return refit_to_the_end(objective, constraint, start, rounds=FULL_SOLVE, tol=tol)
        free = np.flatnonzero(np.isin(chosen, self.selection.free)).tolist()
        bounds = (None, None) if self.selection.bounds is None else self.selection.bounds[:, chosen]
        inside = Sparsity(chosen.size - len(free), free=tuple(free), lower=bounds[0], upper=bounds[1])
        start = inside.project(coef.astype(few.y.dtype))
        found = refit_to_the_end(few, inside, start, rounds=FULL_SOLVE, tol=tol)
        support = Coordinates(move(chosen[found.projection.support.indices], like))
        there = constraint.project_onto(coefficients(chosen, found.projection.point, like), support)
        prediction = predict_few(objective, constraint, there.point)
        return replace(found, projection=Projection(there.point, support), prediction=prediction)

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
        curvature = state.curvature * change_of_curvature(self.objective, state)
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
        chosen = group.here.chosen
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

    def separated_value(self, state: WorkingState) -> float:
        """Return the value of f up to which the chosen columns count as separating the classes."""
        bound = self.objective.lower_bound
        return bound + _SEPARATED * abs(state.trace.null_value - bound)
