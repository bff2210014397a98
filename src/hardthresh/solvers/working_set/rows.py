"""The steps of the working-set solver for matrices: rows of coefficients, each chosen for all outputs at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, inf, sqrt
from typing import cast

import numpy as np

from hardthresh.arrays import double, gather, move, namespace, scatter, to_numpy
from hardthresh.core.constraint import Constraint, RowBudget
from hardthresh.core.objective import Evaluation, LinearObjective, RowObjective
from hardthresh.core.typing import Array
from hardthresh.solvers.start import starting_point

from .effort import FEW, FEW_PER_CHOICE, LEAST_CAP, PARTIAL_CAP, PREFETCH_CAP, Effort
from .model import REFIT_TOL, Gram, LocalModel, difference, screen, tolerances, union
from .row_refits import refit_rows
from .search import Fit
from .state import CONVERGED, PATH_ENDED, WorkingState, next_checkpoint, path_cap, recheck_threshold
from .tableau import Tableau

_CURVED = 1e-10
"""A direction of the outputs has curvature if its eigenvalue is more than this share of the largest: else, as for a
number that is added to the predictions of all classes, it is nothing but rounding."""
_WEAK = 0.05
"""Share of the bound of the second derivatives below which their mean is weak. Arbitrary: for three classes it is 0.4
or more unless nearly all examples are classified with certainty."""
_CLOSE_EXCHANGES = 4
"""How many exchanges are tried although the model rises. On 38 classifiers of three classes, 150 x 1500 to 500 x 600,
the answers are the same with 10, and f is higher on 3 with 0."""


def rows_state(
    objective: RowObjective, constraint: Constraint, structure: RowBudget, w0: Array | None, seed: int
) -> WorkingState:
    """Return the state where a run starts: at the projection of a point, or at the minimiser on the free rows."""
    if w0 is None:
        at = null_model(objective, np.asarray(structure.free, dtype=np.int64))
        projection = constraint.project(at.point)
    else:
        at, projection = starting_point(objective, constraint, w0)
    curvature = objective.column_products().hessian_diag(at)
    checkpoint = 0 if w0 is None else None
    return WorkingState(at=at, support=projection.support, seed=seed, curvature=curvature, checkpoint=checkpoint)


def null_model(objective: RowObjective, rows: np.ndarray) -> Evaluation:
    """Return f at its minimiser on the free rows."""
    w = objective.null_point()
    if rows.size == 0:
        return objective.evaluate(w)
    free = move(rows, w)
    few = objective.columns(free)
    fitted = refit_rows(few, few.null_point(), 0.0)
    return objective.evaluate(scatter(fitted.point, free, objective.shape[0]), fitted.prediction)


def next_row_states(
    effort: Effort,
    tol: float,
    objective: RowObjective,
    constraints: Sequence[Constraint],
    states: Sequence[WorkingState],
    gram: Gram,
) -> list[WorkingState]:
    """Return the next state of each of some runs whose sets differ in their budgets only.

    They share the Gram matrix, and those at one state of the forward path, which does not depend on their budgets, the
    step along it.
    """
    products, after = objective.column_products(), list[WorkingState]()
    steps: dict[int, WorkingState] = {}
    for constraint, state in zip(constraints, states, strict=True):
        own = cast(RowBudget, constraint.structure(tuple(objective.shape)))
        search = RowSearch(effort, tol, objective, constraint, own, state, gram, products)
        if not search.follows_path:
            found = search.next()
        elif id(state.at) in steps:
            found = steps[id(state.at)]
        else:
            found = steps[id(state.at)] = search.next()
        gram = max(gram, found.gram, key=lambda one: one.columns.size)
        after.append(found)
    return after


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """The mean second derivatives A of the outputs as :math:`A = E diag(s) E'`, without directions of no curvature.

    Attributes
    ----------
    into : array, shape (q, r)
        :math:`E diag(s)^{1/2}`, which takes coefficients to those of the right-hand sides.
    back : array, shape (q, r)
        :math:`E diag(s)^{-1/2}`, which takes gradients there; its transpose takes coefficients back.
    size : float
        The mean of s, by which a ridge is divided: exact where all are equal, as for squared errors.
    """

    into: np.ndarray
    back: np.ndarray
    size: float

    @classmethod
    def of(cls, block: np.ndarray) -> OutputBlock | None:
        """Return the factors of A; None if it has no curvature at all, as where a loss is saturated."""
        values, vectors = np.linalg.eigh(block)
        curved = values > max(_CURVED * values[-1], 0.0)
        if not curved.any() or not np.isfinite(block).all():
            return None
        s, E = values[curved], vectors[:, curved]
        return cls(E * np.sqrt(s), E / np.sqrt(s), float(s.mean()))


@dataclass(slots=True)
class RowSearch:
    """One iteration of a run."""

    effort: Effort
    tol: float
    objective: RowObjective
    constraint: Constraint
    structure: RowBudget
    state: WorkingState
    gram: Gram
    products: LinearObjective

    @property
    def checkpoint(self) -> int | None:
        """The next checkpoint of the forward path; None for a run that has left it."""
        return None if self.state.checkpoint is None else next_checkpoint(self.state.checkpoint)

    @property
    def follows_path(self) -> bool:
        """Whether the run goes to the next checkpoint, which is below its budget."""
        checkpoint = self.checkpoint
        return checkpoint is not None and self.structure.budget > checkpoint and not self.takes_all_columns()

    def next(self) -> WorkingState:
        """Return the next state: at a better point, or the end of the run."""
        for block in self.blocks():
            better = self.improved(block)
            if better is not None:
                return better
        return self.polished()

    def blocks(self) -> Iterator[OutputBlock]:
        """Yield the mean second derivatives, and a bound of them where they are next to nothing.

        That is where losses are saturated, or most residuals are beyond the delta of the Huber loss: the model says
        little then. With the bound f is nowhere above the model, so that what lowers the model lowers f.
        """
        block = OutputBlock.of(double(self.objective.output_block(self.state.at)))
        if block is not None:
            yield block
        bound = self.objective.output_bound()
        if not self.objective.traits.quadratic and bound < inf and (block is None or block.size < _WEAK * bound):
            unit = np.eye(self.objective.shape[1])
            largest = OutputBlock.of(bound * double(self.objective.centre(move(unit, self.state.w))))
            assert largest is not None
            yield largest

    def improved(self, block: OutputBlock) -> WorkingState | None:
        """Return a state where f is lower, by the model with some second derivatives of the outputs."""
        state, budget, checkpoint = self.state, self.structure.budget, self.checkpoint
        whole = self.takes_all_columns()
        if checkpoint is None and not self.needs_search(block):
            return None
        columns = np.arange(self.objective.shape[0]) if whole else self.screened(block)
        model = self.model(block, columns, self.gram)
        if checkpoint is not None and self.follows_path:
            path = model.grown(checkpoint)
            better = self.refitted(block, model, Fit.of(path))
            score = path.highest_score()
            return None if better is None else replace(better, checkpoint=checkpoint, reference_score=score)
        if not whole and self.objective.traits.quadratic:
            model = self.prefetched(block, model, checkpoint)
        here = model.tableau
        tried = {frozenset(here.chosen)} if here.decrease <= model.negligible else set()
        for fit in self.fits(model):
            support = frozenset(fit.chosen.tolist())
            better = None if support in tried else self.refitted(block, model, fit)
            if better is not None:
                last = whole and self.objective.traits.quadratic and state.checkpoint is not None
                score = model.lowest_chosen_score(fit, budget)
                return replace(better, checkpoint=None, reference_score=score, settled=CONVERGED if last else "")
            tried.add(support)
        return None

    def takes_all_columns(self) -> bool:
        """Return whether there are so few columns that to search them all takes less time than to screen them."""
        return self.objective.shape[0] <= FEW + FEW_PER_CHOICE * self.structure.budget

    def needs_search(self, block: OutputBlock) -> bool:
        """Return whether a run that has reached its budget must search once more (step 4).

        The score of a row is a sum over the outputs, so that there are fewer small ones among those of noise than for
        one output: the threshold is higher. Of 288 models of 100 x 500 to 400 x 1000, with 2, 3 and 8 outputs, f is
        higher on 1 with 0.6 or 0.63 than with 0.4, and on 2 of 144 with 0.7; easier ones take 0.83 times as long.
        """
        state = self.state
        threshold = recheck_threshold(self.objective, state, sqrt(self.effort.recheck_ratio), self.tol)
        return threshold is None or self.screen(block, state.at.gradient, state.working_set, threshold, 1).size > 0

    def screened(self, block: OutputBlock) -> np.ndarray:
        """Return the working set of the state with the columns outside whose scores are high enough."""
        state = self.state
        rows = to_numpy(self.rows_of(state))
        inside = union(state.working_set, rows)
        most = max(LEAST_CAP, rows.size) if state.checkpoint is None else path_cap(rows.size)
        threshold = max(self.effort.screening_ratio * state.reference_score, tolerances(state, self.tol)[0])
        return union(inside, self.screen(block, state.at.gradient, inside, threshold, most))

    def screen(
        self, block: OutputBlock, gradient: Array, inside: np.ndarray, threshold: float, most: int
    ) -> np.ndarray:
        """Return the columns outside a working set whose scores are above a threshold; see `model.screen`."""
        rotated = gradient @ move(block.back.astype(to_numpy(gradient[:0, :0]).dtype), gradient)
        curvature = self.state.curvature + self.objective.row_ridge() / block.size
        return screen(rotated, curvature, inside, None, threshold, most)

    def model(self, block: OutputBlock, columns: np.ndarray, gram: Gram) -> LocalModel:
        """Return the quadratic model around the state over some columns, with a right-hand side for each direction."""
        state = self.state
        gram = gram.including(self.products, state.at, columns)
        matrix, ridge = gram.matrix, double(self.objective.row_ridge())
        if ridge.any():
            matrix = matrix + np.diag(ridge[gram.columns] / block.size)
        indices, free = move(columns, state.w), np.asarray(self.structure.free, dtype=np.int64)
        chosen = columns.searchsorted(np.concatenate([free, difference(to_numpy(self.rows_of(state)), free)]))
        slope = -double(gather(state.at.gradient, indices)) @ block.back
        coef = (double(gather(state.w, indices)) @ block.into)[chosen]
        tableau = Tableau(matrix, slope, chosen.tolist(), coef, n_free=free.size, gram_rows=gram.rows(columns))
        return LocalModel(columns, gram, tableau, *tolerances(state, self.tol))

    def prefetched(self, block: OutputBlock, model: LocalModel, checkpoint: int | None) -> LocalModel:
        """Return the model with the columns that have high scores at fits of the next checkpoint (step 2).

        For a quadratic only: on the 38 classifiers of `_CLOSE_EXCHANGES` f is the same without these columns on 37, and
        lower on the other, because each new model is screened again. On 20 models of three outputs, 150 x 1500 and
        400 x 1500, f is higher on 3 without the parts.
        """
        budget = checkpoint or self.structure.budget
        for share in self.effort.prefetch if checkpoint is not None else ():
            fit = model.best(ceil(share * budget))
            most = max(LEAST_CAP, ceil(PREFETCH_CAP * share * budget))
            model = self.with_columns(block, model, fit, [model.point(fit, self.state.w)], most)
        if self.effort.parts:
            whole = model.best(budget)
            most = max(LEAST_CAP, ceil(PARTIAL_CAP * whole.size))
            points = model.partial_points(whole, self.effort.parts, self.state.w)
            model = self.with_columns(block, model, whole, points, most)
        return model

    def with_columns(
        self, block: OutputBlock, model: LocalModel, fit: Fit, points: Sequence[Array], most: int
    ) -> LocalModel:
        """Return the model with the columns that have high scores at some points near a fit."""
        score = model.lowest_chosen_score(fit, fit.size - fit.n_free)
        threshold, columns = max(self.effort.screening_ratio * score, model.rounding), model.columns
        for gradient in self.objective.screening_gradients([self.back(block, point) for point in points]):
            columns = union(columns, self.screen(block, gradient, columns, threshold, most))
        return model if columns is model.columns else self.model(block, columns, model.gram)

    def fits(self, model: LocalModel) -> Iterator[Fit]:
        """Yield what is to be refitted: the best of the model, and, where it is not f itself, what is close to that."""
        budget, moves = self.structure.budget, self.effort.moves
        if self.state.checkpoint is None:
            moves = replace(moves, nearby=sqrt(moves.nearby))  # see `Moves.nearby`
        yield model.best(budget, moves)
        if self.objective.traits.quadratic:
            return
        grown = model.grown(budget)
        yield Fit.of(model.descend(grown, budget))
        yield Fit.of(grown)
        if self.state.checkpoint is None:
            for tableau in islice(model.close_exchanges(grown), _CLOSE_EXCHANGES):
                yield Fit.of(tableau)

    def refitted(self, block: OutputBlock, model: LocalModel, fit: Fit) -> WorkingState | None:
        """Return the state at the minimiser on the rows of a fit, if f is lower there."""
        state, order = self.state, np.argsort(fit.chosen)
        rows = model.columns[fit.chosen[order]]
        lower = state.value - model.negligible
        if self.objective.traits.quadratic and not fit.decrease > model.negligible:
            return None
        found = self.minimised(rows, fit.coef[order] @ block.back.T, lower)
        if found is None:
            return None
        return replace(
            state.ended(""), at=found, support=self.constraint.project(found.point).support, step=1.0, gram=model.gram,
            working_set=model.columns, negligible=model.negligible,
        )  # fmt: skip

    def minimised(self, rows: np.ndarray, start: np.ndarray, lower: float) -> Evaluation | None:
        """Return f at the minimiser on some rows, of which the start is near, if f is below some value there."""
        w, indices = self.state.w, move(rows, self.state.w)
        few, coef = self.objective.columns(indices), namespace(w).astype(move(start, w), w.dtype)
        if self.objective.traits.quadratic and few.value(coef) < lower:  # the minimiser of the model, or as good
            found, prediction = coef, few.predict(coef)
        else:
            fitted = refit_rows(few, coef, REFIT_TOL * tolerances(self.state, self.tol)[1], lower)
            if not fitted.value < lower:
                return None
            found, prediction = fitted.point, fitted.prediction
        return self.objective.evaluate(scatter(found, indices, w.shape[0]), prediction)

    def polished(self) -> WorkingState:
        """Return the end of the run: at the minimiser on its support, or the state itself if f is not lower there."""
        state, rows = self.state, to_numpy(self.rows_of(self.state))
        most = min(self.structure.budget, self.structure.candidates)
        on_path = state.checkpoint is not None and self.structure.selected(state.support) < most
        ended = state.ended(PATH_ENDED if on_path else CONVERGED)
        if rows.size == 0:
            return ended
        start = double(gather(state.w, move(rows, state.w)))
        found = self.minimised(rows, start, state.value - tolerances(state, self.tol)[1])
        return (
            ended if found is None else replace(ended, at=found, step=1.0, settled="", checkpoint=None, negligible=inf)
        )

    def back(self, block: OutputBlock, point: Array) -> Array:
        """Return a point of the right-hand sides as one of the outputs."""
        return point @ move(block.back.T.astype(to_numpy(point[:0, :0]).dtype), point)

    def rows_of(self, state: WorkingState) -> Array:
        """Return the rows of the support of a state."""
        rows: Array = state.support.rows  # type: ignore[attr-defined]
        return rows
