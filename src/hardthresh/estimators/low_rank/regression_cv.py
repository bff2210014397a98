"""Reduced-rank regression with the rank chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf, log
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hardthresh.core.checking import checked_word
from hardthresh.core.errors import CriterionWarning, InvalidInputError, warn
from hardthresh.core.progress import progress_line
from hardthresh.core.solver import Solver
from hardthresh.selection.comparison import compare, warn_at_range_end
from hardthresh.selection.criteria import PRICES

from ..callbacks import FitTask, fit_method
from ..documentation import public_estimator
from ..folds import (
    CrossValidatedMixin,
    Metadata,
    Split,
    candidates_of,
    check_rule,
    check_without_folds,
    forget_comparison,
    keep_comparison,
    scorer_name,
    settings_for_folds,
)
from ..table import Table
from ..upgrades import with_defaults
from .reduced_rank import Coefficients, ReducedRankFactors, with_matrix
from .regression import LowRankRegression

_RowFold = tuple[Split, Metadata]


@public_estimator("low_rank_regression_cv", upgrades=[with_defaults(criterion="cv")])
class LowRankRegressionCV(CrossValidatedMixin, LowRankRegression):
    r"""Reduced-rank regression with the rank chosen by cross-validation.

    .. math:: \hat r = \arg\min_{r} \frac{1}{F} \sum_{f=1}^{F} \frac{1}{q \sum_{i \in f} s_i}
              \sum_{i \in f} s_i \|\hat y_i^{(f, r)} - y_i\|^2

    over the candidates r, with weights s, where :math:`\hat y_i^{(f, r)}` is the prediction of q outputs by a
    `LowRankRegression` of rank r fitted without the rows of fold f. `scoring` and ``rule="one_standard_error"`` change
    the criterion. The final fit uses all rows.

    Parameters
    ----------
    rank : iterable of int, or int, optional
        The ranks to compare, 0 <= rank <= min(n_features, n_outputs); a single number R means 1, 2, ..., R. Default 1,
        2, ..., min(30, n_features, n_outputs).
    criterion : {"cv", "bic", "aic"}
        How to choose the rank: by cross-validation, or by an information criterion of fits to all rows, which requires
        `alpha` = 0 and the defaults of `cv`, `scoring` and `rule`. The criterion counts r (m + q - r) coefficients for
        the rank r, where q is the number of outputs and m the smaller of the number of columns that vary and the number
        of rows minus one.
    {low_rank_cv_parameters}
    {low_rank_parameters}

    Attributes
    ----------
    candidates_ : array of int, shape (n_candidates,)
        The ranks that were compared, increasing.
    scores_ : array, shape (n_candidates, n_folds)
        Held-out scores; higher is better. `mean_scores_` and `standard_errors_` are their means and standard errors
        over the folds, and `scorer_name_` is the name of the score.
    best_rank_ : int
        The rank that `rule` chose; `rank_` is smaller if the minimiser of that rank has a smaller rank.
    one_standard_error_ : int
        The smallest rank whose mean score is within one standard error of the best.
    criterion_path_ : array, shape (n_candidates,)
        Only with an information criterion, instead of scores: the criterion of each rank; smaller is better.
    {low_rank_attributes}

    Raises
    ------
    ValueError
        By `fit`, as for `LowRankRegression`, and for invalid candidates, folds, rules or scorers.

    Warns
    -----
    UserWarning, ConvergenceWarning
        As for `LowRankRegression`. A single warning gives the number of fits within the folds that did not converge.
    SearchRangeWarning
        If the best rank is the largest or the smallest compared, and ranks beyond it are possible.
    CriterionWarning
        If an information criterion chooses the rank, and there are no more rows than columns.

    See Also
    --------
    LowRankRegression : The model with a given rank.

    Notes
    -----
    Guarantee: with ``solver="auto"``, every fit is the global minimum for its rank and rows. Each fold centres and
    scales its own training rows, so its fits do not depend on held-out rows. The choice of the rank is heuristic.

    Cost: with ``solver="auto"``, all ranks of a fold share one decomposition of its training rows. The cost is that of
    one fit with the largest rank for each fold, the final fit, and r passes over the held-out rows for each candidate
    and fold. Another solver starts each fit of a fold from the previous rank.

    References
    ----------
    The rule of one standard error: L. Breiman, J. Friedman, R. Olshen and C. Stone (1984), *Classification and
    Regression Trees*, Section 3.4.3. The number of coefficients of a rank: G. C. Reinsel and R. P. Velu (1998),
    *Multivariate Reduced-Rank Regression*, Section 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from hardthresh import LowRankRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> W = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    >>> Y = X @ W + rng.standard_normal((100, 8))
    >>> LowRankRegressionCV(rule="one_standard_error").fit(X, Y).best_rank_
    2
    """

    _default_scorer: ClassVar[str] = "neg_mean_squared_error"

    def __init__(
        self,
        *,
        rank: int | Iterable[int] | None = None,
        criterion: str = "cv",
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        alpha: float | None = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        solver: str | Solver = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            rank=rank,
            alpha=alpha,
            fit_intercept=fit_intercept,
            standardize=standardize,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )
        self.criterion = criterion
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the rank, then fit all rows with it.

        Parameters
        ----------
        X, y, sample_weight :
            As for `LowRankRegression`. The scores use the weights too.
        **params : dict
            ``groups``, an array of shape (n_samples,): the group of each row, for a splitter that keeps groups
            together, such as ``cv=GroupKFold(5)``. With scikit-learn's metadata routing enabled, whatever the splitter
            and the scorer request.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for `LowRankRegression`, and for invalid candidates or folds.
        """
        everything, given = self._validate_fit(X, y, sample_weight)
        table = with_matrix(given)
        most = min(30, table.X.shape[1], table.y.shape[1])
        check: Callable[[Any], int] = partial(self._checked_rank, table=table)
        candidates = candidates_of(self.rank, most, check, "rank", "ranks")
        if self.criterion != "cv":
            check_without_folds(self, params)
            return self._fit_by_criterion(given, table, candidates)
        check_rule(self.rule)
        seed = self._seed()
        splits, score_params = self._row_folds(everything, given, params)
        task = FitTask(self, given, len(splits) + 1)

        def score(fold: _RowFold, fits: list[Coefficients]) -> list[float]:
            (_, test), metadata = fold
            scores = [self._score(fit, given.take(test), metadata) for fit in fits]
            task.done("fold", partial(fits[-1].attributes, given))
            return scores

        folds = list(zip(splits, score_params, strict=True))
        fit_path = partial(settings_for_folds(self, "rank")._fit_path, table=table, seed=seed)
        with progress_line(bool(self.verbose), "folds", len(folds)) as report:
            comparison = compare(candidates.tolist(), folds, fit_path, score, n_jobs=self.n_jobs, report=report)
        fewest_rows = min(train.size for train, _ in splits) - bool(self.fit_intercept)
        largest = min(table.X.shape[1], table.y.shape[1], fewest_rows)
        warn_at_range_end(candidates, comparison.best, largest, "rank")
        scorer = scorer_name(self.scoring, self._default_scorer)
        self.__dict__.pop("criterion_path_", None)
        keep_comparison(self, comparison, comparison.chosen(self.rule), "rank", scorer)
        return self._fit_chosen(given, table, task)

    def _fit_chosen(self, given: Table, table: Table, task: FitTask) -> Self:
        """Fit all rows with the rank that was chosen."""
        problem = self._problem(table, self.best_rank_)
        self._warn_useless_columns(problem, table.X)
        self._fit_and_keep(problem, given, task)
        task.end()
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        checked_word("criterion", self.criterion, ("cv", *PRICES))
        if self.criterion != "cv" and self._ridge() > 0:
            raise InvalidInputError(
                f'criterion="{self.criterion}" counts the coefficients of a rank, which is for fits without a ridge; '
                'take alpha=0, or criterion="cv"'
            )

    def _fit_by_criterion(self, given: Table, table: Table, candidates: np.ndarray) -> Self:
        """Choose the rank by an information criterion, and fit all rows with it."""
        task, ranks = FitTask(self, given, 1), candidates.tolist()
        everywhere: _RowFold = ((np.arange(table.n_rows), np.arange(0)), {})
        fits, reasons = self._fit_path(everywhere, ranks, None, table, self._seed())
        problem, outputs = self._problem(table, ranks[-1]), table.y.shape[1]
        n = max(float(problem.objective.n_examples), float(table.n_rows))  # weights of a smaller sum are no repetitions
        rows = table.n_rows - bool(self.fit_intercept)
        columns = min(int(np.count_nonzero(problem.inverse_scale)), rows)
        values = []
        for rank, fit in zip(ranks, fits, strict=True):
            residual = -self._score(fit, given, {})
            size = rank * (columns + outputs - rank) + outputs * bool(self.fit_intercept)
            fits_exactly = size >= n * outputs - 1
            misfit = inf if fits_exactly else n * outputs * log(residual) if residual > 0 else -inf
            values.append(misfit + PRICES[self.criterion](n) * size)
        forget_comparison(self)  # of a fit by folds
        best = int(np.argmin(values))
        self.candidates_, self.criterion_path_ = candidates, np.array(values)
        self.best_rank_ = ranks[best]
        if reasons:
            warn(
                f"{len(reasons)} of {len(ranks)} fits for the choice of rank did not converge: {reasons[0]}",
                ConvergenceWarning,
            )
        label = self.criterion.upper()
        if columns == rows:
            warn(
                f"{label} compares ranks of as many columns as rows, {rows}: every rank fits noise, for which this "
                'criterion does not account; use criterion="cv"',
                CriterionWarning,
            )
        warn_at_range_end(candidates, best, min(*table.X.shape, outputs), "rank", label)
        return self._fit_chosen(given, table, task)

    def _fit_path(
        self, fold: _RowFold, ranks: list[int], last: Any, table: Table, seed: int
    ) -> tuple[list[Coefficients], list[str]]:
        """Return the fits of several ranks to the training rows of a fold, and why some did not converge."""
        problem = self._problem(table.take(fold[0][0]), ranks[-1])
        if self._takes_closed_form():
            factors = problem.least_squares()
            return [problem.coefficients(factors.first(rank)) for rank in ranks], []
        results = self._warm_path(problem.explicit(), ranks, seed)
        fits = [
            problem.coefficients(ReducedRankFactors.of(result.w, rank))
            for result, rank in zip(results, ranks, strict=True)
        ]
        return fits, [result.status.sentence for result in results if not result.converged]

    def _score(self, fit: Coefficients, test: Table, params: Metadata) -> float:
        """Return the score of one fit on held-out rows: by the scorer, or minus the mean squared error."""
        if self.scoring is None:
            errors = np.mean((fit.predict(test.matrix()) - with_matrix(test).y) ** 2, axis=1)
            return -float(np.average(errors, weights=test.sample_weight))
        return self._score_by_scorer(fit.attributes(test), test, test.y, params)
