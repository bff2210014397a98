"""Estimators that choose the number of features by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from hardthresh.arrays import gather, move, namespace, to_numpy
from hardthresh.core.constraint import coordinate_budget
from hardthresh.core.errors import InvalidInputError
from hardthresh.core.progress import progress_line
from hardthresh.core.solver import Solver
from hardthresh.selection import FoldPath, least_squares_fold_paths
from hardthresh.selection.comparison import Comparison, in_parallel, score_fits, warn_at_range_end

from ..base import numpy_dtype
from ..callbacks import FitTask, fit_method
from ..folds import (
    CrossValidatedMixin,
    Metadata,
    Splits,
    candidates_of,
    check_rule,
    keep_comparison,
    scorer_name,
    settings_for_folds,
)
from ..table import Table
from .model import SparseLinearModel
from .problem import Problem


@dataclass(frozen=True, slots=True)
class FoldFits:
    """The fits of one fold's training rows, on the scale of the data.

    Attributes
    ----------
    columns : array of int
        The features that any of the fits uses, increasing.
    coefs : array, shape (n_candidates, n_columns)
        Their coefficients.
    intercepts : array, shape (n_candidates,)
        The intercepts.
    unconverged : list of str
        Why fits did not converge.
    """

    columns: np.ndarray
    coefs: np.ndarray
    intercepts: np.ndarray
    unconverged: list[str]

    @classmethod
    def of(cls, path: FoldPath, problem: Problem, unconverged: list[str]) -> FoldFits:
        """Return the fits of a path of points, on the scale of the data."""
        features = move(path.columns, problem.mean)
        scale, mean = (to_numpy(gather(x, features)) for x in (problem.inverse_scale, problem.mean))
        coefs = path.coefs * scale
        intercepts = path.intercepts - coefs @ mean
        return cls(path.columns, coefs, intercepts + problem.level if problem.level else intercepts, unconverged)

    def coefficients(self, row: int, table: Table) -> tuple[Any, Any]:
        """Return all coefficients and the intercept of one fit, in the library and on the device of a table."""
        coef = np.zeros(table.X.shape[1], dtype=numpy_dtype(table.X))
        coef[self.columns] = self.coefs[row]
        return table.to_backend(coef), table.to_backend(np.asarray(self.intercepts[row], dtype=coef.dtype))


class SparseLinearModelCV(CrossValidatedMixin, SparseLinearModel):
    """Base of the ``...CV`` estimators. See the concrete classes."""

    def __init__(
        self,
        *,
        n_nonzero_coefs: int | Iterable[int] | None = None,
        groups: Any = None,
        n_nonzero_groups: int | Iterable[int] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        alpha: float | None = None,
        always_include: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_nonzero_coefs=n_nonzero_coefs,
            groups=groups,
            n_nonzero_groups=n_nonzero_groups,
            alpha=alpha,
            always_include=always_include,
            positive=positive,
            fit_intercept=fit_intercept,
            standardize=standardize,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, **params: Any) -> Self:
        """Choose the number of features, then fit on all data with it.

        Each fold standardises its own training rows and walks from the smallest candidate to the largest; nothing
        passes from fold to fold, and no held-out row has a say in what its fold fits. For least squares with the
        default solver all folds share their work (`hardthresh.selection.least_squares_fold_paths`), otherwise
        each fit starts from the last one of the same fold; `n_jobs` and `max_iter` are about these. The final fit is
        that of the chosen number alone, as without cross-validation: its search goes further than that of the folds.

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
            As there, and for candidates or folds that cannot be used.

        Warns
        -----
        SearchRangeWarning
            If the best number is the largest or the smallest compared, and others are possible beyond it: fewer than
            all columns that vary, and than the training rows of a fold.
        """
        everything = self._validate_fit(X, y, sample_weight, offset)
        given = everything.weighted()
        table = self._encode(given)
        candidates = self._candidates()
        check_rule(self.rule)
        if self.scoring is not None and offset is not None:
            raise InvalidInputError(
                "scorers cannot see an offset; use scoring=None, which scores by the loss, or no offset"
            )
        seed = self._seed()
        splits, score_params = self._row_folds(everything, given, params)
        self._check_classes(given, splits)
        task = FitTask(self, given, len(candidates))
        problem = self._problem(table, int(candidates[-1]))
        rows = np.arange(table.n_rows)
        *folds, everywhere = self._fold_paths(table, problem, [*(train for train, _ in splits), rows], candidates, seed)

        def score(fold: int, fits: FoldFits) -> Any:
            return self._scores(fits, table.take(splits[fold][1]), score_params[fold])

        fits = ((fold, fold.unconverged) for fold in folds)
        comparison = score_fits(candidates.tolist(), range(len(folds)), fits, score)
        chosen = problem.with_budget(self._choose(comparison, folds, table))
        result = self._solve(chosen, None, seed)
        what = f"number of {self._choices()[1]}"
        warn_at_range_end(candidates, comparison.best, self._largest_useful(problem, splits), what)
        self._warn_useless_columns(problem, table.X)
        self._keep(chosen, result)
        self._keep_path(candidates, everywhere, table, task)
        task.end()
        return self

    def _keep_path(self, candidates: np.ndarray, everywhere: FoldFits, table: Table, task: FitTask) -> None:
        """Set the coefficients of all candidates, and report them to callbacks."""
        fits = [everywhere.coefficients(row, table) for row in range(candidates.size)]
        problem, result, _ = self._training  # type: ignore[misc]
        fits[int(np.flatnonzero(candidates == problem.constraint.k)[0])] = problem.coefficients(result.w)
        for coef, intercept in fits:
            task.done("candidate", partial(self._fitted, coef, intercept))
        coefs = [coef for coef, _ in fits]
        self.coefs_path_ = namespace(*coefs).stack(coefs)

    def _fold_paths(
        self, table: Table, problem: Problem, training: list[np.ndarray], candidates: np.ndarray, seed: int
    ) -> list[FoldFits]:
        """Return the fits of every fold; none depends on another fold."""
        objective = problem.objective
        selection = coordinate_budget(problem.constraint, tuple(objective.shape))
        with progress_line(bool(self.verbose), "folds", len(training)) as report:
            if self.solver == "auto" and objective.traits.quadratic and selection is not None:
                report("together")
                paths = least_squares_fold_paths(
                    objective,
                    selection,
                    training,
                    candidates.tolist(),
                    intercept=self.fit_intercept,
                    standardize=self.standardize,
                    tol=self.tol,
                )
                return [FoldFits.of(path, problem, []) for path in paths]
            folds = []
            tasks = ((table.take(train), candidates, seed) for train in training)
            fit_fold = settings_for_folds(self, self._k_name)._fold
            for fold in in_parallel(fit_fold, tasks, self.n_jobs):
                folds.append(fold)
                report("")
            return folds

    def _candidates(self) -> np.ndarray:
        """Return the numbers of features, or of groups, to compare, increasing."""
        most, what = self._choices()
        name = self._k_name
        return candidates_of(getattr(self, name), min(30, most), self._checked_k, name, f"numbers of {what}")

    def _check_classes(self, table: Table, splits: Splits) -> None:
        """Check that no fold trains a classifier on one class."""
        for fold, (train, _) in enumerate(splits):
            if is_classifier(self) and np.unique(table.y[train]).size < 2:
                raise InvalidInputError(
                    f"fold {fold} of cv trains on rows of one class only; use fewer or stratified folds"
                )

    def _fold(self, train: Table, candidates: np.ndarray, seed: int) -> FoldFits:
        """Return a path fitted on the training rows alone, each fit starting from the last one."""
        problem = self._problem(train, int(candidates[-1]))
        results = self._warm_path(problem, candidates.tolist(), seed)
        points = np.stack([to_numpy(result.w) for result in results])
        intercepts = points[:, -1] if problem.intercept else np.zeros(len(results))
        columns = np.flatnonzero(points[:, : problem.mean.shape[0]].any(axis=0))
        unconverged = [result.status.sentence for result in results if not result.converged]
        return FoldFits.of(FoldPath(columns, points[:, columns], intercepts), problem, unconverged)

    def _scores(self, fold: FoldFits, test: Table, params: Metadata) -> Any:
        """Return the score of each candidate on held-out rows: by the scorer, or minus the mean loss."""
        if self.scoring is not None:
            y = self._decode_target(test.y)
            fits = (fold.coefficients(row, test) for row in range(fold.intercepts.size))
            return [self._score_by_scorer({**self._fitted(*fit), **self._labels()}, test, y, params) for fit in fits]
        coefs = test.to_backend(fold.coefs.T.astype(numpy_dtype(test.X)))
        u = to_numpy(test.matrix(test.to_backend(fold.columns)) @ coefs) + fold.intercepts
        u = u if test.offset is None else u + to_numpy(test.offset)[:, None]
        losses = self._loss.score_scale * self._loss.value(to_numpy(test.y)[:, None], u)
        weights = None if test.sample_weight is None else to_numpy(test.sample_weight)
        return -np.average(losses, axis=0, weights=weights)

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

    def _choose(self, comparison: Comparison, folds: list[FoldFits], table: Table) -> int:
        """Set the attributes of the comparison, and return the chosen number."""
        for name in ("best_n_nonzero_coefs_", "best_n_nonzero_groups_"):
            self.__dict__.pop(name, None)  # of a fit with other settings
        row = comparison.chosen(self.rule)
        chosen = np.zeros((len(folds), self.n_features_in_))
        for fold, taken in zip(folds, chosen, strict=True):
            taken[fold.columns[fold.coefs[row] != 0]] = 1.0
        self.selection_frequency_ = table.to_backend(chosen.mean(axis=0))
        scorer = scorer_name(self.scoring, self._loss.score_name)
        return keep_comparison(self, comparison, row, self._k_name, scorer, table.to_backend)
