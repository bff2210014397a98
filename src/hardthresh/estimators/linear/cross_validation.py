"""Estimators that choose the number of features and the ridge by cross-validation, and average models."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.arrays import namespace, to_numpy
from hardthresh.certificates import ModelCertificate
from hardthresh.core.errors import InvalidInputError, NothingFoundWarning, SearchRangeWarning, format_value, warn
from hardthresh.core.solver import Solver
from hardthresh.core.state import Trace
from hardthresh.selection.averaging import Expendable
from hardthresh.selection.comparison import warn_at_range_end
from hardthresh.selection.grid import GridScores

from ..blocked import BlockTable
from ..callbacks import FitTask, fit_method
from ..folds import Metadata, check_rule, check_without_folds, scorer_name
from ..soundness import check_present
from ..table import Table
from .averages import within_budget
from .block_splits import BlockSplits, block_splits
from .choosing import is_given
from .criterion_choice import CriterionChoice
from .grid_models import AveragedModel, Search, Units, check_model
from .grid_search import checked_ridge
from .prediction import PredictionModel
from .problem import Problem, features_of
from .row_splits import RowSplits


class SparseLinearModelCV(CriterionChoice):
    """Base of the ``...CV`` estimators. See the concrete classes."""

    _needs_all_rows = (
        "numbers of features are compared on folds of all rows; use the model without CV, with a number of features"
    )

    def __init__(
        self,
        *,
        n_nonzero_coefs: str | int | Iterable[int] = "auto",
        groups: Any = None,
        n_nonzero_groups: str | int | Iterable[int] = "auto",
        criterion: str = "cv",
        ebic_gamma: float = 1.0,
        n_features_original: int | None = None,
        max_nonzero_coefs: int | None = None,
        alphas: str | float | Iterable[float] = "auto",
        averaging: str = "auto",
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        always_include: Any = None,
        positive: bool = False,
        bounds: Any = None,
        categorical_features: Any = "from_dtype",
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
        self.criterion = criterion
        self.ebic_gamma = ebic_gamma
        self.n_features_original = n_features_original
        self.max_nonzero_coefs = max_nonzero_coefs
        self.alphas = alphas
        self.averaging = averaging
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.always_include = always_include
        self.positive = positive
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, **params: Any) -> Self:
        """Compare numbers of features and ridges on held-out rows, then fit on all rows.

        With a `criterion` other than "cv" there are no folds, and the criterion compares fits to all rows. With "cv":

        1. In each fold, the training rows are standardised and all candidates are fitted with all ridges. The fits of a
           fold depend only on its training rows. (The ridges of ``alphas="auto"`` are the same for all folds; except
           for least squares they depend on the mean of all targets.)
        2. If no candidate predicts held-out rows better than the model without features, the final model has no
           features; see `found_`.
        3. Otherwise the single best model is fitted to all rows, as without cross-validation. With `averaging`, the
           models of the grid are fitted to all rows and averaged, and the features that explain 99 % of the variance of
           the predictions are kept; with 20,000 rows or more, a share of 1 - sqrt(2/n).

        Parameters
        ----------
        X, y, sample_weight, offset :
            As for the estimator without cross-validation. The scores use the weights and offsets too.
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
            As for the estimator without cross-validation, and for invalid candidates, ridges or folds.

        Warns
        -----
        NothingFoundWarning
            If no model with features predicts better, or has a better criterion, than the model without features; also
            if `alphas` are so large that no feature lowers the objective by more than the relative tolerance `tol`.
        SearchRangeWarning
            If the best number is the largest or the smallest of the given numbers, and numbers beyond it are possible
            (fewer than the columns that vary, and than the training rows of a fold). With "auto", if the range was
            extended to its limit and its upper half is still better.
        CriterionWarning
            If the criterion is AIC, BIC or GIC, and there are more columns than rows.

        Notes
        -----
        With the default solver, all folds of least squares share their data passes, and all ridges of a fold share its
        Gram matrix (`hardthresh.selection.least_squares_fold_paths`). Other losses are refitted on the features that
        such a search chooses; losses with a log link also on the features that it chooses near the largest of these
        fits (`hardthresh.selection.generalized_fold_paths`). For several outputs or classes, groups, censored times and
        ordered classes, folds do not share data passes: quadratic models of each fold, at the fits of 0, 4, 10, ...
        features and one of the ridges, choose the features of the larger fits, and all ridges are refitted on these
        features. With another solver, a path with one of the ridges chooses the features, and each fit starts from the
        previous one; `n_jobs` and `max_iter` apply to these fits only.

        The test of step 2 is a heuristic. The best model has to lower the held-out loss of the model without features
        by more than one standard error. If it lowers it by at most three standard errors, a permutation test of all
        columns (`hardthresh.selection.null_p_value`) also has to reject, at the level 0.03, the hypothesis that no
        feature predicts the target. With a scorer, or with groups of rows, the standard error is that over folds, and
        the test is always required; so it is with unequal weights that are not whole numbers. Whole-number weights are
        repetitions of a row.

        Tables in blocks are supported for losses of one prediction per row without a kink, several outputs of least
        squares, and more than two classes with at most 256 columns. The folds are those of the fold column of the
        blocks. Without a fold column, `cv` folds are drawn from `random_state`, the number of the block and the index
        of the row in it, so that they do not depend on the engine. All folds share each pass over the table, because
        the sums over the rows of each fold are kept separately. With 5 folds and 1 to 30 features, least squares and
        two classes take at most 6 passes, several outputs two, and more than two classes one. Other losses, an offset
        and always-included features take one or two more. Ridges, averages, `rule` and the final fit are as in memory.
        Results that need all rows in memory are absent: there is no permutation test, so the gain has to exceed three
        standard errors; there is no `calibration_`, no area under the ROC curve, and, except for least squares without
        an offset, no calibration slope. Parameters of a loss have to be given, and splitters, groups of rows, scorers
        and stacking raise an error.
        """
        return self._fit(X, y, sample_weight, offset, **params)

    def _fit(self, X: Any, y: Any, sample_weight: Any, offset: Any, **params: Any) -> Self:
        """Compare, and fit: what `fit` does, once subclasses have read what they take besides."""
        if self.criterion != "cv":
            check_without_folds(self, params)
            return super()._fit(X, y, sample_weight, offset)
        everything = self._validate_fit(X, y, sample_weight, offset)
        given = everything.weighted()
        table: Any = self._encode(given)
        check_rule(self.rule)
        splits = self._splits(everything, given, params)
        table = splits.described(table)
        loss = self._fold_loss(table)
        prediction = self._prediction_model(loss, table)
        averaging = self._checked_averaging(prediction)
        if self.scoring is not None and offset is not None:
            raise InvalidInputError(
                "scorers cannot see an offset; use scoring=None, which scores by the loss, or no offset"
            )
        seed = self._seed()
        table, problem = splits.divided(table, self._problem)
        problem = problem.with_ridge(0.0).with_loss(loss)
        ridges = self._ridges(problem, prediction)
        candidates, search = self._search(table, problem, splits, ridges, seed)
        task = FitTask(self, given, len(candidates))
        grid = search.grid(candidates)
        row, ridge = grid.chosen(self.rule)
        single = search.place(int(candidates[row]), ridge)
        comparison = splits.compared_with_none(self, search, single, problem, table, seed)
        self.found_, self.null_p_value_ = comparison.found, comparison.p_value
        if not self.found_ and candidates[0] == 0:
            row, averaging, single = 0, "none", (0, ridge)
        chosen = problem.with_ridge(float(ridges[ridge])).with_budget(int(candidates[row]))
        chosen, result = self._settled(chosen, None, seed)
        coef, intercept = (to_numpy(part) for part in chosen.coefficients(result.w))
        everywhere = search.everywhere.replaced(single, coef, intercept)
        search = replace(search, everywhere=everywhere)
        weights = self._weights(search, candidates, single, averaging, splits, table)
        noise = np.inf
        if self.scoring is None:
            noise = prediction.noise(-float(grid.mean.max()) * (2.0 / prediction.score_scale))
        expendable = Expendable(noise, splits.n_rows(table))
        weights = within_budget(everywhere, weights, table, self._units(), int(candidates[-1]), expendable)
        self._keep_grid(grid, row, ridge, search, averaging, table)
        self._warn_useless_columns(problem, table.X)
        self._warn_of_choice(grid, problem, splits)
        self._keep(chosen, result)
        self._keep_models(search, weights, single, table, expendable)
        if candidates[-1] > 0 and (len(self.models_) == 1 or not self.best_model_.support.size):
            self._warn_hidden(chosen, result)
        self._keep_held_out(search, weights, splits, table, expendable)
        self._keep_path(candidates, ridge, search, table, task)
        chosen.end_fit()
        task.end()
        return self

    def certificate(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> ModelCertificate:
        """Check the quality of the fit: first-order optimality conditions, and exchanges of features.

        An average of models is not the minimiser of an objective, so its certificate describes the single model with
        the best score, `best_model_`.

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
        return replace(super()._certify(problem, w, support, trace), subject=self._subject())

    def _subject(self) -> str:
        if len(self.models_) == 1:
            return ""
        k, alpha = self.best_model_.n_nonzero, self.best_model_.alpha
        return f"the best single model (k = {k}, ridge {alpha:.3g}), not the average of {len(self.models_)}"

    def _certified(self) -> tuple[np.ndarray, Any]:
        best = self.best_model_
        coef = np.zeros((*best.coef.shape[:-1], self._n_columns))
        coef[..., best.support] = best.coef
        return coef, best.intercept

    def _check_settings(self) -> None:
        super()._check_settings()
        if not isinstance(self.alphas, str) and isinstance(self.alphas, Iterable):
            return  # an iterator can be read once
        if self.alphas != "auto":
            checked_ridge(self.alphas)

    def _check_attributes(self) -> None:
        super()._check_attributes()
        check_present(self, "best_model_", "models_")
        for model in (self.best_model_, *self.models_):
            check_model(model, self._n_columns)

    def _checked_averaging(self, prediction: PredictionModel) -> str:
        """Return how models are averaged."""
        if self.averaging not in ("auto", "none", "exponential", "stacking"):
            raise InvalidInputError(
                f'averaging must be "auto", "none", "exponential" or "stacking", got {format_value(self.averaging)}'
            )
        single = "a scorer" if self.scoring is not None else self.rule != "best" and f'rule="{self.rule}"'
        if self._overlapping:
            if self.averaging not in ("auto", "none"):
                raise InvalidInputError(
                    f'averaging="{self.averaging}" has no number of groups if these overlap; use averaging="none"'
                )
            single = "overlapping groups"
        if self.averaging == "auto":
            return "none" if single else "exponential"
        if single and self.averaging != "none":
            raise InvalidInputError(
                f'averaging="{self.averaging}" weighs models by their loss, and {single} chooses one of them; use '
                'averaging="none"'
            )
        if self.averaging == "stacking" and not prediction.by_row:
            raise InvalidInputError(
                f'averaging="stacking" needs a loss for each row, and the score "{prediction.score_name}" is no mean '
                'over rows; use averaging="exponential"'
            )
        return self.averaging

    def _ridge(self) -> float:
        return float(getattr(self, "alpha_", 0.0))

    def _has_ridge(self) -> bool:
        if isinstance(self.alphas, str):
            return self._loss.default_ridge > 0
        if not isinstance(self.alphas, Iterable):
            return float(self.alphas) > 0
        if not isinstance(self.alphas, Sized):
            return False  # it can be read once, and is not known yet
        return bool(min(self.alphas, default=0.0) > 0)

    def _splits(self, everything: Table, given: Table, params: Metadata) -> RowSplits | BlockSplits:
        """Return the folds of the given rows, which have positive weight."""
        if isinstance(given, BlockTable):
            return block_splits(self, given, params)
        splits, score_params = self._row_folds(everything, given, params)
        self._check_classes(given, splits)
        groups = params.get("groups")
        kept = None if groups is None else np.asarray(groups)[everything.weighted_rows()]
        return RowSplits(splits, score_params, None if kept is None else np.unique(kept, return_inverse=True)[1])

    def _weights(
        self,
        search: Search,
        candidates: np.ndarray,
        single: tuple[int, int],
        averaging: str,
        splits: RowSplits | BlockSplits,
        table: Any,
    ) -> np.ndarray:
        """Return the weights of all models in the average, shape (n_sizes, n_ridges)."""
        if averaging == "none":
            weights = np.zeros(search.scores.shape[:2])
            weights[single] = 1.0
            return weights
        return splits.average(search, candidates, averaging, table)

    def _units(self) -> Units:
        """Return what k counts."""
        always = np.zeros(self._n_columns, dtype=bool)
        always[list(self._always())] = True
        if self.groups is None or self._overlapping:  # of which there are no averages
            return Units(self._features, always)
        number: dict[Any, int] = {}
        return Units(np.array([number.setdefault(label, len(number)) for label in self._group_labels()]), always)

    def _keep_grid(self, grid: GridScores, row: int, ridge: int, search: Search, averaging: str, table: Table) -> None:
        """Set the attributes about the comparison."""
        for name in ("best_n_nonzero_coefs_", "best_n_nonzero_groups_", "criterion_path_"):
            self.__dict__.pop(name, None)  # of a fit with other settings

        def like(array: np.ndarray) -> Any:
            return table.to_backend(array.copy())

        self.candidates_, self.alphas_ = like(grid.sizes), like(grid.ridges)
        self.grid_scores_, self.scores_ = like(grid.scores), like(grid.scores[:, ridge])
        self.mean_scores_, self.standard_errors_ = like(grid.mean[:, ridge]), like(grid.standard_error[:, ridge])
        self.null_scores_ = like(search.scores[0, 0])
        self.one_standard_error_ = int(grid.sizes[grid.one_standard_error[0]])
        self.scorer_name_ = scorer_name(self.scoring, search.everywhere.prediction.score_name)
        self.alpha_, self.averaging_ = float(grid.ridges[ridge]), averaging
        setattr(self, f"best_{self._k_name}_", int(grid.sizes[row]))
        reasons = [reason for fold in search.folds for reason in fold.unconverged]
        if reasons:
            warn(
                f"{len(reasons)} of {search.scores.size} fits inside the folds did not converge: {reasons[0]}",
                ConvergenceWarning,
            )

    def _warn_of_choice(self, grid: GridScores, problem: Problem, splits: RowSplits | BlockSplits) -> None:
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
        self, search: Search, weights: np.ndarray, single: tuple[int, int], table: Table, expendable: Expendable
    ) -> None:
        """Set the best single model, the models of the average, and the average, if there is one."""
        fits = search.everywhere
        models: dict[tuple[int, int], AveragedModel] = {}
        for place in {single, *zip(*(axis.tolist() for axis in np.nonzero(weights)), strict=True)}:
            some, intercept = np.flatnonzero(features_of(fits.coefs[place])), fits.intercepts[place]
            models[place] = AveragedModel(
                int(search.sizes[place[0]]),
                float(search.ridges[place[1]]),
                float(weights[place]),
                fits.columns[some],
                fits.coefs[place][..., some],
                intercept if np.ndim(intercept) else float(intercept),
            )
        self.best_model_ = models[single]
        averaged = (model for _, model in sorted(models.items()) if model.weight)
        self.models_ = tuple(sorted(averaged, key=lambda model: -model.weight))
        if len(self.models_) == 1 and self.models_[0] is self.best_model_:
            return
        units = self._units()
        coef, intercept = fits.every(*fits.thinned_average(weights, table, units, expendable), table)
        bounds = self._bounds(table)
        coef = coef if bounds is None else bounds.clip(coef)  # an average is within them up to rounding
        for name, value in self._fitted(coef, intercept).items():
            setattr(self, name, value)
        support = np.flatnonzero(features_of(to_numpy(coef)) | units.always)
        self.support_ = table.to_backend(support)
        counted = support[~units.always[support]].tolist()
        if self.groups is None:
            self.n_nonzero_coefs_ = units.count(support)
        else:
            labels = self._group_labels()
            self.groups_ = tuple(dict.fromkeys(labels[j] for j in counted))
            self.n_nonzero_groups_ = len(self.groups_)

    def _keep_held_out(
        self, search: Search, weights: np.ndarray, splits: RowSplits | BlockSplits, table: Any, expendable: Expendable
    ) -> None:
        """Set what the models of the folds, made as that of all rows, choose, and how they predict held-out rows."""
        units, averaged = self._units(), np.count_nonzero(weights) > 1
        votes, fits = np.zeros(self._n_columns), []
        for fold, rows in zip(search.folds, splits.training_tables(table), strict=True):
            within = within_budget(fold, weights, rows, units, int(search.sizes[-1]), expendable)
            coef, intercept = (
                fold.thinned_average(within, rows, units, expendable) if averaged else fold.average(weights)
            )
            votes[fold.columns] += features_of(coef)
            fits.append((coef[None], intercept[None]))
        self.selection_frequency_ = table.to_backend(votes / len(search.folds))
        found = splits.held_out(self, search, fits, table)
        self.held_out_scores_ = found.scores
        for name in ("calibration_", "_held_out_rows"):
            self.__dict__.pop(name, None)
        if found.rows is not None:
            self._held_out_rows = self._shown(found.rows, table)
        if found.calibration is not None:
            self.calibration_ = table.to_backend(found.calibration)

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
        self.intercepts_path_ = table.to_backend(np.array([to_numpy(intercept) for _, intercept in fits]))
