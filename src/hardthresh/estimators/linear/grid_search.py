"""Grids of models in folds: what is fitted to the training rows of each, and how held-out rows score it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hardthresh.arrays import double, to_numpy
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.errors import CapabilityError, InvalidInputError, format_value
from hardthresh.core.progress import progress_line
from hardthresh.core.result import Result
from hardthresh.core.solver import Solver
from hardthresh.losses import Loss, VectorLoss
from hardthresh.selection import FoldPath, generalized_fold_paths, least_squares_fold_paths
from hardthresh.selection.comparison import in_parallel
from hardthresh.selection.valley import golden_section
from hardthresh.solvers import WorkingSet, minimize
from hardthresh.solvers.working_set.fold_path import searched_ridge

from ..base import is_real
from ..folds import CrossValidatedMixin, Metadata, Split, Splits, candidates_of, settings_for_folds
from ..table import Table
from .block_splits import BlockSplits
from .choosing import is_given, is_searched
from .criterion import number_of_examples
from .grid_models import FoldFits, Search
from .model import SparseLinearModel
from .prediction import PointwisePrediction, PredictionModel
from .problem import Problem, features_of
from .row_splits import RowSplits
from .several_outputs import VectorPrediction

_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The ridges compared by default besides 0, times the curvature of the loss at the null model. On the choosing half of
the benchmark of prediction the mean relative risk is .498 with these, .500 with .03 besides, .501 without 3, and .506
with 0, .1, 1 and 30. For classes, which few features separate, a tenth of the default ridge and that ridge are compared
instead of 0 and 10: of 48 splits of the real two-class sets of that half the geometric mean loss is .386, and .398
with the default ridge instead of 0 alone."""
_FIRST_SIZES = (*range(11), 12, 14, 17, 20, 25, 30)
"""The numbers compared at first. On that half the mean relative risk is .498, and with all numbers up to 30 it is .499,
in twice the time."""
_MOST = 120
"""While the upper half of the range is better than the lower, by more than the standard error of their difference, the
range is doubled up to here, in three steps of equal ratios. On genotypes the error of the folds falls by 3 to 5 % from
30 to 140 features, and the fit takes ten times as long; beyond, time grows with more than the square."""
_PILOT = 10
"""Number of features, or groups, of the model that estimates the parameter of a fold's loss; fewer where there are not
ten rows for each, by their weights. Arbitrary."""
_ENTRIES = 1 << 22
"""Limit of the held-out predictions computed at a time: 32 MB."""

FoldPaths = Callable[..., list[FoldPath]]
"""Fits the paths of all folds together, as `hardthresh.selection.least_squares_fold_paths` does."""


