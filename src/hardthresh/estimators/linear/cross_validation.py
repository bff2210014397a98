"""Estimators that choose the number of features and the ridge by cross-validation, and average models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from hardthresh.arrays import double, namespace, to_numpy, where_true
from hardthresh.certificates import ModelCertificate
from hardthresh.core.constraint import CoordinateBudget, coordinate_budget
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning, SearchRangeWarning, format_value, warn
from hardthresh.core.progress import progress_line
from hardthresh.core.solver import Solver
from hardthresh.core.state import Trace
from hardthresh.selection import (
    FoldPath,
    exponential_weights,
    generalized_fold_paths,
    least_squares_fold_paths,
    null_p_value,
    stacking_weights,
)
from hardthresh.selection.comparison import in_parallel, warn_at_range_end
from hardthresh.selection.grid import GridScores, standard_error
from hardthresh.solvers.start import starting_point
from hardthresh.solvers.subspace import FULL_SOLVE, refine

from ..base import is_real
from ..callbacks import FitTask, fit_method
from ..folds import CrossValidatedMixin, Metadata, Splits, candidates_of, check_rule, scorer_name, settings_for_folds
from ..soundness import check_present
from ..table import Table
from .grid_models import AveragedModel, FoldFits, Search, Units, check_model
from .held_out import calibration, held_out_scores
from .model import SparseLinearModel, is_given
from .null_comparison import NullComparison, are_counts, compare_with_none, mean_over_rows, rows_of_weight
from .problem import Problem

_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The ridges compared by default besides 0, times the curvature of the loss at the null model. On the choosing half of
the benchmark of prediction the mean relative risk is .498 with these, .500 with .03 besides, .501 without 3, and .506
with 0, .1, 1 and 30. For classes, which few features separate, a tenth of the default ridge and that ridge are compared
in the place of 0 and 10: of 48 splits of the real two-class sets of that half the geometric mean loss is .386, and .398
with the default ridge in the place of 0 alone."""
_FIRST_SIZES = (*range(11), 12, 14, 17, 20, 25, 30)
"""The numbers compared at first. On that half the mean relative risk is .498, and with all numbers up to 30 it is .499,
in twice the time."""
_MOST = 120
"""While the upper half of the range is better than the lower, by more than the standard error of their difference, the
range is doubled up to here, in three steps of equal ratios. On genotypes the error of the folds falls by 3 to 5 % from
30 to 140 features, and the fit takes ten times as long; beyond, time grows with more than the square."""
_ENTRIES = 1 << 22
"""Limit of the held-out predictions computed at a time: 32 MB."""