class GridSearch(CrossValidatedMixin, SparseLinearModel):
    """Base of the estimators that fit a grid of numbers of features and ridges in folds.

    An estimator whose predictions are not those of a pointwise loss overrides `_prediction_model`; one whose loss has
    parameters that are estimated overrides `_fold_loss`; and one whose score is no mean over rows `_fold_scores`.
    """

    alphas: Any
    n_jobs: int | None

    def _shares_halves(self) -> bool:
        """Return False: each part of the rows compares numbers of features in folds of its own."""
        return False

    def _check_blocks(self) -> None:
        nuisance = self._nuisance()
        if nuisance is not None and self.criterion == "cv":
            raise CapabilityError(
                f"{type(self).__name__} is not cross-validated over blocks where it estimates {nuisance.setting}; give "
                f"{nuisance.setting}, or rows that fit into memory"
            )

    def _fold_loss(self, train: Table) -> Loss | VectorLoss:
        """Return the loss of a fold: that of the estimator, or one with parameters estimated on its training rows."""
        nuisance = self._nuisance()
        if nuisance is None:
            return self._loss_for(train.y)
        null = self._problem(train, 0)
        size = min(_PILOT, int(number_of_examples(null.objective)) // 10, self._choices()[0])
        pilot = null.with_budget(size).with_ridge(self._loss.default_ridge)
        loss: Loss | VectorLoss = nuisance.of_fold(pilot, self._solve_roughly)
        return loss

    def _solve_roughly(self, problem: Problem, w0: Any) -> Result:
        """Return the fit of a pilot model, of which no more is wanted than the parameter of its loss."""
        objective, constraint, solver = problem.objective, problem.constraint, self._fast_solver(problem)
        return minimize(objective, constraint, solver, w0, tol=self.tol, max_iter=self.max_iter, seed=self._seed())

    def _prediction_model(self, loss: Loss | VectorLoss, table: Table) -> PredictionModel:
        """Return how predictions of models with a loss are scored."""
        if isinstance(loss, VectorLoss):
            return VectorPrediction(loss, loss.n_outputs(table.y))
        return PointwisePrediction(loss)

    def _fold_paths(self, problem: Problem) -> FoldPaths | None:
        """Return the function that fits all folds together; None if each is fitted alone."""
        if self.solver != "auto" or coordinate_budget(problem.constraint, tuple(problem.objective.shape)) is None:
            return None
        return least_squares_fold_paths if problem.objective.traits.quadratic else generalized_fold_paths

    def _fold_scores(self, fold: FoldFits, table: Table, split: Split) -> np.ndarray:
        """Return the default scores of the fits of a fold, one after the other: minus the mean held-out loss."""
        test, prediction = table.take(split[1]), fold.prediction
        coefs, intercepts = fold.flat()
        y, weights = double(test.y), None if test.sample_weight is None else double(test.sample_weight)
        means = []
        size = max(1, _ENTRIES // (test.n_rows * intercepts[0].size))
        for start in range(0, len(intercepts), size):
            some = slice(start, start + size)
            losses = prediction.losses(y, fold.predict(test, coefs[some], intercepts[some]))
            means.append(np.average(losses, axis=0, weights=weights))
        return np.asarray(-prediction.score_scale * np.concatenate(means))

    def _ridges(self, problem: Problem, prediction: PredictionModel) -> np.ndarray:
        """Return the ridges to compare, increasing."""
        if isinstance(self.alphas, str):
            model = problem.objective
            mean = prediction.mean_curvature(model, problem.null_evaluation())
            small = model.loss.default_ridge
            ridges = [0.1 * small, small] if small else [0.0, mean * _RIDGES[-1]]
            ridges += [mean * ridge for ridge in _RIDGES[:-1]]
            return np.unique(np.array(ridges))
        return self._given_ridges()

    def _given_ridges(self) -> np.ndarray:
        """Return the ridges that the user gives to compare, increasing."""
        ridges = [
            checked_ridge(alpha) for alpha in (self.alphas if isinstance(self.alphas, Iterable) else [self.alphas])
        ]
        if not ridges:
            raise InvalidInputError("alphas is empty; give the ridges to compare, such as [0, 0.1, 1]")
        return np.unique(np.array(ridges))

    def _search(
        self,
        table: Any,
        problem: Problem,
        splits: RowSplits | BlockSplits,
        ridges: np.ndarray,
        seed: int,
    ) -> tuple[np.ndarray, Search]:
        """Return the candidates, of which there are more while the largest ones are the best, and their grid."""
        most, what = self._choices()
        name = self._k_name
        given = getattr(self, name)
        if given is None:
            self._checked_k(None)  # which says what to give

        def fit(sizes: np.ndarray) -> Search:
            return splits.search(self, table, problem, sizes, ridges, seed)

        self.range_extended_ = False
        if is_searched(given):
            largest = min(most, self._largest_useful(problem, splits), self.max_nonzero_coefs or _MOST)
            search = _golden(fit, largest)
            return search.sizes, search
        automatic = not is_given(given)
        default = {min(size, most) for size in _FIRST_SIZES} if automatic else given
        candidates = candidates_of(default, most, self._checked_k, name, f"numbers of {what}", least=0)
        search = fit(np.union1d([0], candidates))
        bound = min(most, _MOST, max(_FIRST_SIZES[-1], self._largest_useful(problem, splits)))
        while automatic and candidates[-1] < bound:
            if not search.grid(candidates).ends_high:
                break
            last = int(candidates[-1])
            more = np.unique(np.minimum(np.round(last * 2.0 ** (np.arange(1, 4) / 3)).astype(int), bound))
            search, candidates = search.joined(fit(more)), np.concatenate([candidates, more])
            self.range_extended_ = True
        return candidates, search

    def _fold_fits(
        self,
        table: Table,
        problem: Problem,
        training: list[np.ndarray],
        sizes: np.ndarray,
        ridges: np.ndarray,
        seed: int,
    ) -> list[FoldFits]:
        """Return the fits of every fold; none depends on another fold."""
        fold_paths = self._fold_paths(problem)
        with progress_line(bool(self.verbose), "folds", len(training)) as report:
            if fold_paths is not None:
                report("together")
                return self._fits_together(fold_paths, table, problem, training, sizes, ridges)
            folds = []
            tasks = ((table.take(train), sizes, ridges, seed) for train in training)
            fit_fold = settings_for_folds(self, self._k_name, "alphas")._fold
            for fold in in_parallel(fit_fold, tasks, self.n_jobs):
                folds.append(fold)
                report("")
            return folds

    def _fits_together(
        self,
        fold_paths: FoldPaths,
        table: Table,
        problem: Problem,
        training: list[np.ndarray],
        sizes: np.ndarray,
        ridges: np.ndarray,
    ) -> list[FoldFits]:
        """Return the fits of every fold, those of folds with the same loss together."""
        selection = coordinate_budget(problem.constraint, tuple(problem.objective.shape))
        losses = [self._fold_loss(table.take(train)) for train in training]
        fits: dict[int, FoldFits] = {}
        for loss in dict.fromkeys(losses):
            own, prediction = problem.with_loss(loss), self._prediction_model(loss, table)
            places = [place for place, other in enumerate(losses) if other == loss]
            paths = fold_paths(
                own.objective,
                selection,
                [training[place] for place in places],
                sizes.tolist(),
                ridges.tolist(),
                intercept=self.fit_intercept,
                standardize=self.standardize,
                tol=self.tol,
            )
            for place, path in zip(places, paths, strict=True):
                fits[place] = FoldFits.of(path, own, prediction, path.unconverged)
        return [fits[place] for place in range(len(training))]

    def _fold(self, train: Table, sizes: np.ndarray, ridges: np.ndarray, seed: int) -> FoldFits:
        """Return paths fitted on the training rows alone: with one ridge, and with the others on the same features.

        By default these are what quadratic models at few points choose. With another solver each fit of the
        path starts from the last one.
        """
        loss = self._fold_loss(train)
        problem = self._problem(train, int(sizes[-1])).with_loss(loss)
        searched = float(searched_ridge(ridges))
        budgets, path = sizes.tolist(), []
        supports = problem.supports_by_model(budgets, searched, self.tol) if self.solver == "auto" else None
        if supports is None:
            path = self._warm_path(problem.with_ridge(searched), budgets, seed, self._fast_solver(problem))
            supports = [to_numpy(problem.coordinates(result.support)) for result in path]
        points, failed = problem.minimisers(supports, budgets, ridges)
        unconverged = [*(result.status.sentence for result in path if not result.converged), *failed]
        return self._fold_fits_of(problem, points, self._prediction_model(loss, train), unconverged)

    def _fast_solver(self, problem: Problem) -> Solver:
        """Return the solver of a path in folds, which only has to rank the sizes; see `selection.path`."""
        solver = self._solver(problem)
        return replace(solver, effort="fast") if self.solver == "auto" and isinstance(solver, WorkingSet) else solver

    def _fold_fits_of(
        self, problem: Problem, points: np.ndarray, prediction: PredictionModel, unconverged: list[str]
    ) -> FoldFits:
        """Return the fits of points of a problem, shape (n_sizes, n_ridges, ...)."""
        coefs, intercepts = problem.parts(points)
        columns = np.flatnonzero(features_of(coefs))
        return FoldFits.of(FoldPath(columns, coefs[..., columns], intercepts), problem, prediction, unconverged)

    def _check_classes(self, table: Table, splits: Splits) -> None:
        """Check that each fold trains a classifier on rows of every class."""
        classes = np.unique(table.y) if is_classifier(self) else np.empty(0)
        for fold, (train, _) in enumerate(splits):
            missing = np.setdiff1d(classes, table.y[train])
            if missing.size:
                some = "of one class only" if classes.size == 2 else f"without the class {format_value(missing[0])}"
                raise InvalidInputError(f"fold {fold} of cv trains on rows {some}; use fewer or stratified folds")

    def _scores(self, fold: FoldFits, table: Table, split: Split, params: Metadata) -> np.ndarray:
        """Return the held-out scores of all fits, shape (n_sizes, n_ridges): by the scorer, or the default ones."""
        shape = fold.coefs.shape[:2]
        if self.scoring is None:
            return self._fold_scores(fold, table, split).reshape(shape)
        test = table.take(split[1])
        y = self._targets_as_given(test)
        fits = (fold.every(*fit, test) for fit in zip(*fold.flat(), strict=True))
        scores = [self._score_by_scorer({**self._fitted(*fit), **self._labels()}, test, y, params) for fit in fits]
        return np.array(scores).reshape(shape)

    def _largest_useful(self, problem: Any, splits: RowSplits | BlockSplits) -> int:
        """Return the number beyond which more features, or groups, cannot make a difference.

        That is all that vary, or as many as fit the training rows of a fold exactly.
        """
        always = list(self._always())
        most = self._choices()[0]
        if not problem.grouped:
            varies = to_numpy(problem.inverse_scale) != 0
            varies[always] = False
            most = int(np.count_nonzero(varies))
        return min(most, splits.fewest_rows(problem.objective) - len(always) - bool(self.fit_intercept))


def _golden(fit: Callable[[np.ndarray], Search], largest: int) -> Search:
    """Return the grid of 0 and of the numbers up to a largest one that a golden-section search for the best tries."""
    search = fit(np.array([0]))

    def losses(sizes: Sequence[int]) -> Iterable[float]:
        nonlocal search
        search = search.joined(fit(np.array(sizes)))
        means = search.scores[np.searchsorted(search.sizes, sizes)].mean(axis=2)
        return list(-means.max(axis=1))

    if largest > 0:
        golden_section(losses, largest)
    return search


def checked_ridge(alpha: Any) -> float:
    """Return a validated ridge of `alphas`."""
    if not (is_real(alpha) and 0 <= alpha < np.inf):
        raise InvalidInputError(f'alphas must be "auto" or finite numbers >= 0, got {format_value(alpha)}')
    return float(alpha)