class SparseLinearModelCV(CrossValidatedMixin, SparseLinearModel):
    """Base of the ``...CV`` estimators. See the concrete classes."""

    def __init__(
        self,
        *,
        n_nonzero_coefs: str | int | Iterable[int] = "auto",
        groups: Any = None,
        n_nonzero_groups: str | int | Iterable[int] = "auto",
        alphas: str | float | Iterable[float] = "auto",
        averaging: str = "auto",
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        always_include: Any = None,
        positive: bool = False,
        bounds: Any = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.groups = groups
        self.n_nonzero_groups = n_nonzero_groups
        self.alphas = alphas
        self.averaging = averaging
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.always_include = always_include
        self.positive = positive
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, **params: Any) -> Self:
        """Compare numbers of features and ridges on held-out rows, then fit on all rows.

        1. Each fold standardises its own training rows, and fits all candidates with all ridges to them; nothing passes
           from fold to fold, and no held-out row has a say in what its fold fits. (The ridges of ``alphas="auto"`` are
           the same for all folds; except for least squares they depend on the mean of all targets.)
        2. If no candidate predicts held-out rows better than the model without features, the model is that one: see
           `found_`.
        3. Else the single best model is fitted to all rows, as without cross-validation. With `averaging` the model is
           an average of those of the grid, on all rows, and of its features those are kept that hold 99 % of the
           variance of its predictions.

        Parameters
        ----------
        X, y, sample_weight, offset :
            As for the estimator without cross-validation; weights and offsets are used in the scores too.
        **params : dict
            ``groups``, an array of shape (n_samples,): the group of each row, for a splitter that keeps groups
            together, such as ``cv=GroupKFold(5)``. (The parameter `groups` of the constructor is about columns.) With
            scikit-learn's metadata routing enabled, whatever the splitter and the scorer request.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As there, and for candidates, ridges or folds that cannot be used.

        Warns
        -----
        NothingFoundWarning
            If no number of features predicts better than none.
        SearchRangeWarning
            If the best number is the largest or the smallest of those that you gave, and others are possible beyond it:
            fewer than all columns that vary, and than the training rows of a fold. By default, if the range has been
            doubled up to its limit and its upper half is still better.

        Notes
        -----
        With the default solver all folds of least squares share their readings of the data, and all ridges of a fold
        its Gram matrix (`hardthresh.selection.least_squares_fold_paths`); other losses are refitted on the features
        that such a search chooses (`hardthresh.selection.generalized_fold_paths`). With groups, or another solver, a
        path with one ridge finds the features, each fit starting from the last one, and the other ridges are refitted
        on them; `n_jobs` and `max_iter` are about these.

        The test of step 2 is a heuristic. The gain of the best model over that without features, in held-out loss, has
        to be more than its standard error; and unless it is more than three of them, a permutation test of all columns
        (`hardthresh.selection.null_p_value`) has to reject, at the level .03, that there is nothing to find. With a
        scorer, or with groups of rows, the standard error is that over folds, and the test always has to reject; also
        with unequal weights that are not whole numbers. Weights that are count as repetitions of a row.
        """
        everything = self._validate_fit(X, y, sample_weight, offset)
        given = everything.weighted()
        table = self._encode(given)
        check_rule(self.rule)
        averaging = self._checked_averaging()
        if self.scoring is not None and offset is not None:
            raise InvalidInputError(
                "scorers cannot see an offset; use scoring=None, which scores by the loss, or no offset"
            )
        seed = self._seed()
        splits, score_params = self._row_folds(everything, given, params)
        self._check_classes(given, splits)
        problem = self._problem(table, 0).with_ridge(0.0)
        ridges = self._ridges(problem)
        candidates, search = self._search(table, problem, splits, score_params, ridges, seed)
        task = FitTask(self, given, len(candidates))
        grid = search.grid(candidates)
        row, ridge = grid.chosen(self.rule)
        single = search.place(int(candidates[row]), ridge)
        groups = params.get("groups")
        row_groups = None if groups is None else _numbered(np.asarray(groups)[everything.weighted_rows()])
        comparison = self._compared_with_none(search, single, problem, splits, table, row_groups, seed)
        self.found_, self.null_p_value_ = comparison.found, comparison.p_value
        if not self.found_ and candidates[0] == 0:
            row, averaging, single = 0, "none", (0, ridge)
        chosen = problem.with_ridge(float(ridges[ridge])).with_budget(int(candidates[row]))
        result = self._solve(chosen, None, seed)
        coef, intercept = (to_numpy(part) for part in chosen.coefficients(result.w))
        everywhere = search.everywhere.replaced(single, coef, float(intercept))
        search = replace(search, everywhere=everywhere)
        weights = self._weights(search, candidates, single, averaging, splits, table)
        noise = -float(grid.mean.max()) if self._loss.quadratic and self.scoring is None else np.inf
        weights = self._within(everywhere, weights, table, int(candidates[-1]), noise)
        self._keep_grid(grid, row, ridge, search, averaging, table)
        self._warn_useless_columns(problem, table.X)
        self._warn_of_choice(grid, problem, splits)
        self._keep(chosen, result)
        self._keep_models(search, weights, single, table, noise)
        self._keep_held_out(search, weights, splits, table, noise)
        self._keep_path(candidates, ridge, search, table, task)
        task.end()
        return self

    def certificate(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> ModelCertificate:
        """Return what is known about the quality of the fit: first-order conditions, and exchanges of features.

        An average of models minimises nothing; its certificate is about the single model with the best score,
        `best_model_`, and says so.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            As without cross-validation.

        Returns
        -------
        ModelCertificate
            ``print`` it to read it.

        Raises
        ------
        HardThreshError, ValueError
            As without cross-validation.
        """
        return super().certificate(X, y, sample_weight, offset)

    def _certify(self, problem: Problem, w: Any, support: Any, trace: Trace) -> ModelCertificate:
        certificate = super()._certify(problem, w, support, trace)
        if len(self.models_) == 1:
            return certificate
        k, alpha = self.best_model_.n_nonzero, self.best_model_.alpha
        subject = f"the best single model (k = {k}, ridge {alpha:.3g}), not the average of {len(self.models_)}"
        return replace(certificate, subject=subject)

    def _certified(self) -> tuple[np.ndarray, float]:
        best, coef = self.best_model_, np.zeros(self.n_features_in_)
        coef[best.support] = best.coef
        return coef, best.intercept

    def _check_settings(self) -> None:
        super()._check_settings()
        if not isinstance(self.alphas, str) and isinstance(self.alphas, Iterable):
            return  # an iterator can be read once
        if self.alphas != "auto":
            _checked_ridge(self.alphas)

    def _check_attributes(self) -> None:
        super()._check_attributes()
        check_present(self, "best_model_", "models_")
        for model in (self.best_model_, *self.models_):
            check_model(model, self.n_features_in_)

    def _checked_averaging(self) -> str:
        """Return how models are averaged."""
        if self.averaging not in ("auto", "none", "exponential", "stacking"):
            raise InvalidInputError(
                f'averaging must be "auto", "none", "exponential" or "stacking", got {format_value(self.averaging)}'
            )
        single = "a scorer" if self.scoring is not None else self.rule != "best" and f'rule="{self.rule}"'
        if self.averaging == "auto":
            return "none" if single else "exponential"
        if single and self.averaging != "none":
            raise InvalidInputError(
                f'averaging="{self.averaging}" weighs models by their loss, and {single} chooses one of them; use '
                'averaging="none"'
            )
        return self.averaging

    def _ridges(self, problem: Problem) -> np.ndarray:
        """Return the ridges to compare, increasing."""
        if isinstance(self.alphas, str):
            model = problem.objective
            at = starting_point(model, problem.constraint, None)[0]
            curvature = double(model.loss.curvature(model.y, at.prediction))
            mean = float(double(model.weights) @ np.broadcast_to(curvature, (double(model.weights).size,)))
            small = self._loss.default_ridge
            ridges = [0.1 * small, small] if small else [0.0, mean * _RIDGES[-1]]
            ridges += [mean * ridge for ridge in _RIDGES[:-1]]
        else:
            given = self.alphas if isinstance(self.alphas, Iterable) else [self.alphas]
            ridges = [_checked_ridge(alpha) for alpha in given]
        if not ridges:
            raise InvalidInputError("alphas is empty; give the ridges to compare, such as [0, 0.1, 1]")
        return np.unique(np.array(ridges))

    def _ridge(self) -> float:
        return float(getattr(self, "alpha_", 0.0))

    def _search(
        self,
        table: Table,
        problem: Problem,
        splits: Splits,
        score_params: list[Metadata],
        ridges: np.ndarray,
        seed: int,
    ) -> tuple[np.ndarray, Search]:
        """Return the candidates, of which there are more while the largest ones are the best, and their grid."""
        most, what = self._choices()
        name = self._k_name
        given = getattr(self, name)
        if given is None:
            self._checked_k(None)  # which says what to give
        automatic = not is_given(given)
        default = {min(size, most) for size in _FIRST_SIZES} if automatic else given
        candidates = candidates_of(default, most, self._checked_k, name, f"numbers of {what}", least=0)

        def fit(sizes: np.ndarray) -> Search:
            return self._fit_grid(table, problem, splits, score_params, sizes, ridges, seed)

        search = fit(np.union1d([0], candidates))
        self.range_extended_ = False
        bound = min(most, _MOST, max(_FIRST_SIZES[-1], self._largest_useful(problem, splits)))
        while automatic and candidates[-1] < bound:
            if not search.grid(candidates).ends_high:
                break
            last = int(candidates[-1])
            more = np.unique(np.minimum(np.round(last * 2.0 ** (np.arange(1, 4) / 3)).astype(int), bound))
            search, candidates = search.joined(fit(more)), np.concatenate([candidates, more])
            self.range_extended_ = True
        return candidates, search

    def _fit_grid(
        self,
        table: Table,
        problem: Problem,
        splits: Splits,
        score_params: list[Metadata],
        sizes: np.ndarray,
        ridges: np.ndarray,
        seed: int,
    ) -> Search:
        """Return the fits of all sizes with all ridges, and their held-out scores."""
        training = [*(train for train, _ in splits), np.arange(table.n_rows)]
        *folds, everywhere = self._fold_fits(table, problem, training, sizes, ridges, seed)
        scores = [
            self._scores(fold, table.take(test), params)
            for fold, (_, test), params in zip(folds, splits, score_params, strict=True)
        ]
        return Search(sizes, ridges, folds, everywhere, np.stack(scores, axis=2))

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
        objective = problem.objective
        selection = coordinate_budget(problem.constraint, tuple(objective.shape))
        with progress_line(bool(self.verbose), "folds", len(training)) as report:
            if self.solver == "auto" and selection is not None:
                report("together")
                fit_folds = least_squares_fold_paths if objective.traits.quadratic else generalized_fold_paths
                paths = fit_folds(
                    objective,
                    selection,
                    training,
                    sizes.tolist(),
                    ridges.tolist(),
                    intercept=self.fit_intercept,
                    standardize=self.standardize,
                    tol=self.tol,
                )
                return [FoldFits.of(path, problem, path.unconverged) for path in paths]
            folds = []
            tasks = ((table.take(train), sizes, ridges, seed) for train in training)
            fit_fold = settings_for_folds(self, self._k_name, "alphas")._fold
            for fold in in_parallel(fit_fold, tasks, self.n_jobs):
                folds.append(fold)
                report("")
            return folds

    def _fold(self, train: Table, sizes: np.ndarray, ridges: np.ndarray, seed: int) -> FoldFits:
        """Return paths fitted on the training rows alone: with one ridge, and with the others on the same features.

        Each fit of that path starts from the last one.
        """
        problem = self._problem(train, int(sizes[-1]))
        searched = (ridges.size - 1) // 3  # as in `least_squares_fold_paths`
        path = self._warm_path(problem.with_ridge(float(ridges[searched])), sizes.tolist(), seed)
        unconverged = [result.status.sentence for result in path if not result.converged]
        points = np.zeros((sizes.size, ridges.size, *path[0].w.shape))
        for row, (size, result) in enumerate(zip(sizes.tolist(), path, strict=True)):
            for column, ridge in enumerate(ridges.tolist()):
                refitted = result.w
                if column != searched:
                    other = problem.with_ridge(ridge).with_budget(size)
                    fit = refine(
                        other.objective,
                        other.constraint,
                        other.constraint.project(result.w),
                        cg_iterations=0,
                        rounds=FULL_SOLVE,
                    )
                    refitted = fit.projection.point
                points[row, column] = to_numpy(refitted)
        d = problem.mean.shape[0]
        intercepts = points[:, :, -1] if problem.intercept else np.zeros(points.shape[:2])
        columns = np.flatnonzero(points[:, :, :d].any(axis=(0, 1)))
        return FoldFits.of(FoldPath(columns, points[:, :, columns], intercepts), problem, unconverged)

    def _check_classes(self, table: Table, splits: Splits) -> None:
        """Check that no fold trains a classifier on one class."""
        for fold, (train, _) in enumerate(splits):
            if is_classifier(self) and np.unique(table.y[train]).size < 2:
                raise InvalidInputError(
                    f"fold {fold} of cv trains on rows of one class only; use fewer or stratified folds"
                )

    def _scores(self, fold: FoldFits, test: Table, params: Metadata) -> np.ndarray:
        """Return the held-out scores of all fits, shape (n_sizes, n_ridges): by the scorer, or minus the mean loss."""
        shape = fold.intercepts.shape
        coefs, intercepts = fold.flat()
        if self.scoring is not None:
            y = self._decode_target(test.y)
            fits = (fold.every(*fit, test) for fit in zip(coefs, intercepts, strict=True))
            scores = [self._score_by_scorer({**self._fitted(*fit), **self._labels()}, test, y, params) for fit in fits]
            return np.array(scores).reshape(shape)
        y, weights = double(test.y)[:, None], None if test.sample_weight is None else double(test.sample_weight)
        means = []
        size = max(1, _ENTRIES // test.n_rows)
        for start in range(0, intercepts.size, size):
            some = slice(start, start + size)
            losses = self._loss.value(y, fold.predict(test, coefs[some], intercepts[some]))
            means.append(np.average(losses, axis=0, weights=weights))
        return np.asarray(-self._loss.score_scale * np.concatenate(means).reshape(shape))

    def _held_out(
        self, fits: Sequence[tuple[np.ndarray, np.ndarray]], search: Search, splits: Splits, table: Table
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are held out, fold by fold, and the linear predictors of some fits there.

        `fits` has for each fold the coefficients of its columns as rows, and the intercepts; the predictors one column
        for each of these rows.
        """
        predictions = [
            fold.predict(table.take(test), *fit)
            for fold, (_, test), fit in zip(search.folds, splits, fits, strict=True)
        ]
        return np.concatenate([np.arange(table.n_rows)[test] for _, test in splits]), np.concatenate(predictions)

    def _compared_with_none(
        self,
        search: Search,
        single: tuple[int, int],
        problem: Problem,
        splits: Splits,
        table: Table,
        row_groups: np.ndarray | None,
        seed: int,
    ) -> NullComparison:
        """Return whether a single model predicts held-out rows better than the null model."""

        def p_value() -> float:
            model = problem.objective
            at = starting_point(model, problem.with_budget(0).constraint, None)[0]
            slope = double(model.weights) * double(model.loss.gradient(model.y, at.prediction))
            structure = problem.constraint.structure(tuple(model.shape))
            signs = structure.signs if isinstance(structure, CoordinateBudget) else None
            return null_p_value(model, slope, tuple(problem.constraint.free), signs, seed, row_groups)

        row, ridge = single
        if self.scoring is not None or row_groups is not None or row == 0:
            gains = search.scores[row, ridge] - search.scores[0, 0]
            return compare_with_none(float(gains.mean()), float(standard_error(gains)), p_value, clear=False)
        fits = [(fold.coefs[[0, row], [0, ridge]], fold.intercepts[[0, row], [0, ridge]]) for fold in search.folds]
        rows, u = self._held_out(fits, search, splits, table)
        y = double(table.y)[rows]
        gains = self._loss.score_scale * (self._loss.value(y, u[:, 0]) - self._loss.value(y, u[:, 1]))
        weights = self._row_weights(table)
        gain, error = mean_over_rows(gains, rows, weights)
        return compare_with_none(gain, error, p_value, clear=are_counts(weights) or np.ptp(weights) == 0)

    def _row_weights(self, table: Table) -> np.ndarray:
        return np.ones(table.n_rows) if table.sample_weight is None else double(table.sample_weight)

    def _weights(
        self,
        search: Search,
        candidates: np.ndarray,
        single: tuple[int, int],
        averaging: str,
        splits: Splits,
        table: Table,
    ) -> np.ndarray:
        """Return the weights of all models in the average, shape (n_sizes, n_ridges)."""
        rows, weights = np.searchsorted(search.sizes, candidates), np.zeros(search.scores.shape[:2])
        if averaging == "none":
            weights[single] = 1.0
            return weights
        if averaging == "exponential":
            deviance = -search.scores.mean(axis=2)[rows] * (2.0 / self._loss.score_scale)
            noise = max(float(deviance.min()), 1e-12 * float(np.abs(deviance).max())) or 1.0
            count = rows_of_weight(self._row_weights(table))
            dispersion = 1.0 if self._loss.classifies else noise
            weights[rows] = exponential_weights(deviance, candidates, count, dispersion)
            return weights
        held_out, u = self._held_out([fold.flat() for fold in search.folds], search, splits, table)
        models = np.zeros(weights.shape, dtype=bool)
        models[rows[candidates > 0]] = True
        stacked = stacking_weights(
            self._loss,
            double(table.y)[held_out],
            u[:, 0],
            u[:, models.ravel()],
            self._row_weights(table)[held_out],
        )
        weights[models] = stacked
        weights[0, 0] = 1.0 - stacked.sum()
        return weights

    def _within(self, fits: FoldFits, weights: np.ndarray, table: Table, most: int, noise: float) -> np.ndarray:
        """Return the weights of an average of at most so many features, or groups.

        If the thinned average has more of them, it is of the models of the largest weights that together have no more.
        """
        units = self._units()
        if np.count_nonzero(weights) == 1:
            return weights
        if units.count(fits.columns[fits.thinned_average(weights, table, units, noise)[0] != 0]) <= most:
            return weights
        kept, used = np.zeros_like(weights), np.zeros(fits.columns.size)
        for place in zip(*np.unravel_index(np.argsort(-weights, axis=None, kind="stable"), weights.shape), strict=True):
            with_it = used + (fits.coefs[place] != 0)
            if weights[place] > 0 and units.count(fits.columns[with_it != 0]) <= most:
                kept[place], used = weights[place], with_it
        return np.asarray(kept / kept.sum())

    def _units(self) -> Units:
        """Return what k counts."""
        always = np.zeros(self.n_features_in_, dtype=bool)
        always[list(self._always())] = True
        if self.groups is None:
            return Units(np.arange(self.n_features_in_), always)
        number: dict[Any, int] = {}
        return Units(np.array([number.setdefault(label, len(number)) for label in self._group_labels()]), always)

    def _keep_grid(self, grid: GridScores, row: int, ridge: int, search: Search, averaging: str, table: Table) -> None:
        """Set the attributes about the comparison."""
        for name in ("best_n_nonzero_coefs_", "best_n_nonzero_groups_"):
            self.__dict__.pop(name, None)  # of a fit with other settings

        def like(array: np.ndarray) -> Any:
            return table.to_backend(array.copy())

        self.candidates_, self.alphas_ = like(grid.sizes), like(grid.ridges)
        self.grid_scores_, self.scores_ = like(grid.scores), like(grid.scores[:, ridge])
        self.mean_scores_, self.standard_errors_ = like(grid.mean[:, ridge]), like(grid.standard_error[:, ridge])
        self.null_scores_ = like(search.scores[0, 0])
        self.one_standard_error_ = int(grid.sizes[grid.one_standard_error[0]])
        self.scorer_name_ = scorer_name(self.scoring, self._loss.score_name)
        self.alpha_, self.averaging_ = float(grid.ridges[ridge]), averaging
        setattr(self, f"best_{self._k_name}_", int(grid.sizes[row]))
        reasons = [reason for fold in search.folds for reason in fold.unconverged]
        if reasons:
            warn(
                f"{len(reasons)} of {search.scores.size} fits inside the folds did not converge: {reasons[0]}",
                ConvergenceWarning,
            )

    def _warn_of_choice(self, grid: GridScores, problem: Problem, splits: Splits) -> None:
        """Warn if nothing was found, or if the best number is at an end of a range that was given."""
        most, what = self._choices()
        largest = self._largest_useful(problem, splits)
        if not self.found_:
            test = ""
            if not np.isnan(self.null_p_value_):
                test = f", and random orders of the rows do as well in {self.null_p_value_:.1%} of the cases"
            best = grid.mean[grid.sizes > 0].max(initial=-np.inf)
            none = float(np.mean(to_numpy(self.null_scores_)))
            outcome = f"the model has none{' but those always included' * bool(self._always())}"
            warn(
                f"no number of {what} predicts clearly better than none: the best held-out score is {best:.4g}, that "
                f"of none {none:.4g}{test}; "
                + (outcome if grid.sizes[0] == 0 else f"add 0 to {self._k_name} for a model without any"),
                NothingFoundWarning,
            )
        elif is_given(getattr(self, self._k_name)):
            warn_at_range_end(grid.sizes, grid.best[0], largest, f"number of {what}")
        elif grid.ends_high and grid.sizes[-1] < min(most, largest):
            warn(
                f"more {what} than the {int(grid.sizes[-1])} that are compared by default may predict better; give "
                f"{self._k_name}, for example [0, 30, 60, {min(2 * int(grid.sizes[-1]), most, largest)}]",
                SearchRangeWarning,
            )

    def _keep_models(
        self, search: Search, weights: np.ndarray, single: tuple[int, int], table: Table, noise: float
    ) -> None:
        """Set the best single model, the models of the average, and the average, if there is one."""
        fits, models = search.everywhere, {}
        for place in {single, *zip(*(axis.tolist() for axis in np.nonzero(weights)), strict=True)}:
            some = np.flatnonzero(fits.coefs[place])
            models[place] = AveragedModel(
                int(search.sizes[place[0]]),
                float(search.ridges[place[1]]),
                float(weights[place]),
                fits.columns[some],
                fits.coefs[place][some],
                float(fits.intercepts[place]),
            )
        self.best_model_ = models[single]
        averaged = (model for _, model in sorted(models.items()) if model.weight)
        self.models_ = tuple(sorted(averaged, key=lambda model: -model.weight))
        if len(self.models_) == 1 and self.models_[0] is self.best_model_:
            return
        units = self._units()
        coef, intercept = fits.every(*fits.thinned_average(weights, table, units, noise), table)
        bounds = self._bounds(table)
        coef = coef if bounds is None else bounds.clip(coef)  # an average is within them but for rounding
        for name, value in self._fitted(coef, intercept).items():
            setattr(self, name, value)
        self.support_ = where_true((coef != 0) | table.to_backend(units.always))
        support = to_numpy(self.support_)
        counted = support[~units.always[support]].tolist()
        if self.groups is None:
            self.n_nonzero_coefs_ = len(counted)
        else:
            labels = self._group_labels()
            self.groups_ = tuple(dict.fromkeys(labels[j] for j in counted))
            self.n_nonzero_groups_ = len(self.groups_)

    def _keep_held_out(self, search: Search, weights: np.ndarray, splits: Splits, table: Table, noise: float) -> None:
        """Set what the models of the folds, made as that of all rows, choose, and how they predict held-out rows."""
        units, averaged = self._units(), np.count_nonzero(weights) > 1
        votes, fits = np.zeros(self.n_features_in_), []
        for fold, (train, _) in zip(search.folds, splits, strict=True):
            rows = table.take(train)
            within = self._within(fold, weights, rows, int(search.sizes[-1]), noise)
            coef, intercept = fold.thinned_average(within, rows, units, noise) if averaged else fold.average(weights)
            votes[fold.columns] += coef != 0
            fits.append((coef[None, :], np.array([intercept])))
        self.selection_frequency_ = table.to_backend(votes / len(search.folds))
        held_out, u = self._held_out(fits, search, splits, table)
        y, weight = double(table.y)[held_out], self._row_weights(table)[held_out]
        self.held_out_scores_ = held_out_scores(self._loss, y, u[:, 0], weight)
        self.calibration_ = table.to_backend(calibration(self._loss, y, u[:, 0], weight))

    def _keep_path(self, candidates: np.ndarray, ridge: int, search: Search, table: Table, task: FitTask) -> None:
        """Set the coefficients of all candidates with the chosen ridge, and report them to callbacks."""
        rows, everywhere = np.searchsorted(search.sizes, candidates), search.everywhere
        fits = [
            everywhere.every(everywhere.coefs[row, ridge], everywhere.intercepts[row, ridge], table) for row in rows
        ]
        for coef, intercept in fits:
            task.done("candidate", partial(self._fitted, coef, intercept))
        coefs = [coef for coef, _ in fits]
        self.coefs_path_ = namespace(*coefs).stack(coefs)

    def _largest_useful(self, problem: Problem, splits: Splits) -> int:
        """Return the number beyond which more features, or groups, cannot make a difference.

        That is all that vary, or as many as fit the training rows of a fold exactly.
        """
        always = list(self._always())
        most = self._choices()[0]
        if not problem.grouped:
            varies = to_numpy(problem.inverse_scale) != 0
            varies[always] = False
            most = int(np.count_nonzero(varies))
        fewest_rows = min(train.size for train, _ in splits)
        return min(most, fewest_rows - len(always) - bool(self.fit_intercept))


def _numbered(labels: np.ndarray) -> np.ndarray:
    """Return the number of each label."""
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _checked_ridge(alpha: Any) -> float:
    if not (is_real(alpha) and 0 <= alpha < np.inf):
        raise InvalidInputError(f'alphas must be "auto" or finite numbers >= 0, got {format_value(alpha)}')
    return float(alpha)
